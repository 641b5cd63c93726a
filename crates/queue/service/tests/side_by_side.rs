//! Many consumers at the same time: no message goes to two of them, and none is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine_embedded::{EmbeddedEngine, Options};
use queue_model::{MessageId, Metadata, Refusal};
use queue_service::{Error, QueueService};
use store::{Engine, MemoryEngine};
use tempfile::TempDir;
use testing::Patience;
use tokio::task::JoinSet;

use crate::kit::{Random, VirtualTime, queue, seconds, text};

const CONSUMERS: usize = 16;

/// An engine in memory and one on the disk.
fn engines(directory: &TempDir) -> [Arc<dyn Engine>; 2] {
    let embedded = EmbeddedEngine::open(Options::new(directory.path())).unwrap();
    [Arc::new(MemoryEngine::new()), Arc::new(embedded)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_consumers_share_the_messages_of_four_producers() {
    const MESSAGES: usize = 2000;
    let directory = TempDir::new().unwrap();
    for engine in engines(&directory) {
        let service = QueueService::new(engine.clone());
        let queue = queue("orders");
        service.create(&queue, &Metadata::default()).await.unwrap();
        let (put, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(MESSAGES)));
        let producers = (0..4).map(|_| {
            let (service, queue, put) = (service.clone(), queue.clone(), put.clone());
            tokio::spawn(async move {
                while put.fetch_add(1, Ordering::SeqCst) < MESSAGES {
                    service.put(&queue, text("work"), Duration::ZERO, None).await.unwrap();
                }
                Vec::new()
            })
        });
        let consumers = (0..CONSUMERS).map(|consumer| {
            let (service, queue, left) = (service.clone(), queue.clone(), left.clone());
            tokio::spawn(async move {
                let mut random = Random::new(consumer as u64);
                let mut seen = Vec::new();
                while left.load(Ordering::SeqCst) > 0 {
                    let count = u32::try_from(random.of(&[1, 1, 4, 32])).unwrap();
                    let got = service.get(&queue, count, seconds(600)).await.unwrap();
                    if got.is_empty() {
                        service.peek(&queue, 4).await.unwrap();
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    for taken in got {
                        assert_eq!(taken.message.dequeue_count, 1);
                        seen.push(taken.message.id);
                        if random.below(4) == 0 {
                            let receipt =
                                service.update(&queue, taken.message.id, &taken.receipt, seconds(900), None);
                            let receipt = receipt.await.unwrap();
                            service.delete_message(&queue, taken.message.id, &receipt).await.unwrap();
                        } else {
                            service.delete_message(&queue, taken.message.id, &taken.receipt).await.unwrap();
                        }
                        left.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                seen
            })
        });
        let mut seen: Vec<MessageId> = Vec::new();
        for task in producers.chain(consumers).collect::<Vec<_>>() {
            seen.extend(task.await.unwrap());
        }
        let distinct: BTreeSet<MessageId> = seen.iter().copied().collect();
        assert_eq!((seen.len(), distinct.len()), (MESSAGES, MESSAGES), "each message once");
        assert_eq!(service.look(&queue).await.unwrap().1, 0);
        engine.close().await;
    }
}

/// One delivery: when the message was hidden and until when, in ticks.
type Delivery = (i64, i64);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_is_given_out_while_it_is_hidden() {
    const MESSAGES: usize = 60;
    let directory = TempDir::new().unwrap();
    for engine in engines(&directory) {
        let time = VirtualTime::new();
        let service = QueueService::new(engine.clone()).timed(time.clock());
        let queue = queue("orders");
        service.create(&queue, &Metadata::default()).await.unwrap();
        for _ in 0..MESSAGES {
            service.put(&queue, text("work"), Duration::ZERO, None).await.unwrap();
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let delivered = Arc::new(Mutex::new(BTreeSet::new()));
        // A second passes every other millisecond, so that messages become visible again and again. On a slow disk it goes on
        // until each has been delivered.
        let ticking = {
            let (time, is_over, delivered) = (time.clone(), is_over.clone(), delivered.clone());
            tokio::spawn(async move {
                let patience = Patience::lasting(seconds(300), "every message is delivered");
                let mut ticks = 0;
                while ticks < 1000 || delivered.lock().unwrap().len() < MESSAGES {
                    tokio::time::sleep(patience.pause().min(Duration::from_millis(2))).await;
                    time.pass(Duration::from_millis(997));
                    ticks += 1;
                }
                is_over.store(true, Ordering::SeqCst);
            })
        };
        let consumers = (0..CONSUMERS).map(|consumer| {
            let (service, queue) = (service.clone(), queue.clone());
            let (is_over, delivered) = (is_over.clone(), delivered.clone());
            tokio::spawn(async move {
                let mut random = Random::new(consumer as u64);
                let mut deliveries: Vec<(MessageId, u32, Delivery)> = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let visibility = seconds(random.of(&[1, 2, 5, 20]));
                    let got = service.get(&queue, random.of(&[1, 2, 8]), visibility).await.unwrap();
                    for taken in got {
                        delivered.lock().unwrap().insert(taken.message.id);
                        let until = taken.receipt.next_visible();
                        let hidden = until.ticks() - seconds(0).max(visibility).as_nanos() as i64 / 100;
                        deliveries.push((
                            taken.message.id,
                            taken.message.dequeue_count,
                            (hidden, until.ticks()),
                        ));
                    }
                    tokio::task::yield_now().await;
                }
                deliveries
            })
        });
        let mut by_message: BTreeMap<MessageId, BTreeMap<u32, Delivery>> = BTreeMap::new();
        for consumer in consumers.collect::<Vec<_>>() {
            for (id, count, delivery) in consumer.await.unwrap() {
                let before = by_message.entry(id).or_default().insert(count, delivery);
                assert!(before.is_none(), "two deliveries with the same count");
            }
        }
        ticking.await.unwrap();
        assert_eq!(by_message.len(), MESSAGES, "none is lost");
        let deliveries: usize = by_message.values().map(BTreeMap::len).sum();
        println!("{deliveries} deliveries of {MESSAGES} messages");
        for (id, deliveries) in by_message {
            assert!(
                deliveries.keys().copied().eq(1..=deliveries.len() as u32),
                "{id}: every delivery is known"
            );
            let in_order: Vec<Delivery> = deliveries.into_values().collect();
            for pair in in_order.windows(2) {
                // Up to a millisecond was added to the time that it was hidden for.
                assert!(pair[1].0 >= pair[0].1, "{id}: given out while it was hidden: {pair:?}");
            }
        }
        engine.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_who_use_a_receipt_at_once_one_succeeds() {
    let directory = TempDir::new().unwrap();
    for engine in engines(&directory) {
        let service = QueueService::new(engine.clone());
        let queue = queue("orders");
        service.create(&queue, &Metadata::default()).await.unwrap();
        for round in 0..100 {
            let put = service.put(&queue, text("work"), Duration::ZERO, None).await.unwrap();
            let tasks = (0..4).map(|task| {
                let (service, queue) = (service.clone(), queue.clone());
                tokio::spawn(async move {
                    if task % 2 == 0 {
                        service.delete_message(&queue, put.id, &put.receipt).await
                    } else {
                        service.update(&queue, put.id, &put.receipt, seconds(600), None).await.map(drop)
                    }
                })
            });
            let mut succeeded = 0;
            for task in tasks.collect::<Vec<_>>() {
                match task.await.unwrap() {
                    Ok(()) => succeeded += 1,
                    Err(Error::Refused(Refusal::MessageNotFound)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(succeeded, 1, "round {round}");
        }
        engine.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_is_given_up_loses_nothing() {
    const MESSAGES: usize = 500;
    let directory = TempDir::new().unwrap();
    for engine in engines(&directory) {
        let time = VirtualTime::new();
        let service = QueueService::new(engine.clone()).timed(time.clock());
        let queue = queue("orders");
        service.create(&queue, &Metadata::default()).await.unwrap();
        let mut random = Random::new(1);
        let mut acknowledged = BTreeSet::new();
        for round in 0..MESSAGES {
            // Some are not given up, however slow the disk is.
            let wait = match round % 50 {
                0 => seconds(600),
                _ => Duration::from_micros(random.below(400) as u64),
            };
            let put = service.put(&queue, text("work"), Duration::ZERO, None);
            if let Ok(put) = tokio::time::timeout(wait, put).await {
                acknowledged.insert(put.unwrap().id);
            }
            let wait = Duration::from_micros(random.below(400) as u64);
            // Whoever gives up never hears what it was given.
            drop(tokio::time::timeout(wait, service.get(&queue, 2, seconds(5))).await);
        }
        service.sweep(&queue).await.unwrap();
        time.pass(seconds(10));
        let mut found = BTreeSet::new();
        loop {
            let got = service.get(&queue, 32, seconds(3600)).await.unwrap();
            if got.is_empty() {
                break;
            }
            assert!(got.iter().all(|taken| found.insert(taken.message.id)), "given out while it was hidden");
        }
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "{lost:?}");
        assert!(!acknowledged.is_empty() && found.len() <= MESSAGES);
        engine.close().await;
    }
}

/// Whoever has put a message finds one: that message, or that of somebody who was faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_get_after_a_put_never_comes_back_empty() {
    const CLIENTS: usize = 4;
    const ROUNDS: usize = 300;
    let directory = TempDir::new().unwrap();
    for engine in engines(&directory) {
        let service = QueueService::new(engine.clone());
        let queue = queue("orders");
        service.create(&queue, &Metadata::default()).await.unwrap();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (service, queue) = (service.clone(), queue.clone());
            clients.spawn(async move {
                for round in 0..ROUNDS {
                    service.put(&queue, text("a message"), Duration::ZERO, None).await.unwrap();
                    let taken = service.get(&queue, 1, seconds(600)).await.unwrap();
                    assert_eq!(taken.len(), 1, "round {round}");
                    service.delete_message(&queue, taken[0].message.id, &taken[0].receipt).await.unwrap();
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        assert_eq!(service.look(&queue).await.unwrap().1, 0);
        engine.close().await;
    }
}
