//! A run with queues: rounds against one own server or some endpoints. Each round is judged as soon as it is recorded.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::ServiceKind;
use serde::Serialize;

use super::client::{Client, Work};
use super::queue_exchange::QueueExchange;
use super::queue_round;
use super::round::Recorded;
use super::run::{epoch_nanos, save};
use super::stage::{Stage, Target};
use crate::queues::history::{QueueAction, QueueOperation, QueueOutcome, by_queue};
use crate::queues::judge::{Verdict, judge};
use crate::queues::timeline;
use crate::random::Random;

const CREATIONS_MAX: usize = 60;
const CREATE_AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct QueuePlan {
    pub rounds: u64,
    pub seed: u64,
    pub clients: u32,
    /// Queues of each round; each gives one history.
    pub queues: usize,
    /// Operations of each client in each round.
    pub operations: usize,
    /// How long to wait for messages that are owed when a queue seems to be empty.
    pub patience: Duration,
    /// Places that the judge may visit for a message.
    pub places: usize,
    /// Where histories with a violation are saved.
    pub save: PathBuf,
    /// No round begins after this file is removed.
    pub watched: Option<PathBuf>,
}

/// Everything counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueSummary {
    pub seed: u64,
    pub rounds: u64,
    pub histories: u64,
    pub operations: u64,
    pub messages: u64,
    pub deliveries: u64,
    /// Deliveries of a message that had been delivered before.
    pub redeliveries: u64,
    /// Receipts that were refused.
    pub refused: u64,
    pub kills: u64,
    /// Requests that a busy server did not do.
    pub turned_away: u64,
    /// Requests without an answer.
    pub unknown: u64,
    pub undecided: u64,
    pub violations: u64,
    /// Answers that are impossible in any order.
    pub strange: u64,
    /// The most places that a message took.
    pub places_most: usize,
    pub seconds: f64,
    pub judging_seconds: f64,
}

impl QueueSummary {
    pub fn is_good(&self) -> bool {
        self.violations == 0 && self.strange == 0
    }
}

/// Prints a line for each round. `Err` if the run could not continue, whatever the verdicts are.
pub async fn run_queues(target: Target, plan: QueuePlan) -> Result<QueueSummary, String> {
    let started = Instant::now();
    let mut stage = Stage::set(target, plan.seed)?;
    let targets = stage.targets(ServiceKind::Queue)?;
    let mut clients: Vec<Client<QueueExchange>> = (0..plan.clients)
        .map(|number| {
            let target = targets[number as usize % targets.len()].clone();
            let (clock, up) = (stage.clock, stage.is_up.clone());
            Client { number, exchange: QueueExchange::new(target), clock, up }
        })
        .collect();
    // The store may have queues of another run.
    let run = (plan.seed ^ epoch_nanos()) as u32;
    let mut summary = QueueSummary { seed: plan.seed, ..QueueSummary::default() };
    for round in 0..plan.rounds {
        if plan.watched.as_ref().is_some_and(|file| !file.exists()) {
            break;
        }
        let queues: Vec<String> =
            (0..plan.queues).map(|queue| format!("histories-{run:08x}-{round}-{queue}")).collect();
        let first = clients.first_mut().ok_or("it takes at least one client")?;
        for queue in &queues {
            create(first, queue).await?;
        }
        let work = Work { places: queues.clone().into(), operations: plan.operations };
        let seed = Random::numbered(plan.seed, round).draw();
        let recorded =
            queue_round::record(&mut clients, &mut stage.killer, work, plan.patience, seed).await?;
        tokio::task::block_in_place(|| summary.judge(round, recorded, &plan))?;
        summary.seconds = started.elapsed().as_secs_f64();
        if let Some(first) = clients.first_mut().filter(|_| stage.is_foreign) {
            for queue in &queues {
                // Verdicts do not depend on it, and the store may be failing on purpose just now.
                if let Err(why) = first.exchange.delete(queue).await {
                    println!("a queue of this run could not be deleted: {why}");
                }
            }
        }
    }
    Ok(summary)
}

/// Again and again: a store that several front ends share may be failing on purpose just now.
async fn create(client: &mut Client<QueueExchange>, queue: &str) -> Result<(), String> {
    let mut made = client.exchange.create(queue).await;
    for _ in 0..CREATIONS_MAX {
        if made.is_ok() {
            break;
        }
        tokio::time::sleep(CREATE_AGAIN).await;
        made = client.exchange.create(queue).await;
    }
    made
}

impl QueueSummary {
    fn judge(
        &mut self,
        round: u64,
        recorded: Recorded<QueueOperation>,
        plan: &QueuePlan,
    ) -> Result<(), String> {
        let started = Instant::now();
        let (before, operations) = (self.clone(), recorded.operations.len());
        self.rounds += 1;
        self.kills += recorded.kills as u64;
        for answer in &recorded.strange {
            self.strange += 1;
            println!("round {round}: impossible in any order: {answer}");
        }
        for (queue, history) in by_queue(recorded.operations) {
            self.count(&history);
            match judge(&history, plan.places) {
                Verdict::Possible { messages, places } => {
                    self.messages += messages as u64;
                    self.places_most = self.places_most.max(places);
                }
                Verdict::Undecided(message) => {
                    self.undecided += 1;
                    let saved = save(&history, &plan.save, plan.seed, &queue)?;
                    println!("round {round}: message #{message} is undecided, saved as {saved}");
                }
                Verdict::Violation(violation) => {
                    self.violations += 1;
                    print!("round {round}: {}", timeline::render(&history, &violation));
                    println!("saved as {}", save(&history, &plan.save, plan.seed, &queue)?);
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        self.judging_seconds += seconds;
        println!(
            "round {round}: {} queues, {operations} operations, {} messages, {} kills, {} unknown, {} undecided, {} \
             violations, judged in {:.0} ms",
            self.histories - before.histories,
            self.messages - before.messages,
            self.kills - before.kills,
            self.unknown - before.unknown,
            self.undecided - before.undecided,
            self.violations - before.violations,
            seconds * 1000.0
        );
        Ok(())
    }

    fn count(&mut self, history: &[QueueOperation]) {
        self.histories += 1;
        self.operations += history.len() as u64;
        for operation in history {
            match &operation.outcome {
                QueueOutcome::Taken(taken) => {
                    let again = taken.iter().filter(|taken| taken.shown.dequeue_count > 1);
                    self.deliveries += taken.len() as u64;
                    self.redeliveries += again.count() as u64;
                }
                QueueOutcome::NotFound => self.refused += 1,
                QueueOutcome::TurnedAway => self.turned_away += 1,
                QueueOutcome::Unknown { .. } if !matches!(operation.action, QueueAction::Peek { .. }) => {
                    self.unknown += 1;
                }
                _ => {}
            }
        }
    }
}
