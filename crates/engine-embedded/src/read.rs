//! Reading rows: one, or a page of them.
//!
//! What is in memory is answered where it is asked. What is not is mostly in the system's memory, and changing
//! threads for it would cost as much as reading it; so it is read where it is asked too, while there is `Patience`.
//! The others look into memory alone, and go to the blocking threads with what is not there; so do scans.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{EntityKey, Key, KeyRange};
use rocksdb::Snapshot;
use store::{Change, Error, Fault, Operation, Page, RawRow, Scan, StoredRow, Tied, Transaction};
use tokio::task;

use crate::ahead::{Ahead, Found, FoundRow, Published};
use crate::catalog::{Catalog, Table};
use crate::counters::Tally;
use crate::db::{self, Db, InMemory};
use crate::draft;
use crate::layout::TableRecord;
use crate::options::Options;
use crate::patience::Patience;
use crate::queue::Reserved;
use crate::scan::Scanner;
use crate::turns::{Reach, Turns};

#[derive(Debug)]
pub struct Reader {
    catalog: Arc<Catalog>,
    tally: Arc<Tally>,
    turns: Arc<Turns>,
    published: Arc<Published>,
    patience: Patience,
}

impl Reader {
    pub fn new(
        catalog: Arc<Catalog>,
        tally: Arc<Tally>,
        published: Arc<Published>,
        options: &Options,
    ) -> Self {
        let turns = Arc::new(Turns::new(options));
        Self { catalog, tally, turns, published, patience: Patience::new(options.waiting_reads) }
    }

    pub async fn get(&self, db: Arc<Db>, table: &Table, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        let key = table.record.id.row(&key.partition, &key.row);
        let found = match self.row(&db, &key)? {
            InMemory::Known(found) => found,
            InMemory::Unknown => {
                self.tally.cold_gets.add(1);
                let db = db.clone();
                blocking(move || db.row(&key)).await??
            }
        };
        if table.is_doomed() && !is_there(&db, &db.rocks().snapshot(), &self.catalog, table)? {
            return Err(Error::TableNotFound);
        }
        Ok(found)
    }

    /// The row, wherever it is, unless as many as may wait for the disk do so already.
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
        let (catalog, tally, turns) = (self.catalog.clone(), self.tally.clone(), self.turns.clone());
        let caller = Caller::default();
        let gone = caller.gone.clone();
        blocking(move || {
            // Held here and not by the caller, who may stop waiting while this goes on.
            turn.begin();
            let snapshot = db.rocks().snapshot();
            let scanner =
                Scanner { db: &db, snapshot, tally: &tally, turns: &turns, turn: &turn, gone: &gone };
            let mut page = scanner.page(table.record.id, &scan)?;
            if !is_there(&db, &scanner.snapshot, &catalog, &table)? {
                return Err(Error::TableNotFound);
            }
            drop(scanner);
            if scan.lasts {
                page.tied = Tied::to(turn);
            }
            Ok(page)
        })
        .await?
    }

    /// Looks at the rows a transaction will be judged by, before it is queued. What it makes of them is held first.
    pub async fn ahead(
        &self,
        db: Arc<Db>,
        table: Arc<Table>,
        transaction: Transaction,
        reserved: Reserved,
    ) -> Result<(Ahead, Reserved), Error> {
        // Before the first row is read: what is read later than this number is at least as new.
        let seen = self.published.get();
        let mut rows = Vec::with_capacity(transaction.operations().len());
        let (mut left, mut cold) = (VecDeque::new(), 0);
        let mut here = MERGED_HERE_MAX;
        for (index, operation) in transaction.operations().iter().enumerate() {
            let key = table.record.id.row(transaction.partition(), &operation.row);
            let mut found = Found::NotAsked;
            if draft::needs_current(operation) {
                let is_alone = transaction.operations().len() == 1;
                match self.found(&db, &key, transaction.partition(), operation, is_alone, here)? {
                    InMemory::Known(Some(known)) => found = known,
                    InMemory::Known(None) => left.push_back(index),
                    InMemory::Unknown => {
                        left.push_back(index);
                        cold += 1;
                    }
                }
            }
            here = here.saturating_sub(found.weight());
            rows.push(FoundRow { key, found });
        }
        self.tally.cold_gets.add(cold);
        let mut reserved = reserved;
        if !reserved.grow(MERGED_HERE_MAX - here) {
            return Err(Error::Busy);
        }
        let mut reading =
            Reading { ahead: Ahead { table, transaction, rows, seen, may_return: true }, left, reserved, is_large: false };
        while !reading.left.is_empty() {
            if reading.is_large {
                reading.reserved.become_large().await?;
            }
            let db = db.clone();
            reading = blocking(move || reading.read(&db)).await??;
        }
        Ok((reading.ahead, reading.reserved))
    }

    /// What the operation needs of its row, wherever that is; `None` for a merge that makes more than so many bytes,
    /// which would keep this thread for too long.
    fn found(
        &self,
        db: &Db,
        key: &[u8],
        partition: &Key,
        operation: &Operation,
        is_alone: bool,
        bytes_max: usize,
    ) -> Result<InMemory<Option<Found>>, Error> {
        let look = |row: Option<RawRow<'_>>| match merged_bytes(operation, row) {
            bytes if bytes > bytes_max => Ok(None),
            _ => Found::of(partition, operation, row).map(Some),
        };
        // A hundred rows from the disk would keep this thread for too long.
        let waiting = if is_alone { self.patience.wait() } else { None };
        let found = match waiting {
            Some(_waiting) => InMemory::Known(db.look(key, look)?),
            None => db.look_in_memory(key, look)?,
        };
        Ok(match found {
            InMemory::Known(found) => InMemory::Known(found?),
            InMemory::Unknown => InMemory::Unknown,
        })
    }
}

/// What merges of one transaction may make on a thread that also answers others.
const MERGED_HERE_MAX: usize = 64 * 1024;

/// What a merge makes of this row at most.
fn merged_bytes(operation: &Operation, row: Option<RawRow<'_>>) -> usize {
    match (&operation.change, row) {
        (Change::Merge(draft), Some(row)) => draft.len() + row.bytes().len(),
        _ => 0,
    }
}

/// A transaction some of whose rows have still to be looked at, on a thread that may wait.
struct Reading {
    ahead: Ahead,
    left: VecDeque<usize>,
    reserved: Reserved,
    /// It makes so much that it has to wait for its turn first.
    is_large: bool,
}

impl Reading {
    /// Looks at the rows that are left, as far as there is room for what becomes of them.
    fn read(mut self, db: &Db) -> Result<Self, Error> {
        let Ahead { transaction, rows, .. } = &mut self.ahead;
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
                Ok(Some(Found::of(transaction.partition(), operation, current)?))
            })??;
            let Some(found) = looked else {
                self.is_large = true;
                return Ok(self);
            };
            row.found = found;
            self.left.pop_front();
        }
        Ok(self)
    }
}

/// Whoever waits for a scan. Once dropped, the scan has nobody to read for.
#[derive(Default)]
struct Caller {
    gone: Arc<AtomicBool>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

/// Whether what was read up to now was read from a table that had not been dropped.
///
/// A drop dooms the table, writes, publishes, and only then deletes files, without regard to snapshots. So a
/// table not doomed has been left alone. A doomed one is whole if the snapshot does not show the drop yet and
/// the drop is not published even now.
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    task::spawn_blocking(work).await.map_err(|error| match error.is_panic() {
        true => Fault::bug("a read panicked").because(error),
        // Only a runtime that shuts down cancels it.
        false => Fault::closed().because(error),
    })
}
