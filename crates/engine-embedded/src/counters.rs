//! Counts of the engine's work, which do not depend on the speed of the machine.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rocksdb::perf::{PerfContext, PerfMetric};
use store::{GROUP_SIZES, LiveSpread, SECONDS};

/// Counts since the engine was opened. Tests use them to check the costs of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Single rows read, by `get` and by transactions.
    pub point_gets: u64,
    /// Those of them that were read on another thread, because they were not in memory.
    pub cold_gets: u64,
    /// Iterators that were positioned: one for each range of a scan.
    pub seeks: u64,
    /// Rows read by iterators.
    pub rows_read: u64,
    /// Scans that a second thread helped with.
    pub shared_scans: u64,
    /// Commit groups, each with one sync.
    pub commits: u64,
    /// Transactions in these groups that were committed.
    pub transactions: u64,
    /// Merges that the committer made itself: their rows were changed after they were read ahead.
    pub late_merges: u64,
    /// Transactions that the committer returned instead, because it would have had to merge too much.
    pub returned: u64,
    /// Meta records read when the engine was opened.
    pub opened_records: u64,
    /// Dropped tables whose space is not reclaimed yet.
    pub pending_drops: u64,
    /// Blocks of table files asked for; zero without `Options::statistics`.
    pub blocks_asked: u64,
    /// Those of them that were not in the block cache.
    pub blocks_read: u64,
    /// Tombstones and older versions that iterators stepped over; zero without `Options::statistics`.
    pub entries_skipped: u64,
}

#[derive(Debug)]
pub struct LiveCounters {
    pub point_gets: Count,
    pub cold_gets: Count,
    pub seeks: Count,
    pub rows_read: Count,
    pub shared_scans: Count,
    pub commits: Count,
    pub transactions: Count,
    pub late_merges: Count,
    pub returned: Count,
    pub opened_records: Count,
    pub pending_drops: Count,
    /// Blocks that reads found in the block cache, and those that they did not.
    pub cached_blocks: Count,
    pub uncached_blocks: Count,
    /// Transactions of each commit group, and how long it took until the group was on disk.
    pub group_sizes: LiveSpread,
    pub commit_times: LiveSpread,
}

impl Default for LiveCounters {
    fn default() -> Self {
        Self {
            point_gets: Count::default(),
            cold_gets: Count::default(),
            seeks: Count::default(),
            rows_read: Count::default(),
            shared_scans: Count::default(),
            commits: Count::default(),
            transactions: Count::default(),
            late_merges: Count::default(),
            returned: Count::default(),
            opened_records: Count::default(),
            pending_drops: Count::default(),
            cached_blocks: Count::default(),
            uncached_blocks: Count::default(),
            group_sizes: LiveSpread::new(&GROUP_SIZES),
            commit_times: LiveSpread::new(&SECONDS),
        }
    }
}

impl LiveCounters {
    pub fn committed(&self, transactions: usize, time: Duration) {
        self.commits.add(1);
        self.transactions.add(transactions);
        self.group_sizes.note(transactions as u64);
        self.commit_times.note(time.as_nanos() as u64);
    }

    /// Takes over what RocksDB has counted for this thread since the last call. RocksDB counts these in any case, so this
    /// costs far less than its statistics, which all threads share. Call it after each read.
    pub fn note_blocks(&self) {
        thread_local! {
            static RAW: PerfContext = PerfContext::default();
            static TAKEN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
        }
        let (cached, uncached) = RAW
            .with(|raw| (raw.metric(PerfMetric::BlockCacheHitCount), raw.metric(PerfMetric::BlockReadCount)));
        let (cached_before, uncached_before) = TAKEN.replace((cached, uncached));
        if cached > cached_before {
            self.cached_blocks.add((cached - cached_before) as usize);
        }
        if uncached > uncached_before {
            self.uncached_blocks.add((uncached - uncached_before) as usize);
        }
    }

    /// All counts except for those of RocksDB.
    pub fn read(&self) -> Counters {
        Counters {
            point_gets: self.point_gets.get(),
            cold_gets: self.cold_gets.get(),
            seeks: self.seeks.get(),
            rows_read: self.rows_read.get(),
            shared_scans: self.shared_scans.get(),
            commits: self.commits.get(),
            transactions: self.transactions.get(),
            late_merges: self.late_merges.get(),
            returned: self.returned.get(),
            opened_records: self.opened_records.get(),
            pending_drops: self.pending_drops.get(),
            blocks_asked: 0,
            blocks_read: 0,
            entries_skipped: 0,
        }
    }
}

/// A number that several threads add to. It synchronizes nothing.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub fn subtract(&self, n: usize) {
        self.0.fetch_sub(n as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
