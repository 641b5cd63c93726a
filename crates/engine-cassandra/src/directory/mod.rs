//! The directory: the partition keys of every table in order, for ordered scans over partitions.
//!
//! The promise: **a partition with a row is listed in the current segment**. A listed partition may be empty; scans
//! skip it. These rules keep the promise wherever servers stop or stall (`crates/directory-model` checks every
//! order of the steps):
//!
//! - A partition's epoch changes whenever it is listed or struck off, and no epoch recurs. Every write to its rows is
//!   conditional on the epoch in which it was planned.
//! - An entry is written with its epoch as timestamp, and struck off with the next odd number. So a delayed write
//!   changes nothing that was decided later.
//! - Striking off writes that odd number instead of deleting the row: such rows can be skipped, counted, and left out
//!   when the segment is rewritten, whereas a read that meets too many tombstones fails.
//! - A server that lists a partition reads the map's version again afterwards. If it is the same, a janitor that
//!   moves the segment started after the entry was written, and will copy it.

mod hints;
mod janitor;
mod map;
mod purge;
mod reshape;
#[cfg(test)]
mod tests;
mod tidy;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::keys::KeyBytes;
use crate::narrow::Narrow;
use crate::partition::PartitionId;
use crate::trouble::{Trouble, undecodable};

pub use hints::Hints;
pub use janitor::{Janitor, Schedule};
pub use map::Map;
use map::Segment;
use reshape::Sizes;

/// Attempts with a map that changes meanwhile. Each change is progress of another server.
const ATTEMPTS: usize = 16;
/// Tables whose maps are cached. Above this, the cache is cleared.
const MAPS_MAX: usize = 10_000;
/// Segments whose changes are counted. Above this, all counts are cleared.
const COUNTS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Directory {
    cluster: Arc<Cluster>,
    maps: Mutex<HashMap<Uuid, Arc<Map>>>,
    /// By segment: the entries that this server wrote since the segment was last measured.
    counts: Mutex<HashMap<Uuid, Count>>,
}

#[derive(Debug)]
struct Count {
    table: Uuid,
    start: KeyBytes,
    listed: usize,
    struck: usize,
}

/// A partition in the directory, with the epoch in which it was listed, or the odd number after the epoch in which it
/// was struck off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub key: KeyBytes,
    pub epoch: i64,
}

impl Listed {
    /// Epochs are even.
    fn is_struck_off(&self) -> bool {
        self.epoch % 2 != 0
    }
}

/// A stretch of one segment.
#[derive(Debug)]
struct Entries {
    listed: Vec<Listed>,
    /// Whether it has more tombstones than one read allows. Only earlier releases left tombstones: they deleted
    /// entries instead of striking them off.
    worn: bool,
}

/// A change of an entry, with its epoch.
#[derive(Clone, Copy, Debug)]
enum EntryChange {
    Listed { epoch: i64 },
    StruckOff { epoch: i64 },
}

/// A part of the directory as it was at one moment.
#[derive(Debug)]
pub struct Listing {
    pub partitions: Vec<Listed>,
    /// Where to continue; `None` after the table's last segment.
    pub next: Option<KeyBytes>,
}

impl Directory {
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, maps: Mutex::default(), counts: Mutex::default() }
    }

    /// Creates the first segment of a new table, before the table's own row is created.
    pub async fn create(&self, table: Uuid) -> Result<(), Trouble> {
        let first = Segment::active(KeyBytes::lowest(), Uuid::new_v4(), Vec::new());
        // If there is one, our own earlier attempt made it: no other table has this id.
        self.cluster.change_map(table, None, &[first], &[]).await.map(|_| ())
    }

    /// Undoes `create` for a table whose own row was certainly never created.
    pub async fn discard(&self, table: Uuid) -> Result<(), Trouble> {
        self.drop_map(table).await
    }

    /// Lists the partition at `epoch` in every current and future segment of its key, and checks that the map did not
    /// change meanwhile. Only after `Ok`, a conditional write may move the partition to `epoch` as
    /// `Registration::Listed`.
    pub async fn list(&self, id: &PartitionId, epoch: i64) -> Result<(), Trouble> {
        let map = self.write_entry(id, EntryChange::Listed { epoch }).await?;
        self.count(id.table, &id.key, &map, |count| count.listed += 1);
        Ok(())
    }

    /// Strikes off all entries of the partition up to `epoch`. The partition must be `Registration::None` in this or
    /// a later epoch.
    async fn strike(&self, id: &PartitionId, epoch: i64) -> Result<(), Trouble> {
        let map = self.write_entry(id, EntryChange::StruckOff { epoch }).await?;
        self.count(id.table, &id.key, &map, |count| count.struck = count.struck.saturating_add(1));
        Ok(())
    }

    fn count(&self, table: Uuid, key: &KeyBytes, map: &Map, add: impl FnOnce(&mut Count)) {
        let (segment, _) = map.covering(key);
        let begin = || Count { table, start: segment.start.clone(), listed: 0, struck: 0 };
        add(guard(&self.counts).entry(segment.id).or_insert_with(begin));
    }

    /// Returns the map that was used.
    async fn write_entry(&self, id: &PartitionId, entry: EntryChange) -> Result<Arc<Map>, Trouble> {
        for _ in 0..ATTEMPTS {
            let map = self.map(id.table).await?;
            let targets = map.targets(&id.key);
            try_join_all(targets.map(|segment| self.write_into(segment, &id.key, entry))).await?;
            if self.is_still(id.table, &map).await? {
                return Ok(map);
            }
        }
        Err(restless(id.table))
    }

    async fn write_into(&self, segment: Uuid, key: &KeyBytes, entry: EntryChange) -> Result<(), Trouble> {
        let epoch = match entry {
            EntryChange::Listed { epoch } => epoch,
            EntryChange::StruckOff { epoch } => epoch + 1,
        };
        self.cluster.write(&self.cluster.statements.enter, (segment, key.as_bytes(), epoch, epoch)).await
    }

    /// Up to `limit` listed partitions from `from` on, in order. May return fewer: at the end of a segment, or
    /// because some entries are struck off.
    pub async fn page(&self, table: Uuid, from: &KeyBytes, limit: usize) -> Result<Listing, Trouble> {
        for _ in 0..ATTEMPTS {
            let map = self.map(table).await?;
            let (segment, end) = map.covering(from);
            let Entries { listed: mut partitions, worn } =
                self.read_segment(segment.id, from, end, limit).await?;
            // A segment that was replaced meanwhile may have been emptied while we read it.
            if !self.is_still(table, &map).await? {
                continue;
            }
            if worn {
                self.count(table, from, &map, |count| count.struck = usize::MAX);
            }
            let next = match partitions.last() {
                Some(last) if partitions.len() >= limit => Some(last.key.successor()),
                _ => end.cloned(),
            };
            partitions.retain(|listed| !listed.is_struck_off());
            return Ok(Listing { partitions, next });
        }
        Err(restless(table))
    }

    /// Up to `limit` entries of one segment, also those that are struck off. Returns fewer only at the end of these
    /// keys.
    async fn read_segment(
        &self,
        segment: Uuid,
        from: &KeyBytes,
        to: Option<&KeyBytes>,
        limit: usize,
    ) -> Result<Entries, Trouble> {
        let above_all = KeyBytes::above_all();
        let mut narrow = Narrow::new(from.as_bytes(), to.unwrap_or(&above_all).as_bytes());
        let mut listed = Vec::new();
        while let Some((from, to)) = narrow.next().filter(|_| listed.len() < limit) {
            let wanted = i32::try_from(limit - listed.len()).unwrap_or(i32::MAX);
            let rows =
                self.cluster.read(&self.cluster.statements.directory_page, (segment, from, to, wanted)).await;
            match rows {
                Ok(rows) => {
                    for row in
                        rows.rows::<(Vec<u8>, i64)>().map_err(undecodable("a segment of a directory"))?
                    {
                        let (key, epoch) = row.map_err(undecodable("a segment of a directory"))?;
                        listed.push(Listed { key: KeyBytes::stored(key), epoch });
                    }
                    narrow.passed();
                }
                Err(trouble) => narrow.failed(trouble)?,
            }
        }
        Ok(Entries { listed, worn: narrow.was_divided() })
    }

    /// The map as this server last read it. Callers have to check `is_still` afterwards.
    async fn map(&self, table: Uuid) -> Result<Arc<Map>, Trouble> {
        let known = guard(&self.maps).get(&table).cloned();
        match known {
            Some(map) => Ok(map),
            None => self.fresh_map(table).await,
        }
    }

    async fn fresh_map(&self, table: Uuid) -> Result<Arc<Map>, Trouble> {
        let map = self.cluster.read_map(table).await?;
        let map = Arc::new(map.ok_or_else(|| Trouble::refused(format!("table {table} has no directory")))?);
        let mut maps = guard(&self.maps);
        if maps.len() >= MAPS_MAX {
            maps.clear();
        }
        maps.insert(table, map.clone());
        Ok(map)
    }

    /// Whether the map is still this one. If not, the cached map is removed.
    async fn is_still(&self, table: Uuid, map: &Map) -> Result<bool, Trouble> {
        let version = self.cluster.read_map_version(table).await?;
        let same = version == Some(map.version);
        if !same {
            guard(&self.maps).remove(&table);
        }
        Ok(same)
    }

    /// Segments that may have to be split, merged or rewritten, because this server changed many of their entries
    /// since the last call: their table and first key.
    fn changed(&self, sizes: Sizes) -> Vec<(Uuid, KeyBytes)> {
        let mut counts = guard(&self.counts);
        if counts.len() >= COUNTS_MAX {
            counts.clear();
        }
        let enough = |count: usize, most: usize| count >= (most / 2).max(1);
        let changed = counts.extract_if(|_, count| {
            enough(count.listed, sizes.split_above) || enough(count.struck, sizes.worn_above())
        });
        changed.map(|(_, count)| (count.table, count.start)).collect()
    }
}

fn restless(table: Uuid) -> Trouble {
    Trouble::refused(format!("the directory of table {table} kept changing"))
}

/// The guarded values are consistent after every statement, so a poisoned lock is harmless.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
