//! What is known of pages: Get Page Ranges, and reading them.

use std::collections::VecDeque;
use std::ops::Range;

use async_trait::async_trait;
use blob_model::limits::{PAGE_BYTES, PAGE_RANGES_MAX};
use blob_model::{BlobType, PageRange, Refusal, SnapshotTime};
use store::Fault;

use super::page_rows::FoundSegment;
use super::state::{Attempts, Needs, Selected};
use super::state_walk::StateWalk;
use crate::blob_row::PageMapRef;
use crate::content::pages::{
    ListedPages, PageChange, PagePart, SEGMENT_BYTES, SEGMENT_PAGES, SegmentPages, list_pages,
};
use crate::content::{ContentReader, Piece, PieceSource, ReadPin};
use crate::{BlobRef, BlobService, Error, FoundPages, PageQuery, PageRanges, Request, Result, Which};

/// Segments whose rows are read before the first byte is: a download of so much sees one state of the blob, whatever is
/// written meanwhile.
const SEGMENTS_AHEAD: usize = 16;
/// Fewer, if their pages are scattered.
const PIECES_AHEAD: usize = 16 * 1024;
/// Walks of Get Page Ranges that a write may make vain. The writers of this server wait for the next one: a blob that is always
/// written to would never be walked through to its end.
const WALKS_BESIDE_WRITERS: usize = 2;

impl BlobService {
    pub async fn page_ranges(
        &self,
        blob: &BlobRef,
        query: PageQuery,
        request: &Request,
    ) -> Result<PageRanges> {
        self.admit(blob)?;
        for _ in 0..WALKS_BESIDE_WRITERS {
            if let Some(ranges) = self.try_page_ranges(blob, &query, request).await? {
                return Ok(ranges);
            }
        }
        let mut attempts = Attempts::of_read();
        loop {
            attempts.next()?;
            // One walk, which reads no more than a trim does in its turn. Only other servers write meanwhile.
            let _walker = self.walkers.take(blob).await;
            let _turn = self.turns.take(blob).await;
            if let Some(ranges) = self.try_page_ranges(blob, &query, request).await? {
                return Ok(ranges);
            }
        }
    }

    /// `None` if the blob has changed meanwhile.
    async fn try_page_ranges(
        &self,
        blob: &BlobRef,
        query: &PageQuery,
        request: &Request,
    ) -> Result<Option<PageRanges>> {
        let table = blob.container.table()?;
        let selected = self.selected_state(&table, blob, query.which).await?;
        let stored = &selected.stored;
        Needs::READ.of(BlobType::Page).check(stored, request, self.clock.now())?;
        let (map, _) = stored.pages().ok_or(Refusal::BlobTypeInvalid)?;
        let before = match query.previous {
            Some(previous) => Some(self.previous_map(blob, query, previous, map).await?),
            None => None,
        };
        let (etag, length) = (stored.etag(), stored.length);
        let mut answer = PageRanges { ranges: Vec::new(), next: None, etag, length };
        let asked = PageRange::of_read(query.range, length)?;
        // From where the page of the answer before has ended.
        let range = asked.and_then(|range| PageRange::new(range.start().max(query.from), range.end()));
        let Some(range) = range else { return Ok(Some(answer)) };
        let limit = query.limit.unwrap_or(PAGE_RANGES_MAX).min(PAGE_RANGES_MAX);

        let mut walk = self.state_walk(&table, blob, &selected, range)?;
        let mut list: Vec<ListedPages> = Vec::new();
        // One more than asked for tells where the next page begins; another one may make it longer.
        while list.len() <= limit + 1 {
            let next = walk.next().await;
            if walk.has_changed() {
                return Ok(None);
            }
            let Some(FoundSegment { segment, number, pages, .. }) = next? else { break };
            let within = within(range, segment);
            match before {
                None => {
                    for range in pages.ranges(within) {
                        list_pages(&mut list, segment, &range, PageChange::Written);
                    }
                }
                // A row that the earlier state sees too.
                Some(before) if number <= before.number => {}
                Some(before) => {
                    for (range, change) in pages.changes_since(before.number, within) {
                        list_pages(&mut list, segment, &range, change);
                    }
                }
            }
        }
        let checked = walk.check().await;
        if walk.has_changed() {
            return Ok(None);
        }
        checked?;
        answer.next = list.get(limit).map(|next| next.start);
        list.truncate(limit);
        let listed = list.iter().map(|listed| {
            let range = PageRange::new(listed.start, listed.end);
            let range = range.ok_or_else(|| Fault::bug("pages that no page blob has").about(blob))?;
            Ok(match listed.change {
                PageChange::Written => FoundPages::Written(range),
                PageChange::Cleared => FoundPages::Cleared(range),
            })
        });
        answer.ranges = listed.collect::<std::result::Result<_, Fault>>()?;
        Ok(Some(answer))
    }

    /// The map that a difference is from.
    async fn previous_map(
        &self,
        blob: &BlobRef,
        query: &PageQuery,
        previous: SnapshotTime,
        map: PageMapRef,
    ) -> Result<PageMapRef> {
        if let Which::Snapshot(time) = query.which
            && previous > time
        {
            return Err(Refusal::PreviousSnapshotNewer.into());
        }
        let table = blob.container.table()?;
        let stored = match self.selected(&table, blob, Which::Snapshot(previous)).await {
            Err(Error::Refused(Refusal::BlobNotFound)) => {
                return Err(Refusal::PreviousSnapshotNotFound.into());
            }
            stored => stored?,
        };
        match stored.pages() {
            Some((before, _)) if before.id == map.id => Ok(before),
            _ => Err(Refusal::BlobOverwritten.into()),
        }
    }

    /// These bytes of a page blob. Pages that are not there are zeros. `None` if the blob has changed since its row was read.
    pub(crate) async fn page_reader(
        &self,
        blob: &BlobRef,
        selected: &Selected,
        range: Range<u64>,
        pin: ReadPin,
    ) -> Result<Option<ContentReader>> {
        let (first, last) = (range.start / PAGE_BYTES, range.end.div_ceil(PAGE_BYTES));
        let Some(pages) = PageRange::new(first * PAGE_BYTES, last * PAGE_BYTES) else {
            return Ok(Some(self.contents.reader_of(VecDeque::new(), None, pin)));
        };
        let table = blob.container.table()?;
        let walk = self.state_walk(&table, blob, selected, pages)?;
        let walk = Peeked { walk, next: None };
        let mut source = PageSource { walk, at: range.start, end: range.end };
        let mut pieces = VecDeque::new();
        for _ in 0..SEGMENTS_AHEAD {
            if pieces.len() > PIECES_AHEAD {
                break;
            }
            let next = source.next().await;
            if source.walk.walk.has_changed() {
                return Ok(None);
            }
            let Some(some) = next.map_err(|fault| fault.about(blob))? else { break };
            pieces.extend(some);
        }
        Ok(Some(self.contents.reader_of(pieces, Some(Box::new(source)), pin)))
    }
}

/// The pages of a segment that lie in a range.
fn within(range: PageRange, segment: u32) -> Range<u32> {
    let start = u64::from(segment) * SEGMENT_BYTES;
    let page = |address: u64| {
        let within = address.clamp(start, start + SEGMENT_BYTES) - start;
        u32::try_from(within / PAGE_BYTES).unwrap_or(SEGMENT_PAGES)
    };
    page(range.start())..page(range.end())
}

/// A walk whose next segment can be looked at.
#[derive(Debug)]
struct Peeked {
    walk: StateWalk,
    next: Option<FoundSegment>,
}

impl Peeked {
    async fn segment(&mut self) -> Result<Option<u32>> {
        if self.next.is_none() {
            self.next = self.walk.next().await?;
        }
        Ok(self.next.as_ref().map(|next| next.segment))
    }

    /// The next segment, if it is this one.
    async fn take(&mut self, segment: u32) -> Result<Option<FoundSegment>> {
        self.segment().await?;
        Ok(self.next.take_if(|next| next.segment == segment))
    }
}

/// What a range of a page blob is made of, segment by segment.
#[derive(Debug)]
struct PageSource {
    walk: Peeked,
    at: u64,
    end: u64,
}

#[async_trait]
impl PieceSource for PageSource {
    async fn next(&mut self) -> std::result::Result<Option<VecDeque<Piece>>, Fault> {
        if self.at >= self.end {
            return Ok(None);
        }
        let here =
            u32::try_from(self.at / SEGMENT_BYTES).map_err(|_| Fault::bug("a page blob is too long"))?;
        let next = self.walk.segment().await.map_err(fault_of)?;
        if next != Some(here) {
            // All that is before the next segment is empty.
            let until = next.map_or(self.end, |next| (u64::from(next) * SEGMENT_BYTES).min(self.end));
            let empty = until - self.at;
            self.at = until;
            return Ok(Some([Piece::Zeros(empty)].into()));
        }
        let found = self.walk.take(here).await.map_err(fault_of)?;
        let found = found.ok_or_else(|| Fault::bug("a segment that was seen is not there"))?;
        let until = ((u64::from(here) + 1) * SEGMENT_BYTES).min(self.end);
        let pages = within_bytes(here, self.at, until);
        let mut pieces = VecDeque::new();
        let mut begin = SegmentPages { segment: here, pages: pages.clone() }.start();
        for PagePart { pages, place } in found.pages.parts(pages) {
            let end = begin + u64::from(pages) * PAGE_BYTES;
            // The first and the last page may be asked for in part.
            let (from, to) = (begin.max(self.at), end.min(until));
            pieces.push_back(match place {
                None => Piece::Zeros(to - from),
                Some((object, start)) => {
                    let first = u64::from(start) * PAGE_BYTES + (from - begin);
                    Piece::Object { object, bytes: first..first + (to - from), crc64: None }
                }
            });
            begin = end;
        }
        self.at = until;
        if self.at >= self.end {
            // Before the last bytes are given out: what was read is of one state only if the walk gets to its end.
            self.walk.segment().await.map_err(fault_of)?;
        }
        Ok(Some(pieces))
    }
}

/// The pages that have these bytes of a segment.
fn within_bytes(segment: u32, from: u64, to: u64) -> Range<u32> {
    let start = u64::from(segment) * SEGMENT_BYTES;
    let first = (from - start) / PAGE_BYTES;
    let end = (to - start).div_ceil(PAGE_BYTES);
    // Both are at most the pages of a segment.
    first as u32..end as u32
}

/// A reader can only tell faults: its answer has begun.
fn fault_of(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => fault,
        Error::Refused(refusal) => Fault::busy("a page blob could not be read to its end").because(refusal),
    }
}
