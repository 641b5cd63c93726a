//! A transaction that is ready for the committer: its stored keys, and what it needs of its rows, read ahead.
//!
//! The caller's thread reads the rows and makes the merges, because all writers wait for the committer: it should
//! neither read from the disk nor merge. What was read ahead is used only if no later commit can have written that
//! key. For a condition, only the timestamp of the row is kept.
//!
//! Why this is correct: `PublishedCommit` is raised after the rows of a commit can be read. A reader notes its value
//! before it reads, so it sees every commit up to that number. In `KeyCommits`, the committer notes the last commit
//! of each key. If that is not above the reader's number, the row is still the one that the reader saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::keyed_hash::KeyedHash;
use model::{DateTime, EntityKey, Key};
use store::{Change, Fault, RawRow, Reason, RowDraft, RowOperation, Transaction, merge};

use crate::catalog::Table;

#[derive(Clone, Debug)]
pub struct PreparedTransaction {
    /// The table that the rows were read from. By the time of the commit, its name may belong to another table.
    pub table: Arc<Table>,
    pub transaction: Transaction,
    /// One for each operation, in the same order.
    pub rows: Vec<PreparedRow>,
    /// The value of `PublishedCommit` before the first row was read.
    pub seen: u64,
    /// Whether the committer may return it instead of making large merges itself.
    pub may_return: bool,
}

#[derive(Clone, Debug)]
pub struct PreparedRow {
    /// Begins with the id of `PreparedTransaction::table`.
    pub key: Vec<u8>,
    pub facts: RowFacts,
}

#[derive(Clone, Debug)]
pub enum RowFacts {
    /// The operation does not depend on the row.
    NotAsked,
    /// The timestamp of the row, or `None` if there is no row. Also for a merge whose condition does not hold.
    Stamp(Option<DateTime>),
    /// The timestamp of the row, and the result of merging into it.
    Merged(DateTime, Result<RowDraft, Reason>),
}

impl RowFacts {
    /// What the operation needs of the row.
    pub fn of(partition: &Key, operation: &RowOperation, row: Option<RawRow<'_>>) -> Result<Self, Fault> {
        let Some(row) = row else { return Ok(Self::Stamp(None)) };
        Self::of_row(partition, operation, row).map_err(|fault| {
            fault.about(format!("PartitionKey {:?}, RowKey {:?}", partition.as_str(), operation.row.as_str()))
        })
    }

    fn of_row(partition: &Key, operation: &RowOperation, row: RawRow<'_>) -> Result<Self, Fault> {
        let stamp = row.timestamp()?;
        Ok(match &operation.change {
            Change::Merge(draft) if operation.condition.judge(Some(stamp)).is_ok() => {
                let key = EntityKey { partition: partition.clone(), row: operation.row.clone() };
                Self::Merged(stamp, merge(&key, row, draft)?)
            }
            _ => Self::Stamp(Some(stamp)),
        })
    }

    /// About the bytes that it holds and then writes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Merged(_, Ok(draft)) => draft.len(),
            Self::Merged(_, Err(_)) | Self::Stamp(_) | Self::NotAsked => 0,
        }
    }
}

impl PreparedTransaction {
    /// About the bytes that it holds while it waits and then writes.
    pub fn weight(&self) -> usize {
        self.transaction.weight() + self.rows.iter().map(|row| row.facts.weight()).sum::<usize>()
    }
}

/// The number of the last commit that every read sees.
#[derive(Debug)]
pub struct PublishedCommit(AtomicU64);

impl PublishedCommit {
    pub fn new(counter: u64) -> Self {
        Self(AtomicU64::new(counter))
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn raise(&self, counter: u64) {
        self.0.store(counter, Ordering::Release);
    }
}

/// The last commit of each key since the store was opened, or a later commit.
///
/// Keys share slots, and a slot has the latest commit of all its keys. So a collision can make the committer read a
/// row again, but a changed row is never taken for unchanged.
#[derive(Debug)]
pub struct KeyCommits {
    slots: Vec<u64>,
    hash: KeyedHash,
}

impl KeyCommits {
    /// Many more than the keys of one group. Takes 256 KiB.
    const SLOTS: usize = 1 << 15;

    pub fn new() -> Self {
        Self::with_slots(Self::SLOTS)
    }

    fn with_slots(slots: usize) -> Self {
        Self { slots: vec![0; slots], hash: KeyedHash::new() }
    }

    /// Commit numbers only grow, so the last one noted is the latest.
    pub fn note(&mut self, key: &[u8], commit: u64) {
        let slot = self.slot(key);
        self.slots[slot] = commit;
    }

    pub fn since(&self, key: &[u8], seen: u64) -> bool {
        self.slots[self.slot(key)] > seen
    }

    fn slot(&self, key: &[u8]) -> usize {
        self.hash.of_bytes(key) as usize % self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_touched_by_every_commit_above_the_one_seen() {
        let mut touched = KeyCommits::new();
        assert!(!touched.since(b"a", 0));
        touched.note(b"a", 7);
        assert!(touched.since(b"a", 6));
        assert!(!touched.since(b"a", 7));
    }

    #[test]
    fn a_change_is_noticed_although_keys_share_a_slot() {
        let mut touched = KeyCommits::with_slots(1);
        touched.note(b"a", 7);
        touched.note(b"b", 8);
        assert!(touched.since(b"a", 7));
        assert!(touched.since(b"b", 7));
    }
}
