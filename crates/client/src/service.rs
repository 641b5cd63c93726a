//! An account's Table service: its address, its credential, its tables and its settings.

use futures_util::stream::{self, Stream, TryStreamExt as _};
use http::Method;
use model::ServiceKind;
use wire::connection_string::{Credential, Endpoint, EndpointError};
use wire::names;
use wire::signing::AccountKey;

pub use wire::service_properties::{CorsRule, Logging, Metrics, ServiceProperties};
pub use wire::service_stats::ServiceStats;

use crate::answers;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::retry::RetryPolicy;
use crate::sas::{self, AccountSas};
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
        Ok(Self::building(Endpoint::parse(connection_string).map_err(invalid)?))
    }

    /// An account by its address, such as `https://shop.table.core.windows.net`, and its key.
    pub fn with_key(url: &str, account: &str, key: &str) -> Result<TableServiceBuilder> {
        let key = AccountKey::parse(key).ok_or_else(|| {
            Error::invalid(format!("the key of {account} is not Base64; copy the whole of it"))
        })?;
        Ok(Self::building(Endpoint::at(url, account, Credential::Key(key)).map_err(invalid)?))
    }

    /// An address and a shared access signature, as in a query string.
    pub fn with_sas(url: &str, signature: &str) -> Result<TableServiceBuilder> {
        let credential = Credential::Signature(signature.trim_start_matches('?').to_owned());
        Ok(Self::building(Endpoint::at(url, "", credential).map_err(invalid)?))
    }

    fn building(endpoint: Endpoint) -> TableServiceBuilder {
        TableServiceBuilder { endpoint, retry: RetryPolicy::default(), authorities: Vec::new() }
    }

    /// The secondary: the read-only copy of this account, which may lag behind. `None` if its address is unknown.
    pub fn secondary(&self) -> Result<Option<Self>> {
        let Endpoint { account, credential, secondary, .. } = &*self.transport.endpoint;
        let Some(url) = secondary else { return Ok(None) };
        let endpoint = Endpoint::at(url, account, credential.clone()).map_err(invalid)?;
        Ok(Some(Self { transport: self.transport.at(endpoint) }))
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
        let answer = self.transport.send(self.about("get_properties", Method::GET, "properties")).await?;
        ServiceProperties::read(ServiceKind::Table, &answer.body)
            .ok_or_else(|| Error::Unreadable("the service's properties can't be read".to_owned()))
    }

    pub async fn set_properties(&self, properties: &ServiceProperties) -> Result<()> {
        let request = self.about("set_properties", Method::PUT, "properties");
        self.transport.send(request.body("application/xml", properties.write())).await.map(drop)
    }

    /// How far the secondary lags behind. Call it on [`secondary`](Self::secondary); a primary refuses it.
    pub async fn stats(&self) -> Result<ServiceStats> {
        let answer = self.transport.send(self.about("get_stats", Method::GET, "stats")).await?;
        ServiceStats::read(&answer.body)
            .ok_or_else(|| Error::Unreadable("the service's statistics can't be read".to_owned()))
    }

    /// A shared access signature for this account; needs the account's key.
    pub fn sign(&self, sas: &AccountSas) -> Result<String> {
        sas::sign_account(&self.transport.endpoint, sas)
    }

    fn about(&self, name: &'static str, method: Method, comp: &str) -> ServiceRequest {
        ServiceRequest::new(name, method, "/").query(names::RESTYPE, "service").query(names::COMP, comp)
    }
}

fn invalid(error: EndpointError) -> Error {
    Error::Invalid(error.to_string())
}
