//! A request and its answer, for the request log and the metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{DateTime, limits};
use http::{HeaderMap, Response, StatusCode};
use protocol::QueryString;
use protocol::names;
use protocol::service_properties::ServiceProperties;

use super::line::{Line, RequestFacts};
use super::log_store::{LogFacts, LogHour};
use super::outcome::{AuthenticationType, Status};
use super::{Analytics, Window, minute_of};
use crate::address::Address;
use crate::bearer::Identity;
use crate::operation_info::OperationInfo;
use crate::request::Request;
use crate::response_body::Body;
use crate::service::RefusalFacts;

/// What was observed of a request after its head.
#[derive(Debug, Default)]
pub struct Observations {
    pub identity: Option<Identity>,
    /// The body could not be read: most likely the client closed the connection.
    pub broken: bool,
    pub body_bytes: u64,
}

/// How a request ended.
#[derive(Debug)]
pub struct Ending {
    pub info: &'static OperationInfo,
    pub refusal: Option<RefusalFacts>,
    pub observations: Observations,
    /// From its head to its answer.
    pub elapsed: Duration,
}

/// A request that is counted, and logged if the account wants it, when this is dropped: together with the answer's body,
/// once the answer has been handed to the network.
#[derive(Debug)]
pub struct Exchange {
    analytics: Arc<Analytics>,
    window: Window,
    counted: bool,
    operation: &'static str,
    outcome: (Status, AuthenticationType),
    bytes: (u64, u64),
    response_body_bytes: u64,
    started: Instant,
    server: Duration,
    line: Option<(Line, LogFacts)>,
}

impl Exchange {
    /// `None` if the account wants neither logs nor metrics.
    pub fn new(
        analytics: &Arc<Analytics>,
        properties: &ServiceProperties,
        request: &Request<'_>,
        address: &Address<'_>,
        ending: &Ending,
        response: &Response<Body>,
    ) -> Option<Self> {
        let (head, site, observations) = (request.head, &address.site, &ending.observations);
        let operation = ending.info;
        let counted = properties.hour_metrics.enabled || properties.minute_metrics.enabled;
        let logs = analytics.logs(properties, operation.class);
        if !counted && !logs {
            return None;
        }
        let status = match observations.broken {
            true => Status::NetworkError,
            false => Status::of(ending.refusal, || has_own_deadline(&request.query)),
        };
        let authentication = authentication_type(request);
        let server = ending.elapsed;
        let target = head.uri.path().len() + head.uri.query().map_or(0, |query| "?".len() + query.len());
        let request_line = head.method.as_str().len() + target + "  HTTP/1.1\r\n".len();
        let request_head_bytes = request_line as u64 + head_bytes(&head.headers);
        let response_head_bytes = "HTTP/1.1 200 OK\r\n".len() as u64 + head_bytes(response.headers());
        let response_body_bytes = response.body().len();
        let started = before(DateTime::now(), server);
        let is_logged = status.is_logged(authentication) || response.status() == StatusCode::NOT_MODIFIED;
        let line = (logs && is_logged).then(|| {
            Line::new(&RequestFacts {
                started,
                operation: operation.name,
                status,
                refusal: ending.refusal,
                authentication,
                identity: observations.identity.as_ref(),
                account: site.account.as_str(),
                service: site.service,
                scheme: request.scheme,
                host: request.host.as_ref().copied().unwrap_or_default(),
                path: address.path,
                request_id: &request.id,
                peer: request.peer,
                version: request.version.as_ref().ok().copied(),
                head,
                request_head_bytes,
                request_body_bytes: observations.body_bytes,
                response_status: response.status().as_u16(),
                response_headers: response.headers(),
                response_head_bytes,
                response_body_bytes,
            })
        });
        let facts = LogFacts::of(started, operation.class, observations.identity.is_some());
        let line = line.map(|line| (line, facts));
        Some(Self {
            analytics: analytics.clone(),
            window: Window {
                account: site.account.clone(),
                service: site.service,
                secondary: site.secondary,
                minute: minute_of(DateTime::now()),
            },
            counted,
            operation: operation.name,
            outcome: (status, authentication),
            bytes: (request_head_bytes + observations.body_bytes, response_head_bytes + response_body_bytes),
            response_body_bytes,
            started: request.arrived,
            server,
            line,
        })
    }
}

impl Exchange {
    /// The answer ended before so many bytes of its body had been sent: it was no success.
    pub fn break_off(&mut self, unsent: u64) {
        let authentication = self.outcome.1;
        self.outcome.0 = Status::NetworkError;
        self.bytes.1 = self.bytes.1.saturating_sub(unsent);
        self.response_body_bytes = self.response_body_bytes.saturating_sub(unsent);
        let is_logged = Status::NetworkError.is_logged(authentication);
        self.line = self.line.take().filter(|_| is_logged);
        if let Some((line, _)) = &mut self.line {
            line.break_off(authentication, self.response_body_bytes);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let end_to_end = self.started.elapsed();
        if let (Some((line, facts)), Some(log)) = (self.line.take(), &self.analytics.log) {
            let of = LogHour::of(self.window.account.clone(), self.window.service, DateTime::now());
            log.log(of, &line.finish(end_to_end, self.server), facts);
        }
        if self.counted {
            let (outcome, bytes, times) = (self.outcome, self.bytes, (end_to_end, self.server));
            self.analytics.count(&self.window, self.operation, |tally| tally.count(outcome, bytes, times));
        }
    }
}

/// By the credential that the request has, valid or not.
fn authentication_type(request: &Request<'_>) -> AuthenticationType {
    let signed = || {
        request.head.uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("sig=")))
    };
    match request.has_authorization {
        true => AuthenticationType::Authenticated,
        false if signed() => AuthenticationType::Sas,
        false => AuthenticationType::Anonymous,
    }
}

fn has_own_deadline(query: &QueryString) -> bool {
    let seconds = query.get(names::TIMEOUT).and_then(|seconds| seconds.parse().ok());
    seconds.is_some_and(|seconds: u64| seconds < limits::REQUEST_TIME_MAX.as_secs())
}

/// Each header with its colon, space and line end, and the empty line after them.
fn head_bytes(headers: &HeaderMap) -> u64 {
    let each = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    (each.sum::<usize>() + "\r\n".len()) as u64
}

fn before(now: DateTime, elapsed: Duration) -> DateTime {
    let ticks = i64::try_from(elapsed.as_nanos() / 100).unwrap_or(i64::MAX);
    DateTime::from_ticks(now.ticks().saturating_sub(ticks)).unwrap_or(now)
}
