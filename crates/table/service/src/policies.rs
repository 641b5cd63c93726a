//! A table's stored access policies, which this crate does not parse.

use bytes::Bytes;
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
}
