//! What became of objects, counted for people and monitors.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Counts {
    pub written: AtomicU64,
    pub removed: AtomicU64,
    pub swept: AtomicU64,
    pub sweeps: AtomicU64,
    pub failed_sweeps: AtomicU64,
}

/// Since the server has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentCounts {
    /// Objects that were written, or begun.
    pub written: u64,
    /// Objects that were removed at once, because what named them was replaced, deleted or refused.
    pub removed: u64,
    /// Objects that sweeps have found to be named by nothing.
    pub swept: u64,
    /// Sweeps that were done, and those that ended early.
    pub sweeps: u64,
    pub failed_sweeps: u64,
    /// Objects that are removed when their last reader is done.
    pub waiting: u64,
    /// Downloads that run now.
    pub readers: u64,
}

pub fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

pub fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
