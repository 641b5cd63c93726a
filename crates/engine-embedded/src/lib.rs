//! The durable engine: tables and rows in RocksDB, in one directory, by one process.
//!
//! One thread writes (`commit`), everyone reads (`read`), another thread gives back the space of dropped
//! tables (`reclaim`). Knows nothing of HTTP, JSON or filters; what a row looks like is `store`'s.

mod ahead;
mod catalog;
mod check;
mod checkpoint;
mod commit;
mod counters;
mod database;
mod db;
mod directory;
mod draft;
mod fields;
mod health;
mod layout;
mod open;
mod options;
mod patience;
mod queue;
mod read;
mod reclaim;
mod records;
mod report;
mod salvage;
mod scan;
mod split;
mod survey;
mod turns;
mod upgrade;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::{AccountName, DateTime, EntityKey, Key, ServiceKind};
use parking_lot::RwLock;
use store::{Engine, Error, Fault, Page, Scan, StoredName, StoredRow, TableRef, TablesPage, Transaction};
use tokio::sync::watch;
use tokio::task;
use tracing::warn;

use crate::ahead::{Published, Touched};
use crate::catalog::{Catalog, Table};
pub use crate::check::check;
pub use crate::checkpoint::Checkpoint;
use crate::commit::{Answer, Committer, Done, Work};
pub use crate::counters::Counters;
use crate::counters::Tally;
use crate::db::Db;
use crate::health::Health;
pub use crate::layout::FORMAT_VERSION;
pub use crate::open::OpenError;
use crate::open::Opened;
pub use crate::options::{Options, ROCKSDB_VERSION};
use crate::queue::{Queue, Reserved};
use crate::read::Reader;
use crate::reclaim::Reclaimer;
pub use crate::report::{Damage, Place, Report, RowPlace, TableCount};
pub use crate::salvage::{SalvageError, Salvaged, salvage};
pub use crate::survey::Progress;

/// On a full disk RocksDB holds a commit, or a flush, until there is room again. A close waits so long for that; what
/// was held is then refused, and the log has all that was acknowledged.
const STALL_TIME_MAX: Duration = Duration::from_secs(10);

pub struct EmbeddedEngine {
    directory: PathBuf,
    catalog: Arc<Catalog>,
    reader: Reader,
    health: Arc<Health>,
    tally: Arc<Tally>,
    statistics: bool,
    /// Gone once closed.
    running: RwLock<Option<Running>>,
    /// Its sender is dropped when the database is closed and the directory free.
    closed: watch::Receiver<()>,
}

/// What only an open engine has. Others borrow its parts for one call and never hold the queue while they
/// wait, so that taking this away ends the committer.
struct Running {
    db: Arc<Db>,
    queue: Arc<Queue>,
    stopping: Arc<AtomicBool>,
    committer: JoinHandle<()>,
    reclaimer: JoinHandle<()>,
}

impl EmbeddedEngine {
    /// Opens the store in the directory, or makes one of an empty directory. Blocks on the disk.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let (closing, closed) = watch::channel(());
        let tally = Arc::new(Tally::default());
        let Opened { db, catalog, last, committed, dropping } = open::open(&options, &tally, closing)?;
        let (db, catalog, health) = (Arc::new(db), Arc::new(catalog), Arc::new(Health::new()));
        let (queue, queued) = queue::queue(options.queue_transactions, options.queue_bytes);
        let (queue, stopping) = (Arc::new(queue), Arc::new(AtomicBool::new(false)));

        let published = Arc::new(Published::new(last.counter));
        let (dropped, to_reclaim) = mpsc::channel();
        // The record stays, so the next open that is not at rest takes it up.
        for id in dropping.into_iter().filter(|_| !options.at_rest) {
            // Its receiver is the next thing made.
            let _ = dropped.send(id);
        }
        let started = |source| OpenError::NoThread { directory: options.directory.clone(), source };
        let reclaimer =
            Reclaimer { db: db.clone(), queue: Arc::downgrade(&queue), stopping: stopping.clone() };
        let reclaimer = thread::Builder::new()
            .name("partita-reclaim".to_owned())
            .spawn(move || reclaimer.run(&to_reclaim))
            .map_err(started)?;
        let committer = Committer {
            db: db.clone(),
            catalog: catalog.clone(),
            tally: tally.clone(),
            health: health.clone(),
            last,
            published: published.clone(),
            touched: Touched::new(),
            committed,
            dropped,
        };
        let committer = thread::Builder::new()
            .name("partita-commit".to_owned())
            .spawn(move || committer.run(&queued))
            .map_err(started)?;

        Ok(Self {
            reader: Reader::new(catalog.clone(), tally.clone(), published, &options),
            catalog,
            health,
            tally,
            statistics: options.statistics,
            directory: options.directory,
            running: RwLock::new(Some(Running { db, queue, stopping, committer, reclaimer })),
            closed,
        })
    }

    pub fn counters(&self) -> Counters {
        let mut counters = self.tally.read();
        if self.statistics
            && let Ok(db) = self.db()
        {
            (counters.blocks_asked, counters.blocks_read) = db.blocks();
            counters.entries_skipped = db.entries_skipped();
        }
        counters
    }

    /// A snapshot of all that is committed when this is called, beside the store. Blocks on the disk; writes go on.
    pub fn checkpoint(&self) -> Result<Checkpoint, Fault> {
        checkpoint::take(&*self.db()?, &self.directory)
    }

    /// Resolves when the storage has failed and nothing more is accepted: time for the server to exit, since
    /// only a restart can tell what is on the disk.
    pub fn on_failure(&self) -> impl Future<Output = Fault> + Send + use<> {
        self.health.failure()
    }

    fn db(&self) -> Result<Arc<Db>, Fault> {
        self.health.check()?;
        self.running.read().as_ref().map(|running| running.db.clone()).ok_or_else(Fault::closed)
    }

    fn queue(&self) -> Result<Arc<Queue>, Fault> {
        self.health.check()?;
        self.running.read().as_ref().map(|running| running.queue.clone()).ok_or_else(Fault::closed)
    }

    fn check_open(&self) -> Result<(), Fault> {
        self.health.check()?;
        if self.running.read().is_some() { Ok(()) } else { Err(Fault::closed()) }
    }

    fn table(&self, table: &TableRef) -> Result<Arc<Table>, Error> {
        self.check_open()?;
        self.catalog.table(table).ok_or(Error::TableNotFound)
    }

    /// What reading a table takes.
    fn readable(&self, table: &TableRef) -> Result<(Arc<Db>, Arc<Table>), Error> {
        Ok((self.db()?, self.catalog.table(table).ok_or(Error::TableNotFound)?))
    }

    async fn commit(&self, work: Work) -> Answer {
        if self.health.stalled().is_some() {
            return Err(Error::Busy);
        }
        let reserved = self.queue()?.reserve(queue::weigh(&work))?;
        self.commit_in(work, reserved).await
    }

    /// The same, in room that is held already.
    async fn commit_in(&self, work: Work, reserved: Reserved) -> Answer {
        let answer = self.queue()?.submit(work, reserved)?;
        // Dropped unanswered: the committer ended in the midst of it.
        answer.await.unwrap_or(Err(Error::OutcomeUnknown))
    }
}

impl Running {
    /// Finishes what was accepted and closes the database, unless a read still goes on in it.
    fn stop(self, flush: bool) {
        self.stopping.store(true, Ordering::SeqCst);
        drop(self.queue);
        let (in_time, watch) = mpsc::channel::<()>();
        let db = self.db.clone();
        // Without it, should there be no thread to be had, a close on a full disk takes until there is room.
        let watchdog = thread::Builder::new().name("partita-close".to_owned()).spawn(move || {
            if watch.recv_timeout(STALL_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                warn!("the disk takes nothing; closing without what is not committed");
                db.rocks().cancel_all_background_work(false);
            }
        });
        // A panic has been reported where it happened.
        let _ = self.committer.join();
        if flush && let Err(error) = self.db.flush() {
            // The log has it all; the next open takes longer, no more.
            warn!(%error, "closed without a flush");
        }
        drop(in_time);
        let _ = watchdog.map(JoinHandle::join);
        // Ends the compaction the reclaimer may be waiting for.
        self.db.rocks().cancel_all_background_work(true);
        let _ = self.reclaimer.join();
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        self.commit(Work::Create(table.clone(), metadata)).await.map(drop)
    }

    async fn drop_table(&self, table: &TableRef) -> Result<(), Error> {
        self.commit(Work::Drop(table.clone())).await.map(drop)
    }

    async fn find_table(&self, table: &TableRef) -> Result<StoredName, Error> {
        Ok(self.table(table)?.record.name.clone())
    }

    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        self.check_open()?;
        Ok(self.catalog.list(account, service, from, limit))
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        let (db, found) = self.readable(table)?;
        let row = self.reader.get(db, &found, key).await;
        row.map_err(|error| error.about(|| table.place_of(key)))
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        let (db, found) = self.readable(table)?;
        let page = self.reader.scan(db, found, scan).await;
        page.map_err(|error| error.about(|| table.to_string()))
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error> {
        let (db, found) = self.readable(table)?;
        if self.health.stalled().is_some() {
            return Err(Error::Busy);
        }
        let reserved = self.queue()?.reserve(transaction.weight())?;
        let ahead = self.reader.ahead(db, found, transaction, reserved).await;
        let (ahead, reserved) = ahead.map_err(|error| error.about(|| table.to_string()))?;
        match self.commit_in(Work::Apply(ahead), reserved).await? {
            Done::Stamped(stamps) => Ok(stamps),
            other => Err(Fault::bug(format!("a transaction was answered with {other:?}")).into()),
        }
    }

    async fn table_metadata(&self, table: &TableRef) -> Result<Option<Bytes>, Error> {
        Ok(self.table(table)?.record.metadata.clone())
    }

    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let work = Work::ReplaceTableMetadata { table: table.clone(), expected, metadata };
        Ok(self.commit(work).await? != Done::NotAsExpected)
    }

    async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error> {
        self.check_open()?;
        Ok(self.catalog.service(&(service, account.clone())).map(|record| record.document))
    }

    async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let account = account.clone();
        let work = Work::ReplaceServiceMetadata { service, account, expected, metadata };
        Ok(self.commit(work).await? != Done::NotAsExpected)
    }

    async fn list_accounts(&self) -> Result<Vec<AccountName>, Error> {
        self.check_open()?;
        Ok(self.catalog.accounts())
    }

    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        let rows = rows.into_iter().map(|(row, stored)| Ok((row, stored.map(StoredRow::open).transpose()?)));
        let rows = rows.collect::<Result<_, Fault>>()?;
        self.commit(Work::Load(table.clone(), partition.clone(), rows)).await.map(drop)
    }

    /// Whether it can be read and written.
    fn check_health(&self) -> Result<(), Fault> {
        self.check_open()?;
        match self.health.stalled() {
            None => Ok(()),
            Some(waited) => {
                let what = format!("the disk has taken no write for {} s", waited.as_secs());
                let fault = Fault::disk(what).about(self.directory.display());
                Err(fault
                    .advising("free some space if it is full, and look for its errors in the system's log"))
            }
        }
    }

    async fn close(&self) {
        let running = self.running.write().take();
        if let Some(running) = running {
            let flush = self.health.check().is_ok();
            if task::spawn_blocking(move || running.stop(flush)).await.is_err() {
                warn!("closing the store was cut short");
            }
        }
        // Reads that were going on hold the database; it is closed when the last of them ends.
        let mut closed = self.closed.clone();
        while closed.changed().await.is_ok() {}
    }
}

impl Drop for EmbeddedEngine {
    /// Without a `close`, what was accepted is still made durable; only the flush is left out.
    fn drop(&mut self) {
        if let Some(running) = self.running.get_mut().take() {
            running.stop(false);
        }
    }
}

impl std::fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedEngine").field("directory", &self.directory).finish_non_exhaustive()
    }
}
