//! What this server asks of the cluster, counted for monitors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use store::{EngineCounters, GROUP_SIZES, LiveSpread, SECONDS};

use crate::clock::SLOTS;
use crate::trouble::Trouble;
use crate::unknown::Fate;

/// Counts since the engine was opened.
#[derive(Debug)]
pub struct Counts {
    pub reads: Count,
    pub writes: Count,
    pub conditional_writes: Count,
    /// Requests that were sent to another node after one had failed.
    pub retries: Count,
    /// Conditional writes that found the partition changed by another server, or too new a delete.
    pub contended: Count,
    refused: Count,
    unknown: Count,
    tombstones: Count,
    faults: Count,
    settled_applied: Count,
    settled_not_applied: Count,
    left_unknown: Count,
    pub slots_lost: Count,
    /// Of all servers of the keyspace, when this one looked last.
    pub slots_taken: Count,
    transactions: Count,
    group_sizes: LiveSpread,
    commit_times: LiveSpread,
}

/// A number that several tasks add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            reads: Count::default(),
            writes: Count::default(),
            conditional_writes: Count::default(),
            retries: Count::default(),
            contended: Count::default(),
            refused: Count::default(),
            unknown: Count::default(),
            tombstones: Count::default(),
            faults: Count::default(),
            settled_applied: Count::default(),
            settled_not_applied: Count::default(),
            left_unknown: Count::default(),
            slots_lost: Count::default(),
            slots_taken: Count::default(),
            transactions: Count::default(),
            group_sizes: LiveSpread::new(&GROUP_SIZES),
            commit_times: LiveSpread::new(&SECONDS),
        }
    }
}

/// The state of this moment.
#[derive(Clone, Copy, Debug)]
pub struct ClusterState {
    /// This server may write.
    pub is_leased: bool,
    /// Partitions with writes in flight, and transactions that wait for one of them.
    pub lanes: (usize, usize),
}

impl Counts {
    /// Counts why a request failed.
    pub fn trouble(&self, trouble: &Trouble) {
        let count = match trouble {
            Trouble::Refused(_) => &self.refused,
            Trouble::Unknown(_) => &self.unknown,
            Trouble::Tombstones(_) => &self.tombstones,
            Trouble::Fault(_) => &self.faults,
        };
        count.add(1);
    }

    /// Counts what became of a write that got no answer.
    pub fn settled(&self, fate: Fate) {
        let count = match fate {
            Fate::Applied => &self.settled_applied,
            Fate::NotApplied => &self.settled_not_applied,
            Fate::Unknown => &self.left_unknown,
        };
        count.add(1);
    }

    /// Counts a group of transactions that were written together.
    pub fn committed(&self, transactions: usize, time: Duration) {
        self.transactions.add(transactions as u64);
        self.group_sizes.note(transactions as u64);
        self.commit_times.note(time.as_nanos() as u64);
    }

    pub fn read(&self, state: ClusterState) -> EngineCounters {
        let mut to = EngineCounters::default();
        let sizes = self.group_sizes.read();
        to.total("commits", "Groups of transactions written to a partition.", sizes.count());
        to.total(
            "transactions",
            "Transactions answered, also those that a condition refused.",
            self.transactions.get(),
        );
        to.spread("commit_transactions", "Transactions in each commit group.", sizes);
        to.spread("commit_seconds", "Time to write a commit group to the cluster.", self.commit_times.read());
        let (lanes, waiting) = state.lanes;
        to.now("partitions_written", "Partitions with writes in flight.", lanes as u64);
        to.now(
            "queue_requests",
            "Transactions that wait for a write to their partition to end.",
            waiting as u64,
        );
        let kinds = [
            ("read", self.reads.get()),
            ("write", self.writes.get()),
            ("conditional_write", self.conditional_writes.get()),
        ];
        to.totals("cluster_requests", "Requests to the cluster.", "kind", kinds);
        let errors = [
            ("refused", self.refused.get()),
            ("unknown", self.unknown.get()),
            ("tombstones", self.tombstones.get()),
            ("fault", self.faults.get()),
        ];
        to.totals("cluster_errors", "Requests to the cluster that failed.", "kind", errors);
        to.total(
            "cluster_retries",
            "Requests sent to another node after one had failed.",
            self.retries.get(),
        );
        to.total(
            "contended_writes",
            "Writes made again because another server changed the partition.",
            self.contended.get(),
        );
        let outcomes = [
            ("applied", self.settled_applied.get()),
            ("not_applied", self.settled_not_applied.get()),
            ("unknown", self.left_unknown.get()),
        ];
        to.totals(
            "unanswered_writes",
            "Writes without an answer, by what was found out about them.",
            "outcome",
            outcomes,
        );
        to.now("slot_leased", "1 if this server may write, else 0.", u64::from(state.is_leased));
        to.total("slots_lost", "How often this server lost its slot.", self.slots_lost.get());
        to.now("slots_taken", "Slots of all servers that are taken.", self.slots_taken.get());
        to.now("slots_max", "Slots that there are.", SLOTS as u64);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_and_each_fate_has_its_number() {
        let counts = Counts::default();
        counts.trouble(&Trouble::refused("a"));
        counts.trouble(&Trouble::unknown("b"));
        counts.trouble(&Trouble::unknown("c"));
        counts.trouble(&Trouble::tombstones("d"));
        counts.settled(Fate::Applied);
        counts.settled(Fate::Unknown);
        counts.committed(5, Duration::from_secs(1));
        let read = counts.read(ClusterState { is_leased: true, lanes: (1, 2) });
        for (name, expected) in [
            ("cluster_errors_refused", 1.0),
            ("cluster_errors_unknown", 2.0),
            ("cluster_errors_tombstones", 1.0),
            ("cluster_errors_fault", 0.0),
            ("unanswered_writes_applied", 1.0),
            ("unanswered_writes_not_applied", 0.0),
            ("unanswered_writes_unknown", 1.0),
            ("commits", 1.0),
            ("transactions", 5.0),
            ("commit_seconds_sum", 1.0),
            ("queue_requests", 2.0),
            ("slot_leased", 1.0),
        ] {
            assert_eq!(read.number(name), Some(expected), "{name}");
        }
    }
}
