//! One request: what its head says to every service, read once, before anything is checked. What it asks of its own
//! service is in a `StorageService::ServiceRequest`.
//!
//! A field that can't be read holds the refusal for it. `pipeline` and the services raise these refusals in their order;
//! logs and metrics read the same values.

use std::net::SocketAddr;
use std::time::Instant;

use common::Version;
use common::{Refusal, limits};
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderValue, Method};
use protocol::QueryString;

use crate::account::Accounts;
use crate::address::{self, Address};
use crate::headers::{Header, Headers, X_MS_CLIENT_REQUEST_ID, X_MS_VERSION};
use crate::request_id;
use crate::sas::Caller;
use common::ServiceKind;

#[derive(Debug)]
pub struct Request<'r> {
    pub id: String,
    pub arrived: Instant,
    pub peer: SocketAddr,
    pub scheme: &'static str,
    pub head: &'r Parts,
    pub host: Result<&'r str, Refusal>,
    /// The service it is for.
    pub service: ServiceKind,
    pub address: Result<Address<'r>, Refusal>,
    /// Empty if it can't be read.
    pub query: QueryString,
    pub query_is_readable: bool,
    /// Whether there is an Authorization header, so that a token in the query is ignored.
    pub has_authorization: bool,
    pub version: Result<Version, Refusal>,
    /// The version as its header has it.
    pub sent_version: Option<&'r HeaderValue>,
}

impl<'r> Request<'r> {
    pub fn read(
        head: &'r Parts,
        (peer, scheme): (SocketAddr, &'static str),
        accounts: &'r Accounts,
        services: (ServiceKind, &[ServiceKind]),
        arrived: Instant,
    ) -> Self {
        let host = host(head, scheme);
        let address = host.and_then(|host| Address::find(scheme, host, head.uri.path(), accounts, services));
        let service = address.as_ref().map_or(services.0, |address| address.site.service);
        let query = QueryString::parse(head.uri.query().unwrap_or_default());
        let query_is_readable = query.is_some();
        let query = query.unwrap_or_default();
        let has_authorization = head.headers.get(AUTHORIZATION).is_some_and(|value| !value.is_empty());
        let sent_version = head.headers.get(&X_MS_VERSION);
        let version = version(sent_version, &query, has_authorization);
        Self {
            id: request_id::new_request_id(service),
            arrived,
            peer,
            scheme,
            head,
            host,
            service,
            address,
            query,
            query_is_readable,
            has_authorization,
            version,
            sent_version,
        }
    }

    pub fn headers(&self) -> Headers<'r> {
        Headers::Request(&self.head.headers)
    }

    /// The version of the answer; the default if the request names an invalid one.
    pub fn served_version(&self) -> Version {
        *self.version.as_ref().unwrap_or(&Version::DEFAULT)
    }

    pub fn is_preflight(&self) -> bool {
        self.head.method == Method::OPTIONS
    }

    /// Whether it has no credentials at all, valid or not.
    pub fn is_anonymous(&self) -> bool {
        !self.has_authorization && self.query.get("sig").is_none()
    }

    pub fn caller(&self) -> Caller {
        Caller { ip: self.peer.ip(), https: self.scheme == "https" }
    }

    /// The client's id for the request. `None` if it is too long to be repeated in the answer.
    pub fn client_request_id(&self) -> Option<&'r HeaderValue> {
        let id = self.head.headers.get(&X_MS_CLIENT_REQUEST_ID);
        id.filter(|id| id.len() <= limits::CLIENT_REQUEST_ID_BYTES_MAX)
    }
}

/// The host of a request. More than one is refused: a proxy and this server could each read a different account.
fn host<'h>(head: &'h Parts, scheme: &str) -> Result<&'h str, Refusal> {
    let name = HOST;
    let mut sent = Headers::Request(&head.headers).texts(&name);
    let first = sent.next().unwrap_or(Header::Absent).required_readable(Refusal::HeaderValueInvalid)?;
    if sent.next().is_some() {
        return Err(Refusal::HeaderValueInvalid);
    }
    let plain = |host| address::without_default_port(scheme, host);
    match (first, head.uri.authority().map(http::uri::Authority::as_str)) {
        (Some(host), Some(named)) if !plain(host).eq_ignore_ascii_case(plain(named)) => {
            Err(Refusal::HeaderValueInvalid)
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Ok(""),
    }
}

/// Any well-formed version is served; a malformed one is refused before all other checks.
///
/// With a token, `api-version` or the header choose the version, or else `sv`. With a token older than 2014-02-14, `sv`
/// always does.
fn version(
    sent: Option<&HeaderValue>,
    query: &QueryString,
    has_authorization: bool,
) -> Result<Version, Refusal> {
    let sent = Header::of_value(sent).required_readable(Refusal::HeaderValueInvalid)?;
    let text = match query.get("sv").filter(|_| !has_authorization && query.get("sig").is_some()) {
        Some(own) if own < "2014-02-14" => Some(own),
        Some(own) => query.get("api-version").or(sent).or(Some(own)),
        None => sent,
    };
    text.map_or(Ok(Version::DEFAULT), |text| Version::parse(text.trim()).ok_or(Refusal::HeaderValueInvalid))
}
