//! Put Page and its clear, and what else changes the pages of a blob.
//!
//! The pages of each segment that are written are an object of their own, so that it is known from a segment alone which
//! objects it no longer needs.

use blob_model::limits::PAGE_BLOB_BYTES_MAX;
use blob_model::{BlobType, Checksums, Conditions, DateTime, Etag, PageRange, Refusal, SequenceNumber, Sums};
use store::{Change as RowChange, Condition, ObjectId, RowDraft, RowOperation, TableRef};

use super::page_rows::{self, FoundSegment, SegmentWalk};
use super::state::{self, Attempts, Needs};
use crate::blob_key;
use crate::blob_row::{Moves, PageMapRef, StoredBlob, StoredKind};
use crate::content::pages::{SEGMENT_BYTES, Segment, SegmentPages, segments_of};
use crate::content::{BlobKey, Change, Fresh, Keep, Written};
use crate::{BlobRef, BlobService, BodyChecks, PageWrite, PagesWritten, Request, Result, Upload, Which};

/// Segments that one transaction changes. A longer clear is several, each of which is seen when it is done.
pub(crate) const SEGMENTS_AT_ONCE: usize = 40;

/// Pages of one segment, and the object that has them; none if they are cleared.
#[derive(Clone, Debug)]
struct Edit {
    part: SegmentPages,
    object: Option<ObjectId>,
}

const NEEDS: Needs = Needs::WRITE.of(BlobType::Page);

/// What a write to pages is, and what it needs.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    write: PageWrite,
    request: &'a Request,
    needs: Needs,
}

impl Asked<'_> {
    /// The checks in the service's order; the map and the sequence number.
    fn check(
        &self,
        stored: &StoredBlob,
        now: DateTime,
    ) -> std::result::Result<(PageMapRef, SequenceNumber), Refusal> {
        self.needs.check(stored, self.request, now)?;
        let StoredKind::Page { sequence_number, map, .. } = stored.kind else {
            return Err(Refusal::BlobTypeInvalid);
        };
        self.write.sequence.check(sequence_number)?;
        self.write.range.within(stored.length)?;
        Ok((map, sequence_number))
    }
}

/// A segment before a change and after it.
struct Changed {
    segment: u32,
    before: Option<FoundSegment>,
    after: Segment,
}

impl BlobService {
    /// A map that has no pages.
    pub(crate) fn new_page_map() -> PageMapRef {
        PageMapRef { id: rand::random(), number: 0 }
    }

    /// The map of a blob after a snapshot was taken.
    pub(crate) fn after_snapshot(kind: &mut StoredKind) {
        if let StoredKind::Page { map, .. } = kind {
            map.number += 1;
        }
    }

    /// A part of a map, as it is at its number.
    pub(crate) fn segments(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        range: PageRange,
    ) -> Result<SegmentWalk> {
        // A page blob has at most 2²¹ segments.
        let segment = |address: u64| u32::try_from(address / SEGMENT_BYTES).unwrap_or(u32::MAX);
        let segments = (segment(range.start()), segment(range.last()));
        SegmentWalk::new(self.engine.clone(), table.clone(), blob, map, segments)
    }

    pub async fn put_pages(
        &self,
        blob: &BlobRef,
        write: PageWrite,
        checks: BodyChecks,
        request: &Request,
        body: &mut dyn Upload,
    ) -> Result<PagesWritten> {
        self.admit(blob)?;
        // What would be refused anyway is refused before its body is read.
        self.check_page_target(blob, write, request, NEEDS).await?;
        let (edits, sums, fresh) = self.receive_pages(blob, write.range, checks, body).await?;
        let asked = Asked { write, request, needs: NEEDS };
        let (etag, sequence_number) = self.edit_pages(blob, asked, &edits, fresh).await?;
        Ok(PagesWritten { etag, sequence_number, sums: Some(sums) })
    }

    pub(crate) async fn check_page_target(
        &self,
        blob: &BlobRef,
        write: PageWrite,
        request: &Request,
        needs: Needs,
    ) -> Result<()> {
        drop(self.gate.pass().await?);
        let stored = self.selected(&blob.container.table()?, blob, Which::Current).await?;
        Asked { write, request, needs }.check(&stored, self.clock.now())?;
        Ok(())
    }

    /// Writes pages whose content is there already. It is discarded if they are refused.
    pub(crate) async fn write_pages(
        &self,
        blob: &BlobRef,
        write: PageWrite,
        written: Written,
        request: &Request,
        needs: Needs,
    ) -> Result<PagesWritten> {
        let Written { content, sums, fresh, length } = written;
        let parts: Vec<SegmentPages> = segments_of(write.range).collect();
        let (edits, fresh) = match (parts.as_slice(), content.row_extents()) {
            ([part], [extent]) if extent.start == 0 && length == part.bytes() => {
                (vec![Edit { part: part.clone(), object: Some(extent.object) }], vec![fresh])
            }
            // An object has pages of one segment only.
            _ => {
                let pin = self.contents.pin(BlobKey::of(blob));
                let body = self.contents.reader(&content, 0..length, pin)?;
                let mut body = body.charged_to(&blob.container.account);
                let checks = BodyChecks { md5: None, crc64: None, bytes_max: u64::MAX };
                let received = self.receive_pages(blob, write.range, checks, &mut body).await;
                fresh.discard().await;
                let (edits, _, fresh) = received?;
                (edits, fresh)
            }
        };
        let asked = Asked { write, request, needs };
        let (etag, sequence_number) = self.edit_pages(blob, asked, &edits, fresh).await?;
        Ok(PagesWritten { etag, sequence_number, sums: Some(sums) })
    }

    pub async fn clear_pages(
        &self,
        blob: &BlobRef,
        write: PageWrite,
        request: &Request,
    ) -> Result<PagesWritten> {
        self.admit(blob)?;
        let table = blob.container.table()?;
        let mut rest = Some(write.range);
        let mut request = request.clone();
        loop {
            let stored = self.selected(&table, blob, Which::Current).await?;
            let asked = Asked { write, request: &request, needs: NEEDS };
            let map = asked.check(&stored, self.clock.now())?.0;
            let (edits, behind) = self.clears(&table, blob, map, rest).await?;
            rest = behind;
            let (etag, sequence_number) = self.edit_pages(blob, asked, &edits, Vec::new()).await?;
            if rest.is_none() {
                return Ok(PagesWritten { etag, sequence_number, sums: None });
            }
            // They held at the first part, which has moved the ETag.
            request.conditions = Conditions::default();
        }
    }

    /// What a clear changes: segments of the range that have pages, as many as one transaction takes, and the range behind.
    async fn clears(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        range: Option<PageRange>,
    ) -> Result<(Vec<Edit>, Option<PageRange>)> {
        let Some(range) = range else { return Ok((Vec::new(), None)) };
        let mut walk = self.segments(table, blob, map, range)?;
        let mut edits: Vec<Edit> = Vec::new();
        while let Some(found) = walk.next().await? {
            let start = u64::from(found.segment) * SEGMENT_BYTES;
            let within = PageRange::new(range.start().max(start), range.end().min(start + SEGMENT_BYTES));
            let Some(part) = within.and_then(|within| segments_of(within).next()) else { continue };
            if found.pages.ranges(part.pages.clone()).is_empty() {
                continue;
            }
            if edits.len() == SEGMENTS_AT_ONCE {
                return Ok((edits, PageRange::new(part.start(), range.end())));
            }
            edits.push(Edit { part, object: None });
        }
        Ok((edits, None))
    }

    /// Reads a body into one object for each segment of the range.
    async fn receive_pages(
        &self,
        blob: &BlobRef,
        range: PageRange,
        checks: BodyChecks,
        body: &mut dyn Upload,
    ) -> Result<(Vec<Edit>, Sums, Vec<Fresh>)> {
        let (mut edits, mut fresh) = (Vec::new(), Vec::new());
        match self.try_receive_pages(blob, range, checks, body, &mut edits, &mut fresh).await {
            Ok(sums) => Ok((edits, sums, fresh)),
            Err(error) => {
                for fresh in fresh {
                    fresh.discard().await;
                }
                Err(error)
            }
        }
    }

    async fn try_receive_pages(
        &self,
        blob: &BlobRef,
        range: PageRange,
        checks: BodyChecks,
        body: &mut dyn Upload,
        edits: &mut Vec<Edit>,
        fresh: &mut Vec<Fresh>,
    ) -> Result<Sums> {
        let account = &blob.container.account;
        let begin = |part| (part, self.contents.writer(Keep::InObject, false).charged_to(account));
        let mut checksums = Checksums::new(checks.md5.is_some());
        let mut parts = segments_of(range);
        let mut writing = parts.next().map(begin);
        let mut length = 0;
        while let Some(mut piece) = body.next().await? {
            length += piece.len() as u64;
            if length > checks.bytes_max {
                return Err(Refusal::BodyTooLarge { max: checks.bytes_max }.into());
            }
            checksums.update(&piece);
            while !piece.is_empty() {
                let Some((part, mut writer)) = writing.take() else { return Err(other_length(length)) };
                let missing = part.bytes() - writer.length();
                // Not more than the piece has, which is in memory.
                let now = missing.min(piece.len() as u64) as usize;
                writer.push(piece.split_to(now)).await?;
                if writer.length() < part.bytes() {
                    writing = Some((part, writer));
                    continue;
                }
                let written = writer.finish().await?;
                let object = written.content.row_extents().first().map(|extent| extent.object);
                edits.push(Edit { part, object });
                fresh.push(written.fresh);
                writing = parts.next().map(begin);
            }
        }
        if writing.is_some() {
            return Err(other_length(length));
        }
        let sums = checksums.finish();
        sums.check(checks.md5, checks.crc64)?;
        Ok(sums)
    }

    /// Changes pages and the blob's row, in one transaction.
    async fn edit_pages(
        &self,
        blob: &BlobRef,
        asked: Asked<'_>,
        edits: &[Edit],
        fresh: Vec<Fresh>,
    ) -> Result<(Etag, SequenceNumber)> {
        let mut change = self.contents.begin_change();
        fresh.into_iter().for_each(|fresh| change.keep(fresh));
        loop {
            match self.try_edit_pages(blob, asked, edits, &change).await {
                Ok(Some(done)) => return Ok(done),
                // Something is gone that it was about to name.
                Ok(None) => change = change.begin_again(),
                Err(error) => return Err(state::given_up(error, change).await),
            }
        }
    }

    async fn try_edit_pages(
        &self,
        blob: &BlobRef,
        asked: Asked<'_>,
        edits: &[Edit],
        change: &Change,
    ) -> Result<Option<(Etag, SequenceNumber)>> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let pin = self.contents.pin(BlobKey::of(blob));
            let mut found = self.base(&table, blob).await?.ok_or(Refusal::BlobNotFound)?;
            let stored = found.row.live().ok_or(Refusal::BlobNotFound)?;
            let now = self.clock.now();
            let (map, sequence_number) = asked.check(stored, now)?;
            let is_shared = stored.is_shared;
            let changed = self.changed(&table, blob, map, edits, change).await?;
            if !hold(map, &changed, change) {
                return Ok(None);
            }
            if let Some(stored) = &mut found.row.blob {
                stored.lease = stored.lease.after_write(now);
            }
            let row = (found.row.draft(Moves::Pages), found.version);
            let committed = self.commit_pages(&table, blob, row, map, &changed, change).await?;
            // It would wait for its own pin.
            drop(pin);
            if let Some(stamp) = committed {
                self.remove_replaced(blob, map, &changed, is_shared, change).await;
                return Ok(Some((Etag(stamp), sequence_number)));
            }
        }
    }

    /// The segments that these edits change.
    async fn changed(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        edits: &[Edit],
        change: &Change,
    ) -> Result<Vec<Changed>> {
        let mut changed = Vec::new();
        for Edit { part, object } in edits {
            let segment = part.segment;
            let engine = self.engine.clone();
            let mut walk = SegmentWalk::new(engine, table.clone(), blob, map, (segment, segment))?;
            let before = walk.next().await?;
            let mut after = before.as_ref().map(|found| found.pages.clone()).unwrap_or_default();
            match object {
                None => after.clear(part.pages.clone(), map.number),
                Some(object) => {
                    if after.is_scattered() {
                        after = self.contents.gather(BlobKey::of(blob), &after, map.number, change).await?;
                    }
                    after.write(part.pages.clone(), *object, map.number);
                }
            }
            changed.push(Changed { segment, before, after });
        }
        Ok(changed)
    }

    /// The time of the blob's new row, or `None` if its row has another version than this. Of all rows the blob's is last, so that
    /// none of them is younger.
    async fn commit_pages(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        (row, version): (RowDraft, DateTime),
        map: PageMapRef,
        changed: &[Changed],
        change: &Change,
    ) -> Result<Option<DateTime>> {
        let mut operations = Vec::new();
        for Changed { segment, before, after } in changed {
            let own = before.as_ref().filter(|before| before.number == map.number);
            let condition = own.map_or(Condition::Absent, |own| Condition::Version(own.version));
            match (own, before) {
                // Nothing is there, and nothing comes.
                (None, None) if after.is_empty() => {}
                // No snapshot has a row below this one.
                (Some(_), _) if after.is_empty() && map.number == 0 => operations.push(RowOperation {
                    row: page_rows::key(map, *segment)?,
                    condition,
                    change: RowChange::Delete,
                }),
                _ => operations.push(page_rows::put(map, *segment, condition, after)?),
            }
        }
        operations.push(RowOperation {
            row: blob_key::row(blob_model::SnapshotTime::BASE)?,
            condition: Condition::Version(version),
            change: RowChange::Put(row),
        });
        let stamps = self.commit(table, blob_key::partition(&blob.name)?, operations, change).await?;
        Ok(stamps.and_then(|stamps| stamps.last().copied()))
    }

    /// After a commit: what only the replaced rows needed.
    async fn remove_replaced(
        &self,
        blob: &BlobRef,
        map: PageMapRef,
        changed: &[Changed],
        is_shared: bool,
        change: &Change,
    ) {
        if is_shared {
            return;
        }
        let own = |changed: &Changed| {
            let before = changed.before.as_ref().filter(|before| before.number == map.number);
            before.map(|before| before.pages.objects_replaced_by(&changed.after, map.number))
        };
        let replaced: Vec<ObjectId> = changed.iter().filter_map(own).flatten().collect();
        // What can't be removed is left to the sweep.
        let _ = change.remove(BlobKey::of(blob), replaced).await;
    }

    /// Clears what lies behind the end of a page blob, which nobody can see. When a blob gets shorter, pages are left there;
    /// before it gets longer, they must go.
    pub(crate) async fn trim_pages(&self, blob: &BlobRef) -> Result<()> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        self.trim_in_turn(&table, blob).await.map(drop)
    }

    /// The version of the blob's row at which nothing was left there; `None` if it is no page blob.
    pub(crate) async fn trim_in_turn(&self, table: &TableRef, blob: &BlobRef) -> Result<Option<DateTime>> {
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let Some(found) = self.base(table, blob).await? else { return Ok(None) };
            let Some(stored) = found.row.live() else { return Ok(None) };
            let StoredKind::Page { map, .. } = stored.kind else { return Ok(None) };
            let change = self.contents.begin_change();
            let behind = PageRange::new(stored.length, PAGE_BLOB_BYTES_MAX);
            let (edits, _) = self.clears(table, blob, map, behind).await?;
            if edits.is_empty() {
                return Ok(Some(found.version));
            }
            let changed = self.changed(table, blob, map, &edits, &change).await?;
            if !hold(map, &changed, &change) {
                continue;
            }
            let row = (found.row.draft(Moves::Nothing), found.version);
            let committed = self.commit_pages(table, blob, row, map, &changed, &change).await?;
            if committed.is_some() {
                self.remove_replaced(blob, map, &changed, stored.is_shared, &change).await;
                attempts = Attempts::default();
            }
        }
    }
}

/// A segment's first row at a number names what the row before it names.
fn hold(map: PageMapRef, changed: &[Changed], change: &Change) -> bool {
    changed.iter().all(|Changed { before, after, .. }| {
        let is_own = before.as_ref().is_some_and(|before| before.number == map.number);
        is_own || change.hold_objects(&after.objects())
    })
}

/// A body that has not as many bytes as its range.
fn other_length(length: u64) -> crate::Error {
    Refusal::HeaderInvalid { name: "Content-Length", value: length.to_string() }.into()
}
