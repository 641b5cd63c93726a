//! Changes to one partition, and what becomes of a row under one of them.

use std::collections::HashSet;

use model::{DateTime, EntityKey, Key};

use crate::merge::merge;
use crate::{Fault, RawRow, Reason, Row, RowDraft};

/// What must hold of a row for its operation, and so for the whole transaction, to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Absent,
    Exists,
    /// Exists and carries this timestamp, of which the ETag is another spelling.
    Version(DateTime),
    Anything,
}

impl Condition {
    /// Whether it holds of a row with this timestamp, or of none. No more of a row is ever needed for that.
    pub fn judge(self, current: Option<DateTime>) -> Result<(), Reason> {
        match (self, current) {
            (Self::Absent, None) | (Self::Exists, Some(_)) | (Self::Anything, _) => Ok(()),
            (Self::Absent, Some(_)) => Err(Reason::Exists),
            (Self::Exists | Self::Version(_), None) => Err(Reason::Missing),
            (Self::Version(version), Some(stamp)) if stamp == version => Ok(()),
            (Self::Version(_), Some(_)) => Err(Reason::VersionDiffers),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Change {
    /// The row becomes this.
    Put(RowDraft),
    /// These properties are laid over those the row has, if there is one.
    Merge(RowDraft),
    Delete,
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub row: Key,
    pub condition: Condition,
    pub change: Change,
}

/// One or more operations on distinct rows of one partition, done all or not at all.
#[derive(Clone, Debug)]
pub struct Transaction {
    partition: Key,
    operations: Vec<Operation>,
}

impl Transaction {
    /// `None` if there is no operation, or a row is named twice.
    pub fn new(partition: Key, operations: Vec<Operation>) -> Option<Self> {
        let distinct = match operations.as_slice() {
            [] => false,
            // Most transactions, and nothing to compare.
            [_] => true,
            several => {
                let mut rows = HashSet::with_capacity(several.len());
                several.iter().all(|operation| rows.insert(operation.row.as_str()))
            }
        };
        distinct.then_some(Self { partition, operations })
    }

    pub fn of_one(key: EntityKey, condition: Condition, change: Change) -> Self {
        Self { partition: key.partition, operations: vec![Operation { row: key.row, condition, change }] }
    }

    pub fn partition(&self) -> &Key {
        &self.partition
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub fn into_parts(self) -> (Key, Vec<Operation>) {
        (self.partition, self.operations)
    }

    /// Rough bytes it will write, for budgets.
    pub fn weight(&self) -> usize {
        let payload = |change: &Change| match change {
            Change::Put(draft) | Change::Merge(draft) => draft.len(),
            Change::Delete => 0,
        };
        self.operations.iter().map(|operation| payload(&operation.change) + 64).sum()
    }
}

/// What an operation makes of its row, as every engine decides it: the new row, or none for a delete.
///
/// `stamp` is later than the row's present timestamp; engines see to that. Of the present row, a condition
/// reads the timestamp at most; only a merge reads all of it.
pub fn resolve(
    partition: &Key,
    operation: Operation,
    current: Option<RawRow<'_>>,
    stamp: DateTime,
) -> Result<Result<Option<Row>, Reason>, Fault> {
    if let Err(reason) = operation.condition.judge(current.map(RawRow::timestamp).transpose()?) {
        return Ok(Err(reason));
    }
    Ok(match (operation.change, current) {
        (Change::Delete, _) => Ok(None),
        (Change::Put(draft), _) | (Change::Merge(draft), None) => Ok(Some(draft.stamp(stamp))),
        (Change::Merge(draft), Some(row)) => {
            let key = EntityKey { partition: partition.clone(), row: operation.row };
            merge(&key, row, &draft)?.map(|merged| Some(merged.stamp(stamp)))
        }
    })
}
