//! The contract between the service and an engine.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use model::{AccountName, DateTime, EntityKey, Key, ServiceKind, TableName};

use crate::encoding::table_name;
use crate::{Error, Fault, Page, Scan, StoredName, StoredRow, Transaction, place_of};

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

/// What every engine promises; `suite` holds each of these promises as a test.
///
/// - `apply` is all or nothing, and what it answers `Ok` to survives a crash of the process and of the machine.
/// - An answer of `apply` is the answer of one moment: conditions are judged and changes made with nothing
///   in between, and every `get` and `scan` started after the answer sees them.
/// - `get` and one partition's rows in one `scan` never show part of a transaction.
/// - A row's timestamp grows with every change to it, and no two versions of a row share one, also across
///   delete and re-insert.
/// - `scan` gives rows in key order, each at most once, and its cost grows with what lies in its ranges,
///   not with the table.
/// - Once `drop_table` has answered, no operation finds the table's rows, nor will a new table of that name.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The table comes with its metadata, in one step. `Error::TableAlreadyExists` if there is one.
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error>;

    /// `Error::TableNotFound` if there is none. Takes no longer for a large table than for a small one.
    async fn drop_table(&self, table: &TableRef) -> Result<(), Error>;

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

    /// The row as it is stored. Whoever reads it checks what it reads.
    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error>;

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error>;

    /// The timestamps given to the operations, in their order; a delete gets one too.
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

    /// What `replace_service_metadata` stored last for this service of the account, or nothing. May be a few seconds old
    /// where several servers share the data, but not older than the last replacement that this engine was asked for.
    async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error>;

    /// Stores the metadata of one service of the account if what is stored is `expected`; else changes nothing and answers
    /// false. Each service has a document of its own. Whoever changes a part reads first, and reads again after a false:
    /// then nobody undoes what another has set.
    async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error>;

    /// The accounts that have tables or metadata of any service, in order.
    async fn list_accounts(&self) -> Result<Vec<AccountName>, Error>;

    /// Distinct rows of one partition as another engine had them, timestamps included; `None` removes a row. Replaces
    /// whatever is there, and may be repeated. At most `limits::BATCH_OPERATIONS_MAX` rows and
    /// `limits::REQUEST_BODY_BYTES_MAX` of them; a fault if one is unreadable. Durable once answered.
    ///
    /// For moving from engine to engine: nobody else may write to the table meanwhile. What `apply` writes to the table
    /// later has timestamps above those loaded, also if they lie in the future.
    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error>;

    /// Whether the engine can serve reads and writes now.
    fn check_health(&self) -> Result<(), Fault>;

    /// Finishes what was accepted and lets go of the storage. Later calls answer with a fault.
    async fn close(&self);
}
