//! What an operation costs does not grow with what was consumed, nor with what is waiting: counted in reads of the engine
//! and in entries that RocksDB steps over.
//!
//! The same with a million messages takes minutes, and runs when it is named: `cargo test --release -p partita-queue-service --
//! --ignored --nocapture a_million`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine_embedded::{EmbeddedEngine, Options};
use queue_model::Metadata;
use queue_service::{QueueRef, QueueService};
use store::Engine;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::kit::{queue, seconds, text};

/// Entries that one operation may step over: what was consumed since the head was read last, and some more.
const SKIPPED_MAX: u64 = 512;
/// Entries stepped over for each message that goes through a queue, on average: each message leaves two
/// tombstones behind, and what is read ahead is read again if others have changed it meanwhile.
const SKIPPED_PER_MESSAGE_MAX: u64 = 8;

/// How often 200 operations may read a row once more. The committer notes the keys that it writes in slots, which keys share; if
/// the two rows of a move share one, which happens once in 32,768 times, the second is read again.
const READ_AGAIN_MAX: u64 = 5;

/// Rows that are read for the numbers of messages of two queues, the first time after a restart.
const COUNTED_MAX: u64 = 2 * 11_001;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    point_gets: u64,
    seeks: u64,
    rows_read: u64,
    skipped: u64,
}

struct Measure {
    engine: Arc<EmbeddedEngine>,
    before: Cost,
}

impl Measure {
    fn read(&self) -> Cost {
        let counters = self.engine.counters();
        Cost {
            point_gets: counters.point_gets,
            seeks: counters.seeks,
            rows_read: counters.rows_read,
            skipped: counters.entries_skipped,
        }
    }

    fn begin(engine: &Arc<EmbeddedEngine>) -> Self {
        let mut measure = Self { engine: engine.clone(), before: Cost::default() };
        measure.before = measure.read();
        measure
    }

    fn spent(&mut self) -> Cost {
        let now = self.read();
        let before = std::mem::replace(&mut self.before, now);
        Cost {
            point_gets: now.point_gets - before.point_gets,
            seeks: now.seeks - before.seeks,
            rows_read: now.rows_read - before.rows_read,
            skipped: now.skipped - before.skipped,
        }
    }
}

fn open(directory: &TempDir) -> Arc<EmbeddedEngine> {
    let options = Options { statistics: true, ..Options::new(directory.path()) };
    Arc::new(EmbeddedEngine::open(options).unwrap())
}

/// Puts so many messages, and if they are to be consumed gets and deletes them, by many clients at once.
async fn go_through(service: &QueueService, queue: &QueueRef, messages: u64, is_consumed: bool) {
    const CLIENTS: u64 = 128;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (service, queue) = (service.clone(), queue.clone());
        clients.spawn(async move {
            for _ in 0..messages / CLIENTS + u64::from(client < messages % CLIENTS) {
                service.put(&queue, text("a message"), Duration::ZERO, None).await.unwrap();
                if is_consumed {
                    for taken in service.get(&queue, 1, seconds(30)).await.unwrap() {
                        service.delete_message(&queue, taken.message.id, &taken.receipt).await.unwrap();
                    }
                }
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

/// The costs of each operation: the dearest of some, but all of their single reads together.
async fn measure(
    service: &QueueService,
    engine: &Arc<EmbeddedEngine>,
    queue: &QueueRef,
) -> Vec<(&'static str, Cost)> {
    let mut dearest: Vec<(&'static str, Cost)> = Vec::new();
    let mut note = |what: &'static str, cost: Cost| match dearest.iter_mut().find(|(known, _)| *known == what)
    {
        Some((_, most)) => {
            most.point_gets += cost.point_gets;
            most.seeks = most.seeks.max(cost.seeks);
            most.rows_read = most.rows_read.max(cost.rows_read);
            most.skipped = most.skipped.max(cost.skipped);
        }
        None => dearest.push((what, cost)),
    };
    let mut measure = Measure::begin(engine);
    for _ in 0..200 {
        service.put(queue, text("a message"), Duration::ZERO, None).await.unwrap();
        note("put", measure.spent());
        assert_eq!(service.peek(queue, 1).await.unwrap().len(), 1);
        note("peek", measure.spent());
        let taken = service.get(queue, 1, seconds(30)).await.unwrap().remove(0);
        note("get", measure.spent());
        let receipt =
            service.update(queue, taken.message.id, &taken.receipt, seconds(60), None).await.unwrap();
        note("update", measure.spent());
        service.delete_message(queue, taken.message.id, &receipt).await.unwrap();
        note("delete", measure.spent());
        service.look(queue).await.unwrap();
        note("look", measure.spent());
    }
    dearest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_many_went_through_costs_what_an_empty_one_does() {
    costs_are_those_of_an_empty_queue(100_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_million_messages_cost_what_none_do() {
    costs_are_those_of_an_empty_queue(1_000_000).await;
}

/// In a queue that so many messages went through, and in one in which so many wait.
async fn costs_are_those_of_an_empty_queue(messages: u64) {
    let directory = TempDir::new().unwrap();
    let engine = open(&directory);
    let service = QueueService::new(engine.clone());
    let (fresh, consumed, waiting) = (queue("fresh"), queue("consumed"), queue("waiting"));
    for queue in [&fresh, &consumed, &waiting] {
        service.create(queue, &Metadata::default()).await.unwrap();
    }
    let started = Instant::now();
    let mut through = Measure::begin(&engine);
    go_through(&service, &consumed, messages, true).await;
    let through = through.spent();
    println!("{messages} messages through in {:?}: {through:?}", started.elapsed());
    assert!(through.skipped / messages <= SKIPPED_PER_MESSAGE_MAX, "{through:?}");
    let started = Instant::now();
    go_through(&service, &waiting, messages, false).await;
    println!("{messages} messages put in {:?}", started.elapsed());

    let expected = measure(&service, &engine, &fresh).await;
    println!("fresh: {expected:?}");
    // Half of the messages of one queue are consumed in the middle, so that its head is in the midst of the store.
    let mut costs = vec![("consumed", measure(&service, &engine, &consumed).await)];
    costs.push(("waiting", measure(&service, &engine, &waiting).await));

    // The same after a restart, when nothing is in memory.
    service.close().await;
    drop(service);
    engine.close().await;
    drop(engine);
    let engine = open(&directory);
    let service = QueueService::new(engine.clone());
    let mut restarted = Measure::begin(&engine);
    for queue in [&consumed, &waiting] {
        service.peek(queue, 1).await.unwrap();
        let first = restarted.spent();
        println!("first peek after a restart: {first:?}");
        assert!(first.skipped <= SKIPPED_MAX && first.seeks <= 1 && first.point_gets <= 1, "{first:?}");
    }
    let started = Instant::now();
    assert_eq!(service.look(&consumed).await.unwrap().1, 0);
    assert_eq!(service.look(&waiting).await.unwrap().1, messages);
    let counted = restarted.spent();
    println!("counted in {:?}: {counted:?}", started.elapsed());
    // The number of a long queue is remembered, and a part of it is read to see whether it is a long one.
    assert!(counted.rows_read <= COUNTED_MAX, "{counted:?}");
    costs.push(("consumed, restarted", measure(&service, &engine, &consumed).await));
    costs.push(("waiting, restarted", measure(&service, &engine, &waiting).await));
    for (name, costs) in costs {
        println!("{name}: {costs:?}");
        for ((what, cost), (_, fresh)) in costs.iter().zip(&expected) {
            let more = cost.point_gets.abs_diff(fresh.point_gets);
            assert!(more <= READ_AGAIN_MAX, "{what}, {name}: {cost:?}");
            assert!(cost.seeks <= fresh.seeks.max(1), "{what}, {name}: {cost:?}");
            // What is read ahead is read for many operations at once.
            assert!(cost.rows_read <= fresh.rows_read + 256, "{what}, {name}: {cost:?}");
            assert!(cost.skipped <= SKIPPED_MAX, "{what}, {name}: {cost:?}");
        }
    }
    engine.close().await;
}
