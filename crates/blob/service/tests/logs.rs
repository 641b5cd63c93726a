//! Request logs: blobs that grow, and what is left of them when the process ends between any two steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{BlobKind, BlobName, ContainerName, DateTime, Refusal};
use blob_service::{
    BlobEntry, BlobQuery, BlobRef, BlobService, BlockListQuery, ContainerRef, DeleteBlob, Error, GetBlob,
    NewBlob, Request, Retention, Which,
};
use bytes::Bytes;
use store::{
    Engine, Fault, MemoryEngine, MemoryObjects, ObjectId, Objects, ObjectsPage, RequestMemory, TableRef,
    Transaction,
};
use store_suite::{EngineDouble, TestEngine};

use crate::kit::{
    Ground, Pieces, VirtualTime, account, blob, bytes, checks, drain, metadata, names, refused,
};

fn log(name: &str) -> BlobRef {
    BlobRef::new(ContainerRef::new(&account(), &ContainerName::logs()), BlobName::parse(name).unwrap())
}

fn name(text: &str) -> BlobName {
    BlobName::parse(text).unwrap()
}

async fn read(service: &BlobService, name: &str) -> Vec<u8> {
    let plain = Request::default();
    drain(service.get_blob(&log(name), Which::Current, GetBlob::default(), &plain).await.unwrap().content)
        .await
}

#[tokio::test]
async fn a_log_grows_piece_by_piece_and_stays_a_block_blob() {
    let Ground { service, .. } = Ground::new();
    service.make_logs(&account()).await.unwrap();
    service.make_logs(&account()).await.unwrap();
    let mut expected = bytes(0, 100);
    assert!(
        service
            .create_log(&account(), &name("a"), expected.clone().into(), metadata(&[("N", "0")]))
            .await
            .unwrap()
    );
    assert!(!service.create_log(&account(), &name("a"), "other".into(), metadata(&[])).await.unwrap());
    // Enough for extents in the row and in manifests.
    for n in 1..400_u64 {
        let lines = bytes(n, if n % 3 == 0 { 9000 } else { 300 });
        let said = metadata(&[("N", &n.to_string())]);
        let position = expected.len() as u64;
        expected.extend_from_slice(&lines);
        assert!(service.append_log(&account(), &name("a"), position, lines.into(), &said).await.unwrap());
    }
    assert!(read(&service, "a").await == expected);
    let plain = Request::default();
    let shown = service.blob_properties(&log("a"), Which::Current, &plain).await.unwrap();
    assert!(matches!(shown.kind, BlobKind::Block { .. }), "{shown:?}");
    assert_eq!((shown.length, shown.content.md5), (expected.len() as u64, None));
    assert_eq!(shown.metadata, metadata(&[("N", "399")]));
    let both = BlockListQuery { which: Which::Current, committed: true, uncommitted: true };
    let blocks = service.block_list(&log("a"), both, &plain).await.unwrap();
    assert!(blocks.committed.is_empty() && blocks.uncommitted.is_empty());
    // Nobody appends to a block blob.
    let body = &mut Pieces(b"more".to_vec(), 100);
    let appended = service.append_block(&log("a"), checks(), Default::default(), &plain, body).await;
    assert_eq!(refused(appended), Refusal::BlobTypeInvalid);
}

#[tokio::test]
async fn lines_are_not_put_behind_what_is_not_there_any_more() {
    let Ground { service, .. } = Ground::new();
    service.make_logs(&account()).await.unwrap();
    let append = |position, lines: &'static str| service.append_log_of_test("a", position, lines);
    assert!(!append(0, "x").await, "no such log");
    service.create_log(&account(), &name("a"), "abc".into(), metadata(&[])).await.unwrap();
    assert!(!append(5, "x").await, "another length");
    assert!(append(3, "def").await);
    assert!(append(3, "def").await, "they are there");
    assert_eq!(read(&service, "a").await, b"abcdef");
    service.delete_blob(&log("a"), DeleteBlob::default(), &Request::default()).await.unwrap();
    assert!(!append(6, "x").await, "deleted");
}

/// A short way to append.
trait Appends {
    async fn append_log_of_test(&self, to: &str, position: u64, lines: &'static str) -> bool;
}

impl Appends for BlobService {
    async fn append_log_of_test(&self, to: &str, position: u64, lines: &'static str) -> bool {
        self.append_log(&account(), &name(to), position, lines.into(), &metadata(&[])).await.unwrap()
    }
}

#[tokio::test]
async fn logs_need_no_memory_of_requests() {
    let (engine, objects) = (Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()));
    let memory = RequestMemory::new(4 << 20);
    let service = BlobService::new(engine, objects).charging(memory.clone());
    service.make_logs(&account()).await.unwrap();
    let abc = crate::kit::container("abc");
    service.create_container(&abc, metadata(&[]), blob_model::PublicAccess::None).await.unwrap();
    let mut others = memory.nothing();
    assert!(others.grow(4 << 20));
    let lines = bytes(1, 1_500_000);
    assert!(service.create_log(&account(), &name("a"), lines.clone().into(), metadata(&[])).await.unwrap());
    let body = &mut Pieces(lines.clone(), 1 << 20);
    let put =
        service.put_block_blob(&blob("b"), NewBlob::default(), checks(), &Request::default(), body).await;
    assert_eq!(refused(put), Refusal::Shared(common::Refusal::Busy), "the memory is charged to others");
    others.give_back();
    assert!(read(&service, "a").await == lines);
}

struct KeepsDeleted;

#[async_trait]
impl Retention for KeepsDeleted {
    async fn days(&self, _: &blob_model::AccountName) -> Result<Option<u16>, Error> {
        Ok(Some(7))
    }
}

#[tokio::test]
async fn logs_past_their_time_go_for_good_and_no_others() {
    let ground = Ground::new();
    let service = ground.service.clone().retaining(Arc::new(KeepsDeleted));
    assert_eq!(service.expire_logs(&account(), "table/", "table/2026/").await.unwrap(), 0, "no logs at all");
    service.make_logs(&account()).await.unwrap();
    let kept = [
        "queue/2025/12/31/2300/000000.log",
        "table/2026/01/01/0500/000000.log",
        "table/2026/02/01/0000/000000.log",
    ];
    let gone = [
        "table/2025/12/31/2300/000000.log",
        "table/2025/12/31/2300/000001.log",
        "table/2026/01/01/0400/000000.log",
    ];
    for each in kept.iter().chain(&gone) {
        service.create_log(&account(), &name(each), bytes(1, 9000).into(), metadata(&[])).await.unwrap();
    }
    let expired = service.expire_logs(&account(), "table/", "table/2026/01/01/0500/").await.unwrap();
    assert_eq!(expired, 3);
    let all = BlobQuery { limit: 100, deleted: true, ..BlobQuery::default() };
    let listed = service.list_blobs(&log("a").container, &all).await.unwrap().entries;
    assert_eq!(names(&listed), kept);
    assert_eq!(ground.objects().await, kept.len());
    assert_eq!(service.last_log(&account(), "table/2026/").await.unwrap().as_deref(), Some(kept[2]));
    assert_eq!(service.last_log(&account(), "blob/").await.unwrap(), None);
}

/// Writes that are left before the process ends. With the last one it may do what it was told, and nobody hears of it.
#[derive(Clone)]
struct Life {
    left: Arc<AtomicI64>,
    does_the_last: bool,
}

impl Life {
    /// Whether to do it, and whether to answer.
    fn step(&self) -> (bool, bool) {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            1.. => (true, true),
            0 => (self.does_the_last, false),
            _ => (false, false),
        }
    }

    async fn take<T>(&self, write: impl Future<Output = Result<T, store::Error>>) -> Result<T, store::Error> {
        let (does, answers) = self.step();
        let done = if does { Some(write.await) } else { None };
        match done {
            Some(done) if answers => done,
            _ => Err(Fault::disk("the process has ended").into()),
        }
    }
}

struct MortalEngine {
    engine: Arc<MemoryEngine>,
    life: Life,
}

#[async_trait]
impl EngineDouble for MortalEngine {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, store::Error> {
        self.life.take(self.engine.apply(table, transaction)).await
    }
}

struct MortalObjects {
    objects: Arc<MemoryObjects>,
    life: Life,
}

#[async_trait]
impl Objects for MortalObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), store::Error> {
        self.life.take(self.objects.put(object, number, chunk)).await
    }

    async fn sync(&self, objects: &[ObjectId]) -> Result<(), store::Error> {
        self.life.take(self.objects.sync(objects)).await
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, store::Error> {
        self.objects.get(object, number).await
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), store::Error> {
        self.life.take(self.objects.remove(objects)).await
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, store::Error> {
        self.objects.list(from, limit).await
    }

    async fn close(&self) {
        self.objects.close().await;
    }
}

/// One append in three goes beyond the row, and one of them writes a manifest.
const APPENDS: u64 = 140;

fn lines(n: u64) -> Vec<u8> {
    bytes(n, if n % 10 == 9 { 300 } else { 5000 })
}

#[tokio::test]
async fn lines_are_there_once_or_not_at_all_whatever_step_was_the_last() {
    let mut outcomes = [0, 0];
    for does_the_last in [false, true] {
        for steps in 0.. {
            let (engine, objects) = (Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()));
            let life = Life { left: Arc::new(AtomicI64::new(i64::MAX)), does_the_last };
            let time = VirtualTime::new();
            let mortal = Arc::new(TestEngine(MortalEngine { engine: engine.clone(), life: life.clone() }));
            let keeper = Arc::new(MortalObjects { objects: objects.clone(), life: life.clone() });
            let service = BlobService::new(mortal, keeper).timed(time.clock());
            service.make_logs(&account()).await.unwrap();
            let mut before = lines(0);
            service.create_log(&account(), &name("a"), before.clone().into(), metadata(&[])).await.unwrap();
            // Of the many steps that it takes, the last two appends are tried at each.
            for n in 1..APPENDS - 2 {
                let position = before.len() as u64;
                before.extend_from_slice(&lines(n));
                service
                    .append_log(&account(), &name("a"), position, lines(n).into(), &metadata(&[]))
                    .await
                    .unwrap();
            }
            life.left.store(steps, Ordering::SeqCst);
            let mut acknowledged = before.clone();
            let mut cut_off = None;
            for n in APPENDS - 2..APPENDS {
                let position = acknowledged.len() as u64;
                let said = metadata(&[("N", &n.to_string())]);
                let appended =
                    service.append_log(&account(), &name("a"), position, lines(n).into(), &said).await;
                match appended {
                    Ok(is_there) => {
                        assert!(is_there, "{n} after {steps} steps");
                        acknowledged.extend_from_slice(&lines(n));
                    }
                    Err(_) => {
                        cut_off = Some((n, position, said));
                        break;
                    }
                }
            }
            drop(service);
            let ground = Ground {
                service: BlobService::new(engine.clone(), objects.clone()).timed(time.clock()),
                time,
                engine,
                objects,
            };
            let found = read(&ground.service, "a").await;
            let Some((n, position, said)) = cut_off else {
                assert!(found == acknowledged);
                break;
            };
            let whole = [&acknowledged[..], &lines(n)].concat();
            assert!(found == acknowledged || found == whole, "{n} after {steps} steps");
            outcomes[usize::from(found == whole)] += 1;
            // Whoever does not know how it ended tries again.
            let again =
                ground.service.append_log(&account(), &name("a"), position, lines(n).into(), &said).await;
            assert!(again.unwrap() && read(&ground.service, "a").await == whole, "{n} after {steps} steps");
            ground.time.pass(Duration::from_secs(10_000_000));
            ground.service.sweep().await.unwrap();
            ground.service.sweep().await.unwrap();
            assert!(read(&ground.service, "a").await == whole, "{n} after {steps} steps and a sweep");
            ground.service.delete_blob(&log("a"), DeleteBlob::default(), &Request::default()).await.unwrap();
            ground.service.sweep().await.unwrap();
            assert_eq!(ground.objects().await, 0, "{n} after {steps} steps");
        }
    }
    assert!(outcomes[0] > 2 && outcomes[1] > 0, "{outcomes:?}");
}

#[tokio::test]
async fn system_containers_are_listed_only_for_those_who_ask() {
    let Ground { service, .. } = Ground::new();
    service.make_logs(&account()).await.unwrap();
    let query = |system| blob_service::ListQuery { prefix: "", from: "", limit: 10, system };
    for system in [false, true] {
        let listed = service.list_containers(&account(), query(system)).await.unwrap();
        assert_eq!(listed.containers.len(), usize::from(system));
    }
    let found =
        service.list_blobs(&log("a").container, &BlobQuery { limit: 1, ..BlobQuery::default() }).await;
    assert_eq!(found.unwrap().entries, Vec::<BlobEntry>::new());
}
