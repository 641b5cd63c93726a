//! Content is read as it was written, in bounded memory, or as a fault; and nothing stays of what was given up.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blob_model::{BlockId, Crc64, Md5};
use blob_service::Error;
use blob_service::content::{
    Appended, BlobKey, Content, ContentReader, Contents, Extent, INLINE_BYTES_MAX, Keep, WRITING_TIME_MAX,
    Written,
};
use bytes::Bytes;
use proptest::prelude::*;
use store::{CHUNK_BYTES, CHUNK_BYTES_MAX, Fault, FaultKind, RequestMemory};

use crate::kit::{Random, VirtualTime};
use crate::watched_objects::WatchedObjects;

const MIB: usize = CHUNK_BYTES;

struct Ground {
    objects: Arc<WatchedObjects>,
    contents: Contents,
    time: VirtualTime,
}

impl Ground {
    fn new() -> Self {
        let (objects, time) = (WatchedObjects::new(), VirtualTime::new());
        let contents = Contents::new(objects.clone(), time.clock());
        Self { objects, contents, time }
    }

    async fn write(&self, keep: Keep, bytes: &[u8]) -> Written {
        let mut writer = self.contents.writer(keep, true);
        for piece in bytes.chunks(300_000) {
            writer.push(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        writer.finish().await.unwrap()
    }

    /// What was read before a fault, and the fault.
    async fn read(&self, content: &Content, range: Range<u64>) -> (Vec<u8>, Option<Fault>) {
        let pin = self.contents.pin(BlobKey::of(&1));
        let mut reader = self.contents.reader(content, range, pin).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = reader.next().await {
            match piece {
                Ok(piece) => all.extend_from_slice(&piece),
                Err(fault) => {
                    assert!(reader.next().await.is_none(), "nothing comes after a fault");
                    return (all, Some(fault));
                }
            }
        }
        (all, None)
    }

    async fn whole(&self, content: &Content) -> Vec<u8> {
        let (all, fault) = self.read(content, 0..content.length()).await;
        assert!(fault.is_none(), "{fault:?}");
        all
    }
}

/// Bytes that differ from place to place, and between seeds.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(length + 8);
    while all.len() < length {
        let word = (all.len() as u64 ^ (seed as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        all.extend_from_slice(&word.to_le_bytes());
    }
    all.truncate(length);
    all
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..20_usize,
        INLINE_BYTES_MAX - 2..INLINE_BYTES_MAX + 3,
        MIB - 2..MIB + 3,
        2 * MIB - 2..2 * MIB + 3,
        0..3 * MIB,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_range_reads_as_it_was_written(
        length in length(),
        pieces in prop::collection::vec(1..700_000_usize, 1..5),
        (from, to) in (0.0..=1.0_f64, 0.0..=1.0_f64),
        is_in_object: bool,
    ) {
        let ground = Ground::new();
        let all = bytes(1, length);
        runtime().block_on(async {
            let keep = if is_in_object { Keep::InObject } else { Keep::SmallInRow };
            let mut writer = ground.contents.writer(keep, true);
            let mut rest = &all[..];
            for piece in pieces.iter().cycle() {
                let (some, behind) = rest.split_at(rest.len().min(*piece));
                writer.push(Bytes::copy_from_slice(some)).await.unwrap();
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            let written = writer.finish().await.unwrap();
            assert_eq!(written.length, length as u64);
            assert_eq!((written.sums.crc64, written.sums.md5), (Crc64::of(&all), Some(Md5::of(&all))));
            let content = Content::read(&written.content.write()).unwrap();
            assert_eq!(ground.whole(&content).await, all);
            let (from, to) = ((from * length as f64) as u64, (to * length as f64) as u64);
            let range = from.min(to)..from.max(to);
            let (part, fault) = ground.read(&content, range.clone()).await;
            assert!(fault.is_none());
            assert_eq!(part, &all[range.start as usize..range.end as usize]);
        });
    }

    /// Of a chunk that is damaged, missing or another one, not a byte is given out.
    #[test]
    fn damage_is_a_fault_and_never_other_bytes(
        chunk in 0..4_u32,
        flip in prop::option::of((any::<prop::sample::Index>(), 0..8_u8)),
        swap: bool,
        from in 0..3 * MIB as u64,
    ) {
        let ground = Ground::new();
        let all = bytes(2, 3 * MIB + 500);
        runtime().block_on(async {
            let written = ground.write(Keep::InObject, &all).await;
            let object = written.content.row_extents()[0].object;
            let mut stored = ground.objects.chunk(object, chunk).await.unwrap().to_vec();
            let damaged = match flip {
                Some((at, bit)) => {
                    let at = at.index(stored.len());
                    stored[at] ^= 1 << bit;
                    Some(stored.into())
                }
                None if swap => ground.objects.chunk(object, (chunk + 1) % 4).await,
                None => None,
            };
            ground.objects.damage(object, chunk, damaged);
            let (read, fault) = ground.read(&written.content, from..all.len() as u64).await;
            assert_eq!(read, &all[from as usize..][..read.len()]);
            let is_met = from < u64::from(chunk + 1) * MIB as u64;
            assert_eq!(fault.map(|fault| fault.kind()), is_met.then_some(FaultKind::Damaged));
            if is_met {
                assert!(read.len() as u64 + from <= (u64::from(chunk) * MIB as u64).max(from));
            }
        });
    }
}

#[tokio::test]
async fn small_content_is_in_the_row_unless_it_is_a_block() {
    let ground = Ground::new();
    let small = bytes(3, INLINE_BYTES_MAX);
    let written = ground.write(Keep::SmallInRow, &small).await;
    assert_eq!(written.content.inline_bytes(), &small);
    assert!(ground.objects.names().await.is_empty());
    let written = ground.write(Keep::SmallInRow, &bytes(3, INLINE_BYTES_MAX + 1)).await;
    assert_eq!(written.content.row_extents().len(), 1);
    let written = ground.write(Keep::InObject, &[7]).await;
    assert_eq!(written.content.row_extents().len(), 1);
    assert_eq!(ground.objects.names().await.len(), 2);
    // Content of no bytes is nowhere.
    let written = ground.write(Keep::InObject, &[]).await;
    assert_eq!(written.content, Content::default());
}

/// Whatever comes at once, one chunk is held; and what is held is charged.
#[tokio::test]
async fn a_writer_holds_two_chunks_at_most() {
    let objects = WatchedObjects::new();
    let memory = RequestMemory::new(64 * MIB);
    let contents = Contents::new(objects.clone(), VirtualTime::new().clock()).charging(memory.clone());
    let mut writer = contents.writer(Keep::SmallInRow, false);
    writer.push(Bytes::from(vec![1; 100])).await.unwrap();
    assert_eq!(memory.held(), 0);
    for _ in 0..20 {
        writer.push(Bytes::from(vec![1; 700_001])).await.unwrap();
        assert!(memory.held() <= 2 * CHUNK_BYTES_MAX, "{}", memory.held());
    }
    writer.push(Bytes::from(vec![1; 5 * MIB])).await.unwrap();
    assert!((1..=2 * CHUNK_BYTES_MAX).contains(&memory.held()));
    // A chunk that is written is not held any longer, however slowly the next one comes.
    settle().await;
    writer.push(Bytes::new()).await.unwrap();
    assert!((1..=CHUNK_BYTES_MAX).contains(&memory.held()));
    let written = writer.finish().await.unwrap();
    assert_eq!(written.length, 100 + 20 * 700_001 + 5 * MIB as u64);
    assert_eq!(objects.largest.load(Ordering::SeqCst), CHUNK_BYTES_MAX);
    assert_eq!(objects.take_puts(), (written.length as usize).div_ceil(CHUNK_BYTES));
    assert_eq!(memory.held(), 0);
}

#[tokio::test]
async fn an_upload_that_finds_no_memory_is_refused_as_busy() {
    let objects = WatchedObjects::new();
    let contents = Contents::new(objects, VirtualTime::new().clock()).charging(RequestMemory::new(MIB / 2));
    let mut writer = contents.writer(Keep::SmallInRow, false);
    let refused = writer.push(Bytes::from(vec![1; MIB])).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(refusal) if refusal.status() == 503));
}

/// Each download holds a chunk. Who begins when there is no room for one is refused, and reading ahead waits for room.
#[tokio::test]
async fn downloads_share_what_memory_there_is() {
    let memory = RequestMemory::new(3 * MIB);
    let contents = Contents::new(WatchedObjects::new(), VirtualTime::new().clock()).charging(memory.clone());
    let mut writer = contents.writer(Keep::InObject, false);
    writer.push(Bytes::from(vec![1; 8 * MIB])).await.unwrap();
    let content = writer.finish().await.unwrap().content;
    let begin = || {
        let pin = contents.pin(BlobKey::of(&1));
        let mut reader = contents.reader(&content, 0..8 * MIB as u64, pin).unwrap();
        reader.reserve(8 * MIB as u64).map(|()| reader)
    };
    let mut readers: Vec<ContentReader> = (0..3).map(|_| begin().unwrap()).collect();
    assert!(matches!(begin(), Err(store::Error::Busy)));
    let mut bytes = 0;
    while let Some(piece) = readers[0].next().await {
        bytes += piece.unwrap().len();
        assert!(memory.held() <= 3 * MIB, "{}", memory.held());
    }
    assert_eq!(bytes, 8 * MIB);
    readers.clear();
    assert_eq!(memory.held(), 0);
    // Alone, one reads ahead.
    let mut alone = begin().unwrap();
    for _ in 0..3 {
        alone.next().await.unwrap().unwrap();
    }
    assert!(memory.held() > MIB, "{}", memory.held());
}

#[tokio::test]
async fn nothing_stays_of_a_writer_that_is_dropped_or_fails() {
    let ground = Ground::new();
    let mut writer = ground.contents.writer(Keep::SmallInRow, false);
    writer.push(Bytes::from(vec![1; 3 * MIB])).await.unwrap();
    assert_eq!(ground.objects.names().await.len(), 1);
    drop(writer);
    settle().await;
    assert!(ground.objects.names().await.is_empty());

    ground.objects.take_puts();
    ground.objects.fails_from.store(2, Ordering::SeqCst);
    let mut writer = ground.contents.writer(Keep::SmallInRow, false);
    assert!(writer.push(Bytes::from(vec![1; 4 * MIB])).await.is_err());
    drop(writer);
    let mut joiner = ground.contents.joiner();
    ground.objects.take_puts();
    for extent in extents(1024) {
        joiner.push(extent).await.unwrap();
    }
    let mut failed = false;
    for extent in extents(1100) {
        failed |= joiner.push(extent).await.is_err();
    }
    assert!(failed);
    drop(joiner);
    settle().await;
    assert!(ground.objects.names().await.is_empty());

    ground.objects.fails_from.store(0, Ordering::SeqCst);
    let written = ground.write(Keep::InObject, b"refused").await;
    assert_eq!(written.fresh.objects().len(), 1);
    written.fresh.discard().await;
    assert!(ground.objects.names().await.is_empty());
}

/// Lets what runs in the background come to an end.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upload_ends_before_the_sweep_could_take_it() {
    let ground = Ground::new();
    let mut writer = ground.contents.writer(Keep::SmallInRow, false);
    writer.push(Bytes::from(vec![1; 2 * MIB])).await.unwrap();
    ground.time.pass(WRITING_TIME_MAX);
    writer.push(Bytes::from(vec![1; MIB])).await.unwrap();
    ground.time.pass(Duration::from_secs(1));
    assert!(matches!(writer.finish().await.unwrap_err(), Error::Refused(refusal) if refusal.status() == 500));
}

/// Extents that nobody reads.
fn extents(count: usize) -> Vec<Extent> {
    let object = store::ObjectId::new(blob_model::DateTime::MIN_STORED, [1; 8]);
    let one = |at: usize| Extent {
        object,
        start: at as u64 * 10,
        length: 10,
        crc64: Crc64(at as u64),
        block: Some(BlockId::of_bytes(&at.to_be_bytes()).unwrap()),
    };
    (0..count).map(one).collect()
}

#[tokio::test]
async fn the_longest_list_of_blocks_is_49_manifests() {
    let ground = Ground::new();
    let mut joiner = ground.contents.joiner();
    let blocks = extents(50_000);
    for block in &blocks {
        joiner.push(block.clone()).await.unwrap();
    }
    let refused = joiner.push(blocks[0].clone()).await;
    assert!(matches!(refused, Err(Error::Fault(fault)) if fault.kind() == FaultKind::Bug));
    let joined = joiner.finish().await.unwrap();
    let content = Content::read(&joined.content.write()).unwrap();
    assert_eq!((content.manifests().len(), content.row_extents().len()), (49, 0));
    assert!(joined.content.write().len() < 2048);
    assert_eq!((content.length(), content.extent_count()), (500_000, 50_000));
    let mut walk = ground.contents.extents(&content);
    for block in &blocks {
        assert_eq!(walk.next().await.unwrap().as_ref(), Some(block));
    }
    assert_eq!(walk.next().await.unwrap(), None);
    // The manifests, and the one object of all the blocks.
    assert_eq!(ground.contents.objects_of(&content).await.unwrap().len(), 50);
    assert_eq!(joined.fresh.objects().len(), 49);
}

#[tokio::test]
async fn joined_blocks_read_as_one() {
    for count in [1, 128, 129, 1024, 1025, 1152, 1153, 2500] {
        let ground = Ground::new();
        let mut joiner = ground.contents.joiner();
        let mut all = Vec::new();
        for block in 0..count {
            let part = bytes(block, 1 + block % 7);
            let written = ground.write(Keep::InObject, &part).await;
            let id = BlockId::of_bytes(&block.to_be_bytes()).unwrap();
            joiner
                .push(Extent { block: Some(id), ..written.content.row_extents()[0].clone() })
                .await
                .unwrap();
            all.extend(part);
        }
        let content = joiner.finish().await.unwrap().content;
        let content = Content::read(&content.write()).unwrap();
        assert_eq!(ground.whole(&content).await, all, "{count} blocks");
        let mut random = Random::new(count as u64);
        for _ in 0..20 {
            let (a, b) = (random.below(all.len() + 1), random.below(all.len() + 1));
            let range = a.min(b)..(a.max(b)).min(a.min(b) + 50);
            let (part, fault) = ground.read(&content, range.start as u64..range.end as u64).await;
            assert!(fault.is_none());
            assert_eq!(part, &all[range]);
        }
        // One block of many: its manifest and its chunk.
        ground.objects.take_gets();
        ground.read(&content, 0..1).await;
        assert!(ground.objects.take_gets() <= 2);
    }
}

/// The cost is counted in chunks written and bytes of the row, for the first append and the last.
#[tokio::test]
async fn an_append_costs_the_same_for_the_first_block_and_the_last() {
    let ground = Ground::new();
    let mut random = Random::new(1);
    let (mut content, mut all) = (Content::default(), Vec::new());
    let mut most_puts = 0;
    for number in 0..6_000 {
        let length = random.of(&[1, 50, 4000, 4096, 4097, 5000]);
        let part = bytes(number, length);
        ground.objects.take_puts();
        let written = ground.write(Keep::SmallInRow, &part).await;
        let Appended { content: longer, replaced, .. } =
            ground.contents.append(&content, &written).await.unwrap();
        most_puts = most_puts.max(ground.objects.take_puts());
        content = Content::read(&longer.write()).unwrap();
        assert!(longer.write().len() < 16 * 1024);
        // What is replaced is not needed.
        store::Objects::remove(&*ground.objects, &replaced).await.unwrap();
        all.extend(part);
        if number % 500 == 0 || number > 5_990 {
            assert_eq!(content.length(), all.len() as u64);
            assert_eq!(ground.whole(&content).await, all);
        }
    }
    assert!(most_puts <= 4, "{most_puts}");
    assert!(
        content.manifests().len() >= 4 && content.manifests().iter().rev().skip(1).all(|m| m.extents == 1024)
    );
    // Nothing but what is needed is there.
    assert_eq!(ground.contents.objects_of(&content).await.unwrap(), ground.objects.names().await);
}

#[tokio::test]
async fn an_append_that_fails_leaves_nothing_but_the_append() {
    let ground = Ground::new();
    let content = Content::inline(bytes(1, 4000).into());
    let written = ground.write(Keep::SmallInRow, &bytes(2, 5000)).await;
    ground.objects.take_puts();
    ground.objects.fails_from.store(1, Ordering::SeqCst);
    assert!(ground.contents.append(&content, &written).await.is_err());
    assert_eq!(ground.objects.names().await, written.fresh.objects());
}

/// However slow the reader is taken from, only some chunks are held.
#[tokio::test]
async fn little_is_read_ahead() {
    let ground = Ground::new();
    let all = bytes(5, 12 * MIB);
    let written = ground.write(Keep::SmallInRow, &all).await;
    let pin = ground.contents.pin(BlobKey::of(&1));
    let mut reader = ground.contents.reader(&written.content, 0..all.len() as u64, pin).unwrap();
    let mut at = 0;
    while let Some(piece) = reader.next().await {
        let piece = piece.unwrap();
        assert_eq!(piece, &all[at..at + piece.len()]);
        at += piece.len();
        settle().await;
        let taken = at.div_ceil(MIB);
        assert!(ground.objects.gets.load(Ordering::SeqCst) <= taken + 6);
    }
    assert_eq!(at, all.len());
    assert!((2..=7).contains(&ground.objects.getting_most.load(Ordering::SeqCst)));
}

/// Of a large chunk, a few bytes are read without the rest. What has a checksum as a whole is read as a whole.
#[tokio::test]
async fn a_range_within_a_chunk_is_read_alone() {
    let ground = Ground::new();
    let all = bytes(5, 2 * MIB + 5000);
    let content = ground.write(Keep::SmallInRow, &all).await.content;
    let length = all.len();
    for (range, gets, parts) in [
        (5..10, 0, 1),
        (MIB - 5..MIB + 5, 0, 2),
        (MIB..MIB + MIB / 2, 0, 1),
        (MIB..MIB + MIB / 2 + 1, 1, 0),
        (length - 1..length, 0, 1),
        (0..length, 3, 0),
    ] {
        let (read, fault) = ground.read(&content, range.start as u64..range.end as u64).await;
        assert!(fault.is_none() && read == all[range.clone()], "{range:?}");
        let (found_gets, found_parts) =
            (ground.objects.take_gets(), ground.objects.parts.swap(0, Ordering::SeqCst));
        assert_eq!((found_gets, found_parts), (gets, parts), "{range:?}");
    }
}

/// A row that names more bytes than a chunk has content reads nothing of the checksum behind it.
#[tokio::test]
async fn a_part_is_content_only() {
    let ground = Ground::new();
    let written = ground.write(Keep::InObject, &bytes(1, 5000)).await;
    let longer = Extent { length: 5008, ..written.content.row_extents()[0].clone() };
    let longer = Content::of_extent(longer);
    let (read, fault) = ground.read(&longer, 4990..5008).await;
    assert_eq!((read.len(), fault.map(|fault| fault.kind())), (0, Some(FaultKind::Damaged)));
}

#[tokio::test]
async fn what_is_not_there_can_not_be_asked_for() {
    let ground = Ground::new();
    let content = Content::inline(Bytes::from_static(b"abc"));
    let pin = || ground.contents.pin(BlobKey::of(&1));
    assert_eq!(ground.contents.reader(&content, 0..4, pin()).unwrap_err().kind(), FaultKind::Bug);
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    let backwards = ground.contents.reader(&content, 3..2, pin());
    assert_eq!(backwards.unwrap_err().kind(), FaultKind::Bug);
    assert_eq!(ground.read(&content, 3..3).await.0, b"");
}

#[tokio::test]
async fn another_checksum_than_the_extents_is_a_fault() {
    let ground = Ground::new();
    let written = ground.write(Keep::InObject, &bytes(1, 2 * MIB)).await;
    let mut extent = written.content.row_extents()[0].clone();
    extent.crc64.0 ^= 1;
    let content = Content::of_extent(extent);
    let (read, fault) = ground.read(&content, 0..content.length()).await;
    assert_eq!(fault.unwrap().kind(), FaultKind::Damaged);
    assert_eq!(read.len(), MIB, "the last bytes are not given out");
    // A part has no checksum of its own; its chunks have.
    assert!(ground.read(&content, 1..content.length()).await.1.is_none());
}
