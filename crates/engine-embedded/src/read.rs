//! Reading rows: one, or a page of them.
//!
//! What is in memory is answered where it is asked; what may wait for the disk goes to the blocking threads.

use std::sync::Arc;

use model::EntityKey;
use rocksdb::{ReadOptions, Snapshot};
use store::{Error, Fault, Page, PageBuilder, Row, Scan, Transaction};
use tokio::sync::Semaphore;
use tokio::task;

use crate::catalog::{Catalog, Table};
use crate::counters::Tally;
use crate::db::{self, Db, InMemory};
use crate::draft;
use crate::layout::{TableId, TableRecord};

#[derive(Debug)]
pub struct Reader {
    catalog: Arc<Catalog>,
    tally: Arc<Tally>,
    scans: Arc<Semaphore>,
}

impl Reader {
    pub fn new(catalog: Arc<Catalog>, tally: Arc<Tally>, concurrent_scans: usize) -> Self {
        Self { catalog, tally, scans: Arc::new(Semaphore::new(concurrent_scans.max(1))) }
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
        let turn = self.scans.clone().acquire_owned().await;
        let turn = turn.map_err(|_| Fault::new("the store is closed"))?;
        let (catalog, tally) = (self.catalog.clone(), self.tally.clone());
        blocking(move || {
            // Held here and not by the caller, who may stop waiting while this goes on.
            let _turn = turn;
            scan_now(&db, &catalog, &tally, &table, &scan)
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

fn scan_now(db: &Db, catalog: &Catalog, tally: &Tally, table: &Table, scan: &Scan) -> Result<Page, Error> {
    let snapshot = db.rocks().snapshot();
    let mut page = PageBuilder::new(scan);
    let (mut seeks, mut rows_read) = (0, 0);
    'page: for range in &scan.ranges {
        let Some((start, end)) = table.record.id.range(range) else { continue };
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end);
        let mut rows = snapshot.raw_iterator_cf_opt(db.data(), options);
        rows.seek(start);
        seeks += 1;
        while let Some((key, value)) = rows.item() {
            rows_read += 1;
            if !page.offer(TableId::strip(key), value)? {
                break 'page;
            }
            rows.next();
        }
        // An iterator that can't go on looks like one at its end; only its status tells them apart.
        rows.status().map_err(|error| db::fault("could not read on in a scan", &error))?;
    }
    tally.seeks.add(seeks);
    tally.rows_read.add(rows_read);
    if !is_there(db, &snapshot, catalog, table)? {
        return Err(Error::TableNotFound);
    }
    Ok(page.finish())
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
