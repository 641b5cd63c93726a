//! Reclaims the space of removed objects, in the background.
//!
//! An object is gone when its removal is durable. A file of content is deleted then, but chunks in the database still take
//! space. RocksDB learns that they are garbage when
//! a compaction meets their keys, which are few and small. It deletes a blob file as soon as nothing in it is needed. If
//! half of all bytes in blob files are garbage, the other half is copied into new files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rocksdb::{BottommostLevelCompaction, CompactOptions};
use store::{Fault, ObjectId};
use tracing::{debug, info, warn};

use crate::content_files::ContentFiles;
use crate::db::{self, Db};
use crate::layout;

/// So many removed objects are reclaimed at once; fewer wait for a while, because each time makes a file.
const REMOVED_MAX: usize = 256;
/// Garbage below this is left alone.
const GARBAGE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// Properties that RocksDB has and its binding does not name.
const LIVE_BYTES: &str = "rocksdb.live-blob-file-size";
const GARBAGE_BYTES: &str = "rocksdb.live-blob-file-garbage-size";

pub struct ObjectReclaimer {
    pub db: Arc<Db>,
    pub files: Arc<ContentFiles>,
    pub stopping: Arc<AtomicBool>,
    pub after: Duration,
    /// Nothing is removed, and nothing is to be reclaimed.
    pub at_rest: bool,
}

/// The objects between two names, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: ObjectId,
    last: ObjectId,
}

impl Stretch {
    const EVERYTHING: Self =
        Self { first: ObjectId::FIRST, last: ObjectId::from_bytes([0xff; ObjectId::BYTES]) };

    fn of(object: ObjectId) -> Self {
        Self { first: object, last: object }
    }

    fn with(self, object: ObjectId) -> Self {
        Self { first: self.first.min(object), last: self.last.max(object) }
    }
}

impl ObjectReclaimer {
    /// Ends when the sender is dropped.
    pub fn run(self, removed: &Receiver<ObjectId>) {
        match self.files.survey(|object| self.is_needed(object)) {
            Ok(deleted) => debug!(deleted, bytes = self.files.bytes(), "files of content counted"),
            Err(_) if self.stopping.load(Ordering::SeqCst) => return,
            // What is left takes space until the next start.
            Err(fault) => warn!(%fault, "files of content that nothing needs were not deleted"),
        }
        // The last run may have ended before its removals were reclaimed.
        let mut begun = (!self.at_rest).then_some(Stretch::EVERYTHING);
        while let Some(first) = begun.take().or_else(|| removed.recv().ok().map(Stretch::of)) {
            let Some(stretch) = self.gather(removed, first) else { return };
            match self.reclaim(stretch) {
                Err(_) if self.stopping.load(Ordering::SeqCst) => return,
                Err(fault) => {
                    warn!(%fault, "the space of removed objects is not reclaimed before the next start");
                }
                Ok(()) => {}
            }
        }
    }

    /// Whether the database names it. A store at rest keeps all its files.
    fn is_needed(&self, object: ObjectId) -> Result<bool, Fault> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Fault::closed());
        }
        Ok(self.at_rest || self.db.names_object(object)?)
    }

    /// Waits for more removals, until there are many or the first has waited long enough. `None` at the end.
    fn gather(&self, removed: &Receiver<ObjectId>, mut stretch: Stretch) -> Option<Stretch> {
        let deadline = Instant::now() + self.after;
        for _ in 0..REMOVED_MAX {
            match removed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(object) => stretch = stretch.with(object),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        Some(removed.try_iter().fold(stretch, Stretch::with))
    }

    fn reclaim(&self, stretch: Stretch) -> Result<(), Fault> {
        // The tombstones are perhaps only in memory and in the log.
        self.db.flush_objects()?;
        let (start, end) = (layout::chunk_range(stretch.first).0, layout::chunk_range(stretch.last).1);
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        self.db.rocks().compact_range_cf_opt(self.db.objects(), Some(start), Some(end), &options);
        let names = (layout::object_name_key(stretch.first), layout::object_name_key(stretch.last));
        self.db.rocks().compact_range_cf_opt(self.db.objects(), Some(names.0), Some(names.1), &options);
        let Some(files) = BlobFiles::of(&self.db) else { return Ok(()) };
        debug!(bytes = files.bytes, garbage = files.garbage, "space of removed objects reclaimed");
        if files.garbage >= GARBAGE_BYTES_MIN && files.garbage >= files.bytes / 2 {
            self.copy_the_rest(files)?;
        }
        Ok(())
    }

    /// Copies all chunks that are still needed, so that all present blob files can be deleted. As many bytes were removed,
    /// so over time no more is copied than was removed.
    fn copy_the_rest(&self, before: BlobFiles) -> Result<(), Fault> {
        info!(
            bytes = before.bytes,
            garbage = before.garbage,
            "copying chunks out of files that are half garbage"
        );
        let collect = |on: &str| {
            let set = [("enable_blob_garbage_collection", on), ("blob_garbage_collection_age_cutoff", "1.0")];
            let set = self.db.rocks().set_options_cf(self.db.objects(), &set);
            set.map_err(|error| db::fault("could not change how chunks are compacted", error))
        };
        collect("true")?;
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.db.rocks().compact_range_cf_opt(self.db.objects(), None::<&[u8]>, None::<&[u8]>, &options);
        collect("false")
    }
}

/// What RocksDB says of the blob files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobFiles {
    pub bytes: u64,
    /// Bytes in them that nothing needs, as far as compactions have noticed.
    pub garbage: u64,
}

impl BlobFiles {
    pub fn of(db: &Db) -> Option<Self> {
        let number = |name| db.rocks().property_int_value_cf(db.objects(), name).ok().flatten();
        Some(Self { bytes: number(LIVE_BYTES)?, garbage: number(GARBAGE_BYTES)? })
    }
}
