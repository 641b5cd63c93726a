//! The rows of a page blob's map: where they are, and how they are read.
//!
//! A segment's row is in the blob's partition, behind all its states: `p`, the map's name, the segment and the number, in
//! hexadecimal. A new page blob has a map of another name, so that it never sees the pages of an old one.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use blob_model::DateTime;
use model::{Cut, Key, KeyRange, ValueRef};
use store::{Change, Condition, Engine, Fault, RowDraft, RowOperation, Scan, TableRef};

use super::state::budget;
use crate::blob_key;
use crate::blob_row::PageMapRef;
use crate::content::SEGMENT;
use crate::content::pages::Segment;
use crate::{BlobRef, Result};

const PAGES: char = 'p';
/// Rows that are read at once. Few are long.
const ROWS: usize = 64;

/// A segment's row.
#[derive(Clone, Debug)]
pub struct FoundSegment {
    pub segment: u32,
    pub number: u32,
    pub version: DateTime,
    pub pages: Segment,
}

/// All rows of a part of a map, in order of segment and number; those of a state of the map, or all that there are.
pub struct SegmentWalk {
    engine: Arc<dyn Engine>,
    table: TableRef,
    blob: BlobRef,
    map: PageMapRef,
    /// What is not read yet.
    rest: Option<KeyRange>,
    rows: VecDeque<FoundSegment>,
    /// The last row that was looked at, which the next one may stand above.
    last: Option<FoundSegment>,
}

impl SegmentWalk {
    /// From one segment up to another, both included, as the map is at its number.
    pub fn new(
        engine: Arc<dyn Engine>,
        table: TableRef,
        blob: &BlobRef,
        map: PageMapRef,
        segments: (u32, u32),
    ) -> Result<Self> {
        let partition = blob_key::partition(&blob.name)?;
        let cut = |segment, number| row_text(map.id, segment, number);
        let rest = KeyRange {
            start: Cut::before(partition.as_str(), &cut(segments.0, 0)),
            end: Cut::after(partition.as_str(), &cut(segments.1, u32::MAX)),
        };
        let (rows, last) = (VecDeque::new(), None);
        Ok(Self { engine, table, blob: blob.clone(), map, rest: Some(rest), rows, last })
    }

    /// The next segment that is there, as the map has it at its number.
    pub async fn next(&mut self) -> Result<Option<FoundSegment>> {
        loop {
            let Some(row) = self.next_row().await? else { return Ok(self.last.take()) };
            if row.number > self.map.number {
                continue;
            }
            match self.last.replace(row) {
                Some(last) if self.last.as_ref().is_some_and(|row| row.segment != last.segment) => {
                    return Ok(Some(last));
                }
                _ => {}
            }
        }
    }

    /// The next row, whatever its number.
    pub async fn next_row(&mut self) -> Result<Option<FoundSegment>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(row));
            }
            let Some(range) = self.rest.take() else { return Ok(None) };
            let scan = Scan { ranges: vec![range.clone()], budget: budget(ROWS), filter: None, lasts: false };
            let page = self.engine.scan(&self.table, scan).await?;
            for entity in page.entities.iter() {
                let row = read(entity.row_key, entity.row).map_err(|fault| fault.about(&self.blob))?;
                self.rows.push_back(row);
            }
            if let Some(next) = page.next {
                let start = Cut::before(next.partition.as_str(), next.row.as_str());
                self.rest = Some(KeyRange { start, ..range });
            }
        }
    }
}

impl std::fmt::Debug for SegmentWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentWalk")
            .field("blob", &self.blob)
            .field("map", &self.map)
            .finish_non_exhaustive()
    }
}

fn row_text(map: [u8; 8], segment: u32, number: u32) -> String {
    let mut text = String::from(PAGES);
    // Writing to a string can't fail.
    let _ = write!(text, "{:016x}{segment:08x}{number:08x}", u64::from_be_bytes(map));
    text
}

/// Map, segment and number, if it is a row of a map.
pub fn read_key(row_key: &str) -> Option<([u8; 8], u32, u32)> {
    let digits = row_key.strip_prefix(PAGES)?;
    let part = |from: usize, to: usize| digits.get(from..to);
    let map = u64::from_str_radix(part(0, 16)?, 16).ok()?;
    let segment = u32::from_str_radix(part(16, 24)?, 16).ok()?;
    let number = u32::from_str_radix(part(24, 32)?, 16).ok()?;
    // No other spelling is read.
    (row_text(map.to_be_bytes(), segment, number) == row_key).then_some((map.to_be_bytes(), segment, number))
}

pub fn read(row_key: &str, row: store::RawRow<'_>) -> std::result::Result<FoundSegment, Fault> {
    let unlike = || Fault::damaged("a part of a page blob's map is not as this program writes it");
    let (_, segment, number) = read_key(row_key).ok_or_else(unlike)?;
    let Some(ValueRef::Binary(stored)) = row.value_of(SEGMENT.as_bytes())? else { return Err(unlike()) };
    Ok(FoundSegment { segment, number, version: row.timestamp()?, pages: Segment::read(stored)? })
}

pub fn key(map: PageMapRef, segment: u32) -> std::result::Result<Key, Fault> {
    blob_key::key_of(&row_text(map.id, segment, map.number))
}

/// Writes a segment at the map's number.
pub fn put(
    map: PageMapRef,
    segment: u32,
    condition: Condition,
    pages: &Segment,
) -> std::result::Result<RowOperation, Fault> {
    let stored = pages.to_bytes();
    let draft = RowDraft::new([(SEGMENT, ValueRef::Binary(&stored))].into_iter());
    Ok(RowOperation { row: key(map, segment)?, condition, change: Change::Put(draft) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back_in_order() {
        let map = [0, 0, 0, 0, 0, 0, 1, 0xff];
        let text = row_text(map, 0x1f_ffff, 7);
        assert_eq!(text, "p00000000000001ff001fffff00000007");
        assert_eq!(read_key(&text), Some((map, 0x1f_ffff, 7)));
        assert!(row_text(map, 1, u32::MAX) < row_text(map, 2, 0));
        for other in
            ["", "p", "q00000000000001ff001fffff00000007", "p00000000000001FF001fffff00000007", &text[1..]]
        {
            assert_eq!(read_key(other), None, "{other}");
        }
        assert_eq!(read_key(&format!("{text}0")), None);
        assert_eq!(read_key("p+0000000000001ff001fffff00000007"), None);
        // Behind all states of the blob.
        assert!(text > blob_model::SnapshotTime::BASE.to_string());
    }
}
