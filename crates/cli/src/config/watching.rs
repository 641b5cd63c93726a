//! What the server tells about its requests: slow queries in the log, and traces.

use std::time::Duration;

use front::SlowQueries;
use front::traces::{OtlpEndpoint, TraceSettings};

use super::error::SettingsError;
use super::file::File;
use super::flags::Flags;

/// How long spans are collected before they are sent.
const TRACE_DELAY: Duration = Duration::from_secs(2);
const SERVICE_NAME: &str = "partita";

#[derive(Debug)]
pub struct Watching {
    /// Queries that take longer are logged.
    slow_query: Option<Duration>,
    /// Queries that read more rows are logged.
    scan_rows: Option<u64>,
    pub traces: Option<TraceSettings>,
}

impl Watching {
    pub(super) fn choose(flags: &Flags, file: &File) -> Result<Self, SettingsError> {
        let sampled = flags.otlp_sample.or(file.otlp_sample).unwrap_or(1.0);
        if !(0.0..=1.0).contains(&sampled) {
            return Err(SettingsError::Sample(sampled));
        }
        let endpoint = flags.otlp_endpoint.as_deref().or(file.otlp_endpoint.as_deref());
        let endpoint = endpoint.filter(|text| !text.is_empty()).map(OtlpEndpoint::parse).transpose()?;
        let traces = endpoint.map(|endpoint| TraceSettings {
            endpoint,
            sampled,
            service_name: SERVICE_NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            delay: TRACE_DELAY,
        });
        Ok(Self {
            slow_query: flags.slow_query_ms.or(file.slow_query_ms).map(Duration::from_millis),
            scan_rows: flags.scan_log_rows.or(file.scan_log_rows),
            traces,
        })
    }

    pub fn slow_queries(&self) -> SlowQueries {
        SlowQueries::above(self.slow_query, self.scan_rows)
    }
}
