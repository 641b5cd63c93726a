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
        // Whoever comes last wins: the document is the table's only metadata.
        loop {
            let before = self.engine.table_metadata(table).await?;
            if self.engine.replace_table_metadata(table, before, document.clone()).await? {
                return Ok(());
            }
        }
    }
}
