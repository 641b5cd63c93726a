//! The memory of messages that were read ahead, of all queues of a server.
//!
//! Whoever may read queues decides how many of them are in use, so each queue takes its share from one bound. A queue that gets
//! none reads again for the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const AHEAD_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct AheadMemory {
    used: AtomicUsize,
}

/// What one queue takes of it. Given back when dropped.
#[derive(Debug)]
pub struct AheadShare {
    memory: Arc<AheadMemory>,
    bytes: usize,
}

impl AheadShare {
    pub fn none(memory: &Arc<AheadMemory>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    /// Takes so much instead of what it has; false, and it has nothing, if there is no room.
    pub fn resize(&mut self, bytes: usize) -> bool {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= AHEAD_BYTES_MAX);
        let has_room = self.memory.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if has_room {
            self.bytes = bytes;
        }
        has_room
    }
}

impl Drop for AheadShare {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_queues_stay_within_one_bound() {
        let memory = Arc::default();
        let (mut one, mut other) = (AheadShare::none(&memory), AheadShare::none(&memory));
        assert!(one.resize(AHEAD_BYTES_MAX));
        assert!(!other.resize(1), "nothing is left");
        assert!(one.resize(AHEAD_BYTES_MAX), "its own share counts once");
        assert!(!one.resize(AHEAD_BYTES_MAX + 1));
        assert!(other.resize(AHEAD_BYTES_MAX), "one that found no room has nothing");
        drop(other);
        assert!(one.resize(1));
        assert_eq!(memory.used.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn peeks_at_many_queues_keep_no_more_than_the_bound() {
        use crate::{QueueRef, QueueService};
        use queue_model::{AccountName, MessageText, Metadata, QueueName, limits};
        use std::time::Duration;

        let service = QueueService::new(Arc::new(store::MemoryEngine::default()));
        let account = AccountName::parse("devstoreaccount1").unwrap();
        let text = MessageText::new("x".repeat(limits::TEXT_BYTES_MAX)).unwrap();
        for number in 0..20 {
            let name = QueueName::parse(&format!("queue-{number}")).unwrap();
            let queue = QueueRef::new(&account, &name);
            service.create(&queue, &Metadata::default()).await.unwrap();
            for _ in 0..32 {
                service.put(&queue, text.clone(), Duration::ZERO, None).await.unwrap();
            }
            assert_eq!(service.peek(&queue, 32).await.unwrap().len(), 32, "with or without a share");
        }
        let kept = |live: Arc<crate::live::LiveQueue>| live.head().ahead_bytes();
        let kept: usize = service.live.all().into_iter().map(kept).sum();
        assert!((AHEAD_BYTES_MAX / 2..=AHEAD_BYTES_MAX).contains(&kept), "{kept} bytes are kept");
    }
}
