//! When the operations of a workload begin: each when the one before has ended, or at a fixed rate.
//!
//! At a fixed rate, an operation has a time at which it is to begin, whatever became of those before it. If all connections are
//! busy then, it waits, and its latency counts from when it should have begun. Otherwise a slow answer would delay the requests
//! after it, and the time that they lost would be measured by nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::error::{BenchError, Result};
use crate::measure::Limits;

pub const RATE_MAX: f64 = 1e6;
/// The pacing thread does not sleep for less, or it would take a processor for itself.
const SLEEP_MIN: Duration = Duration::from_micros(50);

/// Gives out the beginnings of operations, to all connections.
#[derive(Clone, Debug)]
pub struct Turns {
    limits: Limits,
    start: Instant,
    begun: Arc<AtomicU64>,
    schedule: Option<Arc<Schedule>>,
}

/// The times of operations at a fixed rate.
#[derive(Debug)]
struct Schedule {
    start: Instant,
    rate: f64,
    total: u64,
    /// A permit for each operation whose time has come.
    due: Semaphore,
    sent: AtomicU64,
}

/// Ends the pacing thread when it is dropped.
#[derive(Debug)]
pub struct Pacing(Arc<AtomicBool>);

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// What its latency is counted from.
    pub intended: Instant,
    pub now: Instant,
}

impl Turns {
    /// With a rate, a thread tells when the time of each has come.
    pub fn begin(limits: Limits, rate: Option<f64>) -> Result<(Self, Option<Pacing>)> {
        let start = Instant::now();
        let begun = Arc::new(AtomicU64::new(0));
        let Some(rate) = rate else {
            return Ok((Self { limits, start, begun, schedule: None }, None));
        };
        let total = [limits.time.map(|time| operations_in(time, rate)), limits.operations];
        let total = total.into_iter().flatten().min().unwrap_or(u64::MAX);
        let due = Semaphore::new(0);
        let schedule = Arc::new(Schedule { start, rate, total, due, sent: AtomicU64::new(0) });
        let stop = Arc::new(AtomicBool::new(false));
        let (paced, pacing) = (schedule.clone(), Pacing(stop.clone()));
        let thread = std::thread::Builder::new().name("pace".to_owned());
        thread.spawn(move || pace(&paced, &stop)).map_err(|source| BenchError::Threads { source })?;
        Ok((Self { limits, start, begun, schedule: Some(schedule) }, Some(pacing)))
    }

    /// Waits until the next operation is to begin; `None` if there is none. `now` is when the last one ended.
    pub async fn next(&self, now: Instant) -> Option<Turn> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        let Some(schedule) = &self.schedule else {
            let in_time = self.limits.time.is_none_or(|time| now < self.start + time);
            let is_one_left = self.limits.operations.is_none_or(|operations| begun < operations);
            return (in_time && is_one_left).then_some(Turn { intended: now, now });
        };
        if begun >= schedule.total {
            return None;
        }
        // Never closed.
        schedule.due.acquire().await.ok()?.forget();
        let intended = schedule.time(schedule.sent.fetch_add(1, Ordering::Relaxed));
        Some(Turn { intended, now: Instant::now() })
    }
}

impl Schedule {
    /// When this operation is to begin.
    fn time(&self, operation: u64) -> Instant {
        self.start + Duration::from_secs_f64(operation as f64 / self.rate)
    }
}

impl Drop for Pacing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How many operations begin within this time.
fn operations_in(time: Duration, rate: f64) -> u64 {
    ((time.as_secs_f64() * rate).round() as u64).max(1)
}

/// On a thread of its own, because the timers of tokio count in milliseconds.
fn pace(schedule: &Schedule, stop: &AtomicBool) {
    // By default the system may wake a thread 50 µs late. If it refuses, times are a little less exact.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut given = 0;
    while given < schedule.total && !stop.load(Ordering::Relaxed) {
        // The first is due at once.
        let due = 1 + (schedule.start.elapsed().as_secs_f64() * schedule.rate) as u64;
        let due = due.min(schedule.total);
        if due > given {
            schedule.due.add_permits((due - given) as usize);
            given = due;
        }
        let wait = schedule.time(given).saturating_duration_since(Instant::now());
        std::thread::sleep(wait.clamp(SLEEP_MIN, Duration::from_millis(100)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(millis: u64, operations: Option<u64>) -> Limits {
        Limits { time: Some(Duration::from_millis(millis)), operations }
    }

    /// The latencies of one connection whose operations take so long, and the time of them all.
    async fn turns(limits: Limits, rate: Option<f64>, takes: Duration) -> (Vec<Duration>, Duration) {
        let begun = Instant::now();
        let (turns, _pacing) = Turns::begin(limits, rate).unwrap();
        let mut latencies = Vec::new();
        let mut now = Instant::now();
        while let Some(turn) = turns.next(now).await {
            tokio::time::sleep(takes).await;
            now = Instant::now();
            latencies.push(now.saturating_duration_since(turn.intended));
        }
        (latencies, now - begun)
    }

    #[tokio::test]
    async fn a_rate_is_kept_and_limits_hold() {
        let (latencies, time) = turns(limits(300, None), Some(1000.0), Duration::ZERO).await;
        assert_eq!(latencies.len(), 300);
        assert!(time >= Duration::from_millis(299), "{time:?}");
        assert_eq!(turns(limits(300, Some(7)), Some(1000.0), Duration::ZERO).await.0.len(), 7);
        assert_eq!(turns(limits(60_000, Some(7)), None, Duration::ZERO).await.0.len(), 7);
        assert!(turns(limits(20, None), None, Duration::from_millis(1)).await.0.len() <= 20);
    }

    #[tokio::test]
    async fn an_operation_that_has_to_wait_for_a_connection_is_late_by_that() {
        // Every 5 ms one that takes 20 ms, on one connection: the tenth begins 135 ms late.
        let takes = Duration::from_millis(20);
        let (latencies, time) = turns(limits(50, None), Some(200.0), takes).await;
        assert_eq!(latencies.len(), 10);
        assert!(latencies[9] >= Duration::from_millis(150), "{latencies:?}");
        // They wait side by side, so that together they take longer than all the time there was.
        assert!(latencies.iter().sum::<Duration>() > time, "{latencies:?} in {time:?}");
        // Without a rate each begins when the one before has ended.
        let (latencies, time) = turns(limits(50, Some(10)), None, takes).await;
        assert!(latencies.iter().sum::<Duration>() <= time, "{latencies:?} in {time:?}");
    }
}
