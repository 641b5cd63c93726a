//! The options of the engine, and the options of RocksDB that follow from them.
//!
//! They are chosen for two cores and data far larger than memory: everything that grows with use has a limit here.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

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
    /// The part of it for new rows, before they are flushed to table files. The more, the less often compaction writes the same
    /// row. It also limits the log, and so the time to open after a crash.
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
    /// How long removed objects may take space, if there are few of them.
    pub reclaim_objects_after: Duration,
    /// RocksDB counts the blocks that it reads, for `Counters`. Costs a few per cent.
    pub statistics: bool,
}

impl Options {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            block_cache_bytes: 256 * MIB,
            write_buffer_bytes: WRITE_BUFFER_BYTES_MIN,
            max_open_files: 512,
            queue_transactions: 8192,
            queue_bytes: 64 * MIB,
            concurrent_scans: thread::available_parallelism().map_or(4, |cores| 2 * cores.get()),
            waiting_scans: 1024,
            scan_helpers: thread::available_parallelism().map_or(0, |cores| cores.get() - 1),
            waiting_reads: thread::available_parallelism().map_or(0, |threads| threads.get()),
            accept_loss: false,
            at_rest: false,
            reclaim_objects_after: Duration::from_secs(60),
            statistics: false,
        }
    }

    /// With a block cache of this size, and the buffer for new rows that goes with it.
    pub fn with_cache(self, bytes: usize) -> Self {
        let buffer = (bytes / 8).clamp(WRITE_BUFFER_BYTES_MIN, WRITE_BUFFER_BYTES_MAX);
        Self { block_cache_bytes: bytes, write_buffer_bytes: buffer.min(bytes / 2), ..self }
    }
}

/// If the cache is large enough.
const WRITE_BUFFER_BYTES_MIN: usize = 128 * MIB;
/// A log of this size is replayed in one or two seconds.
const WRITE_BUFFER_BYTES_MAX: usize = 512 * MIB;
/// The smallest size of the first level below the flushed files.
const FIRST_LEVEL_BYTES_MIN: usize = 256 * MIB;

/// The space that the log takes on the disk in advance.
const LOG_STEP_BYTES: usize = 64 * MIB;

/// One buffer of new chunks, before they are flushed. Each flush makes a blob file of at most this size.
pub const OBJECTS_BUFFER_BYTES: usize = 16 * MIB;
/// The memory of all of them: one that is filled while two are flushed. A chunk that would exceed it waits before it is
/// written. RocksDB's own limit is far above, because there the writes of rows would wait too.
pub const OBJECTS_BUFFERS_BYTES: usize = 3 * OBJECTS_BUFFER_BYTES;
const OBJECTS_BUFFERS_MAX: i32 = 16;
/// What is shorter stays beside its key.
const BLOB_BYTES_MIN: u64 = 1024;

/// RocksDB's options: of the database and of the three column families.
pub struct Tuning {
    pub database: RocksOptions,
    pub meta: RocksOptions,
    pub data: RocksOptions,
    pub objects: RocksOptions,
}

impl Tuning {
    pub fn new(options: &Options) -> Result<Self, rocksdb::Error> {
        // This cache has no locks, so that two scanning threads do not wait for each other at every block. It adapts
        // its entry size to the blocks.
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, 0);
        let table = table_options(&cache);
        Ok(Self {
            database: database_options(options, cache)?,
            meta: meta_options(options, &table),
            data: data_options(options, &table)?,
            objects: objects_options(options, &table)?,
        })
    }
}

fn database_options(options: &Options, cache: Cache) -> Result<RocksOptions, rocksdb::Error> {
    // What is not in the log is flushed by `sync` and by a close, and by nothing else: not on a full disk, where a flush at
    // the end would wait for ever.
    let mut database = RocksOptions::default().get_options_from_string("avoid_flush_during_shutdown=true")?;
    // Only `database::create` creates a database.
    database.create_if_missing(false);
    database.create_missing_column_families(true);

    // Flush early instead of stalling on a full buffer: all writers would wait for a stalled committer.
    // Objects have their share on top: an upload must not make RocksDB flush the rows of tables early.
    let buffer_bytes = options.write_buffer_bytes + OBJECTS_BUFFERS_BYTES;
    let write_buffers = WriteBufferManager::new_write_buffer_manager_with_cache(buffer_bytes, false, cache);
    database.set_write_buffer_manager(&write_buffers);
    // Every group writes a little to `meta`. Its buffer hardly fills, and without this limit it would keep old logs
    // for ever.
    database.set_max_total_wal_size(options.write_buffer_bytes as u64);
    // With a manager of write buffers, this is only the space that the log takes on the disk in advance, again and again.
    // Otherwise an empty store would take as much as the largest log.
    database.set_db_write_buffer_size(LOG_STEP_BYTES);
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
    Ok(database)
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
    // An insert looks for its row before it is written. This filter tells that the memtable does not have it, without a
    // search. A part of the buffer's size: five bits for each row of 200 bytes, and more for each of 1 KiB.
    data.set_memtable_prefix_bloom_ratio(0.003);
    data.set_memtable_whole_key_filtering(true);
    data.set_disable_auto_compactions(options.at_rest);
    data.set_target_file_size_base(64 * MIB as u64);
    // As much as the four files that are flushed before they are compacted into it.
    let first_level = (2 * options.write_buffer_bytes).max(FIRST_LEVEL_BYTES_MIN);
    data.set_max_bytes_for_level_base(first_level as u64);
    // A scan has to step over every deleted row. Files in which half of the rows are deleted are compacted.
    data.add_compact_on_deletion_collector_factory(4096, 2048, 0.5);
    Ok(data)
}

/// Chunks are in blob files, which have checksums and are linked by checkpoints. Compactions move their keys only: 50 MiB
/// of keys for a tebibyte of content.
fn objects_options(options: &Options, table: &BlockBasedOptions) -> Result<RocksOptions, rocksdb::Error> {
    // Each removed object leaves a range tombstone.
    let mut objects = RocksOptions::default().get_options_from_string("memtable_max_range_deletions=256")?;
    objects.set_block_based_table_factory(table);
    objects.set_compression_type(DBCompressionType::Lz4);
    objects.set_level_compaction_dynamic_level_bytes(true);
    objects.set_disable_auto_compactions(options.at_rest);
    objects.set_enable_blob_files(true);
    objects.set_min_blob_size(BLOB_BYTES_MIN);
    // Content is mostly compressed already, or encrypted.
    objects.set_blob_compression_type(DBCompressionType::None);
    // Compactions leave chunks where they are. `reclaim_objects` copies them when half of the files is garbage; RocksDB's
    // own rule copies the oldest, whether or not something of them was removed.
    objects.set_enable_blob_gc(false);
    // Files of the first level have only keys. Writes of rows must not wait for them.
    objects.set_level_zero_slowdown_writes_trigger(200);
    objects.set_level_zero_stop_writes_trigger(400);
    objects.set_write_buffer_size(OBJECTS_BUFFER_BYTES);
    objects.set_max_write_buffer_number(OBJECTS_BUFFERS_MAX);
    // Files of keys for about five gibibytes of content, and a few of them at a time: that is what a copy of chunks needs
    // as free space.
    objects.set_target_file_size_base(256 * 1024);
    objects.set_max_compaction_bytes(1024 * 1024);
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of the crate has that of RocksDB after a plus sign.
    #[test]
    fn the_version_shown_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, after) = lock.split_once("name = \"librocksdb-sys\"\nversion = \"").unwrap();
        let (version, _) = after.split_once('"').unwrap();
        assert_eq!(version.split_once('+').unwrap().1, ROCKSDB_VERSION);
    }

    #[test]
    fn a_larger_cache_has_larger_buffers_within_bounds() {
        for (cache, buffer) in
            [(64, 32), (200, 100), (256, 128), (1024, 128), (2048, 256), (4096, 512), (65536, 512)]
        {
            let options = Options::new("").with_cache(cache * MIB);
            assert_eq!((options.block_cache_bytes, options.write_buffer_bytes), (cache * MIB, buffer * MIB));
        }
    }
}
