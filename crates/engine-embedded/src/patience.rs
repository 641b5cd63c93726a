//! Decides which reads may wait for the disk on a thread that also serves other requests.
//!
//! A block that is not in the block cache is mostly in the system's page cache and read in microseconds, so all
//! threads may wait for it. A disk may take a thousand times as long, and the other connections of the thread wait with
//! it. After a slow read, no thread waits for 200 ms: what is not in the cache is read on the blocking threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A read that takes longer than this came from the disk.
const LONG: Duration = Duration::from_millis(2);
/// How long a slow read is remembered.
const CAREFUL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Patience {
    threads: usize,
    waiting: AtomicUsize,
    born: Instant,
    /// In microseconds since `born`.
    careful_until: AtomicU64,
}

/// The right to wait for the disk; returned when dropped.
#[derive(Debug)]
pub struct WaitPermit<'a> {
    patience: &'a Patience,
    since: Instant,
}

impl Patience {
    pub fn new(threads: usize) -> Self {
        Self { threads, waiting: AtomicUsize::new(0), born: Instant::now(), careful_until: AtomicU64::new(0) }
    }

    /// `None` if as many threads as may already wait.
    pub fn wait(&self) -> Option<WaitPermit<'_>> {
        let since = Instant::now();
        let is_careful = self.micros(since) < self.careful_until.load(Ordering::Relaxed);
        let most = if is_careful { 0 } else { self.threads };
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        // Made before the limit is checked. If the limit is exceeded, dropping it undoes the count.
        let waiting = WaitPermit { patience: self, since };
        (before < most).then_some(waiting)
    }

    fn micros(&self, now: Instant) -> u64 {
        now.duration_since(self.born).as_micros() as u64
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
        let now = Instant::now();
        if now.duration_since(self.since) > LONG {
            let until = self.patience.micros(now + CAREFUL);
            self.patience.careful_until.fetch_max(until, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_reads_may_wait_as_there_are_workers() {
        let patience = Patience::new(2);
        let (first, second) = (patience.wait(), patience.wait());
        assert!(first.is_some() && second.is_some() && patience.wait().is_none());
        drop(first);
        assert!(patience.wait().is_some());
        assert!(Patience::new(0).wait().is_none());
    }

    #[test]
    fn after_a_long_read_no_thread_waits_for_a_while() {
        let patience = Patience::new(2);
        let mut slow = patience.wait().expect("nobody waits");
        slow.since = Instant::now().checked_sub(2 * LONG).expect("the machine has been on for longer");
        drop(slow);
        assert!(patience.wait().is_none());
        patience.careful_until.store(0, Ordering::Relaxed);
        assert!(patience.wait().is_some());
    }
}
