//! How long deleted blobs are kept, by the stored service properties of their account.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use blob_model::AccountName;
use blob_service::{Result, Retention};
use bytes::Bytes;
use front::ServiceKind;
use parking_lot::Mutex;
use protocol::service_properties::BlobProperties;
use store::{Engine, Fault};

pub struct StoredRetention {
    engine: Arc<dyn Engine>,
    /// What was read of which document. It is read again when it changes.
    known: Mutex<HashMap<AccountName, (Bytes, Option<u16>)>>,
}

impl StoredRetention {
    pub fn new(engine: Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Self { engine, known: Mutex::default() })
    }
}

#[async_trait]
impl Retention for StoredRetention {
    async fn days(&self, account: &AccountName) -> Result<Option<u16>> {
        let stored = self.engine.service_metadata(account, ServiceKind::Blob).await?;
        let Some(document) = stored else { return Ok(None) };
        if let Some((read, days)) = self.known.lock().get(account)
            && *read == document
        {
            return Ok(*days);
        }
        // What can't be read must not count as "delete at once".
        let damaged = || Fault::damaged("stored blob service properties can't be read").about(account);
        let days = BlobProperties::read(&document).ok_or_else(damaged)?.delete_retention.days;
        self.known.lock().insert(account.clone(), (document, days));
        Ok(days)
    }
}

impl fmt::Debug for StoredRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredRetention")
    }
}
