//! A segment of a page blob's map.

use std::collections::HashSet;
use std::ops::Range;

use store::ObjectId;

use super::{SEGMENT_OBJECTS_MAX, SEGMENT_PAGES};

/// Pages that lie behind each other, in the blob and in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first of its pages in the segment.
    pub first: u32,
    /// Never 0.
    pub pages: u32,
    pub object: ObjectId,
    /// The first of its pages in the object.
    pub start: u32,
    /// The map's number when the object was written.
    pub written: u32,
    /// The map's number when the client wrote these pages. Before `written`, if they were copied since.
    pub changed: u32,
}

/// What a list of page ranges says of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageChange {
    /// They are there, or were written.
    Written,
    /// They were there, and are not any more.
    Cleared,
}

/// A part of a range, for reading: some pages of an object, or empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePart {
    pub pages: u32,
    /// The object, and the first of the pages in it.
    pub place: Option<(ObjectId, u32)>,
}

/// Pages that were there and were cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clearing {
    pub first: u32,
    /// Never 0.
    pub pages: u32,
    /// The map's number when they were cleared. Never 0: nobody asks for what was before the first snapshot.
    pub changed: u32,
}

/// Runs and clearings, each in order; nothing overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    pub(super) runs: Vec<Run>,
    pub(super) cleared: Vec<Clearing>,
}

impl Clearing {
    pub(super) fn end(&self) -> u32 {
        self.first + self.pages
    }
}

impl Run {
    pub(super) fn end(&self) -> u32 {
        self.first + self.pages
    }

    /// Its pages from one to another, which both lie in it.
    fn part(&self, from: u32, to: u32) -> Self {
        Self { first: from, pages: to - from, start: self.start + (from - self.first), ..*self }
    }

    /// Whether the other is its continuation.
    fn continues_in(&self, next: &Self) -> bool {
        let expected = Self { first: self.end(), pages: next.pages, start: self.start + self.pages, ..*self };
        *next == expected
    }
}

impl Segment {
    /// Nothing is there, and nothing was.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.cleared.is_empty()
    }

    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// These pages are all of this object, from its first page on.
    pub fn write(&mut self, pages: Range<u32>, object: ObjectId, number: u32) {
        let run = Run {
            first: pages.start,
            pages: pages.end - pages.start,
            object,
            start: 0,
            written: number,
            changed: number,
        };
        self.unclear(&pages);
        self.replace(pages, Some(run));
    }

    pub fn clear(&mut self, pages: Range<u32>, number: u32) {
        if number > 0 {
            let ranges = self.ranges(pages.clone());
            let new = ranges.iter().map(|range| Clearing {
                first: range.start,
                pages: range.end - range.start,
                changed: number,
            });
            self.cleared.extend(new);
            self.cleared.sort_unstable_by_key(|clearing| clearing.first);
        }
        self.replace(pages, None);
    }

    /// These pages are written.
    fn unclear(&mut self, pages: &Range<u32>) {
        let outside = |clearing: &Clearing| {
            let part = |first: u32, end: u32| {
                (first < end).then(|| Clearing { first, pages: end - first, ..*clearing })
            };
            let before = part(clearing.first, clearing.end().min(pages.start));
            let behind = part(clearing.first.max(pages.end), clearing.end());
            [before, behind].into_iter().flatten()
        };
        self.cleared = self.cleared.iter().flat_map(outside).collect();
    }

    fn replace(&mut self, pages: Range<u32>, by: Option<Run>) {
        assert!(pages.start < pages.end && pages.end <= SEGMENT_PAGES, "pages {pages:?} of a segment");
        let from = self.runs.partition_point(|run| run.end() <= pages.start);
        let to = self.runs.partition_point(|run| run.first < pages.end);
        let mut new = Vec::with_capacity(3);
        if let Some(first) = self.runs[from..to].first().filter(|run| run.first < pages.start) {
            new.push(first.part(first.first, pages.start));
        }
        new.extend(by);
        if let Some(last) = self.runs[from..to].last().filter(|run| run.end() > pages.end) {
            new.push(last.part(pages.end, last.end()));
        }
        self.runs.splice(from..to, new);
    }

    /// What there is of these pages, and what is not there, in order and without gaps.
    pub fn parts(&self, pages: Range<u32>) -> Vec<PagePart> {
        let mut parts = Vec::new();
        let mut at = pages.start;
        for run in self.within(&pages) {
            if at < run.first {
                parts.push(PagePart { pages: run.first - at, place: None });
            }
            parts.push(PagePart { pages: run.pages, place: Some((run.object, run.start)) });
            at = run.end();
        }
        if at < pages.end {
            parts.push(PagePart { pages: pages.end - at, place: None });
        }
        parts
    }

    /// The runs that lie in these pages, cut to them.
    fn within(&self, pages: &Range<u32>) -> impl Iterator<Item = Run> {
        let from = self.runs.partition_point(|run| run.end() <= pages.start);
        let (start, end) = (pages.start, pages.end);
        self.runs[from..]
            .iter()
            .take_while(move |run| run.first < end)
            .map(move |run| run.part(run.first.max(start), run.end().min(end)))
    }

    /// The pages that are there, of these.
    pub fn ranges(&self, pages: Range<u32>) -> Vec<Range<u32>> {
        joined(self.within(&pages).map(|run| run.first..run.end()))
    }

    /// What became of these pages since the map had this number.
    pub fn changes_since(&self, number: u32, pages: Range<u32>) -> Vec<(Range<u32>, PageChange)> {
        let written = self.within(&pages).filter(|run| run.changed > number).map(|run| run.first..run.end());
        let cleared = self.cleared.iter().filter(|clearing| clearing.changed > number);
        let cleared = cleared.map(|clearing| clearing.first.max(pages.start)..clearing.end().min(pages.end));
        let cleared = cleared.filter(|range| range.start < range.end);
        let mut changes: Vec<_> =
            joined(cleared).into_iter().map(|range| (range, PageChange::Cleared)).collect();
        changes.extend(joined(written).into_iter().map(|range| (range, PageChange::Written)));
        changes.sort_unstable_by_key(|(range, _)| range.start);
        changes
    }

    /// The objects that it needs, each once.
    pub fn objects(&self) -> Vec<ObjectId> {
        let mut seen = HashSet::new();
        self.runs.iter().map(|run| run.object).filter(|object| seen.insert(*object)).collect()
    }

    /// Whether it should be copied into one object before more is written to it.
    pub fn is_scattered(&self) -> bool {
        self.runs.len() > SEGMENT_OBJECTS_MAX && self.objects().len() > SEGMENT_OBJECTS_MAX
    }

    /// The same pages, after all that are there were copied into this object, in order and without gaps.
    pub fn gathered(&self, object: ObjectId, number: u32) -> Self {
        let mut runs: Vec<Run> = Vec::with_capacity(self.runs.len());
        let mut start = 0;
        for run in &self.runs {
            let copy = Run { object, start, written: number, ..*run };
            start += run.pages;
            match runs.last_mut() {
                Some(last) if last.continues_in(&copy) => last.pages += copy.pages,
                _ => runs.push(copy),
            }
        }
        Self { runs, cleared: self.cleared.clone() }
    }

    /// Objects that this segment needs and the one after it does not, and that no row of a lower number can need: they were
    /// written at this number.
    pub fn objects_replaced_by(&self, after: &Self, number: u32) -> Vec<ObjectId> {
        let kept: HashSet<ObjectId> = after.runs.iter().map(|run| run.object).collect();
        let mut replaced: Vec<ObjectId> =
            self.runs.iter().filter(|run| run.written == number).map(|run| run.object).collect();
        replaced.retain(|object| !kept.contains(object));
        replaced.sort_unstable();
        replaced.dedup();
        replaced
    }
}

/// Ranges in order, those that touch as one.
fn joined(ranges: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
    let mut list: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match list.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => list.push(range),
        }
    }
    list
}
