//! Links versions to the writes that made them, and finds violations that need no search.
//!
//! An acknowledgement gives the version of a write. So does every read of an entity, by its `Writer` and its ETag.

use std::collections::HashMap;

use crate::history::{Operation, Outcome, Time, Version, WRITER, Write};
use crate::state::UNSEEN;

#[derive(Debug, Default)]
pub struct Versions {
    by_number: HashMap<u32, Version>,
    /// When a write was first seen by a reader.
    seen: HashMap<u32, Time>,
}

/// Operations that contradict each other, and why.
#[derive(Debug)]
pub struct Contradiction {
    pub why: String,
    pub operations: Vec<usize>,
}

/// A version, the write that made it, and the operation that shows it.
struct Bond<'a> {
    row: &'a str,
    number: u32,
    version: Version,
    witness: usize,
}

impl Versions {
    /// The version that this write made, if it is known.
    pub fn of(&self, number: u32) -> Version {
        self.by_number.get(&number).copied().unwrap_or(UNSEEN)
    }

    /// When this write was done at the latest, because a reader has seen it.
    pub fn seen_by(&self, number: u32) -> Option<Time> {
        self.seen.get(&number).copied()
    }

    pub fn bind(history: &[Operation]) -> Result<Self, Contradiction> {
        let writes = writes(history)?;
        let bonds = bonds(history)?;
        let mut by_number: HashMap<u32, &Bond<'_>> = HashMap::new();
        let mut by_version: HashMap<(&str, Version), &Bond<'_>> = HashMap::new();
        for bond in &bonds {
            let Some((writer, write)) = writes.get(&bond.number) else {
                let why =
                    format!("{} was seen with a write that nobody sent: number {}", bond.row, bond.number);
                return Err(Contradiction { why, operations: vec![bond.witness] });
            };
            let both = |why: String, other: usize| {
                let mut operations = vec![*writer, bond.witness, other];
                operations.sort_unstable();
                operations.dedup();
                Err(Contradiction { why, operations })
            };
            if write.row != bond.row {
                return both(format!("{} was seen with a write to {}", bond.row, write.row), *writer);
            }
            if let Outcome::Refused { .. } | Outcome::TurnedAway = history[*writer].outcome {
                return both(format!("a refused write left its mark on {}", bond.row), *writer);
            }
            if let Some(other) = by_number.insert(bond.number, bond).filter(|o| o.version != bond.version) {
                return both(format!("one write gave {} two versions", bond.row), other.witness);
            }
            let other = by_version.insert((bond.row, bond.version), bond);
            if let Some(other) = other.filter(|other| other.number != bond.number) {
                return both(format!("two writes gave {} the same version", bond.row), other.witness);
            }
        }
        let mut versions = Self::default();
        for bond in &bonds {
            versions.by_number.insert(bond.number, bond.version);
            let end = history[bond.witness].end;
            let first = versions.seen.entry(bond.number).or_insert(end);
            *first = end.min(*first);
        }
        versions.check_growth(history)?;
        Ok(versions)
    }

    /// An acknowledged write that began after another had ended must have a greater version.
    fn check_growth(&self, history: &[Operation]) -> Result<(), Contradiction> {
        let done = |operation: &Operation| matches!(operation.outcome, Outcome::Done(_));
        let mut ended: HashMap<&str, Vec<(Time, Version, usize)>> = HashMap::new();
        for (index, operation) in history.iter().enumerate().filter(|(_, operation)| done(operation)) {
            for write in operation.writes() {
                let version = self.of(write.number);
                if version != UNSEEN {
                    ended.entry(&write.row).or_default().push((operation.end, version, index));
                }
            }
        }
        for list in ended.values_mut() {
            list.sort_unstable();
            // In the order of the ends, each with the greatest version so far.
            for at in 1..list.len() {
                if list[at - 1].1 > list[at].1 {
                    (list[at].1, list[at].2) = (list[at - 1].1, list[at - 1].2);
                }
            }
        }
        for (index, operation) in history.iter().enumerate() {
            for write in operation.writes() {
                let (version, list) = (self.of(write.number), ended.get(write.row.as_str()));
                let before = list.map_or(&[][..], |list| {
                    &list[..list.partition_point(|(end, ..)| *end < operation.start)]
                });
                if let Some((_, earlier, other)) = before.last()
                    && version != UNSEEN
                    && version < *earlier
                {
                    let why = format!("a later write gave {} a smaller version", write.row);
                    return Err(Contradiction { why, operations: vec![*other, index] });
                }
            }
        }
        Ok(())
    }
}

fn writes(history: &[Operation]) -> Result<HashMap<u32, (usize, &Write)>, Contradiction> {
    let mut writes = HashMap::new();
    for (index, operation) in history.iter().enumerate() {
        for write in operation.writes() {
            if let Some((other, _)) = writes.insert(write.number, (index, write)) {
                let why =
                    format!("not a history that can be judged: two writes have number {}", write.number);
                return Err(Contradiction { why, operations: vec![other, index] });
            }
        }
    }
    Ok(writes)
}

fn bonds(history: &[Operation]) -> Result<Vec<Bond<'_>>, Contradiction> {
    let mut bonds = Vec::new();
    for (witness, operation) in history.iter().enumerate() {
        match &operation.outcome {
            Outcome::Done(versions) => {
                for (write, version) in operation.writes().iter().zip(versions) {
                    if let Some(version) = *version {
                        bonds.push(Bond { row: &write.row, number: write.number, version, witness });
                    }
                }
            }
            Outcome::Found(found) => {
                for found in found {
                    let Some(number) = found.values.get(WRITER).copied() else {
                        let why = format!("{} was seen without {WRITER}, which every write has", found.row);
                        return Err(Contradiction { why, operations: vec![witness] });
                    };
                    bonds.push(Bond { row: &found.row, number, version: found.version, witness });
                }
            }
            Outcome::Refused { .. } | Outcome::TurnedAway | Outcome::Unknown { .. } => {}
        }
    }
    Ok(bonds)
}
