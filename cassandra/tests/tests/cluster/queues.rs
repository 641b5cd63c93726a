//! Queues on a cluster: the same walks and the same oracle as on the other engines, consumers on two servers, and how many
//! tombstones a read meets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use model::{DateTime, ValueRef};
use queue_model::{MessageId, Metadata, Refusal};
use queue_service::QueueService;
use store::{Engine, TableRef};
use store_suite::{key, of_service};
use testing::Patience;

use crate::kit::{Random, queue, seconds, setting, text};
use crate::tombstones::ground::{is_readable, keyspace, repeat, stored, table_id, too_many};
use crate::walk::Walk;

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_oracle() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engine: Arc<dyn Engine> = open(&options).await;
    let (seed, steps) = (setting("PARTITA_SEED", 1), setting("PARTITA_STEPS", 600));
    println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}");
    let same = engine.clone();
    let mut walk = Walk::new(seed, Box::new(move |_| same.clone()), true).await;
    walk.run(steps).await;
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_of_two_servers_share_the_messages() {
    const MESSAGES: usize = 300;
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engines: [Arc<dyn Engine>; 2] = [open(&options).await, open(&options).await];
    let services = engines.clone().map(|engine| QueueService::new(engine).shared(true));
    let queue = queue("orders");
    services[0].create(&queue, &Metadata::default()).await.unwrap();
    let (put, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(MESSAGES)));
    let clients = (0..10).map(|client| {
        let (service, queue) = (services[client % 2].clone(), queue.clone());
        let (put, left) = (put.clone(), left.clone());
        tokio::spawn(async move {
            let mut random = Random::new(client as u64);
            let mut seen = Vec::new();
            while client < 2 && put.fetch_add(1, Ordering::SeqCst) < MESSAGES {
                unless_busy(|| service.put(&queue, text("work"), Duration::ZERO, None)).await;
            }
            while client >= 2 && left.load(Ordering::SeqCst) > 0 {
                let count = random.of(&[1, 1, 4, 16]);
                for taken in unless_busy(|| service.get(&queue, count, seconds(600))).await {
                    assert_eq!(taken.message.dequeue_count, 1);
                    seen.push(taken.message.id);
                    // The receipt is good on every server.
                    let (id, receipt) = (taken.message.id, &taken.receipt);
                    unless_busy(|| service.delete_message(&queue, id, receipt)).await;
                    left.fetch_sub(1, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            seen
        })
    });
    let mut seen: Vec<MessageId> = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        seen.extend(client.await.unwrap());
    }
    let distinct: BTreeSet<MessageId> = seen.iter().copied().collect();
    assert_eq!((seen.len(), distinct.len()), (MESSAGES, MESSAGES), "each message once");
    for service in &services {
        unless_busy(|| service.sweep(&queue)).await;
        assert_eq!(unless_busy(|| service.look(&queue)).await.1, 0);
    }
    for engine in engines {
        engine.close().await;
    }
    drop_keyspace(&options).await;
}

/// Where the queue begins, as it is stored.
async fn stored_hint(engine: &dyn Engine, table: &TableRef) -> String {
    let row = engine.get(table, &key("h", "head")).await.unwrap().unwrap();
    match row.raw().open().unwrap().property("H") {
        Some(ValueRef::DateTime(hint)) => format!("{:016x}", hint.ticks()),
        other => panic!("{other:?}"),
    }
}

/// A sweep past more tombstones than a node reads at once takes long on a node that is busy, and begins again each time.
const BUSY_MAX: Duration = Duration::from_secs(300);

/// A node that other tests keep busy may have a request refused with 503. Nothing was done then, and clients try again.
async fn unless_busy<T, F>(mut request: impl FnMut() -> F) -> T
where
    F: Future<Output = queue_service::Result<T>>,
{
    let patience = Patience::lasting(BUSY_MAX, "a request is not refused as busy");
    loop {
        match request().await {
            Err(queue_service::Error::Refused(Refusal::Shared(common::Refusal::Busy))) => {
                tokio::time::sleep(patience.pause()).await;
            }
            answer => return answer.unwrap(),
        }
    }
}

/// A node gives up a read that meets too many tombstones, so whatever begins at the hint must not.
#[tokio::test(flavor = "multi_thread")]
async fn reads_begin_behind_the_tombstones_of_what_was_consumed() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let engine: Arc<dyn Engine> = open(&options).await;
    let service = QueueService::new(engine.clone()).shared(true);
    let queue = queue("orders");
    service.create(&queue, &Metadata::default()).await.unwrap();
    // Hidden for an hour, so that the queue is never empty: an empty partition may be cleared with one tombstone.
    unless_busy(|| service.put(&queue, text("hidden"), seconds(3600), None)).await;
    for _ in 0..50 {
        unless_busy(|| service.put(&queue, text("work"), Duration::ZERO, None)).await;
        let taken = unless_busy(|| service.get(&queue, 1, seconds(1))).await.remove(0);
        unless_busy(|| service.delete_message(&queue, taken.message.id, &taken.receipt)).await;
    }
    // What went through before: tombstones of messages that were visible earlier.
    let id = table_id(&session).await;
    let hour_ago = DateTime::now().ticks() - 36_000_000_000;
    let bury = "DELETE FROM entities WHERE tid = ? AND pk = ? AND rk = ?";
    let earlier = |n: usize| stored(&format!("{:016x}{n:032x}", hour_ago + n as i64));
    repeat(&session, bury, (0..too_many(&session).await).map(|n| (id, stored("m"), earlier(n)))).await;
    // The hint stays behind the clock by as much as the clocks of servers may differ.
    tokio::time::sleep(Duration::from_secs(6)).await;
    unless_busy(|| service.put(&queue, text("last"), Duration::ZERO, None)).await;
    assert_eq!(unless_busy(|| service.peek(&queue, 32)).await.len(), 1);
    service.close().await;

    let table = of_service(model::ServiceKind::Queue, "orders");
    let hint = stored_hint(&*engine, &table).await;
    let rows = "SELECT rk FROM entities WHERE tid = ? AND pk = ? AND rk >= ?";
    let is_readable_from =
        async |row: &str| is_readable(&session, rows, (id, stored("m"), stored(row))).await;
    assert!(!is_readable_from("0").await, "this is about tombstones");
    assert!(is_readable_from(&hint).await, "from the hint on, there are few");

    // Another server begins there too.
    let other = QueueService::new(engine.clone()).shared(true);
    assert_eq!(unless_busy(|| other.peek(&queue, 32)).await.len(), 1);
    assert_eq!(unless_busy(|| other.get(&queue, 32, seconds(30))).await.len(), 1);
    // Its first sweep begins at the very start, past all tombstones, and finds no more than that.
    assert_eq!(unless_busy(|| other.sweep(&queue)).await.messages, 2);
    engine.close().await;
    drop_keyspace(&options).await;
}
