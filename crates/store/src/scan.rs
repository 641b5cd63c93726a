//! Ordered reading of key ranges under a budget.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::KeyRange;

use crate::encoding::key;
use crate::encoding::raw::RawRow;
use crate::{Fault, Page, StoredRef};

/// What to read, in what bounds. Ranges are in order and do not overlap.
#[derive(Clone)]
pub struct Scan {
    pub ranges: Vec<KeyRange>,
    pub budget: Budget,
    /// Which of the rows found to give back; all, if there is none.
    pub filter: Option<Arc<dyn RowFilter>>,
    /// Whether the scan lasts as long as its page: so that those who write answers from pages never have more of them
    /// than there may be scans. Who scans again before letting go of the page would wait for itself.
    pub lasts: bool,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("ranges", &self.ranges)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// A scan ends at the first of these, with a place to go on from.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rows given back.
    pub rows: usize,
    /// Stored bytes given back. One row is given back even if it alone is larger.
    pub bytes: usize,
    pub time: Duration,
}

/// Runs where the rows are, before they are copied or even checked. A fault ends the scan.
pub trait RowFilter: Send + Sync {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault>;

    /// What looking at one row costs, where one is the cost of stepping over it.
    fn work(&self) -> u64 {
        1
    }
}

/// A row in front of a filter. Nothing of it has been read yet.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    key: &'a [u8],
    pub row: RawRow<'a>,
}

impl<'a> Candidate<'a> {
    /// Partition key and row key.
    pub fn keys(self) -> Result<(Cow<'a, str>, Cow<'a, str>), Fault> {
        key::decode(self.key)
    }

    /// Says of a fault which row it is about.
    #[cold]
    fn named(self, fault: Fault) -> Fault {
        match self.keys() {
            Ok((partition, row)) => fault.about(format!("PartitionKey {partition:?}, RowKey {row:?}")),
            // The fault is about the key itself, and says so.
            Err(_) => fault,
        }
    }
}

/// Fills a page from rows in key order; the part of a scan that is the same in every engine.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    scan: &'a Scan,
    page: Page,
    bytes: usize,
    deadline: Instant,
    /// Since the clock was looked at, in small rows stepped over.
    work: u64,
}

/// Looking at the clock costs more than looking at a small row, so it is asked once in so much work.
const WORK_PER_CLOCK: u64 = 64;
/// A range is looked for in an index, and a large row is read block by block.
const WORK_PER_RANGE: u64 = 16;
const BYTES_PER_WORK: usize = 1024;

impl<'a> PageBuilder<'a> {
    pub fn new(scan: &'a Scan) -> Self {
        Self::until(scan, Instant::now() + scan.budget.time)
    }

    fn until(scan: &'a Scan, deadline: Instant) -> Self {
        Self { scan, page: Page::default(), bytes: 0, deadline, work: 0 }
    }

    /// An empty page of the same scan, to be filled further on while this one is being filled.
    pub fn ahead(&self) -> Self {
        Self::until(self.scan, self.deadline)
    }

    /// Takes in a page that was filled from all rows between this one's last and some later place. False, and
    /// nothing is changed, if its rows do not fit: then only reading them again tells which is the last to fit.
    ///
    /// A page that becomes exactly full counts as one that does not fit, because the row after its last one,
    /// kept or not, is where the next page has to start.
    pub fn absorb(&mut self, ahead: Self) -> bool {
        let entities = self.page.entities.len() + ahead.page.entities.len();
        let bytes = self.bytes + ahead.bytes;
        if entities >= self.scan.budget.rows || bytes >= self.scan.budget.bytes {
            return false;
        }
        self.bytes = bytes;
        self.page.entities.append(ahead.page.entities);
        // There is one only if its time had run out, and then ours has too.
        self.page.next = ahead.page.next;
        self.page.examined += ahead.page.examined;
        self.page.kibibytes += ahead.page.kibibytes;
        true
    }

    /// Looks at the next row; false once the page is complete, with this row as the place to go on from.
    #[inline]
    pub fn offer(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        if self.is_full() || (self.page.examined > 0 && self.is_late()) {
            self.page.next = Some(key::decode_key(key)?);
            return Ok(false);
        }
        self.page.examined += 1;
        self.work += self.scan.filter.as_ref().map_or(1, |filter| filter.work());
        self.work += (value.len() / BYTES_PER_WORK) as u64;
        self.page.kibibytes += value.len().div_ceil(1024).max(1) as u64;
        let candidate = Candidate { key, row: RawRow::new(value) };
        if let Some(filter) = &self.scan.filter
            && !filter.keep(candidate).map_err(|fault| candidate.named(fault))?
        {
            return Ok(true);
        }
        self.keep(candidate)?;
        Ok(true)
    }

    fn keep(&mut self, candidate: Candidate<'_>) -> Result<(), Fault> {
        let (partition, row_key) = candidate.keys()?;
        let row = candidate.row;
        self.bytes += candidate.key.len() + row.bytes().len();
        self.page.entities.push(StoredRef { partition: &partition, row_key: &row_key, row });
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.page.entities.len() >= self.scan.budget.rows
            || (self.bytes >= self.scan.budget.bytes && !self.page.entities.is_empty())
    }

    /// Whether so much was done since the clock was looked at that it is time to look again.
    pub fn is_clock_due(&self) -> bool {
        self.work >= WORK_PER_CLOCK
    }

    /// Asked of a row never before the first one, so that even a scan without time gets on.
    fn is_late(&mut self) -> bool {
        if !self.is_clock_due() {
            return false;
        }
        self.work = 0;
        Instant::now() >= self.deadline
    }

    /// Whether there is time for another range. To be asked before every one but the first.
    pub fn has_time_for_a_range(&mut self) -> bool {
        self.work += WORK_PER_RANGE;
        !self.is_late()
    }

    /// Ends the page at one of the next rows, as if its time were over.
    pub fn cut_short(&mut self) {
        self.deadline = self.deadline.min(Instant::now());
        self.work = WORK_PER_CLOCK;
    }

    /// Ends the page here: nothing from this place on was looked at.
    pub fn end_before(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.page.next = Some(key::decode_key(key)?);
        Ok(())
    }

    /// Whether a place to go on from has been found.
    pub fn is_complete(&self) -> bool {
        self.page.next.is_some()
    }

    /// Rows looked at up to now.
    pub fn examined(&self) -> u64 {
        self.page.examined
    }

    pub fn finish(self) -> Page {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DateTime, EntityKey, ValueRef};

    /// The stored bytes of a key and of its row.
    fn entity(n: i32) -> (Vec<u8>, Vec<u8>) {
        let key = EntityKey::parse("p", &n.to_string()).unwrap();
        let row = crate::RowDraft::new([("N", ValueRef::Int32(n))].into_iter()).stamp(DateTime::MIN_STORED);
        (key::encode(&key), row.as_bytes().to_vec())
    }

    fn offer(page: &mut PageBuilder<'_>, rows: std::ops::Range<i32>) {
        for n in rows {
            let (key, row) = entity(n);
            assert!(page.offer(&key, &row).unwrap());
        }
    }

    #[test]
    fn a_page_takes_in_another_only_if_it_stays_short_of_full() {
        let (key, row) = entity(0);
        let row_bytes = key.len() + row.len();
        for (rows, bytes, taken) in [
            (4, usize::MAX, true),
            (3, usize::MAX, false),
            (2, usize::MAX, false),
            (100, 3 * row_bytes + 1, true),
            (100, 3 * row_bytes, false),
        ] {
            let budget = Budget { rows, bytes, time: Duration::from_secs(60) };
            let scan = Scan { ranges: vec![], budget, filter: None, lasts: false };
            let mut page = PageBuilder::new(&scan);
            let mut ahead = page.ahead();
            offer(&mut page, 0..1);
            offer(&mut ahead, 1..3);
            assert_eq!(page.absorb(ahead), taken, "{budget:?}");
            let page = page.finish();
            let expected = if taken { 3 } else { 1 };
            assert_eq!(
                (page.entities.len(), page.examined, page.kibibytes),
                (expected, expected as u64, expected as u64)
            );
        }
    }
}
