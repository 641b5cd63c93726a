//! `kill -9` while queues are in use, round after round on the same store.
//!
//! Producers and consumers share one queue. What must be true: a message whose Put was acknowledged is delivered until its
//! Delete is acknowledged; it is never delivered after that, nor while it is hidden from all but one consumer; and its
//! dequeue count grows with every delivery that somebody heard of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::lab::{self, Lab};
use crate::queue_client::{QueueClient, Taken};
use crate::totals::Totals;

const QUEUE: &str = "orders";
const PRODUCERS: usize = 3;
const CONSUMERS: usize = 5;
/// Whoever gets a message hides it for one of these times.
const VISIBILITIES: [u64; 3] = [1, 1, 2];
/// After this time without load, nothing is hidden any more.
const HIDDEN_MAX: Duration = Duration::from_secs(3);
/// All messages that must be there are delivered within this time.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);

/// What the clients know of a message.
#[derive(Clone, Debug)]
struct Known {
    /// Its Put was acknowledged, or it was delivered.
    is_stored: bool,
    deletion: Deletion,
    dequeue_count: u32,
    /// Until then nobody else may be given it: the Get that hid it was sent so long before.
    hidden_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    None,
    /// Nobody knows whether it was done.
    Unknown,
    Done,
}

/// All messages by their text, which is unique.
#[derive(Debug, Default)]
struct Ledger {
    messages: Mutex<HashMap<String, Known>>,
    violation: Mutex<Option<String>>,
}

impl Ledger {
    fn change<T>(&self, text: &str, change: impl FnOnce(&mut Known) -> T) -> T {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        change(messages.entry(text.to_owned()).or_insert(Known {
            is_stored: false,
            deletion: Deletion::None,
            dequeue_count: 0,
            hidden_until: None,
        }))
    }

    fn complain(&self, what: String) {
        self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    fn violation(&self) -> Option<String> {
        self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Messages that must still be delivered.
    fn owed(&self) -> Vec<String> {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = messages.iter().filter(|(_, known)| known.is_stored && known.deletion == Deletion::None);
        owed.map(|(text, _)| text.clone()).collect()
    }

    fn taken(&self, taken: &Taken, sent: Instant, visibility: Duration) {
        let now = Instant::now();
        // Whoever notes a delivery only when its time may be over can't tell what others have done since.
        if now >= sent + visibility {
            return self.change(&taken.text, |known| known.is_stored = true);
        }
        let complaint = self.change(&taken.text, |known| {
            let complaint = if known.deletion == Deletion::Done {
                Some("was delivered after its Delete was acknowledged".to_owned())
            } else if known.hidden_until.is_some_and(|until| now < until) {
                Some("was delivered while it was hidden".to_owned())
            } else if taken.dequeue_count <= known.dequeue_count {
                Some(format!("has dequeue count {} after {}", taken.dequeue_count, known.dequeue_count))
            } else {
                None
            };
            known.is_stored = true;
            known.dequeue_count = taken.dequeue_count;
            known.hidden_until = Some(sent + visibility);
            complaint
        });
        if let Some(complaint) = complaint {
            self.complain(format!("message {} {complaint}", taken.text));
        }
    }
}

pub async fn run(lab: &Lab, rounds: u64) -> Result<Totals, String> {
    let mut totals = Totals::new("queues", lab.seed);
    let began = Instant::now();
    let launch = lab.launch(&lab.directory("data")?);
    let (mut random, ledger) = (lab.random(), Arc::new(Ledger::default()));
    for round in 1..=rounds {
        if lab.is_over() {
            break;
        }
        totals.rounds += 1;
        let mut server = match lab::start(&launch, &mut totals) {
            Ok(server) => server,
            Err(what) => {
                totals.violations.push(lab.violation(round, what));
                break;
            }
        };
        let authority = server.queue_authority()?;
        QueueClient::new(&authority, QUEUE).create().await?;
        let working = Working::start(&authority, &ledger, random.random());
        sleep(Duration::from_millis(random.random_range(100..900))).await;
        server.kill();
        totals.kills += 1;
        let (acknowledged, unknown) = working.finish().await?;
        totals.acknowledged += acknowledged;
        totals.unknown += unknown;
        println!("queues: round {round}: {acknowledged} operations acknowledged, {unknown} unknown");
        if let Some(what) = ledger.violation() {
            totals.violations.push(lab.violation(round, what));
            break;
        }
    }
    if totals.violations.is_empty() {
        let server = lab::start(&launch, &mut totals)?;
        if let Err(what) = drain(&server.queue_authority()?, &ledger, &mut totals).await {
            totals.violations.push(lab.violation(totals.rounds, what));
        }
    }
    totals.seconds = began.elapsed().as_secs();
    Ok(totals)
}

/// Takes all that is left: everything that is owed must be among it.
async fn drain(authority: &str, ledger: &Ledger, totals: &mut Totals) -> Result<(), String> {
    sleep(HIDDEN_MAX).await;
    let mut client = QueueClient::new(authority, QUEUE);
    let deadline = Instant::now() + DRAIN_TIME_MAX;
    loop {
        let sent = Instant::now();
        // Long enough that each message is taken once.
        let visibility = DRAIN_TIME_MAX * 2;
        let taken = client.get(32, visibility.as_secs()).await.ok_or("a Get on a server at rest failed")?;
        for taken in &taken {
            ledger.taken(taken, sent, visibility);
            totals.rows_read += 1;
            let deleted = client.delete(&taken.id, &taken.receipt).await;
            if deleted != Some(204) {
                return Err(format!("the Delete of message {} was answered with {deleted:?}", taken.text));
            }
            ledger.change(&taken.text, |known| known.deletion = Deletion::Done);
        }
        if let Some(what) = ledger.violation() {
            return Err(what);
        }
        if taken.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            return Err(format!("the queue was not empty after {DRAIN_TIME_MAX:?}"));
        }
    }
    let lost = ledger.owed();
    let some: Vec<&String> = lost.iter().take(5).collect();
    if lost.is_empty() {
        Ok(())
    } else {
        Err(format!("{} acknowledged messages are lost: {some:?}", lost.len()))
    }
}

struct Working {
    tasks: Vec<JoinHandle<(u64, u64)>>,
    stop: Arc<AtomicBool>,
}

impl Working {
    fn start(authority: &str, ledger: &Arc<Ledger>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for number in 0..PRODUCERS + CONSUMERS {
            let client = Client {
                client: QueueClient::new(authority, QUEUE),
                ledger: ledger.clone(),
                random: StdRng::seed_from_u64(seed ^ number as u64),
                stop: stop.clone(),
                acknowledged: 0,
                unknown: 0,
            };
            tasks.push(if number < PRODUCERS {
                tokio::spawn(client.produce(format!("{seed:x}-{number}")))
            } else {
                tokio::spawn(client.consume())
            });
        }
        Self { tasks, stop }
    }

    /// How many operations were acknowledged, and how many may have been done or not.
    async fn finish(self) -> Result<(u64, u64), String> {
        self.stop.store(true, Ordering::Relaxed);
        let (mut acknowledged, mut unknown) = (0, 0);
        for task in self.tasks {
            let counts = task.await.map_err(|error| format!("a client ended early: {error}"))?;
            acknowledged += counts.0;
            unknown += counts.1;
        }
        Ok((acknowledged, unknown))
    }
}

struct Client {
    client: QueueClient,
    ledger: Arc<Ledger>,
    random: StdRng,
    stop: Arc<AtomicBool>,
    acknowledged: u64,
    unknown: u64,
}

impl Client {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn count(&mut self, is_acknowledged: bool) {
        if is_acknowledged { self.acknowledged += 1 } else { self.unknown += 1 }
    }

    async fn produce(mut self, name: String) -> (u64, u64) {
        for number in 0.. {
            if self.is_over() {
                break;
            }
            let text = format!("{name}-{number}-{}", "x".repeat(self.random.random_range(0..2000)));
            let put = self.client.put(&text).await;
            self.count(put.is_some());
            match put {
                Some(201) => self.ledger.change(&text, |known| known.is_stored = true),
                Some(status) => self.ledger.complain(format!("a Put was answered with {status}")),
                // The server is gone, or will be in a moment.
                None => break,
            }
        }
        (self.acknowledged, self.unknown)
    }

    async fn consume(mut self) -> (u64, u64) {
        while !self.is_over() {
            let visibility = VISIBILITIES[self.random.random_range(0..VISIBILITIES.len())];
            let sent = Instant::now();
            let taken = self.client.get(self.random.random_range(1..9), visibility).await;
            self.count(taken.is_some());
            let Some(taken) = taken else { break };
            for taken in &taken {
                self.ledger.taken(taken, sent, Duration::from_secs(visibility));
            }
            for taken in taken {
                // Some are left to come back.
                if self.random.random_bool(0.2) {
                    continue;
                }
                let mut receipt = taken.receipt.clone();
                if self.random.random_bool(0.2) {
                    // From here on the message is hidden for other times than the Get said.
                    self.ledger.change(&taken.text, |known| known.hidden_until = None);
                    let sent = Instant::now();
                    match self.client.update(&taken.id, &receipt, visibility).await {
                        Some(Ok(updated)) => {
                            receipt = updated;
                            let until = sent + Duration::from_secs(visibility);
                            self.ledger.change(&taken.text, |known| known.hidden_until = Some(until));
                        }
                        // Its time was over, and somebody else has it.
                        Some(Err(_)) => continue,
                        None => return (self.acknowledged, self.unknown + 1),
                    }
                }
                self.ledger.change(&taken.text, |known| known.deletion = Deletion::Unknown);
                let deleted = self.client.delete(&taken.id, &receipt).await;
                self.count(deleted.is_some());
                let deletion = match deleted {
                    Some(204) => Deletion::Done,
                    // Its time was over, and somebody else has it.
                    Some(404) => Deletion::None,
                    Some(status) => {
                        self.ledger.complain(format!("a Delete was answered with {status}"));
                        Deletion::Unknown
                    }
                    None => return (self.acknowledged, self.unknown),
                };
                self.ledger.change(&taken.text, |known| match (known.deletion, deletion) {
                    // Whoever has it now has deleted it already.
                    (Deletion::Done, _) => {}
                    (_, deletion) => known.deletion = deletion,
                });
            }
        }
        (self.acknowledged, self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn taken(dequeue_count: u32) -> Taken {
        let (id, receipt, text) = (String::new(), String::new(), "text".to_owned());
        Taken { id, receipt, dequeue_count, text }
    }

    /// What the ledger says of a second delivery, after the first of which this became.
    fn judged(second: u32, hidden: Duration, became: Deletion) -> Option<String> {
        let ledger = Ledger::default();
        ledger.taken(&taken(1), Instant::now(), 60 * SECOND);
        ledger.change("text", |known| {
            known.deletion = became;
            known.hidden_until = Some(Instant::now() + hidden);
        });
        ledger.taken(&taken(second), Instant::now(), 60 * SECOND);
        ledger.violation()
    }

    #[test]
    fn deliveries_that_must_not_be_are_told() {
        assert_eq!(judged(2, Duration::ZERO, Deletion::None), None);
        assert_eq!(judged(3, Duration::ZERO, Deletion::Unknown), None, "somebody got it and was not told");
        assert!(judged(2, 60 * SECOND, Deletion::None).is_some_and(|what| what.contains("hidden")));
        assert!(judged(2, Duration::ZERO, Deletion::Done).is_some_and(|what| what.contains("acknowledged")));
        assert!(judged(1, Duration::ZERO, Deletion::None).is_some_and(|what| what.contains("count")));
    }

    #[test]
    fn what_was_acknowledged_is_owed_until_it_is_deleted() {
        let ledger = Ledger::default();
        ledger.change("never answered", |_| ());
        ledger.change("put", |known| known.is_stored = true);
        ledger.change("delivered", |_| ());
        ledger.taken(&Taken { text: "delivered".to_owned(), ..taken(1) }, Instant::now(), SECOND);
        for (text, deletion) in [("deleted", Deletion::Done), ("perhaps deleted", Deletion::Unknown)] {
            ledger.change(text, |known| (known.is_stored, known.deletion) = (true, deletion));
        }
        let mut owed = ledger.owed();
        owed.sort();
        assert_eq!(owed, ["delivered", "put"]);
    }
}
