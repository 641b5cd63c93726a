//! The recorded requests and answers of clients: one JSON object on each line.
//!
//! Every write except a delete stores its own number in `Writer`, so that a reader knows which write was the last. The
//! other properties that it sets get the same number and show what merges kept.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::{Deserialize, Serialize};

/// An ETag as a number that grows with its time.
pub type Version = i64;

/// Every write sets it.
pub const WRITER: &str = "Writer";
/// Some writes set some of them.
pub const EXTRAS: [&str; 3] = ["A", "B", "C"];

/// Nanoseconds of one clock for all clients.
pub type Time = u64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub client: u32,
    pub partition: String,
    /// Read before the request was sent.
    pub start: Time,
    /// Read after the answer arrived, or the request was given up.
    pub end: Time,
    pub action: Action,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Write(Write),
    /// Writes of distinct rows, done all or none.
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
    /// For verbs with a condition; `None` is `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<Version>,
    /// Unique in the whole history; never 0.
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
    /// The new version of each write; `None` for a delete.
    Done(Vec<Option<Version>>),
    /// Which of the writes could not be done, and why. Nothing was changed.
    Refused { index: usize, refusal: Refusal },
    /// The rows that a get (at most one) or a query returned.
    Found(Vec<Found>),
    /// The server was too busy and did nothing.
    TurnedAway,
    /// It was done at any time from its start on, but not after `until`, or never.
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
    /// Of blobs: one of these two.
    ConditionNotMet,
}

impl Refusal {
    /// Whether a service that refuses for this reason may say so.
    pub fn tells(self, reason: Self) -> bool {
        self == reason
            || self == Self::ConditionNotMet
                && matches!(reason, Self::ResourceNotFound | Self::UpdateConditionNotSatisfied)
    }
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

pub fn save<O: Serialize>(operations: &[O], to: &mut impl std::io::Write) -> std::io::Result<()> {
    for operation in operations {
        serde_json::to_writer(&mut *to, operation)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// Operations of any number of partitions or queues. Errors name the line.
pub fn load<O: serde::de::DeserializeOwned>(from: impl BufRead) -> Result<Vec<O>, String> {
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

/// One history for each partition, in the order of the starts.
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
