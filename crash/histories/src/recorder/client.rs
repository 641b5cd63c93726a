//! One client of a round. It performs one operation after the other and records the times of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::choice::Chooser;
use crate::history::{Action, Operation, Outcome, Time};
use crate::random::Random;

/// How often a client tries again if no server accepts its request: for more than a minute, so that a front end can
/// restart.
const NOT_SENT_MAX: usize = 80;

/// The pause after an answer that the server is busy.
pub const TURNED_AWAY_PAUSE: Duration = Duration::from_millis(50);

/// The one clock of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn now(&self) -> Time {
        self.0.elapsed().as_nanos() as Time
    }
}

/// Makes requests of one kind of history over one connection.
pub trait Talk: Send + 'static {
    type Action: Send + Sync;
    type Outcome: Send;

    /// Uses a new connection for the next request.
    fn reconnect(&mut self);

    /// `place` is a partition or a queue.
    fn perform(
        &mut self,
        place: &str,
        action: &Self::Action,
    ) -> impl Future<Output = Heard<Self::Outcome>> + Send;
}

#[derive(Debug)]
pub enum Heard<O> {
    Outcome(O),
    /// No server accepted the request.
    NotSent(String),
    /// An answer that can't be part of any history: impossible in any order.
    Strange(String),
}

#[derive(Debug)]
pub struct Client<T> {
    pub number: u32,
    pub exchange: T,
    pub clock: Clock,
    /// Whether the server is running.
    pub up: watch::Receiver<bool>,
}

/// What all clients of a round have in common.
#[derive(Clone, Debug)]
pub struct Work {
    /// Partitions or queues.
    pub places: Arc<[String]>,
    pub operations: usize,
}

/// Why a client could not continue.
#[derive(Debug)]
pub enum Stopped<O> {
    /// An answer that is impossible in any order, and its operation.
    Strange(String, Box<O>),
    Unreachable(String),
}

/// A request that a server accepted.
#[derive(Debug)]
pub struct Told<O> {
    pub start: Time,
    pub end: Time,
    /// `Err` for an answer that is impossible in any order.
    pub outcome: Result<O, String>,
}

impl<T: Talk> Client<T> {
    /// Until a server accepts the request; `Err` if none does.
    pub async fn tell(&mut self, place: &str, action: &T::Action) -> Result<Told<T::Outcome>, String> {
        let mut why = String::new();
        for _ in 0..NOT_SENT_MAX {
            // An error means that this server is never killed.
            if self.up.has_changed().unwrap_or(false) {
                // A request that no running server received has no outcome to record.
                self.exchange.reconnect();
            }
            let _ = self.up.wait_for(|up| *up).await;
            let start = self.clock.now();
            let heard = self.exchange.perform(place, action).await;
            let end = self.clock.now();
            let outcome = match heard {
                Heard::Outcome(outcome) => Ok(outcome),
                Heard::Strange(answer) => Err(answer),
                Heard::NotSent(trouble) => {
                    why = trouble;
                    continue;
                }
            };
            return Ok(Told { start, end, outcome });
        }
        Err(why)
    }
}

impl<T: Talk<Action = Action, Outcome = Outcome>> Client<T> {
    pub async fn work(
        &mut self,
        work: &Work,
        mut random: Random,
        mut chooser: Chooser,
    ) -> (Vec<Operation>, Option<Stopped<Operation>>) {
        let mut history = Vec::with_capacity(work.operations);
        for _ in 0..work.operations {
            let partition = random.pick(&work.places);
            let action = chooser.choose(&partition);
            match self.perform(partition.clone(), action).await {
                Ok(operation) => {
                    if operation.outcome == Outcome::TurnedAway {
                        tokio::time::sleep(TURNED_AWAY_PAUSE).await;
                    }
                    chooser.learn(&partition, &operation.action, &operation.outcome);
                    history.push(operation);
                }
                Err(stopped) => return (history, Some(stopped)),
            }
        }
        (history, None)
    }

    pub async fn perform(
        &mut self,
        partition: String,
        action: Action,
    ) -> Result<Operation, Stopped<Operation>> {
        let Told { start, end, outcome } =
            self.tell(&partition, &action).await.map_err(Stopped::Unreachable)?;
        let (outcome, strange) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(answer) => (Outcome::Unknown { until: None }, Some(answer)),
        };
        let operation = Operation { client: self.number, partition, start, end, action, outcome };
        match strange {
            None => Ok(operation),
            Some(answer) => Err(Stopped::Strange(answer, Box::new(operation))),
        }
    }
}
