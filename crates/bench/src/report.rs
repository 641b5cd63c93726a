//! Shows summaries: an aligned table for people, JSON for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::blobs::BlobSizes;
use crate::summary::Summary;

/// The measurements of one endpoint.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointReport {
    pub endpoint: String,
    pub workloads: Vec<Summary>,
}

/// One endpoint, or two that were measured in turns.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub connections: usize,
    pub threads: usize,
    /// Operations that were to begin in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entities: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs: Option<BlobSizes>,
    pub seed: u64,
    pub endpoints: Vec<EndpointReport>,
    /// The first endpoint's numbers divided by the second's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
}

/// What workloads of queues worked on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queues {
    pub number: u64,
    /// In all of them.
    pub waiting: u64,
    pub message_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub workload: &'static str,
    pub operations_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_per_operation: Option<f64>,
    pub latency_p50: f64,
    pub latency_p99: f64,
}

impl Ratio {
    pub fn of(first: &Summary, second: &Summary) -> Self {
        let cpu = |summary: &Summary| summary.server.map(|server| server.cpu_micros_per_operation);
        Self {
            workload: first.workload,
            operations_per_second: first.operations_per_second / second.operations_per_second,
            server_cpu_per_operation: cpu(first).zip(cpu(second)).map(|(first, second)| first / second),
            latency_p50: first.latency_micros.p50 as f64 / second.latency_micros.p50 as f64,
            latency_p99: first.latency_micros.p99 as f64 / second.latency_micros.p99 as f64,
        }
    }
}

impl Report {
    pub fn failed(&self) -> u64 {
        self.endpoints.iter().flat_map(|endpoint| &endpoint.workloads).map(|summary| summary.failed).sum()
    }

    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        for endpoint in &self.endpoints {
            let _ = writeln!(out, "{}  ({})\n", endpoint.endpoint, self.conditions());
            out.push_str(&aligned(endpoint.workloads.iter().map(cells), &HEADINGS));
            for summary in &endpoint.workloads {
                if let Some(rate) = self.rate.filter(|rate| summary.operations_per_second < rate * RATE_KEPT)
                {
                    let _ = writeln!(
                        out,
                        "{}: {} of {} operations a second were done; the others waited, and their latencies say so",
                        summary.workload,
                        number(summary.operations_per_second),
                        number(rate)
                    );
                }
                for (label, failed) in &summary.failures {
                    let _ = writeln!(
                        out,
                        "{}: {} failed with {label}, such as: {}",
                        summary.workload, failed.count, failed.sample
                    );
                }
            }
            out.push('\n');
        }
        if !self.ratios.is_empty() {
            out.push_str("First endpoint / second endpoint\n\n");
            out.push_str(&aligned(self.ratios.iter().map(ratio_cells), &RATIO_HEADINGS));
        }
        out
    }
}

impl Report {
    fn conditions(&self) -> String {
        let mut said = format!("{} connections, {} client threads", self.connections, self.threads);
        if let Some(rate) = self.rate {
            let _ = write!(said, ", {} operations a second", number(rate));
        }
        if let Some(entities) = self.entities {
            let _ = write!(said, ", {entities} entities");
        }
        if let Some(Queues { number, waiting, message_bytes }) = self.queues {
            let _ = write!(said, ", {number} queues with {waiting} messages of {message_bytes} bytes");
        }
        if let Some(BlobSizes { blobs, bytes, .. }) = self.blobs {
            let _ = write!(said, ", {blobs} blobs of {bytes} bytes");
        }
        said
    }
}

/// Less than this part of a rate means that it was not kept.
const RATE_KEPT: f64 = 0.98;

const HEADINGS: [&str; 16] = [
    "workload",
    "ops",
    "failed",
    "ops/s",
    "entities/s",
    "MiB/s",
    "p50 µs",
    "p90",
    "p99",
    "p99.9",
    "max",
    "server µs/op",
    "client µs/op",
    "server MiB",
    "peak MiB",
    "rounds",
];

fn cells(summary: &Summary) -> Vec<String> {
    let latency = &summary.latency_micros;
    let server = |value: &dyn Fn(&crate::summary::ServerUsage) -> String| {
        summary.server.as_ref().map_or_else(|| "-".to_owned(), value)
    };
    vec![
        summary.workload.to_owned(),
        summary.operations.to_string(),
        summary.failed.to_string(),
        number(summary.operations_per_second),
        number(summary.entities_per_second),
        summary.bytes_per_second.map_or_else(|| "-".to_owned(), |bytes| number(bytes / 1024.0 / 1024.0)),
        latency.p50.to_string(),
        latency.p90.to_string(),
        latency.p99.to_string(),
        latency.p999.to_string(),
        latency.max.to_string(),
        server(&|server| number(server.cpu_micros_per_operation)),
        number(summary.client_cpu_micros_per_operation),
        server(&|server| (server.resident_kib / 1024).to_string()),
        server(&|server| (server.peak_kib / 1024).to_string()),
        summary.rounds.to_string(),
    ]
}

const RATIO_HEADINGS: [&str; 5] = ["workload", "ops/s", "server cpu/op", "p50", "p99"];

fn ratio_cells(ratio: &Ratio) -> Vec<String> {
    // Enough digits for a server that costs a hundredth of the other.
    let shown = |value: f64| if value < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") };
    vec![
        ratio.workload.to_owned(),
        shown(ratio.operations_per_second),
        ratio.server_cpu_per_operation.map_or_else(|| "-".to_owned(), shown),
        shown(ratio.latency_p50),
        shown(ratio.latency_p99),
    ]
}

/// At least three significant digits, and no meaningless ones.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Aligns the first column to the left, the others to the right.
fn aligned(rows: impl Iterator<Item = Vec<String>>, headings: &[&str]) -> String {
    let mut rows: Vec<Vec<String>> = rows.collect();
    rows.insert(0, headings.iter().map(|heading| (*heading).to_owned()).collect());
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 { write!(out, "{cell:<width$}") } else { write!(out, "  {cell:>width$}") };
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::summary::{Latency, ServerUsage};
    use crate::tally::FailureCount;

    fn summary(speed: f64, failures: BTreeMap<String, FailureCount>) -> Summary {
        Summary {
            workload: "get",
            rounds: 1,
            operations: 10,
            entities: 10,
            failed: failures.values().map(|failed| failed.count).sum(),
            failures,
            seconds: 1.0,
            operations_per_second: speed,
            entities_per_second: speed,
            bytes_per_second: None,
            latency_micros: Latency { p50: 1, p90: 2, p99: 4, p999: 5, max: 6 },
            client_cpu_micros_per_operation: 9.876,
            server: Some(ServerUsage { cpu_micros_per_operation: 12.34, resident_kib: 2048, peak_kib: 4096 }),
        }
    }

    fn report(endpoints: Vec<Summary>, ratios: Vec<Ratio>) -> Report {
        let endpoints = endpoints
            .into_iter()
            .map(|summary| EndpointReport { endpoint: "http://h/a".to_owned(), workloads: vec![summary] });
        Report {
            connections: 16,
            threads: 1,
            rate: None,
            entities: Some(1000),
            queues: None,
            blobs: None,
            seed: 7,
            endpoints: endpoints.collect(),
            ratios,
        }
    }

    #[test]
    fn tables_are_aligned_and_failures_shown() {
        let failures =
            BTreeMap::from([("503 ServerBusy".to_owned(), FailureCount { count: 2, sample: "busy".into() })]);
        let shown = report(vec![summary(12_345.6, failures)], vec![]);
        assert_eq!(shown.failed(), 2);
        assert_eq!(
            shown.text(),
            "http://h/a  (16 connections, 1 client threads, 1000 entities)\n\n\
             workload  ops  failed  ops/s  entities/s  MiB/s  p50 µs  p90  p99  p99.9  max  server µs/op  client µs/op  server MiB  peak MiB  rounds\n\
             get        10       2  12346       12346      -       1    2    4      5    6          12.3          9.88           2         4       1\n\
             get: 2 failed with 503 ServerBusy, such as: busy\n\n"
        );
    }

    #[test]
    fn a_rate_that_was_not_kept_is_said() {
        let mut shown = report(vec![summary(900.0, BTreeMap::new())], vec![]);
        shown.rate = Some(1000.0);
        shown.queues = Some(Queues { number: 2, waiting: 50, message_bytes: 64 });
        let text = shown.text();
        let conditions = "(16 connections, 1 client threads, 1000 operations a second, 1000 entities, \
                          2 queues with 50 messages of 64 bytes)";
        assert!(text.contains(conditions), "{text}");
        assert!(text.contains("get: 900 of 1000 operations a second were done"), "{text}");
        shown.rate = Some(910.0);
        assert!(!shown.text().contains("were done"), "near enough");
    }

    #[test]
    fn two_endpoints_are_compared() {
        let (first, second) = (summary(300.0, BTreeMap::new()), summary(200.0, BTreeMap::new()));
        let ratio = Ratio::of(&first, &second);
        let both = report(vec![first, second], vec![ratio]);
        assert!(both.text().ends_with(
            "First endpoint / second endpoint\n\n\
             workload  ops/s  server cpu/op   p50   p99\n\
             get        1.50           1.00  1.00  1.00\n"
        ));
        let json: serde_json::Value = serde_json::from_str(&both.json().unwrap()).unwrap();
        assert_eq!(json["ratios"][0]["operations_per_second"], 1.5);
        assert_eq!(json["endpoints"][1]["workloads"][0]["latency_micros"]["p99.9"], 5);
    }
}
