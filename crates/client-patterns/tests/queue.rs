//! Queues and workers on a service.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use partita_client::DateTime;
use partita_client_patterns::queue::{MessageLease, Queue, newest_first_id, oldest_first_id};
use partita_client_patterns::worker::Worker;

const MINUTE: Duration = Duration::from_secs(60);

/// A queue with a clock that the test moves.
struct Timed {
    queue: Queue,
    seconds: Arc<AtomicU64>,
}

impl Timed {
    async fn new() -> Option<Self> {
        let service = support::service()?;
        let table = support::table(&service, "Queue").await;
        let seconds = Arc::new(AtomicU64::new(0));
        let passed = Arc::clone(&seconds);
        let start = DateTime::parse("2024-01-31T12:00:00Z").unwrap();
        let now = move || start.plus(Duration::from_secs(passed.load(Ordering::SeqCst)));
        Some(Self { queue: Queue::new(&table, "mails").clock(now), seconds })
    }

    fn wait(&self, time: Duration) {
        self.seconds.fetch_add(time.as_secs(), Ordering::SeqCst);
    }

    async fn receive(&self, count: usize) -> Vec<MessageLease> {
        self.queue.receive(count, MINUTE).await.unwrap()
    }
}

fn ids(leases: &[MessageLease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.message.id.as_str()).collect()
}

#[tokio::test]
async fn a_message_is_enqueued_once() {
    let Some(Timed { queue, .. }) = Timed::new().await else { return };
    assert!(queue.enqueue("a/b~c", "one").await.unwrap());
    assert!(!queue.enqueue("a/b~c", "two").await.unwrap());
    let leases = queue.receive(10, MINUTE).await.unwrap();
    assert_eq!((ids(&leases), leases[0].message.body.as_str()), (vec!["a/b~c"], "one"));
    assert_eq!(queue.find("a/b~c").await.unwrap().unwrap(), leases[0].message);
}

#[tokio::test]
async fn a_long_message_is_read_whole_and_one_that_is_too_long_is_refused() {
    let Some(Timed { queue, .. }) = Timed::new().await else { return };
    let long = "a".repeat(450_000);
    queue.enqueue("a", &long).await.unwrap();
    assert!(queue.receive(1, MINUTE).await.unwrap()[0].message.body == long);
    let fault = queue.enqueue("b", &"a".repeat(500_000)).await.unwrap_err().to_string();
    assert_eq!(
        fault,
        "the message \"b\" of 500000 bytes is too long for an entity; store it elsewhere and enqueue its address"
    );
}

#[tokio::test]
async fn messages_are_received_in_the_order_of_their_ids() {
    let Some(Timed { queue, .. }) = Timed::new().await else { return };
    let time = DateTime::parse("2024-01-31T12:00:00Z").unwrap();
    for (name, id) in [("oldest", oldest_first_id as fn(DateTime) -> String), ("newest", newest_first_id)] {
        let queue = queue.clone().prefix(name);
        for second in [3, 1, 2] {
            queue.enqueue(&id(time.plus(Duration::from_secs(second))), &second.to_string()).await.unwrap();
        }
        let leases = queue.receive(10, MINUTE).await.unwrap();
        let bodies: String = leases.iter().map(|lease| lease.message.body.as_str()).collect();
        assert_eq!(bodies, if name == "oldest" { "123" } else { "321" });
    }
}

#[tokio::test]
async fn a_leased_message_is_not_received_until_the_lease_ends() {
    let Some(timed) = Timed::new().await else { return };
    timed.queue.enqueue("a", "").await.unwrap();
    timed.queue.enqueue("b", "").await.unwrap();
    let mut first = timed.receive(1).await;
    assert_eq!(ids(&first), ["a"]);
    assert_eq!(ids(&timed.receive(10).await), ["b"]);
    timed.wait(MINUTE / 2);
    assert!(timed.queue.extend(&mut first[0], MINUTE).await.unwrap());
    timed.wait(MINUTE / 2);
    // Its lease was not extended.
    assert_eq!(ids(&timed.receive(10).await), ["b"]);
    timed.wait(MINUTE / 2);
    let second = timed.receive(1).await;
    assert_eq!((ids(&second), second[0].message.dequeue_count), (vec!["a"], 2));
}

#[tokio::test]
async fn a_worker_learns_that_it_has_lost_its_lease() {
    let Some(timed) = Timed::new().await else { return };
    timed.queue.enqueue("a", "").await.unwrap();
    let mut late = timed.receive(1).await.pop().unwrap();
    timed.wait(MINUTE);
    let next = timed.receive(1).await.pop().unwrap();
    assert!(!timed.queue.extend(&mut late, MINUTE).await.unwrap());
    assert!(!timed.queue.complete(&late).await.unwrap());
    assert!(!timed.queue.poison(&late, "late").await.unwrap());
    assert!(!timed.queue.release(late, MINUTE, None).await.unwrap());
    assert!(timed.queue.complete(&next).await.unwrap());
    assert!(!timed.queue.complete(&next).await.unwrap());
    assert_eq!(timed.queue.waiting().await.unwrap().messages, 0);
    assert_eq!(timed.queue.poisoned().await.unwrap(), []);
}

#[tokio::test]
async fn a_message_whose_workers_die_is_poisoned_and_can_be_requeued() {
    let Some(timed) = Timed::new().await else { return };
    let queue = timed.queue.clone().dequeues_max(2);
    queue.enqueue("a", "body").await.unwrap();
    for _ in 0..2 {
        assert_eq!(queue.receive(1, MINUTE).await.unwrap().len(), 1);
        timed.wait(MINUTE);
    }
    assert_eq!(queue.receive(1, MINUTE).await.unwrap(), []);
    let poisoned = queue.poisoned().await.unwrap();
    assert_eq!(poisoned[0].reason, "received 2 times; the last time: it was never released");
    assert_eq!((poisoned[0].message.id.as_str(), poisoned[0].message.body.as_str()), ("a", "body"));
    assert_eq!(queue.waiting().await.unwrap().messages, 0);

    assert!(queue.requeue("a").await.unwrap());
    assert!(!queue.requeue("a").await.unwrap());
    let again = queue.receive(1, MINUTE).await.unwrap();
    assert_eq!((again[0].message.dequeue_count, again[0].message.body.as_str()), (1, "body"));
    queue.poison(&again[0], "enough").await.unwrap();
    assert!(queue.discard("a").await.unwrap());
    assert_eq!(queue.poisoned().await.unwrap(), []);
}

#[tokio::test]
async fn a_worker_retries_and_poisons_the_message_in_the_end() {
    let Some(timed) = Timed::new().await else { return };
    let queue = timed.queue.clone().clock(DateTime::now).dequeues_max(3);
    for id in ["good", "hard", "bad"] {
        queue.enqueue(id, "").await.unwrap();
    }
    let tries = Mutex::new(BTreeMap::<String, u32>::new());
    let pause = Duration::from_millis(1);
    let worker = Worker::new(queue.clone()).at_once(2).pauses(pause, pause).idle_pause(pause);
    let tally = worker
        .run_until_empty(|message| {
            let tried = *tries.lock().unwrap().entry(message.id.clone()).and_modify(|n| *n += 1).or_insert(1);
            async move {
                match (message.id.as_str(), tried) {
                    ("bad", _) | ("hard", 1) => Err(format!("{} failed", message.id)),
                    _ => Ok(()),
                }
            }
        })
        .await
        .unwrap();
    assert_eq!((tally.handled, tally.failed, tally.poisoned, tally.lost), (2, 3, 1, 0));
    let expected = [("bad", 3), ("good", 1), ("hard", 2)].map(|(id, tries)| (id.to_owned(), tries));
    assert_eq!(*tries.lock().unwrap(), BTreeMap::from(expected));
    assert_eq!(queue.poisoned().await.unwrap()[0].reason, "bad failed");
}

#[tokio::test]
async fn a_worker_keeps_its_lease_while_the_handler_runs() {
    let Some(timed) = Timed::new().await else { return };
    let queue = timed.queue.clone().clock(DateTime::now);
    queue.enqueue("a", "").await.unwrap();
    let worker = Worker::new(queue.clone()).lease_time(Duration::from_millis(200));
    let until = async || queue.waiting().await.unwrap().next_at.unwrap();
    // The handler ends after the lease was extended twice.
    let handler = |_| async {
        let mut seen = BTreeSet::new();
        while seen.len() < 3 {
            seen.insert(until().await);
            tokio::task::yield_now().await;
        }
        Ok::<_, String>(())
    };
    let tally = tokio::time::timeout(MINUTE, worker.run_until_idle(handler)).await.unwrap().unwrap();
    assert_eq!((tally.handled, tally.lost), (1, 0));
}

#[tokio::test]
async fn a_worker_finishes_its_messages_on_shutdown() {
    let Some(timed) = Timed::new().await else { return };
    timed.queue.enqueue("a", "").await.unwrap();
    let (told, shutdown) = tokio::sync::oneshot::channel::<()>();
    let told = Mutex::new(Some(told));
    let worker = Worker::new(timed.queue.clone());
    let handler = |_| {
        drop(told.lock().unwrap().take());
        async {
            tokio::task::yield_now().await;
            Ok::<_, String>(())
        }
    };
    let tally = worker.run(handler, async { drop(shutdown.await) }).await;
    assert_eq!(tally.handled, 1);
    assert_eq!(timed.queue.waiting().await.unwrap().messages, 0);
}

/// Several workers at the same time; their handlers record when they have a message.
#[tokio::test(flavor = "multi_thread")]
async fn only_one_worker_has_a_message_at_a_time() {
    let Some(timed) = Timed::new().await else { return };
    let queue = timed.queue.clone().clock(DateTime::now);
    for number in 0..60 {
        queue.enqueue(&format!("{number:02}"), "").await.unwrap();
    }
    let (held, handled) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let (queue, held, handled) = (queue.clone(), Arc::clone(&held), Arc::clone(&handled));
            tokio::spawn(async move {
                let worker = Worker::new(queue).at_once(3).idle_pause(Duration::from_millis(5));
                let handler = |message: partita_client_patterns::queue::Message| {
                    let (held, handled) = (Arc::clone(&held), Arc::clone(&handled));
                    async move {
                        assert!(held.lock().unwrap().insert(message.id.clone()), "two have {}", message.id);
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        held.lock().unwrap().remove(&message.id);
                        handled.fetch_add(1, Ordering::SeqCst);
                        Ok::<_, String>(())
                    }
                };
                worker.run_until_empty(handler).await.unwrap().handled
            })
        })
        .collect();
    let mut completed = 0;
    for worker in workers {
        completed += worker.await.unwrap();
    }
    assert_eq!((completed, handled.load(Ordering::SeqCst)), (60, 60));
}
