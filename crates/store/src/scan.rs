//! Ordered reading of key ranges under a budget.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::KeyRange;

use crate::encoding::key;
use crate::encoding::raw::RawRow;
use crate::{Fault, Page, StoredRef};

/// What to read, and how much. Ranges are in order and do not overlap.
#[derive(Clone)]
pub struct Scan {
    pub ranges: Vec<KeyRange>,
    pub budget: Budget,
    /// Selects the rows to return; without a filter, all rows.
    pub filter: Option<Arc<dyn RowFilter>>,
    /// Whether the scan keeps its turn as long as its page lives, so that there are never more pages than scans. A
    /// caller that scans again before it drops the page could wait for itself.
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

/// A scan ends at the first of these limits, with a place to continue from.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rows returned.
    pub rows: usize,
    /// Stored bytes returned. The first row is returned even if it is larger.
    pub bytes: usize,
    pub time: Duration,
    /// Rows examined, also those that the filter drops; `u64::MAX` for no limit.
    pub examined: u64,
}

/// Runs on stored rows before they are copied or checked. A fault ends the scan.
pub trait RowFilter: Send + Sync {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault>;

    /// The cost of checking one row; 1 is the cost of stepping over it.
    fn work(&self) -> u64 {
        1
    }

    /// The names of the properties that are needed of the rows that it keeps, at most `RawRow::FEW`; `None` for all of
    /// them. Only these are copied into the page.
    fn needed(&self) -> Option<&[Box<[u8]>]> {
        None
    }

    /// Whether there may be rows that it does not keep.
    fn may_drop(&self) -> bool {
        true
    }
}

/// A row for a filter to check. Nothing of it is read yet.
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

    /// Adds the row to a fault.
    #[cold]
    fn named(self, fault: Fault) -> Fault {
        match self.keys() {
            Ok((partition, row)) => fault.about(format!("PartitionKey {partition:?}, RowKey {row:?}")),
            // The key itself is damaged, and the fault says so.
            Err(_) => fault,
        }
    }
}

/// Fills a page from rows in key order. All engines use it.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    scan: &'a Scan,
    page: Page,
    bytes: usize,
    deadline: Instant,
    /// The work since the clock was last read; 1 is a small row stepped over.
    work: u64,
    /// What each row adds to it.
    row_work: u64,
    /// The properties to copy; `None` for all.
    needed: Option<&'a [Box<[u8]>]>,
}

/// The work between two readings of the clock, because reading the clock costs more than a small row.
const WORK_PER_CLOCK: u64 = 64;
/// The work of a range, which takes a seek; and the bytes of a large row that count as 1.
const WORK_PER_RANGE: u64 = 16;
const BYTES_PER_WORK: usize = 1024;

impl<'a> PageBuilder<'a> {
    pub fn new(scan: &'a Scan) -> Self {
        Self::until(scan, Instant::now() + scan.budget.time)
    }

    fn until(scan: &'a Scan, deadline: Instant) -> Self {
        let row_work = scan.filter.as_ref().map_or(1, |filter| filter.work());
        let needed = scan.filter.as_ref().and_then(|filter| filter.needed());
        Self { scan, page: Page::default(), bytes: 0, deadline, work: 0, row_work, needed }
    }

    /// An empty page of the same scan, for a helper that reads further ahead.
    pub fn ahead(&self) -> Self {
        Self::until(self.scan, self.deadline)
    }

    /// Appends a page with all rows from the end of this one up to some later place. False, without a change, if its
    /// rows do not fit: then they must be read again to find the last row that fits.
    ///
    /// A page that would be exactly full does not fit, because the next page has to start at the row after its last
    /// one, whether the filter keeps that row or not.
    pub fn absorb(&mut self, ahead: Self) -> bool {
        let entities = self.page.entities.len() + ahead.page.entities.len();
        let bytes = self.bytes + ahead.bytes;
        let examined = self.page.examined + ahead.page.examined;
        let Budget { rows: rows_max, bytes: bytes_max, examined: examined_max, .. } = self.scan.budget;
        if entities >= rows_max || bytes >= bytes_max || examined >= examined_max {
            return false;
        }
        self.bytes = bytes;
        self.page.entities.append(ahead.page.entities);
        // It has a continuation only if its time was over, and then ours is over too.
        self.page.next = ahead.page.next;
        self.page.examined = examined;
        self.page.kibibytes += ahead.page.kibibytes;
        true
    }

    /// Takes the next row; false once the page is complete and continues at this row.
    #[inline]
    pub fn offer(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        if self.is_full() || (self.page.examined > 0 && self.is_late()) {
            self.page.next = Some(key::decode_key(key)?);
            return Ok(false);
        }
        self.page.examined += 1;
        self.work += self.row_work + (value.len() / BYTES_PER_WORK) as u64;
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
        let entity = StoredRef { partition: &partition, row_key: &row_key, row };
        match self.needed {
            None => self.page.entities.push(entity),
            Some(names) => {
                self.page.entities.push_part(entity, names).map_err(|fault| candidate.named(fault))?;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.page.entities.len() >= self.scan.budget.rows
            || self.page.examined >= self.scan.budget.examined
            || (self.bytes >= self.scan.budget.bytes && !self.page.entities.is_empty())
    }

    /// Whether every row is copied, as a whole.
    pub fn copies_all_rows(&self) -> bool {
        self.needed.is_none() && self.scan.filter.as_ref().is_none_or(|filter| !filter.may_drop())
    }

    /// Whether the clock should be read again after this much work.
    pub fn is_clock_due(&self) -> bool {
        self.work >= WORK_PER_CLOCK
    }

    /// Not checked before the first row, so that even a scan without time makes progress.
    fn is_late(&mut self) -> bool {
        if !self.is_clock_due() {
            return false;
        }
        self.work = 0;
        Instant::now() >= self.deadline
    }

    /// Whether there is time for another range. To be checked before every range but the first.
    pub fn has_time_for_a_range(&mut self) -> bool {
        self.work += WORK_PER_RANGE;
        !self.is_late()
    }

    /// Ends the page at one of the next rows, as if its time were over.
    pub fn cut_short(&mut self) {
        self.deadline = self.deadline.min(Instant::now());
        self.work = WORK_PER_CLOCK;
    }

    /// Ends the page here: nothing from this place on was read.
    pub fn end_before(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.page.next = Some(key::decode_key(key)?);
        Ok(())
    }

    /// Whether the page has its place to continue from.
    pub fn is_complete(&self) -> bool {
        self.page.next.is_some()
    }

    /// Rows read so far.
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

    /// Keeps every row, and needs these properties.
    struct Needs(Vec<Box<[u8]>>);

    impl RowFilter for Needs {
        fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
            Ok(true)
        }

        fn needed(&self) -> Option<&[Box<[u8]>]> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_page_of_parts_ends_where_a_page_of_rows_does() {
        let (key, row) = entity(1);
        let row_bytes = key.len() + row.len();
        for bytes in [1, row_bytes, row_bytes + 1, 5 * row_bytes, usize::MAX] {
            let page = |needed: Option<&str>| {
                let filter = needed.map(|name| Arc::new(Needs(vec![name.as_bytes().into()])) as _);
                let budget = Budget { rows: 7, bytes, time: Duration::from_secs(60), examined: u64::MAX };
                let scan = Scan { ranges: vec![], budget, filter, lasts: false };
                let mut page = PageBuilder::new(&scan);
                let all = (1..9).map(entity);
                assert!(!all.into_iter().all(|(key, row)| page.offer(&key, &row).unwrap()), "it is full");
                let page = page.finish();
                let properties =
                    page.entities.iter().map(|entity| entity.row.open().unwrap().to_properties());
                (properties.map(|list| list.len()).collect::<Vec<_>>(), page.next, page.kibibytes)
            };
            let whole = page(None);
            assert_eq!(page(Some("N")), whole, "{bytes}");
            let (properties, next, kibibytes) = page(Some("M"));
            assert_eq!((next, kibibytes), (whole.1, whole.2), "{bytes}");
            assert_eq!(properties, vec![0; whole.0.len()], "{bytes}");
        }
    }

    struct Drops;

    impl RowFilter for Drops {
        fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
            Ok(false)
        }
    }

    #[test]
    fn rows_are_copied_as_a_whole_unless_some_are_dropped_or_few_properties_needed() {
        let copies = |filter: Option<Arc<dyn RowFilter>>| {
            let budget = Budget { rows: 7, bytes: 1, time: Duration::ZERO, examined: 1 };
            PageBuilder::new(&Scan { ranges: vec![], budget, filter, lasts: false }).copies_all_rows()
        };
        assert!(copies(None));
        assert!(!copies(Some(Arc::new(Needs(vec![])))));
        assert!(!copies(Some(Arc::new(Drops))));
    }

    #[test]
    fn a_page_takes_in_another_only_if_it_stays_short_of_full() {
        let (key, row) = entity(0);
        let row_bytes = key.len() + row.len();
        for (rows, bytes, examined, taken) in [
            (4, usize::MAX, u64::MAX, true),
            (3, usize::MAX, u64::MAX, false),
            (2, usize::MAX, u64::MAX, false),
            (100, 3 * row_bytes + 1, u64::MAX, true),
            (100, 3 * row_bytes, u64::MAX, false),
            (100, usize::MAX, 4, true),
            (100, usize::MAX, 3, false),
        ] {
            let budget = Budget { rows, bytes, time: Duration::from_secs(60), examined };
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
