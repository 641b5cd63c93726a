//! Partitions that were seen empty. The janitor checks them once they were not written for a while.

use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::guard;
use crate::partition::PartitionId;

/// The number of hints kept. A later scan gives those again that are dropped above it.
const HINTS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Hints {
    waiting: Mutex<HintQueue>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct HintQueue {
    /// Oldest first.
    queue: VecDeque<(Instant, PartitionId)>,
    known: HashSet<PartitionId>,
}

impl Hints {
    /// Never waits. Does nothing if the hint is known or there are too many.
    pub fn maybe_empty(&self, id: &PartitionId) {
        let mut waiting = guard(&self.waiting);
        if waiting.queue.len() < HINTS_MAX && waiting.known.insert(id.clone()) {
            waiting.queue.push_back((Instant::now(), id.clone()));
            drop(waiting);
            self.arrived.notify_one();
        }
    }

    /// The oldest hint, if it is old enough.
    pub(super) async fn next(&self, age: Duration) -> PartitionId {
        loop {
            let due = match self.take(age) {
                Ok(id) => return id,
                Err(due) => due,
            };
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => self.arrived.notified().await,
            }
        }
    }

    /// The oldest hint, or when it will be old enough.
    fn take(&self, age: Duration) -> Result<PartitionId, Option<Instant>> {
        let mut waiting = guard(&self.waiting);
        let Some((since, _)) = waiting.queue.front() else { return Err(None) };
        let due = *since + age;
        if Instant::now() < due {
            return Err(Some(due));
        }
        let (_, id) = waiting.queue.pop_front().ok_or(None)?;
        waiting.known.remove(&id);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyBytes;
    use uuid::Uuid;

    fn id(n: usize) -> PartitionId {
        PartitionId { table: Uuid::nil(), key: KeyBytes::of(&n.to_string()) }
    }

    #[test]
    fn a_partition_waits_once_and_can_be_hinted_again_later() {
        let hints = Hints::default();
        for n in [1, 2, 1] {
            hints.maybe_empty(&id(n));
        }
        assert!(hints.take(Duration::from_secs(600)).is_err(), "too young");
        assert_eq!(hints.take(Duration::ZERO), Ok(id(1)));
        assert_eq!(hints.take(Duration::ZERO), Ok(id(2)));
        assert_eq!(hints.take(Duration::ZERO), Err(None));
        hints.maybe_empty(&id(1));
        assert_eq!(hints.take(Duration::ZERO), Ok(id(1)));
    }

    #[test]
    fn a_flood_of_hints_is_cut_off() {
        let hints = Hints::default();
        for n in 0..HINTS_MAX + 5 {
            hints.maybe_empty(&id(n));
        }
        let kept = std::iter::from_fn(|| hints.take(Duration::ZERO).ok()).count();
        assert_eq!(kept, HINTS_MAX);
    }
}
