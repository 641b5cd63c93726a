//! What this server counts of its requests, for monitors and for the live view of the console.
//!
//! Counting takes no lock: every thread adds to a shard that few others add to, and a reader adds the shards up. The labels
//! come from the services' tables of operations and from the codes of their refusals, so that no client can make up new
//! ones. These are not the metrics of Storage Analytics (`analytics`), which belong to an account and are stored in its
//! tables.

mod exposition;
mod process;
mod refusals;
mod requests;
mod tail;
mod text;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use common::ServiceKind;

use crate::connections::Connections;
use crate::memory::Memory;
use crate::operation_info::OperationInfo;
use crate::pipeline::Services;

pub use exposition::{Build, Exposition, MetricSource};
pub use process::{Process, process};
pub use requests::Totals;
pub use tail::{RequestEvent, Tail, TailItem};
pub use text::{MetricKind, TextWriter};

use refusals::RefusalCounts;
use requests::RequestCounts;
use tail::TailSource;

/// The counts of a server. One for each, shared by everything that counts or reads.
pub struct Metrics {
    requests: RequestCounts,
    refusals: RefusalCounts,
    tail: TailSource,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
    slow_queries: AtomicU64,
    /// Known once the server runs.
    serving: OnceLock<Serving>,
}

/// What only a running server has.
struct Serving {
    connections: Arc<Connections>,
    connections_max: usize,
    memory: Arc<Memory>,
}

/// A request with its answer ready to be sent.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub service: ServiceKind,
    pub info: &'static OperationInfo,
    pub status: u16,
    /// Of a refusal.
    pub code: Option<&'static str>,
    pub elapsed: Duration,
    pub method: &'a str,
    pub path: &'a str,
    pub account: Option<&'a str>,
}

/// Connections and memory of requests at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub connections: usize,
    pub connections_max: usize,
    /// Connections that are at work on a request.
    pub requests: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Idle connections that were told to close to make room for others, since the start.
    pub made_room: u64,
    pub memory_bytes: usize,
    pub memory_bytes_max: usize,
}

impl Metrics {
    pub fn new(services: &Services) -> Arc<Self> {
        Arc::new(Self {
            requests: RequestCounts::new(services.operations()),
            refusals: RefusalCounts::default(),
            tail: TailSource::default(),
            spans_sent: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
            slow_queries: AtomicU64::new(0),
            serving: OnceLock::new(),
        })
    }

    pub(crate) fn serve(&self, connections: Arc<Connections>, connections_max: usize, memory: Arc<Memory>) {
        // Only the first time counts; a server is run once.
        let _ = self.serving.set(Serving { connections, connections_max, memory });
    }

    pub(crate) fn count(&self, answered: &Answered<'_>) {
        self.requests.count(answered.service, answered.info, answered.status, answered.elapsed);
        if let Some(code) = answered.code {
            self.refusals.count(answered.service, code, answered.status);
        }
        self.tail.tell(answered);
    }

    /// Entities that a request has read in the store, and those of them that it answered with.
    pub fn entities(&self, examined: u64, returned: u64) {
        self.requests.entities(examined, returned);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.requests.received(bytes);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.requests.sent(bytes);
    }

    pub(crate) fn spans_sent(&self, spans: usize) {
        self.spans_sent.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(crate) fn spans_dropped(&self, spans: usize) {
        self.spans_dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(crate) fn slow_query(&self) {
        self.slow_queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Queries above the bounds of `--slow-query-ms` and `--scan-log-rows`.
    pub fn slow_queries(&self) -> u64 {
        self.slow_queries.load(Ordering::Relaxed)
    }

    /// Spans of requests that were sent to a collector, and those that were dropped.
    pub fn spans(&self) -> (u64, u64) {
        (self.spans_sent.load(Ordering::Relaxed), self.spans_dropped.load(Ordering::Relaxed))
    }

    /// The requests that are answered from now on.
    pub fn tail(self: &Arc<Self>) -> Tail {
        Tail::new(self.clone())
    }

    /// Everything counted so far, over all services and operations.
    pub fn totals(&self) -> Totals {
        Totals {
            throttled: self.refusals.throttled().iter().map(|(_, count)| count).sum(),
            ..self.requests.totals()
        }
    }

    pub fn load(&self) -> Load {
        let Some(Serving { connections, connections_max, memory }) = self.serving.get() else {
            return Load::default();
        };
        let (open, busy) = connections.open_and_busy();
        Load {
            connections: open,
            connections_max: *connections_max,
            requests: busy,
            accepted: connections.accepted(),
            made_room: connections.made_room(),
            memory_bytes: memory.held(),
            memory_bytes_max: memory.bytes_max(),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
