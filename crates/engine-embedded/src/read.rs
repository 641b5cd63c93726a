//! Reading rows: one, or a page of them.
//!
//! What is in memory is answered where it is asked. What is not is mostly in the system's memory, and changing
//! threads for it would cost as much as reading it; so it is read where it is asked too, while there is `Patience`.
//! The others look into memory alone, and go to the blocking threads with what is not there; so do scans.

use std::sync::Arc;

use model::{EntityKey, KeyRange};
use rocksdb::Snapshot;
use store::{Error, Fault, Page, Scan, StoredRow, Transaction};
use tokio::task;

use crate::ahead::{Ahead, Found, FoundRow, Published};
use crate::catalog::{Catalog, Table};
use crate::counters::Tally;
use crate::db::{self, Db, InMemory};
use crate::draft;
use crate::layout::TableRecord;
use crate::options::Options;
use crate::patience::Patience;
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
    fn row(&self, db: &Db, key: &[u8]) -> Result<InMemory, Fault> {
        match self.patience.wait() {
            Some(_waiting) => Ok(InMemory::Known(db.row(key)?)),
            None => db.row_in_memory(key),
        }
    }

    pub async fn scan(&self, db: Arc<Db>, table: Arc<Table>, scan: Scan) -> Result<Page, Error> {
        let reach =
            if KeyRange::partition_of(&scan.ranges).is_some() { Reach::Partition } else { Reach::Table };
        let mut turn = self.turns.take(reach).await?;
        let (catalog, tally, turns) = (self.catalog.clone(), self.tally.clone(), self.turns.clone());
        blocking(move || {
            // Held here and not by the caller, who may stop waiting while this goes on.
            turn.begin();
            let snapshot = db.rocks().snapshot();
            let scanner = Scanner { db: &db, snapshot, tally: &tally, turns: &turns, turn: &turn };
            let page = scanner.page(table.record.id, &scan)?;
            if is_there(&db, &scanner.snapshot, &catalog, &table)? {
                Ok(page)
            } else {
                Err(Error::TableNotFound)
            }
        })
        .await?
    }

    /// Reads the rows a transaction will be judged by, before it is queued.
    pub async fn ahead(
        &self,
        db: Arc<Db>,
        table: Arc<Table>,
        transaction: Transaction,
    ) -> Result<Ahead, Error> {
        // Before the first row is read: what is read later than this number is at least as new.
        let seen = self.published.get();
        let mut rows = Vec::with_capacity(transaction.operations().len());
        let mut cold = Vec::new();
        for (index, operation) in transaction.operations().iter().enumerate() {
            let key = table.record.id.row(transaction.partition(), &operation.row);
            let mut found = Found::NotAsked;
            if draft::needs_current(operation) {
                let look = match transaction.operations().len() {
                    1 => self.row(&db, &key)?,
                    // A hundred rows from the disk would keep this thread for too long.
                    _ => db.row_in_memory(&key)?,
                };
                match look {
                    InMemory::Known(row) => found = Found::Row(row),
                    InMemory::Unknown => cold.push(index),
                }
            }
            rows.push(FoundRow { key, found });
        }
        if !cold.is_empty() {
            self.tally.cold_gets.add(cold.len());
            rows = blocking(move || read_cold(&db, rows, &cold)).await??;
        }
        Ok(Ahead { table, transaction, rows, seen })
    }
}

fn read_cold(db: &Db, mut rows: Vec<FoundRow>, cold: &[usize]) -> Result<Vec<FoundRow>, Fault> {
    for index in cold {
        let row = &mut rows[*index];
        row.found = Found::Row(db.row(&row.key)?);
    }
    Ok(rows)
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
    let stored = stored.map_err(|error| db::fault("could not read a table's record", &error))?;
    let shown = stored.and_then(|bytes| TableRecord::decode(&bytes)).is_some_and(|record| is_same(&record));
    Ok(shown && catalog.table_by_key(&table.key).is_some_and(|found| is_same(&found.record)))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    task::spawn_blocking(work).await.map_err(|error| Fault::new(format!("a read ended early: {error}")))
}
