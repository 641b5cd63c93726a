//! Chooses what a client does next, with ETags that it has seen: mostly the last one, sometimes a stale one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::history::{Action, EXTRAS, Outcome, Refusal, Verb, Version, Write};
use crate::random::Random;

/// Versions of a row that a client remembers.
const MEMORY_MAX: usize = 8;

const VERBS: [Verb; 6] =
    [Verb::Insert, Verb::InsertOrReplace, Verb::InsertOrMerge, Verb::Replace, Verb::Merge, Verb::Delete];

/// What there is to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repertoire {
    Entities,
    /// Single writes of whole blobs: no batches, no queries, nothing that is kept of what was there.
    Blobs,
}

impl Repertoire {
    /// All that is there at the end of a round.
    pub fn last_looks(self, rows: &[String]) -> Vec<Action> {
        match self {
            Self::Entities => vec![Action::Query],
            Self::Blobs => rows.iter().map(|row| Action::Get { row: row.clone() }).collect(),
        }
    }
}

#[derive(Debug)]
pub struct Chooser {
    repertoire: Repertoire,
    random: Random,
    rows: Vec<String>,
    /// Shared by all clients that write to the same partitions.
    numbers: Arc<AtomicU32>,
    memory: HashMap<(String, String), Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// In the order in which they were seen.
    versions: Vec<Version>,
    there: bool,
}

impl Chooser {
    pub fn new(repertoire: Repertoire, random: Random, rows: Vec<String>, numbers: Arc<AtomicU32>) -> Self {
        Self { repertoire, random, rows, numbers, memory: HashMap::new() }
    }

    pub fn choose(&mut self, partition: &str) -> Action {
        let row = self.random.pick(&self.rows);
        match self.random.below(100) {
            0..20 => Action::Get { row },
            20..32 if self.repertoire == Repertoire::Blobs => Action::Get { row },
            20..32 => Action::Query,
            32..52 if self.rows.len() > 1 && self.repertoire == Repertoire::Entities => {
                let mut rows = self.rows.clone();
                let count = 2 + self.random.below(rows.len() - 1);
                let picked = (0..count).map(|_| rows.remove(self.random.below(rows.len())));
                let picked: Vec<String> = picked.collect();
                // One refusal is enough to refuse a batch, so its writes are chosen with more care.
                Action::Batch(picked.into_iter().map(|row| self.write(partition, row, 90)).collect())
            }
            _ => Action::Write(self.write(partition, row, 60)),
        }
    }

    /// `care` is the chance in percent that a verb is chosen that may succeed.
    fn write(&mut self, partition: &str, row: String, care: usize) -> Write {
        let memory = self.memory.get(&(partition.to_owned(), row.clone()));
        let (there, versions) =
            memory.map_or((false, Vec::new()), |memory| (memory.there, memory.versions.clone()));
        let mut verb = self.random.pick(&VERBS);
        if self.random.chance(care) {
            verb = match (verb, there) {
                (Verb::Insert, true) => Verb::Replace,
                (Verb::Replace | Verb::Delete, false) => Verb::Insert,
                (Verb::Merge, false) => Verb::InsertOrMerge,
                (verb, _) => verb,
            };
        }
        let conditional = matches!(verb, Verb::Replace | Verb::Merge | Verb::Delete);
        let if_match = match versions.last() {
            Some(last) if conditional && self.random.chance(60) => {
                Some(if self.random.chance(80) { *last } else { self.random.pick(&versions) })
            }
            _ => None,
        };
        let extras: &[&str] = if self.repertoire == Repertoire::Entities { &EXTRAS } else { &[] };
        let extras =
            extras.iter().filter(|_| self.random.chance(50)).map(|name| (*name).to_owned()).collect();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        Write { verb, row, if_match, number, extras }
    }

    pub fn learn(&mut self, partition: &str, action: &Action, outcome: &Outcome) {
        let writes: &[Write] = match action {
            Action::Write(write) => std::slice::from_ref(write),
            Action::Batch(writes) => writes,
            Action::Get { row } => {
                self.remember(partition, row, None);
                &[]
            }
            Action::Query => {
                self.rows.clone().iter().for_each(|row| self.remember(partition, row, None));
                &[]
            }
        };
        match outcome {
            Outcome::Done(versions) => {
                for (write, version) in writes.iter().zip(versions) {
                    self.remember(partition, &write.row, *version);
                }
            }
            Outcome::Refused { index, refusal } => {
                if let Some(write) = writes.get(*index) {
                    let there = !matches!(refusal, Refusal::ResourceNotFound | Refusal::ConditionNotMet);
                    self.memory.entry((partition.to_owned(), write.row.clone())).or_default().there = there;
                }
            }
            Outcome::Found(found) => {
                found.iter().for_each(|found| self.remember(partition, &found.row, Some(found.version)));
            }
            Outcome::TurnedAway | Outcome::Unknown { .. } => {}
        }
    }

    fn remember(&mut self, partition: &str, row: &str, version: Option<Version>) {
        let memory = self.memory.entry((partition.to_owned(), row.to_owned())).or_default();
        memory.there = version.is_some();
        if let Some(version) = version.filter(|version| !memory.versions.contains(version)) {
            memory.versions.push(version);
            if memory.versions.len() > MEMORY_MAX {
                memory.versions.remove(0);
            }
        }
    }
}
