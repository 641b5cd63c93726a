//! A lease of a blob or a container, which is renewed as long as it is held.

use std::time::Duration;

use blob_model::limits;
use blob_wire::names as blob_names;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wire::names;

use super::properties;
use crate::error::{Error, Result};
use crate::transport::{Repeat, ServiceRequest, Transport, id};

/// The shortest time between two attempts to renew.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a lease lasts after its holder has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseTime {
    /// 15 to 60 seconds. The lease is renewed when a third of it has passed.
    For(Duration),
    /// Until somebody releases or breaks it.
    Forever,
}

/// A lease that is held, made by [`Blob::lease`](crate::Blob::lease) and [`Container::lease`](crate::Container::lease).
///
/// It is renewed in the background. If it can't be renewed in time, or if somebody has broken it, it is lost: then
/// [`lost`](Self::lost) returns, and the holder must stop. When it is dropped, it is no longer renewed and ends by itself;
/// [`release`](Self::release) ends it at once.
#[derive(Debug)]
pub struct Lease {
    transport: Transport,
    /// Without an action.
    request: ServiceRequest,
    id: String,
    lost: watch::Receiver<Option<Error>>,
    renewal: Option<AbortHandle>,
}

impl Lease {
    pub(super) async fn acquire(
        transport: Transport,
        request: ServiceRequest,
        time: LeaseTime,
    ) -> Result<Self> {
        let seconds = match time {
            LeaseTime::Forever => "-1".to_owned(),
            LeaseTime::For(time) => {
                let allowed =
                    u64::from(*limits::LEASE_SECONDS.start())..=u64::from(*limits::LEASE_SECONDS.end());
                if !allowed.contains(&time.as_secs()) || time.subsec_nanos() != 0 {
                    return Err(Error::invalid(format!(
                        "a lease of {time:?}; it takes whole seconds, 15 to 60, or forever"
                    )));
                }
                time.as_secs().to_string()
            }
        };
        // With an id of our own, so that a retry after a lost answer acquires the same lease again.
        let id = id();
        let request = request.query(names::COMP, "lease").repeat(Repeat::Harmless);
        let acquire = action(&request, "acquire")
            .header(blob_names::LEASE_DURATION, seconds)
            .header("x-ms-proposed-lease-id", id.as_str());
        let began = Instant::now();
        transport.send(acquire).await?;
        let (tell, lost) = watch::channel(None);
        let renewal = match time {
            LeaseTime::Forever => {
                // Nobody renews it, so nobody can tell that it is lost; the sender must live on.
                tokio::spawn(async move { tell.closed().await }).abort_handle()
            }
            LeaseTime::For(time) => {
                let renew = action(&request, "renew").header(properties::LEASE_ID, id.as_str());
                tokio::spawn(keep(transport.clone(), renew, time, began, tell)).abort_handle()
            }
        };
        Ok(Self { transport, request, id, lost, renewal: Some(renewal) })
    }

    /// For [`Blob::leased`](crate::Blob::leased) and [`Container::leased`](crate::Container::leased).
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until the lease is lost, and tells why. Never returns as long as it is held.
    pub async fn lost(&self) -> Error {
        let mut lost = self.lost.clone();
        match lost.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_else(|| Error::Unanswered("the lease is lost".to_owned())),
            // The renewal has panicked or its runtime has ended: nobody renews it.
            Err(_) => Error::Unanswered("the lease is no longer renewed".to_owned()),
        }
    }

    /// Ends the lease, so that somebody else can have it at once.
    pub async fn release(mut self) -> Result<()> {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
        }
        let release = action(&self.request, "release").header(properties::LEASE_ID, self.id.as_str());
        self.transport.send(release.repeat(Repeat::Achieved(409))).await.map(drop)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}

fn action(request: &ServiceRequest, action: &str) -> ServiceRequest {
    request.clone().header("x-ms-lease-action", action)
}

/// Renews until the lease is lost. It counts as ended when its time has passed since the last renewal was *sent*, because the
/// service has counted from then on at the earliest.
async fn keep(
    transport: Transport,
    renew: ServiceRequest,
    time: Duration,
    began: Instant,
    tell: watch::Sender<Option<Error>>,
) {
    let mut renewed = began;
    loop {
        tokio::time::sleep_until(renewed + time / 3).await;
        let end = renewed + time;
        let why = loop {
            let sent = Instant::now();
            match tokio::time::timeout_at(end, transport.send(renew.clone())).await {
                Err(_) => break Some(Error::Unanswered("the lease was not renewed in time".to_owned())),
                Ok(Ok(_)) => {
                    renewed = sent;
                    break None;
                }
                // Somebody else has it, or has broken it, or the blob is gone.
                Ok(Err(error)) if matches!(error.status(), Some(404 | 409 | 412)) => break Some(error),
                Ok(Err(error)) if Instant::now() + PAUSE >= end => break Some(error),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a lease was not renewed");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        if why.is_some() {
            tell.send_replace(why);
            // Kept, so that it can still be asked.
            return tell.closed().await;
        }
    }
}
