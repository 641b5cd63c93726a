//! Everything that this server counts, as text for Prometheus. docs/metrics.md has the same names as a table.

use std::sync::Arc;

use store::{Engine, EngineCounters, EngineValue, Gate};

use super::process::process;
use super::requests::CLASSES;
use super::text::{MetricKind, TextWriter};
use super::{Load, Metrics};

use MetricKind::{Counter, Gauge, Histogram};

/// What was built.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    pub version: &'static str,
    pub commit: &'static str,
}

/// A part of the server that counts what no other one knows of.
pub trait MetricSource: std::fmt::Debug + Send + Sync {
    fn write(&self, text: &mut TextWriter);
}

/// Where the numbers come from.
pub struct Exposition<'a> {
    pub metrics: &'a Metrics,
    pub engine: &'a dyn Engine,
    pub gate: &'a Gate,
    pub sources: &'a [Arc<dyn MetricSource>],
    pub build: Build,
}

impl std::fmt::Debug for Exposition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exposition({:?})", self.build)
    }
}

impl Exposition<'_> {
    /// Reads files of the system and asks the engine, so do not call it on a thread that serves requests.
    pub fn text(&self) -> String {
        let mut text = TextWriter::default();
        self.write_state(&mut text);
        self.metrics.write_requests(&mut text);
        write_load(&mut text, self.metrics.load());
        write_engine(&mut text, &self.engine.counters());
        for source in self.sources {
            source.write(&mut text);
        }
        write_process(&mut text);
        text.into_text()
    }

    fn write_state(&self, text: &mut TextWriter) {
        let Build { version, commit } = self.build;
        text.family("partita_build_info", Gauge, "What was built; always 1.");
        text.sample("partita_build_info", &[("version", version), ("commit", commit)], 1.0);
        let ready = self.engine.check_health().is_ok();
        text.single(
            "partita_ready",
            Gauge,
            "1 if the store can be read and written, else 0.",
            f64::from(ready),
        );
        let frozen = self.gate.closed_since().is_some();
        text.single(
            "partita_frozen",
            Gauge,
            "1 while writes are refused for a migration, else 0.",
            f64::from(frozen),
        );
    }
}

impl Metrics {
    fn write_requests(&self, text: &mut TextWriter) {
        let operations: Vec<_> = self.requests.operations().collect();
        let requests = "partita_requests_total";
        text.family(requests, Counter, "Requests answered, by service, operation and class of status.");
        for totals in &operations {
            for (class, count) in CLASSES.into_iter().zip(totals.classes) {
                let labels =
                    [("service", totals.service.name()), ("operation", totals.operation), ("status", class)];
                text.sample(requests, &labels, count as f64);
            }
        }
        let times = "partita_request_duration_seconds";
        text.family(
            times,
            Histogram,
            "Time from the head of a request to its answer, of operations asked for so far.",
        );
        for totals in operations.iter().filter(|totals| totals.times.count() > 0) {
            text.spread(
                times,
                &[("service", totals.service.name()), ("operation", totals.operation)],
                &totals.times,
            );
        }
        let services: Vec<_> = self.requests.services().collect();
        let refused = "partita_refused_requests_total";
        text.family(refused, Counter, "Requests refused, by service and error code.");
        for ((service, code), count) in self.refusals.by_code(&services) {
            text.sample(refused, &[("service", service.name()), ("code", code)], count as f64);
        }
        let throttled = "partita_throttled_requests_total";
        text.family(
            throttled,
            Counter,
            "Requests answered with 503, because of a target, a full queue or too little memory.",
        );
        for (service, count) in
            self.refusals.throttled().into_iter().filter(|(service, _)| services.contains(service))
        {
            text.sample(throttled, &[("service", service.name())], count as f64);
        }
        let totals = self.totals();
        for (name, help, count) in [
            (
                "partita_entities_examined_total",
                "Entities read in the store to answer gets and queries.",
                totals.entities_examined,
            ),
            (
                "partita_entities_returned_total",
                "Entities in the answers to gets and queries.",
                totals.entities_returned,
            ),
            (
                "partita_received_bytes_total",
                "Bytes received from clients, without those of TLS.",
                totals.received_bytes,
            ),
            ("partita_sent_bytes_total", "Bytes sent to clients, without those of TLS.", totals.sent_bytes),
        ] {
            text.single(name, Counter, help, count as f64);
        }
        let slow = self.slow_queries() as f64;
        text.single(
            "partita_slow_queries_total",
            Counter,
            "Queries above --slow-query-ms or --scan-log-rows.",
            slow,
        );
        let spans = "partita_trace_spans_total";
        text.family(spans, Counter, "Spans of requests sent to the collector, and dropped.");
        let (sent, dropped) = self.spans();
        for (outcome, count) in [("sent", sent), ("dropped", dropped)] {
            text.sample(spans, &[("outcome", outcome)], count as f64);
        }
    }
}

fn write_load(text: &mut TextWriter, load: Load) {
    for (name, kind, help, value) in [
        ("partita_connections", Gauge, "Open connections.", load.connections as f64),
        (
            "partita_connections_max",
            Gauge,
            "Connections that may be open at once.",
            load.connections_max as f64,
        ),
        ("partita_connections_accepted_total", Counter, "Connections accepted.", load.accepted as f64),
        (
            "partita_connections_made_room_total",
            Counter,
            "Idle connections told to close, because all places were taken.",
            load.made_room as f64,
        ),
        (
            "partita_requests_in_flight",
            Gauge,
            "Connections that are at work on a request.",
            load.requests as f64,
        ),
        (
            "partita_request_memory_bytes",
            Gauge,
            "Memory held by requests and by answers that are not sent yet.",
            load.memory_bytes as f64,
        ),
        (
            "partita_request_memory_max_bytes",
            Gauge,
            "Memory that requests may hold.",
            load.memory_bytes_max as f64,
        ),
    ] {
        text.single(name, kind, help, value);
    }
}

fn write_engine(text: &mut TextWriter, counters: &EngineCounters) {
    let mut last = "";
    for counter in &counters.0 {
        let (kind, suffix) = match counter.value {
            EngineValue::Total(_) => (Counter, "_total"),
            EngineValue::Now(_) => (Gauge, ""),
            EngineValue::Spread(_) => (Histogram, ""),
        };
        let name = format!("partita_store_{}{suffix}", counter.name);
        // Those of one name follow each other.
        if counter.name != last {
            text.family(&name, kind, counter.meaning);
            last = counter.name;
        }
        let labels = counter.label.as_slice();
        match &counter.value {
            EngineValue::Total(number) | EngineValue::Now(number) => text.sample(&name, labels, *number),
            EngineValue::Spread(spread) => text.spread(&name, labels, spread),
        }
    }
}

fn write_process(text: &mut TextWriter) {
    let process = process();
    let whole = |number: Option<u64>| number.map(|number| number as f64);
    for (name, kind, help, value) in [
        ("process_cpu_seconds_total", Counter, "Processor time of this process.", process.cpu_seconds),
        (
            "process_resident_memory_bytes",
            Gauge,
            "Memory of this process that is in RAM.",
            whole(process.resident_bytes),
        ),
        (
            "process_virtual_memory_bytes",
            Gauge,
            "Addresses that this process has taken.",
            whole(process.virtual_bytes),
        ),
        (
            "process_start_time_seconds",
            Gauge,
            "When this process started, in seconds since 1970.",
            process.started,
        ),
        ("process_threads", Gauge, "Threads of this process.", whole(process.threads)),
        ("process_open_fds", Gauge, "Open files and sockets.", whole(process.open_files)),
        ("process_max_fds", Gauge, "Files and sockets that may be open.", whole(process.open_files_max)),
    ] {
        if let Some(value) = value {
            text.single(name, kind, help, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Services;
    use std::collections::BTreeMap;
    use store::{GROUP_SIZES, LiveSpread, MemoryEngine};

    #[test]
    fn every_sample_follows_the_head_of_its_family() {
        let sizes = LiveSpread::new(&GROUP_SIZES);
        sizes.note(3);
        let mut counters = EngineCounters::default();
        counters.total("commits", "Commits.", 2);
        counters.totals("settled", "Settled.", "outcome", [("applied", 1), ("unknown", 2)]);
        counters.now("wal_bytes", "Log.", 7);
        counters.spread("commit_transactions", "Sizes.", sizes.read());
        let metrics = Metrics::new(&Services::new());
        let engine = MemoryEngine::new();
        let build = Build { version: "1.2.3", commit: "abc" };
        let mut text =
            Exposition { metrics: &metrics, engine: &engine, gate: &Gate::default(), sources: &[], build }
                .text();
        let mut more = TextWriter::default();
        write_engine(&mut more, &counters);
        text.push_str(&more.into_text());

        let mut kinds = BTreeMap::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                let (name, kind) = head.split_once(' ').unwrap();
                family = name.to_owned();
                assert!(kinds.insert(family.clone(), kind.to_owned()).is_none(), "{name} has two heads");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            } else if !line.starts_with('#') {
                assert!(line.starts_with(&family), "{line} is not in the family {family}");
            }
        }
        for part in [
            "partita_build_info{version=\"1.2.3\",commit=\"abc\"} 1\n",
            "partita_ready 1\n",
            "partita_store_commits_total 2\n",
            "partita_store_settled_total{outcome=\"applied\"} 1\npartita_store_settled_total{outcome=\"unknown\"} 2\n",
            "partita_store_wal_bytes 7\n",
            "partita_store_commit_transactions_bucket{le=\"4\"} 1\n",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
