//! One client of a round. It performs one operation after the other and records the times of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::exchange::{Exchange, Heard};
use crate::choice::Chooser;
use crate::history::{Action, Operation, Outcome, Time};
use crate::random::Random;

/// How often a client tries again if no server accepts its request: for more than a minute, so that a front end can
/// restart.
const NOT_SENT_MAX: usize = 80;

/// The pause after an answer that the server is busy.
const TURNED_AWAY_PAUSE: Duration = Duration::from_millis(50);

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

#[derive(Debug)]
pub struct Client {
    pub number: u32,
    pub exchange: Exchange,
    pub clock: Clock,
    /// Whether the server is running.
    pub up: watch::Receiver<bool>,
}

/// What all clients of a round have in common.
#[derive(Clone, Debug)]
pub struct Work {
    pub partitions: Arc<[String]>,
    pub operations: usize,
}

/// Why a client could not continue.
#[derive(Debug)]
pub enum Stopped {
    /// An answer that is impossible in any order, and its operation.
    Strange(String, Box<Operation>),
    Unreachable(String),
}

impl Client {
    pub async fn work(
        &mut self,
        work: &Work,
        mut random: Random,
        mut chooser: Chooser,
    ) -> (Vec<Operation>, Option<Stopped>) {
        let mut history = Vec::with_capacity(work.operations);
        for _ in 0..work.operations {
            let partition = random.pick(&work.partitions);
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

    pub async fn perform(&mut self, partition: String, action: Action) -> Result<Operation, Stopped> {
        let mut why = String::new();
        for _ in 0..NOT_SENT_MAX {
            // An error means that this server is never killed.
            if self.up.has_changed().unwrap_or(false) {
                // A request that no running server received has no outcome to record.
                self.exchange.reconnect();
            }
            let _ = self.up.wait_for(|up| *up).await;
            let start = self.clock.now();
            let heard = self.exchange.perform(&partition, &action).await;
            let (client, end) = (self.number, self.clock.now());
            let (outcome, strange) = match heard {
                Heard::Outcome(outcome) => (outcome, None),
                Heard::Strange(answer) => (Outcome::Unknown { until: None }, Some(answer)),
                Heard::NotSent(trouble) => {
                    why = trouble;
                    continue;
                }
            };
            let operation = Operation { client, partition, start, end, action, outcome };
            return match strange {
                None => Ok(operation),
                Some(answer) => Err(Stopped::Strange(answer, Box::new(operation))),
            };
        }
        Err(Stopped::Unreachable(why))
    }
}
