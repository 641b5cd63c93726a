//! Whether the storage has failed or stalled.
//!
//! After a failed write nobody knows what is on disk until the log is replayed. So the first failure is final:
//! everything is refused from then on, and the server is told so that it can exit.
//!
//! A write that neither succeeds nor fails has stalled: on a full disk RocksDB may wait for space. Meanwhile reads
//! work, and writes are answered `Busy` instead of waiting.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::Fault;
use tokio::sync::watch;
use tracing::error;

/// A working disk never takes this long for a commit.
const STALLED: Duration = Duration::from_secs(5);
const IDLE: u64 = u64::MAX;

#[derive(Debug)]
pub struct Health {
    failure: watch::Sender<Option<Fault>>,
    born: Instant,
    /// When the current write began, in milliseconds since `born`; `IDLE` if there is none.
    writing_since: AtomicU64,
}

impl Health {
    pub fn new() -> Self {
        Self { failure: watch::Sender::new(None), born: Instant::now(), writing_since: AtomicU64::new(IDLE) }
    }

    /// Called around each write to the disk.
    pub fn watched<T>(&self, write: impl FnOnce() -> T) -> T {
        self.writing_since.store(self.born.elapsed().as_millis() as u64, Ordering::Relaxed);
        let done = write();
        self.writing_since.store(IDLE, Ordering::Relaxed);
        done
    }

    /// How long a write has been waiting for the disk, if that is too long.
    pub fn stalled(&self) -> Option<Duration> {
        let since = self.writing_since.load(Ordering::Relaxed);
        if since == IDLE {
            return None;
        }
        let waited = self.born.elapsed().saturating_sub(Duration::from_millis(since));
        Some(waited).filter(|waited| *waited >= STALLED)
    }

    /// Later failures are consequences of the first. Only the first is kept.
    pub fn fail(&self, fault: Fault) {
        error!(kind = %fault.kind(), %fault, "the storage failed; nothing is accepted until a restart");
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert(fault);
            first
        });
    }

    pub fn check(&self) -> Result<(), Fault> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Resolves when the engine fails; never if it does not.
    pub fn failure(&self) -> impl Future<Output = Fault> + Send + use<> {
        let mut failure = self.failure.subscribe();
        async move {
            let found = failure.wait_for(Option::is_some).await.ok().and_then(|fault| fault.clone());
            match found {
                Some(fault) => fault,
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_takes_too_long_is_reported_until_it_ends() {
        let long_ago = Instant::now().checked_sub(2 * STALLED).expect("the machine has been on for longer");
        let health = Health { born: long_ago, ..Health::new() };
        assert_eq!(health.stalled(), None);
        health.watched(|| {
            assert_eq!(health.stalled(), None, "it has just begun");
            health.writing_since.store(0, Ordering::Relaxed);
            assert!(health.stalled() >= Some(2 * STALLED));
        });
        assert_eq!(health.stalled(), None);
    }
}
