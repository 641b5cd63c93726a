//! The numbers of an open engine for monitors: its own counts, RocksDB's state, and the room on the disk.

use std::fs;
use std::path::Path;

use rocksdb::properties as names;
use store::EngineCounters;

use crate::counters::{Counters, LiveCounters};
use crate::db::Db;
use crate::reclaim_objects::BlobFiles;

/// What is known only while the engine is open.
pub struct OpenState<'a> {
    pub db: &'a Db,
    /// The data directory.
    pub directory: &'a Path,
    /// Requests that wait for the committer, and the memory of those in work.
    pub queue: (usize, usize),
    /// Scans that run, and scans that wait.
    pub scans: (usize, usize),
    /// Bytes of content in files beside the database.
    pub content_bytes: u64,
}

/// Counts of work.
pub fn write_counts(to: &mut EngineCounters, live: &LiveCounters) {
    let Counters { point_gets, cold_gets, seeks, rows_read, shared_scans, commits, transactions, .. } =
        live.read();
    let Counters { late_merges, returned, pending_drops, .. } = live.read();
    to.total("commits", "Groups of transactions written to the log, each with one sync.", commits);
    to.total("transactions", "Transactions committed.", transactions);
    to.spread("commit_transactions", "Transactions in each commit group.", live.group_sizes.read());
    to.spread(
        "commit_seconds",
        "Time to write a commit group to the log and sync it.",
        live.commit_times.read(),
    );
    to.total("late_merges", "Merges made again because their row had changed meanwhile.", late_merges);
    to.total(
        "returned_transactions",
        "Transactions read again because their rows had changed meanwhile.",
        returned,
    );
    to.total("point_reads", "Single rows read, by gets and by transactions.", point_gets);
    to.total(
        "point_reads_from_disk",
        "Those of them that a thread of their own read, as they were not in memory.",
        cold_gets,
    );
    to.total("range_reads", "Ranges that scans have read.", seeks);
    to.total("rows_scanned", "Rows read by scans.", rows_read);
    to.total("shared_scans", "Scans that a second thread helped with.", shared_scans);
    to.total("cache_hits", "Blocks that reads found in the cache.", live.cached_blocks.get());
    to.total("cache_misses", "Blocks that reads did not find in the cache.", live.uncached_blocks.get());
    to.now("pending_drops", "Dropped tables whose space is not reclaimed yet.", pending_drops);
}

/// The state of this moment. What RocksDB or the system does not tell is left out.
pub fn write_state(to: &mut EngineCounters, state: &OpenState<'_>) {
    let (requests, bytes) = state.queue;
    to.now("queue_requests", "Writes that wait for the committer.", requests as u64);
    to.now("queue_bytes", "Memory of the writes that wait or are being committed.", bytes as u64);
    let (running, waiting) = state.scans;
    to.now("scans_running", "Scans that run.", running as u64);
    to.now("scans_waiting", "Scans that wait for their turn.", waiting as u64);
    write_rocksdb(to, state.db, state.content_bytes);
    write_disk(to, state.directory, state.content_bytes);
}

fn write_rocksdb(to: &mut EngineCounters, db: &Db, content_bytes: u64) {
    // Of all families together, except for those that every family gives for the whole database.
    let sum = |name: &names::PropName| {
        let of = |family| db.rocks().property_int_value_cf(family, name).ok().flatten();
        Some(of(db.data())? + of(db.meta())? + of(db.objects())?)
    };
    let of_all = |name: &names::PropName| db.rocks().property_int_value_cf(db.data(), name).ok().flatten();
    for (name, meaning, value) in [
        (
            "cache_bytes",
            "Memory that the block cache uses, with the write buffers.",
            of_all(names::BLOCK_CACHE_USAGE),
        ),
        (
            "cache_pinned_bytes",
            "The part of it that is in use right now.",
            of_all(names::BLOCK_CACHE_PINNED_USAGE),
        ),
        ("cache_max_bytes", "Memory that the block cache may use.", of_all(names::BLOCK_CACHE_CAPACITY)),
        (
            "memtable_bytes",
            "New rows and content in memory that are not in files yet.",
            sum(names::CUR_SIZE_ALL_MEM_TABLES),
        ),
        (
            "live_data_bytes",
            "Estimate of the rows' size in table files, without what was overwritten.",
            sum(names::ESTIMATE_LIVE_DATA_SIZE),
        ),
        ("rows", "Estimate of the number of rows.", of_all(names::ESTIMATE_NUM_KEYS)),
        ("table_files_bytes", "Size of all table files.", sum(names::TOTAL_SST_FILES_SIZE)),
        (
            "compaction_pending_bytes",
            "Estimate of what compactions have to rewrite.",
            sum(names::ESTIMATE_PENDING_COMPACTION_BYTES),
        ),
        ("compactions_running", "Compactions that run.", of_all(names::NUM_RUNNING_COMPACTIONS)),
        ("flushes_running", "Flushes that run.", of_all(names::NUM_RUNNING_FLUSHES)),
        (
            "writes_stopped",
            "1 while writes wait for flushes or compactions, else 0.",
            of_all(names::IS_WRITE_STOPPED),
        ),
        (
            "write_rate_limit_bytes",
            "Bytes a second to which writes are slowed down; 0 if they are not.",
            of_all(names::ACTUAL_DELAYED_WRITE_RATE),
        ),
        ("background_errors", "Flushes and compactions that have failed.", of_all(names::BACKGROUND_ERRORS)),
        ("snapshots", "Snapshots that scans and checkpoints hold.", of_all(names::NUM_SNAPSHOTS)),
    ] {
        if let Some(value) = value {
            to.now(name, meaning, value);
        }
    }
    if let Some(files) = BlobFiles::of(db) {
        let bytes = files.bytes + content_bytes;
        to.now("content_files_bytes", "Size of the files with the content of blobs.", bytes);
        to.now(
            "content_garbage_bytes",
            "The part of them that no blob needs, as far as compactions have noticed.",
            files.garbage,
        );
    }
    let stalls = |family| db.rocks().property_value_cf(family, WRITE_STALLS).ok().flatten();
    if let (Some(of_rows), Some(of_content)) = (stalls(db.data()), stalls(db.objects())) {
        let (of_rows, of_content) = (stalls_of(&of_rows), stalls_of(&of_content));
        let (delays, stops) = (of_rows.0 + of_content.0, of_rows.1 + of_content.1);
        let values = [("delayed", delays), ("stopped", stops)];
        to.totals(
            "write_stalls",
            "How often writes were slowed down or stopped for flushes and compactions.",
            "kind",
            values,
        );
    }
}

const WRITE_STALLS: &str = "rocksdb.cf-write-stall-stats";

/// Delays and stops of a family, from lines such as `total-stops: 3`.
fn stalls_of(text: &str) -> (u64, u64) {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    (number("total-delays"), number("total-stops"))
}

fn write_disk(to: &mut EngineCounters, directory: &Path, content_bytes: u64) {
    let (mut logs, mut files) = (0, content_bytes);
    for entry in
        fs::read_dir(directory.join(crate::layout::DATABASE_DIRECTORY)).into_iter().flatten().flatten()
    {
        // A file that was deleted meanwhile has no size.
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        files += bytes;
        if entry.path().extension().is_some_and(|extension| extension == "log") {
            logs += bytes;
        }
    }
    to.now("wal_bytes", "Size of the log, which is replayed after a crash.", logs);
    to.now("disk_used_bytes", "Size of the database's files and of those with content.", files);
    if let Ok(disk) = rustix::fs::statvfs(directory) {
        to.now(
            "disk_free_bytes",
            "Room that this process may use on the disk of the data directory.",
            disk.f_bavail * disk.f_frsize,
        );
        to.now("disk_size_bytes", "Size of the disk of the data directory.", disk.f_blocks * disk.f_frsize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_read_from_rocksdbs_words() {
        let text = "total-stops: 3\ntotal-delays: 12\nmemtable-limit-stops: 1\n";
        assert_eq!(stalls_of(text), (12, 3));
        assert_eq!(stalls_of(""), (0, 0));
    }
}
