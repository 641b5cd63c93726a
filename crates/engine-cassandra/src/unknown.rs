//! Settles the outcome of a write that the cluster did not answer. It is never simply sent again, because the first
//! one may still arrive.
//!
//! Stamps and epochs never recur, so a stamp of the write proves that it was applied. If none is found, the partition
//! is moved to another epoch. From then on the write can't be applied any more, and a last read decides.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::keys::KeyBytes;
use crate::partition::{PartitionId, PartitionState};
use crate::plan::RowWrite;
use crate::statements::StampColumns;
use crate::trouble::{Trouble, undecodable};

const PAUSE: Duration = Duration::from_millis(100);

/// A write as it was sent.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub id: &'a PartitionId,
    pub writes: &'a BTreeMap<KeyBytes, RowWrite>,
    /// The stamp of the write, which it stores in `written`.
    pub last: i64,
    /// The state it expected.
    pub expected: PartitionState,
    /// The epoch after the write: its own if it registers the partition, otherwise the expected one.
    pub epoch: Option<i64>,
    /// Whether the rows' stamps were made for this write. Those of rows from another store were not: an earlier
    /// attempt may have stored the same stamps, so they prove nothing.
    pub own_stamps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Applied,
    /// It was not applied and never will be.
    NotApplied,
    Unknown,
}

/// The partition's state and the rows that the write touches, read after the write.
struct PartitionView {
    state: PartitionState,
    /// The stamps of the rows that exist.
    stamps: BTreeMap<KeyBytes, i64>,
}

impl Attempt<'_> {
    pub async fn find_out(&self, cluster: &Cluster, deadline: Instant) -> Fate {
        let fate = self.look_until(cluster, deadline).await;
        cluster.counts.settled(fate);
        fate
    }

    async fn look_until(&self, cluster: &Cluster, deadline: Instant) -> Fate {
        loop {
            match self.look(cluster).await {
                Ok(fate) => {
                    tracing::debug!(?fate, "settled the outcome of a write");
                    return fate;
                }
                Err(trouble) if Instant::now() > deadline => {
                    tracing::warn!(%trouble, "the outcome of a write stays unknown");
                    return Fate::Unknown;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn look(&self, cluster: &Cluster) -> Result<Fate, Trouble> {
        let seen = self.see(cluster).await?;
        if self.is_in(&seen) {
            return Ok(Fate::Applied);
        }
        // The epoch has changed already, so the write can't be applied any more.
        if seen.state.epoch == self.expected.epoch {
            let fence = cluster.epoch_above(self.expected.epoch.unwrap_or(0)).await?;
            cluster.change_epoch(self.id, self.expected.epoch, fence, self.expected.registration).await?;
        }
        Ok(self.judge(&self.see(cluster).await?))
    }

    async fn see(&self, cluster: &Cluster) -> Result<PartitionView, Trouble> {
        let keys: Vec<&[u8]> = self.writes.keys().map(KeyBytes::as_bytes).collect();
        let rows = cluster
            .read(&cluster.statements.stamps_of, (self.id.table, self.id.key.as_bytes(), keys))
            .await?;
        let mut stamps = BTreeMap::new();
        for row in rows.rows::<StampColumns>().map_err(undecodable("rows of a partition"))? {
            let (key, stamp, ..) = row.map_err(undecodable("rows of a partition"))?;
            stamps.extend(stamp.map(|stamp| (KeyBytes::stored(key), stamp)));
        }
        Ok(PartitionView { state: cluster.partition_state(self.id).await?, stamps })
    }

    /// Whether there is something that only this write can have stored.
    fn is_in(&self, seen: &PartitionView) -> bool {
        let wrote = |(key, write): (&KeyBytes, &RowWrite)| {
            let stamp = write.row.as_ref().map(|(stamp, _)| stamp.ticks());
            self.own_stamps && stamp.is_some() && seen.stamps.get(key).copied() == stamp
        };
        seen.state.written == Some(self.last)
            || (self.epoch != self.expected.epoch && seen.state.epoch == self.epoch)
            || self.writes.iter().any(wrote)
    }

    /// Decides once the write can't be applied any more.
    fn judge(&self, seen: &PartitionView) -> Fate {
        if self.is_in(seen) {
            return Fate::Applied;
        }
        // Every write changes `written`. If it has the old value, no write was applied since.
        let untouched = seen.state.written == self.expected.written;
        // If a row still has the expected stamp, this write did not replace or delete it.
        let as_before = |(key, write): (&KeyBytes, &RowWrite)| {
            let stamp = write.row.as_ref().map(|(stamp, _)| stamp.ticks());
            write.expected.is_some()
                && write.expected != stamp
                && seen.stamps.get(key).copied() == write.expected
        };
        if untouched || self.writes.iter().any(as_before) { Fate::NotApplied } else { Fate::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Registration;
    use model::DateTime;
    use store_suite::number;
    use uuid::Uuid;

    fn stamp(offset: i64) -> DateTime {
        DateTime::from_ticks(DateTime::MIN_STORED.ticks() + offset).unwrap()
    }

    fn state(epoch: i64, written: i64) -> PartitionState {
        PartitionState {
            epoch: Some(epoch),
            registration: Registration::Listed,
            written: Some(stamp(written).ticks()),
            deleted: None,
        }
    }

    /// A write that puts `a` (stamp 100, over `before` if there was one) and deletes `d` (stamp 7), in epoch 2.
    fn judged(
        before: Option<i64>,
        registers: bool,
        seen: PartitionState,
        a: Option<i64>,
        d: Option<i64>,
    ) -> Fate {
        let id = PartitionId { table: Uuid::nil(), key: KeyBytes::of("p") };
        let put = Some((stamp(100), number(1).stamp(stamp(100))));
        let expected = |at: Option<i64>| at.map(|at| stamp(at).ticks());
        let writes = BTreeMap::from([
            (KeyBytes::of("a"), RowWrite { expected: expected(before), row: put }),
            (KeyBytes::of("d"), RowWrite { expected: expected(Some(7)), row: None }),
        ]);
        let attempt = Attempt {
            id: &id,
            writes: &writes,
            last: stamp(101).ticks(),
            expected: state(2, 50),
            epoch: Some(if registers { 4 } else { 2 }),
            own_stamps: true,
        };
        let stamps = [("a", a), ("d", d)];
        let stamps = stamps.into_iter().filter_map(|(key, at)| Some((KeyBytes::of(key), stamp(at?).ticks())));
        attempt.judge(&PartitionView { state: seen, stamps: stamps.collect() })
    }

    #[test]
    fn the_fate_is_judged_by_what_is_stored() {
        use Fate::{Applied, NotApplied, Unknown};
        for (before, registers, seen, a, d, fate) in [
            // Its own mark, its own row, its own epoch.
            (Some(5), false, state(6, 101), Some(200), None, Applied),
            (Some(5), false, state(6, 90), Some(100), Some(9), Applied),
            (Some(5), true, state(4, 90), Some(200), Some(9), Applied),
            // The mark from before: nothing happened.
            (Some(5), false, state(6, 50), Some(5), Some(7), NotApplied),
            (None, false, state(6, 50), None, Some(7), NotApplied),
            // Another mark, but a row that this write would have changed.
            (Some(5), false, state(6, 90), Some(5), None, NotApplied),
            (None, false, state(6, 90), None, Some(7), NotApplied),
            // Others have overwritten every proof.
            (Some(5), false, state(6, 90), Some(200), None, Unknown),
            (None, false, state(6, 90), None, None, Unknown),
            // There is another epoch instead of its own: the order can't be known.
            (None, true, state(8, 90), None, Some(9), Unknown),
        ] {
            let found = judged(before, registers, seen, a, d);
            assert_eq!(found, fate, "{before:?} {registers} {seen:?} {a:?} {d:?}");
        }
    }

    #[test]
    fn rows_of_an_earlier_load_do_not_prove_a_later_one() {
        let id = PartitionId { table: Uuid::nil(), key: KeyBytes::of("p") };
        let loaded = |at: i64| Some((stamp(at), number(1).stamp(stamp(at))));
        // An earlier load put `a`; this one puts it once more, and `b` with it.
        let writes = BTreeMap::from([
            (KeyBytes::of("a"), RowWrite { expected: Some(stamp(5).ticks()), row: loaded(5) }),
            (KeyBytes::of("b"), RowWrite { expected: None, row: loaded(6) }),
        ]);
        let expected = state(2, 50);
        let attempt = Attempt {
            id: &id,
            writes: &writes,
            last: stamp(101).ticks(),
            expected,
            epoch: Some(2),
            own_stamps: false,
        };
        let a_alone = || BTreeMap::from([(KeyBytes::of("a"), stamp(5).ticks())]);
        assert_eq!(
            attempt.judge(&PartitionView { state: state(6, 50), stamps: a_alone() }),
            Fate::NotApplied
        );
        assert_eq!(attempt.judge(&PartitionView { state: state(6, 101), stamps: a_alone() }), Fate::Applied);
        assert_eq!(attempt.judge(&PartitionView { state: state(6, 90), stamps: a_alone() }), Fate::Unknown);
    }
}
