//! One lane per busy partition. One write is in flight at a time, and the transactions that wait are combined into
//! the next. Two writes at once would only invalidate each other's ballots.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{DateTime, limits};
use store::{Error, Transaction};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use crate::keys::KeyBytes;
use crate::partition::PartitionId;
use crate::plan::Knowledge;
use crate::round::{WaitingTransaction, Writer};

/// Transactions that may wait for one partition.
const WAITING: usize = 1000;
const WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one write: as many as the largest transaction may have.
const WRITE_BYTES: usize = 4 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes a group and answers all its transactions.
pub trait Commits: Send + Sync + 'static {
    fn commit(
        &self,
        id: &PartitionId,
        group: Vec<WaitingTransaction>,
        knowledge: &mut Knowledge,
    ) -> impl Future<Output = ()> + Send;
}

#[derive(Debug)]
pub struct Lanes<W = Writer> {
    writer: Arc<W>,
    lanes: Mutex<HashMap<PartitionId, Lane>>,
    /// Limits the writes in flight, over all partitions.
    under_way: Semaphore,
    /// Whether waiting transactions are combined.
    combine: bool,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<WaitingTransaction>,
    bytes: usize,
}

impl<W: Commits> Lanes<W> {
    pub fn new(writer: Arc<W>, under_way: usize, combine: bool) -> Self {
        Self {
            writer,
            lanes: Mutex::default(),
            under_way: Semaphore::new(under_way),
            combine,
            tasks: TaskTracker::new(),
        }
    }

    pub async fn apply(
        self: &Arc<Self>,
        id: PartitionId,
        transaction: Transaction,
    ) -> Result<Vec<DateTime>, Error> {
        let (answer, answered) = oneshot::channel();
        let waiting = WaitingTransaction { transaction, answer, arrived: Instant::now() };
        self.join(id, waiting)?;
        // The lane answers every transaction. If it ended without an answer, the outcome is unknown.
        answered.await.unwrap_or(Err(Error::OutcomeUnknown))
    }

    fn join(self: &Arc<Self>, id: PartitionId, waiting: WaitingTransaction) -> Result<(), Error> {
        let bytes = waiting.transaction.weight();
        let mut lanes = self.locked();
        match lanes.get_mut(&id) {
            Some(lane) if lane.waiting.len() >= WAITING || lane.bytes + bytes > WAITING_BYTES => {
                Err(Error::Busy)
            }
            Some(lane) => {
                lane.bytes += bytes;
                lane.waiting.push_back(waiting);
                Ok(())
            }
            None => {
                lanes.insert(id.clone(), Lane { waiting: VecDeque::from([waiting]), bytes });
                drop(lanes);
                // In a task of its own, so that a caller that gives up does not cancel the writes of others.
                self.tasks.spawn(self.clone().run(id));
                Ok(())
            }
        }
    }

    async fn run(self: Arc<Self>, id: PartitionId) {
        let _ending = Ending { lanes: &self, id: &id };
        // The rows that this lane has read and written, as long as it is busy.
        let mut knowledge = Knowledge::default();
        loop {
            // Transactions that arrive while we wait for a permit join the next group.
            let Ok(_permit) = self.under_way.acquire().await else { return };
            let Some(group) = self.next_group(&id) else { return };
            self.writer.commit(&id, group, &mut knowledge).await;
            knowledge.age();
        }
    }

    /// The next transactions that fit into one write. Ends the lane if none wait.
    fn next_group(&self, id: &PartitionId) -> Option<Vec<WaitingTransaction>> {
        let mut lanes = self.locked();
        let lane = lanes.get_mut(id)?;
        let (mut group, mut rows, mut bytes) = (Vec::new(), HashSet::new(), 0);
        while let Some(next) = lane.waiting.front() {
            let weight = next.transaction.weight();
            let keys =
                next.transaction.operations().iter().map(|operation| KeyBytes::of(operation.row.as_str()));
            let keys: Vec<KeyBytes> = keys.filter(|key| !rows.contains(key)).collect();
            let fits =
                rows.len() + keys.len() <= limits::BATCH_OPERATIONS_MAX && bytes + weight <= WRITE_BYTES;
            let joins = group.is_empty() || (fits && self.combine);
            if !joins {
                break;
            }
            let Some(next) = lane.waiting.pop_front() else { break };
            lane.bytes = lane.bytes.saturating_sub(weight);
            if next.arrived.elapsed() > PATIENCE {
                // It was not started.
                let _ = next.answer.send(Err(Error::Busy));
                continue;
            }
            rows.extend(keys);
            bytes += weight;
            group.push(next);
        }
        if group.is_empty() {
            lanes.remove(id);
            return None;
        }
        Some(group)
    }

    /// Partitions with writes in flight, and transactions that wait for one of them.
    pub fn load(&self) -> (usize, usize) {
        let lanes = self.locked();
        (lanes.len(), lanes.values().map(|lane| lane.waiting.len()).sum())
    }

    /// Whether no write waits or is in flight.
    pub fn are_empty(&self) -> bool {
        self.locked().is_empty()
    }

    /// Waits until every write is answered.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<PartitionId, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a lane whose task panics. Without this, transactions in it, and all later ones, would wait for ever.
struct Ending<'a, W: Commits> {
    lanes: &'a Lanes<W>,
    id: &'a PartitionId,
}

impl<W: Commits> Drop for Ending<'_, W> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        tracing::error!("a write panicked; its outcome is unknown");
        let lane = self.lanes.locked().remove(self.id);
        for waiting in lane.into_iter().flat_map(|lane| lane.waiting) {
            // It was not started. Transactions whose write had started get an unknown outcome.
            let _ = waiting.answer.send(Err(Error::Busy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store_suite::insert;
    use tokio::sync::Notify;
    use uuid::Uuid;

    /// Panics on the first group when it is told to, and answers the others.
    #[derive(Default)]
    struct Fragile {
        began: Notify,
        go_on: Notify,
        groups: std::sync::atomic::AtomicUsize,
    }

    impl Commits for Fragile {
        async fn commit(&self, _: &PartitionId, group: Vec<WaitingTransaction>, _: &mut Knowledge) {
            if self.groups.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
                self.began.notify_one();
                self.go_on.notified().await;
                panic!("the test wants this panic");
            }
            for waiting in group {
                let _ = waiting.answer.send(Ok(Vec::new()));
            }
        }
    }

    #[tokio::test]
    async fn a_panic_leaves_nobody_waiting_for_its_partition() {
        let writer = Arc::new(Fragile::default());
        let lanes = Arc::new(Lanes::new(writer.clone(), 8, true));
        let id = PartitionId { table: Uuid::nil(), key: KeyBytes::of("p") };
        let apply = |row: &'static str| {
            let (lanes, id) = (lanes.clone(), id.clone());
            tokio::spawn(async move { lanes.apply(id, insert("p", row, 1)).await })
        };
        let first = apply("a");
        writer.began.notified().await;
        let second = apply("b");
        while lanes.locked().get(&id).is_none_or(|lane| lane.waiting.is_empty()) {
            tokio::task::yield_now().await;
        }
        writer.go_on.notify_one();
        assert!(matches!(first.await.unwrap(), Err(Error::OutcomeUnknown)));
        assert!(matches!(second.await.unwrap(), Err(Error::Busy)));
        assert!(apply("c").await.unwrap().is_ok(), "the partition is open again");
    }
}
