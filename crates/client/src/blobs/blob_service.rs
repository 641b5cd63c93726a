//! An account's Blob service: its address, its credential and its containers.

use futures_util::stream::Stream;
use model::ServiceKind;
use wire::connection_string::Endpoint;
use wire::service_properties::ServiceProperties;
use wire::service_stats::ServiceStats;

use super::container::Container;
use super::container_list::{self, ContainerEntry};
use crate::error::Result;
use crate::retry::RetryPolicy;
use crate::sas::{self, AccountSas};
use crate::service_settings;
use crate::transport::Transport;

/// An account's Blob service. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn run() -> partita_client::Result<()> {
/// use futures_util::TryStreamExt as _;
/// use partita_client::BlobService;
///
/// let service = BlobService::from_connection_string("UseDevelopmentStorage=true")?;
/// let photos = service.container("photos")?;
/// photos.create_if_missing().await?;
/// photos.blob("2026/cat.jpg")?.upload(&b"..."[..]).await?;
/// let mut listed = std::pin::pin!(photos.blobs().prefix("2026/").stream());
/// while let Some(blob) = listed.try_next().await? {
///     println!("{} has {} bytes", blob.name, blob.properties.length);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BlobService {
    transport: Transport,
}

/// The settings of a [`BlobService`].
#[derive(Clone, Debug)]
#[must_use]
pub struct BlobServiceBuilder {
    endpoint: Endpoint,
    retry: RetryPolicy,
    authorities: Vec<Vec<u8>>,
}

impl BlobServiceBuilder {
    /// When to retry; [`RetryPolicy`] documents the default.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// A certificate authority to trust in addition to the system's, in PEM.
    pub fn trust(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    pub fn build(self) -> Result<BlobService> {
        let transport = Transport::new(ServiceKind::Blob, self.endpoint, self.retry, &self.authorities)?;
        Ok(BlobService { transport })
    }
}

impl BlobService {
    /// From a connection string of Azure: `UseDevelopmentStorage=true`, an account with its key, or a shared access
    /// signature.
    pub fn from_connection_string(text: &str) -> Result<Self> {
        Self::builder(text)?.build()
    }

    /// From a connection string, with further settings.
    pub fn builder(connection_string: &str) -> Result<BlobServiceBuilder> {
        Ok(Self::building(service_settings::of_connection_string(ServiceKind::Blob, connection_string)?))
    }

    /// An account by its address, such as `https://shop.blob.core.windows.net`, and its key.
    pub fn with_key(url: &str, account: &str, key: &str) -> Result<BlobServiceBuilder> {
        Ok(Self::building(service_settings::with_key(ServiceKind::Blob, url, account, key)?))
    }

    /// An address and a shared access signature, as in a query string.
    pub fn with_sas(url: &str, signature: &str) -> Result<BlobServiceBuilder> {
        Ok(Self::building(service_settings::with_sas(ServiceKind::Blob, url, signature)?))
    }

    fn building(endpoint: Endpoint) -> BlobServiceBuilder {
        BlobServiceBuilder { endpoint, retry: RetryPolicy::default(), authorities: Vec::new() }
    }

    /// The secondary: the read-only copy of this account, which may lag behind. `None` if its address is unknown.
    pub fn secondary(&self) -> Result<Option<Self>> {
        Ok(service_settings::secondary(&self.transport)?.map(|transport| Self { transport }))
    }

    /// The address, without key or signature.
    pub fn url(&self) -> String {
        self.transport.endpoint.url()
    }

    /// A container by its name; it does not have to exist.
    pub fn container(&self, name: &str) -> Result<Container> {
        Container::new(self.transport.clone(), name)
    }

    /// The containers whose names begin with `prefix`, in order, with their metadata.
    pub fn containers(&self, prefix: &str) -> impl Stream<Item = Result<ContainerEntry>> + Send + use<> {
        container_list::stream(self.transport.clone(), prefix)
    }

    /// The service properties that all services have: logging, metrics and CORS rules.
    pub async fn properties(&self) -> Result<ServiceProperties> {
        service_settings::properties(&self.transport).await
    }

    /// Sets logging, metrics and CORS rules. What only blobs have, such as the retention of deleted ones, stays as it is.
    pub async fn set_properties(&self, properties: &ServiceProperties) -> Result<()> {
        service_settings::set_properties(&self.transport, properties).await
    }

    /// How far the secondary lags behind. Call it on [`secondary`](Self::secondary); a primary refuses it.
    pub async fn stats(&self) -> Result<ServiceStats> {
        service_settings::stats(&self.transport).await
    }

    /// A shared access signature for this account; needs the account's key.
    pub fn sign(&self, sas: &AccountSas) -> Result<String> {
        sas::sign_account(&self.transport.endpoint, ServiceKind::Blob, sas)
    }
}
