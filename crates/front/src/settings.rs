//! Service properties: one document for each service of an account, read once and not with every request, and changed
//! one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use common::AccountName;
use protocol::service_properties::{ServiceProperties, Update};
use store::{Engine, Fault, Gate};
use tokio::sync::Notify;

use common::ServiceKind;

/// Changes of one account's properties that other servers may be quicker to make before the caller hears `Busy`.
const CHANGE_ATTEMPTS: usize = 8;

pub struct Settings {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    /// By service.
    known: [Mutex<HashMap<AccountName, Known>>; ServiceKind::ALL.len()],
    /// What the services of a fresh account have.
    fresh: [Arc<ServiceProperties>; ServiceKind::ALL.len()],
    /// Held while properties change.
    turn: tokio::sync::Mutex<()>,
    /// Told when properties changed, so that what they ask for is there at once.
    changed: Notify,
}

struct Known {
    document: Bytes,
    properties: Arc<ServiceProperties>,
}

impl Settings {
    pub fn new(engine: Arc<dyn Engine>, gate: Arc<Gate>) -> Self {
        Self {
            engine,
            gate,
            known: Default::default(),
            fresh: ServiceKind::ALL.map(|service| Arc::new(ServiceProperties::of_fresh_account(service))),
            turn: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// The service's properties: those of a fresh account if none were ever set, or while they can't be read. A fresh
    /// account allows no foreign origin, and keeps no log.
    pub async fn of(&self, account: &AccountName, service: ServiceKind) -> Arc<ServiceProperties> {
        let Ok(Some(document)) = self.stored(account, service).await else {
            return self.fresh(service).clone();
        };
        let mut known = self.known[service as usize].lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(account) {
            Some(known) if known.document == document => known.properties.clone(),
            _ => {
                let properties = read(service, Some(&document)).unwrap_or_else(|fault| {
                    tracing::error!(%account, service = service.name(), %fault, "service properties are not applied");
                    ServiceProperties::of_fresh_account(service)
                });
                let properties = Arc::new(properties);
                known.insert(account.clone(), Known { document, properties: properties.clone() });
                properties
            }
        }
    }

    /// Those of an account that is not there.
    pub fn fresh(&self, service: ServiceKind) -> &Arc<ServiceProperties> {
        &self.fresh[service as usize]
    }

    /// As they are stored. Properties that can't be read are a fault: they are not shown as something else.
    pub async fn get(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<ServiceProperties, store::Error> {
        Ok(read(service, self.stored(account, service).await?.as_deref())?)
    }

    /// Changes what the update names. Two changes at once are made one after the other, so that neither undoes what the
    /// other does not name: within this server they take turns, and a change that another server was quicker to make is
    /// read and changed in turn. Properties that can't be read are not written over: they may be of a newer release.
    pub async fn change(
        &self,
        account: &AccountName,
        service: ServiceKind,
        update: &Update,
    ) -> Result<(), store::Error> {
        let _turn = self.turn.lock().await;
        let _pass = self.gate.pass().await?;
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
    let Some(document) = document else { return Ok(ServiceProperties::of_fresh_account(service)) };
    ServiceProperties::read(service, document).ok_or_else(|| {
        Fault::damaged(format!(
            "stored {service} service properties of {} bytes can't be read",
            document.len()
        ))
    })
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Settings")
    }
}
