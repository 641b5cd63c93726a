//! Traces: a span of every request, sent to an OpenTelemetry collector (`--otlp-endpoint`).
//!
//! No request waits for this. A span that finds the queue full is dropped and counted. Spans name the operation, the account
//! and the status, but no path and no query: those contain keys and values of entities.

mod context;
mod endpoint;
mod exporter;
mod otlp;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use common::ServiceKind;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::headers::{Header, Headers};
use crate::metrics::{Answered, Metrics};

use context::TraceParent;
pub use endpoint::{OtlpEndpoint, OtlpEndpointError};
use exporter::Exporter;
use otlp::Resource;

/// Spans that may wait. They take at most a few megabytes.
const QUEUE_SPANS: usize = 8192;
const TRACEPARENT: &str = "traceparent";

/// Where spans go, and which requests have one.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    pub endpoint: OtlpEndpoint,
    /// The part of requests without a trace of their client that begin one, from 0 to 1. With a trace, the client decides.
    pub sampled: f64,
    pub service_name: String,
    pub version: &'static str,
    /// How long spans are collected before they are sent together.
    pub delay: Duration,
}

/// One request in a trace.
#[derive(Debug)]
struct RequestSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    service: ServiceKind,
    operation: &'static str,
    started: SystemTime,
    elapsed: Duration,
    request_id: String,
    account: Option<String>,
    method: String,
    status: u16,
    code: Option<&'static str>,
}

/// Takes the spans of requests. One for each server.
pub struct Traces {
    queue: mpsc::Sender<RequestSpan>,
    sampled: f64,
    metrics: Arc<Metrics>,
    /// Dropped when the server stops.
    running: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl Traces {
    /// Sends spans from now on, in a task of the caller's runtime.
    pub fn start(settings: TraceSettings, metrics: Arc<Metrics>) -> Arc<Self> {
        let (queue, spans) = mpsc::channel(QUEUE_SPANS);
        let (stopping, stopped) = watch::channel(());
        let resource = Resource {
            service_name: settings.service_name,
            service_version: settings.version,
            instance: format!("{:032x}", rand::random::<u128>()),
        };
        let exporter = Exporter {
            endpoint: settings.endpoint,
            resource,
            delay: settings.delay,
            metrics: metrics.clone(),
        };
        let task = tokio::spawn(exporter.run(spans, stopped));
        let running = Mutex::new(Some((stopping, task)));
        Arc::new(Self { queue, sampled: settings.sampled, metrics, running })
    }

    /// Sends what is left, for as long as this.
    pub async fn finish(&self, patience: Duration) {
        let Some((stopping, task)) = self.running.lock().take() else { return };
        drop(stopping);
        if tokio::time::timeout(patience, task).await.is_err() {
            tracing::warn!("could not send the last traces in time");
        }
    }

    pub(crate) fn note(&self, headers: &HeaderMap, answered: &Answered<'_>, request_id: &str) {
        let parent = parent(headers);
        let is_sampled =
            parent.map_or_else(|| rand::random::<f64>() < self.sampled, |parent| parent.is_sampled);
        if !is_sampled {
            return;
        }
        let span = RequestSpan {
            trace: parent.map_or_else(rand::random, |parent| parent.trace),
            id: rand::random(),
            parent: parent.map(|parent| parent.span),
            service: answered.service,
            operation: answered.info.name,
            started: SystemTime::now().checked_sub(answered.elapsed).unwrap_or(SystemTime::UNIX_EPOCH),
            elapsed: answered.elapsed,
            request_id: request_id.to_owned(),
            account: answered.account.map(str::to_owned),
            method: answered.method.chars().take(16).collect(),
            status: answered.status,
            code: answered.code,
        };
        if self.queue.try_send(span).is_err() {
            self.metrics.spans_dropped(1);
        }
    }
}

/// The client's span. Two headers contradict each other, so they count as none.
fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    let name = http::HeaderName::from_static(TRACEPARENT);
    let mut sent = Headers::Request(headers).texts(&name);
    match (sent.next(), sent.next()) {
        (Some(Header::Text(text)), None) => TraceParent::parse(text),
        _ => None,
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn two_parents_are_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(parent(&headers), None);
        let one = HeaderValue::from_static("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        headers.append(TRACEPARENT, one.clone());
        assert!(parent(&headers).is_some());
        headers.append(TRACEPARENT, one);
        assert_eq!(parent(&headers), None);
    }
}
