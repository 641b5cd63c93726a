//! A run with queues: rounds against one own server or some endpoints. Each round is judged as soon as it is recorded.

use std::time::{Duration, Instant};

use common::ServiceKind;
use serde::Serialize;

use super::client::{Client, Work};
use super::queue_exchange::QueueExchange;
use super::queue_round;
use super::round::Recorded;
use super::stage::{Stage, Target};
use super::totals::{RunPlan, Totals};
use crate::queues::history::{QueueAction, QueueOperation, QueueOutcome, by_queue};
use crate::queues::judge::{Verdict, judge};
use crate::queues::timeline;

const CREATIONS_MAX: usize = 60;
const CREATE_AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct QueuePlan {
    pub run: RunPlan,
    /// Queues of each round; each gives one history.
    pub queues: usize,
    /// How long to wait for messages that are owed when a queue seems to be empty.
    pub patience: Duration,
}

/// Everything counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueSummary {
    #[serde(flatten)]
    pub totals: Totals,
    pub messages: u64,
    pub deliveries: u64,
    /// Deliveries of a message that had been delivered before.
    pub redeliveries: u64,
}

/// Prints a line for each round. `Err` if the run could not continue, whatever the verdicts are.
pub async fn run_queues(target: Target, plan: QueuePlan) -> Result<QueueSummary, String> {
    let started = Instant::now();
    let mut stage = Stage::set(target, plan.run.seed)?;
    let targets = stage.targets(ServiceKind::Queue)?;
    let mut clients: Vec<Client<QueueExchange>> = (0..plan.run.clients)
        .map(|number| {
            let target = targets[number as usize % targets.len()].clone();
            let (clock, up) = (stage.clock, stage.is_up.clone());
            Client { number, exchange: QueueExchange::new(target), clock, up }
        })
        .collect();
    // The store may have queues of another run.
    let run = plan.run.unlike_others();
    let totals = Totals { seed: plan.run.seed, ..Totals::default() };
    let mut summary = QueueSummary { totals, ..QueueSummary::default() };
    for (round, seed) in plan.run.rounds() {
        let queues: Vec<String> =
            (0..plan.queues).map(|queue| format!("histories-{run:08x}-{round}-{queue}")).collect();
        let first = clients.first_mut().ok_or("it takes at least one client")?;
        for queue in &queues {
            create(first, queue).await?;
        }
        let work = Work { places: queues.clone().into(), operations: plan.run.operations };
        let recorded =
            queue_round::record(&mut clients, &mut stage.killer, work, plan.patience, seed).await?;
        tokio::task::block_in_place(|| summary.judge(round, recorded, &plan))?;
        summary.totals.seconds = started.elapsed().as_secs_f64();
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
        let (operations, messages_before) = (recorded.operations.len(), self.messages);
        let judging = self.totals.begin_judging(round, &recorded);
        for (queue, history) in by_queue(recorded.operations) {
            self.count(&history);
            match judge(&history, plan.run.places) {
                Verdict::Possible { messages, places } => {
                    self.messages += messages as u64;
                    self.totals.places_most = self.totals.places_most.max(places);
                }
                Verdict::Undecided(message) => {
                    self.totals.undecided += 1;
                    let saved = plan.run.save(&history, &queue)?;
                    println!("round {round}: message #{message} is undecided, saved as {saved}");
                }
                Verdict::Violation(violation) => {
                    self.totals.violations += 1;
                    print!("round {round}: {}", timeline::render(&history, &violation));
                    println!("saved as {}", plan.run.save(&history, &queue)?);
                }
            }
        }
        let queues = self.totals.histories - judging.before.histories;
        let messages = self.messages - messages_before;
        let found = format!("{queues} queues, {operations} operations, {messages} messages");
        self.totals.end_judging(&judging, &found);
        Ok(())
    }

    fn count(&mut self, history: &[QueueOperation]) {
        self.totals.histories += 1;
        self.totals.operations += history.len() as u64;
        for operation in history {
            match &operation.outcome {
                QueueOutcome::Taken(taken) => {
                    let again = taken.iter().filter(|taken| taken.shown.dequeue_count > 1);
                    self.deliveries += taken.len() as u64;
                    self.redeliveries += again.count() as u64;
                }
                QueueOutcome::NotFound => self.totals.refused += 1,
                QueueOutcome::TurnedAway => self.totals.turned_away += 1,
                QueueOutcome::Unknown { .. } if !matches!(operation.action, QueueAction::Peek { .. }) => {
                    self.totals.unknown += 1;
                }
                _ => {}
            }
        }
    }
}
