//! Runs tasks step by step in an order that a seed decides, and ends them between any two steps, as a crash does.
//!
//! Every call of the engine and of the keeper of objects waits before it does something, and again after it has: at these
//! places a task stands until the test lets it go on. Nothing else makes tasks wait, so what the test sees is one of the orders
//! in which a server could do the same.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use blob_model::{Metadata, PublicAccess};
use blob_service::BlobService;
use bytes::Bytes;
use model::{DateTime, EntityKey};
use store::{
    Engine, Error, MemoryEngine, MemoryObjects, ObjectId, Objects, ObjectsPage, Page, Scan, StoredRow,
    TableRef, Transaction,
};
use store_suite::{EngineDouble, TestEngine};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::kit::{Ground, Random, VirtualTime, container};

/// Where tasks stand.
#[derive(Clone, Debug, Default)]
pub struct Steps(Arc<Mutex<Standing>>);

#[derive(Debug, Default)]
struct Standing {
    tasks: Vec<oneshot::Sender<()>>,
    is_off: bool,
}

impl Steps {
    async fn wait(&self) {
        let turn = {
            let mut standing = self.0.lock().unwrap();
            if standing.is_off {
                return;
            }
            let (turn, wait) = oneshot::channel();
            standing.tasks.push(turn);
            wait
        };
        if turn.await.is_err() {
            // The process is gone.
            std::future::pending::<()>().await;
        }
    }

    /// Until every task stands. Nothing else makes a task wait, so that a few turns are enough.
    pub async fn settle(&self) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets one task make its next step; false if none stands.
    pub async fn step(&self, random: &mut Random) -> bool {
        self.settle().await;
        let turn = {
            let mut standing = self.0.lock().unwrap();
            match standing.tasks.len() {
                0 => return false,
                count => standing.tasks.swap_remove(random.below(count)),
            }
        };
        let _ = turn.send(());
        true
    }

    /// No task goes on, ever.
    pub async fn crash(&self) {
        self.settle().await;
        self.0.lock().unwrap().tasks.clear();
    }

    /// From here on nobody waits; who stands goes on standing.
    pub fn turn_off(&self) {
        self.0.lock().unwrap().is_off = true;
    }

    pub fn turn_on(&self) {
        self.0.lock().unwrap().is_off = false;
    }
}

/// An engine whose calls are steps.
#[derive(Debug, Default)]
pub struct SteppedEngine {
    pub inner: MemoryEngine,
    pub steps: Steps,
}

#[async_trait]
impl EngineDouble for SteppedEngine {
    fn engine(&self) -> &dyn Engine {
        &self.inner
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        self.steps.wait().await;
        let found = self.inner.get(table, key).await;
        self.steps.wait().await;
        found
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        // Many pages, so that changes fall between them.
        let mut scan = scan;
        scan.budget.rows = scan.budget.rows.min(2);
        self.steps.wait().await;
        let page = self.inner.scan(table, scan).await;
        self.steps.wait().await;
        page
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error> {
        self.steps.wait().await;
        let applied = self.inner.apply(table, transaction).await;
        self.steps.wait().await;
        applied
    }

    async fn drop_table(&self, table: &TableRef) -> Result<(), Error> {
        self.steps.wait().await;
        let dropped = self.inner.drop_table(table).await;
        self.steps.wait().await;
        dropped
    }
}

/// A service on such an engine, with the container `abc`. Nobody waits before the steps are turned on.
pub struct Stepped {
    pub ground: Arc<Ground>,
    pub engine: Arc<TestEngine<SteppedEngine>>,
    pub steps: Steps,
}

impl Stepped {
    pub async fn new(change: impl Fn(BlobService) -> BlobService) -> Self {
        let steps = Steps::default();
        steps.turn_off();
        let engine = Arc::new(TestEngine(SteppedEngine { steps: steps.clone(), ..SteppedEngine::default() }));
        let (objects, time) = (Arc::new(MemoryObjects::new()), VirtualTime::new());
        let service = change(BlobService::new(engine.clone(), objects.clone()).timed(time.clock()));
        let (metadata, access) = (Metadata::default(), PublicAccess::None);
        service.create_container(&container("abc"), metadata, access).await.unwrap();
        let ground = Arc::new(Ground { service, time, engine: engine.clone(), objects });
        Self { ground, engine, steps }
    }

    /// Steps until all of these are done.
    pub async fn finish(&self, random: &mut Random, tasks: Vec<JoinHandle<()>>) {
        while !tasks.iter().all(JoinHandle::is_finished) {
            self.steps.step(random).await;
        }
        self.steps.turn_off();
        for task in tasks {
            task.await.unwrap();
        }
    }
}

/// Objects whose calls are steps.
#[derive(Debug, Default)]
pub struct SteppedObjects {
    pub inner: Arc<MemoryObjects>,
    pub steps: Steps,
}

#[async_trait]
impl Objects for SteppedObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error> {
        self.steps.wait().await;
        let put = self.inner.put(object, number, chunk).await;
        self.steps.wait().await;
        put
    }

    async fn sync(&self, objects: &[ObjectId]) -> Result<(), Error> {
        self.steps.wait().await;
        self.inner.sync(objects).await
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error> {
        self.steps.wait().await;
        self.inner.get(object, number).await
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error> {
        // One by one, so that a crash falls between them.
        for object in objects {
            self.steps.wait().await;
            self.inner.remove(&[*object]).await?;
        }
        Ok(())
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error> {
        self.steps.wait().await;
        let page = self.inner.list(from, limit.min(3)).await;
        self.steps.wait().await;
        page
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
