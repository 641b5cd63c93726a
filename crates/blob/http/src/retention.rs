//! How long deleted blobs are kept, and whether they can be removed before, by the stored service properties of their account.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use blob_model::AccountName;
use blob_service::{Result, Retention};
use bytes::Bytes;
use front::ServiceKind;
use parking_lot::Mutex;
use protocol::service_properties::{BlobProperties, DeleteRetention};
use store::{Engine, Fault};

pub struct StoredRetention {
    engine: Arc<dyn Engine>,
    /// What was read of which document. It is read again when it changes.
    known: Mutex<HashMap<AccountName, (Bytes, DeleteRetention)>>,
}

impl StoredRetention {
    pub fn new(engine: Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Self { engine, known: Mutex::default() })
    }

    async fn of(&self, account: &AccountName) -> Result<DeleteRetention> {
        let stored = self.engine.service_metadata(account, ServiceKind::Blob).await?;
        let Some(document) = stored else { return Ok(DeleteRetention::default()) };
        if let Some((read, retention)) = self.known.lock().get(account)
            && *read == document
        {
            return Ok(*retention);
        }
        // What can't be read must not count as "delete at once".
        let damaged = || Fault::damaged("stored blob service properties can't be read").about(account);
        let retention = BlobProperties::read(&document).ok_or_else(damaged)?.delete_retention;
        self.known.lock().insert(account.clone(), (document, retention));
        Ok(retention)
    }
}

#[async_trait]
impl Retention for StoredRetention {
    async fn days(&self, account: &AccountName) -> Result<Option<u16>> {
        Ok(self.of(account).await?.days)
    }

    async fn permits_removal(&self, account: &AccountName) -> Result<bool> {
        Ok(self.of(account).await?.allow_permanent_delete)
    }
}

impl fmt::Debug for StoredRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredRetention")
    }
}
