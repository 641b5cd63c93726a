//! The durable engine: tables and rows in RocksDB, in one directory, by one process.
//!
//! One thread writes (`commit`), all threads read (`read`), and another thread reclaims the space of dropped tables
//! (`reclaim`). It knows nothing of HTTP, JSON or filters. The bytes of a row are defined by `store`.
//!
//! Content that is too large for rows is in the same database (`objects`), or in files beside it (`content_files`), written by
//! whoever has it.

mod absence;
mod catalog;
mod check;
mod checkpoint;
mod commit;
mod content_files;
mod content_slot;
mod counters;
mod database;
mod db;
mod directory;
mod draft;
mod estimate;
mod fields;
mod health;
mod layout;
mod monitor;
mod objects;
mod open;
mod options;
mod patience;
mod prepared;
mod queue;
mod read;
mod read_buffers;
mod reclaim;
mod reclaim_objects;
mod records;
mod report;
mod salvage;
mod scan;
mod split;
mod survey;
mod survey_objects;
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
use model::{AccountName, DateTime, EntityKey, Key, KeyRange, ServiceKind};
use parking_lot::RwLock;
use store::{
    Engine, EngineCounters, Error, Fault, ObjectId, Page, Scan, StoredName, StoredRow, TableEstimate,
    TableRef, TablesPage, Transaction,
};
use tokio::sync::watch;
use tokio::task;
use tracing::warn;

use crate::catalog::{Catalog, Table};
pub use crate::check::check;
pub use crate::checkpoint::Checkpoint;
use crate::commit::{Committer, Work, WriteAnswer, WriteOutcome};
use crate::content_files::ContentFiles;
pub use crate::counters::Counters;
use crate::counters::LiveCounters;
use crate::db::Db;
pub use crate::directory::{stored_commits, stored_format};
use crate::health::Health;
pub use crate::layout::FORMAT_VERSION;
use crate::monitor::OpenState;
pub use crate::objects::EmbeddedObjects;
use crate::objects::ObjectsState;
pub use crate::open::OpenError;
use crate::open::OpenStore;
pub use crate::options::{Options, ROCKSDB_VERSION};
use crate::prepared::{KeyCommits, PreparedTransaction, PublishedCommit};
use crate::queue::{Queue, Reservation};
use crate::read::Reader;
use crate::reclaim::Reclaimer;
use crate::reclaim_objects::ObjectReclaimer;
pub use crate::report::{Damage, DamageEdge, Report, RowPlace, TableCount};
pub use crate::salvage::{SalvageError, SalvageReport, salvage};
pub use crate::survey::Progress;
pub use crate::survey_objects::ObjectCounts;

/// How long a close waits for a commit or flush that RocksDB delays because the disk is full. After that the delayed
/// commit is refused. Everything acknowledged is in the log.
const STALL_TIME_MAX: Duration = Duration::from_secs(10);

/// How often a transaction that has its turn is returned before the committer makes its merges, however large.
const RETURNS_MAX: u32 = 4;

pub struct EmbeddedEngine {
    directory: PathBuf,
    catalog: Arc<Catalog>,
    reader: Reader,
    health: Arc<Health>,
    counts: Arc<LiveCounters>,
    objects: Arc<ObjectsState>,
    statistics: bool,
    /// `None` once closed.
    running: RwLock<Option<Running>>,
    /// The sender is dropped when the database is closed and the directory is unlocked.
    closed: watch::Receiver<()>,
}

/// What only an open engine has. Calls use it only for a short time and never hold the queue while they wait, so that
/// the committer ends when this is dropped.
struct Running {
    db: Arc<Db>,
    queue: Arc<Queue>,
    stopping: Arc<AtomicBool>,
    committer: JoinHandle<()>,
    reclaimer: JoinHandle<()>,
    removed_objects: mpsc::Sender<ObjectId>,
    object_reclaimer: JoinHandle<()>,
}

impl EmbeddedEngine {
    /// Opens the store in the directory, or creates one in an empty directory. Blocks on the disk.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let (closing, closed) = watch::channel(());
        let counts = Arc::new(LiveCounters::default());
        let OpenStore { db, catalog, last, committed, dropping } = open::open(&options, &counts, closing)?;
        let (db, catalog, health) = (Arc::new(db), Arc::new(catalog), Arc::new(Health::new()));
        let files = ContentFiles::open(&options.directory)
            .map_err(|source| OpenError::Unwritable { directory: options.directory.clone(), source })?;
        let files = Arc::new(files);
        let (queue, queued) = queue::queue(options.queue_transactions, options.queue_bytes);
        let (queue, stopping) = (Arc::new(queue), Arc::new(AtomicBool::new(false)));

        let published = Arc::new(PublishedCommit::new(last.counter));
        let (dropped, to_reclaim) = mpsc::channel();
        // The records stay, so the next open without `at_rest` reclaims the space.
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
        let (removed_objects, to_remove) = mpsc::channel();
        let object_reclaimer = ObjectReclaimer {
            db: db.clone(),
            files: files.clone(),
            stopping: stopping.clone(),
            after: options.reclaim_objects_after,
            at_rest: options.at_rest,
        };
        let object_reclaimer = thread::Builder::new()
            .name("partita-objects".to_owned())
            .spawn(move || object_reclaimer.run(&to_remove))
            .map_err(started)?;
        let committer = Committer {
            db: db.clone(),
            catalog: catalog.clone(),
            counts: counts.clone(),
            health: health.clone(),
            last,
            published: published.clone(),
            touched: KeyCommits::new(),
            committed,
            dropped,
        };
        let committer = thread::Builder::new()
            .name("partita-commit".to_owned())
            .spawn(move || committer.run(&queued))
            .map_err(started)?;

        Ok(Self {
            reader: Reader::new(catalog.clone(), counts.clone(), published, &options),
            catalog,
            health,
            counts,
            objects: Arc::new(ObjectsState::new(files)),
            statistics: options.statistics,
            directory: options.directory,
            running: RwLock::new(Some(Running {
                db,
                queue,
                stopping,
                committer,
                reclaimer,
                removed_objects,
                object_reclaimer,
            })),
            closed,
        })
    }

    pub fn counters(&self) -> Counters {
        let mut counters = self.counts.read();
        if self.statistics
            && let Ok(db) = self.db()
        {
            (counters.blocks_asked, counters.blocks_read) = db.blocks();
            counters.entries_skipped = db.entries_skipped();
        }
        counters
    }

    /// A checkpoint of all commits so far, inside the data directory. Blocks on the disk; writes continue.
    pub fn checkpoint(&self) -> Result<Checkpoint, Fault> {
        let db = self.db()?;
        self.objects.files.kept_during(|| checkpoint::take(&db, &self.directory))
    }

    /// Resolves when the storage has failed and no write is accepted any more. The server should exit then, because
    /// only the next start can tell what is on disk.
    pub fn on_failure(&self) -> impl Future<Output = Fault> + Send + use<> {
        self.health.failure()
    }

    fn db(&self) -> Result<Arc<Db>, Fault> {
        self.health.check()?;
        self.running.read().as_ref().map(|running| running.db.clone()).ok_or_else(Fault::closed)
    }

    /// Has the space of removed objects reclaimed.
    fn note_removed(&self, objects: &[ObjectId]) {
        if let Some(running) = self.running.read().as_ref() {
            for object in objects {
                // Fails only if the thread has ended. The next start reclaims the space.
                let _ = running.removed_objects.send(*object);
            }
        }
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

    /// The database and the table, for reading.
    fn readable(&self, table: &TableRef) -> Result<(Arc<Db>, Arc<Table>), Error> {
        Ok((self.db()?, self.catalog.table(table).ok_or(Error::TableNotFound)?))
    }

    async fn commit(&self, work: Work) -> WriteAnswer {
        if self.health.stalled().is_some() {
            return Err(Error::Busy);
        }
        let reserved = self.queue()?.reserve(queue::weigh(&work))?;
        self.commit_in(work, reserved).await
    }

    /// Reads ahead and commits. The committer may return the transaction only if `may_return`.
    async fn attempt(&self, table: &TableRef, transaction: Transaction, may_return: bool) -> WriteAnswer {
        let (db, found) = self.readable(table)?;
        if self.health.stalled().is_some() {
            return Err(Error::Busy);
        }
        let reserved = self.queue()?.reserve(transaction.weight())?;
        let prepared = self.reader.prepare(db, found, transaction, reserved).await;
        let (prepared, reserved) = prepared.map_err(|error| error.about(|| table.to_string()))?;
        self.commit_in(Work::Apply(PreparedTransaction { may_return, ..prepared }), reserved).await
    }

    /// The same, with memory that is reserved already.
    async fn commit_in(&self, work: Work, reserved: Reservation) -> WriteAnswer {
        let answer = self.queue()?.submit(work, reserved)?;
        // The sender was dropped without an answer: the committer ended while it worked on this.
        answer.await.unwrap_or(Err(Error::OutcomeUnknown))
    }
}

impl Running {
    /// Finishes the accepted writes and closes the database. If a read is still running, it is closed when that ends.
    fn stop(self, flush: bool) {
        self.stopping.store(true, Ordering::SeqCst);
        drop((self.queue, self.removed_objects));
        let (in_time, watch) = mpsc::channel::<()>();
        let db = self.db.clone();
        // If no thread can be started, a close on a full disk waits until there is space.
        let watchdog = thread::Builder::new().name("partita-close".to_owned()).spawn(move || {
            if watch.recv_timeout(STALL_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                warn!("the disk accepts no writes; closing without the commits that wait for it");
                db.rocks().cancel_all_background_work(false);
            }
        });
        // A panic was already reported.
        let _ = self.committer.join();
        if flush && let Err(error) = self.db.flush() {
            // Everything is in the log; the next open only takes longer.
            warn!(%error, "closed without a flush");
        }
        drop(in_time);
        let _ = watchdog.map(JoinHandle::join);
        // Ends the compactions that the reclaimers may wait for.
        self.db.rocks().cancel_all_background_work(true);
        let _ = self.reclaimer.join();
        let _ = self.object_reclaimer.join();
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

    async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, Error> {
        let work = Work::DropIf { table: table.clone(), expected };
        Ok(!matches!(self.commit(work).await?, WriteOutcome::NotAsExpected))
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
        let mut returned = match self.attempt(table, transaction, true).await? {
            WriteOutcome::Returned(transaction) => transaction,
            done => return stamps(done),
        };
        let turn = self.queue()?.contended_turn();
        let _turn = turn.await?;
        for _ in 0..RETURNS_MAX {
            match self.attempt(table, returned, true).await? {
                WriteOutcome::Returned(transaction) => returned = transaction,
                done => return stamps(done),
            }
        }
        stamps(self.attempt(table, returned, false).await?)
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
        Ok(!matches!(self.commit(work).await?, WriteOutcome::NotAsExpected))
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
        Ok(!matches!(self.commit(work).await?, WriteOutcome::NotAsExpected))
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

    async fn estimate_table(
        &self,
        table: &TableRef,
        within: &KeyRange,
        rows_max: u64,
    ) -> Result<Option<TableEstimate>, Error> {
        let (db, found) = self.readable(table)?;
        let estimate = self.reader.estimate(db, found, within, rows_max).await;
        estimate.map(Some).map_err(|error| error.about(|| table.to_string()))
    }

    /// Whether the store can be read and written.
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

    fn counters(&self) -> EngineCounters {
        let mut counters = EngineCounters::default();
        monitor::write_counts(&mut counters, &self.counts);
        let open = self.running.read().as_ref().map(|running| (running.db.clone(), running.queue.load()));
        if let Some((db, queue)) = open {
            let scans = self.reader.scans();
            let content_bytes = self.objects.files.bytes();
            let state = OpenState { db: &db, directory: &self.directory, queue, scans, content_bytes };
            monitor::write_state(&mut counters, &state);
        }
        counters
    }

    async fn close(&self) {
        let running = self.running.write().take();
        if let Some(running) = running {
            let flush = self.health.check().is_ok();
            if task::spawn_blocking(move || running.stop(flush)).await.is_err() {
                warn!("closing the store was interrupted");
            }
        }
        // Reads that are still running hold the database open. It is closed when the last of them ends.
        let mut closed = self.closed.clone();
        while closed.changed().await.is_ok() {}
    }
}

fn stamps(done: WriteOutcome) -> Result<Vec<DateTime>, Error> {
    match done {
        WriteOutcome::Stamped(stamps) => Ok(stamps),
        other => Err(Fault::bug(format!("a transaction was answered with {other:?}")).into()),
    }
}

impl Drop for EmbeddedEngine {
    /// Without `close`, accepted writes are still made durable; only the flush is skipped.
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
