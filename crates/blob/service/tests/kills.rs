//! The process ends between any two steps of an operation. Then what was there is there, or what was to be there is, whole;
//! what was acknowledged is there; and what nobody needs is found by the sweep.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blob_model::{BlockChoice, BlockId, Conditions, DateTime, Metadata, PublicAccess, Tags};
use blob_service::{
    AppendCondition, BlobEntry, BlobQuery, BlobService, BlockListQuery, CopyBlob, CopySource, CopyTags,
    DeleteBlob, DeleteSnapshots, Error, NewBlob, Request, Which,
};
use bytes::Bytes;
use store::{
    Engine, Fault, MemoryEngine, MemoryObjects, ObjectId, Objects, ObjectsPage, TableRef, Transaction,
};
use store_suite::{EngineDouble, TestEngine};

use crate::kit::{Ground, Pieces, VirtualTime, blob, bytes, checks, container};

/// Steps that are left before the process ends. Each write of the engine or of the keeper of objects is one.
#[derive(Clone)]
struct Life(Arc<AtomicI64>);

impl Life {
    fn step(&self) -> Result<(), store::Error> {
        match self.0.fetch_sub(1, Ordering::SeqCst) > 0 {
            true => Ok(()),
            false => Err(Fault::disk("the process has ended").into()),
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
        self.life.step()?;
        self.engine.apply(table, transaction).await
    }
}

struct MortalObjects {
    objects: Arc<MemoryObjects>,
    life: Life,
}

#[async_trait]
impl Objects for MortalObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), store::Error> {
        self.life.step()?;
        self.objects.put(object, number, chunk).await
    }

    async fn sync(&self, objects: &[ObjectId]) -> Result<(), store::Error> {
        self.life.step()?;
        self.objects.sync(objects).await
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, store::Error> {
        self.objects.get(object, number).await
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), store::Error> {
        self.life.step()?;
        self.objects.remove(objects).await
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, store::Error> {
        self.objects.list(from, limit).await
    }

    async fn close(&self) {
        self.objects.close().await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Put,
    Commit,
    Append,
    Copy,
    CopyOver,
    Snapshot,
    Delete,
    Tag,
}

const ACTS: [Act; 8] =
    [Act::Put, Act::Commit, Act::Append, Act::Copy, Act::CopyOver, Act::Snapshot, Act::Delete, Act::Tag];

fn id(block: &[u8]) -> BlockId {
    BlockId::of_bytes(block).unwrap()
}

/// A blob of two blocks with a snapshot and an uncommitted block, an append blob, and another one.
async fn prepare(service: &BlobService) {
    let plain = Request::default();
    service.create_container(&container("abc"), Metadata::default(), PublicAccess::None).await.unwrap();
    for block in [b"1", b"2"] {
        let body = &mut Pieces(bytes(u64::from(block[0]), 1_100_000), 1 << 20);
        service.put_block(&blob("b"), id(block), checks(), None, body).await.unwrap();
    }
    let list = [(BlockChoice::Latest, id(b"1")), (BlockChoice::Latest, id(b"2"))];
    service.put_block_list(&blob("b"), &list, NewBlob::default(), &plain).await.unwrap();
    service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.unwrap();
    let body = &mut Pieces(bytes(3, 5000), 1 << 20);
    service.put_block(&blob("b"), id(b"3"), checks(), None, body).await.unwrap();
    service.put_append_blob(&blob("a"), NewBlob::default(), &plain).await.unwrap();
    for n in 0..3 {
        let body = &mut Pieces(bytes(10 + n, 5000), 1 << 20);
        service.append_block(&blob("a"), checks(), AppendCondition::default(), &plain, body).await.unwrap();
    }
    let body = &mut Pieces(bytes(20, 9000), 1 << 20);
    service.put_block_blob(&blob("c"), NewBlob::default(), checks(), &plain, body).await.unwrap();
}

fn copy(from: &str) -> CopyBlob {
    CopyBlob {
        source: CopySource {
            blob: blob(from),
            which: Which::Current,
            conditions: Conditions::default(),
            shown: String::new(),
        },
        metadata: Metadata::default(),
        tags: CopyTags::Copy,
        tier: None,
        priority: None,
        seal: None,
        is_sync: false,
        source_md5: None,
    }
}

async fn act(service: &BlobService, act: Act) -> Result<(), Error> {
    let plain = Request::default();
    match act {
        Act::Put => {
            let body = &mut Pieces(bytes(30, 2_300_000), 1 << 20);
            service.put_block_blob(&blob("b"), NewBlob::default(), checks(), &plain, body).await.map(drop)
        }
        Act::Commit => {
            let list = [(BlockChoice::Committed, id(b"2")), (BlockChoice::Latest, id(b"3"))];
            service.put_block_list(&blob("b"), &list, NewBlob::default(), &plain).await.map(drop)
        }
        Act::Append => {
            let body = &mut Pieces(bytes(31, 9000), 1 << 20);
            service
                .append_block(&blob("a"), checks(), AppendCondition::default(), &plain, body)
                .await
                .map(drop)
        }
        Act::Copy => service.copy_blob(&blob("d"), copy("b"), &plain).await.map(drop),
        Act::CopyOver => service.copy_blob(&blob("b"), copy("c"), &plain).await.map(drop),
        Act::Snapshot => service.snapshot_blob(&blob("b"), Metadata::default(), &plain).await.map(drop),
        Act::Delete => {
            let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
            service.delete_blob(&blob("b"), delete, &plain).await.map(drop)
        }
        Act::Tag => {
            service.set_blob_tags(&blob("b"), Which::Current, Tags::parse("t=1&u=2").unwrap(), &plain).await
        }
    }
}

/// A service that can end, how long it lives, and its data as a server sees it that is started later.
fn mortal() -> (BlobService, Life, Ground) {
    let (engine, objects) = (Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()));
    let (life, time) = (Life(Arc::new(AtomicI64::new(i64::MAX))), VirtualTime::new());
    let mortal = Arc::new(TestEngine(MortalEngine { engine: engine.clone(), life: life.clone() }));
    let keeper = Arc::new(MortalObjects { objects: objects.clone(), life: life.clone() });
    let service = BlobService::new(mortal, keeper).timed(time.clock());
    let later = BlobService::new(engine.clone(), objects.clone()).timed(time.clock());
    (service, life, Ground { service: later, time, engine, objects })
}

/// All that can be seen: names, times, tags, and contents.
async fn see(ground: &Ground) -> Vec<(String, bool, String, Vec<u8>)> {
    let all = BlobQuery { snapshots: true, limit: 100, ..BlobQuery::default() };
    let mut seen = Vec::new();
    for entry in ground.list(&all).await {
        let BlobEntry::Blob(listed) = entry else { panic!("{entry:?}") };
        let which = listed.snapshot.map_or(Which::Current, Which::Snapshot);
        let content = ground.get_state(&listed.name, which).await.unwrap();
        let tags = format!("{:?}", listed.properties.unwrap().tags);
        seen.push((listed.name, listed.snapshot.is_some(), tags, content));
    }
    seen
}

#[tokio::test]
async fn an_operation_that_is_cut_off_is_done_or_not() {
    for step in ACTS {
        let mut outcomes = [0, 0];
        for steps in 0.. {
            let (service, life, ground) = mortal();
            prepare(&service).await;
            let before = see(&ground).await;
            life.0.store(steps, Ordering::SeqCst);
            let outcome = act(&service, step).await;
            let was_cut_off = life.0.load(Ordering::SeqCst) < 0;
            drop(service);
            let after = see(&ground).await;
            let is_done = after != before;
            outcomes[usize::from(is_done)] += 1;
            assert!(
                is_done || outcome.is_err(),
                "{step:?} was acknowledged after {steps} steps and is not there"
            );
            // The same again, on a new server: as if nothing had been.
            let again = ground.again();
            if !is_done {
                act(&again.service, step).await.unwrap();
                assert_ne!(see(&again).await, before, "{step:?} after {steps} steps");
            }
            // What nobody needs goes, and what is needed stays.
            let seen = see(&again).await;
            again.time.pass(Duration::from_secs(10_000_000));
            again.service.sweep().await.unwrap();
            again.service.sweep().await.unwrap();
            assert!(see(&again).await == seen, "{step:?} after {steps} steps and a sweep");
            for (name, is_snapshot, _, _) in &seen {
                if !is_snapshot {
                    let delete =
                        DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
                    again.service.delete_blob(&blob(name), delete, &Request::default()).await.unwrap();
                }
            }
            again.service.sweep().await.unwrap();
            assert_eq!(again.objects().await, 0, "{step:?} after {steps} steps");
            if !was_cut_off {
                break;
            }
        }
        assert!(outcomes[0] > 0 && outcomes[1] > 0, "{step:?}: {outcomes:?}");
    }
}

#[tokio::test]
async fn a_first_block_that_is_cut_off_leaves_no_name_without_a_block() {
    let uncommitted = BlobQuery { uncommitted: true, limit: 100, ..BlobQuery::default() };
    let mut outcomes = [0, 0];
    for steps in 0.. {
        let (service, life, ground) = mortal();
        service.create_container(&container("abc"), Metadata::default(), PublicAccess::None).await.unwrap();
        life.0.store(steps, Ordering::SeqCst);
        let body = &mut Pieces(bytes(1, 1_100_000), 1 << 20);
        let outcome = service.put_block(&blob("new"), id(b"1"), checks(), None, body).await;
        let was_cut_off = life.0.load(Ordering::SeqCst) < 0;
        drop(service);
        let blocks = BlockListQuery { which: Which::Current, committed: true, uncommitted: true };
        let blocks = ground.service.block_list(&blob("new"), blocks, &Request::default()).await;
        let is_there = blocks.is_ok_and(|blocks| blocks.uncommitted.len() == 1);
        assert_eq!(ground.list(&uncommitted).await.len(), usize::from(is_there), "after {steps} steps");
        assert!(is_there || outcome.is_err(), "acknowledged after {steps} steps and not there");
        outcomes[usize::from(is_there)] += 1;
        // Nobody commits it.
        ground.time.pass(Duration::from_secs(10_000_000));
        for _ in 0..2 {
            ground.service.sweep().await.unwrap();
        }
        assert_eq!(
            (ground.list(&uncommitted).await.len(), ground.objects().await),
            (0, 0),
            "after {steps} steps"
        );
        if !was_cut_off {
            break;
        }
    }
    assert!(outcomes[0] > 1 && outcomes[1] > 0, "{outcomes:?}");
}
