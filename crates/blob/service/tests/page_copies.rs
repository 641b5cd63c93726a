//! Copies of a blob that changes meanwhile: each is one of the states of its source, and what was told of it is true.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{Conditions, Crc64, DateTime, Md5, Metadata, PageRange, PublicAccess, Tags};
use blob_service::{BlobService, Copied, CopyBlob, CopySource, CopyTags, Error, PageWrite, Request, Which};
use model::{KeyRange, ServiceKind};
use store::{Budget, Engine, MemoryEngine, MemoryObjects, Scan, StoredName, TableRef, Transaction};
use store_suite::{EngineDouble, TestEngine};

use crate::interleaving::Stepped;
use crate::kit::{
    Ground, Pieces, Random, VirtualTime, account, blob, bytes, checks, container, refused, setting,
};
use crate::page_states::{PAGE, SEGMENT};

pub fn copy(name: &str) -> CopyBlob {
    let source = CopySource {
        blob: blob(name),
        which: Which::Current,
        conditions: Conditions::default(),
        shown: String::new(),
    };
    CopyBlob {
        source,
        metadata: Metadata::default(),
        tags: CopyTags::Replace(Tags::default()),
        tier: None,
        priority: None,
        seal: None,
        is_sync: true,
        source_md5: None,
    }
}

type Outcome = Arc<Mutex<Option<Result<Copied, Error>>>>;

/// Copies to `copy` while this changes the source.
async fn beside(
    stepped: &Stepped,
    random: &mut Random,
    copy: CopyBlob,
    change: impl Future<Output = ()> + Send + 'static,
) -> Result<Copied, Error> {
    stepped.steps.turn_on();
    let outcome = Outcome::default();
    let (ground, told) = (stepped.ground.clone(), outcome.clone());
    let copies = tokio::spawn(async move {
        let copied = ground.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
        *told.lock().unwrap() = Some(copied);
    });
    stepped.finish(random, vec![copies, tokio::spawn(change)]).await;
    let copied = outcome.lock().unwrap().take();
    copied.unwrap()
}

#[tokio::test]
async fn a_copy_of_a_page_blob_is_one_state_and_has_the_checksum_that_was_told() {
    let length = 2 * SEGMENT;
    let mut later = 0;
    for seed in 0..setting("PARTITA_PAGE_COPIES", 60) {
        let mut random = Random::new(seed);
        let stepped = Stepped::new(|service| service).await;
        let ground = stepped.ground.clone();
        ground.put_page_blob(length).await;
        ground.put_pages(SEGMENT - PAGE, &[1; 2 * PAGE]).await.unwrap();
        let is_checked = random.below(2) == 0;
        let mut before = vec![0; length];
        before[SEGMENT - PAGE..SEGMENT + PAGE].fill(1);
        let mut copy = copy("b");
        copy.source_md5 = is_checked.then(|| Md5::of(&before));
        let writer = ground.clone();
        let change = async move {
            writer.put_pages(SEGMENT - PAGE, &[2; 2 * PAGE]).await.unwrap();
            writer.resize(SEGMENT).await;
        };
        match beside(&stepped, &mut random, copy, change).await {
            Ok(copied) => {
                let copy = ground.get("copy").await;
                assert_eq!(copied.crc64, Some(Crc64::of(&copy)), "seed {seed}");
                let mut written = before.clone();
                written[SEGMENT - PAGE..SEGMENT + PAGE].fill(2);
                let states = [&before[..], &written, &written[..SEGMENT]];
                let state = states.iter().position(|state| *state == copy);
                assert!(state.is_some(), "seed {seed}: the copy is no state of its source");
                assert!(!is_checked || state == Some(0), "seed {seed}: another MD5 than was given");
                later += u32::from(state > Some(0));
            }
            Err(error) => {
                assert!(is_checked, "seed {seed}: {error:?}");
                assert_eq!(refused::<()>(Err(error)).code(), "Md5Mismatch");
            }
        }
    }
    assert!(later > 0, "the writer was never first");
}

#[tokio::test]
async fn what_is_copied_has_the_md5_that_was_given() {
    let mut copies = 0;
    for seed in 0..setting("PARTITA_PAGE_COPIES", 60) {
        let mut random = Random::new(seed);
        let stepped = Stepped::new(|service| service).await;
        let ground = stepped.ground.clone();
        let content = bytes(1, 3000);
        ground.put("b", &content).await;
        let copy = CopyBlob { source_md5: Some(Md5::of(&content)), ..copy("b") };
        let writer = ground.clone();
        let change = async move {
            writer.put("b", &bytes(2, 3000)).await;
        };
        match beside(&stepped, &mut random, copy, change).await {
            Ok(copied) => {
                assert!(ground.get("copy").await == content, "seed {seed}: another MD5 than was given");
                assert_eq!(copied.crc64, Some(Crc64::of(&content)));
                copies += 1;
            }
            Err(error) => assert_eq!(refused::<()>(Err(error)).code(), "Md5Mismatch"),
        }
    }
    assert!(copies > 0, "the writer was always first");
}

/// An engine that has somebody write to this segment of the blob `b` after each commit to the blob `copy`.
struct Rewritten {
    engine: MemoryEngine,
    service: OnceLock<BlobService>,
    segment: usize,
    /// Rows that were written of the copy.
    rows: AtomicUsize,
}

const TARGET: &str = "bcopy";

async fn rows_of_copy(ground: &Ground) -> usize {
    let time = Duration::from_secs(60);
    let budget = Budget { rows: usize::MAX, bytes: usize::MAX, time, examined: u64::MAX };
    let scan = Scan { ranges: vec![KeyRange::partition(TARGET)], budget, filter: None, lasts: false };
    let name = StoredName::parse(ServiceKind::Blob, "abc").unwrap();
    let table = TableRef { account: account(), service: ServiceKind::Blob, name };
    ground.engine.scan(&table, scan).await.unwrap().entities.len()
}

#[async_trait]
impl EngineDouble for Rewritten {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, store::Error> {
        let is_copy = transaction.partition().as_str() == TARGET;
        let rows = transaction.operations().iter();
        let rows = rows.filter(|row| matches!(row.change, store::Change::Put(_))).count();
        let applied = self.engine.apply(table, transaction).await;
        if is_copy {
            self.rows.fetch_add(rows, Ordering::SeqCst);
            let from = self.segment * SEGMENT;
            let range = PageRange::new(from as u64, (from + PAGE) as u64).unwrap();
            let write = PageWrite { range, sequence: Default::default() };
            let (plain, body) = (Request::default(), &mut Pieces(vec![7; PAGE], PAGE));
            let service = self.service.get().unwrap();
            service.put_pages(&blob("b"), write, checks(), &plain, body).await.unwrap();
        }
        applied
    }
}

/// With a page blob that has a page in each of these segments.
async fn ground_on(engine: Arc<dyn Engine>, segments: usize, tell: impl FnOnce(&BlobService)) -> Ground {
    let (objects, time) = (Arc::new(MemoryObjects::new()), VirtualTime::new());
    let service = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
    tell(&service);
    let (none, access) = (Metadata::default(), PublicAccess::None);
    service.create_container(&container("abc"), none, access).await.unwrap();
    let ground = Ground { service, time, engine, objects };
    ground.put_page_blob(segments * SEGMENT).await;
    for segment in 0..segments {
        ground.put_pages(segment * SEGMENT, &[1; PAGE]).await.unwrap();
    }
    ground
}

/// One of its segments is always written to.
async fn rewritten(segments: usize, segment: usize) -> (Ground, Arc<TestEngine<Rewritten>>) {
    let (engine, service) = (MemoryEngine::new(), OnceLock::new());
    let engine = Arc::new(TestEngine(Rewritten { engine, service, segment, rows: AtomicUsize::new(0) }));
    let tell = |service: &BlobService| assert!(engine.service.set(service.clone()).is_ok());
    (ground_on(engine.clone(), segments, tell).await, engine)
}

#[tokio::test]
async fn a_copy_that_is_given_up_leaves_no_rows() {
    let (ground, engine) = rewritten(3, 0).await;
    let copy = CopyBlob { is_sync: false, ..copy("b") };
    let copied = ground.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
    assert_eq!(refused(copied).code(), "ServerBusy");
    assert!(engine.rows.load(Ordering::SeqCst) > 0);
    assert_eq!(rows_of_copy(&ground).await, 0);
    // The source still has all that it had.
    let content = ground.get("b").await;
    assert_eq!(content.into_iter().step_by(SEGMENT).collect::<Vec<_>>(), [7, 1, 1]);
}

#[tokio::test]
async fn an_attempt_to_copy_ends_where_the_source_has_changed() {
    let (ground, engine) = rewritten(200, 100).await;
    let copy = CopyBlob { is_sync: false, ..copy("b") };
    let copied = ground.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
    assert_eq!(refused(copied).code(), "ServerBusy");
    // Eight attempts, each with two commits of forty rows before the segment that has changed.
    assert_eq!(engine.rows.load(Ordering::SeqCst), 8 * 80);
}

/// An engine that does not make the commit which names the map of a copy, or makes it and loses the answer.
struct Naming {
    engine: MemoryEngine,
    is_made: bool,
}

#[async_trait]
impl EngineDouble for Naming {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, store::Error> {
        let names = |transaction: &Transaction| {
            let mut rows = transaction.operations().iter().map(|operation| operation.row.as_str());
            transaction.partition().as_str() == TARGET && !rows.all(|row| row.starts_with('p'))
        };
        match (names(&transaction), self.is_made) {
            (false, _) => self.engine.apply(table, transaction).await,
            (true, false) => Err(store::Error::Busy),
            (true, true) => {
                self.engine.apply(table, transaction).await.unwrap();
                Err(store::Error::OutcomeUnknown)
            }
        }
    }
}

async fn copied_on_naming(is_made: bool) -> (Ground, &'static str) {
    let engine = Arc::new(TestEngine(Naming { engine: MemoryEngine::new(), is_made }));
    let ground = ground_on(engine, 3, |_| ()).await;
    let copy = CopyBlob { is_sync: false, ..copy("b") };
    let copied = ground.service.copy_blob(&blob("copy"), copy, &Request::default()).await;
    let code = refused(copied).code();
    (ground, code)
}

#[tokio::test]
async fn a_copy_that_is_refused_leaves_no_rows() {
    let (ground, code) = copied_on_naming(false).await;
    assert_eq!((code, rows_of_copy(&ground).await), ("ServerBusy", 0));
}

#[tokio::test]
async fn a_copy_that_may_have_been_made_keeps_its_rows() {
    let (ground, code) = copied_on_naming(true).await;
    assert_eq!((code, rows_of_copy(&ground).await), ("OperationTimedOut", 4));
    assert!(ground.get("copy").await == ground.get("b").await);
}
