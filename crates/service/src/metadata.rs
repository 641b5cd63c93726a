//! What is kept beside the entities: a table's stored policies, an account's properties. Documents to this crate.

use bytes::Bytes;
use model::AccountName;
use store::TableRef;

use crate::{Result, Service};

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
        Ok(self.engine.service_metadata(account).await?)
    }

    /// Makes new properties of the present ones. Two changes at once are made one after the other, so that
    /// neither undoes what the other does not name.
    pub async fn change_properties(
        &self,
        account: &AccountName,
        change: impl FnOnce(Option<Bytes>) -> Bytes,
    ) -> Result<()> {
        let _turn = self.properties.lock().await;
        let _pass = self.gate.pass().await?;
        let present = self.engine.service_metadata(account).await?;
        Ok(self.engine.set_service_metadata(account, change(present)).await?)
    }
}
