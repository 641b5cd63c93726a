//! What is done for blobs in the background: rows go that nobody needs any more, and then what no row names.
//!
//! Rows that nobody needs are blocks of uploads that are over, or to which nothing was added for a week; states that were
//! deleted and whose time is over; and parts of maps that no state of their blob sees. Each is left alone for a day, because
//! a copy writes the rows of a map before it commits the row that names it. A clock that is set forward makes all rows old, so
//! that alone is not enough: what is written by a copy under way is known, and states are read again after the rows of a map.
//!
//! Every row goes only if it still has the version that was read. Their objects are not removed here: the sweep that follows
//! finds them.

use std::collections::BTreeMap;
use std::time::Duration;

use blob_model::limits::UNCOMMITTED_TIME;
use blob_model::{BlobName, DateTime, ServiceKind, SnapshotTime};
use model::{Cut, Key, KeyRange};
use store::{Budget, Change as RowChange, Condition, Fault, RowOperation, Scan, StoredRef, TableRef};

use crate::blob_key::{self, UploadId};
use crate::blob_row::{BlobRow, Moves, StoredKind};
use crate::blobs::map_numbers::MapNumbers;
use crate::blobs::page_rows;
use crate::blobs::state::OPERATIONS_MAX;
use crate::content::{ContentCounts, SWEPT_AGE, Swept, moves};
use crate::{BlobService, Result};

/// From the start of a server to the first sweep, and from one to the next.
const FIRST_SWEEP: Duration = Duration::from_secs(3600);
const SWEEP_EVERY: Duration = Duration::from_secs(6 * 3600);

/// Containers that are asked for at once, and rows.
const CONTAINERS: usize = 1000;
/// Rows of one blob's maps that are held at one time: a segment may have a row for each snapshot of the blob.
const ROWS_HELD_MAX: usize = 10_000;
pub(crate) const PAGE_ROWS: usize = 500;
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;
pub(crate) const PAGE_TIME: Duration = Duration::from_millis(100);

/// What a sweep came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Uploads to which nothing was added for a week.
    pub uploads: u64,
    /// Rows of blocks that no upload has any more.
    pub blocks: u64,
    /// Blobs and snapshots that were deleted and whose time is over.
    pub states: u64,
    /// Parts of maps that no state sees.
    pub segments: u64,
    /// Records of content that was moved.
    pub records: u64,
    pub objects: Swept,
}

/// What is known of the partition of a blob that is being read.
#[derive(Debug)]
struct Partition {
    text: String,
    maps: Maps,
    /// Rows of one segment: map, segment, and each row's number, key and version.
    rows: Vec<SegmentRow>,
    /// Segments, or parts of them, that have rows which no state needed that was read before them.
    doubtful: Vec<SegmentRows>,
    /// How many rows these are.
    doubtful_rows: usize,
}

impl Partition {
    fn new(text: &str) -> Self {
        let (maps, rows, doubtful) = (Maps::new(), Vec::new(), Vec::new());
        Self { text: text.to_owned(), maps, rows, doubtful, doubtful_rows: 0 }
    }
}

/// The maps of a blob's states, with their numbers.
type Maps = BTreeMap<[u8; 8], MapNumbers>;

/// Rows of one segment that follow each other, and the number of the next one.
#[derive(Debug)]
struct SegmentRows {
    rows: Vec<SegmentRow>,
    above: Option<u32>,
}

impl SegmentRows {
    /// Which of them a state sees.
    fn seen(&self, maps: &Maps) -> Vec<bool> {
        let numbers: Vec<u32> = self.rows.iter().map(|row| row.number).collect();
        match self.rows.first().and_then(|first| maps.get(&first.map)) {
            Some(states) => states.see(&numbers, self.above.as_ref()),
            None => vec![false; numbers.len()],
        }
    }
}

#[derive(Clone, Debug)]
struct SegmentRow {
    map: [u8; 8],
    segment: u32,
    number: u32,
    key: Key,
    version: DateTime,
}

impl BlobService {
    /// Sweeps now and then, until it is dropped.
    pub async fn keep_up(&self) {
        let mut pause = FIRST_SWEEP;
        loop {
            tokio::time::sleep(pause).await;
            pause = SWEEP_EVERY;
            match self.sweep().await {
                Ok(cleaned) => tracing::debug!(?cleaned, "what no blob needs is removed"),
                // The next sweep does it.
                Err(error) => tracing::warn!(%error, "could not look for what no blob needs"),
            }
        }
    }

    /// Removes rows and objects that no blob needs. One sweep at a time; it may run while the service does.
    pub async fn sweep(&self) -> Result<Cleaned> {
        let mut cleaned = Cleaned::default();
        for account in self.engine.list_accounts().await? {
            let mut from = Some(String::new());
            while let Some(start) = from {
                let page = self.engine.list_tables(&account, ServiceKind::Blob, &start, CONTAINERS).await?;
                for name in page.names.into_iter().filter(|name| !moves::is_table(name)) {
                    let table = TableRef { account: account.clone(), service: ServiceKind::Blob, name };
                    self.clean_container(&table, &mut cleaned).await?;
                }
                from = page.next;
            }
            cleaned.records += self.forget_moves(&account).await?;
        }
        cleaned.objects = self.contents.sweep(&*self.engine).await?;
        Ok(cleaned)
    }

    /// What became of objects since the server has begun.
    pub fn content_counts(&self) -> ContentCounts {
        self.contents.counts()
    }

    async fn clean_container(&self, table: &TableRef, cleaned: &mut Cleaned) -> Result<()> {
        let mut rest = Some(KeyRange::all());
        let mut partition: Option<Partition> = None;
        let mut dead: Vec<(UploadId, Key, DateTime)> = Vec::new();
        let mut blocks_of: Option<String> = None;
        while let Some(range) = rest {
            let budget = Budget { rows: PAGE_ROWS, bytes: PAGE_BYTES, time: PAGE_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = match self.engine.scan(table, scan).await {
                // Deleted since it was listed.
                Err(store::Error::TableNotFound) => return Ok(()),
                page => page?,
            };
            for row in page.entities.iter() {
                if blob_key::read_partition(row.partition).is_some() {
                    if partition.as_ref().is_none_or(|partition| partition.text != row.partition) {
                        self.clean_map(table, partition.as_mut(), cleaned).await?;
                        partition = Some(Partition::new(row.partition));
                    }
                    let Some(partition) = &mut partition else { continue };
                    self.clean_blob_row(table, partition, row, cleaned).await?;
                } else if blob_key::read_block_partition(row.partition).is_some() {
                    if blocks_of.as_deref() != Some(row.partition) || dead.len() >= OPERATIONS_MAX {
                        self.clean_blocks(table, blocks_of.as_deref(), std::mem::take(&mut dead), cleaned)
                            .await?;
                        blocks_of = Some(row.partition.to_owned());
                    }
                    let version = row.row.timestamp()?;
                    let unlike = || Fault::damaged("a block has a key that this program does not write");
                    let (upload, _) = blob_key::read_block_row(row.row_key)
                        .ok_or_else(|| unlike().about(format!("RowKey {:?}, {table}", row.row_key)))?;
                    if self.is_older(version, SWEPT_AGE) {
                        dead.push((upload, blob_key::key_of(row.row_key)?, version));
                    }
                }
            }
            rest = page.next.map(|next| KeyRange {
                start: Cut::before(next.partition.as_str(), next.row.as_str()),
                ..range
            });
        }
        self.clean_map(table, partition.as_mut(), cleaned).await?;
        self.clean_blocks(table, blocks_of.as_deref(), dead, cleaned).await
    }

    pub(crate) fn is_older(&self, time: DateTime, than: Duration) -> bool {
        time.plus(than) <= self.clock.now()
    }

    /// A row of a blob: a state of it, or a part of its map.
    async fn clean_blob_row(
        &self,
        table: &TableRef,
        partition: &mut Partition,
        stored: StoredRef<'_>,
        cleaned: &mut Cleaned,
    ) -> Result<()> {
        let place = || format!("RowKey {:?}, PartitionKey {:?}, {table}", stored.row_key, stored.partition);
        let version = stored.row.timestamp()?;
        let key = blob_key::key_of(stored.row_key)?;
        if let Some((map, segment, number)) = page_rows::read_key(stored.row_key) {
            let is_full = partition.rows.len() + partition.doubtful_rows >= ROWS_HELD_MAX;
            if partition.rows.first().is_some_and(|row| (row.map, row.segment) != (map, segment)) {
                self.end_rows(partition, None);
            } else if is_full {
                self.end_rows(partition, Some(number));
            }
            if is_full {
                self.clean_segments(table, partition, cleaned).await?;
            }
            partition.rows.push(SegmentRow { map, segment, number, key, version });
            return Ok(());
        }
        let mut row = BlobRow::read(stored.row).map_err(|fault| fault.about(place()))?;
        if let Some(StoredKind::Page { map, .. }) = row.blob.as_ref().map(|blob| blob.kind) {
            partition.maps.entry(map.id).or_default().insert(map.number);
        }
        let over = row.blob.as_ref().and_then(|blob| blob.deleted);
        if over.is_some_and(|deletion| deletion.until <= self.clock.now()) {
            row.blob = None;
            cleaned.states += u64::from(self.replace_row(table, &partition.text, key, version, &row).await?);
        } else if let Some(upload) = row.upload
            && stored.row_key == SnapshotTime::BASE.to_string()
            && self.is_older(version, UNCOMMITTED_TIME)
            && self.is_upload_over(table, &partition.text, upload.id).await?
        {
            row.upload = None;
            cleaned.uploads += u64::from(self.replace_row(table, &partition.text, key, version, &row).await?);
        }
        Ok(())
    }

    /// Puts what is left of a row, or removes it if that is nothing. False if it is another one now.
    async fn replace_row(
        &self,
        table: &TableRef,
        partition: &str,
        row: Key,
        version: DateTime,
        left: &BlobRow,
    ) -> Result<bool> {
        let _pass = self.gate.pass().await?;
        let change = match left.blob.is_none() && left.upload.is_none() {
            true => RowChange::Delete,
            false => RowChange::Put(left.draft(Moves::Nothing)),
        };
        let operation = RowOperation { row, condition: Condition::Version(version), change };
        let applied = self.apply(table, blob_key::key_of(partition)?, vec![operation]).await?;
        Ok(applied.is_some())
    }

    /// Whether nothing was added to an upload for a week. That stays so until the blob's row changes: whoever puts a block writes
    /// a row of that age again before.
    async fn is_upload_over(&self, table: &TableRef, partition: &str, upload: UploadId) -> Result<bool> {
        let Some(name) = blob_key::read_partition(partition) else { return Ok(false) };
        let Ok(name) = BlobName::parse(&name) else { return Ok(false) };
        let blocks = blob_key::block_partition(&name)?;
        let mut rest = Some(blob_key::blocks(blocks.as_str(), upload, None));
        while let Some(range) = rest {
            let budget = Budget { rows: PAGE_ROWS, bytes: PAGE_BYTES, time: PAGE_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            for row in page.entities.iter() {
                if !self.is_older(row.row.timestamp()?, UNCOMMITTED_TIME) {
                    return Ok(false);
                }
            }
            rest = page.next.map(|next| KeyRange {
                start: Cut::before(next.partition.as_str(), next.row.as_str()),
                ..range
            });
        }
        Ok(true)
    }

    /// Removes those of these blocks whose upload is over: their blob goes on with another one, or with none.
    async fn clean_blocks(
        &self,
        table: &TableRef,
        partition: Option<&str>,
        rows: Vec<(UploadId, Key, DateTime)>,
        cleaned: &mut Cleaned,
    ) -> Result<()> {
        let Some(partition) = partition.filter(|_| !rows.is_empty()) else { return Ok(()) };
        let name = blob_key::read_block_partition(partition).and_then(|name| BlobName::parse(&name).ok());
        let unlike = || Fault::damaged("blocks have a key that this program does not write");
        let name = name.ok_or_else(|| unlike().about(format!("PartitionKey {partition:?}, {table}")))?;
        // Read after the blocks: an upload is never open again.
        let stored = self.engine.get(table, &blob_key::entity(&name, SnapshotTime::BASE)?).await?;
        let open = match stored {
            Some(stored) => BlobRow::read(stored.raw())?.upload.map(|upload| upload.id),
            None => None,
        };
        let dead = rows.into_iter().filter(|(upload, _, _)| Some(*upload) != open);
        let operations: Vec<RowOperation> = dead.map(|(_, row, version)| removal(row, version)).collect();
        cleaned.blocks += self.remove_rows(table, partition, operations).await?;
        Ok(())
    }

    /// After the last row of a segment, or before the row that has this number.
    fn end_rows(&self, partition: &mut Partition, above: Option<u32>) {
        let part = SegmentRows { rows: std::mem::take(&mut partition.rows), above };
        let seen = part.seen(&partition.maps);
        let mut looked_at = part.rows.iter().zip(seen);
        if looked_at.any(|(row, is_seen)| !is_seen && self.is_older(row.version, SWEPT_AGE)) {
            partition.doubtful_rows += part.rows.len();
            partition.doubtful.push(part);
        }
    }

    /// After the last row of a partition.
    async fn clean_map(
        &self,
        table: &TableRef,
        partition: Option<&mut Partition>,
        cleaned: &mut Cleaned,
    ) -> Result<()> {
        let Some(partition) = partition else { return Ok(()) };
        self.end_rows(partition, None);
        self.clean_segments(table, partition, cleaned).await
    }

    /// Removes those rows of the segments that were read that no state sees.
    async fn clean_segments(
        &self,
        table: &TableRef,
        partition: &mut Partition,
        cleaned: &mut Cleaned,
    ) -> Result<()> {
        let mut segments = std::mem::take(&mut partition.doubtful);
        partition.doubtful_rows = 0;
        // A copy that is not under way has ended: then its state, if it has one, is read.
        segments.retain(|part| part.rows.first().is_some_and(|first| !self.contents.is_new_map(&first.map)));
        if segments.is_empty() {
            return Ok(());
        }
        // Read after the rows: the number of a map only grows, and a map that is named by no state then is named by none later.
        let maps = self.maps_of(table, &partition.text).await?;
        let mut operations: Vec<RowOperation> = Vec::new();
        for part in segments {
            let seen = part.seen(&maps);
            let dead = part.rows.into_iter().zip(seen).filter(|(_, is_seen)| !is_seen).map(|(row, _)| row);
            let old = dead.filter(|row| self.is_older(row.version, SWEPT_AGE));
            operations.extend(old.map(|row| removal(row.key, row.version)));
        }
        cleaned.segments += self.remove_rows(table, &partition.text, operations).await?;
        Ok(())
    }

    /// The maps of all states of a blob.
    async fn maps_of(&self, table: &TableRef, partition: &str) -> Result<Maps> {
        let mut maps = Maps::new();
        let mut rest = Some(blob_key::states(partition, None));
        while let Some(range) = rest {
            let budget = Budget { rows: PAGE_ROWS, bytes: PAGE_BYTES, time: PAGE_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            for row in page.entities.iter() {
                let place = || format!("RowKey {:?}, PartitionKey {partition:?}, {table}", row.row_key);
                let row = BlobRow::read(row.row).map_err(|fault| fault.about(place()))?;
                if let Some((map, _)) = row.blob.and_then(|blob| blob.pages()) {
                    maps.entry(map.id).or_default().insert(map.number);
                }
            }
            rest = page.next.map(|next| KeyRange {
                start: Cut::before(next.partition.as_str(), next.row.as_str()),
                ..range
            });
        }
        Ok(maps)
    }

    pub(crate) async fn remove_rows(
        &self,
        table: &TableRef,
        partition: &str,
        mut operations: Vec<RowOperation>,
    ) -> Result<u64> {
        let mut removed = 0;
        while !operations.is_empty() {
            let rest = operations.split_off(operations.len().min(OPERATIONS_MAX));
            let _pass = self.gate.pass().await?;
            let count = operations.len() as u64;
            // If one of them has changed, the next sweep looks again.
            if self.apply(table, blob_key::key_of(partition)?, operations).await?.is_some() {
                removed += count;
            }
            operations = rest;
        }
        Ok(removed)
    }
}

pub(crate) fn removal(row: Key, version: DateTime) -> RowOperation {
    RowOperation { row, condition: Condition::Version(version), change: RowChange::Delete }
}
