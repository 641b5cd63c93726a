//! The checks every request passes, in the service's order: read from top to bottom.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::{CONTENT_LENGTH, ORIGIN, TRANSFER_ENCODING};
use http::{HeaderMap, Response};
use hyper::body::Incoming;
use model::{DateTime, Refusal, TableName, limits};
use service::{Grant, Service};
use store::TableRef;
use wire::access_policies::{self, AccessPolicy};
use wire::names;
use wire::signing::sas::Sas;
use wire::url::Query;

use crate::account::SharedAccounts;
use crate::address::{Address, Site};
use crate::analytics::{Analytics, Ended, Exchange, Learned};
use crate::answer::{Answer, Failure};
use crate::authenticate::{self, Claim, Denied, Proven};
use crate::bearer::{Bearer, Identity, SharedBearer};
use crate::body::RequestBody;
use crate::connections::Connection;
use crate::cors;
use crate::memory::Memory;
use crate::operation::{self, Call, Context};
use crate::operation_info;
use crate::refusal_log::{RefusalLog, cut};
use crate::request::Request;
use crate::respond::{self, Body};
use crate::sas;
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

/// How a request ended, and what was learned on the way that its head does not say.
struct Outcome {
    result: Result<Answer, Failure>,
    /// The caller has proved who they are. What they asked for shows in a refusal only then.
    is_known: bool,
    learned: Learned,
}

pub async fn handle(
    pipeline: Arc<Pipeline>,
    peer: SocketAddr,
    connection: &Arc<Connection>,
    request: http::Request<Incoming>,
) -> Response<Body> {
    if let Some(response) = health(&pipeline, &request) {
        return response;
    }
    let arrived = Instant::now();
    let (head, body) = request.into_parts();
    let mut body = RequestBody::new(&head.headers, body);
    let accounts = pipeline.accounts.current();
    let bearer = pipeline.bearer.current();
    let request = Request::read(&head, peer, pipeline.scheme, &accounts, arrived);
    let properties = match &request.address {
        Ok(address) => pipeline.settings.of(&pipeline.service, &address.site.account).await,
        Err(_) => pipeline.settings.fresh().clone(),
    };
    let (mut response, refusal, learned) = if request.is_preflight() {
        match cors::preflight(&properties.cors, &head.headers) {
            Ok(allowed) => (respond::preflight(&request, allowed), None, Learned::default()),
            Err(refusal) => {
                let response = respond::failure(&request, &bearer, &refusal.clone().into(), false);
                (response, Some(refusal), Learned::default())
            }
        }
    } else {
        let Outcome { result, is_known, learned } = answer(&pipeline, &bearer, &request, &mut body).await;
        let (mut response, refusal) = match result {
            Ok(answer) => (respond::answer(&request, answer), None),
            Err(failure) => (respond::failure(&request, &bearer, &failure, is_known), Some(failure.refusal)),
        };
        cors::decorate(&mut response, &properties.cors, &head.method, head.headers.get(ORIGIN));
        (response, refusal, learned)
    };
    body.discard(connection);
    if let Ok(address) = &request.address {
        if *request.table.info == operation_info::SET_PROPERTIES && refusal.is_none() {
            pipeline.analytics.properties_changed();
        }
        let ended = Ended { refusal, learned };
        let exchange = Exchange::new(&pipeline.analytics, &properties, &request, address, &ended, &response);
        response.body_mut().carry(exchange);
    }
    tracing::debug!(
        request_id = request.id,
        method = %head.method,
        path = head.uri.path(),
        status = response.status().as_u16(),
        elapsed_us = arrived.elapsed().as_micros() as u64,
        "request"
    );
    response
}

/// The checks before the caller is known, then those of what they ask for.
async fn answer(
    pipeline: &Pipeline,
    bearer: &Bearer,
    request: &Request<'_>,
    body: &mut RequestBody,
) -> Outcome {
    let (grant, identity, address) = match admit(pipeline, bearer, request).await {
        Ok(admitted) => admitted,
        Err(failure) => {
            return Outcome { result: Err(failure), is_known: false, learned: Learned::default() };
        }
    };
    let result = perform(pipeline, request, address, &grant, body).await;
    let learned = Learned { identity, body_bytes: body.received(), broken: body.is_broken() };
    Outcome { result, is_known: true, learned }
}

/// Version, address, signature: who asks, and what they may do.
async fn admit<'r>(
    pipeline: &Pipeline,
    bearer: &Bearer,
    request: &'r Request<'r>,
) -> Result<(Grant, Option<Identity>, &'r Address<'r>), Failure> {
    let version = request.version.clone()?;
    let address = request.address.as_ref().map_err(Clone::clone)?;
    let claim = Claim {
        method: &request.head.method,
        raw_path: request.head.uri.path(),
        query: &request.query,
        headers: &request.head.headers,
        version,
        https: request.caller().https,
    };
    let Address { site, account, .. } = address;
    let proven = authenticate::verify(&claim, site, account, bearer, pipeline.check_clock, SystemTime::now())
        .map_err(|denied| log_denied(pipeline, request, denied, None))?;
    let (grant, identity) = match proven {
        Proven::Owner => (Grant::Owner, None),
        Proven::Roles(grant, identity) => (Grant::Role(grant), Some(identity)),
        Proven::Token(token) => {
            let policy = stored_policy(pipeline, &token, site).await?;
            let grant = sas::admit(&token, policy.as_ref(), DateTime::now(), request.caller())
                .map_err(|denied| log_denied(pipeline, request, denied, None))?;
            (grant, None)
        }
    };
    Ok((grant, identity, address))
}

async fn perform(
    pipeline: &Pipeline,
    request: &Request<'_>,
    address: &Address<'_>,
    grant: &Grant,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let (site, table) = (&address.site, &request.table);
    if !request.query_is_readable {
        return Err(Refusal::QuerySyntax.into());
    }
    if table.wants_document {
        table.formats.as_ref().map_err(Clone::clone)?;
    }
    let operation = table.operation.as_ref().map_err(Clone::clone)?;
    if site.secondary && table.info.writes {
        return Err(Refusal::WritesNotAllowed.into());
    }
    let need = operation.need(&table.condition);
    grant.permits(&need).map_err(|refusal| {
        let why = format!("{grant} does not permit {need}");
        log_denied(pipeline, request, Denied { refusal, why }, Some(table.info.name))
    })?;

    let headers = &request.head.headers;
    if table.info.takes_body {
        require_length(headers)?;
    }
    let time = time_allowed(&request.query);
    let deadline = tokio::time::Instant::now() + *time.as_ref().unwrap_or(&limits::REQUEST_TIME_MAX);
    let mut held = pipeline.memory.nothing();
    let body = body.read(headers, deadline, &mut held).await?;
    let context = Context {
        service: &pipeline.service,
        site,
        grant,
        version: request.served_version(),
        odata_3: table.odata_3,
        request_id: &request.id,
        memory: &pipeline.memory,
        refusal_log: &pipeline.refusal_log,
        body_bytes: body.len(),
        place: None,
    };
    let call = Call {
        headers: request.headers(),
        condition: &table.condition,
        query: &request.query,
        body: &body,
        format: table.format(),
    };
    time?;
    let run = tokio::time::timeout_at(deadline, operation::run(&context, operation.clone(), &call));
    run.await.unwrap_or_else(|_| Err(Refusal::TimedOut.into()))
}

/// For the operator: who was refused what, and why.
fn log_denied(
    pipeline: &Pipeline,
    request: &Request<'_>,
    denied: Denied,
    operation: Option<&str>,
) -> Refusal {
    pipeline.refusal_log.write(|| {
        let comp = request.query.get_ignoring_case(names::COMP);
        tracing::warn!(
            request_id = request.id, method = %request.head.method, path = cut(request.head.uri.path()),
            comp = comp.map(cut), operation, code = denied.refusal.code(),
            why = cut(&denied.why), "access refused"
        );
    });
    denied.refusal
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

/// `/health/live`: the process answers. `/health/ready`: the store can be read and written.
fn health(pipeline: &Pipeline, request: &http::Request<Incoming>) -> Option<Response<Body>> {
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
