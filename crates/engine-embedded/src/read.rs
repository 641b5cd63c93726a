//! Reading rows: one, or a page of them.
//!
//! A row in RocksDB's memory is read on the caller's thread. Other rows are mostly in the system's page cache, and
//! changing threads would cost as much as reading them. So they are read on the caller's thread too, as long as
//! `Patience` allows it. After that, rows that are not in memory are read on the blocking threads. Scans always run
//! there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{EntityKey, Key, KeyRange};
use rocksdb::Snapshot;
use store::{
    Change, Error, Fault, Page, PageGuard, RawRow, RowOperation, Scan, StoredRow, TableEstimate, Transaction,
};
use tokio::task;

use crate::absence::Absent;
use crate::catalog::{Catalog, Table};
use crate::counters::LiveCounters;
use crate::db::{self, Db, InMemory};
use crate::draft;
use crate::estimate;
use crate::layout::TableRecord;
use crate::options::Options;
use crate::patience::Patience;
use crate::prepared::{PreparedRow, PreparedTransaction, PublishedCommit, RowFacts};
use crate::queue::Reservation;
use crate::scan::Scanner;
use crate::turns::{Reach, Turns};

#[derive(Debug)]
pub struct Reader {
    catalog: Arc<Catalog>,
    counts: Arc<LiveCounters>,
    turns: Arc<Turns>,
    published: Arc<PublishedCommit>,
    patience: Patience,
}

impl Reader {
    pub fn new(
        catalog: Arc<Catalog>,
        counts: Arc<LiveCounters>,
        published: Arc<PublishedCommit>,
        options: &Options,
    ) -> Self {
        let turns = Arc::new(Turns::new(options));
        Self {
            catalog,
            counts,
            turns,
            published,
            patience: Patience::new(options.waiting_reads, &options.directory),
        }
    }

    /// Scans that run, and scans that wait for their turn.
    pub fn scans(&self) -> (usize, usize) {
        self.turns.load()
    }

    pub async fn get(&self, db: Arc<Db>, table: &Table, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        let key = table.record.id.row(&key.partition, &key.row);
        let found = match self.row(&db, &key)? {
            InMemory::Known(found) => found,
            InMemory::Unknown => {
                self.counts.cold_gets.add(1);
                let db = db.clone();
                blocking(move || db.row(&key)).await??
            }
        };
        if table.is_doomed() && !is_there(&db, &db.rocks().snapshot(), &self.catalog, table)? {
            return Err(Error::TableNotFound);
        }
        Ok(found)
    }

    /// Reads the row from memory or disk; only from memory if as many threads as may already wait for the disk.
    fn row(&self, db: &Db, key: &[u8]) -> Result<InMemory<Option<StoredRow>>, Fault> {
        match self.patience.wait() {
            Some(_waiting) => Ok(InMemory::Known(db.row(key)?)),
            None => db.look_in_memory(key, db::copied),
        }
    }

    pub async fn scan(&self, db: Arc<Db>, table: Arc<Table>, scan: Scan) -> Result<Page, Error> {
        let reach =
            if KeyRange::partition_of(&scan.ranges).is_some() { Reach::Partition } else { Reach::Table };
        let mut turn = self.turns.take(reach).await?;
        let (catalog, counts, turns) = (self.catalog.clone(), self.counts.clone(), self.turns.clone());
        let caller = Caller::default();
        let gone = caller.gone.clone();
        blocking(move || {
            // Held by this thread, because the caller may stop waiting before the scan ends.
            turn.begin();
            let snapshot = db.rocks().snapshot();
            let scanner =
                Scanner { db: &db, snapshot, counts: &counts, turns: &turns, turn: &turn, gone: &gone };
            let mut page = scanner.page(table.record.id, &scan)?;
            if !is_there(&db, &scanner.snapshot, &catalog, &table)? {
                return Err(Error::TableNotFound);
            }
            drop(scanner);
            if scan.lasts {
                page.tied = PageGuard::to(turn);
            }
            Ok(page)
        })
        .await?
    }

    /// One at a time among the scans of whole tables, which it is one of.
    pub async fn estimate(
        &self,
        db: Arc<Db>,
        table: Arc<Table>,
        within: &KeyRange,
        rows_max: u64,
    ) -> Result<TableEstimate, Error> {
        let Some((start, end)) = table.record.id.range(within) else { return Ok(TableEstimate::default()) };
        let mut turn = self.turns.take(Reach::Table).await?;
        let estimate = blocking(move || {
            turn.begin();
            estimate::estimate(&db, (&start, &end), rows_max)
        });
        Ok(estimate.await??)
    }

    /// Reads the rows that a transaction needs, before it is queued. Memory for merged rows is reserved before they
    /// are made.
    pub async fn prepare(
        &self,
        db: Arc<Db>,
        table: Arc<Table>,
        transaction: Transaction,
        reserved: Reservation,
    ) -> Result<(PreparedTransaction, Reservation), Error> {
        // Before the first row is read, so that every row is at least as new as this commit.
        let seen = self.published.get();
        let operations = transaction.operations();
        let key = |operation: &RowOperation| table.record.id.row(transaction.partition(), &operation.row);
        let keys: Vec<_> = operations.iter().map(key).collect();
        let waiting = self.patience.wait();
        let absent = Absent::find(&db, operations, &keys, waiting.is_some());
        drop(waiting);
        let mut rows = Vec::with_capacity(operations.len());
        let (mut left, mut cold) = (VecDeque::new(), 0);
        let mut here = MERGED_HERE_MAX;
        for (index, (operation, key)) in operations.iter().zip(keys).enumerate() {
            let mut facts = RowFacts::NotAsked;
            if absent.has(operation, &key) {
                facts = RowFacts::Stamp(None);
            } else if draft::needs_current(operation) {
                let is_alone = operations.len() == 1;
                match self.facts(&db, &key, transaction.partition(), operation, is_alone, here)? {
                    InMemory::Known(Some(known)) => facts = known,
                    InMemory::Known(None) => left.push_back(index),
                    InMemory::Unknown => {
                        left.push_back(index);
                        cold += 1;
                    }
                }
            }
            here = here.saturating_sub(facts.weight());
            rows.push(PreparedRow { key, facts });
        }
        self.counts.cold_gets.add(cold);
        let mut reserved = reserved;
        if !reserved.grow(MERGED_HERE_MAX - here) {
            return Err(Error::Busy);
        }
        let mut preparation = Preparation {
            prepared: PreparedTransaction { table, transaction, rows, seen, may_return: true },
            left,
            reserved,
            is_large: false,
        };
        while !preparation.left.is_empty() {
            if preparation.is_large {
                preparation.reserved.become_large().await?;
            }
            let db = db.clone();
            preparation = blocking(move || preparation.read(&db)).await??;
        }
        Ok((preparation.prepared, preparation.reserved))
    }

    /// What the operation needs of its row. `None` for a merge of more than `bytes_max`, which would take this thread
    /// too long.
    fn facts(
        &self,
        db: &Db,
        key: &[u8],
        partition: &Key,
        operation: &RowOperation,
        is_alone: bool,
        bytes_max: usize,
    ) -> Result<InMemory<Option<RowFacts>>, Error> {
        let look = |row: Option<RawRow<'_>>| match merged_bytes(operation, row) {
            bytes if bytes > bytes_max => Ok(None),
            _ => RowFacts::of(partition, operation, row).map(Some),
        };
        // Only for a single row: a hundred rows from the disk would take this thread too long.
        let waiting = if is_alone { self.patience.wait() } else { None };
        let facts = match waiting {
            Some(_waiting) => InMemory::Known(db.look(key, look)?),
            None => db.look_in_memory(key, look)?,
        };
        Ok(match facts {
            InMemory::Known(facts) => InMemory::Known(facts?),
            InMemory::Unknown => InMemory::Unknown,
        })
    }
}

/// Bytes that one transaction may merge on a thread that also serves other requests.
const MERGED_HERE_MAX: usize = 64 * 1024;

/// The most bytes that the merged row can have.
fn merged_bytes(operation: &RowOperation, row: Option<RawRow<'_>>) -> usize {
    match (&operation.change, row) {
        (Change::Merge(draft), Some(row)) => draft.len() + row.bytes().len(),
        _ => 0,
    }
}

/// A transaction with rows that have still to be read, on a thread that may wait for the disk.
struct Preparation {
    prepared: PreparedTransaction,
    left: VecDeque<usize>,
    reserved: Reservation,
    /// Its merged rows are so large that it has to wait for its turn.
    is_large: bool,
}

impl Preparation {
    /// Reads the rows that are left, until one needs more memory than a transaction may reserve without a turn.
    fn read(mut self, db: &Db) -> Result<Self, Error> {
        let PreparedTransaction { transaction, rows, .. } = &mut self.prepared;
        while let Some(index) = self.left.front().copied() {
            let (operation, row) = (&transaction.operations()[index], &mut rows[index]);
            let reserved = &mut self.reserved;
            let looked = db.look(&row.key, |current| {
                let bytes = merged_bytes(operation, current);
                if reserved.would_be_large(bytes) {
                    return Ok(None);
                }
                if !reserved.grow(bytes) {
                    return Err(Error::Busy);
                }
                Ok(Some(RowFacts::of(transaction.partition(), operation, current)?))
            })??;
            let Some(facts) = looked else {
                self.is_large = true;
                return Ok(self);
            };
            row.facts = facts;
            self.left.pop_front();
        }
        Ok(self)
    }
}

/// The caller of a scan. When it is dropped, the scan ends.
#[derive(Default)]
struct Caller {
    gone: Arc<AtomicBool>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

/// Whether everything read so far was read before the table's files could be deleted.
///
/// A drop marks the table as doomed, commits, publishes the change, and only then deletes files, even if a snapshot
/// needs them. So a table that is not doomed has all its files. A doomed table has them too if the snapshot does not
/// show the drop and the drop is not published yet.
fn is_there(db: &Db, snapshot: &Snapshot<'_>, catalog: &Catalog, table: &Table) -> Result<bool, Fault> {
    if !table.is_doomed() {
        return Ok(true);
    }
    let is_same = |record: &TableRecord| record.id == table.record.id;
    let stored = snapshot.get_pinned_cf(db.meta(), &table.key);
    let stored = stored.map_err(|error| db::fault("could not read a table's record", error))?;
    let shown =
        stored.and_then(|bytes| TableRecord::decode(&bytes).ok()).is_some_and(|record| is_same(&record));
    Ok(shown && catalog.table_by_key(&table.key).is_some_and(|found| is_same(&found.record)))
}

/// Runs it on a thread that may wait for the disk.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    task::spawn_blocking(work).await.map_err(|error| match error.is_panic() {
        true => Fault::bug("a thread that waits for the disk panicked").because(error),
        // A task is cancelled only when the runtime shuts down.
        false => Fault::closed().because(error),
    })
}
