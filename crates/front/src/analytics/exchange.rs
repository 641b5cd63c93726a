//! A request and its answer, from the moment it came until its answer is out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{DateTime, limits};
use http::request::Parts;
use http::{HeaderMap, Response};
use protocol::Query;
use protocol::names;
use protocol::service_properties::ServiceProperties;

use super::line::{Facts, Line};
use super::outcome::{Credential, Status};
use super::{Analytics, Window, minute_of};
use crate::address::Address;
use crate::bearer::Identity;
use crate::headers::has_authorization;
use crate::operation_info::OperationInfo;
use crate::request::Request;
use crate::response_body::Body;
use crate::service::RefusalFacts;

/// What was learned of a request after its head.
#[derive(Debug, Default)]
pub struct Learned {
    pub identity: Option<Identity>,
    /// The client went away before its request was read.
    pub broken: bool,
    pub body_bytes: u64,
}

/// How a request ended.
#[derive(Debug)]
pub struct Ended {
    pub info: &'static OperationInfo,
    pub refusal: Option<RefusalFacts>,
    pub learned: Learned,
}

/// Counted, and logged if that was asked for, once it is dropped: with the answer's body, which is when the
/// answer has been handed to the network.
#[derive(Debug)]
pub struct Exchange {
    analytics: Arc<Analytics>,
    window: Window,
    counted: bool,
    operation: &'static str,
    ended: (Status, Credential),
    bytes: (u64, u64),
    started: Instant,
    server: Duration,
    line: Option<Line>,
}

impl Exchange {
    /// `None` if the account asks for neither.
    pub fn new(
        analytics: &Arc<Analytics>,
        properties: &ServiceProperties,
        request: &Request<'_>,
        address: &Address<'_>,
        ended: &Ended,
        response: &Response<Body>,
    ) -> Option<Self> {
        let (head, site, learned) = (request.head, &address.site, &ended.learned);
        let operation = ended.info;
        let counted = properties.hour_metrics.enabled || properties.minute_metrics.enabled;
        let logs = analytics.logs(properties, operation.class);
        if !counted && !logs {
            return None;
        }
        let status = match learned.broken {
            true => Status::NetworkError,
            false => Status::of(ended.refusal, || has_own_deadline(&request.query)),
        };
        let credential = credential(head);
        let server = request.arrived.elapsed();
        let target = head.uri.path().len() + head.uri.query().map_or(0, |query| "?".len() + query.len());
        let request_line = head.method.as_str().len() + target + "  HTTP/1.1\r\n".len();
        let request_head_bytes = request_line as u64 + head_bytes(&head.headers);
        let response_head_bytes = "HTTP/1.1 200 OK\r\n".len() as u64 + head_bytes(response.headers());
        let response_body_bytes = response.body().len();
        let line = (logs && status.is_logged(credential)).then(|| {
            Line::new(&Facts {
                started: before(DateTime::now(), server),
                operation: operation.name,
                status,
                refusal: ended.refusal,
                credential,
                identity: learned.identity.as_ref(),
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
                request_body_bytes: learned.body_bytes,
                response_status: response.status().as_u16(),
                response_headers: response.headers(),
                response_head_bytes,
                response_body_bytes,
            })
        });
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
            ended: (status, credential),
            bytes: (request_head_bytes + learned.body_bytes, response_head_bytes + response_body_bytes),
            started: request.arrived,
            server,
            line,
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let end_to_end = self.started.elapsed();
        if let (Some(line), Some(log)) = (self.line.take(), &self.analytics.log) {
            let of = (self.window.account.clone(), self.window.service);
            log.log(of, DateTime::now(), line.finish(end_to_end, self.server));
        }
        if self.counted {
            let (ended, bytes, times) = (self.ended, self.bytes, (end_to_end, self.server));
            self.analytics.count(&self.window, self.operation, |tally| tally.count(ended, bytes, times));
        }
    }
}

/// By what it shows, whether that is accepted or not.
fn credential(head: &Parts) -> Credential {
    let signed =
        || head.uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("sig=")));
    match has_authorization(&head.headers) {
        true => Credential::Authenticated,
        false if signed() => Credential::Sas,
        false => Credential::Anonymous,
    }
}

fn has_own_deadline(query: &Query) -> bool {
    let seconds = query.get(names::TIMEOUT).and_then(|seconds| seconds.parse().ok());
    seconds.is_some_and(|seconds: u64| seconds < limits::REQUEST_TIME_MAX.as_secs())
}

/// Each with its colon, space and end of line, and the empty line behind them.
fn head_bytes(headers: &HeaderMap) -> u64 {
    let each = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    (each.sum::<usize>() + "\r\n".len()) as u64
}

fn before(now: DateTime, elapsed: Duration) -> DateTime {
    let ticks = i64::try_from(elapsed.as_nanos() / 100).unwrap_or(i64::MAX);
    DateTime::from_ticks(now.ticks().saturating_sub(ticks)).unwrap_or(now)
}
