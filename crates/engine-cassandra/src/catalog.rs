//! Accounts' tables and their metadata, as rows of the cluster.
//!
//! A server may use what it has read of a table for the length of a lease. So dropping a table waits longer than that
//! before it answers: everything that other servers still do with the table began before the answer. Rows belong to
//! the id of their table, so a new table with the same name is empty.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{AccountName, ServiceKind};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use store::encoding::table_name;
use store::{Error, StoredName, TableRef, TablesPage};
use uuid::Uuid;

use crate::cached::Cached;
use crate::cluster::{Cluster, Conditional, Outcome};
use crate::directory::Directory;
use crate::roster::{DOOMED, LIVE};
use crate::slot;
use crate::statements::Documents;
use crate::trouble::{Trouble, undecodable};

/// Changes of stored policies and service properties by other servers are seen within this time.
const METADATA_LEASE: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 8;

#[derive(Debug)]
pub struct Table {
    pub id: Uuid,
    pub name: StoredName,
    pub metadata: Option<Bytes>,
}

#[derive(Debug)]
pub struct Catalog {
    cluster: Arc<Cluster>,
    directory: Arc<Directory>,
    lease: Duration,
    tables: Cached<(AccountName, String), Arc<Table>>,
    /// Also caches that an account has none.
    services: Cached<(AccountName, ServiceKind), Option<Bytes>>,
}

/// A row of `tables`.
enum TableRow {
    Missing,
    Live(Table),
    /// Being dropped. It matters only to the next creation of a table with this name.
    Doomed(Uuid),
}

impl Catalog {
    pub fn new(cluster: Arc<Cluster>, directory: Arc<Directory>, lease: Duration) -> Self {
        let services = Cached::new(METADATA_LEASE);
        Self { cluster, directory, lease, tables: Cached::new(lease), services }
    }

    /// The table as it was at most one lease ago.
    pub async fn find(&self, table: &TableRef) -> Result<Arc<Table>, Error> {
        let read = || async {
            match self.read(table).await? {
                TableRow::Live(found) => Ok::<_, Trouble>(Some(Arc::new(found))),
                TableRow::Missing | TableRow::Doomed(_) => Ok(None),
            }
        };
        self.tables.get(&id(table), read).await?.ok_or(Error::TableNotFound)
    }

    async fn read(&self, table: &TableRef) -> Result<TableRow, Trouble> {
        let name = table.stored_name();
        let values = (table.account.as_str(), name.as_ref());
        let rows = self.cluster.read(&self.cluster.statements.find_table, values).await?;
        type Columns = (Option<Uuid>, Option<String>, Option<i8>, Option<Vec<u8>>);
        let row = rows.maybe_first_row::<Columns>().map_err(undecodable("the record of a table"))?;
        let Some((Some(id), Some(shown), Some(state), metadata)) = row else { return Ok(TableRow::Missing) };
        match state {
            LIVE => {
                let name = parse_name(table.service, &shown)?;
                Ok(TableRow::Live(Table { id, name, metadata: metadata.map(Bytes::from) }))
            }
            DOOMED => Ok(TableRow::Doomed(id)),
            other => Err(Trouble::damaged(format!(
                "table {shown:?} is in state {other}, which this release does not know"
            ))),
        }
    }

    pub async fn create(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            // Most of these requests find that the table exists. Checking first is cheaper than making a directory in
            // vain.
            match self.read(table).await? {
                TableRow::Live(_) => return Err(Error::TableAlreadyExists),
                TableRow::Doomed(dropped) => {
                    self.finish_drop(table, dropped).await?;
                    continue;
                }
                TableRow::Missing => {}
            }
            let made = Uuid::new_v4();
            self.directory.create(made).await?;
            let mut values = vec![
                Some(CqlValue::Text(table.account.as_str().to_owned())),
                Some(CqlValue::Text(table.stored_name().into_owned())),
                Some(CqlValue::Uuid(made)),
                Some(CqlValue::Text(table.name.as_str().to_owned())),
            ];
            let statements = &self.cluster.statements;
            let seat = vec![values[0].clone()];
            // A null would be written as a tombstone.
            let statement = match &metadata {
                None => &statements.create_table,
                Some(document) => {
                    values.push(Some(CqlValue::Blob(document.to_vec())));
                    &statements.create_table_with_metadata
                }
            };
            let steps = vec![
                Conditional { statement, values },
                Conditional { statement: &statements.seat_account, values: seat },
            ];
            let outcome = self.cluster.compare_and_set(steps).await;
            self.tables.forget(&id(table));
            match outcome {
                Ok(Outcome::Applied) => return Ok(()),
                Ok(Outcome::Refused(_)) => self.discard(made).await,
                Err(Trouble::Unknown(why)) => {
                    tracing::debug!(%why, "creating a table got no answer; checking whether it exists");
                    return match self.read(table).await {
                        Ok(TableRow::Live(found)) if found.id == made => Ok(()),
                        _ => Err(Error::OutcomeUnknown),
                    };
                }
                Err(other) => {
                    self.discard(made).await;
                    return Err(other.into());
                }
            }
        }
        Err(Error::Busy)
    }

    pub async fn drop_table(&self, table: &TableRef) -> Result<(), Error> {
        let TableRow::Live(found) = self.read(table).await? else { return Err(Error::TableNotFound) };
        let outcome = self.change(table, &self.cluster.statements.doom_table, found.id).await;
        match self.after_doom(table, found.id, outcome).await? {
            true => Ok(()),
            // Another server dropped it meanwhile.
            false => Err(Error::TableNotFound),
        }
    }

    /// The cluster itself compares, as it does in `replace_table_metadata`.
    pub async fn drop_table_if(&self, table: &TableRef, expected: Option<Bytes>) -> Result<bool, Error> {
        let TableRow::Live(found) = self.read(table).await? else { return Err(Error::TableNotFound) };
        let values = vec![
            Some(CqlValue::Text(table.account.as_str().to_owned())),
            Some(CqlValue::Text(table.stored_name().into_owned())),
            Some(CqlValue::Uuid(found.id)),
            expected.map(|document| CqlValue::Blob(document.to_vec())),
        ];
        let step = Conditional { statement: &self.cluster.statements.doom_table_if, values };
        let outcome = self.cluster.compare_and_set(vec![step]).await.map(|outcome| outcome.is_applied());
        self.after_doom(table, found.id, outcome).await
    }

    /// Finishes a drop once the table is doomed; false if it was not.
    async fn after_doom(
        &self,
        table: &TableRef,
        dropped: Uuid,
        outcome: Result<bool, Trouble>,
    ) -> Result<bool, Error> {
        self.tables.forget(&id(table));
        match outcome {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(Trouble::Unknown(why)) => {
                tracing::debug!(%why, "dropping a table got no answer; checking whether it is dropped");
                // If it is dropped, another server may have done it: of two concurrent drops only one may succeed.
                if let Ok(TableRow::Doomed(_)) = self.read(table).await
                    && let Err(trouble) = self.finish_drop(table, dropped).await
                {
                    tracing::debug!(%trouble, "dropping a table was not finished; creating a table with this name will finish it");
                }
                return Err(Error::OutcomeUnknown);
            }
            Err(other) => return Err(other.into()),
        }
        self.finish_drop(table, dropped).await.map(|()| true).map_err(|trouble| match trouble {
            // The table is doomed. The next creation of a table with this name finishes the drop.
            Trouble::Refused(_) | Trouble::Unknown(_) | Trouble::Tombstones(_) => Error::OutcomeUnknown,
            Trouble::Fault(fault) => Error::Fault(fault),
        })
    }

    /// Finishes the drop of a doomed table: waits until no server uses it, notes its rows for removal, and frees its
    /// name.
    async fn finish_drop(&self, table: &TableRef, dropped: Uuid) -> Result<(), Trouble> {
        self.cluster.write(&self.cluster.statements.add_purge, (dropped,)).await?;
        // Servers may have different leases, so this waits for the longest. A server that took its slot later reads
        // the table as doomed.
        let lease = slot::longest_table_lease(&self.cluster).await?.max(self.lease);
        tokio::time::sleep(lease + lease / 2).await;
        match self.change(table, &self.cluster.statements.forget_table, dropped).await {
            // The row is gone: another server has finished the drop.
            Ok(_) => Ok(()),
            // A doomed row is harmless.
            Err(trouble) => {
                tracing::debug!(%trouble, "the row of a dropped table stays until its name is used again");
                Ok(())
            }
        }
    }

    /// Removes a directory that no table uses. If this fails, the directory is harmless.
    async fn discard(&self, made: Uuid) {
        if let Err(trouble) = self.directory.discard(made).await {
            tracing::debug!(%trouble, "an unused directory could not be removed");
        }
    }

    /// Runs a conditional change of a table's row whose only values are the key and the id.
    async fn change(
        &self,
        table: &TableRef,
        statement: &PreparedStatement,
        id: Uuid,
    ) -> Result<bool, Trouble> {
        let values = vec![
            Some(CqlValue::Text(table.account.as_str().to_owned())),
            Some(CqlValue::Text(table.stored_name().into_owned())),
            Some(CqlValue::Uuid(id)),
        ];
        Ok(self.cluster.compare_and_set(vec![Conditional { statement, values }]).await?.is_applied())
    }

    pub async fn list(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        let mut names = Vec::new();
        let (mut from, to) = table_name::range(service, from);
        loop {
            let asked = limit + 1;
            let tables = self.cluster.tables_between(account.as_str(), &from, &to, asked).await?;
            let complete = tables.len() < asked;
            for table in tables {
                // The place to continue from, if all tables that were read are doomed.
                from = format!("{}\0", table.stored_name);
                if table.state != LIVE {
                    continue;
                }
                let name = parse_name(service, &table.shown)?;
                if names.len() == limit {
                    return Ok(TablesPage { names, next: Some(name.folded().to_owned()) });
                }
                names.push(name);
            }
            if complete {
                return Ok(TablesPage { names, next: None });
            }
        }
    }

    pub async fn accounts(&self) -> Result<Vec<AccountName>, Error> {
        let parse = |name: String| {
            AccountName::parse(&name)
                .ok_or_else(|| Trouble::damaged(format!("the stored account name {name:?} is not valid")))
        };
        let mut accounts = BTreeSet::new();
        for name in self.cluster.accounts_of_services().await? {
            accounts.insert(parse(name)?);
        }
        for name in self.cluster.accounts_of_tables().await? {
            let account = parse(name)?;
            if !accounts.contains(&account) && self.has_tables(&account).await? {
                accounts.insert(account);
            }
        }
        Ok(accounts.into_iter().collect())
    }

    async fn has_tables(&self, account: &AccountName) -> Result<bool, Error> {
        for service in ServiceKind::ALL {
            if !self.list(account, service, "", 1).await?.names.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The cluster itself compares, so it does not matter how old what the caller read is, and a replacement that is lost
    /// and arrives late can't come back over a later one: what is stored here says who may read the table.
    pub async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let TableRow::Live(found) = self.read(table).await? else { return Err(Error::TableNotFound) };
        let values = vec![
            Some(CqlValue::Blob(metadata.to_vec())),
            Some(CqlValue::Text(table.account.as_str().to_owned())),
            Some(CqlValue::Text(table.stored_name().into_owned())),
            Some(CqlValue::Uuid(found.id)),
            expected.map(|document| CqlValue::Blob(document.to_vec())),
        ];
        let step = Conditional { statement: &self.cluster.statements.replace_table_metadata, values };
        let outcome = self.cluster.compare_and_set(vec![step]).await;
        self.tables.forget(&id(table));
        match outcome {
            Ok(outcome) => Ok(outcome.is_applied()),
            Err(Trouble::Unknown(_)) => Err(Error::OutcomeUnknown),
            Err(other) => Err(other.into()),
        }
    }

    pub async fn service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Error> {
        let read = || async { self.read_service(account, service).await.map(Some) };
        Ok(self.services.get(&(account.clone(), service), read).await?.flatten())
    }

    fn documents(&self, service: ServiceKind) -> &Documents {
        let statements = &self.cluster.statements;
        match service {
            ServiceKind::Table => &statements.table_service,
            ServiceKind::Queue => &statements.queue_service,
            ServiceKind::Blob => &statements.blob_service,
        }
    }

    async fn read_service(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, Trouble> {
        let rows = self.cluster.read(&self.documents(service).read, (account.as_str(),)).await?;
        let row = rows.maybe_first_row::<(Option<Vec<u8>>,)>().map_err(undecodable("service properties"))?;
        Ok(row.and_then(|(metadata,)| metadata).map(Bytes::from))
    }

    /// The cluster compares the expected value, so it may be outdated. The next read on this server asks the cluster.
    pub async fn replace_service_metadata(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        let values = vec![
            Some(CqlValue::Blob(metadata.to_vec())),
            Some(CqlValue::Text(account.as_str().to_owned())),
            expected.map(|document| CqlValue::Blob(document.to_vec())),
        ];
        let step = Conditional { statement: &self.documents(service).replace, values };
        let outcome = self.cluster.compare_and_set(vec![step]).await;
        self.services.forget(&(account.clone(), service));
        match outcome {
            Ok(outcome) => Ok(outcome.is_applied()),
            Err(Trouble::Unknown(_)) => Err(Error::OutcomeUnknown),
            Err(other) => Err(other.into()),
        }
    }
}

fn id(table: &TableRef) -> (AccountName, String) {
    (table.account.clone(), table.stored_name().into_owned())
}

fn parse_name(service: ServiceKind, shown: &str) -> Result<StoredName, Trouble> {
    StoredName::parse(service, shown)
        .ok_or_else(|| Trouble::damaged(format!("the stored {service} name {shown:?} is not valid")))
}
