//! The map of a page blob: where its pages are.
//!
//! The map is in segments of 4 MiB of addresses; a segment without pages is not there. A segment says in which object each run
//! of pages is. Pure: whoever reads and writes rows is elsewhere.
//!
//! A map has a *number*, 0 at first. A snapshot keeps the number, and the map goes on with the next one. A segment's row has
//! the number at which it was written; whoever looks at the map with number n takes the last row that is not above n. So the
//! first write after a snapshot leaves the old row, and every other replaces its own.

mod segment;
mod segment_bytes;
#[cfg(test)]
mod tests;

use std::ops::Range;

use blob_model::PageRange;
use blob_model::limits::PAGE_BYTES;

pub use segment::{Clearing, PageChange, PagePart, Run, Segment};

/// Pages of a segment.
pub const SEGMENT_PAGES: u32 = 8192;
/// Addresses of a segment.
pub const SEGMENT_BYTES: u64 = SEGMENT_PAGES as u64 * PAGE_BYTES;
/// A segment with more objects than this is copied into one. So its row stays below 100 KiB.
pub const SEGMENT_OBJECTS_MAX: usize = 256;

/// Pages of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPages {
    pub segment: u32,
    pub pages: Range<u32>,
}

impl SegmentPages {
    /// The first of its bytes in the blob.
    pub fn start(&self) -> u64 {
        u64::from(self.segment) * SEGMENT_BYTES + u64::from(self.pages.start) * PAGE_BYTES
    }

    pub fn bytes(&self) -> u64 {
        u64::from(self.pages.end - self.pages.start) * PAGE_BYTES
    }
}

/// A range of pages, segment by segment.
pub fn segments_of(range: PageRange) -> impl Iterator<Item = SegmentPages> {
    let mut at = range.start();
    std::iter::from_fn(move || {
        if at >= range.end() {
            return None;
        }
        let segment = at / SEGMENT_BYTES;
        let end = range.end().min((segment + 1) * SEGMENT_BYTES);
        let page = |address: u64| ((address - segment * SEGMENT_BYTES) / PAGE_BYTES) as u32;
        // A page blob has at most 2²¹ segments.
        let part = SegmentPages { segment: u32::try_from(segment).ok()?, pages: page(at)..page(end) };
        at = end;
        Some(part)
    })
}

/// A part of a list of page ranges: a page blob's address range, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPages {
    pub start: u64,
    pub end: u64,
    pub change: PageChange,
}

/// Adds what a segment has to a list, and joins it with the range before if that is of the same kind.
pub fn list_pages(list: &mut Vec<ListedPages>, segment: u32, pages: &Range<u32>, change: PageChange) {
    let pages = SegmentPages { segment, pages: pages.clone() };
    let (start, end) = (pages.start(), pages.start() + pages.bytes());
    match list.last_mut() {
        Some(last) if last.end == start && last.change == change => last.end = end,
        _ => list.push(ListedPages { start, end, change }),
    }
}
