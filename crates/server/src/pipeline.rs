//! The checks every request passes, in the service's order: read from top to bottom.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::{ACCEPT, CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use model::{DateTime, Refusal, TableName, limits};
use service::{Grant, Service};
use store::TableRef;
use wire::access_policies::{self, AccessPolicy};
use wire::signing::sas::Sas;
use wire::url::{Query, Resource};
use wire::{Format, MetadataLevel, Version, format, names};

use crate::account::{Account, SharedAccounts};
use crate::address::{self, Site};
use crate::analytics::{Analytics, Api, Arrival, Exchange, Observed};
use crate::answer::{Answer, Failure, Preference};
use crate::authenticate::{self, Claim, Denied, Proven};
use crate::bearer::{Bearer, SharedBearer};
use crate::body::RequestBody;
use crate::connections::Connection;
use crate::cors;
use crate::headers::{
    DATA_SERVICE_VERSION, Header, Headers, MAX_DATA_SERVICE_VERSION, PREFER, X_MS_CLIENT_REQUEST_ID,
    X_MS_VERSION, has_authorization, header,
};
use crate::memory::Memory;
use crate::operation::condition::Condition;
use crate::operation::{self, Call, Context};
use crate::refusal_log::{RefusalLog, cut};
use crate::request_id;
use crate::respond::{self, Asked, Body};
use crate::route;
use crate::sas::{self, Caller};
use crate::settings::Settings;

/// Whether the log has said already that the store can't be used.
static UNREADY: AtomicBool = AtomicBool::new(false);

/// Everything a request needs to be answered.
#[derive(Debug)]
pub struct Pipeline {
    pub service: Service,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    pub scheme: &'static str,
    pub check_clock: bool,
    pub settings: Arc<Settings>,
    pub analytics: Arc<Analytics>,
    pub memory: Arc<Memory>,
    pub refusal_log: Arc<RefusalLog>,
}

pub async fn handle(
    pipeline: Arc<Pipeline>,
    peer: SocketAddr,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    if let Some(response) = health(&pipeline, &request) {
        return response;
    }
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let bearer = pipeline.bearer.current();
    let mut asked = asked(&head.headers, &bearer);
    let mut body = RequestBody::new(&head.headers, body);
    let accounts = pipeline.accounts.current();
    let host = host(&head, pipeline.scheme);
    let addressed =
        host.clone().and_then(|host| Site::find(pipeline.scheme, host, head.uri.path(), &accounts));
    let properties = match &addressed {
        Ok((site, ..)) => pipeline.settings.of(&pipeline.service, &site.account).await,
        Err(_) => pipeline.settings.fresh().clone(),
    };
    let mut response = if head.method == Method::OPTIONS {
        // A preflight is anyone's, and about a resource that need not exist.
        asked.observed.api = Some(Api::PREFLIGHT);
        let read =
            format::negotiate(None, header(&head.headers, ACCEPT).if_readable(), Version::DEFAULT, true);
        asked.error_level = read.ok().and_then(|negotiated| negotiated.error);
        match cors::preflight(&properties.cors, &head.headers) {
            Ok(allowed) => respond::preflight(&asked, allowed),
            Err(refusal) => refused(&mut asked, refusal.into()),
        }
    } else {
        let caller = Caller { ip: peer.ip(), https: pipeline.scheme == "https" };
        let mut response =
            match answer(&pipeline, &bearer, caller, &addressed, &head, &mut body, &mut asked).await {
                Ok(answer) => respond::answer(&asked, answer),
                Err(failure) => refused(&mut asked, failure),
            };
        cors::decorate(&mut response, &properties.cors, &head.method, head.headers.get(ORIGIN));
        response
    };
    body.discard(connection);
    if let Ok((site, _, path)) = &addressed {
        asked
            .observed
            .api
            .get_or_insert_with(|| presumed(&head, path, site, asked.version.unwrap_or(Version::DEFAULT)));
        if asked.observed.api == Some(Api::SET_PROPERTIES) && asked.observed.refusal.is_none() {
            pipeline.analytics.properties_changed();
        }
        let arrival = Arrival {
            site,
            path,
            scheme: pipeline.scheme,
            host: host.as_ref().copied().unwrap_or_default(),
            peer,
            started,
            head: &head,
            request_id: &asked.request_id,
            version: asked.version,
        };
        let exchange = Exchange::new(&pipeline.analytics, &properties, &arrival, &asked.observed, &response);
        response.body_mut().carry(exchange);
    }
    tracing::debug!(
        request_id = asked.request_id,
        method = %head.method,
        path = head.uri.path(),
        status = response.status().as_u16(),
        elapsed_us = started.elapsed().as_micros() as u64,
        "request"
    );
    response
}

fn refused(asked: &mut Asked, failure: Failure) -> Response<Body> {
    let response = respond::failure(asked, &failure);
    asked.observed.refusal = Some(failure.refusal);
    response
}

/// What was asked by a request that was refused before it came to that.
fn presumed(head: &http::request::Parts, path: &str, site: &Site, version: Version) -> Api {
    let query = head.uri.query().and_then(Query::parse).unwrap_or_default();
    let method = route::effective_method(&head.method, Headers::Request(&head.headers))
        .unwrap_or_else(|_| head.method.clone());
    let resource = Resource::parse(path);
    let operation = route::resolve_service(&method, &query, &resource, site.secondary)
        .unwrap_or_else(|| route::resolve(&method, resource?, site.account.as_str()));
    operation.map_or(Api::UNKNOWN, |operation| {
        let condition = Condition::read(&operation, Headers::Request(&head.headers), version);
        Api::of(&operation, &condition)
    })
}

async fn answer(
    pipeline: &Pipeline,
    bearer: &Bearer,
    caller: Caller,
    addressed: &Result<(Site, &Account, &str), Refusal>,
    head: &http::request::Parts,
    body: &mut RequestBody,
    asked: &mut Asked,
) -> Result<Answer, Failure> {
    let headers = &head.headers;
    // One that can't be read is refused only once it is known who asks.
    let parsed_query = Query::parse(head.uri.query().unwrap_or_default()).ok_or(Refusal::QuerySyntax);
    let query = parsed_query.clone().unwrap_or_default();

    let version = negotiate_version(headers, &query)?;
    let odata_3 = format::speaks_odata_3(
        header(headers, &DATA_SERVICE_VERSION).if_readable(),
        header(headers, &MAX_DATA_SERVICE_VERSION).if_readable(),
    );
    let negotiated =
        format::negotiate(query.get(names::FORMAT), header(headers, ACCEPT).if_readable(), version, odata_3);
    asked.version = Some(version);
    asked.error_level = negotiated.as_ref().ok().and_then(|negotiated| negotiated.error);

    let (site, account, path) = addressed.as_ref().map_err(Clone::clone)?;

    let claim = Claim {
        method: &head.method,
        raw_path: head.uri.path(),
        query: &query,
        headers,
        version,
        https: caller.https,
    };
    let comp = query.get_ignoring_case(names::COMP);
    let log = |denied: Denied, operation: Option<Api>| {
        pipeline.refusal_log.write(|| {
            tracing::warn!(
                request_id = asked.request_id, method = %head.method, path = cut(head.uri.path()),
                comp = comp.map(cut), operation = operation.map(|api| api.0), code = denied.refusal.code(),
                why = cut(&denied.why), "access refused"
            );
        });
        denied.refusal
    };
    let grant =
        match authenticate::verify(&claim, site, account, bearer, pipeline.check_clock, SystemTime::now())
            .map_err(|denied| log(denied, None))?
        {
            Proven::Owner => Grant::Owner,
            Proven::Roles(grant, identity) => {
                asked.observed.identity = Some(identity);
                Grant::Role(grant)
            }
            Proven::Token(token) => {
                let policy = stored_policy(pipeline, &token, site).await?;
                sas::admit(&token, policy.as_ref(), DateTime::now(), caller)
                    .map_err(|denied| log(denied, None))?
            }
        };

    parsed_query?;
    let resource = Resource::parse(path);
    let method = route::effective_method(&head.method, Headers::Request(headers))?;
    let operation = match route::resolve_service(&method, &query, &resource, site.secondary) {
        Some(operation) => {
            asked.speaks_xml = true;
            operation?
        }
        None => {
            asked.preference = preference(&method, headers, version);
            if asks_for_a_document(&method, &resource) {
                negotiated.clone()?;
            }
            route::resolve(&method, resource?, site.account.as_str())?
        }
    };
    if site.secondary && operation.writes() {
        return Err(Refusal::WritesNotAllowed.into());
    }
    let condition = Condition::read(&operation, Headers::Request(headers), version);
    let api = Api::of(&operation, &condition);
    asked.observed.api = Some(api);
    let need = operation.need(&condition);
    grant.permits(&need).map_err(|refusal| {
        log(Denied { refusal, why: format!("{grant} does not permit {need}") }, Some(api))
    })?;

    if operation.takes_body() {
        require_length(headers)?;
    }
    let time = time_allowed(&query);
    let deadline = tokio::time::Instant::now() + *time.as_ref().unwrap_or(&limits::REQUEST_TIME_MAX);
    let mut held = pipeline.memory.nothing();
    let body = body.read(headers, deadline, &mut held).await.inspect_err(|refusal| {
        asked.observed.broken = *refusal == Refusal::BodyNotReadable;
    })?;
    asked.observed.body_bytes = body.len() as u64;
    let context = Context {
        service: &pipeline.service,
        site,
        grant: &grant,
        version,
        odata_3,
        request_id: &asked.request_id,
        memory: &pipeline.memory,
        refusal_log: &pipeline.refusal_log,
    };
    let format = negotiated.map_or(Format::Json(MetadataLevel::Minimal), |negotiated| negotiated.success);
    let call = Call {
        headers: Headers::Request(headers),
        condition: &condition,
        query: &query,
        body: &body,
        format,
    };
    time?;
    let run = tokio::time::timeout_at(deadline, operation::run(&context, operation, &call));
    run.await.unwrap_or_else(|_| Err(Refusal::TimedOut.into()))
}

/// The one host that a request names. Several, or two that differ, would let a proxy and this server each see another
/// account.
fn host<'h>(head: &'h http::request::Parts, scheme: &str) -> Result<&'h str, Refusal> {
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

/// Any well-formed version is served; one that is none is refused before anything else is looked at.
///
/// A token made since 2014-02-14 lets `api-version` or the header choose, and else brings its own; an older one
/// is always served in its own.
fn negotiate_version(headers: &HeaderMap, query: &Query) -> Result<Version, Refusal> {
    let sent = header(headers, &X_MS_VERSION).required_readable(Refusal::HeaderValueInvalid)?;
    let text = match query.get("sv").filter(|_| !has_authorization(headers) && query.get("sig").is_some()) {
        Some(own) if own < "2014-02-14" => Some(own),
        Some(own) => query.get("api-version").or(sent).or(Some(own)),
        None => sent,
    };
    text.map_or(Ok(Version::DEFAULT), |text| Version::parse(text.trim()).ok_or(Refusal::HeaderValueInvalid))
}

/// The stored policy that a token names. A table that is not there has none; a store that fails has not said so.
async fn stored_policy(
    pipeline: &Pipeline,
    token: &Sas,
    site: &Site,
) -> Result<Option<AccessPolicy>, Failure> {
    let Sas::Table(token) = token else { return Ok(None) };
    let Ok(name) = TableName::parse(&token.table) else { return Ok(None) };
    if token.identifier.is_empty() {
        return Ok(None);
    }
    let table = TableRef { account: site.account.clone(), name };
    let document = match pipeline.service.get_policies(&table).await {
        Ok(document) => document.unwrap_or_default(),
        Err(service::Error::Refused { refusal: Refusal::TableNotFound, .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let policies = access_policies::read(&document)?;
    Ok(policies.into_iter().find(|policy| policy.id == token.identifier))
}

/// Who does must be able to read one. A batch is answered as multipart, its parts each in their own format.
fn asks_for_a_document(method: &Method, resource: &Result<Resource, Refusal>) -> bool {
    matches!(*method, Method::GET | Method::POST)
        && !matches!(resource, Ok(Resource::Batch | Resource::Service))
}

/// `Prefer` is for POST; its echo stands on refusals too.
fn preference(method: &Method, headers: &HeaderMap, version: Version) -> Option<Preference> {
    let asked =
        header(headers, &PREFER).if_readable().filter(|_| *method == Method::POST && version.has_prefer());
    asked.and_then(Preference::parse)
}

/// `timeout` in seconds, up to the service's own limit; a larger one is taken for the limit.
fn time_allowed(query: &Query) -> Result<Duration, Refusal> {
    let Some(text) = query.get(names::TIMEOUT).filter(|text| !text.is_empty()) else {
        return Ok(limits::REQUEST_TIME_MAX);
    };
    let seconds: u64 = text.parse().map_err(|_| Refusal::QueryParameterValueInvalid)?;
    if seconds == 0 {
        return Err(Refusal::QueryParameterValueInvalid);
    }
    Ok(Duration::from_secs(seconds).min(limits::REQUEST_TIME_MAX))
}

/// A body without a length and not in chunks is none: most likely not what was meant.
fn require_length(headers: &HeaderMap) -> Result<(), Refusal> {
    let has_length = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if has_length { Ok(()) } else { Err(Refusal::ContentLengthMissing) }
}

fn asked(headers: &HeaderMap, bearer: &Arc<Bearer>) -> Asked {
    let client_request_id = headers
        .get(&X_MS_CLIENT_REQUEST_ID)
        .filter(|id| id.len() <= limits::CLIENT_REQUEST_ID_BYTES_MAX)
        .cloned();
    Asked {
        request_id: request_id::new_request_id(),
        client_request_id,
        sent_version: headers.get(&X_MS_VERSION).cloned(),
        bearer: bearer.clone(),
        version: None,
        error_level: None,
        preference: None,
        speaks_xml: false,
        observed: Observed::default(),
    }
}

/// `/health/live`: the process answers. `/health/ready`: the store can be read and written.
fn health(pipeline: &Pipeline, request: &Request<Incoming>) -> Option<Response<Body>> {
    let (outcome, frozen) = match request.uri().path() {
        "/health/live" => (Ok(()), None),
        "/health/ready" => (pipeline.service.check_health(), pipeline.service.frozen_since()),
        _ => return None,
    };
    let (status, text) = match (outcome, frozen) {
        (Ok(()), None) => (200, "ok\n".to_owned()),
        // Ready for reads, and no other server on this store could be more.
        (Ok(()), Some(since)) => {
            (200, format!("ok; frozen since {}, so that writes are refused\n", since.to_seconds_string()))
        }
        // Why is for the log alone: anyone may ask, and a fault names files.
        (Err(fault), _) => {
            if !UNREADY.swap(true, Ordering::Relaxed) {
                tracing::error!(%fault, "not ready");
            }
            (503, "the store can't be used now; the server's log says why\n".to_owned())
        }
    };
    if status == 200 && request.uri().path() == "/health/ready" {
        UNREADY.store(false, Ordering::Relaxed);
    }
    let mut response = Response::new(Body::sized(text));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
    Some(response)
}
