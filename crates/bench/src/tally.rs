//! The counts of a measurement: operations, entities, latencies and failures.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use connection::{Response, SendError};

/// Longer latencies count as this.
const LATENCY_MAX: Duration = Duration::from_secs(3600);
const SAMPLE_CHARS_MAX: usize = 400;

/// A failed operation.
#[derive(Debug)]
pub struct OperationFailure {
    /// Failures with the same label are counted together.
    pub label: String,
    /// The details of one failure.
    pub sample: String,
    /// The server is unreachable, so no more operations can be sent.
    pub fatal: bool,
}

impl fmt::Display for OperationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.label, self.sample)
    }
}

impl OperationFailure {
    /// An answer with an unexpected status.
    pub fn status(response: &Response<'_>) -> Self {
        let body = String::from_utf8_lossy(response.body);
        let code = response.error_code.map(String::from_utf8_lossy);
        let code = code.map_or_else(|| json_code(&body), |code| code.into_owned());
        let label = format!("{} {code}", response.status).trim_end().to_owned();
        Self { label, sample: shortened(&body), fatal: false }
    }

    /// It did not happen in the workload, but in another step.
    pub fn during(self, step: &str) -> Self {
        Self { label: format!("{step}: {}", self.label), ..self }
    }

    /// This program is wrong.
    pub fn bug(what: &str) -> Self {
        Self { label: "bug".to_owned(), sample: what.to_owned(), fatal: true }
    }

    /// A wrong answer.
    pub fn wrong(what: String, body: &[u8]) -> Self {
        let sample = format!("{what}; it was: {}", shortened(&String::from_utf8_lossy(body)));
        Self { label: "wrong answer".to_owned(), sample, fatal: false }
    }
}

impl From<SendError> for OperationFailure {
    fn from(error: SendError) -> Self {
        let (label, fatal) = match error {
            SendError::Unreachable { .. } => ("unreachable", true),
            SendError::Broken(_) => ("broken connection", false),
        };
        Self { label: label.to_owned(), sample: error.to_string(), fatal }
    }
}

/// `odata.error.code`, without parsing: an error's body may not be JSON.
fn json_code(body: &str) -> String {
    let after = body.split_once("\"code\":\"").map(|(_, rest)| rest);
    after.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SAMPLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The number of failures of one kind, and the details of one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FailureCount {
    pub count: u64,
    pub sample: String,
}

#[derive(Clone, Debug)]
pub struct WorkloadTally {
    /// Only successful ones.
    pub operations: u64,
    pub entities: u64,
    pub failures: BTreeMap<String, FailureCount>,
    /// Of operations, in microseconds.
    pub latencies: Histogram<u64>,
}

impl Default for WorkloadTally {
    fn default() -> Self {
        // Can't fail: three digits, and up to an hour in microseconds, are valid constants.
        let latencies = Histogram::new_with_max(LATENCY_MAX.as_micros() as u64, 3);
        let latencies = latencies.unwrap_or_else(|error| unreachable!("{error}"));
        Self { operations: 0, entities: 0, failures: BTreeMap::new(), latencies }
    }
}

impl WorkloadTally {
    pub fn succeeded(&mut self, entities: u64, took: Duration) {
        self.operations += 1;
        self.entities += entities;
        self.latencies.saturating_record(took.as_micros() as u64);
    }

    pub fn failed(&mut self, failure: OperationFailure) {
        self.add_failures(failure.label, FailureCount { count: 1, sample: failure.sample });
    }

    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.entities += other.entities;
        self.latencies += other.latencies;
        for (label, failed) in other.failures {
            self.add_failures(label, failed);
        }
    }

    fn add_failures(&mut self, label: String, failed: FailureCount) {
        let entry = self.failures.entry(label);
        entry.and_modify(|known| known.count += failed.count).or_insert(failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_status_and_code_with_one_sample() {
        let answer = |status, body: &'static str, error_code| {
            let none = Response {
                status,
                closes: false,
                etag: None,
                error_code,
                next_partition_key: None,
                next_row_key: None,
                head: b"",
                body: body.as_bytes(),
            };
            OperationFailure::status(&none)
        };
        let mut tally = WorkloadTally::default();
        let busy = r#"{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"Busy"}}}"#;
        tally.failed(answer(503, busy, None));
        tally.failed(answer(503, busy, None));
        tally.failed(answer(403, "<Error/>", Some(b"AuthenticationFailed".as_slice())));
        tally.failed(answer(500, "", None));
        tally.failed(OperationFailure::wrong("RowKey 'a' is missing".to_owned(), b"{}"));
        let shown: Vec<_> =
            tally.failures.iter().map(|(label, f)| format!("{label}: {} {}", f.count, f.sample)).collect();
        assert_eq!(
            shown,
            [
                "403 AuthenticationFailed: 1 <Error/>".to_owned(),
                "500: 1 ".to_owned(),
                format!("503 ServerBusy: 2 {busy}"),
                "wrong answer: 1 RowKey 'a' is missing; it was: {}".to_owned(),
            ]
        );
    }

    #[test]
    fn tallies_are_added() {
        let mut sum = WorkloadTally::default();
        for micros in [100, 300] {
            let mut one = WorkloadTally::default();
            one.succeeded(2, Duration::from_micros(micros));
            sum.add(one);
        }
        assert_eq!((sum.operations, sum.entities, sum.latencies.max()), (2, 4, 300));
    }
}
