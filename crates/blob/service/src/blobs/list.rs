//! List Blobs, flat and by hierarchy.
//!
//! A list is a range read: a page of n items reads about n rows. What lies between is jumped over with a seek: the blobs
//! below a prefix that was found, snapshots that nobody asked for, and pages.

use blob_model::{DateTime, SnapshotTime};
use model::{Cut, KeyRange};
use store::{Fault, Scan, StoredRef, TableRef};

use super::state::budget;
use crate::blob_key;
use crate::blob_row::{BlobRow, StoredBlob};
use crate::{
    BlobEntry, BlobPage, BlobPlace, BlobQuery, BlobService, ContainerRef, DeletedEntry, ListedEntry, Result,
};

/// Rows that are asked of the engine after a seek, which may be followed by the next one. Then twice as many each time.
const FIRST_ROWS: usize = 8;
const ROWS_MAX: usize = 1000;
/// A page ends after so many bytes of what it shows, and after so many rows that it passes over.
pub(super) const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
const PASSED_ROWS_MAX: usize = 20_000;

/// What follows a row.
enum Step {
    Next,
    /// Nothing up to here is shown.
    Seek(Cut),
    /// The page ends before this item.
    End(BlobPlace),
}

struct Listing<'a> {
    query: &'a BlobQuery,
    now: DateTime,
    entries: Vec<BlobEntry>,
    bytes: usize,
    passed: usize,
}

impl BlobService {
    pub async fn list_blobs(&self, container: &ContainerRef, query: &BlobQuery) -> Result<BlobPage> {
        self.admit_container(container)?;
        self.list_unmetered(container, query).await
    }

    /// The same, of nobody's target.
    pub(crate) async fn list_unmetered(
        &self,
        container: &ContainerRef,
        query: &BlobQuery,
    ) -> Result<BlobPage> {
        let table = container.table()?;
        let mut listing = Listing { query, now: self.clock.now(), entries: Vec::new(), bytes: 0, passed: 0 };
        let next = self.read_list(&table, &mut listing).await?;
        Ok(BlobPage { entries: listing.entries, next })
    }

    async fn read_list(&self, table: &TableRef, listing: &mut Listing<'_>) -> Result<Option<BlobPlace>> {
        let query = listing.query;
        let end = blob_key::behind_prefix(&query.prefix);
        let mut start = Cut::before_partition(&blob_key::partition_text(&query.prefix));
        if let Some(BlobPlace { name, snapshot }) = &query.from {
            start = start.max(Cut::before(&blob_key::partition_text(name), &snapshot_text(*snapshot, query)));
        }
        // By hierarchy the first row may be below a prefix, and then the next that matters is far behind.
        let mut rows = if query.delimiter.is_some() { FIRST_ROWS } else { ROWS_MAX };
        'seek: loop {
            let wanted = query.limit.saturating_sub(listing.entries.len()) + 1;
            let rows_now = rows.min(wanted.max(FIRST_ROWS));
            let range = KeyRange { start: start.clone(), end: end.clone() };
            if range.is_empty() {
                // Also to find out whether there is such a container.
                self.engine.find_table(table).await?;
                return Ok(None);
            }
            let scan = Scan { ranges: vec![range], budget: budget(rows_now), filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            for entity in page.entities.iter() {
                match listing.take(entity)? {
                    Step::Next => {}
                    Step::End(place) => return Ok(Some(place)),
                    Step::Seek(to) => {
                        start = to;
                        rows = FIRST_ROWS;
                        continue 'seek;
                    }
                }
            }
            let Some(next) = page.next else { return Ok(None) };
            start = Cut::before(next.partition.as_str(), next.row.as_str());
            rows = (rows * 2).min(ROWS_MAX);
        }
    }
}

/// Where a marker points to. Without snapshots, every marker points to a blob.
fn snapshot_text(snapshot: SnapshotTime, query: &BlobQuery) -> String {
    if query.snapshots { snapshot.to_string() } else { String::new() }
}

impl Listing<'_> {
    fn take(&mut self, entity: StoredRef<'_>) -> Result<Step> {
        let unlike = || {
            Fault::damaged("a container has a row that this program does not write").about(entity.partition)
        };
        let name = blob_key::read_partition(entity.partition).ok_or_else(unlike)?;
        let Some(snapshot) = SnapshotTime::parse(entity.row_key) else {
            // The pages of a blob lie behind it.
            return Ok(Step::Seek(Cut::after_partition(entity.partition)));
        };
        if snapshot != SnapshotTime::BASE && !self.query.snapshots {
            return Ok(Step::Seek(Cut::before(entity.partition, &SnapshotTime::BASE.to_string())));
        }
        let row = BlobRow::read(entity.row).map_err(|fault| fault.about(&name))?;
        // Small content is in the row, and is not shown.
        let hidden = row.blob.as_ref().map_or(0, |blob| blob.content.inline_bytes().len());
        let Some(entry) = self.entry(&name, snapshot, row) else {
            self.passed += 1;
            let place = BlobPlace { name, snapshot };
            return Ok(if self.passed > PASSED_ROWS_MAX { Step::End(place) } else { Step::Next });
        };
        if let Some(prefix) = self.prefix_of(&name) {
            return Ok(self.take_prefix(prefix));
        }
        if self.is_full() {
            return Ok(Step::End(BlobPlace { name, snapshot }));
        }
        self.bytes += entity.row.bytes().len().saturating_sub(hidden) + name.len();
        self.entries.push(BlobEntry::Blob(Box::new(entry)));
        Ok(Step::Next)
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.query.limit || self.bytes >= PAGE_BYTES_MAX
    }

    /// The start of this name that is shown instead of it.
    fn prefix_of(&self, name: &str) -> Option<String> {
        let delimiter = self.query.delimiter.as_deref()?;
        let rest = name.get(self.query.prefix.len()..)?;
        let at = rest.find(delimiter)?;
        Some(name[..self.query.prefix.len() + at + delimiter.len()].to_owned())
    }

    fn take_prefix(&mut self, prefix: String) -> Step {
        if self.is_full() {
            return Step::End(BlobPlace { name: prefix, snapshot: SnapshotTime::BASE });
        }
        let behind = blob_key::behind_prefix(&prefix);
        self.bytes += prefix.len();
        self.entries.push(BlobEntry::Prefix(prefix));
        Step::Seek(behind)
    }

    /// The item that a row is shown as, if it is.
    fn entry(&self, name: &str, snapshot: SnapshotTime, row: BlobRow) -> Option<ListedEntry> {
        let is_base = snapshot == SnapshotTime::BASE;
        let entry = |deleted, properties| ListedEntry {
            name: name.to_owned(),
            snapshot: (!is_base).then_some(snapshot),
            deleted,
            properties,
        };
        match row.blob {
            None => self.query.uncommitted.then(|| entry(None, None)),
            // The blocks of a blob that may come in the place of the deleted one.
            Some(StoredBlob { deleted: Some(deletion), .. })
                if !self.query.deleted || deletion.until <= self.now =>
            {
                (self.query.uncommitted && row.upload.is_some()).then(|| entry(None, None))
            }
            Some(blob) => {
                let deleted = blob.deleted.map(|deletion| DeletedEntry {
                    time: deletion.time,
                    remaining_days: days_between(self.now, deletion.until),
                });
                let lease_at = (is_base && deleted.is_none()).then_some(self.now);
                Some(entry(deleted, Some(blob.into_properties(lease_at))))
            }
        }
    }
}

/// Whole days.
fn days_between(now: DateTime, until: DateTime) -> u16 {
    const TICKS_PER_DAY: i64 = 24 * 3600 * 10_000_000;
    u16::try_from((until.ticks() - now.ticks()).max(0) / TICKS_PER_DAY).unwrap_or(u16::MAX)
}
