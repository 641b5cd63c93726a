//! The contract between the service and an engine.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use model::{AccountName, DateTime, EntityKey, Key, KeyRange, ServiceKind, TableName};

use crate::encoding::table_name;
use crate::{EngineCounters, Error, Fault, Page, Scan, StoredName, StoredRow, Transaction, place_of};

/// A table of an account: one of the Table service, or what another service keeps as one, such as a queue. Names compare
/// without case. Tables of different services may have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRef {
    pub account: AccountName,
    pub service: ServiceKind,
    pub name: StoredName,
}

impl TableRef {
    /// A table of the Table service.
    pub fn table(account: AccountName, name: TableName) -> Self {
        Self { account, service: ServiceKind::Table, name: name.into() }
    }

    /// The name that an engine keeps it under. No other table of the account has it.
    pub fn stored_name(&self) -> Cow<'_, str> {
        table_name::write(self.service, self.name.folded())
    }

    /// The table for people: `account/Books`, or `account/queue/orders`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.account, place_of(self.service, self.name.as_str()))
    }

    /// An entity of this table, for people.
    pub fn place_of(&self, key: &EntityKey) -> String {
        format!("PartitionKey {:?}, RowKey {:?}, {self}", key.partition.as_str(), key.row.as_str())
    }
}

impl fmt::Display for TableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of account {}", self.service, self.name, self.account)
    }
}

/// Tables in the order of their lower-case names, each in the case it was created with.
#[derive(Debug)]
pub struct TablesPage {
    pub names: Vec<StoredName>,
    /// Lower-case name of the first table not in this page.
    pub next: Option<String>,
}

/// About how much a table holds, or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableEstimate {
    pub rows: u64,
    pub bytes: u64,
    /// Rows that were read for it.
    pub read: u64,
}

/// What every engine promises. The crate `store-suite` has each promise as a test.
///
/// - `apply` is all or nothing. After `Ok`, the changes survive a crash of the process and of the machine.
/// - `apply` checks all conditions and makes all changes at one moment. Every `get` and `scan` that starts after its
///   answer sees the changes.
/// - A `get`, and the rows of one partition in one `scan`, never show part of a transaction.
/// - The timestamp of a row grows with every change, and no two versions of a row have the same one, not even after a
///   delete and a new insert.
/// - `scan` returns rows in key order, each at most once. Its cost depends on the rows in its ranges, not on the size
///   of the table. Its page tells how many rows it examined, also those that the filter dropped.
/// - Once `drop_table` has answered, no operation finds the table's rows, and a new table with that name is empty.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The table comes with its metadata, in one step. `Error::TableAlreadyExists` if there is one.
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error>;

    /// `Error::TableNotFound` if there is none. Takes no longer for a large table than for a small one.
    async fn drop_table(&self, table: &TableRef) -> Result<(), Error>;

    /// Drops the table if its metadata is `expected`; otherwise returns false without a change. For whoever drops a table
    /// because of what its metadata says: then no change of another caller, on whichever server, is dropped unseen.
    async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, Error>;

    /// The table's name as it was created; `Error::TableNotFound` if there is none.
    async fn find_table(&self, table: &TableRef) -> Result<StoredName, Error>;

    /// At most `limit` tables of one service of the account, from the lower-case name `from` on.
    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error>;

    /// The stored row. Its bytes are checked when they are read.
    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error>;

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error>;

    /// Returns the timestamps of the operations, in order; a delete has one too.
    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error>;

    /// What the table was created with or `replace_table_metadata` stored last, or nothing. Lost with the table. May be a
    /// few seconds old where several servers share the data, but not older than the last replacement that this engine
    /// was asked for.
    async fn table_metadata(&self, table: &TableRef) -> Result<Option<Bytes>, Error>;

    /// Stores the table's metadata if what is stored is `expected`; else changes nothing and answers false. Whoever
    /// changes a part of it reads first, and reads again after a false.
    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error>;

    /// What `replace_service_metadata` stored last for this service of the account, if anything. If several servers
    /// share the data, it may be a few seconds old, but it is never older than this engine's own last replacement.
    async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error>;

    /// Replaces the metadata of one service of the account if the stored metadata is `expected`; otherwise returns
    /// false without a change. To change a part of it, read it first, and read it again after a false: then no change
    /// of another caller is lost.
    async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error>;

    /// The accounts that have tables or metadata of any service, in order.
    async fn list_accounts(&self) -> Result<Vec<AccountName>, Error>;

    /// Stores distinct rows of one partition with their timestamps from another engine; `None` removes a row.
    /// Replaces present rows, and may be repeated. At most `limits::BATCH_OPERATIONS_MAX` rows and
    /// `limits::REQUEST_BODY_BYTES_MAX` bytes; a fault if a row is unreadable. Durable once answered.
    ///
    /// For migrations: nobody else may write to the table meanwhile. Rows that `apply` writes to the table later have
    /// timestamps above all loaded ones, even if these lie in the future.
    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error>;

    /// About how much a table holds in a key range, for people. Reads at most `rows_max` rows: up to so many, the number of
    /// rows is right. `None` if the engine can't tell.
    async fn estimate_table(
        &self,
        table: &TableRef,
        within: &KeyRange,
        rows_max: u64,
    ) -> Result<Option<TableEstimate>, Error> {
        let _ = (table, within, rows_max);
        Ok(None)
    }

    /// Whether the engine can serve reads and writes now.
    fn check_health(&self) -> Result<(), Fault>;

    /// What the engine has counted, for people and monitors. It may ask the disk how much room is left, so do not call
    /// it on a thread that serves requests.
    fn counters(&self) -> EngineCounters {
        EngineCounters::default()
    }

    /// Finishes the accepted writes and closes the storage. Later calls return a fault.
    async fn close(&self);
}
