//! What the engine has done, in numbers that do not depend on the machine's speed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the engine was opened. Tests hold the engine to its costs by these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Single rows asked for, by `get`, by a transaction's judging, and ahead of it to warm the cache.
    pub point_gets: u64,
    /// Of these, the ones that went to another thread to wait for the disk there.
    pub cold_gets: u64,
    /// Iterators placed: one for each range of a scan.
    pub seeks: u64,
    /// Rows that iterators stood on.
    pub rows_read: u64,
    /// Scans in which a second thread took part.
    pub shared_scans: u64,
    /// Groups made durable, each with one sync.
    pub commits: u64,
    /// Transactions in these groups that went through.
    pub transactions: u64,
    /// Meta records read when the engine was opened.
    pub opened_records: u64,
    /// Dropped tables whose space has not been given back yet.
    pub pending_drops: u64,
    /// Blocks of table files asked for; zero without `Options::statistics`.
    pub blocks_asked: u64,
    /// Of these, the ones not found in the block cache.
    pub blocks_read: u64,
    /// Tombstones and older versions that iterators stepped over; zero without `Options::statistics`.
    pub entries_skipped: u64,
}

#[derive(Debug, Default)]
pub struct Tally {
    pub point_gets: Count,
    pub cold_gets: Count,
    pub seeks: Count,
    pub rows_read: Count,
    pub shared_scans: Count,
    pub commits: Count,
    pub transactions: Count,
    pub opened_records: Count,
    pub pending_drops: Count,
}

impl Tally {
    /// All but the figures of RocksDB.
    pub fn read(&self) -> Counters {
        Counters {
            point_gets: self.point_gets.get(),
            cold_gets: self.cold_gets.get(),
            seeks: self.seeks.get(),
            rows_read: self.rows_read.get(),
            shared_scans: self.shared_scans.get(),
            commits: self.commits.get(),
            transactions: self.transactions.get(),
            opened_records: self.opened_records.get(),
            pending_drops: self.pending_drops.get(),
            blocks_asked: 0,
            blocks_read: 0,
            entries_skipped: 0,
        }
    }
}

/// A number several threads add to; none of them orders its work by it.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub fn subtract(&self, n: usize) {
        self.0.fetch_sub(n as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
