//! Who reads a page blob while others write to it comes to an end, and hears of a change only if what it reads has changed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use blob_model::{
    ContentHeaders, LeaseAction, LeaseDuration, Metadata, PageRange, PublicAccess, SequenceNumber,
    SequenceNumberAction,
};
use blob_service::{
    BlobContent, BlobService, FoundPages, GetBlob, PageQuery, PageWrite, Request, SetProperties, Which,
};
use store::{Engine, Fault, MemoryEngine, MemoryObjects, Page, Scan, TableRef};
use store_suite::{EngineDouble, TestEngine};
use tokio::task::JoinHandle;

use crate::kit::{Ground, Pieces, VirtualTime, blob, checks, container, lease, metadata};
use crate::page_states::{PAGE, SEGMENT};

tokio::task_local! {
    static READS_RANGES: ();
}

/// An engine that has somebody write to the last page before each scan of who reads ranges. A write that can't be done before,
/// because it waits for its turn, is done later.
#[derive(Default)]
struct Busy {
    engine: MemoryEngine,
    service: OnceLock<BlobService>,
    writes: Mutex<Vec<JoinHandle<()>>>,
    /// Readers that have got their answer.
    answered: Arc<AtomicUsize>,
    /// The most that have got theirs during one write.
    answered_in_one: Arc<AtomicUsize>,
}

const LENGTH: usize = 2 * SEGMENT;

impl Busy {
    fn write(&self) -> JoinHandle<()> {
        let service = self.service.get().unwrap().clone();
        let (answered, most) = (self.answered.clone(), self.answered_in_one.clone());
        tokio::spawn(async move {
            let before = answered.load(Ordering::SeqCst);
            let range = PageRange::new((LENGTH - PAGE) as u64, LENGTH as u64).unwrap();
            let write = PageWrite { range, sequence: Default::default() };
            let (plain, body) = (Request::default(), &mut Pieces(vec![7; PAGE], PAGE));
            service.put_pages(&blob("b"), write, checks(), &plain, body).await.unwrap();
            most.fetch_max(answered.load(Ordering::SeqCst) - before, Ordering::SeqCst);
        })
    }
}

#[async_trait]
impl EngineDouble for Busy {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        if READS_RANGES.try_with(|()| ()).is_ok() {
            let write = self.write();
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            self.writes.lock().unwrap().push(write);
        }
        self.engine.scan(table, scan).await
    }
}

async fn read_ranges(engine: &TestEngine<Busy>) -> Vec<FoundPages> {
    let service = engine.service.get().unwrap().clone();
    let read = async { service.page_ranges(&blob("b"), PageQuery::default(), &Request::default()).await };
    let told = READS_RANGES.scope((), read).await.unwrap();
    engine.answered.fetch_add(1, Ordering::SeqCst);
    told.ranges
}

/// So many read ranges at the same time.
async fn ranges_of_a_busy_blob(readers: usize) -> (Vec<Vec<FoundPages>>, Arc<TestEngine<Busy>>) {
    let (engine, objects) = (Arc::new(TestEngine(Busy::default())), Arc::new(MemoryObjects::new()));
    let time = VirtualTime::new();
    let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
    assert!(engine.service.set(service.clone()).is_ok());
    let (none, access) = (Metadata::default(), PublicAccess::None);
    service.create_container(&container("abc"), none, access).await.unwrap();
    let ground = Ground { service, time, engine: engine.clone(), objects };
    ground.put_page_blob(LENGTH).await;
    ground.put_pages(0, &[1; PAGE]).await.unwrap();
    let reading: Vec<_> = (0..readers)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { read_ranges(&engine).await })
        })
        .collect();
    let mut told = Vec::new();
    for read in reading {
        told.push(read.await.unwrap());
    }
    let writes = std::mem::take(&mut *engine.writes.lock().unwrap());
    for write in writes {
        write.await.unwrap();
    }
    (told, engine)
}

#[tokio::test]
async fn the_ranges_of_a_blob_that_is_always_written_to_are_told() {
    let (told, _) = ranges_of_a_busy_blob(1).await;
    let pages = |from: usize| FoundPages::Written(PageRange::new(from as u64, (from + PAGE) as u64).unwrap());
    assert_eq!(told, [[pages(0), pages(LENGTH - PAGE)]]);
}

#[tokio::test]
async fn a_write_waits_for_one_of_those_who_read_ranges() {
    let (_, engine) = ranges_of_a_busy_blob(8).await;
    assert_eq!(engine.answered_in_one.load(Ordering::SeqCst), 1);
}

const SEGMENTS: usize = 40;
/// Far behind what a download reads ahead, and with a page, as every second one.
const LATE: usize = 38 * SEGMENT;

/// What is left of a download, whose pages are all in place.
async fn rest(mut content: BlobContent, mut at: usize) -> Result<usize, Fault> {
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        let piece = piece?;
        // A piece is shorter than a segment.
        let byte = piece.get(at.next_multiple_of(2 * SEGMENT) - at);
        assert!(byte.is_none_or(|byte| *byte == 1), "other pages than those of the ETag");
        at += piece.len();
    }
    Ok(at)
}

/// Downloads a blob that is changed after its first bytes.
async fn download_beside(change: impl AsyncFnOnce(&Ground)) -> Result<usize, Fault> {
    let ground = Ground::with_container().await;
    ground.put_page_blob(SEGMENTS * SEGMENT).await;
    for segment in (0..SEGMENTS).step_by(2) {
        ground.put_pages(segment * SEGMENT, &[1; PAGE]).await.unwrap();
    }
    let (get, plain) = (GetBlob::default(), Request::default());
    let download = ground.service.get_blob(&blob("b"), Which::Current, get, &plain).await.unwrap();
    let mut content = download.content;
    let first = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await.unwrap()?;
    change(&ground).await;
    rest(content, first.len()).await
}

impl Ground {
    async fn set(&self, set: SetProperties) {
        self.service.set_blob_properties(&blob("b"), set, &Request::default()).await.unwrap();
    }

    async fn set_metadata(&self) {
        let pairs = metadata(&[("color", "red")]);
        self.service.set_blob_metadata(&blob("b"), pairs, &Request::default()).await.unwrap();
    }

    async fn snapshot_with_metadata(&self) {
        let pairs = metadata(&[("color", "blue")]);
        self.service.snapshot_blob(&blob("b"), pairs, &Request::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_download_goes_on_although_all_but_pages_changes() {
    let whole = SEGMENTS * SEGMENT;
    assert_eq!(download_beside(async |ground| ground.snapshot_with_metadata().await).await.unwrap(), whole);
    assert_eq!(download_beside(async |ground| ground.set_metadata().await).await.unwrap(), whole);
    let changed = download_beside(async |ground| {
        let headers = ContentHeaders { language: Some("de".to_owned()), ..ContentHeaders::default() };
        ground.set(SetProperties { content: Some(headers), ..SetProperties::default() }).await;
        let number = SequenceNumberAction::Max(SequenceNumber::new(7).unwrap());
        ground.set(SetProperties { sequence_number: Some(number), ..SetProperties::default() }).await;
        ground.resize((SEGMENTS + 1) * SEGMENT).await;
        ground.snapshot_with_metadata().await;
        // What the snapshot has stays as it is.
        ground.clear(LATE, LATE + PAGE).await.unwrap();
        let (duration, fresh) = (LeaseDuration::Infinite, lease(1));
        let action = LeaseAction::Acquire { duration, proposed: None, fresh };
        ground.service.lease_blob(&blob("b"), action, Default::default()).await.unwrap();
    });
    assert_eq!(changed.await.unwrap(), whole);
}

#[tokio::test]
async fn a_download_ends_if_its_pages_change() {
    let put = download_beside(async |ground| {
        ground.put_pages(LATE, &[2; PAGE]).await.unwrap();
    });
    put.await.unwrap_err();
    let cleared = download_beside(async |ground| {
        ground.clear(LATE, LATE + PAGE).await.unwrap();
    });
    cleared.await.unwrap_err();
    let cut = download_beside(async |ground| {
        ground.resize(LATE).await;
        ground.resize(SEGMENTS * SEGMENT).await;
    });
    cut.await.unwrap_err();
    let replaced = download_beside(async |ground| ground.put_page_blob(SEGMENTS * SEGMENT).await);
    replaced.await.unwrap_err();
    // Whatever comes behind the change.
    let hidden = download_beside(async |ground| {
        ground.clear(LATE, LATE + PAGE).await.unwrap();
        ground.set_metadata().await;
        ground.snapshot_with_metadata().await;
    });
    hidden.await.unwrap_err();
}
