//! The directory: every table's partition keys in order, so that scans over partitions can be ordered too.
//!
//! The promise: **a partition with a row is listed in the segment that counts**. One that is listed may be
//! empty; scans pass over it. What keeps it, wherever servers stop or stall (`tests/directory_model.rs` checks
//! the protocol step by step):
//!
//! - A partition's epoch changes with every step between "not listed" and "listed" and never comes back, and
//!   every write to its rows is conditional on the epoch it was planned in.
//! - An entry is written with its epoch as timestamp and struck off with the next odd number, so what arrives
//!   late changes nothing that was decided after it.
//! - To strike off is to write that odd number, not to delete: a row can be passed over, counted and left behind when
//!   its segment is written anew, whereas a read that meets too many tombstones fails.
//! - Whoever lists reads the map's version again afterwards. If it is the same, then whoever moves the segment
//!   started after the entry was there, and will copy it.

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

/// Readings of a map that changed meanwhile before giving up. Each was somebody's progress.
const ATTEMPTS: usize = 16;
/// Tables whose maps are remembered; above it, all are forgotten.
const MAPS_MAX: usize = 10_000;
/// Segments whose entries are counted; above it, counting begins anew.
const COUNTS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Directory {
    cluster: Arc<Cluster>,
    maps: Mutex<HashMap<Uuid, Arc<Map>>>,
    /// By segment: what this server entered in it since it was last measured.
    counts: Mutex<HashMap<Uuid, Count>>,
}

#[derive(Debug)]
struct Count {
    table: Uuid,
    start: KeyBytes,
    listed: usize,
    struck: usize,
}

/// A partition in the directory, and the epoch it was listed at; or the odd number behind the epoch that it was struck
/// off at.
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
    /// Whether it holds more tombstones than one read takes. There are none but those that earlier releases left, which
    /// deleted what they struck off.
    worn: bool,
}

/// What becomes of an entry at an epoch.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Listed { epoch: i64 },
    StruckOff { epoch: i64 },
}

/// A stretch of the directory as it was at one moment.
#[derive(Debug)]
pub struct Listing {
    pub partitions: Vec<Listed>,
    /// Where to go on; `None` behind the table's last segment.
    pub next: Option<KeyBytes>,
}

impl Directory {
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, maps: Mutex::default(), counts: Mutex::default() }
    }

    /// For a fresh table: its first segment. Before the table's own row is made.
    pub async fn create(&self, table: Uuid) -> Result<(), Trouble> {
        let first = Segment::active(KeyBytes::lowest(), Uuid::new_v4(), Vec::new());
        // If there is one already, an earlier attempt of ours made it: nobody else has this id.
        self.cluster.change_map(table, None, &[first], &[]).await.map(|_| ())
    }

    /// Takes back `create`, for a table whose own row certainly never was made.
    pub async fn discard(&self, table: Uuid) -> Result<(), Trouble> {
        self.drop_map(table).await
    }

    /// Lists the partition at `epoch` in every segment that counts or will, and makes sure that the map did not
    /// change meanwhile. After `Ok`, a conditional write that moves the partition to `epoch` as
    /// `Registration::Listed` keeps the promise; after anything else it must not be sent.
    pub async fn list(&self, id: &PartitionId, epoch: i64) -> Result<(), Trouble> {
        let map = self.write_entry(id, Entry::Listed { epoch }).await?;
        self.count(id.table, &id.key, &map, |count| count.listed += 1);
        Ok(())
    }

    /// Strikes off every entry of the partition up to `epoch`. The partition has to be in this epoch, or past
    /// it, as `Registration::None`.
    async fn strike(&self, id: &PartitionId, epoch: i64) -> Result<(), Trouble> {
        let map = self.write_entry(id, Entry::StruckOff { epoch }).await?;
        self.count(id.table, &id.key, &map, |count| count.struck = count.struck.saturating_add(1));
        Ok(())
    }

    fn count(&self, table: Uuid, key: &KeyBytes, map: &Map, add: impl FnOnce(&mut Count)) {
        let (segment, _) = map.covering(key);
        let begin = || Count { table, start: segment.start.clone(), listed: 0, struck: 0 };
        add(guard(&self.counts).entry(segment.id).or_insert_with(begin));
    }

    /// With the map that it was written by.
    async fn write_entry(&self, id: &PartitionId, entry: Entry) -> Result<Arc<Map>, Trouble> {
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

    async fn write_into(&self, segment: Uuid, key: &KeyBytes, entry: Entry) -> Result<(), Trouble> {
        let epoch = match entry {
            Entry::Listed { epoch } => epoch,
            Entry::StruckOff { epoch } => epoch + 1,
        };
        self.cluster.write(&self.cluster.statements.enter, (segment, key.as_bytes(), epoch, epoch)).await
    }

    /// Up to `limit` listed partitions from `from` on, in order. May end early: at a segment's end, or because some of
    /// so many entries are struck off.
    pub async fn page(&self, table: Uuid, from: &KeyBytes, limit: usize) -> Result<Listing, Trouble> {
        for _ in 0..ATTEMPTS {
            let map = self.map(table).await?;
            let (segment, end) = map.covering(from);
            let Entries { listed: mut partitions, worn } =
                self.read_segment(segment.id, from, end, limit).await?;
            // A segment that moved away meanwhile may have been emptied under our eyes.
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

    /// Up to `limit` of one segment's entries, also those that are struck off, wherever it belongs. Fewer only at the
    /// end of these keys.
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

    /// The map as this server last saw it. Whoever uses it asks `is_still` afterwards.
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

    /// Whether the map has been this one up to now; if not, it is forgotten.
    async fn is_still(&self, table: Uuid, map: &Map) -> Result<bool, Trouble> {
        let version = self.cluster.read_map_version(table).await?;
        let same = version == Some(map.version);
        if !same {
            guard(&self.maps).remove(&table);
        }
        Ok(same)
    }

    /// Segments in which this server listed or struck off so many partitions, since they were last given here, that they
    /// may have to be changed: their table and their first key.
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

/// What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
