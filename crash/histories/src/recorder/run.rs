//! A run: rounds against one own server or some endpoints. Each round is judged as soon as it is recorded.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use common::ServiceKind;
use serde::Serialize;

use super::client::{Client, Work};
use super::exchange::Exchange;
use super::round::{self, Recorded};
use super::stage::{Stage, Target};
use crate::history::{self, Action, Operation, Outcome};
use crate::judge::{Verdict, judge};
use crate::random::Random;
use crate::timeline;

#[derive(Clone, Debug)]
pub struct Plan {
    pub rounds: u64,
    pub seed: u64,
    pub clients: u32,
    pub partitions: usize,
    pub rows: usize,
    /// Operations of each client in each round.
    pub operations: usize,
    /// Places that the judge may visit in a history.
    pub places: usize,
    /// Where histories with a violation are saved.
    pub save: PathBuf,
    /// No round begins after this file is removed.
    pub watched: Option<PathBuf>,
}

/// Everything counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub seed: u64,
    pub rounds: u64,
    pub histories: u64,
    pub operations: u64,
    pub gets: u64,
    pub queries: u64,
    pub batches: u64,
    pub refused: u64,
    pub kills: u64,
    /// Reads and writes that a busy server did not do.
    pub turned_away: u64,
    /// Writes with an unknown outcome.
    pub unknown: u64,
    pub undecided: u64,
    pub violations: u64,
    /// Answers that are impossible in any order.
    pub strange: u64,
    /// The most places that a linearizable history took.
    pub places_most: usize,
    pub seconds: f64,
    pub judging_seconds: f64,
}

impl Summary {
    pub fn is_good(&self) -> bool {
        self.violations == 0 && self.strange == 0
    }
}

/// Prints a line for each round. `Err` if the run could not continue, whatever the verdicts are.
pub async fn run(target: Target, plan: Plan) -> Result<Summary, String> {
    let started = Instant::now();
    let mut stage = Stage::set(target, plan.seed)?;
    let targets = stage.targets(ServiceKind::Table)?;
    // The store may have the table of another run.
    let table = format!("histories{:08x}", (plan.seed ^ epoch_nanos()) as u32);
    let mut clients: Vec<Client<Exchange>> = (0..plan.clients)
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
    let mut summary = Summary { seed: plan.seed, ..Summary::default() };
    for round in 0..plan.rounds {
        if plan.watched.as_ref().is_some_and(|file| !file.exists()) {
            break;
        }
        let partitions = (0..plan.partitions).map(|partition| format!("{round}-{partition}")).collect();
        let work = Work { places: partitions, operations: plan.operations };
        let seed = Random::numbered(plan.seed, round).draw();
        let recorded = round::record(&mut clients, &mut stage.killer, work, &rows, seed).await?;
        tokio::task::block_in_place(|| summary.judge(round, recorded, &plan))?;
        summary.seconds = started.elapsed().as_secs_f64();
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
    fn judge(&mut self, round: u64, recorded: Recorded<Operation>, plan: &Plan) -> Result<(), String> {
        let started = Instant::now();
        let (before, operations) = (self.clone(), recorded.operations.len());
        self.rounds += 1;
        self.kills += recorded.kills as u64;
        for answer in &recorded.strange {
            self.strange += 1;
            println!("round {round}: impossible in any order: {answer}");
        }
        for (partition, history) in history::by_partition(recorded.operations) {
            self.count(&history);
            match judge(&history, plan.places) {
                Verdict::Linearizable { places } => self.places_most = self.places_most.max(places),
                Verdict::Undecided => {
                    self.undecided += 1;
                    let saved = save(&history, &plan.save, plan.seed, &partition)?;
                    println!("round {round}: undecided, saved as {saved}");
                }
                Verdict::Violation(violation) => {
                    self.violations += 1;
                    print!("round {round}: {}", timeline::render(&history, &violation));
                    println!("saved as {}", save(&history, &plan.save, plan.seed, &partition)?);
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        self.judging_seconds += seconds;
        println!(
            "round {round}: {} histories, {operations} operations, {} kills, {} unknown, {} undecided, {} violations, \
             judged in {:.0} ms",
            self.histories - before.histories,
            self.kills - before.kills,
            self.unknown - before.unknown,
            self.undecided - before.undecided,
            self.violations - before.violations,
            seconds * 1000.0
        );
        Ok(())
    }

    fn count(&mut self, history: &[Operation]) {
        self.histories += 1;
        self.operations += history.len() as u64;
        for operation in history {
            match operation.action {
                Action::Get { .. } => self.gets += 1,
                Action::Query => self.queries += 1,
                Action::Batch(_) => self.batches += 1,
                Action::Write(_) => {}
            }
            match operation.outcome {
                Outcome::Refused { .. } => self.refused += 1,
                Outcome::TurnedAway => self.turned_away += 1,
                Outcome::Unknown { .. } if !operation.writes().is_empty() => self.unknown += 1,
                _ => {}
            }
        }
    }
}

/// Where it is saved. `place` is a partition or a queue.
pub fn save<O: Serialize>(history: &[O], folder: &Path, seed: u64, place: &str) -> Result<String, String> {
    let path = folder.join(format!("history-{seed}-{place}.jsonl"));
    let saved = File::create(&path).and_then(|file| history::save(history, &mut BufWriter::new(file)));
    saved.map_err(|error| format!("can't write {}: {error}; --save names a folder", path.display()))?;
    Ok(path.display().to_string())
}

pub fn epoch_nanos() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
