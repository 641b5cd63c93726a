//! Maps of page blobs as a whole: copied, and removed.

use blob_model::SnapshotTime;
use store::{Change as RowChange, Condition, Fault, ObjectId, RowOperation, TableRef};

use super::map_numbers::MapNumbers;
use super::page_rows::{self, FoundSegment, SegmentWalk};
use super::pages::SEGMENTS_AT_ONCE;
use super::state::{self, Selected};
use crate::blob_key;
use crate::blob_row::{PageMapRef, StoredBlob};
use crate::content::{BlobKey, Change};
use crate::{BlobRef, BlobService, Result};

/// Rows of a map that are looked at when a state of it goes.
const ROWS_REMOVED_AT_ONCE: usize = 10_000;

impl BlobService {
    /// Writes the rows of a map for a copy, which has the same objects. Nobody sees them before a row names the map. `None` if
    /// the source has changed since it was selected; then the copy begins again. Both blobs must be marked as shared before. What
    /// is written for a copy that is not made stays until `remove_new_maps`.
    pub(crate) async fn copy_pages(
        &self,
        source: &BlobRef,
        selected: &Selected,
        map: PageMapRef,
        blob: &BlobRef,
        change: &Change,
    ) -> Result<Option<PageMapRef>> {
        let (from, to) = (source.container.table()?, blob.container.table()?);
        let copy = PageMapRef { id: rand::random(), number: map.number };
        change.hold_map(copy.id);
        let partition = blob_key::partition(&blob.name)?;
        let mut walk = SegmentWalk::new(self.engine.clone(), from.clone(), source, map, (0, u32::MAX))?;
        let (mut operations, mut moved) = (Vec::new(), Vec::new());
        loop {
            let next = walk.next().await?;
            // What a snapshot sees is never written again.
            if selected.time == SnapshotTime::BASE
                && next.as_ref().is_some_and(|next| next.version > selected.version)
            {
                return Ok(None);
            }
            if operations.len() == SEGMENTS_AT_ONCE || next.is_none() && !operations.is_empty() {
                let some = std::mem::take(&mut operations);
                self.record_segments(&blob.container.account, &std::mem::take(&mut moved)).await?;
                if self.commit(&to, partition.clone(), some, change).await?.is_none() {
                    return Err(Fault::bug("a map that was just named has rows already").about(blob).into());
                }
            }
            let Some(FoundSegment { segment, pages, .. }) = next else { break };
            if !change.hold_objects(&pages.objects()) {
                return Ok(None);
            }
            operations.push(page_rows::put(copy, segment, Condition::Absent, &pages)?);
            moved.push(pages);
        }
        Ok(self.is_as_it_was(&from, source, selected, map).await?.then_some(copy))
    }

    /// Whether all rows of this state of a map have been as they are since its row was selected. Those of the blob are, if its
    /// row has the same version; those of a snapshot, as long as it is there.
    async fn is_as_it_was(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        selected: &Selected,
        map: PageMapRef,
    ) -> Result<bool> {
        if selected.time == SnapshotTime::BASE {
            let now = self.base(table, blob).await?;
            return Ok(now.is_some_and(|now| now.version == selected.version));
        }
        let has_map = |stored: &StoredBlob| stored.pages().is_some_and(|(own, _)| own == map);
        self.has_snapshot(table, blob, has_map).await
    }

    /// For a change that has named none of its new maps for certain: removes the rows that it has written.
    pub(crate) async fn remove_new_maps(&self, blob: &BlobRef, change: &Change) {
        for id in change.new_maps() {
            // What can't be removed is left to the sweep.
            let _ = self.remove_map(blob, id).await;
        }
    }

    /// Removes all rows of a map, and nothing that they name.
    async fn remove_map(&self, blob: &BlobRef, id: [u8; 8]) -> Result<()> {
        let (table, partition) = (blob.container.table()?, blob_key::partition(&blob.name)?);
        let map = PageMapRef { id, number: u32::MAX };
        let mut walk = SegmentWalk::new(self.engine.clone(), table.clone(), blob, map, (0, u32::MAX))?;
        let mut operations = Vec::new();
        loop {
            let next = walk.next_row().await?;
            if operations.len() == state::OPERATIONS_MAX || next.is_none() && !operations.is_empty() {
                self.apply(&table, partition.clone(), std::mem::take(&mut operations)).await?;
            }
            let Some(FoundSegment { segment, number, .. }) = next else { return Ok(()) };
            operations.push(removal(PageMapRef { number, ..map }, segment)?);
        }
    }

    /// After a state of a page blob is gone: removes the rows of its map that no other state needs, and what they named. A
    /// large map is left to the sweep.
    pub(crate) async fn remove_pages(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        kept: &[&StoredBlob],
        change: &Change,
    ) -> Result<()> {
        let maps = kept.iter().filter_map(|kept| kept.pages());
        let numbers = maps.filter_map(|(other, _)| (other.id == map.id).then_some(other.number)).collect();
        let engine = self.engine.clone();
        let mut walk = SegmentWalk::new(engine, table.clone(), blob, map, (0, u32::MAX))?;
        let mut rows: Vec<FoundSegment> = Vec::new();
        for _ in 0..ROWS_REMOVED_AT_ONCE {
            let next = walk.next_row().await?;
            let is_same = next.as_ref().map(|row| row.segment) == rows.last().map(|row| row.segment);
            if !is_same && !rows.is_empty() {
                self.remove_segment_rows(table, blob, map, &numbers, std::mem::take(&mut rows), change)
                    .await?;
            }
            let Some(row) = next else { break };
            rows.push(row);
        }
        Ok(())
    }

    /// Of the rows of one segment, removes those that none of these numbers needs.
    async fn remove_segment_rows(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        numbers: &MapNumbers,
        rows: Vec<FoundSegment>,
        change: &Change,
    ) -> Result<()> {
        let partition = blob_key::partition(&blob.name)?;
        let is_needed = numbers.see(&rows.iter().map(|row| row.number).collect::<Vec<_>>(), None);
        let of = |needed: bool| {
            rows.iter().zip(&is_needed).filter(move |(_, is)| **is == needed).map(|(row, _)| row)
        };
        let operations = of(false)
            .map(|row| removal(PageMapRef { number: row.number, ..map }, row.segment))
            .collect::<std::result::Result<Vec<_>, Fault>>()?;
        let mut kept: Vec<ObjectId> = of(true).flat_map(|row| row.pages.objects()).collect();
        let mut objects: Vec<ObjectId> = of(false).flat_map(|row| row.pages.objects()).collect();
        objects.sort_unstable();
        objects.dedup();
        kept.sort_unstable();
        objects.retain(|object| kept.binary_search(object).is_err());
        for some in operations.chunks(state::OPERATIONS_MAX) {
            self.apply(table, partition.clone(), some.to_vec()).await?;
        }
        change.remove(BlobKey::of(blob), objects).await
    }
}

fn removal(map: PageMapRef, segment: u32) -> std::result::Result<RowOperation, Fault> {
    let row = page_rows::key(map, segment)?;
    Ok(RowOperation { row, condition: Condition::Anything, change: RowChange::Delete })
}
