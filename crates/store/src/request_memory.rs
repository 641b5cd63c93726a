//! The memory that requests may hold: their bodies, what is made of them, and answers that are not sent yet.
//!
//! All requests share one sum. Small requests are not counted; the limit of connections bounds them. No request waits
//! for memory, because requests that wait may hold the memory that others need: a request that finds none is refused
//! as busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a request may hold without being counted.
pub const FREE_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub struct RequestMemory {
    bytes_max: usize,
    held: AtomicUsize,
}

/// The part of one request; released when dropped.
#[derive(Debug)]
pub struct MemoryShare {
    memory: Arc<RequestMemory>,
    bytes: usize,
}

impl RequestMemory {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, held: AtomicUsize::new(0) })
    }

    /// A share of zero bytes.
    pub fn nothing(self: &Arc<Self>) -> MemoryShare {
        MemoryShare { memory: self.clone(), bytes: 0 }
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that requests hold now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl MemoryShare {
    /// False, without a change, if there is not enough left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        // Most requests are small. The sum is shared by all threads, so that even adding nothing to it takes time.
        if bytes == 0 {
            return true;
        }
        let before = self.memory.held.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.memory.bytes_max {
            self.memory.held.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Grows or shrinks to `bytes` without the free bytes. False, without a change, if there is not enough left.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE_BYTES);
        if wanted > self.bytes {
            return self.grow(wanted - self.bytes);
        }
        self.shrink(self.bytes - wanted);
        true
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows even if there is not enough left: for answers that must be sent in any case.
    pub fn grow_anyway(&mut self, bytes: usize) {
        self.memory.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    pub fn give_back(&mut self) {
        self.shrink(self.bytes);
    }

    fn shrink(&mut self, bytes: usize) {
        if bytes > 0 {
            self.memory.held.fetch_sub(bytes, Ordering::Relaxed);
            self.bytes -= bytes;
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_never_more_than_there_is_and_comes_back() {
        let memory = RequestMemory::new(100);
        let (mut one, mut two) = (memory.nothing(), memory.nothing());
        assert!(one.grow(60) && !two.grow(41) && two.grow(40));
        assert!(!one.grow(1));
        assert_eq!(memory.held(), 100);
        one.grow_anyway(10);
        assert_eq!(memory.held(), 110);
        drop(one);
        assert_eq!(memory.held(), 40);
        two.give_back();
        assert!(two.grow(100));
        drop(two);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn the_first_bytes_are_free_and_what_is_no_longer_needed_is_given_back() {
        let memory = RequestMemory::new(100);
        let mut held = memory.nothing();
        assert!(held.resize(FREE_BYTES) && memory.held() == 0);
        assert!(held.resize(FREE_BYTES + 100) && memory.held() == 100);
        assert!(!held.resize(FREE_BYTES + 101) && held.bytes() == 100);
        assert!(held.resize(FREE_BYTES + 7) && memory.held() == 7);
        assert!(held.resize(0) && memory.held() == 0);
    }

    #[test]
    fn a_sum_beyond_counting_is_refused() {
        let memory = RequestMemory::new(100);
        let mut held = memory.nothing();
        assert!(held.grow(1) && !held.grow(usize::MAX - 1));
    }
}
