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

    /// The time at which a query begins; `None` if no query is logged.
    pub fn begin(&self) -> Option<Instant> {
        (self.time.is_some() || self.rows.is_some()).then(Instant::now)
    }

    /// Counts a query that is above a bound. Whether it may be logged: there may have been too many lines.
    pub fn take_line(&self, metrics: &Metrics, time: Duration, examined: u64) -> bool {
        let is_above =
            self.time.is_some_and(|most| time > most) || self.rows.is_some_and(|most| examined > most);
        if !is_above {
            return false;
        }
        metrics.slow_query();
        let left_out = self.pace.admit(Instant::now());
        if let Some(left_out) = left_out.filter(|left_out| *left_out > 0) {
            tracing::warn!(left_out, "slow queries came faster than they are logged");
        }
        left_out.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Services;

    #[test]
    fn a_query_is_above_a_bound_if_it_takes_longer_or_reads_more() {
        let metrics = Metrics::new(&Services::new());
        let check = |time: Option<u64>, rows, took, examined, expected| {
            let bounds = SlowQueries::above(time.map(Duration::from_millis), rows);
            let found = bounds.take_line(&metrics, Duration::from_millis(took), examined);
            assert_eq!(found, expected, "{bounds:?} {took} {examined}");
        };
        check(Some(10), Some(100), 10, 100, false);
        check(Some(10), Some(100), 11, 0, true);
        check(Some(10), Some(100), 0, 101, true);
        check(Some(10), None, 0, 101, false);
        check(None, Some(100), 11, 0, false);
        check(None, None, 1000, 1000, false);
        assert!(SlowQueries::default().begin().is_none());
    }

    #[test]
    fn a_flood_of_slow_queries_is_counted_but_not_logged() {
        let metrics = Metrics::new(&Services::new());
        let bounds = SlowQueries::above(None, Some(0));
        let lines = (0..10_000).filter(|_| bounds.take_line(&metrics, Duration::ZERO, 1)).count();
        assert!(lines < 1000, "{lines}");
        assert_eq!(metrics.slow_queries(), 10_000);
    }
}
