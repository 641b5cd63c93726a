//! Receives the messages of a queue and calls a handler, with retries.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::DateTime;

use super::queue::{Message, MessageLease, Queue};
use partita_client::Result;

/// Receives the messages of a queue and calls a handler with each.
///
/// While the handler runs, the worker extends the lease. If the lease is lost, the handler's future is dropped. If the handler
/// fails, the message is received again after a pause, which doubles each time. After
/// [`dequeues_max`](Queue::dequeues_max) attempts the message is poisoned, with the handler's error.
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

/// How many messages a worker had, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerCounts {
    /// Handled and deleted.
    pub handled: u64,
    /// Failed and released, for another attempt.
    pub failed: u64,
    /// Moved to the poisoned messages.
    pub poisoned: u64,
    /// The lease was lost; another worker has the message.
    pub lost: u64,
}

impl WorkerCounts {
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
    /// Handles one message at a time, with leases of 30 s; see the methods for all settings.
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

    /// The time of a lease, after which the message of a dead worker can be received again; by default 30 s.
    pub fn lease_time(self, time: Duration) -> Self {
        Self { lease_time: time, ..self }
    }

    /// How many messages are handled at the same time; by default 1.
    pub fn at_once(self, messages: usize) -> Self {
        Self { at_once: messages.max(1), ..self }
    }

    /// The pause after the queue was empty; by default 1 s.
    pub fn idle_pause(self, pause: Duration) -> Self {
        Self { idle_pause: pause, ..self }
    }

    /// The first and the longest pause before a failed message is retried; by default 1 s and 5 min.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { first_pause: first, longest_pause: longest, ..self }
    }

    /// Works until `shutdown` is ready, then finishes the messages that it has. If the service does not answer, it keeps
    /// trying.
    pub async fn run<F, E>(
        &self,
        handler: impl Fn(Message) -> F,
        shutdown: impl Future<Output = ()>,
    ) -> WorkerCounts
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut shutdown = pin!(shutdown);
        let mut tally = WorkerCounts::default();
        loop {
            let mut round = pin!(self.round(&handler));
            // After `shutdown` the round is still finished.
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

    /// Works until the queue is empty. Waits for messages that others have leased or that wait for their next attempt.
    pub async fn run_until_empty<F, E>(&self, handler: impl Fn(Message) -> F) -> Result<WorkerCounts>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut tally = WorkerCounts::default();
        loop {
            tally.add(self.run_until_idle(&handler).await?);
            let waiting = self.queue.waiting().await?;
            match waiting.next_at {
                None => return Ok(tally),
                // Not longer than the idle pause: another worker may complete the message earlier.
                Some(at) => tokio::time::sleep(until(self.queue.now(), at).min(self.idle_pause)).await,
            }
        }
    }

    /// Works until no message can be received at the moment.
    pub async fn run_until_idle<F, E>(&self, handler: impl Fn(Message) -> F) -> Result<WorkerCounts>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut tally = WorkerCounts::default();
        loop {
            let round = self.round(&handler).await?;
            if round.is_nothing() {
                return Ok(tally);
            }
            tally.add(round);
        }
    }

    /// Receives and handles as many messages as are handled at the same time.
    async fn round<F, E>(&self, handler: &impl Fn(Message) -> F) -> Result<WorkerCounts>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let leases = self.queue.receive(self.at_once, self.lease_time).await?;
        let ends =
            stream::iter(leases).map(|lease| self.handle(lease, handler)).buffer_unordered(self.at_once);
        ends.try_fold(WorkerCounts::default(), |mut tally, end| async move {
            tally.add(end);
            Ok(tally)
        })
        .await
    }

    async fn handle<F, E>(
        &self,
        mut lease: MessageLease,
        handler: &impl Fn(Message) -> F,
    ) -> Result<WorkerCounts>
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        let lost = WorkerCounts { lost: 1, ..WorkerCounts::default() };
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
            Ok(()) => {
                (self.queue.complete(&lease).await?, WorkerCounts { handled: 1, ..WorkerCounts::default() })
            }
            Err(error) => {
                let reason = error.to_string();
                tracing::debug!(id = lease.message.id, reason, "a message could not be handled");
                if self.queue.is_exhausted(&lease.message) {
                    (
                        self.queue.poison(&lease, &reason).await?,
                        WorkerCounts { poisoned: 1, ..WorkerCounts::default() },
                    )
                } else {
                    let pause = self.pause(lease.message.dequeue_count);
                    let released = self.queue.release(lease, pause, Some(&reason)).await?;
                    (released, WorkerCounts { failed: 1, ..WorkerCounts::default() })
                }
            }
        };
        Ok(if kept { tally } else { lost })
    }

    fn pause(&self, dequeues: u32) -> Duration {
        self.first_pause.saturating_mul(1 << dequeues.saturating_sub(1).min(16)).min(self.longest_pause)
    }
}

/// The time from `now` to `then`.
fn until(now: DateTime, then: DateTime) -> Duration {
    let ticks = u64::try_from(then.ticks() - now.ticks()).unwrap_or(0);
    // One tick more, so that the time is over.
    Duration::from_nanos(ticks.saturating_add(1).saturating_mul(100))
}
