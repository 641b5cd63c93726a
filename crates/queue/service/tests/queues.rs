//! Queues are created, listed, looked at and deleted; metadata and policies do not undo each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use common::throttle::{Targets, Throttle};
use queue_model::{Metadata, Refusal};
use queue_service::{Creation, ListQuery};
use store::{Engine, Gate, MemoryEngine, Page, Scan, TableRef};
use store_suite::{EngineDouble, TestEngine};
use tokio::sync::Semaphore;

use crate::kit::{Ground, VirtualTime, account, metadata, queue, refused, seconds, text};

#[tokio::test]
async fn creating_again_depends_on_the_metadata() {
    let ground = Ground::new().await;
    let (mine, red) = (queue("mine"), metadata(&[("color", "red")]));
    assert_eq!(ground.service.create(&mine, &red).await.unwrap(), Creation::Created);
    assert_eq!(
        ground.service.create(&mine, &metadata(&[("COLOR", "red")])).await.unwrap(),
        Creation::Unchanged
    );
    for other in [Metadata::default(), metadata(&[("color", "blue")])] {
        assert_eq!(refused(ground.service.create(&mine, &other).await), Refusal::QueueAlreadyExists);
    }
    assert_eq!(
        ground.service.create(&ground.queue, &Metadata::default()).await.unwrap(),
        Creation::Unchanged
    );
    assert_eq!(ground.service.look(&mine).await.unwrap(), (red, 0));
}

#[tokio::test]
async fn a_missing_queue_is_told_by_every_operation() {
    let ground = Ground::new().await;
    let put = ground.put("here").await;
    let gone = queue("gone");
    for is_known in [false, true] {
        if is_known {
            ground.service.create(&gone, &Metadata::default()).await.unwrap();
            ground.service.put(&gone, text("lost"), Duration::ZERO, None).await.unwrap();
            ground.service.peek(&gone, 1).await.unwrap();
            ground.service.delete(&gone).await.unwrap();
        }
        let service = &ground.service;
        let not_found = Refusal::QueueNotFound;
        assert_eq!(refused(service.delete(&gone).await), not_found);
        assert_eq!(refused(service.require(&gone).await), not_found);
        assert_eq!(refused(service.look(&gone).await), not_found);
        assert_eq!(refused(service.set_metadata(&gone, &Metadata::default()).await), not_found);
        assert_eq!(refused(service.policies(&gone).await), not_found);
        assert_eq!(refused(service.set_policies(&gone, Bytes::new()).await), not_found);
        assert_eq!(refused(service.put(&gone, text(""), Duration::ZERO, None).await), not_found);
        assert_eq!(refused(service.get(&gone, 1, seconds(1)).await), not_found);
        assert_eq!(refused(service.peek(&gone, 1).await), not_found);
        let (id, receipt) = (put.id, &put.receipt);
        assert_eq!(refused(service.update(&gone, id, receipt, Duration::ZERO, None).await), not_found);
        assert_eq!(refused(service.delete_message(&gone, id, receipt).await), not_found);
        assert_eq!(refused(service.clear(&gone, seconds(1)).await), not_found);
    }
    ground.service.require(&ground.queue).await.unwrap();
}

#[tokio::test]
async fn a_queue_that_is_created_again_is_empty() {
    let ground = Ground::new().await;
    ground.put("old").await;
    ground.put("older").await;
    assert_eq!(ground.get(1, 1).await.len(), 1);
    ground.service.set_policies(&ground.queue, Bytes::from_static(b"policies")).await.unwrap();
    ground.service.delete(&ground.queue).await.unwrap();
    ground.service.create(&ground.queue, &Metadata::default()).await.unwrap();
    ground.time.pass(seconds(10));
    assert!(ground.get(32, 1).await.is_empty());
    assert_eq!(ground.count().await, 0);
    assert_eq!(ground.service.policies(&ground.queue).await.unwrap(), None);
    ground.put("new").await;
    assert_eq!(ground.shown().await, ["new"]);
}

#[tokio::test]
async fn queues_are_listed_by_prefix_and_page() {
    let ground = Ground::new().await;
    for name in ["pay-1", "pay-3", "pay-2", "alpha", "zeta"] {
        ground.service.create(&queue(name), &metadata(&[("name", name)])).await.unwrap();
    }
    let list = async |prefix, from, limit, metadata| {
        let query = ListQuery { prefix, from, limit, metadata };
        let page = ground.service.list(&account(), query).await.unwrap();
        let shown = |(name, metadata): &(queue_model::QueueName, Metadata)| {
            let pairs: Vec<String> =
                metadata.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{name}{}", pairs.concat())
        };
        let names: Vec<String> = page.queues.iter().map(shown).collect();
        (names.join(","), page.next.map(|next| next.to_string()))
    };
    let check = |listed: (String, Option<String>), names: &str, next: Option<&str>| {
        assert_eq!((listed.0.as_str(), listed.1.as_deref()), (names, next));
    };
    check(list("", "", 10, false).await, "alpha,orders,pay-1,pay-2,pay-3,zeta", None);
    check(list("", "", 2, false).await, "alpha,orders", Some("pay-1"));
    check(list("", "pay-1", 2, false).await, "pay-1,pay-2", Some("pay-3"));
    check(list("", "pay-25", 2, false).await, "pay-3,zeta", None);
    check(list("pay", "", 10, true).await, "pay-1 name=pay-1,pay-2 name=pay-2,pay-3 name=pay-3", None);
    check(list("pay", "", 2, false).await, "pay-1,pay-2", Some("pay-3"));
    check(list("pay", "pay-3", 2, false).await, "pay-3", None);
    check(list("pay", "q", 2, false).await, "", None);
    check(list("none", "", 2, false).await, "", None);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_and_policies_set_at_once_do_not_undo_each_other() {
    let ground = Ground::new().await;
    let rounds = 200;
    let tasks = (0..4).map(|task| {
        let (service, queue) = (ground.service.clone(), ground.queue.clone());
        tokio::spawn(async move {
            for round in 0..rounds {
                let value = format!("{task}-{round}");
                if task < 2 {
                    service.set_metadata(&queue, &metadata(&[("value", &value)])).await.unwrap();
                } else {
                    service.set_policies(&queue, Bytes::from(value)).await.unwrap();
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let (shown, _) = ground.service.look(&ground.queue).await.unwrap();
    let last = format!("-{}", rounds - 1);
    assert!(shown.iter().next().unwrap().1.ends_with(&last), "{shown:?}");
    let policies = ground.service.policies(&ground.queue).await.unwrap().unwrap();
    assert!(policies.ends_with(last.as_bytes()), "{policies:?}");
    ground.service.set_metadata(&ground.queue, &Metadata::default()).await.unwrap();
    assert!(ground.service.policies(&ground.queue).await.unwrap().is_some());
}

#[tokio::test]
async fn a_queue_over_its_target_is_busy() {
    let ground = Ground::new().await;
    let other = queue("other");
    ground.service.create(&other, &Metadata::default()).await.unwrap();
    let throttle = Arc::new(Throttle::new(Targets { account: 1000, resource: 10 }));
    // Reading it makes a debt that takes five seconds to pay off, far longer than these calls take.
    let large = text(&"x".repeat(60 * 1024));
    ground.service.put(&ground.queue, large, Duration::ZERO, None).await.unwrap();
    let service = ground.service.clone().throttled(throttle);
    service.put(&ground.queue, text("x"), Duration::ZERO, None).await.unwrap();
    service.peek(&ground.queue, 32).await.unwrap();
    let busy = Refusal::Shared(common::Refusal::Busy);
    assert_eq!(refused(service.put(&ground.queue, text(""), Duration::ZERO, None).await), busy);
    assert_eq!(refused(service.get(&ground.queue, 1, seconds(1)).await), busy);
    assert_eq!(refused(service.clear(&ground.queue, seconds(1)).await), busy);
    for _ in 0..5 {
        service.put(&other, text("x"), Duration::ZERO, None).await.unwrap();
    }
    assert_eq!(service.get(&other, 32, seconds(1)).await.unwrap().len(), 5);
    let busy_account = Refusal::Shared(common::Refusal::AccountBusy);
    let throttle = Arc::new(Throttle::new(Targets { account: 1, resource: 1000 }));
    let service = ground.service.clone().throttled(throttle);
    service.peek(&ground.queue, 1).await.unwrap();
    assert_eq!(refused(service.peek(&other, 1).await), busy_account);
}

#[tokio::test]
async fn writes_are_refused_while_the_data_moves() {
    let ground = Ground::new().await;
    let put = ground.put("stays").await;
    let gate = Arc::new(Gate::default());
    let service = ground.service.clone().gated(gate.clone());
    gate.close().await;
    let frozen = Refusal::Shared(common::Refusal::Frozen);
    let (queue, id, receipt) = (&ground.queue, put.id, &put.receipt);
    assert_eq!(refused(service.create(queue, &Metadata::default()).await), frozen);
    assert_eq!(refused(service.delete(queue).await), frozen);
    assert_eq!(refused(service.put(queue, text(""), Duration::ZERO, None).await), frozen);
    assert_eq!(refused(service.get(queue, 1, seconds(1)).await), frozen);
    assert_eq!(refused(service.update(queue, id, receipt, Duration::ZERO, None).await), frozen);
    assert_eq!(refused(service.delete_message(queue, id, receipt).await), frozen);
    assert_eq!(refused(service.clear(queue, seconds(1)).await), frozen);
    assert_eq!(service.peek(queue, 1).await.unwrap().len(), 1);
    gate.open().await;
    service.delete_message(queue, id, receipt).await.unwrap();
}

#[tokio::test]
async fn messages_of_other_servers_are_counted() {
    let ground = Ground::new().await;
    let (one, other) = (ground.again().shared(true), ground.again().shared(true));
    let counts = async |server: &Ground, expected| {
        let patience = testing::Patience::new(format!("{expected} messages are counted"));
        while server.count().await != expected {
            tokio::time::sleep(patience.pause()).await;
        }
    };
    counts(&one, 0).await;
    other.put("one").await;
    other.put("two").await;
    counts(&one, 2).await;
    for taken in one.get(32, 30).await {
        one.service.delete_message(&one.queue, taken.message.id, &taken.receipt).await.unwrap();
    }
    counts(&other, 0).await;
}

/// Counts the scans, and holds each until it may go on.
struct HeldScans {
    engine: MemoryEngine,
    scans: AtomicUsize,
    may_go_on: Semaphore,
}

#[async_trait]
impl EngineDouble for HeldScans {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, store::Error> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        self.may_go_on.acquire().await.unwrap().forget();
        self.engine.scan(table, scan).await
    }
}

#[tokio::test]
async fn requests_that_come_together_count_a_queue_once() {
    const TOGETHER: usize = 100;
    for is_shared in [false, true] {
        let (scans, may_go_on) = (AtomicUsize::new(0), Semaphore::new(0));
        let engine = Arc::new(TestEngine(HeldScans { engine: MemoryEngine::new(), scans, may_go_on }));
        let writer = Ground::on(engine.clone(), VirtualTime::new()).shared(is_shared);
        writer.service.create(&writer.queue, &Metadata::default()).await.unwrap();
        writer.put("one").await;
        writer.put("two").await;
        // A server that knows nothing of the queue. Whoever asks for the first number waits for it.
        let server = writer.again().shared(is_shared);
        let ask = || {
            let (service, queue) = (server.service.clone(), server.queue.clone());
            tokio::spawn(async move { service.look(&queue).await.unwrap().1 })
        };
        let asked: Vec<_> = (0..TOGETHER).map(|_| ask()).collect();
        let scans = || engine.scans.load(Ordering::SeqCst);
        for _ in 0..10 * TOGETHER {
            tokio::task::yield_now().await;
        }
        assert_eq!(scans(), 1, "one counts");
        assert!(asked.iter().all(|answer| !answer.is_finished()), "the others wait");
        engine.may_go_on.add_permits(1);
        for answer in asked {
            assert_eq!(answer.await.unwrap(), 2);
        }
        assert_eq!(scans(), 1);
        if !is_shared {
            assert_eq!((server.count().await, scans()), (2, 1), "this server knows all changes");
            continue;
        }
        // Another server may have changed the queue, so the messages are counted again after a while.
        writer.put("three").await;
        let patience = testing::Patience::new("a count is due");
        let mut counting = ask();
        while scans() == 1 {
            tokio::time::sleep(patience.pause()).await;
            if counting.is_finished() {
                assert_eq!(counting.await.unwrap(), 2);
                counting = ask();
            }
        }
        for _ in 0..TOGETHER {
            assert_eq!(server.count().await, 2, "whoever comes meanwhile is told the last number");
        }
        assert_eq!(scans(), 2, "one counts");
        engine.may_go_on.add_permits(1);
        assert_eq!(counting.await.unwrap(), 3);
    }
}
