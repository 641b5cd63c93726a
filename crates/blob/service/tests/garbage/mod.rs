//! Whatever the order of what clients do, and wherever the process ends: nothing that a row names is ever gone, readers read
//! one whole version, and what no row names is gone after a day and a sweep.

mod actors;
mod service;

use std::sync::Arc;
use std::time::Duration;

use blob_service::content::{BlobKey, Content, Contents, Keep, Named, named_by};
use model::{Key, KeyRange, ServiceKind};
use store::{Budget, Condition, Engine, MemoryObjects, ObjectId, Objects, Scan, TableRef, Transaction};
use store_suite::TestEngine;
use tokio::task::JoinHandle;

use crate::interleaving::{SteppedEngine, SteppedObjects, Steps};
use crate::kit::{Random, VirtualTime, container, setting};
use actors::{Act, Actor, Habits};

const CONTAINERS: [&str; 2] = ["one", "two"];

struct World {
    steps: Steps,
    time: VirtualTime,
    engine: Arc<TestEngine<SteppedEngine>>,
    objects: Arc<SteppedObjects>,
    /// Of the process that runs.
    contents: Contents,
}

fn table(name: &str) -> TableRef {
    let name = store::StoredName::parse(ServiceKind::Blob, name).unwrap();
    TableRef { account: container("one").account, service: ServiceKind::Blob, name }
}

impl World {
    async fn new() -> Self {
        let steps = Steps::default();
        let time = VirtualTime::new();
        let engine = SteppedEngine { steps: steps.clone(), ..SteppedEngine::default() };
        let objects = SteppedObjects { steps: steps.clone(), ..SteppedObjects::default() };
        let (engine, objects) = (Arc::new(TestEngine(engine)), Arc::new(objects));
        for name in CONTAINERS {
            engine.inner.create_table(&table(name), None).await.unwrap();
        }
        let contents = Contents::new(objects.clone(), time.clock());
        Self { steps, time, engine, objects, contents }
    }

    fn actor(&self) -> Actor {
        Actor { engine: self.engine.clone(), contents: self.contents.clone() }
    }

    /// The process ends, and another one begins.
    async fn crash(&mut self) {
        self.steps.crash().await;
        self.contents = Contents::new(self.objects.clone(), self.time.clock());
    }

    /// Everything that rows name is there. Returns the objects.
    async fn check_named(&self) -> Vec<ObjectId> {
        let inner: Arc<MemoryObjects> = self.objects.inner.clone();
        let contents = Contents::new(inner.clone(), self.time.clock());
        let mut all = Vec::new();
        for name in CONTAINERS {
            let budget = Budget {
                rows: usize::MAX,
                bytes: usize::MAX,
                time: Duration::from_secs(3600),
                examined: u64::MAX,
            };
            let scan = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
            let Ok(page) = self.engine.inner.scan(&table(name), scan).await else { continue };
            let uploads = actors::uploads(&page.entities);
            for stored in page.entities.iter() {
                let Named::Content(content) = named_by(stored.row).unwrap() else { continue };
                let place = format!("{name} {} {}", stored.partition, stored.row_key);
                let objects = contents.objects_of(&content).await.expect(&place);
                // A block is nobody's once its blob goes on with another upload, also if its row is still there.
                let is_dead =
                    stored.partition.starts_with('u') && !uploads.iter().any(|upload| upload.has(stored));
                for object in objects {
                    let is_there = inner.get(object, 0).await.unwrap().is_some();
                    assert!(is_there || is_dead, "{place} has lost {object}");
                    all.extend(is_there.then_some(object));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    async fn objects(&self) -> Vec<ObjectId> {
        self.objects.inner.list(ObjectId::FIRST, usize::MAX).await.unwrap().objects
    }
}

/// One life of a store: clients, sweeps, time that passes, and crashes, as the seed has it.
async fn live(seed: u64, acts: usize) {
    let mut random = Random::new(seed);
    let habits = Habits::random(&mut random);
    let mut world = World::new().await;
    let (mut begun, mut tasks, mut gone) = (0, Vec::new(), Vec::new());
    while begun < acts {
        match random.below(100) {
            0..20 => {
                begun += 1;
                let act = Act::random(&habits, &mut random, begun as u32);
                let actor = world.actor();
                tasks.push(tokio::spawn(async move { actor.act(act).await }));
            }
            20..23 => world.time.pass(Duration::from_secs(3600 * random.below(12) as u64)),
            23 if random.below(4) == 0 => {
                world.crash().await;
                // Nobody can end these requests any more.
                gone.append(&mut tasks);
            }
            // A client is gone, and its request with it.
            24 if !tasks.is_empty() => {
                let request: &JoinHandle<Actor> = &tasks[random.below(tasks.len())];
                request.abort();
            }
            _ => {
                world.steps.step(&mut random).await;
            }
        }
        if random.below(5) == 0 {
            world.check_named().await;
        }
    }
    while world.steps.step(&mut random).await {}
    for task in tasks.into_iter().chain(gone) {
        // The others were in a process that is gone.
        if task.is_finished() {
            let panicked = task.await.err().filter(|error| error.is_panic());
            assert!(panicked.is_none(), "{panicked:?}");
        }
    }
    world.check_named().await;
    world.time.pass(Duration::from_secs(25 * 3600));
    world.steps.turn_off();
    let swept = world.contents.sweep(&*world.engine).await.unwrap();
    let named = world.check_named().await;
    assert_eq!(world.objects().await, named, "seed {seed}: something stays that no row names");
    let again = world.contents.sweep(&*world.engine).await.unwrap();
    assert_eq!((again.removed, again.objects), (0, swept.objects - swept.removed));
}

#[test]
fn nothing_named_goes_and_nothing_unnamed_stays() {
    let lives = setting("PARTITA_GARBAGE_LIVES", 60);
    let first = setting("PARTITA_GARBAGE_SEED", 1);
    for seed in first..first + lives {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(live(seed, 60));
        assert_eq!(actors::take_failures(), Vec::<String>::new(), "seed {seed}");
    }
}

#[tokio::test]
async fn content_that_can_not_be_read_ends_a_sweep_before_anything_goes() {
    let world = World::new().await;
    world.steps.turn_off();
    let actor = world.actor().act(Act::Put { container: 0, blob: "a", tag: 1, length: 5000 }).await;
    let mut writer = world.contents.writer(Keep::InObject, false);
    writer.push(vec![1; 10].into()).await.unwrap();
    let unnamed = writer.finish().await.unwrap();
    let object = unnamed.fresh.objects()[0];
    drop(unnamed);
    let damaged = actors::row(&Content::default(), &[], false, 0).replacing_content(b"damaged");
    actor.put_row(0, "bz", actors::BLOB, damaged).await;
    world.time.pass(Duration::from_secs(25 * 3600));
    assert!(world.contents.sweep(&*world.engine).await.is_err());
    assert!(world.objects().await.contains(&object));
    assert_eq!(world.contents.counts().failed_sweeps, 1);
    // A sweep that ended early does not keep the next one from running.
    actor.remove_row(0, "bz", actors::BLOB).await;
    assert_eq!(world.contents.sweep(&*world.engine).await.unwrap().removed, 1);
    assert!(!world.objects().await.contains(&object));
}

#[tokio::test]
async fn an_object_is_safe_for_a_day_and_as_long_as_it_is_being_written() {
    let world = World::new().await;
    world.steps.turn_off();
    let write = async || {
        let mut writer = world.contents.writer(Keep::InObject, false);
        writer.push(vec![1; 10].into()).await.unwrap();
        writer.finish().await.unwrap()
    };
    let (kept, given_up) = (write().await, write().await);
    drop(given_up.fresh);
    world.time.pass(Duration::from_secs(24 * 3600 - 1));
    assert_eq!(world.contents.sweep(&*world.engine).await.unwrap().removed, 0);
    world.time.pass(Duration::from_secs(1));
    assert_eq!(world.contents.sweep(&*world.engine).await.unwrap().removed, 1);
    world.time.pass(Duration::from_secs(100 * 24 * 3600));
    assert_eq!(world.contents.sweep(&*world.engine).await.unwrap().removed, 0);
    assert_eq!(world.objects().await, kept.fresh.objects());
}

/// Where another server may be about to name an object, one look is not enough.
#[tokio::test]
async fn where_servers_share_data_an_object_goes_when_two_sweeps_a_day_apart_agree() {
    let world = World::new().await;
    world.steps.turn_off();
    let contents = world.contents.clone().shared_by_servers();
    let mut writer = contents.writer(Keep::InObject, false);
    writer.push(vec![1; 10].into()).await.unwrap();
    drop(writer.finish().await.unwrap());
    let hours = |hours: u64| world.time.pass(Duration::from_secs(hours * 3600));
    hours(24);
    assert_eq!(contents.sweep(&*world.engine).await.unwrap().removed, 0);
    hours(23);
    assert_eq!(contents.sweep(&*world.engine).await.unwrap().removed, 0);
    hours(1);
    assert_eq!(contents.sweep(&*world.engine).await.unwrap().removed, 1);
    assert!(world.objects().await.is_empty());
}

/// Of a request whose client is gone, the commit may still be made. Until the engine has answered, what it names is held.
#[tokio::test]
async fn a_commit_that_nobody_waits_for_holds_what_it_names() {
    let world = World::new().await;
    let mut writer = world.contents.writer(Keep::InObject, false);
    let stepping = async { while world.steps.step(&mut Random::new(1)).await {} };
    let writing = async {
        writer.push(vec![1; 10].into()).await.unwrap();
        writer.finish().await.unwrap()
    };
    let (written, ()) = tokio::join!(writing, stepping);
    let objects = written.fresh.objects().to_vec();
    drop(written.fresh);

    let namer = world.contents.begin_change();
    assert!(namer.hold_objects(&objects));
    let (engine, content) = (world.engine.clone(), written.content);
    let request = tokio::spawn(async move {
        let operation = actors::put(actors::BLOB, Condition::Absent, actors::row(&content, &[], false, 0));
        let transaction = Transaction::new(Key::parse("ba").unwrap(), vec![operation]).unwrap();
        let engine: Arc<dyn Engine> = engine;
        namer.commit(&engine, &table("one"), transaction).await
    });
    // The engine has the transaction, and has not begun with it.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    let remover = world.contents.begin_change();
    let removing = remover.remove(BlobKey::of(&"a"), objects.clone());
    let stepping = async { while world.steps.step(&mut Random::new(1)).await {} };
    tokio::join!(async { removing.await.unwrap() }, stepping);
    assert_eq!(world.check_named().await, objects);
}
