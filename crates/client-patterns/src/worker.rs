//! Takes messages of a queue and has them handled, again and again if need be.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::DateTime;

use super::queue::{Lease, Message, Queue};
use partita_client::Result;

/// Takes messages of a queue and calls a handler with each.
///
/// While the handler runs, the lease is extended; if it is lost nevertheless, the handler is dropped where it stands. A
/// handler that fails sees the message again after a pause that doubles each time, until the queue's
/// [`dequeues_max`](Queue::dequeues_max) is reached: then the message is poisoned, with what the handler said.
///
/// Any number of workers can share a queue, in any number of processes.
///
/// ```no_run
/// # async fn send(mail: String) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use partita_client_patterns::{queue::Queue, worker::Worker};
///
/// let worker = Worker::new(Queue::new(&table, "mails"));
/// let shutdown = async { drop(tokio::signal::ctrl_c().await) };
/// let tally = worker.run(|message| send(message.body), shutdown).await;
/// println!("{} mails sent", tally.handled);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Worker {
    queue: Queue,
    lease_time: Duration,
    at_once: usize,
    idle_pause: Duration,
    first_pause: Duration,
    longest_pause: Duration,
}

/// What became of the messages a worker had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Handled and gone.
    pub handled: u64,
    /// Released, to be tried again.
    pub failed: u64,
    /// Moved to the poisoned.
    pub poisoned: u64,
    /// In the end somebody else's.
    pub lost: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.handled += other.handled;
        self.failed += other.failed;
        self.poisoned += other.poisoned;
        self.lost += other.lost;
    }

    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Worker {
    /// One message at a time, leased for 30 s; see the methods for the rest.
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            lease_time: Duration::from_secs(30),
            at_once: 1,
            idle_pause: Duration::from_secs(1),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
        }
    }

    /// How long after its holder's death a message is handed out again. 30 s unless told.
    pub fn lease_time(self, time: Duration) -> Self {
        Self { lease_time: time, ..self }
    }

    /// How many messages are handled at the same time. One unless told.
    pub fn at_once(self, messages: usize) -> Self {
        Self { at_once: messages.max(1), ..self }
    }

    /// How long to wait before looking again into a queue that had nothing. A second unless told.
    pub fn idle_pause(self, pause: Duration) -> Self {
        Self { idle_pause: pause, ..self }
    }

    /// After how long a failed message is tried again: the first time, and at most. 1 s and 5 min unless told.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { first_pause: first, longest_pause: longest, ..self }
    }

    /// Works until `shutdown` is ready, then finishes what it has in hand. A service that does not answer is waited for.
    pub async fn run<F, E>(&self, handler: impl Fn(Message) -> F, shutdown: impl Future<Output = ()>) -> Tally
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut shutdown = pin!(shutdown);
        let mut tally = Tally::default();
        loop {
            let mut round = pin!(self.round(&handler));
            // Whoever is told to go still finishes his round.
            let (result, told) = tokio::select! {
                biased;
                () = &mut shutdown => (round.await, true),
                result = &mut round => (result, false),
            };
            let idle = match result {
                Ok(round) => {
                    tally.add(round);
                    round.is_nothing()
                }
                Err(error) => {
                    tracing::warn!(%error, "a worker could not work; trying again");
                    true
                }
            };
            if told {
                return tally;
            }
            if idle {
                tokio::select! {
                    () = &mut shutdown => return tally,
                    () = tokio::time::sleep(self.idle_pause) => {}
                }
            }
        }
    }

    /// Works until the queue is empty: what is leased by others or waits for its next try is waited for.
    pub async fn run_until_empty<F, E>(&self, handler: impl Fn(Message) -> F) -> Result<Tally>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut tally = Tally::default();
        loop {
            tally.add(self.run_until_idle(&handler).await?);
            let waiting = self.queue.waiting().await?;
            match waiting.next_at {
                None => return Ok(tally),
                // Not until it is time: whoever has it may complete it before.
                Some(at) => tokio::time::sleep(until(self.queue.now(), at).min(self.idle_pause)).await,
            }
        }
    }

    /// Works until there is nothing to be had at the moment.
    pub async fn run_until_idle<F, E>(&self, handler: impl Fn(Message) -> F) -> Result<Tally>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut tally = Tally::default();
        loop {
            let round = self.round(&handler).await?;
            if round.is_nothing() {
                return Ok(tally);
            }
            tally.add(round);
        }
    }

    /// As many messages as are handled at once.
    async fn round<F, E>(&self, handler: &impl Fn(Message) -> F) -> Result<Tally>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let leases = self.queue.receive(self.at_once, self.lease_time).await?;
        let ends =
            stream::iter(leases).map(|lease| self.handle(lease, handler)).buffer_unordered(self.at_once);
        ends.try_fold(Tally::default(), |mut tally, end| async move {
            tally.add(end);
            Ok(tally)
        })
        .await
    }

    async fn handle<F, E>(&self, mut lease: Lease, handler: &impl Fn(Message) -> F) -> Result<Tally>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let lost = Tally { lost: 1, ..Tally::default() };
        let mut work = pin!(handler(lease.message.clone()));
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                () = tokio::time::sleep(self.lease_time / 2) => {
                    if !self.queue.extend(&mut lease, self.lease_time).await? {
                        return Ok(lost);
                    }
                }
            }
        };
        let (kept, tally) = match result {
            Ok(()) => (self.queue.complete(&lease).await?, Tally { handled: 1, ..Tally::default() }),
            Err(error) => {
                let reason = error.to_string();
                tracing::debug!(id = lease.message.id, reason, "a message could not be handled");
                if self.queue.is_exhausted(&lease.message) {
                    (self.queue.poison(&lease, &reason).await?, Tally { poisoned: 1, ..Tally::default() })
                } else {
                    let pause = self.pause(lease.message.dequeue_count);
                    let released = self.queue.release(lease, pause, Some(&reason)).await?;
                    (released, Tally { failed: 1, ..Tally::default() })
                }
            }
        };
        Ok(if kept { tally } else { lost })
    }

    fn pause(&self, dequeues: u32) -> Duration {
        self.first_pause.saturating_mul(1 << dequeues.saturating_sub(1).min(16)).min(self.longest_pause)
    }
}

/// How long it is until then.
fn until(now: DateTime, then: DateTime) -> Duration {
    let ticks = u64::try_from(then.ticks() - now.ticks()).unwrap_or(0);
    // A tick more, so that it is over and not just there.
    Duration::from_nanos(ticks.saturating_add(1).saturating_mul(100))
}
