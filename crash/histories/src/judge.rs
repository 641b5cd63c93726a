//! Judges the history of one partition: versions first, then each entity alone, then the partition as a whole.
//!
//! A violation of one entity is a violation of the partition, but it is found faster and is easier to explain. Batches
//! and queries connect entities, so only the search of the whole partition shows that a history is correct.

use std::collections::HashSet;

use crate::history::{Operation, Outcome};
use crate::search::{Found, Limits, search};
use crate::shrink::shrink;
use crate::step::{self, Step};
use crate::versions::{Contradiction, Versions};

/// Places to visit before a history is called undecided. A correct one needs about one place for each write, and some
/// thousands if many writes had no answer.
pub const PLACES_MAX: usize = 200_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order that explains everything.
    Linearizable {
        places: usize,
    },
    /// The search ended before it was known.
    Undecided,
    Violation(Violation),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub why: String,
    /// The row, if only one is concerned.
    pub row: Option<String>,
    /// The operations that contradict each other, as indexes of the history.
    pub core: Vec<usize>,
    /// Writes that the operations of the core have seen.
    pub context: Vec<usize>,
}

/// The result before it is explained.
enum Decision {
    Order {
        places: usize,
    },
    Undecided,
    Contradiction(Contradiction),
    /// These steps have no order. They are all steps, or those of one row.
    NoOrder {
        steps: Vec<Step>,
        rows: usize,
        row: Option<String>,
    },
}

/// `history` is of one partition, and has everything that was ever sent to it.
pub fn judge(history: &[Operation], places: usize) -> Verdict {
    match decide(history, places) {
        Decision::Order { places } => Verdict::Linearizable { places },
        Decision::Undecided => Verdict::Undecided,
        Decision::Contradiction(Contradiction { why, mut operations }) => {
            operations.sort_unstable();
            Verdict::Violation(Violation { why, row: None, core: operations, context: Vec::new() })
        }
        Decision::NoOrder { steps, rows, row } => {
            Verdict::Violation(explain(history, &steps, rows, row, places))
        }
    }
}

/// The verdict without an explanation; `None` is undecided.
pub fn is_linearizable(history: &[Operation], places: usize) -> Option<bool> {
    match decide(history, places) {
        Decision::Order { .. } => Some(true),
        Decision::Undecided => None,
        Decision::Contradiction(_) | Decision::NoOrder { .. } => Some(false),
    }
}

fn decide(history: &[Operation], places: usize) -> Decision {
    let versions = match Versions::bind(history) {
        Ok(versions) => versions,
        Err(contradiction) => return Decision::Contradiction(contradiction),
    };
    let names = step::rows(history);
    let rows = names.len();
    let steps = step::steps(history, &names, &versions);
    let limits = Limits { places, growing: true };
    for (number, name) in names.iter().enumerate() {
        let alone: Vec<Step> = steps.iter().filter_map(|step| step.onto(number)).collect();
        if let Found::None { .. } = search(&alone, rows, limits) {
            return Decision::NoOrder { steps: alone, rows, row: Some(name.clone()) };
        }
    }
    // An order of the whole partition is also an order of each row, so an undecided row does not matter.
    match search(&steps, rows, limits) {
        Found::Order { places } => Decision::Order { places },
        Found::Undecided => Decision::Undecided,
        Found::None { .. } => Decision::NoOrder { steps, rows, row: None },
    }
}

fn explain(
    history: &[Operation],
    steps: &[Step],
    rows: usize,
    row: Option<String>,
    places: usize,
) -> Violation {
    let scope = row.as_ref().map_or_else(|| "of the partition".to_owned(), |row| format!("of row {row}"));
    let why = match search(steps, rows, Limits { places, growing: false }) {
        Found::Order { .. } => format!("no order {scope} in which versions grow explains these operations"),
        _ => format!("no order {scope} explains these operations"),
    };
    let core = shrink(history, steps, rows);
    let context = context(history, &core, row.as_deref());
    Violation { why, row, core, context }
}

/// The writes whose numbers or versions occur in the core, for the row if there is one.
fn context(history: &[Operation], core: &[usize], row: Option<&str>) -> Vec<usize> {
    let counts = |name: &str| row.is_none_or(|row| row == name);
    let mut numbers = HashSet::new();
    let mut versions = HashSet::new();
    for operation in core.iter().map(|index| &history[*index]) {
        let writes = operation.writes().iter().filter(|write| counts(&write.row));
        versions.extend(writes.filter_map(|write| write.if_match));
        if let Outcome::Found(found) = &operation.outcome {
            let found = found.iter().filter(|found| counts(&found.row));
            numbers.extend(found.flat_map(|found| found.values.values().copied()));
        }
    }
    let made = |operation: &Operation| match &operation.outcome {
        Outcome::Done(made) => made.iter().flatten().any(|made| versions.contains(made)),
        _ => false,
    };
    let wrote =
        |operation: &Operation| operation.writes().iter().any(|write| numbers.contains(&write.number));
    let indexed = history.iter().enumerate().filter(|(index, _)| !core.contains(index));
    indexed.filter(|(_, operation)| made(operation) || wrote(operation)).map(|(index, _)| index).collect()
}
