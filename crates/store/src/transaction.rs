//! Transactions: changes to the rows of one partition, and how a change is applied to a row.

use model::{DateTime, EntityKey, Key};

use crate::merge::merge;
use crate::{Fault, RawRow, Reason, Row, RowDraft};

/// What must be true of a row. If it is not, the whole transaction is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Absent,
    Exists,
    /// The row exists and has this timestamp. The ETag is the same value in another notation.
    Version(DateTime),
    Anything,
}

impl Condition {
    /// Checks the condition for a row with this timestamp, or for no row. It depends on nothing else of the row.
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
    /// Replaces the row.
    Put(RowDraft),
    /// Adds these properties to those of the row, if there is one, or replaces them.
    Merge(RowDraft),
    Delete,
}

#[derive(Clone, Debug)]
pub struct RowOperation {
    pub row: Key,
    pub condition: Condition,
    pub change: Change,
}

/// One or more operations on distinct rows of one partition, done all or none.
#[derive(Clone, Debug)]
pub struct Transaction {
    partition: Key,
    operations: Vec<RowOperation>,
}

impl Transaction {
    /// `None` if there is no operation, or a row is named twice.
    pub fn new(partition: Key, operations: Vec<RowOperation>) -> Option<Self> {
        let distinct = match operations.as_slice() {
            [] => false,
            // Most transactions have one operation.
            [_] => true,
            several => {
                let mut rows: Vec<&str> = several.iter().map(|operation| operation.row.as_str()).collect();
                rows.sort_unstable();
                rows.windows(2).all(|pair| pair[0] != pair[1])
            }
        };
        distinct.then_some(Self { partition, operations })
    }

    pub fn of_one(key: EntityKey, condition: Condition, change: Change) -> Self {
        Self { partition: key.partition, operations: vec![RowOperation { row: key.row, condition, change }] }
    }

    pub fn partition(&self) -> &Key {
        &self.partition
    }

    pub fn operations(&self) -> &[RowOperation] {
        &self.operations
    }

    pub fn into_parts(self) -> (Key, Vec<RowOperation>) {
        (self.partition, self.operations)
    }

    /// About the bytes that it writes, for limits.
    pub fn weight(&self) -> usize {
        let payload = |change: &Change| match change {
            Change::Put(draft) | Change::Merge(draft) => draft.len(),
            Change::Delete => 0,
        };
        self.operations.iter().map(|operation| payload(&operation.change) + 64).sum()
    }
}

/// Applies an operation to its row: the new row, or `None` for a delete. All engines use it.
///
/// `stamp` must be later than the present timestamp of the row. A condition reads only the timestamp of the present
/// row; a merge reads all of it.
pub fn resolve(
    partition: &Key,
    operation: RowOperation,
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
