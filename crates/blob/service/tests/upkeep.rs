//! What nobody needs any more goes, in its time, and nothing else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{BlockChoice, BlockId, DateTime, Metadata, PublicAccess, SnapshotTime};
use blob_service::content::SWEPT_AGE;
use blob_service::{
    BlobQuery, BlobService, BlockListQuery, Cleaned, DeleteBlob, NewBlob, NewPageBlob, PageWrite, Request,
    Which,
};
use model::KeyRange;
use store::{Budget, Engine, MemoryEngine, MemoryObjects, Page, RowDraft, Scan, StoredRow, TableRef};
use store_suite::{EngineDouble, TestEngine};

use crate::interleaving::{SteppedEngine, Steps};
use crate::kit::{Ground, Pieces, Random, VirtualTime, blob, bytes, checks, container};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn id(number: u8) -> BlockId {
    BlockId::of_bytes(&[number]).unwrap()
}

impl Ground {
    async fn put_block(&self, name: &str, number: u8) {
        let body = &mut Pieces(bytes(u64::from(number), 5000), 2000);
        self.service.put_block(&blob(name), id(number), checks(), None, body).await.unwrap();
    }

    async fn commit(&self, name: &str, numbers: &[u8]) {
        let blocks: Vec<_> = numbers.iter().map(|number| (BlockChoice::Latest, id(*number))).collect();
        let (blob, none) = (blob(name), Request::default());
        self.service.put_block_list(&blob, &blocks, NewBlob::default(), &none).await.unwrap();
    }

    async fn sweep(&self) -> Cleaned {
        self.service.sweep().await.unwrap()
    }

    async fn rows(&self) -> usize {
        let budget =
            Budget { rows: usize::MAX, bytes: usize::MAX, time: Duration::from_secs(60), examined: u64::MAX };
        let scan = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
        self.engine.scan(&self.table(), scan).await.unwrap().entities.len()
    }

    /// The engine stamps rows with the time of day; from here on the service's clock is behind none of them.
    fn catch_up(&self) {
        let now = DateTime::now();
        while self.time.now() < now {
            self.time.pass(Duration::from_secs(3600));
        }
    }
}

#[tokio::test]
async fn an_upload_goes_a_week_after_its_last_block() {
    let ground = Ground::with_container().await;
    ground.catch_up();
    ground.put_block("new", 1).await;
    ground.put("old", b"committed").await;
    ground.put_block("old", 1).await;
    ground.time.pass(6 * DAY);
    assert_eq!(ground.sweep().await.uploads, 0);
    assert_eq!(ground.objects().await, 2);
    ground.time.pass(2 * DAY);
    // The rows are dead from the moment at which the blob forgets them, and go with the same sweep.
    let cleaned = ground.sweep().await;
    assert_eq!((cleaned.uploads, cleaned.blocks, cleaned.objects.removed), (2, 2, 2));
    assert_eq!(ground.objects().await, 0);
    assert_eq!(ground.get("old").await, b"committed");
    assert_eq!(ground.rows().await, 1, "nothing is left of the blob that was never committed");
    assert_eq!(ground.sweep().await, Cleaned::default());
}

#[tokio::test]
async fn what_is_in_use_stays_however_old_it_is() {
    let ground = Ground::with_container().await;
    ground.catch_up();
    for number in 1..4 {
        ground.put_block("b", number).await;
    }
    ground.commit("b", &[1, 2, 3]).await;
    let content = ground.get("b").await;
    ground.put_block("b", 4).await;
    ground.put("c", &bytes(9, 10_000)).await;
    let taken = ground.service.snapshot_blob(&blob("c"), Metadata::default(), &Request::default()).await;
    ground.put("c", b"other").await;
    ground.time.pass(6 * DAY);
    assert_eq!(ground.sweep().await.objects.removed, 0);
    assert_eq!(ground.get("b").await, content);
    let which = Which::Snapshot(taken.unwrap().0);
    assert_eq!(ground.get_state("c", which).await.unwrap(), bytes(9, 10_000));
    ground.commit("b", &[4, 1]).await;
    assert_eq!(ground.get("b").await.len(), 10_000);
}

/// A block comes to an upload of eight days while a sweep looks at it. In every order the block is there once Put Block has
/// answered, and so are the others if the upload goes on.
#[tokio::test]
async fn a_block_that_was_acknowledged_is_there_whatever_a_sweep_does_meanwhile() {
    let (mut ended, mut went_on) = (0, 0);
    for seed in 0..300 {
        let (mut random, steps) = (Random::new(seed), Steps::default());
        let engine = Arc::new(TestEngine(SteppedEngine { steps: steps.clone(), ..SteppedEngine::default() }));
        let (objects, time) = (Arc::new(MemoryObjects::new()), VirtualTime::new());
        let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
        let ground = Arc::new(Ground { service, time, engine, objects });
        ground.catch_up();
        let (made, is_new) = (ground.clone(), seed % 2 == 0);
        let make = tokio::spawn(async move {
            let access = PublicAccess::None;
            made.service.create_container(&container("abc"), Metadata::default(), access).await.unwrap();
            if !is_new {
                made.put("b", b"committed").await;
            }
            made.put_block("b", 1).await;
            made.put_block("b", 2).await;
            made.make_older("bb", 8 * DAY).await;
            made.make_older("ub", 8 * DAY).await;
            made.properties("b").await.ok()
        });
        while !make.is_finished() {
            steps.step(&mut random).await;
        }
        let before = make.await.unwrap();
        let (putting, sweeping) = (ground.clone(), ground.clone());
        let number = random.of(&[2, 3]);
        let put = tokio::spawn(async move { putting.put_block("b", number).await });
        let sweep = tokio::spawn(async move { sweeping.sweep().await });
        while !put.is_finished() || !sweep.is_finished() {
            steps.step(&mut random).await;
        }
        put.await.unwrap();
        let uploads = sweep.await.unwrap().uploads;
        steps.turn_off();
        assert_eq!(ground.properties("b").await.ok(), before, "seed {seed}");
        let query = BlockListQuery { uncommitted: true, ..BlockListQuery::default() };
        let lists = ground.service.block_list(&blob("b"), query, &Request::default()).await.unwrap();
        let found: Vec<BlockId> = lists.uncommitted.into_iter().map(|block| block.id).collect();
        let all: &[u8] = match (uploads, number) {
            (0, 2) => &[1, 2],
            (0, _) => &[1, 2, 3],
            _ => &[number],
        };
        assert_eq!(found, all.iter().map(|number| id(*number)).collect::<Vec<_>>(), "seed {seed}");
        ground.commit("b", all).await;
        let content: Vec<u8> = all.iter().flat_map(|number| bytes(u64::from(*number), 5000)).collect();
        assert!(ground.get("b").await == content, "seed {seed}");
        if uploads == 0 { went_on += 1 } else { ended += 1 }
    }
    assert!(ended > 10 && went_on > 10, "the sweep ended {ended} uploads, and {went_on} went on");
}

/// As after a crash between a commit and what follows it.
#[tokio::test]
async fn blocks_of_an_upload_that_is_over_go_after_a_day() {
    let ground = Ground::with_container().await;
    ground.catch_up();
    ground.put_block("b", 1).await;
    let stale = ground.engine_rows("ub").await;
    ground.commit("b", &[1]).await;
    ground.engine_load("ub", stale).await;
    assert_eq!(ground.rows().await, 2);
    assert_eq!(ground.sweep().await.blocks, 0);
    ground.time.pass(SWEPT_AGE);
    ground.time.pass(DAY);
    let cleaned = ground.sweep().await;
    assert_eq!((cleaned.blocks, cleaned.objects.removed), (1, 0), "the block's object is the blob's");
    assert_eq!(ground.get("b").await, bytes(1, 5000));
    let query = BlockListQuery { committed: true, ..BlockListQuery::default() };
    let lists = ground.service.block_list(&blob("b"), query, &Request::default()).await.unwrap();
    assert_eq!(lists.committed.len(), 1);
}

#[tokio::test]
async fn parts_of_a_map_that_no_state_sees_go_after_a_day() {
    let ground = Ground::with_container().await;
    ground.catch_up();
    let length = 8 << 20;
    let new = NewPageBlob { new: NewBlob::default(), length, sequence_number: Default::default() };
    ground.service.put_page_blob(&blob("p"), new, &Request::default()).await.unwrap();
    let write =
        PageWrite { range: blob_model::PageRange::new(0, 1024).unwrap(), sequence: Default::default() };
    let put = async |seed| {
        let body = &mut Pieces(bytes(seed, 1024), 1000);
        ground.service.put_pages(&blob("p"), write, checks(), &Request::default(), body).await.unwrap();
    };
    put(1).await;
    let stale = ground.engine_rows("bp").await;
    let (time, _) =
        ground.service.snapshot_blob(&blob("p"), Metadata::default(), &Request::default()).await.unwrap();
    put(2).await;
    ground.time.pass(2 * DAY);
    assert_eq!(ground.sweep().await.segments, 0, "the snapshot needs it");
    let delete = DeleteBlob { which: Which::Snapshot(time), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("p"), delete, &Request::default()).await.unwrap();
    let stale = stale.into_iter().filter(|(row, _)| row.as_str().starts_with('p')).collect();
    ground.engine_load("bp", stale).await;
    assert_eq!(ground.rows().await, 3);
    let cleaned = ground.sweep().await;
    assert_eq!(cleaned.segments, 1);
    assert_eq!(ground.rows().await, 2);
    assert_eq!(ground.objects().await, 1);
    let listed = ground
        .service
        .list_blobs(&container("abc"), &BlobQuery { limit: 10, ..BlobQuery::default() })
        .await
        .unwrap();
    assert_eq!(listed.entries.len(), 1);
    assert!(ground.get_state("p", Which::Current).await.unwrap().starts_with(&bytes(2, 1024)));
    assert!(ground.get_state("p", Which::Snapshot(SnapshotTime(time.0))).await.is_err());
}

/// An engine that counts the rows of maps that were read since states alone were, as a sweep does before it removes any.
#[derive(Default)]
struct Held {
    engine: MemoryEngine,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl EngineDouble for Held {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        let page = self.engine.scan(table, scan).await?;
        match page.entities.iter().filter(|row| row.row_key.starts_with('p')).count() {
            0 => self.now.store(0, Ordering::SeqCst),
            rows => {
                let now = self.now.fetch_add(rows, Ordering::SeqCst) + rows;
                self.most.fetch_max(now, Ordering::SeqCst);
            }
        }
        Ok(page)
    }
}

/// Of a page blob whose segments have so many rows each, all but one of which no state sees.
async fn sweep_rows(segments: usize, rows_of_each: usize) -> usize {
    let engine = Arc::new(TestEngine(Held::default()));
    let (objects, time) = (Arc::new(MemoryObjects::new()), VirtualTime::new());
    let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
    let ground = Ground { service, time, engine: engine.clone(), objects };
    ground.catch_up();
    let (none, access) = (Metadata::default(), PublicAccess::None);
    ground.service.create_container(&container("abc"), none, access).await.unwrap();
    ground.put_page_blob(4 << 20).await;
    ground.put_pages(0, &[1; 512]).await.unwrap();
    let rows = ground.engine_rows("bb").await;
    let (row, _) = rows.iter().find(|(row, _)| row.as_str().starts_with('p')).unwrap();
    let map = u64::from_str_radix(&row.as_str()[1..17], 16).unwrap();
    // The blob's state sees the last row of each segment but for ten.
    let (base, stored) = rows.iter().find(|(row, _)| !row.as_str().starts_with('p')).unwrap();
    let mut stored = stored.as_ref().unwrap().raw().bytes().to_vec();
    let at = stored.windows(8).position(|bytes| bytes == map.to_be_bytes()).unwrap() + 8;
    stored[at..at + 4].copy_from_slice(&u32::try_from(rows_of_each - 10).unwrap().to_le_bytes());
    ground.engine_load("bb", vec![(base.clone(), Some(StoredRow::new(stored)))]).await;
    let written = DateTime::parse("2026-10-01T00:00:00Z").unwrap();
    let empty = [("P", model::ValueRef::Binary(&[1, 0, 0, 0]))];
    for segment in 1..=segments {
        let row = |number| {
            let key = format!("p{map:016x}{segment:08x}{number:08x}");
            let row = RowDraft::new(empty.into_iter()).stamp(written);
            (model::Key::parse_stored(&key).unwrap(), Some(StoredRow::new(row.as_bytes().to_vec())))
        };
        ground.engine_load("bb", (0..rows_of_each).map(row).collect()).await;
    }
    let cleaned = ground.sweep().await;
    assert_eq!(cleaned.segments, (segments * (rows_of_each - 1)) as u64);
    // The blob's row, the segment that was written, and what is seen of the others.
    assert_eq!(ground.rows().await, 2 + segments);
    engine.most.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_sweep_holds_few_rows_of_maps_at_one_time() {
    // And those of one page.
    for (segments, rows) in [(1, 25_000), (40, 600), (3, 9000)] {
        let most = sweep_rows(segments, rows).await;
        assert!(most <= 10_000 + 500, "{most} of {segments} segments with {rows} rows");
    }
}

impl Ground {
    /// As if the rows of a partition had been written so long ago.
    async fn make_older(&self, partition: &str, by: Duration) {
        let older = |row: StoredRow| {
            let row = row.open().unwrap();
            let ticks = row.timestamp().ticks() - i64::try_from(by.as_nanos() / 100).unwrap();
            let properties = row.view().to_properties();
            let draft = RowDraft::new(properties.iter().map(|of| (of.name.as_str(), of.value.as_ref())));
            StoredRow::new(draft.stamp(DateTime::from_ticks(ticks).unwrap()).as_bytes().to_vec())
        };
        let rows = self.engine_rows(partition).await;
        let rows = rows.into_iter().map(|(key, row)| (key, row.map(older))).collect();
        self.engine_load(partition, rows).await;
    }

    /// The rows of a partition, as an engine takes them back.
    async fn engine_rows(&self, partition: &str) -> Vec<(model::Key, Option<StoredRow>)> {
        let budget =
            Budget { rows: 1000, bytes: usize::MAX, time: Duration::from_secs(60), examined: u64::MAX };
        let ranges = vec![KeyRange::partition(partition)];
        let scan = Scan { ranges, budget, filter: None, lasts: false };
        let page = self.engine.scan(&self.table(), scan).await.unwrap();
        let row = |row: store::StoredRef<'_>| {
            let key = model::Key::parse_stored(row.row_key).unwrap();
            (key, Some(StoredRow::new(row.row.bytes().to_vec())))
        };
        page.entities.iter().map(row).collect()
    }

    async fn engine_load(&self, partition: &str, rows: Vec<(model::Key, Option<StoredRow>)>) {
        let partition = model::Key::parse_stored(partition).unwrap();
        self.engine.load(&self.table(), &partition, rows).await.unwrap();
    }

    fn table(&self) -> TableRef {
        let name = store::StoredName::parse(model::ServiceKind::Blob, "abc").unwrap();
        TableRef { account: container("abc").account, service: model::ServiceKind::Blob, name }
    }
}
