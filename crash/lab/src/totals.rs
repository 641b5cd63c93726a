//! The results of a command, as text for people and as JSON for documents.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::judge::{Found, Settled};
use crate::operation::{Entry, Outcome};
use crate::writer::Writer;

/// Something that must not happen, and where the evidence is.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    pub round: u64,
    pub what: String,
    pub kept: String,
}

#[derive(Debug, Default, Serialize)]
pub struct Totals {
    pub command: &'static str,
    pub seed: u64,
    pub seconds: u64,
    pub rounds: u64,
    pub kills: u64,
    pub cuts: u64,
    pub injected_errors: u64,
    pub starts: u64,
    pub slowest_start_ms: u64,
    pub acknowledged: u64,
    pub refused: u64,
    pub unknown: u64,
    /// Of the unknown ones, those that were found done.
    pub unknown_done: u64,
    pub rows_read: u64,
    pub gets: u64,
    /// Messages that were looked for: those that had to be there, those that must not, and those in doubt.
    pub messages: u64,
    /// Blobs and snapshots that were read back, byte for byte, and those that readers have read meanwhile.
    pub blobs: u64,
    pub blobs_read: u64,
    /// Sweeps of what no blob needs, and the most objects that no blob needed before one of them.
    pub sweeps: u64,
    pub garbage_max: u64,
    pub violations: Vec<Violation>,
}

impl Totals {
    pub fn new(command: &'static str, seed: u64) -> Self {
        Self { command, seed, ..Self::default() }
    }

    pub fn started(&mut self, since: Instant) {
        self.starts += 1;
        self.slowest_start_ms = self.slowest_start_ms.max(since.elapsed().as_millis() as u64);
    }

    pub fn judged(&mut self, found: &Found, settled: Settled) {
        self.rows_read += found.rows();
        self.gets += found.gets;
        self.unknown += settled.unknown;
        self.unknown_done += settled.taken;
    }

    /// Counts the writers' answers; called once, at the end.
    pub fn answered(&mut self, writers: &[Writer]) {
        for Entry { outcome, .. } in writers.iter().flat_map(|writer| &writer.entries) {
            match outcome {
                Outcome::Done(_) => self.acknowledged += 1,
                Outcome::Refused(_) => self.refused += 1,
                Outcome::Unknown(_) | Outcome::TurnedAway(_) | Outcome::NotTaken => {}
            }
        }
    }

    pub fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.injected_errors += other.injected_errors;
        self.starts += other.starts;
        self.slowest_start_ms = self.slowest_start_ms.max(other.slowest_start_ms);
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.unknown_done += other.unknown_done;
        self.rows_read += other.rows_read;
        self.gets += other.gets;
        self.messages += other.messages;
        self.blobs += other.blobs;
        self.blobs_read += other.blobs_read;
        self.sweeps += other.sweeps;
        self.garbage_max = self.garbage_max.max(other.garbage_max);
        self.violations.extend(other.violations);
    }

    pub fn print(&self) {
        println!("\n{} (seed {}, {} s)", self.command, self.seed, self.seconds);
        for (name, number) in [
            ("rounds", self.rounds),
            ("kills", self.kills),
            ("power cuts", self.cuts),
            ("injected errors", self.injected_errors),
            ("starts", self.starts),
            ("slowest start, ms", self.slowest_start_ms),
            ("operations acknowledged", self.acknowledged),
            ("operations refused", self.refused),
            ("operations unknown", self.unknown),
            ("  of these found done", self.unknown_done),
            ("rows read back", self.rows_read),
            ("rows got one by one", self.gets),
            ("messages looked for", self.messages),
            ("blobs read back", self.blobs),
            ("blobs read meanwhile", self.blobs_read),
            ("sweeps", self.sweeps),
            ("most objects to sweep", self.garbage_max),
            ("violations", self.violations.len() as u64),
        ] {
            println!("  {name:<25}{number:>12}");
        }
        for violation in &self.violations {
            println!(
                "\nVIOLATION in round {}: {}\n  kept: {}",
                violation.round, violation.what, violation.kept
            );
        }
    }

    pub fn write_json(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("can't write {}: {error}", path.display()))
    }
}
