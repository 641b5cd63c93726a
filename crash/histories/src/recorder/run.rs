//! A run: rounds against one own server or some endpoints. Each round is judged as soon as it is recorded.

use std::time::Instant;

use common::ServiceKind;
use serde::Serialize;

use super::client::{Client, Work};
use super::exchange::Exchange;
use super::round::{self, Recorded};
use super::stage::{Stage, Target};
use super::totals::{RunPlan, Totals};
use crate::choice::Repertoire;
use crate::history::{self, Action, Operation, Outcome};
use crate::judge::{Verdict, judge};
use crate::timeline;

#[derive(Clone, Debug)]
pub struct Plan {
    pub run: RunPlan,
    pub partitions: usize,
    pub rows: usize,
}

/// Everything counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub totals: Totals,
    pub gets: u64,
    pub queries: u64,
    pub batches: u64,
}

/// Prints a line for each round. `Err` if the run could not continue, whatever the verdicts are.
pub async fn run(target: Target, plan: Plan) -> Result<Summary, String> {
    let started = Instant::now();
    let mut stage = Stage::set(target, plan.run.seed)?;
    let targets = stage.targets(ServiceKind::Table)?;
    // The store may have the table of another run.
    let table = format!("histories{:08x}", plan.run.unlike_others());
    let mut clients: Vec<Client<Exchange>> = (0..plan.run.clients)
        .map(|number| {
            let target = targets[number as usize % targets.len()].clone();
            Client {
                number,
                exchange: Exchange::new(target, &table),
                clock: stage.clock,
                up: stage.is_up.clone(),
            }
        })
        .collect();
    let first = clients.first_mut().ok_or("it takes at least one client")?;
    first.exchange.create_table().await?;
    let rows: Vec<String> = (0..plan.rows).map(|row| format!("r{row}")).collect();
    let totals = Totals { seed: plan.run.seed, ..Totals::default() };
    let mut summary = Summary { totals, ..Summary::default() };
    for (round, seed) in plan.run.rounds() {
        let partitions = (0..plan.partitions).map(|partition| format!("{round}-{partition}")).collect();
        let work = Work { places: partitions, operations: plan.run.operations };
        let recorded =
            round::record(&mut clients, &mut stage.killer, work, &rows, Repertoire::Entities, seed).await?;
        tokio::task::block_in_place(|| summary.judge(round, recorded, &plan))?;
        summary.totals.seconds = started.elapsed().as_secs_f64();
    }
    if let Some(first) = clients.first_mut().filter(|_| stage.is_foreign) {
        // Verdicts do not depend on it, and the store may be failing on purpose just now.
        if let Err(why) = first.exchange.delete_table().await {
            println!("a table of this run could not be deleted: {why}");
        }
    }
    Ok(summary)
}

impl Summary {
    pub(super) fn judge(
        &mut self,
        round: u64,
        recorded: Recorded<Operation>,
        plan: &Plan,
    ) -> Result<(), String> {
        let operations = recorded.operations.len();
        let judging = self.totals.begin_judging(round, &recorded);
        for (partition, history) in history::by_partition(recorded.operations) {
            self.count(&history);
            match judge(&history, plan.run.places) {
                Verdict::Linearizable { places } => {
                    self.totals.places_most = self.totals.places_most.max(places);
                }
                Verdict::Undecided => {
                    self.totals.undecided += 1;
                    let saved = plan.run.save(&history, &partition)?;
                    println!("round {round}: undecided, saved as {saved}");
                }
                Verdict::Violation(violation) => {
                    self.totals.violations += 1;
                    print!("round {round}: {}", timeline::render(&history, &violation));
                    println!("saved as {}", plan.run.save(&history, &partition)?);
                }
            }
        }
        let histories = self.totals.histories - judging.before.histories;
        self.totals.end_judging(&judging, &format!("{histories} histories, {operations} operations"));
        Ok(())
    }

    fn count(&mut self, history: &[Operation]) {
        self.totals.histories += 1;
        self.totals.operations += history.len() as u64;
        for operation in history {
            match operation.action {
                Action::Get { .. } => self.gets += 1,
                Action::Query => self.queries += 1,
                Action::Batch(_) => self.batches += 1,
                Action::Write(_) => {}
            }
            match operation.outcome {
                Outcome::Refused { .. } => self.totals.refused += 1,
                Outcome::TurnedAway => self.totals.turned_away += 1,
                Outcome::Unknown { .. } if !operation.writes().is_empty() => self.totals.unknown += 1,
                _ => {}
            }
        }
    }
}
