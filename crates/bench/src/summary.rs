//! Summarizes measurements: medians over the rounds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure::Measured;
use crate::tally::FailureCount;
use crate::workload::Workload;

/// One workload against one endpoint, over all its rounds. Counts are sums, everything else medians.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub workload: &'static str,
    pub rounds: usize,
    pub operations: u64,
    pub entities: u64,
    pub failed: u64,
    pub failures: BTreeMap<String, FailureCount>,
    pub seconds: f64,
    pub operations_per_second: f64,
    pub entities_per_second: f64,
    /// Of content, for workloads that move some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    pub latency_micros: Latency,
    pub client_cpu_micros_per_operation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUsage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p999: u64,
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServerUsage {
    pub cpu_micros_per_operation: f64,
    /// After the last round.
    pub resident_kib: u64,
    pub peak_kib: u64,
}

impl Summary {
    /// `bytes` is the content that one operation moves.
    pub fn of(workload: Workload, rounds: &[Measured], bytes: Option<u64>) -> Self {
        let mut failures: BTreeMap<String, FailureCount> = BTreeMap::new();
        for (label, failed) in rounds.iter().flat_map(|round| &round.tally.failures) {
            let entry = failures.entry(label.clone());
            entry.and_modify(|known| known.count += failed.count).or_insert_with(|| failed.clone());
        }
        let quantile = |quantile: f64| {
            median(rounds, |round| round.tally.latencies.value_at_quantile(quantile) as f64) as u64
        };
        let per_second = |count: fn(&Measured) -> u64| {
            median(rounds, |round| count(round) as f64 / round.elapsed.as_secs_f64())
        };
        let per_operation = |micros: f64, round: &Measured| micros / (round.tally.operations.max(1) as f64);
        let server = rounds.last().and_then(|last| last.server).map(|last| ServerUsage {
            cpu_micros_per_operation: median(rounds, |round| {
                let cpu = round.server.map_or(0.0, |server| server.cpu.as_secs_f64());
                per_operation(cpu * 1e6, round)
            }),
            resident_kib: last.memory.resident_kib,
            peak_kib: last.memory.peak_kib,
        });
        let operations_per_second = per_second(|round| round.tally.operations);
        Self {
            workload: workload.name(),
            rounds: rounds.len(),
            operations: rounds.iter().map(|round| round.tally.operations).sum(),
            entities: rounds.iter().map(|round| round.tally.entities).sum(),
            failed: failures.values().map(|failed| failed.count).sum(),
            failures,
            seconds: median(rounds, |round| round.elapsed.as_secs_f64()),
            operations_per_second,
            entities_per_second: per_second(|round| round.tally.entities),
            bytes_per_second: bytes.map(|bytes| bytes as f64 * operations_per_second),
            latency_micros: Latency {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p999: quantile(0.999),
                max: median(rounds, |round| round.tally.latencies.max() as f64) as u64,
            },
            client_cpu_micros_per_operation: median(rounds, |round| {
                per_operation(round.client_cpu.as_secs_f64() * 1e6, round)
            }),
            server,
        }
    }
}

/// The middle value, or the mean of the middle two; 0 without values.
fn median(rounds: &[Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::ServerUse;
    use crate::process::MemoryUse;
    use crate::tally::{OperationFailure, WorkloadTally};

    fn round(operations: u64, seconds: u64) -> Measured {
        let mut tally = WorkloadTally::default();
        for number in 1..=operations {
            tally.succeeded(2, Duration::from_micros(number));
        }
        tally.failed(OperationFailure {
            label: "503 ServerBusy".into(),
            sample: "busy".into(),
            fatal: false,
        });
        Measured {
            tally,
            elapsed: Duration::from_secs(seconds),
            client_cpu: Duration::from_millis(operations),
            server: Some(ServerUse {
                cpu: Duration::from_millis(3 * operations),
                memory: MemoryUse { resident_kib: operations, peak_kib: 5000 },
            }),
        }
    }

    #[test]
    fn rounds_become_medians_and_sums() {
        let summary = Summary::of(Workload::Get, &[round(1000, 1), round(3000, 1), round(1500, 1)], Some(7));
        assert_eq!((summary.operations, summary.entities, summary.failed), (5500, 11_000, 3));
        assert_eq!(summary.operations_per_second, 1500.0);
        assert_eq!(summary.entities_per_second, 3000.0);
        assert_eq!(summary.bytes_per_second, Some(10_500.0));
        assert_eq!(summary.latency_micros, Latency { p50: 750, p90: 1350, p99: 1485, p999: 1499, max: 1500 });
        assert_eq!(summary.client_cpu_micros_per_operation, 1000.0);
        let server = ServerUsage { cpu_micros_per_operation: 3000.0, resident_kib: 1500, peak_kib: 5000 };
        assert_eq!(summary.server, Some(server));
        assert_eq!(summary.failures["503 ServerBusy"].count, 3);
    }

    #[test]
    fn an_even_number_of_rounds_gives_the_mean_of_the_middle_two() {
        let summary = Summary::of(Workload::Get, &[round(100, 1), round(300, 1)], None);
        assert_eq!(summary.operations_per_second, 200.0);
        assert_eq!(Summary::of(Workload::Get, &[], None).operations_per_second, 0.0);
    }
}
