//! Page blobs beside plain bytes: whatever is written, cleared, cut and kept as snapshots, both read the same.

use std::sync::Arc;

use blob_model::limits::PAGE_BYTES;
use blob_model::{
    ByteRange, Conditions, Etag, Matches, Metadata, PageRange, PublicAccess, SequenceCondition,
    SequenceNumber, SequenceNumberAction, SnapshotTime,
};
use blob_service::content::SWEPT_AGE;
use blob_service::{
    BlobService, DeleteBlob, DeleteSnapshots, FoundPages, GetBlob, NewBlob, NewPageBlob, PageQuery,
    PageRanges, PageWrite, PagesWritten, Request, SetProperties, Which,
};
use store::MemoryObjects;
use store_suite::TestEngine;

use crate::interleaving::{SteppedEngine, Steps};
use crate::kit::{
    Ground, Pieces, Random, VirtualTime, blob, bytes, checks, container, drain, leased, refused, setting,
};

const PAGE: usize = PAGE_BYTES as usize;
const SEGMENT: usize = 4 << 20;

fn write(from: usize, to: usize) -> PageWrite {
    let range = PageRange::new(from as u64, to as u64).unwrap();
    PageWrite { range, sequence: SequenceCondition::default() }
}

impl Ground {
    async fn page_blob(length: usize) -> Self {
        let ground = Self::with_container().await;
        ground.put_page_blob(length).await;
        ground
    }

    pub async fn put_page_blob(&self, length: usize) {
        let sequence_number = SequenceNumber::default();
        let new = NewPageBlob { new: NewBlob::default(), length: length as u64, sequence_number };
        self.service.put_page_blob(&blob("b"), new, &Request::default()).await.unwrap();
    }

    pub async fn put_pages(&self, from: usize, content: &[u8]) -> Result<PagesWritten, blob_service::Error> {
        let body = &mut Pieces(content.to_vec(), 100_000);
        let write = write(from, from + content.len());
        self.service.put_pages(&blob("b"), write, checks(), &Request::default(), body).await
    }

    pub async fn clear(&self, from: usize, to: usize) -> Result<PagesWritten, blob_service::Error> {
        self.service.clear_pages(&blob("b"), write(from, to), &Request::default()).await
    }

    pub async fn snapshot(&self) -> SnapshotTime {
        let taken = self.service.snapshot_blob(&blob("b"), Default::default(), &Request::default()).await;
        taken.unwrap().0
    }

    pub async fn resize(&self, length: usize) -> Etag {
        let set = SetProperties { length: Some(length as u64), ..SetProperties::default() };
        self.service.set_blob_properties(&blob("b"), set, &Request::default()).await.unwrap().etag
    }

    async fn ranges(&self, query: PageQuery) -> PageRanges {
        self.service.page_ranges(&blob("b"), query, &Request::default()).await.unwrap()
    }

    async fn read(&self, which: Which, from: usize, to: usize) -> Vec<u8> {
        let range = ByteRange::parse(&format!("bytes={from}-{}", to - 1));
        let get = GetBlob { range, checksum: None };
        let download = self.service.get_blob(&blob("b"), which, get, &Request::default()).await.unwrap();
        drain(download.content).await
    }
}

/// Pages that are there, each with its first byte and a number that grows with each write.
type Plain = Vec<Option<(u8, u64)>>;

fn plain_bytes(plain: &Plain, from: usize, to: usize) -> Vec<u8> {
    let pages = plain.iter().flat_map(|page| vec![page.map_or(0, |(byte, _)| byte); PAGE]);
    pages.skip(from).take(to - from).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Written,
    Cleared,
}

/// What is said of pages one by one, as ranges.
fn as_ranges(pages: impl Iterator<Item = Option<Listed>>) -> Vec<(Listed, u64, u64)> {
    let mut list: Vec<(Listed, u64, u64)> = Vec::new();
    for (page, listed) in (0..).zip(pages) {
        let Some(listed) = listed else { continue };
        match list.last_mut() {
            Some((kind, _, end)) if *end == page * PAGE_BYTES && *kind == listed => *end += PAGE_BYTES,
            _ => list.push((listed, page * PAGE_BYTES, (page + 1) * PAGE_BYTES)),
        }
    }
    list
}

fn as_told(ranges: &[FoundPages]) -> Vec<(Listed, u64, u64)> {
    let told = |found: &FoundPages| match found {
        FoundPages::Written(range) => (Listed::Written, range.start(), range.end()),
        FoundPages::Cleared(range) => (Listed::Cleared, range.start(), range.end()),
    };
    ranges.iter().map(told).collect()
}

/// Near the ends of segments, and small, so that steps meet.
fn place(random: &mut Random, pages: usize) -> (usize, usize) {
    let around = random.of(&[0, 10, SEGMENT / PAGE - 8, SEGMENT / PAGE, 2 * SEGMENT / PAGE - 4, pages - 1]);
    let from = (around + random.below(12)).min(pages - 1);
    let length = random.of(&[1, 2, 7, 100]);
    (from, (from + length).min(pages))
}

async fn walk(seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let pages = SEGMENT / PAGE * 5 / 2;
    let ground = Ground::page_blob(pages * PAGE).await;
    let mut plain: Plain = vec![None; pages];
    // When pages were cleared that were there.
    let mut cleared: Vec<Option<u64>> = vec![None; pages];
    let mut snapshots: Vec<(SnapshotTime, Plain, u64)> = Vec::new();
    for step in 1..=steps as u64 {
        let (from, to) = place(&mut random, plain.len());
        match random.below(20) {
            0..9 => {
                let content: Vec<u8> =
                    (from..to).flat_map(|page| vec![(step as usize * 31 + page) as u8; PAGE]).collect();
                ground.put_pages(from * PAGE, &content).await.unwrap();
                for (page, plain) in plain.iter_mut().enumerate().take(to).skip(from) {
                    *plain = Some(((step as usize * 31 + page) as u8, step));
                    cleared[page] = None;
                }
            }
            9..13 => {
                let to = if random.below(5) == 0 { plain.len() } else { to };
                ground.clear(from * PAGE, to * PAGE).await.unwrap();
                for page in from..to {
                    cleared[page] = plain[page].take().map(|_| step).or(cleared[page]);
                }
            }
            13 => {
                let length = 1 + random.below(pages);
                ground.resize(length * PAGE).await;
                for page in length..plain.len() {
                    cleared[page] = plain[page].take().map(|_| step).or(cleared[page]);
                }
                plain.resize(length, None);
            }
            14 | 15 => {
                snapshots.push((ground.snapshot().await, plain.clone(), step));
            }
            16 if !snapshots.is_empty() => {
                let (time, _, _) = snapshots.remove(random.below(snapshots.len()));
                let delete = DeleteBlob { which: Which::Snapshot(time), ..DeleteBlob::default() };
                ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
            }
            _ => {
                let (which, seen) = match random.below(snapshots.len() + 1) {
                    0 => (Which::Current, &plain),
                    at => (Which::Snapshot(snapshots[at - 1].0), &snapshots[at - 1].1),
                };
                let (from, to) = place(&mut random, seen.len());
                let (from, to) = (from * PAGE + random.below(PAGE), to * PAGE - random.below(10));
                if from < to {
                    assert!(ground.read(which, from, to).await == plain_bytes(seen, from, to), "step {step}");
                }
            }
        }
    }
    // Everything, at the end.
    assert!(
        ground.read(Which::Current, 0, plain.len() * PAGE).await
            == plain_bytes(&plain, 0, plain.len() * PAGE)
    );
    let there = as_ranges(plain.iter().map(|page| page.map(|_| Listed::Written)));
    assert_eq!(as_told(&ground.ranges(PageQuery::default()).await.ranges), there, "seed {seed}");
    for (time, before, taken) in &snapshots {
        let which = Which::Snapshot(*time);
        let length = before.len() * PAGE;
        assert!(ground.read(which, 0, length).await == plain_bytes(before, 0, length), "seed {seed}");
        let query = PageQuery { previous: Some(*time), ..PageQuery::default() };
        let expected = plain.iter().zip(&cleared).map(|(now, cleared)| match (now, cleared) {
            (Some((_, written)), _) => (written > taken).then_some(Listed::Written),
            (None, Some(cleared)) => (cleared > taken).then_some(Listed::Cleared),
            (None, None) => None,
        });
        assert_eq!(as_told(&ground.ranges(query).await.ranges), as_ranges(expected), "seed {seed}");
    }
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("b"), delete, &Request::default()).await.unwrap();
    // Objects of a snapshot that went before are left to the sweep.
    ground.time.pass(SWEPT_AGE);
    ground.service.sweep().await.unwrap();
    assert_eq!(ground.objects().await, 0, "seed {seed}: nothing stays of a blob that is gone");
}

#[tokio::test]
async fn a_page_blob_is_what_was_written_to_it() {
    for seed in 0..setting("PARTITA_PAGE_WALKS", 5) {
        walk(seed, 60).await;
    }
}

#[tokio::test]
async fn a_write_over_two_segments_is_one() {
    let ground = Ground::page_blob(3 * SEGMENT).await;
    let content = bytes(1, SEGMENT);
    let from = SEGMENT / 2;
    let written = ground.put_pages(from, &content).await.unwrap();
    assert_eq!(written.sums.unwrap().crc64, blob_model::Crc64::of(&content));
    assert!(ground.read(Which::Current, from, from + SEGMENT).await == content);
    let ranges = ground.ranges(PageQuery::default()).await;
    assert_eq!(ranges.etag, written.etag);
    assert_eq!(as_told(&ranges.ranges), [(Listed::Written, from as u64, (from + SEGMENT) as u64)]);
    assert_eq!(ground.objects().await, 2);
    ground.put_pages(from, &content).await.unwrap();
    assert_eq!(ground.objects().await, 2, "what was replaced is gone");
}

/// Eight tebibytes without a page are one row; one page at their end is one more.
#[tokio::test]
async fn holes_cost_nothing() {
    let length = 8_usize << 40;
    let ground = Ground::page_blob(length).await;
    ground.put_pages(length - PAGE, &[7; PAGE]).await.unwrap();
    assert!(ground.read(Which::Current, length - 2 * PAGE, length).await == [[0; PAGE], [7; PAGE]].concat());
    assert_eq!(ground.ranges(PageQuery::default()).await.ranges.len(), 1);
    ground.clear(0, length).await.unwrap();
    assert_eq!(ground.ranges(PageQuery::default()).await.ranges, []);
    assert_eq!(ground.objects().await, 0);
}

#[tokio::test]
async fn a_long_clear_is_done_though_it_is_many_transactions() {
    let ground = Ground::page_blob(100 * SEGMENT).await;
    for segment in 0..100 {
        ground.put_pages(segment * SEGMENT + PAGE, &[1; PAGE]).await.unwrap();
    }
    let etag = ground.properties("b").await.unwrap().etag;
    let conditions = Conditions { if_match: Some(Matches::OneOf(vec![etag])), ..Conditions::default() };
    let request = Request { conditions, lease: None };
    ground.service.clear_pages(&blob("b"), write(0, 99 * SEGMENT), &request).await.unwrap();
    let left = as_told(&ground.ranges(PageQuery::default()).await.ranges);
    let last = (99 * SEGMENT + PAGE) as u64;
    assert_eq!(left, [(Listed::Written, last, last + PAGE_BYTES)]);
    let outcome = ground.service.clear_pages(&blob("b"), write(0, PAGE), &request).await;
    assert_eq!(refused(outcome).code(), "ConditionNotMet");
}

/// Many small writes to one segment are copied together now and then; the bytes stay what they are.
#[tokio::test]
async fn a_scattered_segment_is_gathered() {
    let ground = Ground::page_blob(SEGMENT).await;
    let mut expected = vec![0; 1000 * PAGE];
    for page in 0..700 {
        let at = page * 7 % 1000;
        let content = [page as u8; PAGE];
        ground.put_pages(at * PAGE, &content).await.unwrap();
        expected[at * PAGE..][..PAGE].copy_from_slice(&content);
    }
    assert!(ground.read(Which::Current, 0, 1000 * PAGE).await == expected);
    assert!(ground.objects().await <= 257, "{}", ground.objects().await);
}

#[tokio::test]
async fn pages_that_were_cut_off_are_empty_when_the_blob_grows_again() {
    let ground = Ground::page_blob(2 * SEGMENT).await;
    ground.put_pages(0, &bytes(1, 2 * PAGE)).await.unwrap();
    ground.put_pages(SEGMENT, &bytes(2, 2 * PAGE)).await.unwrap();
    ground.resize(PAGE).await;
    assert_eq!(ground.properties("b").await.unwrap().length, PAGE_BYTES);
    assert_eq!(ground.objects().await, 1);
    ground.resize(2 * SEGMENT).await;
    assert!(ground.read(Which::Current, PAGE, 2 * SEGMENT).await.iter().all(|byte| *byte == 0));
    let there = as_told(&ground.ranges(PageQuery::default()).await.ranges);
    assert_eq!(there, [(Listed::Written, 0, PAGE_BYTES)]);
}

/// One cuts pages off while the other, which finds the blob long, has looked already what lies behind its end.
#[tokio::test]
async fn pages_that_one_resize_cut_off_do_not_come_back_by_another_at_the_same_time() {
    let mut grown = 0;
    for seed in 0..200 {
        let (mut random, steps) = (Random::new(seed), Steps::default());
        let engine = Arc::new(TestEngine(SteppedEngine { steps: steps.clone(), ..SteppedEngine::default() }));
        let (objects, time) = (Arc::new(MemoryObjects::new()), VirtualTime::new());
        let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
        let ground = Arc::new(Ground { service, time, engine, objects });
        let made = ground.clone();
        let make = tokio::spawn(async move {
            let (metadata, access) = (Metadata::default(), PublicAccess::None);
            made.service.create_container(&container("abc"), metadata, access).await.unwrap();
            made.put_page_blob(2 * SEGMENT).await;
            made.put_pages(0, &[1; 2 * PAGE]).await.unwrap();
        });
        while !make.is_finished() {
            steps.step(&mut random).await;
        }
        make.await.unwrap();
        let resizes = [PAGE, 2 * SEGMENT].map(|length| {
            let ground = ground.clone();
            tokio::spawn(async move { ground.resize(length).await })
        });
        while !resizes.iter().all(|resize| resize.is_finished()) {
            steps.step(&mut random).await;
        }
        for resize in resizes {
            resize.await.unwrap();
        }
        steps.turn_off();
        if ground.properties("b").await.unwrap().length > PAGE_BYTES {
            grown += 1;
            let cut_off = ground.read(Which::Current, PAGE, 2 * SEGMENT).await;
            assert!(cut_off.iter().all(|byte| *byte == 0), "seed {seed}");
        }
    }
    assert!(grown > 10, "it was the last one {grown} times");
}

/// The cut leaves a part of a segment, which is so written after the blob has its ETag; and so far behind that it is read while the
/// answer is sent.
#[tokio::test]
async fn a_blob_that_was_cut_far_behind_its_begin_reads_to_its_end() {
    let ground = Ground::page_blob(18 * SEGMENT).await;
    for segment in 0..17 {
        ground.put_pages(segment * SEGMENT, &[segment as u8 + 1; PAGE]).await.unwrap();
    }
    ground.put_pages(17 * SEGMENT, &[18; 2 * PAGE]).await.unwrap();
    let length = 17 * SEGMENT + PAGE;
    ground.resize(length).await;
    let mut expected = vec![0; length];
    for segment in 0..=17 {
        expected[segment * SEGMENT..][..PAGE].fill(segment as u8 + 1);
    }
    assert!(ground.get("b").await == expected);
    let snapshot = Which::Snapshot(ground.snapshot().await);
    assert!(ground.get_state("b", snapshot).await.unwrap() == expected);
}

#[tokio::test]
async fn page_ranges_come_in_pages() {
    let ground = Ground::page_blob(3 * SEGMENT).await;
    for page in [0, 2, 4, SEGMENT / PAGE - 1, SEGMENT / PAGE, 2 * SEGMENT / PAGE] {
        ground.put_pages(page * PAGE, &[1; PAGE]).await.unwrap();
    }
    let all = as_told(&ground.ranges(PageQuery::default()).await.ranges);
    // Those at the border of two segments are one.
    assert_eq!(all.len(), 5);
    for limit in 1..7 {
        let (mut told, mut from) = (Vec::new(), 0);
        loop {
            let page = ground.ranges(PageQuery { from, limit: Some(limit), ..PageQuery::default() }).await;
            assert!(page.ranges.len() <= limit);
            told.extend(as_told(&page.ranges));
            let Some(next) = page.next else { break };
            from = next;
        }
        assert_eq!(told, all, "{limit} at a time");
    }
    let range = ByteRange::parse("bytes=513-1500");
    let some = ground.ranges(PageQuery { range, ..PageQuery::default() }).await;
    assert_eq!(as_told(&some.ranges), [(Listed::Written, 1024, 1536)]);
}

#[tokio::test]
async fn what_is_refused_is_refused_in_the_services_order() {
    let ground = Ground::page_blob(4 * PAGE).await;
    let put = async |write: PageWrite, request: &Request, body: Vec<u8>| {
        let body = &mut Pieces(body, 1000);
        let outcome = ground.service.put_pages(&blob("b"), write, checks(), request, body).await;
        outcome.map_err(|error| refused::<()>(Err(error)).code()).map(|_| ())
    };
    let none = Request::default();
    assert_eq!(put(write(0, PAGE), &none, vec![1; PAGE]).await, Ok(()));
    assert_eq!(put(write(3 * PAGE, 5 * PAGE), &none, vec![1; 2 * PAGE]).await, Err("InvalidPageRange"));
    assert_eq!(put(write(0, PAGE), &leased(1), vec![1; PAGE]).await, Err("LeaseNotPresentWithBlobOperation"));
    for length in [0, PAGE - 1, PAGE + 1] {
        assert_eq!(put(write(0, PAGE), &none, vec![1; length]).await, Err("InvalidHeaderValue"));
    }
    let set = SetProperties {
        sequence_number: Some(SequenceNumberAction::Update(SequenceNumber::new(5).unwrap())),
        ..SetProperties::default()
    };
    ground.service.set_blob_properties(&blob("b"), set, &none).await.unwrap();
    let below = SequenceCondition { below: SequenceNumber::new(5), ..SequenceCondition::default() };
    let late = PageWrite { sequence: below, ..write(0, PAGE) };
    assert_eq!(put(late, &none, vec![1; PAGE]).await, Err("SequenceNumberConditionNotMet"));
    let outcome = ground.service.clear_pages(&blob("b"), late, &none).await;
    assert_eq!(refused(outcome).code(), "SequenceNumberConditionNotMet");
    ground.put("block", b"x").await;
    let outcome = ground.service.clear_pages(&blob("block"), write(0, PAGE), &none).await;
    assert_eq!(refused(outcome).code(), "InvalidBlobType");
    tokio::task::yield_now().await;
    assert_eq!(ground.objects().await, 1, "nothing stays of what was refused");
}

/// As recorded: create 2048, snapshot, write three pages, snapshot, clear the second of them.
#[tokio::test]
async fn what_was_written_and_cleared_since_is_cleared() {
    let ground = Ground::page_blob(4 * PAGE).await;
    let one = ground.snapshot().await;
    ground.put_pages(0, &[1; 3 * PAGE]).await.unwrap();
    let two = ground.snapshot().await;
    ground.clear(PAGE, 2 * PAGE).await.unwrap();
    let since = async |previous| {
        let query = PageQuery { previous: Some(previous), ..PageQuery::default() };
        as_told(&ground.ranges(query).await.ranges)
    };
    let cleared = (Listed::Cleared, 512, 1024);
    assert_eq!(since(one).await, [(Listed::Written, 0, 512), cleared, (Listed::Written, 1024, 1536)]);
    assert_eq!(since(two).await, [cleared]);
}

#[tokio::test]
async fn a_difference_needs_an_earlier_snapshot_of_the_same_blob() {
    let ground = Ground::page_blob(4 * PAGE).await;
    let (one, two) = (ground.snapshot().await, ground.snapshot().await);
    let diff = async |which, previous| {
        let query = PageQuery { which, previous: Some(previous), ..PageQuery::default() };
        ground.service.page_ranges(&blob("b"), query, &Request::default()).await
    };
    assert_eq!(diff(Which::Snapshot(two), one).await.unwrap().ranges, []);
    assert_eq!(refused(diff(Which::Snapshot(one), two).await).code(), "PreviousSnapshotCannotBeNewer");
    let other = SnapshotTime(ground.time.now().plus(std::time::Duration::from_secs(9)));
    assert_eq!(refused(diff(Which::Current, other).await).code(), "PreviousSnapshotNotFound");
    ground.put_page_blob(4 * PAGE).await;
    assert_eq!(refused(diff(Which::Current, one).await).code(), "BlobOverwritten");
}
