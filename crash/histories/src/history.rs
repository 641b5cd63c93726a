//! What clients asked and what they heard, as it was recorded: one JSON object a line.
//!
//! Every write that leaves an entity leaves its own number in `Writer`, so that whoever sees the entity knows who
//! wrote it last; the other properties it names get the same number and show what merges kept.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::{Deserialize, Serialize};

/// An ETag as a number that grows as its time does.
pub type Version = i64;

/// Written by every write.
pub const WRITER: &str = "Writer";
/// Written by those that name them.
pub const EXTRAS: [&str; 3] = ["A", "B", "C"];

/// Nanoseconds of one clock that all clients read.
pub type Time = u64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub client: u32,
    pub partition: String,
    /// Read before the request was sent.
    pub start: Time,
    /// Read after the answer had come, or the hope of one was gone.
    pub end: Time,
    pub action: Action,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Write(Write),
    /// Of distinct rows; all or nothing.
    Batch(Vec<Write>),
    Get {
        row: String,
    },
    /// The whole partition.
    Query,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub verb: Verb,
    pub row: String,
    /// For verbs with a condition; none is `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<Version>,
    /// Of this write alone in the whole history; never 0.
    pub number: u32,
    /// Which of the `EXTRAS` it writes.
    #[serde(default)]
    pub extras: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    Insert,
    InsertOrReplace,
    InsertOrMerge,
    Replace,
    Merge,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A new version for each write; none for a delete.
    Done(Vec<Option<Version>>),
    /// Which of the writes could not be done, and why. Nothing was changed.
    Refused { index: usize, refusal: Refusal },
    /// What a get (one at most) or a query showed.
    Found(Vec<Found>),
    /// The server was too busy and did nothing.
    TurnedAway,
    /// May have been done at any time from its start on, or never; but not after `until`.
    Unknown {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    EntityAlreadyExists,
    ResourceNotFound,
    UpdateConditionNotSatisfied,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub row: String,
    pub version: Version,
    pub values: BTreeMap<String, u32>,
}

impl Operation {
    /// What it would write; nothing for a read.
    pub fn writes(&self) -> &[Write] {
        match &self.action {
            Action::Write(write) => std::slice::from_ref(write),
            Action::Batch(writes) => writes,
            Action::Get { .. } | Action::Query => &[],
        }
    }
}

pub fn save(operations: &[Operation], to: &mut impl std::io::Write) -> std::io::Result<()> {
    for operation in operations {
        serde_json::to_writer(&mut *to, operation)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// Operations of any number of partitions. Errors name the line.
pub fn load(from: impl BufRead) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    for (index, line) in from.lines().enumerate() {
        let line = line.map_err(|error| format!("line {}: {error}", index + 1))?;
        if !line.trim().is_empty() {
            let operation =
                serde_json::from_str(&line).map_err(|error| format!("line {}: {error}", index + 1))?;
            operations.push(operation);
        }
    }
    Ok(operations)
}

/// One history a partition, each in the order of its starts.
pub fn by_partition(operations: Vec<Operation>) -> BTreeMap<String, Vec<Operation>> {
    let mut histories = BTreeMap::<String, Vec<Operation>>::new();
    for operation in operations {
        histories.entry(operation.partition.clone()).or_default().push(operation);
    }
    for history in histories.values_mut() {
        history.sort_by_key(|operation| operation.start);
    }
    histories
}
