//! A transaction on its way to the committer: its stored keys, and what was found under them ahead of time.
//!
//! Whoever asks for a transaction reads the rows it will be judged by, and makes the rows that its merges come to, so
//! that the committer, for whom every other writer waits, neither waits for the disk nor looks again. What was found is
//! believed only if no commit since can have written under that key. Of a row that a condition asks for, the timestamp
//! is kept and no more.
//!
//! Why that is right: `Published` is raised after a commit's rows can be read. A reader notes it first and reads
//! after, so it has seen every commit up to that number. The committer notes for each key, in `Touched`, the
//! commit it was written with. If that is not above the reader's number, the row is still what the reader found.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{DateTime, EntityKey, Key};
use store::{Change, Fault, Operation, RawRow, Reason, RowDraft, Transaction, merge};

use crate::catalog::Table;

#[derive(Clone, Debug)]
pub struct Ahead {
    /// As it was found; the one of that name may be another one once the transaction is judged.
    pub table: Arc<Table>,
    pub transaction: Transaction,
    /// One for each operation, in their order.
    pub rows: Vec<FoundRow>,
    /// What `Published` said before the first row was read.
    pub seen: u64,
    /// Whether the committer may return it instead of making large merges itself.
    pub may_return: bool,
}

#[derive(Clone, Debug)]
pub struct FoundRow {
    /// With the id of `Ahead::table`.
    pub key: Vec<u8>,
    pub found: Found,
}

#[derive(Clone, Debug)]
pub enum Found {
    /// Makes no difference to the operation.
    NotAsked,
    /// The timestamp of the row, if there is one. Also for a merge whose condition does not hold of it.
    Stamp(Option<DateTime>),
    /// The timestamp of the row, and what a merge makes of it.
    Merged(DateTime, Result<RowDraft, Reason>),
}

impl Found {
    /// What the operation needs of the row.
    pub fn of(partition: &Key, operation: &Operation, row: Option<RawRow<'_>>) -> Result<Self, Fault> {
        let Some(row) = row else { return Ok(Self::Stamp(None)) };
        Self::of_row(partition, operation, row).map_err(|fault| {
            fault.about(format!("PartitionKey {:?}, RowKey {:?}", partition.as_str(), operation.row.as_str()))
        })
    }

    fn of_row(partition: &Key, operation: &Operation, row: RawRow<'_>) -> Result<Self, Fault> {
        let stamp = row.timestamp()?;
        Ok(match &operation.change {
            Change::Merge(draft) if operation.condition.judge(Some(stamp)).is_ok() => {
                let key = EntityKey { partition: partition.clone(), row: operation.row.clone() };
                Self::Merged(stamp, merge(&key, row, draft)?)
            }
            _ => Self::Stamp(Some(stamp)),
        })
    }

    /// Rough bytes it takes, and then writes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Merged(_, Ok(draft)) => draft.len(),
            Self::Merged(_, Err(_)) | Self::Stamp(_) | Self::NotAsked => 0,
        }
    }
}

impl Ahead {
    /// Rough bytes it takes while it waits, and then writes.
    pub fn weight(&self) -> usize {
        self.transaction.weight() + self.rows.iter().map(|row| row.found.weight()).sum::<usize>()
    }
}

/// The number of the last commit whose rows every read finds.
#[derive(Debug)]
pub struct Published(AtomicU64);

impl Published {
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

/// With which commit a key was written last since the store was opened, or later than that.
///
/// Keys share slots, and a slot keeps the latest commit of all of them: a collision has a row read once more, and
/// can't have one believed that was changed.
#[derive(Debug)]
pub struct Touched {
    slots: Vec<u64>,
    hasher: RandomState,
}

impl Touched {
    /// Many more than one group writes; 256 KiB.
    const SLOTS: usize = 1 << 15;

    pub fn new() -> Self {
        Self::with_slots(Self::SLOTS)
    }

    fn with_slots(slots: usize) -> Self {
        Self { slots: vec![0; slots], hasher: RandomState::new() }
    }

    /// Commits only grow, so the latest is the last one noted.
    pub fn note(&mut self, key: &[u8], commit: u64) {
        let slot = self.slot(key);
        self.slots[slot] = commit;
    }

    pub fn since(&self, key: &[u8], seen: u64) -> bool {
        self.slots[self.slot(key)] > seen
    }

    fn slot(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_touched_by_every_commit_above_the_one_seen() {
        let mut touched = Touched::new();
        assert!(!touched.since(b"a", 0));
        touched.note(b"a", 7);
        assert!(touched.since(b"a", 6));
        assert!(!touched.since(b"a", 7));
    }

    #[test]
    fn keys_that_share_a_slot_hide_no_change_of_each_other() {
        let mut touched = Touched::with_slots(1);
        touched.note(b"a", 7);
        touched.note(b"b", 8);
        assert!(touched.since(b"a", 7));
        assert!(touched.since(b"b", 7));
    }
}
