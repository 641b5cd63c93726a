//! Service properties: one document for each service of an account, parsed only when it changes; updates take turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use common::AccountName;
use protocol::service_properties::{BlobProperties, BlobUpdate, ServiceProperties, Update};
use store::{Engine, Fault, Gate};
use tokio::sync::Notify;

use common::ServiceKind;

/// How often another server may change the same document first before the caller gets `Busy`.
const CHANGE_ATTEMPTS: usize = 8;

pub struct PropertiesStore {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    /// By service.
    cached: [Mutex<HashMap<AccountName, CachedProperties>>; ServiceKind::ALL.len()],
    /// The properties of a fresh account.
    fresh: [Arc<ServiceProperties>; ServiceKind::ALL.len()],
    /// Held while properties change.
    turn: tokio::sync::Mutex<()>,
    /// Wakes the keeper of metrics, so that it makes newly enabled tables at once.
    changed: Notify,
}

struct CachedProperties {
    document: Bytes,
    properties: Arc<ServiceProperties>,
}

impl PropertiesStore {
    pub fn new(engine: Arc<dyn Engine>, gate: Arc<Gate>) -> Self {
        Self {
            engine,
            gate,
            cached: Default::default(),
            fresh: ServiceKind::ALL.map(|service| Arc::new(ServiceProperties::of_fresh_account(service))),
            turn: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// The service's properties; those of a fresh account if none are set or they can't be read. A fresh account allows no
    /// foreign origin and keeps no log.
    pub async fn of(&self, account: &AccountName, service: ServiceKind) -> Arc<ServiceProperties> {
        let Ok(Some(document)) = self.stored(account, service).await else {
            return self.fresh(service).clone();
        };
        let mut cached = self.cached[service as usize].lock().unwrap_or_else(PoisonError::into_inner);
        match cached.get(account) {
            Some(cached) if cached.document == document => cached.properties.clone(),
            _ => {
                let properties = read(service, Some(&document)).unwrap_or_else(|fault| {
                    tracing::error!(%account, service = service.name(), %fault, "can't read the service properties; using those of a fresh account");
                    ServiceProperties::of_fresh_account(service)
                });
                let properties = Arc::new(properties);
                cached.insert(account.clone(), CachedProperties { document, properties: properties.clone() });
                properties
            }
        }
    }

    /// The properties of a fresh account.
    pub fn fresh(&self, service: ServiceKind) -> &Arc<ServiceProperties> {
        &self.fresh[service as usize]
    }

    /// The stored properties. It is a fault if they can't be read: they must not be shown as the default.
    pub async fn get(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<ServiceProperties, store::Error> {
        Ok(read(service, self.stored(account, service).await?.as_deref())?)
    }

    /// Changes what the update names and keeps the rest. Concurrent updates lose nothing: within this server they take
    /// turns, and if another server changed the document first, it is read and changed again. Properties that can't be
    /// read are not overwritten: a newer release may have written them.
    pub async fn change(
        &self,
        account: &AccountName,
        service: ServiceKind,
        update: &Update,
    ) -> Result<(), store::Error> {
        let _turn = self.turn.lock().await;
        let _pass = self.gate.pass().await?;
        debug_assert_ne!(service, ServiceKind::Blob, "blobs have more properties: `change_blobs`");
        for _ in 0..CHANGE_ATTEMPTS {
            let present = self.stored(account, service).await?;
            let mut properties = read(service, present.as_deref())?;
            properties.apply(update.clone());
            if self.replace(account, service, present, properties.write().into()).await? {
                self.changed.notify_one();
                return Ok(());
            }
        }
        Err(store::Error::Busy)
    }

    /// The stored properties of blobs, which have some of their own. It is a fault if they can't be read.
    pub async fn of_blobs(&self, account: &AccountName) -> Result<BlobProperties, store::Error> {
        Ok(read_blobs(self.stored(account, ServiceKind::Blob).await?.as_deref())?)
    }

    /// As `change`, of blobs.
    pub async fn change_blobs(&self, account: &AccountName, update: &BlobUpdate) -> Result<(), store::Error> {
        let _turn = self.turn.lock().await;
        let _pass = self.gate.pass().await?;
        for _ in 0..CHANGE_ATTEMPTS {
            let present = self.stored(account, ServiceKind::Blob).await?;
            let mut properties = read_blobs(present.as_deref())?;
            properties.apply(update.clone());
            if self.replace(account, ServiceKind::Blob, present, properties.write().into()).await? {
                self.changed.notify_one();
                return Ok(());
            }
        }
        Err(store::Error::Busy)
    }

    /// Resolves after the next change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn stored(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Option<Bytes>, store::Error> {
        self.engine.service_metadata(account, service).await
    }

    async fn replace(
        &self,
        account: &AccountName,
        service: ServiceKind,
        expected: Option<Bytes>,
        document: Bytes,
    ) -> Result<bool, store::Error> {
        self.engine.replace_service_metadata(account, service, expected, document).await
    }
}

fn read(service: ServiceKind, document: Option<&[u8]>) -> Result<ServiceProperties, Fault> {
    if service == ServiceKind::Blob {
        return read_blobs(document).map(|properties| properties.shared);
    }
    let Some(document) = document else { return Ok(ServiceProperties::of_fresh_account(service)) };
    ServiceProperties::read(service, document).ok_or_else(|| unreadable(service, document))
}

fn read_blobs(document: Option<&[u8]>) -> Result<BlobProperties, Fault> {
    let Some(document) = document else { return Ok(BlobProperties::default()) };
    BlobProperties::read(document).ok_or_else(|| unreadable(ServiceKind::Blob, document))
}

fn unreadable(service: ServiceKind, document: &[u8]) -> Fault {
    let bytes = document.len();
    Fault::damaged(format!("stored {service} service properties of {bytes} bytes can't be read"))
}

impl std::fmt::Debug for PropertiesStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PropertiesStore")
    }
}
