//! What every service of an account has besides its data: properties, statistics, a secondary, and an address by hand.

use http::Method;
use model::ServiceKind;
use wire::connection_string::{Credential, Endpoint, EndpointError};
use wire::names;
use wire::service_properties::ServiceProperties;
use wire::service_stats::ServiceStats;
use wire::signing::AccountKey;

use crate::error::{Error, Result};
use crate::transport::{ServiceRequest, Transport};

pub async fn properties(transport: &Transport) -> Result<ServiceProperties> {
    let answer = transport.send(about("get_properties", Method::GET, "properties")).await?;
    ServiceProperties::read(transport.service, &answer.body)
        .ok_or_else(|| Error::Unreadable("the service's properties can't be read".to_owned()))
}

pub async fn set_properties(transport: &Transport, properties: &ServiceProperties) -> Result<()> {
    let request = about("set_properties", Method::PUT, "properties");
    transport.send(request.body("application/xml", properties.write())).await.map(drop)
}

pub async fn stats(transport: &Transport) -> Result<ServiceStats> {
    let answer = transport.send(about("get_stats", Method::GET, "stats")).await?;
    ServiceStats::read(&answer.body)
        .ok_or_else(|| Error::Unreadable("the service's statistics can't be read".to_owned()))
}

fn about(name: &'static str, method: Method, comp: &str) -> ServiceRequest {
    ServiceRequest::new(name, method, "/").query(names::RESTYPE, "service").query(names::COMP, comp)
}

/// The same service at its secondary; `None` if its address is unknown.
pub fn secondary(transport: &Transport) -> Result<Option<Transport>> {
    let Endpoint { account, credential, secondary, .. } = &*transport.endpoint;
    let Some(url) = secondary else { return Ok(None) };
    let endpoint = Endpoint::at(transport.service, url, account, credential.clone()).map_err(invalid)?;
    Ok(Some(transport.at(endpoint)))
}

pub fn of_connection_string(service: ServiceKind, text: &str) -> Result<Endpoint> {
    Endpoint::of(service, text).map_err(invalid)
}

pub fn with_key(service: ServiceKind, url: &str, account: &str, key: &str) -> Result<Endpoint> {
    let key = AccountKey::parse(key)
        .ok_or_else(|| Error::invalid(format!("the key of {account} is not Base64; copy the whole of it")))?;
    Endpoint::at(service, url, account, Credential::Key(key)).map_err(invalid)
}

pub fn with_sas(service: ServiceKind, url: &str, signature: &str) -> Result<Endpoint> {
    let credential = Credential::Signature(signature.trim_start_matches('?').to_owned());
    Endpoint::at(service, url, "", credential).map_err(invalid)
}

fn invalid(error: EndpointError) -> Error {
    Error::Invalid(error.to_string())
}
