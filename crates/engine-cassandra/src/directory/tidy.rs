//! Strikes off empty partitions: those that were emptied, and those that were listed but never written.

use std::time::Duration;

use model::DateTime;

use super::Directory;
use crate::clock::unix_micros;
use crate::partition::{PartitionId, PartitionState, Registration};
use crate::trouble::Trouble;

impl Directory {
    /// Strikes off the partition if it is empty and was not written for the time `quiet`. Returns whether it did.
    ///
    /// It may stop anywhere, and several servers may do it at once: a step for an earlier epoch changes nothing.
    pub async fn tidy(&self, id: &PartitionId, quiet: Duration) -> Result<bool, Trouble> {
        let state = self.cluster.partition_state(id).await?;
        match (state.registration, state.epoch) {
            (Registration::None, _) => self.tidy_orphan(id, state, quiet).await,
            (Registration::Listed, Some(epoch)) => {
                if is_recent(state.written, quiet) || self.cluster.has_rows(id).await? {
                    return Ok(false);
                }
                // From here on, a write of a row changes the epoch.
                let closing = self.cluster.epoch_above(epoch).await?;
                let changed =
                    self.cluster.change_epoch(id, Some(epoch), closing, Registration::Closing).await?;
                if changed { self.close(id, closing).await } else { Ok(false) }
            }
            // Another server does it, or did it.
            (Registration::Closing, Some(epoch)) if is_past(epoch, quiet) => self.close(id, epoch).await,
            (Registration::Closing | Registration::Listed, _) => Ok(false),
        }
    }

    /// The same, but one read is enough to skip partitions that are listed and used.
    pub(super) async fn tidy_unfinished(&self, id: &PartitionId, quiet: Duration) -> Result<bool, Trouble> {
        let state = self.cluster.partition_state(id).await?;
        match (state.registration, state.epoch) {
            (Registration::None, _) => self.tidy_orphan(id, state, quiet).await,
            (Registration::Closing, Some(epoch)) if is_past(epoch, quiet) => self.close(id, epoch).await,
            (Registration::Closing | Registration::Listed, _) => Ok(false),
        }
    }

    /// Finishes a partition that is closing in this epoch: it stays listed if it has rows, otherwise it is struck off.
    async fn close(&self, id: &PartitionId, closing: i64) -> Result<bool, Trouble> {
        let next = self.cluster.epoch_above(closing).await?;
        // A write of a row from now on changes the epoch, so a row that this read misses is noticed.
        if self.cluster.has_rows(id).await? {
            self.cluster.change_epoch(id, Some(closing), next, Registration::Listed).await?;
            return Ok(false);
        }
        if !self.cluster.clear(id, closing, next).await? {
            return Ok(false);
        }
        self.strike(id, next).await.map(|()| true)
    }

    /// Strikes off the entry of a partition that is not registered, after preventing the writer that listed it from
    /// continuing.
    async fn tidy_orphan(
        &self,
        id: &PartitionId,
        state: PartitionState,
        quiet: Duration,
    ) -> Result<bool, Trouble> {
        let listing = self.page(id.table, &id.key, 1).await?;
        let Some(listed) = listing.partitions.first().filter(|listed| listed.key == id.key) else {
            return Ok(false);
        };
        if !is_past(listed.epoch, quiet) {
            return Ok(false);
        }
        let fence = self.cluster.epoch_above(listed.epoch.max(state.epoch.unwrap_or(0))).await?;
        if !self.cluster.change_epoch(id, state.epoch, fence, Registration::None).await? {
            return Ok(false);
        }
        self.strike(id, fence).await.map(|()| true)
    }
}

/// Whether the last write, by its stamp, is more recent than that.
fn is_recent(written: Option<i64>, quiet: Duration) -> bool {
    // A tick is 100 ns.
    let quiet = i64::try_from(quiet.as_nanos() / 100).unwrap_or(i64::MAX);
    written.is_some_and(|written| written > DateTime::now().ticks().saturating_sub(quiet)) && quiet > 0
}

/// Whether an epoch, which is a time, is that long ago.
fn is_past(epoch: i64, quiet: Duration) -> bool {
    let quiet = i64::try_from(quiet.as_micros()).unwrap_or(i64::MAX);
    quiet == 0 || epoch <= unix_micros().saturating_sub(quiet)
}
