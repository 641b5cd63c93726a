//! An account's Queue service: its address, its credential and its queues.

use std::collections::BTreeMap;

use futures_util::stream::{self, Stream, TryStreamExt as _};
use http::Method;
use model::ServiceKind;
use queue_wire::{names as queue_names, queue_list};
use wire::connection_string::Endpoint;
use wire::names;
use wire::service_properties::ServiceProperties;
use wire::service_stats::ServiceStats;

use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::retry::RetryPolicy;
use crate::sas::{self, AccountSas};
use crate::service_settings;
use crate::transport::{ServiceRequest, Transport};

/// An account's Queue service. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn run() -> partita_client::Result<()> {
/// use std::time::Duration;
/// use partita_client::QueueService;
///
/// let service = QueueService::from_connection_string("UseDevelopmentStorage=true")?;
/// let steps = service.queue("steps")?;
/// steps.create_if_missing().await?;
/// steps.put("ship ann 1").await?;
/// for message in steps.get(32, Duration::from_secs(60)).await? {
///     println!("{}", message.text);
///     steps.delete(&message.handle).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueService {
    transport: Transport,
}

/// The settings of a [`QueueService`].
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueServiceBuilder {
    endpoint: Endpoint,
    retry: RetryPolicy,
    authorities: Vec<Vec<u8>>,
}

/// A queue in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueEntry {
    pub name: String,
    pub metadata: BTreeMap<String, String>,
}

impl QueueServiceBuilder {
    /// When to retry; [`RetryPolicy`] documents the default.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// A certificate authority to trust in addition to the system's, in PEM.
    pub fn trust(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    pub fn build(self) -> Result<QueueService> {
        let transport = Transport::new(ServiceKind::Queue, self.endpoint, self.retry, &self.authorities)?;
        Ok(QueueService { transport })
    }
}

impl QueueService {
    /// From a connection string of Azure: `UseDevelopmentStorage=true`, an account with its key, or a shared access
    /// signature.
    pub fn from_connection_string(text: &str) -> Result<Self> {
        Self::builder(text)?.build()
    }

    /// From a connection string, with further settings.
    pub fn builder(connection_string: &str) -> Result<QueueServiceBuilder> {
        Ok(Self::building(service_settings::of_connection_string(ServiceKind::Queue, connection_string)?))
    }

    /// An account by its address, such as `https://shop.queue.core.windows.net`, and its key.
    pub fn with_key(url: &str, account: &str, key: &str) -> Result<QueueServiceBuilder> {
        Ok(Self::building(service_settings::with_key(ServiceKind::Queue, url, account, key)?))
    }

    /// An address and a shared access signature, as in a query string.
    pub fn with_sas(url: &str, signature: &str) -> Result<QueueServiceBuilder> {
        Ok(Self::building(service_settings::with_sas(ServiceKind::Queue, url, signature)?))
    }

    fn building(endpoint: Endpoint) -> QueueServiceBuilder {
        QueueServiceBuilder { endpoint, retry: RetryPolicy::default(), authorities: Vec::new() }
    }

    /// The secondary: the read-only copy of this account, which may lag behind. `None` if its address is unknown.
    pub fn secondary(&self) -> Result<Option<Self>> {
        Ok(service_settings::secondary(&self.transport)?.map(|transport| Self { transport }))
    }

    /// The address, without key or signature.
    pub fn url(&self) -> String {
        self.transport.endpoint.url()
    }

    /// A queue by its name; it does not have to exist.
    pub fn queue(&self, name: &str) -> Result<Queue> {
        Queue::new(self.transport.clone(), name)
    }

    /// The queues whose names begin with `prefix`, in order, with their metadata.
    pub fn queues(&self, prefix: &str) -> impl Stream<Item = Result<QueueEntry>> + Send + use<> {
        let start = Some((self.transport.clone(), prefix.to_owned(), String::new()));
        let pages = stream::try_unfold(start, |at| async move {
            let Some((transport, prefix, marker)) = at else { return Ok::<_, Error>(None) };
            let mut request = ServiceRequest::new("list_queues", Method::GET, "/")
                .query(names::COMP, "list")
                .query(queue_names::INCLUDE, "metadata");
            for (name, value) in [(queue_names::PREFIX, &prefix), (queue_names::MARKER, &marker)] {
                if !value.is_empty() {
                    request = request.query(name, value.as_str());
                }
            }
            let answer = transport.send(request).await?;
            let page = queue_list::read(&answer.body)
                .ok_or_else(|| Error::Unreadable("the list of queues can't be read".to_owned()))?;
            let next = Some(page.next_marker).filter(|marker| !marker.is_empty());
            let entry = |queue: queue_list::QueueEntry| QueueEntry {
                name: queue.name,
                metadata: queue.metadata.into_iter().collect(),
            };
            let entries: Vec<_> = page.queues.into_iter().map(entry).collect();
            Ok(Some((entries, next.map(|marker| (transport, prefix, marker)))))
        });
        pages.map_ok(|entries| stream::iter(entries.into_iter().map(Ok))).try_flatten()
    }

    /// The service properties: logging, metrics and CORS rules.
    pub async fn properties(&self) -> Result<ServiceProperties> {
        service_settings::properties(&self.transport).await
    }

    pub async fn set_properties(&self, properties: &ServiceProperties) -> Result<()> {
        service_settings::set_properties(&self.transport, properties).await
    }

    /// How far the secondary lags behind. Call it on [`secondary`](Self::secondary); a primary refuses it.
    pub async fn stats(&self) -> Result<ServiceStats> {
        service_settings::stats(&self.transport).await
    }

    /// A shared access signature for this account; needs the account's key.
    pub fn sign(&self, sas: &AccountSas) -> Result<String> {
        sas::sign_account(&self.transport.endpoint, ServiceKind::Queue, sas)
    }
}
