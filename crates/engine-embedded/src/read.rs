//! Reading rows: one, or a page of them.
//!
//! What is in memory is answered where it is asked; what may wait for the disk goes to the blocking threads.

use std::sync::Arc;

use model::EntityKey;
use rocksdb::Snapshot;
use store::{Error, Fault, Page, Row, Scan, Transaction};
use tokio::task;

use crate::catalog::{Catalog, Table};
use crate::counters::Tally;
use crate::db::{self, Db, InMemory};
use crate::draft;
use crate::layout::TableRecord;
use crate::options::Options;
use crate::scan::{Scanner, Turns};

#[derive(Debug)]
pub struct Reader {
    catalog: Arc<Catalog>,
    tally: Arc<Tally>,
    turns: Arc<Turns>,
}

impl Reader {
    pub fn new(catalog: Arc<Catalog>, tally: Arc<Tally>, options: &Options) -> Self {
        Self { catalog, tally, turns: Arc::new(Turns::new(options)) }
    }

    pub async fn get(&self, db: Arc<Db>, table: &Table, key: &EntityKey) -> Result<Option<Row>, Error> {
        let key = table.record.id.row(key);
        let found = match db.row_in_memory(&key)? {
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

    pub async fn scan(&self, db: Arc<Db>, table: Arc<Table>, scan: Scan) -> Result<Page, Error> {
        let turn = self.turns.scans.clone().acquire_owned().await;
        let turn = turn.map_err(|_| Fault::new("the store is closed"))?;
        let (catalog, tally, turns) = (self.catalog.clone(), self.tally.clone(), self.turns.clone());
        blocking(move || {
            // Held here and not by the caller, who may stop waiting while this goes on.
            let _turn = turn;
            let scanner = Scanner { db: &db, snapshot: db.rocks().snapshot(), tally: &tally, turns: &turns };
            let page = scanner.page(table.record.id, &scan)?;
            if is_there(&db, &scanner.snapshot, &catalog, &table)? {
                Ok(page)
            } else {
                Err(Error::TableNotFound)
            }
        })
        .await?
    }

    /// Brings the rows a transaction will be judged by into the cache, because the committer, waiting for the
    /// disk, would make every other writer wait too. What is found here decides nothing.
    pub async fn warm(&self, db: Arc<Db>, table: &Table, transaction: &Transaction) -> Result<(), Error> {
        let operations = transaction.operations().iter().filter(|operation| draft::needs_current(operation));
        let key = |row: &model::Key| {
            let partition = transaction.partition().clone();
            table.record.id.row(&EntityKey { partition, row: row.clone() })
        };
        let mut cold = Vec::new();
        for operation in operations {
            let key = key(&operation.row);
            if !db.is_in_memory(&key)? {
                cold.push(key);
            }
        }
        if cold.is_empty() {
            return Ok(());
        }
        self.tally.cold_gets.add(cold.len());
        blocking(move || cold.iter().try_for_each(|key| db.row(key).map(drop))).await??;
        Ok(())
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
    let stored = stored.map_err(|error| db::fault("could not read a table's record", &error))?;
    let shown = stored.and_then(|bytes| TableRecord::decode(&bytes)).is_some_and(|record| is_same(&record));
    Ok(shown && catalog.table_by_key(&table.key).is_some_and(|found| is_same(&found.record)))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    task::spawn_blocking(work).await.map_err(|error| Fault::new(format!("a read ended early: {error}")))
}
