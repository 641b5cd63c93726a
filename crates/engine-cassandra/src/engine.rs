//! Puts the parts of the engine together, and implements the `Engine` contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use model::{AccountName, DateTime, EntityKey, Key, ServiceKind};
use scylla::client::session::Session;
use store::{
    Engine, EngineCounters, Error, Fault, Page, Scan, StoredName, StoredRow, TableRef, TablesPage,
    Transaction,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::catalog::{Catalog, Table};
use crate::cluster::{Cluster, Link};
use crate::counters::{ClusterState, Counts};
use crate::directory::{Directory, Hints, Janitor};
use crate::freeze::{Freeze, WritePermit};
use crate::health::Health;
use crate::keys::KeyBytes;
use crate::lane::Lanes;
use crate::options::Options;
use crate::partition::PartitionId;
use crate::round::Writer;
use crate::scan;
use crate::slot::{self, Slot};
use crate::statements::Statements;
use crate::trouble::{Trouble, undecodable};

/// Tables on a cluster. Any number of these, in any number of processes, may use one keyspace.
#[derive(Debug)]
pub struct CassandraEngine {
    cluster: Arc<Cluster>,
    catalog: Catalog,
    directory: Arc<Directory>,
    hints: Arc<Hints>,
    writer: Arc<Writer>,
    lanes: Arc<Lanes>,
    health: Arc<Health>,
    freeze: Arc<Freeze>,
    closed: AtomicBool,
    /// The background tasks, until the engine is closed.
    background: Mutex<Option<Background>>,
}

#[derive(Debug)]
struct Background {
    health: JoinHandle<()>,
    janitor: Janitor,
    /// Returns the slot when it is stopped.
    slot: JoinHandle<Slot>,
    stop: tokio_util::sync::CancellationToken,
}

impl CassandraEngine {
    /// Takes a session from `session::open`, and a keyspace that `init` made.
    pub fn open(session: Session, options: &Options) -> BoxFuture<'_, Result<Self, Trouble>> {
        Box::pin(Self::assemble(session, options))
    }

    async fn assemble(session: Session, options: &Options) -> Result<Self, Trouble> {
        driver::use_keyspace(&session, &options.keyspace).await.map_err(Trouble::refused)?;
        let counts = Arc::new(Counts::default());
        let statements = Statements::prepare(&session, options.reads, &counts).await?;
        let link = Arc::new(Link::new(session, statements, counts));
        let (mut slot, clock) = slot::take(&link, options.table_lease).await?;
        let clock = Arc::new(clock);
        tracing::info!(slot = slot.id(), keyspace = options.keyspace, "this server may write to the cluster");
        let cluster = Arc::new(Cluster { link: link.clone(), clock: clock.clone() });
        let hints = Arc::new(Hints::default());
        let directory = Arc::new(Directory::new(cluster.clone()));
        let writer = Arc::new(Writer::new(cluster.clone(), directory.clone(), hints.clone()));
        let lanes = Arc::new(Lanes::new(writer.clone(), options.writes_under_way, options.combine));
        let health = Arc::new(Health::new());
        let freeze = Arc::new(Freeze::new(cluster.clone(), lanes.clone()));
        freeze.look().await?;
        let stop = tokio_util::sync::CancellationToken::new();
        let background = Background {
            health: tokio::spawn(health.clone().watch(cluster.clone(), freeze.clone())),
            janitor: Janitor::start(directory.clone(), hints.clone(), options.janitor),
            slot: tokio::spawn({
                let (stop, freeze) = (stop.clone(), freeze.clone());
                async move {
                    tokio::select! {
                        never = slot.keep(&link, &clock, &freeze) => match never {},
                        () = stop.cancelled() => {}
                    }
                    slot
                }
            }),
            stop,
        };
        let catalog = Catalog::new(cluster.clone(), directory.clone(), options.table_lease);
        let closed = AtomicBool::new(false);
        Ok(Self {
            cluster,
            catalog,
            directory,
            hints,
            writer,
            lanes,
            health,
            freeze,
            closed,
            background: Mutex::new(Some(background)),
        })
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Fault::closed().into()) } else { Ok(()) }
    }

    /// The permit is held as long as the write is in flight.
    pub(crate) fn begin_write(&self) -> Result<WritePermit, Error> {
        self.check_open()?;
        self.freeze.begin()
    }

    /// Makes every server of the keyspace refuse writes, and waits for the writes that have begun. This takes a few
    /// seconds if no other server runs.
    pub fn freeze(&self) -> BoxFuture<'_, Result<(), Trouble>> {
        Box::pin(self.freeze.freeze())
    }

    pub fn is_frozen(&self) -> BoxFuture<'_, Result<bool, Trouble>> {
        Box::pin(self.freeze.is_on())
    }

    pub fn thaw(&self) -> BoxFuture<'_, Result<(), Trouble>> {
        Box::pin(self.freeze.thaw())
    }

    pub(crate) fn freeze_switch(&self) -> &Freeze {
        &self.freeze
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) async fn table(&self, table: &TableRef) -> Result<Arc<Table>, Error> {
        self.check_open()?;
        self.catalog.find(table).await
    }
}

#[async_trait]
impl Engine for CassandraEngine {
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        let _pass = self.begin_write()?;
        self.catalog.create(table, metadata).await
    }

    async fn drop_table(&self, table: &TableRef) -> Result<(), Error> {
        let _pass = self.begin_write()?;
        self.catalog.drop_table(table).await
    }

    async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, Error> {
        let _pass = self.begin_write()?;
        self.catalog.drop_table_if(table, expected).await
    }

    async fn find_table(&self, table: &TableRef) -> Result<StoredName, Error> {
        Ok(self.table(table).await?.name.clone())
    }

    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        self.check_open()?;
        self.catalog.list(account, service, from, limit).await
    }

    async fn list_accounts(&self) -> Result<Vec<AccountName>, Error> {
        self.check_open()?;
        self.catalog.accounts().await
    }

    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        let table = self.table(table).await?;
        let id = PartitionId { table: table.id, key: KeyBytes::of(partition.as_str()) };
        let mut checked = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let row = row.map(StoredRow::open).transpose()?;
            checked.push((key, row.map(|row| (row.timestamp(), row))));
        }
        self.writer.load(&id, checked).await
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        let table = self.table(table).await?;
        let (partition, row) = (KeyBytes::of(key.partition.as_str()), KeyBytes::of(key.row.as_str()));
        let values = (table.id, partition.as_bytes(), row.as_bytes());
        let rows = self.cluster.read(&self.cluster.statements.get_row, values).await?;
        let row =
            rows.maybe_first_row::<(Option<Vec<u8>>,)>().map_err(undecodable("a row of a partition"))?;
        Ok(row.and_then(|(body,)| body).map(StoredRow::new))
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        let table = self.table(table).await?;
        scan::scan(&self.cluster, &self.directory, table.id, &scan, &self.hints).await
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error> {
        let _pass = self.begin_write()?;
        let table = self.table(table).await?;
        let id = PartitionId { table: table.id, key: KeyBytes::of(transaction.partition().as_str()) };
        self.lanes.apply(id, transaction).await
    }

    async fn table_metadata(&self, table: &TableRef) -> Result<Option<Bytes>, Error> {
        Ok(self.table(table).await?.metadata.clone())
    }

    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let _pass = self.begin_write()?;
        self.catalog.replace_table_metadata(table, expected, metadata).await
    }

    async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error> {
        self.check_open()?;
        self.catalog.service_metadata(account, service).await
    }

    async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let _pass = self.begin_write()?;
        self.catalog.replace_service_metadata(account, service, expected, metadata).await
    }

    fn check_health(&self) -> Result<(), Fault> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Fault::closed());
        }
        self.health.check()
    }

    fn counters(&self) -> EngineCounters {
        let state = ClusterState { is_leased: self.cluster.clock.is_leased(), lanes: self.lanes.load() };
        self.cluster.counts.read(state)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let Some(background) = self.background.lock().await.take() else { return };
        self.lanes.drain().await;
        background.health.abort();
        background.janitor.stop().await;
        background.stop.cancel();
        if let Ok(slot) = background.slot.await {
            slot.release(&self.cluster, &self.cluster.clock).await;
        }
    }
}
