//! What is kept beside the entities: a table's stored policies, an account's properties. Documents to this crate.

use bytes::Bytes;
use model::{AccountName, ServiceKind};
use store::{Fault, TableRef};

use crate::{Error, Result, Service};

/// Changes of one account's properties that other servers may be quicker to make before the caller hears `Busy`.
const CHANGE_ATTEMPTS: usize = 8;

/// Whose properties are kept here: queues and blobs have documents of their own.
const SERVICE: ServiceKind = ServiceKind::Table;

impl Service {
    /// The table's stored access policies, if any were ever set.
    pub async fn get_policies(&self, table: &TableRef) -> Result<Option<Bytes>> {
        Ok(self.engine.table_metadata(table).await?)
    }

    pub async fn set_policies(&self, table: &TableRef, document: Bytes) -> Result<()> {
        let _pass = self.gate.pass().await?;
        Ok(self.engine.set_table_metadata(table, document).await?)
    }

    /// The account's service properties, if any were ever set.
    pub async fn get_properties(&self, account: &AccountName) -> Result<Option<Bytes>> {
        Ok(self.engine.service_metadata(account, SERVICE).await?)
    }

    /// Makes new properties of the present ones. Two changes at once are made one after the other, so that
    /// neither undoes what the other does not name: within this server they take turns, and a change that another
    /// server was quicker to make is read and changed in turn.
    pub async fn change_properties(
        &self,
        account: &AccountName,
        change: impl Fn(Option<Bytes>) -> std::result::Result<Bytes, Fault>,
    ) -> Result<()> {
        let _turn = self.properties.lock().await;
        let _pass = self.gate.pass().await?;
        for _ in 0..CHANGE_ATTEMPTS {
            let present = self.engine.service_metadata(account, SERVICE).await?;
            let changed = change(present.clone()).map_err(Error::Fault)?;
            if self.engine.replace_service_metadata(account, SERVICE, present, changed).await? {
                return Ok(());
            }
        }
        Err(store::Error::Busy.into())
    }
}
