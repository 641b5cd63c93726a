//! Rows that are not there, found with one look at all of their keys.
//!
//! A batch mostly inserts rows beside each other, where no others are. One search for the first row at or behind the lowest of
//! its keys then tells of all of them, where each look-up would go through memtables and filters on its own. That search reads a
//! block of each file which has rows around that place. They are seldom in the cache, and reading them costs less than a hundred
//! look-ups.

use rocksdb::{ReadOptions, ReadTier};
use store::{Change, Condition, RowOperation};

use crate::db::Db;

/// With fewer rows, looking each up is cheaper.
const ROWS_MIN: usize = 8;
/// So many deleted rows and old versions are stepped over. If there are more, each row is looked up.
const SKIPPED_MAX: u64 = 32;

/// The keys of rows that are known not to be there.
pub enum Absent {
    Nothing,
    /// Those of the operations that expect no row, if they are below this key. `None`: all of them.
    Below(Option<Vec<u8>>),
}

impl Absent {
    /// Looks once, and only for what is in memory unless it may wait for the disk. The keys are those of the operations, and all
    /// of one partition.
    pub fn find(db: &Db, operations: &[RowOperation], keys: &[Vec<u8>], may_wait: bool) -> Self {
        let expected = || operations.iter().zip(keys).filter(|(operation, _)| expects_no_row(operation));
        if expected().count() < ROWS_MIN {
            return Self::Nothing;
        }
        let keys = || expected().map(|(_, key)| key.as_slice());
        let (Some(first), Some(last)) = (keys().min(), keys().max()) else { return Self::Nothing };
        let mut options = ReadOptions::default();
        if !may_wait {
            options.set_read_tier(ReadTier::BlockCache);
        }
        options.set_max_skippable_internal_keys(SKIPPED_MAX);
        options.set_iterate_upper_bound([last, &[0]].concat());
        let mut rows = db.rocks().raw_iterator_cf_opt(db.data(), options);
        rows.seek(first);
        db.counts().seeks.add(1);
        db.counts().note_blocks();
        match (rows.key(), rows.status()) {
            (Some(key), _) => Self::Below(Some(key.to_vec())),
            (None, Ok(())) => Self::Below(None),
            // It is not in memory, or there is too much to step over. What can't be read is told by the look-ups.
            (None, Err(_)) => Self::Nothing,
        }
    }

    pub fn has(&self, operation: &RowOperation, key: &[u8]) -> bool {
        match self {
            Self::Nothing => false,
            Self::Below(end) => expects_no_row(operation) && end.as_deref().is_none_or(|end| key < end),
        }
    }
}

fn expects_no_row(operation: &RowOperation) -> bool {
    matches!(
        (operation.condition, &operation.change),
        (Condition::Absent, _) | (Condition::Anything, Change::Merge(_))
    )
}
