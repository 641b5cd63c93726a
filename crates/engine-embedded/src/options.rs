//! What can be set, and how RocksDB is set up for it.
//!
//! Chosen for two cores and data far larger than memory: all that grows with use is bounded by a number here.

use std::path::PathBuf;
use std::thread;

use rocksdb::statistics::StatsLevel;
use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, LogLevel, Options as RocksOptions,
    WriteBufferManager,
};

const MIB: usize = 1024 * 1024;

/// The RocksDB that is linked, as `partita --version` shows it.
pub const ROCKSDB_VERSION: &str = "11.8.1";

#[derive(Clone, Debug)]
pub struct Options {
    pub directory: PathBuf,
    /// Blocks of table files, their indexes and filters, and the write buffers: nearly all memory there is.
    pub block_cache_bytes: usize,
    /// Of these, what newly written rows may take before they go to table files. Also bounds the log, and so
    /// the time to open after a crash.
    pub write_buffer_bytes: usize,
    pub max_open_files: i32,
    /// Transactions that may wait for the committer; the next one is told `Busy`.
    pub queue_transactions: usize,
    /// The same in bytes: large transactions fill memory long before they are many.
    pub queue_bytes: usize,
    /// Scans reading at one time; more of them wait their turn.
    pub concurrent_scans: usize,
    /// Scans that may wait; the next one is told `Busy`.
    pub waiting_scans: usize,
    /// Threads beside these that may take a part of a long scan while it is the only one.
    pub scan_helpers: usize,
    /// Threads that ask, and may wait for the disk themselves while it is quick (`patience`).
    pub waiting_reads: usize,
    /// Open although acknowledged commits are missing, and go on without them.
    pub accept_loss: bool,
    /// Opened only to be read: files stay as they are, and no space is given back.
    pub at_rest: bool,
    /// Have RocksDB count the blocks it touches, for `Counters`. Costs a few per cent.
    pub statistics: bool,
}

impl Options {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            block_cache_bytes: 256 * MIB,
            write_buffer_bytes: 128 * MIB,
            max_open_files: 512,
            queue_transactions: 8192,
            queue_bytes: 64 * MIB,
            concurrent_scans: thread::available_parallelism().map_or(4, |cores| 2 * cores.get()),
            waiting_scans: 1024,
            scan_helpers: thread::available_parallelism().map_or(0, |cores| cores.get() - 1),
            waiting_reads: thread::available_parallelism().map_or(0, |threads| threads.get()),
            accept_loss: false,
            at_rest: false,
            statistics: false,
        }
    }
}

/// RocksDB's options: of the database and of the two column families.
pub struct Tuning {
    pub database: RocksOptions,
    pub meta: RocksOptions,
    pub data: RocksOptions,
}

impl Tuning {
    pub fn new(options: &Options) -> Result<Self, rocksdb::Error> {
        // Without locks: two threads that scan would wait for each other at every block. Sizes itself by what comes.
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, 0);
        let table = table_options(&cache);
        Ok(Self {
            database: database_options(options, cache),
            meta: meta_options(options, &table),
            data: data_options(options, &table)?,
        })
    }
}

fn database_options(options: &Options, cache: Cache) -> RocksOptions {
    let mut database = RocksOptions::default();
    // Only `database::create` makes one.
    database.create_if_missing(false);
    database.create_missing_column_families(true);

    // No stall on a full buffer: a stalled committer would hold up everyone, a flush ahead of time no one.
    let write_buffers =
        WriteBufferManager::new_write_buffer_manager_with_cache(options.write_buffer_bytes, false, cache);
    database.set_write_buffer_manager(&write_buffers);
    // Every group writes a little to `meta`, whose buffer hardly fills and would keep old logs for ever.
    database.set_max_total_wal_size(options.write_buffer_bytes as u64);
    database.set_max_open_files(options.max_open_files);
    database.set_max_background_jobs(2);

    // A torn last record is what a crash leaves; a hole further back is found by the commit counter.
    database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    database.set_track_and_verify_wals_in_manifest(true);
    database.set_paranoid_checks(true);

    // Table files reach the disk as they are written, not in one burst that the log's syncs wait behind.
    database.set_bytes_per_sync(MIB as u64);
    // The end of a scan does not pay for deleting the files it was the last to use.
    database.set_avoid_unnecessary_blocking_io(true);

    database.set_log_level(LogLevel::Warn);
    database.set_keep_log_file_num(4);
    database.set_max_log_file_size(4 * MIB);
    database.set_stats_dump_period_sec(0);
    database.set_stats_persist_period_sec(0);
    if options.statistics {
        database.enable_statistics();
        database.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    database
}

fn table_options(cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    // A get that misses the cache reads and unpacks one of these, so that its size is most of what that costs:
    // with 16 KiB a fifth more, while a scan in memory would save a sixth.
    table.set_block_size(8 * 1024);
    // Pinned: the newest format this RocksDB writes, so that an upgrade of it alone changes no stored byte.
    table.set_format_version(7);
    table.set_bloom_filter(10.0, false);
    table.set_whole_key_filtering(true);
    // In the cache, or else indexes and filters would be memory that no number above bounds.
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table
}

fn meta_options(options: &Options, table: &BlockBasedOptions) -> RocksOptions {
    let mut meta = RocksOptions::default();
    meta.set_block_based_table_factory(table);
    meta.set_compression_type(DBCompressionType::Lz4);
    meta.set_level_compaction_dynamic_level_bytes(true);
    meta.set_write_buffer_size(4 * MIB);
    meta.set_disable_auto_compactions(options.at_rest);
    meta
}

fn data_options(options: &Options, table: &BlockBasedOptions) -> Result<RocksOptions, rocksdb::Error> {
    // Each dropped table leaves a range tombstone, and a read sorts anew all that its memtable holds.
    let mut data = RocksOptions::default().get_options_from_string("memtable_max_range_deletions=256")?;
    data.set_block_based_table_factory(table);
    // At the bottom too: zstd would save a seventh of the disk, but unpacks several times slower.
    data.set_compression_type(DBCompressionType::Lz4);
    data.set_level_compaction_dynamic_level_bytes(true);
    data.set_write_buffer_size((options.write_buffer_bytes / 2).max(MIB));
    data.set_max_write_buffer_number(4);
    data.set_disable_auto_compactions(options.at_rest);
    data.set_target_file_size_base(64 * MIB as u64);
    data.set_max_bytes_for_level_base(256 * MIB as u64);
    // A scan steps over every deleted row it meets: files where half are deleted get compacted.
    data.add_compact_on_deletion_collector_factory(4096, 2048, 0.5);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::ROCKSDB_VERSION;

    /// The crate that brings RocksDB carries its version after a plus sign.
    #[test]
    fn the_version_shown_is_the_one_that_is_locked() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, after) = lock.split_once("name = \"librocksdb-sys\"\nversion = \"").unwrap();
        let (version, _) = after.split_once('"').unwrap();
        assert_eq!(version.split_once('+').unwrap().1, ROCKSDB_VERSION);
    }
}
