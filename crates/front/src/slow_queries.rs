//! Which queries are written to the log because they took long or read much. The service that ran one writes the line: it
//! knows what was asked.

use std::time::{Duration, Instant};

use crate::metrics::Metrics;
use crate::refusal_log::LinePace;

/// The bounds above which a query is logged.
#[derive(Debug, Default)]
pub struct SlowQueries {
    time: Option<Duration>,
    rows: Option<u64>,
    pace: LinePace,
}

impl SlowQueries {
    /// A query that takes longer than `time` or reads more than `rows`; without a bound, none.
    pub fn above(time: Option<Duration>, rows: Option<u64>) -> Self {
        Self { time, rows, pace: LinePace::default() }
    }

    /// Counts a query that is above a bound and calls `line` to log it, unless there have been too many lines.
    pub fn check(&self, metrics: &Metrics, time: Duration, examined: u64, line: impl FnOnce()) {
        let is_above =
            self.time.is_some_and(|most| time > most) || self.rows.is_some_and(|most| examined > most);
        if !is_above {
            return;
        }
        metrics.slow_query();
        if let Some(left_out) = self.pace.admit(Instant::now()) {
            if left_out > 0 {
                tracing::warn!(left_out, "slow queries came faster than they are logged");
            }
            line();
        }
    }
}
