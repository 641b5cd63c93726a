//! Ordered reading of key ranges under a budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{EntityKey, KeyRange};

use crate::encoding;
use crate::{Fault, Row, RowView};

/// What to read, in what bounds. Ranges are in order and do not overlap.
#[derive(Clone)]
pub struct Scan {
    pub ranges: Vec<KeyRange>,
    pub budget: Budget,
    /// Which of the rows found to give back; all, if there is none.
    pub filter: Option<Arc<dyn RowFilter>>,
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

/// Runs where the rows are, before they are copied.
pub trait RowFilter: Send + Sync {
    fn keep(&self, entity: StoredRef<'_>) -> bool;
}

/// An entity where it lies in the engine.
#[derive(Clone, Copy, Debug)]
pub struct StoredRef<'a> {
    pub partition: &'a str,
    pub row_key: &'a str,
    pub row: RowView<'a>,
}

#[derive(Clone, Debug)]
pub struct StoredEntity {
    pub key: EntityKey,
    pub row: Row,
}

#[derive(Debug, Default)]
pub struct Page {
    pub entities: Vec<StoredEntity>,
    /// The first entity in the ranges that was not looked at. `None`: the ranges are exhausted.
    pub next: Option<EntityKey>,
    /// Rows looked at, kept or not.
    pub examined: u64,
    /// The same in KiB, each row rounded up: what a scan costs.
    pub kibibytes: u64,
}

/// Fills a page from rows in key order; the part of a scan that is the same in every engine.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    scan: &'a Scan,
    page: Page,
    bytes: usize,
    deadline: Instant,
}

/// Looking at the clock costs more than looking at a row, so it is asked once in so many rows.
const ROWS_PER_CLOCK: u64 = 64;

impl<'a> PageBuilder<'a> {
    pub fn new(scan: &'a Scan) -> Self {
        Self { scan, page: Page::default(), bytes: 0, deadline: Instant::now() + scan.budget.time }
    }

    /// Looks at the next row; false once the page is complete, with this row as the place to go on from.
    pub fn offer(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        if self.is_full() {
            self.page.next = Some(encoding::key::decode_key(key)?);
            return Ok(false);
        }
        self.page.examined += 1;
        self.page.kibibytes += value.len().div_ceil(1024).max(1) as u64;
        let row = RowView::open(value)?;
        if let Some(filter) = &self.scan.filter {
            let (partition, row_key) = encoding::key::decode(key)?;
            if !filter.keep(StoredRef { partition: &partition, row_key: &row_key, row }) {
                return Ok(true);
            }
        }
        self.bytes += key.len() + value.len();
        self.page.entities.push(StoredEntity { key: encoding::key::decode_key(key)?, row: row.to_row() });
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.page.entities.len() >= self.scan.budget.rows
            || (self.bytes >= self.scan.budget.bytes && !self.page.entities.is_empty())
            || (self.page.examined > 0
                && self.page.examined.is_multiple_of(ROWS_PER_CLOCK)
                && Instant::now() >= self.deadline)
    }

    pub fn finish(self) -> Page {
        self.page
    }
}
