//! Servers that share a store: what one of them moves while another sweeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{
    BlobName, BlockId, Comparison, Conditions, Metadata, PageRange, PublicAccess, TagCondition,
};
use blob_service::{
    BlobRef, BlobService, CopyBlob, CopySource, CopyTags, DeleteBlob, DeleteSnapshots, GetBlob, ListQuery,
    NewBlob, NewPageBlob, PageWrite, Request, TagQuery, Which,
};
use store::{Engine, Error, MemoryEngine, MemoryObjects, Objects, Page, Scan, TableRef};
use store_suite::{EngineDouble, TestEngine};
use tokio::sync::mpsc;

use crate::kit::{Pieces, VirtualTime, account, bytes, checks, container, drain};

const SWEEPS_APART: Duration = Duration::from_secs(6 * 3600);
const SWEEPS: usize = 8;
/// Sweeps read containers in the order of their names.
const EARLIER: &str = "earlier";
const LATER: &str = "later";

/// An engine of a server that sweeps: before it reads the later container for the second time, which is when it looks for the
/// names of objects, it waits for the other server to do something.
struct Interrupted {
    engine: Arc<MemoryEngine>,
    reads: AtomicUsize,
    /// Asks, and waits for the answer.
    turn: Mutex<Option<mpsc::Sender<mpsc::Sender<()>>>>,
}

#[async_trait]
impl EngineDouble for Interrupted {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        if table.name.as_str() == LATER && self.reads.fetch_add(1, Ordering::SeqCst) == 1 {
            let turn = self.turn.lock().unwrap().take();
            if let Some(turn) = turn {
                let (done, mut wait) = mpsc::channel(1);
                turn.send(done).await.unwrap();
                wait.recv().await;
            }
        }
        self.engine.scan(table, scan).await
    }
}

struct Cluster {
    /// Sweeps.
    sweeper: BlobService,
    interrupted: Arc<TestEngine<Interrupted>>,
    /// Serves requests.
    server: BlobService,
    time: VirtualTime,
    objects: Arc<MemoryObjects>,
}

fn blob(container_name: &str) -> BlobRef {
    BlobRef::new(container(container_name), BlobName::parse("b").unwrap())
}

impl Cluster {
    async fn new() -> Self {
        let (engine, objects, time) =
            (Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()), VirtualTime::new());
        let turn = Mutex::new(None);
        let interrupted = Interrupted { engine: engine.clone(), reads: AtomicUsize::new(0), turn };
        let interrupted = Arc::new(TestEngine(interrupted));
        let server = BlobService::new(engine, objects.clone()).timed(time.clock()).shared(true);
        let sweeper = BlobService::new(interrupted.clone(), objects.clone()).timed(time.clock()).shared(true);
        let cluster = Self { sweeper, interrupted, server, time, objects };
        cluster.make(EARLIER).await;
        cluster.make(LATER).await;
        cluster
    }

    async fn make(&self, name: &str) {
        let container = container(name);
        self.server.create_container(&container, Metadata::default(), PublicAccess::None).await.unwrap();
    }

    async fn put(&self, at: &str, content: Vec<u8>) {
        let body = &mut Pieces(content, 100_000);
        let (blob, none) = (blob(at), Request::default());
        self.server.put_block_blob(&blob, NewBlob::default(), checks(), &none, body).await.unwrap();
    }

    async fn copy(&self, from: &str, which: Which, to: &str) {
        let source =
            CopySource { blob: blob(from), which, conditions: Conditions::default(), shown: String::new() };
        let copy = CopyBlob {
            source,
            metadata: Metadata::default(),
            tags: CopyTags::Copy,
            tier: None,
            priority: None,
            seal: None,
            is_sync: false,
            source_md5: None,
        };
        self.server.copy_blob(&blob(to), copy, &Request::default()).await.unwrap();
    }

    async fn delete(&self, at: &str) {
        let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
        self.server.delete_blob(&blob(at), delete, &Request::default()).await.unwrap();
    }

    async fn delete_container(&self, name: &str) {
        self.server.delete_container(&container(name), &Request::default()).await.unwrap();
    }

    async fn get(&self, at: &str, which: Which) -> Vec<u8> {
        let (blob, none) = (blob(at), Request::default());
        drain(self.server.get_blob(&blob, which, GetBlob::default(), &none).await.unwrap().content).await
    }

    /// Sweeps; meanwhile, when the earlier container was read and the later one was not, this happens.
    async fn sweep_while(&self, meanwhile: impl AsyncFnOnce(&Self)) {
        let (turn, mut asked) = mpsc::channel::<mpsc::Sender<()>>(1);
        self.interrupted.reads.store(0, Ordering::SeqCst);
        *self.interrupted.turn.lock().unwrap() = Some(turn);
        let sweeper = self.sweeper.clone();
        let sweep = tokio::spawn(async move { sweeper.sweep().await });
        let done = asked.recv().await.expect("a sweep reads rows after it has listed objects");
        meanwhile(self).await;
        done.send(()).await.unwrap();
        sweep.await.unwrap().unwrap();
        self.time.pass(SWEEPS_APART);
    }

    async fn object_count(&self) -> usize {
        self.objects.list(store::ObjectId::FIRST, 1000).await.unwrap().objects.len()
    }
}

#[tokio::test]
async fn a_blob_that_is_moved_during_every_sweep_is_kept() {
    let cluster = Cluster::new().await;
    let content = bytes(1, 10_000);
    cluster.put(LATER, content.clone()).await;
    cluster.time.pass(2 * SWEEPS_APART + Duration::from_secs(24 * 3600));
    for sweep in 0..SWEEPS {
        cluster
            .sweep_while(async |cluster| {
                cluster.copy(LATER, Which::Current, EARLIER).await;
                cluster.delete(LATER).await;
            })
            .await;
        assert_eq!(cluster.object_count().await, 1, "sweep {sweep}");
        cluster.copy(EARLIER, Which::Current, LATER).await;
        cluster.delete(EARLIER).await;
    }
    assert_eq!(cluster.get(LATER, Which::Current).await, content);
    // From here on nobody moves it, and nobody needs it.
    cluster.delete(LATER).await;
    for _ in 0..4 {
        cluster.time.pass(Duration::from_secs(25 * 3600));
        cluster.sweeper.sweep().await.unwrap();
    }
    assert_eq!(cluster.object_count().await, 0);
}

/// With the container goes all that is in it.
#[tokio::test]
async fn a_blob_whose_container_is_deleted_after_it_was_copied_is_kept() {
    let cluster = Cluster::new().await;
    let content = bytes(2, 10_000);
    cluster.put(LATER, content.clone()).await;
    cluster.time.pass(Duration::from_secs(48 * 3600));
    for sweep in 0..SWEEPS {
        cluster
            .sweep_while(async |cluster| {
                cluster.copy(LATER, Which::Current, EARLIER).await;
                cluster.delete_container(LATER).await;
            })
            .await;
        assert_eq!(cluster.object_count().await, 1, "sweep {sweep}");
        cluster.make(LATER).await;
        cluster.copy(EARLIER, Which::Current, LATER).await;
        cluster.delete(EARLIER).await;
    }
    assert_eq!(cluster.get(LATER, Which::Current).await, content);
}

/// The rows of a map stay for a day in the container of a page blob that was copied, unless the container goes.
#[tokio::test]
async fn pages_whose_container_is_deleted_after_they_were_copied_are_kept() {
    let cluster = Cluster::new().await;
    let new = NewPageBlob { new: NewBlob::default(), length: 8 << 20, sequence_number: Default::default() };
    cluster.server.put_page_blob(&blob(LATER), new, &Request::default()).await.unwrap();
    let write = PageWrite { range: PageRange::new(0, 1024).unwrap(), sequence: Default::default() };
    let body = &mut Pieces(bytes(3, 1024), 1000);
    cluster.server.put_pages(&blob(LATER), write, checks(), &Request::default(), body).await.unwrap();
    cluster.time.pass(Duration::from_secs(48 * 3600));
    for sweep in 0..SWEEPS {
        cluster
            .sweep_while(async |cluster| {
                cluster.copy(LATER, Which::Current, EARLIER).await;
                cluster.delete_container(LATER).await;
            })
            .await;
        assert_eq!(cluster.object_count().await, 1, "sweep {sweep}");
        cluster.make(LATER).await;
        cluster.copy(EARLIER, Which::Current, LATER).await;
        cluster.delete_container(EARLIER).await;
        cluster.make(EARLIER).await;
    }
    assert!(cluster.get(LATER, Which::Current).await.starts_with(&bytes(3, 1024)));
}

#[tokio::test]
async fn clients_see_no_records() {
    let cluster = Cluster::new().await;
    cluster.put(LATER, bytes(4, 10_000)).await;
    cluster.copy(LATER, Which::Current, EARLIER).await;
    let query = ListQuery { prefix: "", from: "", limit: 100, system: true };
    let page = cluster.server.list_containers(&account(), query).await.unwrap();
    let names: Vec<_> = page.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, [EARLIER, LATER]);
    let condition =
        TagCondition { key: "a".to_owned(), comparison: Comparison::Equal, value: "b".to_owned() };
    let search = TagQuery { container: None, conditions: &[condition], from: None, limit: 10 };
    assert!(cluster.server.find_blobs(&account(), &search).await.unwrap().blobs.is_empty());
    cluster.time.pass(Duration::from_secs(49 * 3600));
    assert_eq!(cluster.sweeper.sweep().await.unwrap().records, 1, "records go after two days");
}

/// A reader at another server may have what is not named any more, and nobody here knows of it.
#[tokio::test]
async fn nothing_is_removed_at_once() {
    let cluster = Cluster::new().await;
    let (server, none) = (&cluster.server, Request::default());
    let id = BlockId::of_bytes(b"1").unwrap();
    for seed in 0..2 {
        // The second replaces the first.
        let body = &mut Pieces(bytes(seed, 5000), 1000);
        server.put_block(&blob(LATER), id.clone(), checks(), None, body).await.unwrap();
    }
    assert_eq!(cluster.object_count().await, 2, "a block that was replaced");
    cluster.put(LATER, bytes(5, 5000)).await;
    assert_eq!(cluster.object_count().await, 3, "a block whose upload is over");
    cluster.put(LATER, bytes(6, 5000)).await;
    cluster.delete(LATER).await;
    assert_eq!(cluster.object_count().await, 4, "content that was overwritten or deleted");
    let new = NewPageBlob { new: NewBlob::default(), length: 8 << 20, sequence_number: Default::default() };
    server.put_page_blob(&blob(EARLIER), new, &none).await.unwrap();
    let write = PageWrite { range: PageRange::new(0, 1024).unwrap(), sequence: Default::default() };
    for seed in 7..9 {
        let body = &mut Pieces(bytes(seed, 1024), 1000);
        server.put_pages(&blob(EARLIER), write, checks(), &none, body).await.unwrap();
    }
    cluster.delete(EARLIER).await;
    assert_eq!(cluster.object_count().await, 6, "pages that were overwritten or deleted");
    for _ in 0..4 {
        cluster.time.pass(Duration::from_secs(25 * 3600));
        cluster.sweeper.sweep().await.unwrap();
    }
    assert_eq!(cluster.object_count().await, 0, "sweeps remove it");
}
