//! Keeps segments at a good size: splits large ones, merges small adjacent ones, and rewrites those with many
//! struck-off entries.
//!
//! Each takes the same three steps, and any janitor may do the next one:
//! 1. The map says where the keys are going. From then on entries are written to the old segment and the new.
//! 2. Every entry of the old segment that is not struck off is copied, with its epoch as timestamp.
//! 3. The map puts the new segments in the place of the old one, which is then dropped.

use std::ops::Range;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::map::{Map, Segment, SegmentState};
use super::{Directory, EntryChange, Listed};
use crate::keys::KeyBytes;
use crate::partition::PartitionId;
use crate::trouble::Trouble;

const PAGE: usize = 1000;
const PARALLEL: usize = 32;
/// Changes of one map in one walk. More are made in the next walk.
const CHANGES_MAX: usize = 1000;
/// Keys remembered of a segment, to find one near its middle.
const SAMPLES_MAX: usize = 1024;

/// The number of keys above which a segment is split, and below which each of two neighbours is merged.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub split_above: usize,
    pub merge_below: usize,
}

impl Sizes {
    /// The number of struck-off entries above which a segment is rewritten. So each costs at most five copies of
    /// listed entries, and a read of the segment never skips more than these.
    pub fn worn_above(self) -> usize {
        (self.split_above / 5).max(1)
    }
}

/// The partitions that a walk checks: those listed in one of these epochs. They may never have been written.
#[derive(Clone, Debug)]
pub struct Suspects {
    pub epochs: Range<i64>,
    pub quiet: Duration,
}

impl Directory {
    /// Finishes what was begun, splits and merges segments where needed, and strikes off partitions that were listed
    /// but never written.
    pub(super) async fn walk(&self, table: Uuid, sizes: Sizes, suspects: &Suspects) -> Result<(), Trouble> {
        self.walk_between(table, KeyBytes::lowest(), None, sizes, suspects).await
    }

    /// The same in the part of the table that is now one segment.
    pub(super) async fn walk_segment(
        &self,
        table: Uuid,
        key: &KeyBytes,
        sizes: Sizes,
    ) -> Result<(), Trouble> {
        let map = self.fresh_map(table).await?;
        let (segment, end) = map.covering(key);
        let nobody = Suspects { epochs: 0..0, quiet: Duration::ZERO };
        self.walk_between(table, segment.start.clone(), end.cloned(), sizes, &nobody).await
    }

    async fn walk_between(
        &self,
        table: Uuid,
        from: KeyBytes,
        to: Option<KeyBytes>,
        sizes: Sizes,
        suspects: &Suspects,
    ) -> Result<(), Trouble> {
        self.finish_all(table).await?;
        let mut at = from;
        // Keys in the segment before, if it may be merged with this one.
        let mut before: Option<usize> = None;
        let mut changes = 0;
        while changes < CHANGES_MAX {
            let map = self.fresh_map(table).await?;
            let (segment, end) = map.covering(&at);
            if segment.is_under_way() {
                // Another janitor has begun a change meanwhile.
                changes += 1;
                self.finish_all(table).await?;
                continue;
            }
            let measure = self.measure(table, segment, suspects).await?;
            let may_merge = measure.keys < sizes.merge_below;
            let change = if measure.keys > sizes.split_above
                && let Some(cut) = measure.middle()
            {
                split(segment, cut)
            } else if may_merge && before.is_some_and(|keys| keys + measure.keys < sizes.split_above) {
                merge(&map, segment)
            } else if measure.worn || measure.struck > sizes.worn_above() {
                vec![Segment { state: SegmentState::Moving { into: Uuid::new_v4() }, ..segment.clone() }]
            } else {
                Vec::new()
            };
            if change.is_empty() {
                before = may_merge.then_some(measure.keys);
                match end.filter(|end| to.as_ref().is_none_or(|to| *end < to)) {
                    Some(end) => at = end.clone(),
                    None => return Ok(()),
                }
                continue;
            }
            // The new segments are measured again, from where the change begins.
            at = change.first().map_or(at, |first| first.start.clone());
            before = None;
            changes += 1;
            self.change(table, &map, &change).await?;
        }
        Ok(())
    }

    /// Step 1 and what follows from it.
    async fn change(&self, table: Uuid, map: &Map, segments: &[Segment]) -> Result<(), Trouble> {
        if self.cluster.change_map(table, Some(map.version), segments, &[]).await? {
            tracing::debug!(%table, ?segments, "changing the directory");
        }
        // Our change, or that of a faster janitor.
        self.finish_all(table).await
    }

    async fn finish_all(&self, table: Uuid) -> Result<(), Trouble> {
        for _ in 0..CHANGES_MAX {
            let map = self.fresh_map(table).await?;
            if !self.finish(table, &map).await? {
                break;
            }
        }
        Ok(())
    }

    /// Does the next step of the change in the map; false if there is none.
    async fn finish(&self, table: Uuid, map: &Map) -> Result<bool, Trouble> {
        let segments = map.segments();
        let Some(at) = segments.iter().position(Segment::is_under_way) else { return Ok(false) };
        let segment = &segments[at];
        // The segments that the last change replaced are deleted before the next change.
        if !segment.retired.is_empty() {
            for &retired in &segment.retired {
                self.drop_segment(retired).await?;
            }
            let cleared = Segment { retired: Vec::new(), ..segment.clone() };
            self.cluster.change_map(table, Some(map.version), &[cleared], &[]).await?;
            return Ok(true);
        }
        let (start, retired) = (segment.start.clone(), vec![segment.id]);
        match &segment.state {
            SegmentState::Active => {}
            SegmentState::Splitting { low, high, cut } => {
                self.copy(segment).await?;
                let halves =
                    [Segment::active(start, *low, retired), Segment::active(cut.clone(), *high, Vec::new())];
                self.cluster.change_map(table, Some(map.version), &halves, &[]).await?;
            }
            SegmentState::Moving { into } => {
                // None of them has retired segments: those are deleted before a move begins (`merge`).
                let moving: Vec<&Segment> =
                    segments[at..].iter().take_while(|other| other.state == segment.state).collect();
                let mut retired = Vec::with_capacity(moving.len());
                for segment in &moving {
                    self.copy(segment).await?;
                    retired.push(segment.id);
                }
                let gone: Vec<&KeyBytes> = moving.iter().skip(1).map(|segment| &segment.start).collect();
                let moved = Segment::active(start, *into, retired);
                self.cluster.change_map(table, Some(map.version), &[moved], &gone).await?;
            }
        }
        Ok(true)
    }

    /// Step 2. An entry that is struck off meanwhile is struck off in the new segment too, with a later timestamp.
    /// One that was struck off before is not copied: if an older listing still arrives, it lists an empty partition,
    /// which is harmless.
    async fn copy(&self, segment: &Segment) -> Result<(), Trouble> {
        let mut from = KeyBytes::lowest();
        loop {
            let page = self.read_segment(segment.id, &from, None, PAGE).await?.listed;
            let mut copies = Vec::with_capacity(page.len());
            for Listed { key, epoch } in page.iter().filter(|entry| !entry.is_struck_off()) {
                if let Some(to) = segment.destination(key) {
                    copies.push(self.write_into(to, key, EntryChange::Listed { epoch: *epoch }));
                }
            }
            stream::iter(copies).buffer_unordered(PARALLEL).try_collect::<()>().await?;
            match page.last() {
                Some(last) if page.len() == PAGE => from = last.key.successor(),
                _ => return Ok(()),
            }
        }
    }

    /// Counts the entries of a segment, and strikes off those partitions that were listed but never written.
    async fn measure(&self, table: Uuid, segment: &Segment, suspects: &Suspects) -> Result<Measure, Trouble> {
        let mut measure = Measure::default();
        let mut from = KeyBytes::lowest();
        loop {
            let page = self.read_segment(segment.id, &from, None, PAGE).await?;
            measure.worn |= page.worn;
            let complete = page.listed.len() < PAGE;
            if let Some(last) = page.listed.last() {
                from = last.key.successor();
            }
            for entry in page.listed {
                if entry.is_struck_off() {
                    measure.struck += 1;
                    continue;
                }
                measure.count(&entry.key);
                if suspects.epochs.contains(&entry.epoch) {
                    let id = PartitionId { table, key: entry.key };
                    self.tidy_unfinished(&id, suspects.quiet).await?;
                }
            }
            if complete {
                return Ok(measure);
            }
        }
    }
}

fn split(segment: &Segment, cut: KeyBytes) -> Vec<Segment> {
    let state = SegmentState::Splitting { low: Uuid::new_v4(), high: Uuid::new_v4(), cut };
    vec![Segment { state, ..segment.clone() }]
}

/// The segment and the one before it, if nothing is under way in either.
fn merge(map: &Map, segment: &Segment) -> Vec<Segment> {
    let Some(at) = map.segments().iter().position(|other| other.start == segment.start) else {
        return Vec::new();
    };
    let Some(before) = at.checked_sub(1).and_then(|at| map.segments().get(at)) else { return Vec::new() };
    if before.is_under_way() || segment.is_under_way() {
        return Vec::new();
    }
    let state = SegmentState::Moving { into: Uuid::new_v4() };
    [before, segment].map(|segment| Segment { state: state.clone(), ..segment.clone() }).to_vec()
}

/// The number of keys in a segment with evenly spaced samples of them, and the number of struck-off entries.
#[derive(Debug)]
struct Measure {
    keys: usize,
    struck: usize,
    /// As in `Entries`.
    worn: bool,
    samples: Vec<KeyBytes>,
    /// One of this many keys is a sample.
    stride: usize,
}

impl Default for Measure {
    fn default() -> Self {
        Self { keys: 0, struck: 0, worn: false, samples: Vec::new(), stride: 1 }
    }
}

impl Measure {
    fn count(&mut self, key: &KeyBytes) {
        if self.keys.is_multiple_of(self.stride) {
            if self.samples.len() == SAMPLES_MAX {
                let mut place = 0..;
                self.samples.retain(|_| place.next().is_some_and(|at: usize| at.is_multiple_of(2)));
                self.stride *= 2;
            }
            self.samples.push(key.clone());
        }
        self.keys += 1;
    }

    /// A key near the middle, with at least one below it.
    fn middle(&self) -> Option<KeyBytes> {
        let at = self.samples.len() / 2;
        (at > 0).then(|| self.samples[at].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_has_about_half_below_it() {
        for keys in [0, 1, 2, 3, 50, 1023, 1024, 1025, 5000, 100_000] {
            let mut measure = Measure::default();
            (0..keys).for_each(|n| measure.count(&KeyBytes::of(&format!("{n:09}"))));
            assert_eq!(measure.keys, keys);
            assert!(measure.samples.len() <= SAMPLES_MAX);
            match measure.middle() {
                None => assert!(keys < 2),
                Some(middle) => {
                    let below = (0..keys).filter(|n| KeyBytes::of(&format!("{n:09}")) < middle).count();
                    assert!((keys / 3..=keys * 2 / 3).contains(&below) && below > 0, "{below} of {keys}");
                }
            }
        }
    }
}
