//! Accounts' service properties as they were read last, so that a document is read once and not with every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::{AccountName, ServiceKind};
use service::Service;
use wire::service_properties::ServiceProperties;

#[derive(Debug, Default)]
pub struct Settings {
    known: Mutex<HashMap<AccountName, Known>>,
    fresh: Arc<ServiceProperties>,
}

#[derive(Debug)]
struct Known {
    document: Bytes,
    properties: Arc<ServiceProperties>,
}

impl Settings {
    /// The account's properties: those of a fresh account if none were ever set, or while they can't be read. A fresh
    /// account allows no foreign origin, and keeps no log.
    pub async fn of(&self, service: &Service, account: &AccountName) -> Arc<ServiceProperties> {
        let Ok(Some(document)) = service.get_properties(account).await else { return self.fresh.clone() };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(account) {
            Some(known) if known.document == document => known.properties.clone(),
            _ => {
                let properties = ServiceProperties::read(ServiceKind::Table, &document).unwrap_or_else(|| {
                    tracing::error!(%account, bytes = document.len(), "the account's service properties are unreadable");
                    ServiceProperties::default()
                });
                let properties = Arc::new(properties);
                known.insert(account.clone(), Known { document, properties: properties.clone() });
                properties
            }
        }
    }

    /// Those of an account that is not there.
    pub fn fresh(&self) -> &Arc<ServiceProperties> {
        &self.fresh
    }
}
