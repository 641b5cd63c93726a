use super::*;
use std::collections::{BTreeMap, HashMap};

use blob_model::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;
use store::ObjectId;

/// A page blob as plain bytes, and beside it the map with its objects.
struct Both {
    /// Pages that are there, each with its byte and the map's number when it was written.
    plain: Vec<Option<(u8, u32)>>,
    /// The map's number when a page was cleared that was there.
    cleared: Vec<Option<u32>>,
    segments: BTreeMap<u32, Segment>,
    /// By page.
    objects: HashMap<ObjectId, Vec<u8>>,
    made: u64,
    number: u32,
    snapshots: Vec<Snapshot>,
}

struct Snapshot {
    number: u32,
    plain: Vec<Option<(u8, u32)>>,
    segments: BTreeMap<u32, Segment>,
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64, u8),
    Clear(u64, u64),
    Resize(u64),
    Snapshot,
    Gather(u32),
}

/// Two segments and a half.
const PAGES_MAX: u64 = SEGMENT_PAGES as u64 * 5 / 2;

fn step() -> impl Strategy<Value = Step> {
    // Most steps are near each other and near the border of two segments, so that they meet.
    let edge = u64::from(SEGMENT_PAGES);
    let near = prop_oneof![0..40_u64, edge - 20..edge + 20, PAGES_MAX - 40..PAGES_MAX - 1, 0..PAGES_MAX - 1];
    let range = (near, prop_oneof![1..8_u64, 1..64_u64, Just(8192)]);
    let range = range.prop_map(|(from, pages)| (from, (from + pages).min(PAGES_MAX)));
    prop_oneof![
        8 => (range.clone(), any::<u8>()).prop_map(|((from, to), byte)| Step::Write(from, to, byte)),
        4 => range.prop_map(|(from, to)| Step::Clear(from, to)),
        1 => (1..PAGES_MAX).prop_map(Step::Resize),
        2 => Just(Step::Snapshot),
        1 => (0..3_u32).prop_map(Step::Gather),
    ]
}

fn pages(from: u64, to: u64) -> PageRange {
    PageRange::new(from * PAGE_BYTES, to * PAGE_BYTES).unwrap()
}

impl Both {
    fn new() -> Self {
        let plain = vec![None; PAGES_MAX as usize];
        let (segments, objects) = (BTreeMap::new(), HashMap::new());
        let cleared = vec![None; PAGES_MAX as usize];
        Self { plain, cleared, segments, objects, made: 0, number: 0, snapshots: Vec::new() }
    }

    fn object(&mut self, bytes: Vec<u8>) -> ObjectId {
        self.made += 1;
        let object = ObjectId::new(DateTime::MIN_STORED, self.made.to_be_bytes());
        self.objects.insert(object, bytes);
        object
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write(from, to, byte) => {
                for page in from..to {
                    // Neighbouring pages differ, so that a wrong place is seen.
                    self.plain[page as usize] = Some((byte.wrapping_add(page as u8), self.number));
                    self.cleared[page as usize] = None;
                }
                for part in segments_of(pages(from, to)) {
                    let first = part.start() / PAGE_BYTES;
                    let bytes = first..first + part.bytes() / PAGE_BYTES;
                    let object = self.object(bytes.map(|page| byte.wrapping_add(page as u8)).collect());
                    let segment = self.segments.entry(part.segment).or_default();
                    let before = segment.clone();
                    segment.write(part.pages, object, self.number);
                    let replaced = before.objects_replaced_by(segment, self.number);
                    self.remove(replaced);
                }
            }
            Step::Clear(from, to) => self.clear(from, to),
            // What is cut off is empty when the blob grows again.
            Step::Resize(length) => self.clear(length, PAGES_MAX),
            Step::Snapshot => {
                let (plain, segments) = (self.plain.clone(), self.segments.clone());
                self.snapshots.push(Snapshot { number: self.number, plain, segments });
                self.number += 1;
            }
            Step::Gather(number) => {
                let Some(segment) = self.segments.get(&number).cloned() else { return };
                let run_bytes = segment.runs().iter().flat_map(|run| {
                    let bytes = &self.objects[&run.object];
                    bytes[run.start as usize..][..run.pages as usize].to_vec()
                });
                let copy = run_bytes.collect();
                let object = self.object(copy);
                let gathered = segment.gathered(object, self.number);
                let replaced = segment.objects_replaced_by(&gathered, self.number);
                self.segments.insert(number, gathered);
                self.remove(replaced);
            }
        }
    }

    fn clear(&mut self, from: u64, to: u64) {
        for page in from as usize..to as usize {
            if self.plain[page].take().is_some() {
                self.cleared[page] = Some(self.number);
            }
        }
        for part in segments_of(pages(from, to)) {
            let Some(segment) = self.segments.get_mut(&part.segment) else { continue };
            let before = segment.clone();
            segment.clear(part.pages, self.number);
            let replaced = before.objects_replaced_by(segment, self.number);
            self.remove(replaced);
        }
    }

    fn remove(&mut self, objects: Vec<ObjectId>) {
        for object in objects {
            assert!(self.objects.remove(&object).is_some(), "an object is removed twice");
        }
    }

    fn read(&self, segments: &BTreeMap<u32, Segment>) -> Vec<Option<u8>> {
        let mut all = Vec::new();
        for part in segments_of(pages(0, PAGES_MAX)) {
            let empty = Segment::default();
            let segment = segments.get(&part.segment).unwrap_or(&empty);
            for PagePart { pages, place } in segment.parts(part.pages) {
                match place {
                    None => all.extend(vec![None; pages as usize]),
                    Some((object, start)) => {
                        let bytes = &self.objects[&object][start as usize..][..pages as usize];
                        all.extend(bytes.iter().map(|byte| Some(*byte)));
                    }
                }
            }
        }
        all
    }

    fn check(&self) {
        let bytes = |plain: &[Option<(u8, u32)>]| -> Vec<Option<u8>> {
            plain.iter().map(|page| page.map(|(byte, _)| byte)).collect()
        };
        assert_eq!(self.read(&self.segments), bytes(&self.plain));
        for snapshot in &self.snapshots {
            assert_eq!(self.read(&snapshot.segments), bytes(&snapshot.plain));
            self.check_changes(snapshot);
        }
        for segment in self.segments.values() {
            assert_eq!(&Segment::read(&segment.to_bytes()).unwrap(), segment);
        }
        self.check_ranges();
    }

    /// Page by page, what the plain bytes say.
    fn check_changes(&self, before: &Snapshot) {
        let mut list = Vec::new();
        for part in segments_of(pages(0, PAGES_MAX)) {
            let empty = Segment::default();
            let now = self.segments.get(&part.segment).unwrap_or(&empty);
            for (range, change) in now.changes_since(before.number, part.pages) {
                list_pages(&mut list, part.segment, &range, change);
            }
        }
        let expected = self.plain.iter().zip(&self.cleared).map(|(now, cleared)| match (now, cleared) {
            (Some((_, changed)), _) => (*changed > before.number).then_some(PageChange::Written),
            (None, Some(changed)) => (*changed > before.number).then_some(PageChange::Cleared),
            (None, None) => None,
        });
        assert_eq!(list, listed(expected));
    }

    fn check_ranges(&self) {
        let mut list = Vec::new();
        for (number, segment) in &self.segments {
            for range in segment.ranges(0..SEGMENT_PAGES) {
                list_pages(&mut list, *number, &range, PageChange::Written);
            }
        }
        assert_eq!(list, listed(self.plain.iter().map(|page| page.map(|_| PageChange::Written))));
    }
}

/// What is said of pages one by one, as ranges.
fn listed(pages: impl Iterator<Item = Option<PageChange>>) -> Vec<ListedPages> {
    let mut list: Vec<ListedPages> = Vec::new();
    for (page, change) in (0..).zip(pages) {
        let Some(change) = change else { continue };
        let (start, end) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
        match list.last_mut() {
            Some(last) if last.end == start && last.change == change => last.end = end,
            _ => list.push(ListedPages { start, end, change }),
        }
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_map_reads_as_plain_bytes_do(steps in vec(step(), 1..40)) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
        }
        both.check();
    }

    #[test]
    fn a_part_of_a_map_is_a_part_of_the_bytes(steps in vec(step(), 1..20), from in 0..8191_u32, pages in 1..8192_u32) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
        }
        let range = from..(from + pages).min(SEGMENT_PAGES);
        for (number, segment) in &both.segments {
            let base = *number as usize * SEGMENT_PAGES as usize;
            let mut at = range.start;
            for part in segment.parts(range.clone()) {
                for page in at..(at + part.pages) {
                    let plain = both.plain.get(base + page as usize).copied().flatten().map(|(byte, _)| byte);
                    let mapped = part.place.map(|(object, start)| both.objects[&object][(start + page - at) as usize]);
                    prop_assert_eq!(mapped, plain);
                }
                at += part.pages;
            }
            prop_assert_eq!(at, range.end);
        }
    }

    #[test]
    fn damaged_segments_are_faults_or_other_segments(
        steps in vec(step(), 1..20),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
        }
        for segment in both.segments.values() {
            let stored = segment.to_bytes();
            prop_assert!(Segment::read(&stored[..at.index(stored.len())]).is_err());
            let mut damaged = stored.clone();
            let at = at.index(damaged.len());
            damaged[at] ^= flip;
            if let Ok(other) = Segment::read(&damaged) {
                prop_assert_ne!(&other, segment);
                prop_assert_eq!(other.to_bytes(), damaged);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_fault_or_a_segment(bytes in vec(any::<u8>(), 0..100)) {
        let bytes = [&[1][..], &bytes].concat();
        if let Ok(segment) = Segment::read(&bytes) {
            prop_assert_eq!(segment.to_bytes(), bytes);
        }
    }
}

fn object(number: u32) -> ObjectId {
    ObjectId::new(DateTime::MIN_STORED, u64::from(number).to_be_bytes())
}

#[test]
fn the_bytes_never_change() {
    let mut segment = Segment::default();
    segment.write(2..200, ObjectId::from_bytes([9; 16]), 3);
    segment.write(10..12, ObjectId::from_bytes([7; 16]), 4);
    segment.clear(11..12, 5);
    let expected: Vec<&[u8]> = vec![
        b"\x01\x02",
        &[9; 16],
        b"\x03",
        &[7; 16],
        b"\x04\x03\x02\x08\0\0\x03\0\x01\x01\0\x04\x01\xbc\x01\0\x0a\x03\x01\x0b\x01\x05",
    ];
    assert_eq!(segment.to_bytes(), expected.concat());
    assert_eq!(Segment::default().to_bytes(), [1, 0, 0, 0]);
}

/// The worst that can be in a row: as many objects as there may be, and pages that alternate between two of them.
#[test]
fn a_row_is_small_though_its_pages_are_scattered() {
    let mut segment = Segment::default();
    segment.write(0..SEGMENT_PAGES, object(0), 1_000_000);
    for page in 0..SEGMENT_PAGES / 2 {
        let object = object(1 + page % (SEGMENT_OBJECTS_MAX as u32 - 1));
        segment.write(2 * page..2 * page + 1, object, 1_000_000);
    }
    assert!(!segment.is_scattered());
    assert!(segment.to_bytes().len() < 100 * 1024, "{}", segment.to_bytes().len());
    segment.write(0..1, object(9999), 1_000_001);
    assert!(segment.is_scattered());
    let gathered = segment.gathered(object(5), 1_000_001);
    assert!(!gathered.is_scattered());
    // Pages that were written at another time stay apart.
    assert_eq!(gathered.runs().len(), 2);
}

#[test]
fn an_object_that_a_snapshot_may_need_is_not_replaced() {
    let mut segment = Segment::default();
    segment.write(0..8, object(1), 0);
    let before = segment.clone();
    segment.write(0..8, object(2), 0);
    assert_eq!(before.objects_replaced_by(&segment, 0), [object(1)]);
    let snapshot = segment.clone();
    segment.write(0..8, object(3), 1);
    assert_eq!(snapshot.objects_replaced_by(&segment, 1), []);
}
