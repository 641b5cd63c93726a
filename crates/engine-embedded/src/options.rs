//! The options of the engine, and the options of RocksDB that follow from them.
//!
//! They are chosen for two cores and data far larger than memory: everything that grows with use has a limit here.

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
    /// For blocks of table files, their indexes and filters, and the write buffers: nearly all memory of the engine.
    pub block_cache_bytes: usize,
    /// The part of it for new rows, before they are flushed to table files. It also limits the log, and so the time
    /// to open after a crash.
    pub write_buffer_bytes: usize,
    pub max_open_files: i32,
    /// Transactions that may wait for the committer; the next one is answered `Busy`.
    pub queue_transactions: usize,
    /// The same in bytes, because few large transactions can fill the memory.
    pub queue_bytes: usize,
    /// Scans that run at a time; others wait for their turn.
    pub concurrent_scans: usize,
    /// Scans that may wait; the next one is answered `Busy`.
    pub waiting_scans: usize,
    /// More threads, for parts of a long scan while it is the only one.
    pub scan_helpers: usize,
    /// The caller's threads. They may wait for the disk themselves while it is fast (`patience`).
    pub waiting_reads: usize,
    /// Open although acknowledged commits are missing, and continue without them.
    pub accept_loss: bool,
    /// Opened only for reading: files are not changed, and no space is reclaimed.
    pub at_rest: bool,
    /// RocksDB counts the blocks that it reads, for `Counters`. Costs a few per cent.
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
        // This cache has no locks, so that two scanning threads do not wait for each other at every block. It adapts
        // its entry size to the blocks.
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
    // Only `database::create` creates a database.
    database.create_if_missing(false);
    database.create_missing_column_families(true);

    // Flush early instead of stalling on a full buffer: all writers would wait for a stalled committer.
    let write_buffers =
        WriteBufferManager::new_write_buffer_manager_with_cache(options.write_buffer_bytes, false, cache);
    database.set_write_buffer_manager(&write_buffers);
    // Every group writes a little to `meta`. Its buffer hardly fills, and without this limit it would keep old logs
    // for ever.
    database.set_max_total_wal_size(options.write_buffer_bytes as u64);
    database.set_max_open_files(options.max_open_files);
    database.set_max_background_jobs(2);

    // A crash leaves a torn last record. A hole further back is found by the commit counter.
    database.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    database.set_track_and_verify_wals_in_manifest(true);
    database.set_paranoid_checks(true);

    // Table files are written to the disk bit by bit, so that syncs of the log do not wait behind one large burst.
    database.set_bytes_per_sync(MIB as u64);
    // A scan does not have to delete the files that it was the last to use.
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
    // A get that misses the cache reads and unpacks one block, so the size of a block is most of its cost. With 16
    // KiB a get would cost a fifth more, and a scan in memory a sixth less.
    table.set_block_size(8 * 1024);
    // Fixed to the newest format that this RocksDB writes, so that an upgrade of RocksDB alone changes no stored byte.
    table.set_format_version(7);
    table.set_bloom_filter(10.0, false);
    table.set_whole_key_filtering(true);
    // In the cache, because otherwise no limit would include the memory of indexes and filters.
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
    // Each dropped table leaves a range tombstone, and every read sorts all range tombstones of the memtable again.
    let mut data = RocksOptions::default().get_options_from_string("memtable_max_range_deletions=256")?;
    data.set_block_based_table_factory(table);
    // Also at the bottom level: zstd would save a seventh of the disk, but unpacks several times slower.
    data.set_compression_type(DBCompressionType::Lz4);
    data.set_level_compaction_dynamic_level_bytes(true);
    data.set_write_buffer_size((options.write_buffer_bytes / 2).max(MIB));
    data.set_max_write_buffer_number(4);
    data.set_disable_auto_compactions(options.at_rest);
    data.set_target_file_size_base(64 * MIB as u64);
    data.set_max_bytes_for_level_base(256 * MIB as u64);
    // A scan has to step over every deleted row. Files in which half of the rows are deleted are compacted.
    data.add_compact_on_deletion_collector_factory(4096, 2048, 0.5);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::ROCKSDB_VERSION;

    /// The version of the crate has that of RocksDB after a plus sign.
    #[test]
    fn the_version_shown_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, after) = lock.split_once("name = \"librocksdb-sys\"\nversion = \"").unwrap();
        let (version, _) = after.split_once('"').unwrap();
        assert_eq!(version.split_once('+').unwrap().1, ROCKSDB_VERSION);
    }
}
