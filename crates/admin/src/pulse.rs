//! What happened since the last pulse: in the whole server for its administrator, else in the account of the session.

use common::DateTime;
use front::Front;
use front::metrics::{RequestEvent, Totals, process};
use serde::Serialize;
use store::{EngineCounters, LiveSpread, SECONDS, Spread};

/// As the events tell it.
#[derive(Debug, Serialize)]
pub(crate) struct PulseShown {
    at: String,
    requests: u64,
    /// Refused or failed.
    errors: u64,
    p50_ms: f64,
    p99_ms: f64,
    /// Not of an account.
    #[serde(flatten)]
    server: Option<ServerPulse>,
}

#[derive(Debug, Serialize)]
struct ServerPulse {
    entities_examined: u64,
    entities_returned: u64,
    bytes_in: u64,
    bytes_out: u64,
    connections: usize,
    resident_bytes: Option<u64>,
    commits: f64,
    sync_ms: f64,
}

impl PulseShown {
    fn new(requests: u64, errors: u64, times: &Spread, server: Option<ServerPulse>) -> Self {
        let milliseconds = |part| times.quantile(part).map_or(0.0, |seconds| rounded(seconds * 1000.0));
        let (p50_ms, p99_ms) = (milliseconds(0.5), milliseconds(0.99));
        Self { at: DateTime::now().to_fixed_string(), requests, errors, p50_ms, p99_ms, server }
    }
}

/// The state of the server at its last pulse.
#[derive(Debug)]
pub(crate) struct ServerMoment {
    totals: Totals,
    commits: f64,
    commit_seconds: f64,
}

impl ServerMoment {
    pub fn now(front: &Front) -> Self {
        Self::of(front.metrics.totals(), &front.engine.counters())
    }

    fn of(totals: Totals, counters: &EngineCounters) -> Self {
        let number = |name| counters.number(name).unwrap_or(0.0);
        Self { totals, commits: number("commits"), commit_seconds: number("commit_seconds_sum") }
    }

    /// What happened since, which is compared with the next time.
    pub async fn pulse(&mut self, front: &Front) -> PulseShown {
        let engine = front.engine.clone();
        // Reads the engine's state and files of the system.
        let counted = tokio::task::spawn_blocking(move || (engine.counters(), process())).await;
        let (counters, process) = counted.unwrap_or_default();
        let now = Self::of(front.metrics.totals(), &counters);
        let since = now.totals.since(&self.totals);
        let server = ServerPulse {
            entities_examined: since.entities_examined,
            entities_returned: since.entities_returned,
            bytes_in: since.received_bytes,
            bytes_out: since.sent_bytes,
            connections: front.metrics.load().connections,
            resident_bytes: process.resident_bytes,
            commits: now.commits - self.commits,
            sync_ms: rounded((now.commit_seconds - self.commit_seconds) * 1000.0),
        };
        *self = now;
        PulseShown::new(since.requests, since.refused + since.failed, &since.times, Some(server))
    }
}

/// The requests of one account since the last pulse.
#[derive(Debug)]
pub(crate) struct AccountRequests {
    requests: u64,
    errors: u64,
    times: LiveSpread,
}

impl AccountRequests {
    pub fn none() -> Self {
        Self { requests: 0, errors: 0, times: LiveSpread::new(&SECONDS) }
    }

    pub fn count(&mut self, event: &RequestEvent) {
        self.requests += 1;
        self.errors += u64::from(event.status >= 400);
        self.times.note(event.elapsed.as_nanos() as u64);
    }

    pub fn pulse(&mut self) -> PulseShown {
        let Self { requests, errors, times } = std::mem::replace(self, Self::none());
        PulseShown::new(requests, errors, &times.read(), None)
    }
}

/// To a microsecond.
pub(crate) fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}
