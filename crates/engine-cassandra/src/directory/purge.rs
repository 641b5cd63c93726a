//! Removes the rows and directories of dropped tables.

use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::Directory;
use crate::keys::KeyBytes;
use crate::partition::PartitionId;
use crate::trouble::Trouble;

/// Deletes get a timestamp one hour in the future, in microseconds, so that delayed writes of a stalled server are
/// older.
const AHEAD: i64 = 3_600_000_000;
const PAGE: usize = 1000;
const PARALLEL: usize = 16;

impl Directory {
    /// Deletes all rows, segments and the map of a dropped table. It may stop anywhere, and any server may start it
    /// again: the map is deleted last.
    pub(super) async fn purge(&self, table: Uuid) -> Result<(), Trouble> {
        if let Some(map) = self.cluster.read_map(table).await? {
            for segment in map.segments().iter().flat_map(|segment| segment.names()) {
                self.purge_partitions(table, segment).await?;
                self.drop_segment(segment).await?;
            }
            self.drop_map(table).await?;
        }
        self.cluster.write(&self.cluster.statements.remove_purge, (table,)).await
    }

    async fn purge_partitions(&self, table: Uuid, segment: Uuid) -> Result<(), Trouble> {
        let mut from = KeyBytes::lowest();
        loop {
            // Struck-off partitions too: their state is still stored.
            let listed = self.read_segment(segment, &from, None, PAGE).await?.listed;
            let next = listed.last().filter(|_| listed.len() == PAGE).map(|last| last.key.successor());
            let removals =
                listed.into_iter().map(|listed| self.purge_rows(PartitionId { table, key: listed.key }));
            stream::iter(removals).buffer_unordered(PARALLEL).try_collect::<()>().await?;
            match next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    async fn purge_rows(&self, id: PartitionId) -> Result<(), Trouble> {
        let values = (self.hereafter(), id.table, id.key.as_bytes());
        self.cluster.write(&self.cluster.statements.purge_rows, values).await
    }

    /// Deletes a segment that no map names any more.
    pub(super) async fn drop_segment(&self, segment: Uuid) -> Result<(), Trouble> {
        self.cluster.write(&self.cluster.statements.drop_segment, (self.hereafter(), segment)).await
    }

    /// Also later than every epoch given out here, which may be ahead of the clock.
    fn hereafter(&self) -> i64 {
        self.cluster.clock.after_epochs().saturating_add(AHEAD)
    }

    pub(super) async fn drop_map(&self, table: Uuid) -> Result<(), Trouble> {
        super::guard(&self.maps).remove(&table);
        self.cluster.write(&self.cluster.statements.drop_map, (self.hereafter(), table)).await
    }
}
