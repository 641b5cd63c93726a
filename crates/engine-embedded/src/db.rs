//! The open database: RocksDB, its three column families, and the directory's lock for as long as it is open.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::statistics::Ticker;
use rocksdb::{
    ColumnFamily, DB, ErrorKind, Options as RocksOptions, ReadOptions, ReadTier, WriteBatch, WriteOptions,
};
use store::{Fault, RawRow, StoredRow};
use tokio::sync::watch;

use crate::counters::LiveCounters;
use crate::layout;

pub struct Db {
    rocks: DB,
    memory_only: ReadOptions,
    anywhere: ReadOptions,
    synced: WriteOptions,
    database_options: RocksOptions,
    counts: Arc<LiveCounters>,
    // Fields are dropped in this order: the lock is released, and `closing` dropped, after RocksDB is closed.
    _lock: File,
    _closing: watch::Sender<()>,
}

/// What is known of a row without reading from the disk.
pub enum InMemory<T> {
    Known(T),
    Unknown,
}

impl Db {
    /// `closing` is dropped once the database is closed and the lock released.
    pub fn new(
        rocks: DB,
        database_options: RocksOptions,
        counts: Arc<LiveCounters>,
        lock: File,
        closing: watch::Sender<()>,
    ) -> Self {
        let mut memory_only = ReadOptions::default();
        memory_only.set_read_tier(ReadTier::BlockCache);
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        let anywhere = ReadOptions::default();
        Self {
            rocks,
            memory_only,
            anywhere,
            synced,
            database_options,
            counts,
            _lock: lock,
            _closing: closing,
        }
    }

    pub fn counts(&self) -> &LiveCounters {
        &self.counts
    }

    pub fn rocks(&self) -> &DB {
        &self.rocks
    }

    pub fn meta(&self) -> &ColumnFamily {
        self.family(layout::META_FAMILY)
    }

    pub fn data(&self) -> &ColumnFamily {
        self.family(layout::DATA_FAMILY)
    }

    pub fn objects(&self) -> &ColumnFamily {
        self.family(layout::OBJECTS_FAMILY)
    }

    fn family(&self, name: &str) -> &ColumnFamily {
        // `open` creates all of them, and nothing in this crate drops a column family.
        self.rocks.cf_handle(name).expect("opened with this column family")
    }

    /// Passes the row to `look` without copying it, if it is in memory.
    pub fn look_in_memory<T>(
        &self,
        key: &[u8],
        look: impl FnOnce(Option<RawRow<'_>>) -> T,
    ) -> Result<InMemory<T>, Fault> {
        self.counts.point_gets.add(1);
        let found = self.rocks.get_pinned_cf_opt(self.data(), key, &self.memory_only);
        self.counts.note_blocks();
        match found {
            Ok(found) => Ok(InMemory::Known(look(found.as_deref().map(RawRow::new)))),
            Err(error) if error.kind() == ErrorKind::Incomplete => Ok(InMemory::Unknown),
            Err(error) => Err(fault("could not read a row", error)),
        }
    }

    /// Passes the row to `look` without copying it. May wait for the disk.
    pub fn look<T>(&self, key: &[u8], look: impl FnOnce(Option<RawRow<'_>>) -> T) -> Result<T, Fault> {
        self.counts.point_gets.add(1);
        let found = self.rocks.get_pinned_cf_opt(self.data(), key, &self.anywhere);
        self.counts.note_blocks();
        let found = found.map_err(|error| fault("could not read a row", error))?;
        Ok(look(found.as_deref().map(RawRow::new)))
    }

    /// May wait for the disk.
    pub fn row(&self, key: &[u8]) -> Result<Option<StoredRow>, Fault> {
        self.look(key, copied)
    }

    /// Writes the batch atomically. It is on disk when this returns.
    pub fn write(&self, batch: WriteBatch) -> Result<(), Fault> {
        self.rocks
            .write_opt(batch, &self.synced)
            .map_err(|error| fault("could not write a commit to the log", error))
    }

    /// Writes all rows and chunks to files, so that the next open has no log to replay.
    pub fn flush(&self) -> Result<(), Fault> {
        for family in [self.objects(), self.data(), self.meta()] {
            self.rocks
                .flush_cf(family)
                .map_err(|error| fault("could not flush rows to a table file", error))?;
        }
        Ok(())
    }

    /// Blocks asked for, and how many of them were not in the cache.
    pub fn blocks(&self) -> (u64, u64) {
        let ticker = |ticker| self.database_options.get_ticker_count(ticker);
        let missed = ticker(Ticker::BlockCacheMiss);
        (ticker(Ticker::BlockCacheHit) + missed, missed)
    }

    /// Tombstones and older versions that iterators have stepped over.
    pub fn entries_skipped(&self) -> u64 {
        self.database_options.get_ticker_count(Ticker::NumberIterSkip)
    }
}

pub fn copied(row: Option<RawRow<'_>>) -> Option<StoredRow> {
    row.map(|row| StoredRow::new(Bytes::copy_from_slice(row.bytes())))
}

/// Turns RocksDB's error into a fault of the matching kind.
pub fn fault(what: &'static str, error: rocksdb::Error) -> Fault {
    use ErrorKind as E;
    let fault = match error.kind() {
        E::Corruption => Fault::damaged(what),
        // Our call is wrong; the disk is not.
        E::NotFound | E::NotSupported | E::InvalidArgument | E::MergeInProgress | E::ColumnFamilyDropped => {
            Fault::bug(what)
        }
        // `Unknown` too: such errors seldom come from us, and the system's log helps.
        E::IOError
        | E::Incomplete
        | E::ShutdownInProgress
        | E::TimedOut
        | E::Aborted
        | E::Busy
        | E::Expired
        | E::TryAgain
        | E::CompactionTooLarge
        | E::Unknown => Fault::disk(what),
    };
    fault.because(error)
}
