//! An account's Table service: its address, its credential, its tables and its settings.

use bytes::Bytes;
use futures_util::stream::{self, Stream, TryStreamExt as _};
use http::Method;
use model::ServiceKind;
use wire::connection_string::Endpoint;
use wire::names;

pub use wire::service_properties::{CorsRule, Logging, Metrics, ServiceProperties};
pub use wire::service_stats::ServiceStats;

use crate::answers;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::retry::RetryPolicy;
use crate::sas::{self, AccountSas};
use crate::service_settings;
use crate::table::Table;
use crate::transport::{ServiceRequest, Transport};

/// An account's Table service. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn run() -> partita_client::Result<()> {
/// use partita_client::{Entity, TableService};
///
/// let service = TableService::from_connection_string("UseDevelopmentStorage=true")?;
/// let books = service.table("Books")?;
/// books.create_if_missing().await?;
/// books.insert(&Entity::new("novels", "emma").with("Title", "Emma")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableService {
    transport: Transport,
}

/// The settings of a [`TableService`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TableServiceBuilder {
    endpoint: Endpoint,
    retry: RetryPolicy,
    authorities: Vec<Vec<u8>>,
}

impl TableServiceBuilder {
    /// When to retry; [`RetryPolicy`] documents the default.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// A certificate authority to trust in addition to the system's, in PEM.
    pub fn trust(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    pub fn build(self) -> Result<TableService> {
        let transport = Transport::new(ServiceKind::Table, self.endpoint, self.retry, &self.authorities)?;
        Ok(TableService { transport })
    }
}

impl TableService {
    /// From a connection string of Azure: `UseDevelopmentStorage=true`, an account with its key, or a shared access
    /// signature.
    pub fn from_connection_string(text: &str) -> Result<Self> {
        Self::builder(text)?.build()
    }

    /// From a connection string, with further settings.
    pub fn builder(connection_string: &str) -> Result<TableServiceBuilder> {
        Ok(Self::building(service_settings::of_connection_string(ServiceKind::Table, connection_string)?))
    }

    /// An account by its address, such as `https://shop.table.core.windows.net`, and its key.
    pub fn with_key(url: &str, account: &str, key: &str) -> Result<TableServiceBuilder> {
        Ok(Self::building(service_settings::with_key(ServiceKind::Table, url, account, key)?))
    }

    /// An address and a shared access signature, as in a query string.
    pub fn with_sas(url: &str, signature: &str) -> Result<TableServiceBuilder> {
        Ok(Self::building(service_settings::with_sas(ServiceKind::Table, url, signature)?))
    }

    fn building(endpoint: Endpoint) -> TableServiceBuilder {
        TableServiceBuilder { endpoint, retry: RetryPolicy::default(), authorities: Vec::new() }
    }

    /// The secondary: the read-only copy of this account, which may lag behind. `None` if its address is unknown.
    pub fn secondary(&self) -> Result<Option<Self>> {
        Ok(service_settings::secondary(&self.transport)?.map(|transport| Self { transport }))
    }

    /// The address, without key or signature.
    pub fn url(&self) -> String {
        self.transport.endpoint.url()
    }

    /// A table by its name; it does not have to exist.
    pub fn table(&self, name: &str) -> Result<Table> {
        Table::new(self.transport.clone(), name)
    }

    /// The names of the tables, in order: all, or those that match a filter on `TableName`.
    ///
    /// ```no_run
    /// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
    /// use futures_util::TryStreamExt as _;
    /// use partita_client::property;
    ///
    /// let logs: Vec<String> = service.tables(Some(property("TableName").starts_with("log"))).try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tables(&self, filter: Option<Filter>) -> impl Stream<Item = Result<String>> + Send + use<> {
        let start = Some((self.clone(), filter, None));
        let pages = stream::try_unfold(start, |at| async move {
            let Some((service, filter, next)) = at else { return Ok::<_, Error>(None) };
            let mut request = ServiceRequest::new("list_tables", Method::GET, format!("/{}", names::TABLES));
            if let Some(filter) = &filter {
                request = request.query(names::FILTER, filter.checked()?);
            }
            if let Some(next) = next {
                request = request.query(names::NEXT_TABLE_NAME, next);
            }
            let answer = service.transport.send(request).await?;
            let next: Option<String> = answer.header(names::NEXT_TABLE_NAME_HEADER).map(str::to_owned);
            let tables = answers::tables(&answer.body)?;
            Ok(Some((tables, next.map(|next| (service, filter, Some(next))))))
        });
        pages.map_ok(|names| stream::iter(names.into_iter().map(Ok))).try_flatten()
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

    /// A document that Partita has and other services refuse, as JSON: `path` follows `$partita`, such as `/hot`.
    pub async fn extension(&self, path: &str, query: Vec<(&'static str, String)>) -> Result<Bytes> {
        let mut request = ServiceRequest::new("extension", Method::GET, format!("/$partita{path}"));
        request.query = query;
        Ok(self.transport.send(request).await?.body)
    }

    /// A shared access signature for this account; needs the account's key.
    pub fn sign(&self, sas: &AccountSas) -> Result<String> {
        sas::sign_account(&self.transport.endpoint, ServiceKind::Table, sas)
    }
}
