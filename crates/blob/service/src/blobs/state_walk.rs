//! The map of one state of a page blob, although its rows are read later than the blob's row, and others write meanwhile.
//!
//! Of all rows that a write changes the blob's is the youngest. So a segment that is not younger than the blob's row is as that
//! row's state has it. A segment that is gone has no age: where one is missing, or where an earlier row stands that a later one
//! may have hidden, the state is looked at once more at the end. As long as the blob, or a snapshot of it, has that map and the
//! time of the last change of its pages, nothing of the map was removed that can be seen. The ETag may be another one by then:
//! it also moves where pages stay as they are.

use blob_model::{DateTime, PageRange, Refusal, SnapshotTime};
use store::{Fault, TableRef};

use super::page_rows::{FoundSegment, SegmentWalk};
use super::state::Selected;
use crate::blob_row::{PageMapRef, StoredBlob};
use crate::content::pages::SEGMENT_BYTES;
use crate::{BlobRef, BlobService, Error, Result};

/// A walk through segments of a state. It ends with a fault if the state has changed since its row was read.
#[derive(Debug)]
pub struct StateWalk {
    walk: SegmentWalk,
    service: BlobService,
    table: TableRef,
    blob: BlobRef,
    time: SnapshotTime,
    version: DateTime,
    map: PageMapRef,
    /// When its pages were changed last.
    changed: DateTime,
    /// The next segment, if none is missing before it.
    next: u64,
    /// Behind the last one.
    end: u64,
    /// What was there before may be gone.
    is_doubtful: bool,
    is_at_end: bool,
    has_changed: bool,
}

impl BlobService {
    /// The segments that have these pages.
    pub(crate) fn state_walk(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        selected: &Selected,
        range: PageRange,
    ) -> Result<StateWalk> {
        let (map, changed) = selected.stored.pages().ok_or(Refusal::BlobTypeInvalid)?;
        Ok(StateWalk {
            walk: self.segments(table, blob, map, range)?,
            service: self.clone(),
            table: table.clone(),
            blob: blob.clone(),
            time: selected.time,
            version: selected.version,
            map,
            changed,
            next: range.start() / SEGMENT_BYTES,
            end: range.last() / SEGMENT_BYTES + 1,
            is_doubtful: false,
            is_at_end: false,
            has_changed: false,
        })
    }
}

impl StateWalk {
    /// The next segment that is there. When it has told the end, all that it has told is of the state.
    pub async fn next(&mut self) -> Result<Option<FoundSegment>> {
        if self.is_at_end {
            return Ok(None);
        }
        let found = self.walk.next().await?;
        let here = found.as_ref().map_or(self.end, |found| u64::from(found.segment));
        let is_last_row = found.as_ref().is_none_or(|found| found.number == self.map.number);
        self.is_doubtful |= here != self.next || !is_last_row;
        self.next = here + 1;
        // What a snapshot sees is never written again.
        if self.time == SnapshotTime::BASE && found.as_ref().is_some_and(|found| found.version > self.version)
        {
            return Err(self.changed());
        }
        if found.is_none() {
            self.is_at_end = true;
            self.check().await?;
        }
        Ok(found)
    }

    /// For who ends before the end: that all that was told is of the state.
    pub async fn check(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_doubtful) && !self.is_kept().await? {
            return Err(self.changed());
        }
        Ok(())
    }

    fn changed(&mut self) -> Error {
        self.has_changed = true;
        Fault::busy("the blob was written to while it was read").into()
    }

    /// Whether the fault was that: then who has told nothing yet can begin again.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Whether all rows are there that the state had. Its rows go when its pages are cleared or cut off, which is a change of
    /// pages, and when no state has its map any more.
    async fn is_kept(&self) -> Result<bool> {
        let is_like = |stored: &StoredBlob| stored.pages() == Some((self.map, self.changed));
        let now = self.service.state(&self.table, &self.blob, self.time).await?;
        let now = now.and_then(|now| now.row.blob);
        let map = now.as_ref().and_then(StoredBlob::pages).map(|(map, _)| map);
        if map == Some(self.map) || self.time != SnapshotTime::BASE {
            return Ok(now.as_ref().is_some_and(is_like));
        }
        // A snapshot that was taken since, or what was kept when the blob was replaced.
        self.service.has_snapshot(&self.table, &self.blob, is_like).await
    }
}
