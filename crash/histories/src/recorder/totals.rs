//! What runs with tables and with queues both count, and how their rounds begin and end.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::round::Recorded;
use crate::history;
use crate::random::Random;

/// What every run is told.
#[derive(Clone, Debug)]
pub struct RunPlan {
    pub rounds: u64,
    pub seed: u64,
    pub clients: u32,
    /// Operations of each client in each round.
    pub operations: usize,
    /// Places that the judge may visit in a history of a table, or for a message.
    pub places: usize,
    /// Where histories with a violation are saved.
    pub save: PathBuf,
    /// No round begins after this file is removed.
    pub watched: Option<PathBuf>,
}

impl RunPlan {
    /// The number and the seed of each round, as long as one may begin.
    pub fn rounds(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.rounds)
            .take_while(|_| self.watched.as_ref().is_none_or(|file| file.exists()))
            .map(|round| (round, Random::numbered(self.seed, round).draw()))
    }

    /// For names that no other run has used in the same store.
    pub fn unlike_others(&self) -> u32 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        (self.seed ^ since.map_or(0, |since| since.as_nanos() as u64)) as u32
    }

    /// Where it is saved. `place` is a partition or a queue.
    pub fn save<O: Serialize>(&self, history: &[O], place: &str) -> Result<String, String> {
        let path = self.save.join(format!("history-{}-{place}.jsonl", self.seed));
        let saved = File::create(&path).and_then(|file| history::save(history, &mut BufWriter::new(file)));
        saved.map_err(|error| cant_write(&path, &error))?;
        Ok(path.display().to_string())
    }
}

fn cant_write(path: &Path, error: &std::io::Error) -> String {
    format!("can't write {}: {error}; --save names a folder", path.display())
}

/// Counted over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub seed: u64,
    pub rounds: u64,
    pub histories: u64,
    pub operations: u64,
    /// Writes whose condition did not hold; receipts that were no longer good.
    pub refused: u64,
    pub kills: u64,
    /// Requests that a busy server did not do.
    pub turned_away: u64,
    /// Changes without an answer.
    pub unknown: u64,
    pub undecided: u64,
    pub violations: u64,
    /// Answers that are impossible in any order.
    pub strange: u64,
    /// The most places that a history, or a message, took.
    pub places_most: usize,
    pub seconds: f64,
    pub judging_seconds: f64,
}

impl Totals {
    pub fn is_good(&self) -> bool {
        self.violations == 0 && self.strange == 0
    }

    pub fn begin_judging<O>(&mut self, round: u64, recorded: &Recorded<O>) -> Judging {
        let judging = Judging { round, started: Instant::now(), before: self.clone() };
        self.rounds += 1;
        self.kills += recorded.kills as u64;
        for answer in &recorded.strange {
            self.strange += 1;
            println!("round {round}: impossible in any order: {answer}");
        }
        judging
    }

    /// Prints the round's line. `found` is what it is about.
    pub fn end_judging(&mut self, judging: &Judging, found: &str) {
        let Judging { round, started, before } = judging;
        let seconds = started.elapsed().as_secs_f64();
        self.judging_seconds += seconds;
        println!(
            "round {round}: {found}, {} kills, {} unknown, {} undecided, {} violations, judged in {:.0} ms",
            self.kills - before.kills,
            self.unknown - before.unknown,
            self.undecided - before.undecided,
            self.violations - before.violations,
            seconds * 1000.0
        );
    }
}

/// A round that is being judged.
#[derive(Debug)]
pub struct Judging {
    round: u64,
    started: Instant,
    pub before: Totals,
}
