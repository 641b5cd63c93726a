//! An operation as the search needs it: with numbered rows, with versions linked to their writes, and without the rest.

use std::collections::BTreeMap;

use crate::history::{Action, EXTRAS, Found, Operation, Outcome, Refusal, Time, Verb, WRITER, Write};
use crate::state::{Change, Condition, Part, State, Values};
use crate::versions::Versions;

#[derive(Clone, Debug)]
pub struct Step {
    /// Its index in the history.
    pub operation: usize,
    pub start: Time,
    /// If it was done, it was done no later than this.
    pub end: Time,
    /// Whether it was certainly done.
    pub required: bool,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Write(Vec<Part>),
    /// These conditions held and the last one did not.
    Refused {
        held: Vec<(usize, Condition)>,
        failed: Option<(usize, Condition, Refusal)>,
    },
    /// Rows as they were seen; `None` is a missing row.
    Look(Vec<(usize, Option<Seen>)>),
}

pub type Seen = (crate::history::Version, Values);

/// The names of the rows of a history, in order.
pub fn rows(history: &[Operation]) -> Vec<String> {
    let mut rows = std::collections::BTreeSet::new();
    for operation in history {
        rows.extend(operation.writes().iter().map(|write| write.row.clone()));
        if let Action::Get { row } = &operation.action {
            rows.insert(row.clone());
        }
        if let Outcome::Found(found) = &operation.outcome {
            rows.extend(found.iter().map(|found| found.row.clone()));
        }
    }
    rows.into_iter().collect()
}

/// The steps of a history, in the order of their starts. Reads without an answer, and operations that a busy server
/// turned away, are left out.
pub fn steps(history: &[Operation], rows: &[String], versions: &Versions) -> Vec<Step> {
    let numbers: BTreeMap<&str, usize> =
        rows.iter().enumerate().map(|(number, row)| (row.as_str(), number)).collect();
    let mut steps: Vec<Step> = history
        .iter()
        .enumerate()
        .filter_map(|(operation, recorded)| {
            let kind = kind(recorded, &numbers, versions)?;
            let seen = || recorded.writes().iter().filter_map(|write| versions.seen_by(write.number)).min();
            let (end, required) = match recorded.outcome {
                Outcome::Unknown { until } => match (until.unwrap_or(Time::MAX), seen()) {
                    (until, None) => (until, false),
                    (until, Some(seen)) => (until.min(seen), true),
                },
                _ => (recorded.end, true),
            };
            Some(Step { operation, start: recorded.start, end, required, kind })
        })
        .collect();
    steps.sort_by_key(|step| step.start);
    steps
}

fn kind(operation: &Operation, numbers: &BTreeMap<&str, usize>, versions: &Versions) -> Option<Kind> {
    // `rows` has every row of the history.
    let number = |row: &str| numbers.get(row).copied();
    let condition = |write: &Write| Some((number(&write.row)?, condition(write)));
    match &operation.outcome {
        Outcome::Found(found) => {
            let looked = match &operation.action {
                Action::Get { row } => vec![number(row)?],
                _ => (0..numbers.len()).collect(),
            };
            let mut seen: Vec<(usize, Option<Seen>)> = looked.into_iter().map(|row| (row, None)).collect();
            for found in found {
                let row = number(&found.row)?;
                let place = seen.iter_mut().find(|(looked, _)| *looked == row)?;
                place.1 = Some((found.version, values_found(found)));
            }
            Some(Kind::Look(seen))
        }
        Outcome::Refused { index, refusal } => {
            let held = operation.writes().iter().take(*index).filter_map(condition).collect();
            let (row, condition) = operation.writes().get(*index).and_then(condition)?;
            Some(Kind::Refused { held, failed: Some((row, condition, *refusal)) })
        }
        Outcome::TurnedAway => None,
        Outcome::Done(_) | Outcome::Unknown { .. } => {
            let parts = operation.writes().iter().filter_map(|write| {
                let (row, condition) = condition(write)?;
                let version = versions.of(write.number);
                Some(Part { row, condition, change: change(write), version })
            });
            let parts: Vec<Part> = parts.collect();
            (!parts.is_empty()).then_some(Kind::Write(parts))
        }
    }
}

fn condition(write: &Write) -> Condition {
    match (write.verb, write.if_match) {
        (Verb::Insert, _) => Condition::Absent,
        (Verb::InsertOrReplace | Verb::InsertOrMerge, _) => Condition::Anything,
        (Verb::Replace | Verb::Merge | Verb::Delete, None) => Condition::Exists,
        (Verb::Replace | Verb::Merge | Verb::Delete, Some(version)) => Condition::Version(version),
    }
}

fn change(write: &Write) -> Change {
    let mut values = Values::default();
    values[0] = write.number;
    for (value, name) in values[1..].iter_mut().zip(EXTRAS) {
        if write.extras.iter().any(|extra| extra == name) {
            *value = write.number;
        }
    }
    match write.verb {
        Verb::Insert | Verb::InsertOrReplace | Verb::Replace => Change::Put(values),
        Verb::InsertOrMerge | Verb::Merge => Change::Merge(values),
        Verb::Delete => Change::Delete,
    }
}

fn values_found(found: &Found) -> Values {
    let mut values = Values::default();
    for (value, name) in values.iter_mut().zip([WRITER].iter().chain(&EXTRAS)) {
        *value = found.values.get(*name).copied().unwrap_or(0);
    }
    values
}

impl Step {
    pub fn changes_nothing(&self) -> bool {
        !matches!(self.kind, Kind::Write(_))
    }

    pub fn parts(&self) -> &[Part] {
        match &self.kind {
            Kind::Write(parts) => parts,
            _ => &[],
        }
    }

    /// Whether it can happen in this state with its outcome.
    pub fn agrees_with(&self, state: &State) -> bool {
        match &self.kind {
            Kind::Write(parts) => parts.iter().all(|part| state[part.row].refuses(part.condition).is_none()),
            Kind::Refused { held, failed } => {
                held.iter().all(|(row, condition)| state[*row].refuses(*condition).is_none())
                    && failed.is_none_or(|(row, condition, why)| {
                        state[row].refuses(condition).is_some_and(|reason| why.tells(reason))
                    })
            }
            Kind::Look(seen) => seen.iter().all(|(row, seen)| state[*row].entity == *seen),
        }
    }

    /// Whether it can still happen in a later state, if versions only grow.
    pub fn may_come(&self, state: &State) -> bool {
        let conditions_may = |(row, condition): (usize, Condition)| match condition {
            Condition::Version(version) => state[row].may_become(version),
            _ => true,
        };
        match &self.kind {
            Kind::Write(parts) => parts.iter().all(|part| {
                conditions_may((part.row, part.condition))
                    && (part.version == crate::state::UNSEEN || part.version > state[part.row].latest)
            }),
            Kind::Refused { held, .. } => held.iter().copied().all(conditions_may),
            Kind::Look(seen) => {
                seen.iter().all(|(row, seen)| seen.is_none_or(|(version, _)| state[*row].may_become(version)))
            }
        }
    }

    /// The part of the step that concerns one row; `None` if nothing does.
    pub fn onto(&self, row: usize) -> Option<Self> {
        let kind = match &self.kind {
            Kind::Write(parts) => {
                Kind::Write(parts.iter().filter(|part| part.row == row).cloned().collect::<Vec<_>>())
            }
            Kind::Refused { held, failed } => Kind::Refused {
                held: held.iter().copied().filter(|(held, _)| *held == row).collect(),
                failed: failed.filter(|(failed, ..)| *failed == row),
            },
            Kind::Look(seen) => Kind::Look(seen.iter().copied().filter(|(seen, _)| *seen == row).collect()),
        };
        let empty = match &kind {
            Kind::Write(parts) => parts.is_empty(),
            Kind::Refused { held, failed } => held.is_empty() && failed.is_none(),
            Kind::Look(seen) => seen.is_empty(),
        };
        (!empty).then_some(Self { kind, ..*self })
    }
}
