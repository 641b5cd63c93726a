//! The content of blobs: written as objects, named by rows, read as streams, and removed when no row names it.
//!
//! Knows stored bytes and objects, and nothing of conditions, leases or requests. docs/decisions/0011-blobs.md says why.
//!
//! - An upload goes through a [`ContentWriter`], which answers where the content is: a [`Content`], to be put into a row.
//! - A download is a [`ContentReader`], whose [`ReadPin`] was taken before the row was read.
//! - An operation that names what another row names, or that removes something, has a [`Change`] from before it reads rows
//!   until it is done.

mod append;
mod buffers;
mod change;
mod chunk;
mod counts;
mod extent;
mod gather;
mod in_use;
mod join;
pub(crate) mod moves;
mod naming;
mod number;
pub mod pages;
mod reader;
mod readers;
mod removals;
mod stored;
mod sweep;
mod walk;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use blob_model::{AccountName, Crc64, DateTime};
use bytes::Bytes;
use store::{AccountMemory, Fault, ObjectId, Objects, RequestMemory};

pub use append::Appended;
pub use change::{Change, Fresh, ReadPin};
pub use counts::ContentCounts;
pub use extent::Extent;
pub use in_use::BlobKey;
pub use join::{ContentJoiner, Joined};
pub use naming::{CONTENT, ContentNaming, Named, SEGMENT, named_by};
pub use reader::{ContentReader, ContentStream};
pub(crate) use reader::{Piece, PieceSource};
pub use stored::{Content, INLINE_BYTES_MAX, MANIFEST_EXTENTS_MAX, MANIFESTS_MAX, Manifest, ROW_EXTENTS_MAX};
pub use sweep::{SWEPT_AGE, Swept};
pub use walk::ExtentWalk;
pub use writer::{ContentWriter, Keep, WRITING_TIME_MAX, Written};

use crate::{Clock, Result};
use buffers::Buffers;
use counts::Counts;
use in_use::InUse;
use removals::Removals;
use sweep::Suspects;

/// How long a stop waits for removals.
const LAST_REMOVALS_TIME_MAX: Duration = Duration::from_secs(5);
/// Objects that are removed in one call.
const REMOVED_AT_ONCE: usize = 1000;

/// Where content is kept. Cheap to clone.
#[derive(Clone)]
pub struct Contents(Arc<Shared>);

struct Shared {
    objects: Arc<dyn Objects>,
    clock: Arc<Clock>,
    memory: Option<Arc<RequestMemory>>,
    in_use: InUse,
    removals: Removals,
    counts: Counts,
    buffers: Buffers,
    /// Other servers read and write the same data: see `shared_by_servers`.
    is_shared: bool,
    suspects: Suspects,
}

impl Contents {
    pub fn new(objects: Arc<dyn Objects>, clock: Arc<Clock>) -> Self {
        Self::with(objects, clock, None, false)
    }

    /// Charges the chunks that uploads hold to this memory.
    pub fn charging(self, memory: Arc<RequestMemory>) -> Self {
        let shared = &*self.0;
        Self::with(shared.objects.clone(), shared.clock.clone(), Some(memory), shared.is_shared)
    }

    /// Other servers read and write the same data. What this one does not name any more may be read there, or be about to be
    /// named: so nothing that was ever named is removed at once, a sweep removes what an earlier one has found too, and what is
    /// named by another row than before is recorded (`moves`).
    pub fn shared_by_servers(self) -> Self {
        let shared = &*self.0;
        Self::with(shared.objects.clone(), shared.clock.clone(), shared.memory.clone(), true)
    }

    fn with(
        objects: Arc<dyn Objects>,
        clock: Arc<Clock>,
        memory: Option<Arc<RequestMemory>>,
        is_shared: bool,
    ) -> Self {
        let (in_use, counts, suspects) = (InUse::default(), Counts::default(), Suspects::default());
        let (removals, buffers) = (Removals::default(), Buffers::default());
        Self(Arc::new(Shared {
            objects,
            clock,
            memory,
            in_use,
            removals,
            counts,
            buffers,
            is_shared,
            suspects,
        }))
    }

    /// The memory for requests, as this account has it.
    pub fn memory_of(&self, account: &AccountName) -> Option<AccountMemory> {
        self.0.memory.as_ref().map(|memory| memory.of(account))
    }

    /// Whether this map is written by a change that may name it yet. To be asked before the rows are read that might.
    pub(crate) fn is_new_map(&self, map: &[u8; 8]) -> bool {
        self.0.in_use.is_new_map(map)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_shared
    }

    pub fn counts(&self) -> ContentCounts {
        let Shared { counts, in_use, .. } = &*self.0;
        ContentCounts {
            written: counts::read(&counts.written),
            removed: counts::read(&counts.removed),
            swept: counts::read(&counts.swept),
            sweeps: counts::read(&counts.sweeps),
            failed_sweeps: counts::read(&counts.failed_sweeps),
            waiting: in_use.waiting() as u64,
            readers: in_use.readers() as u64,
        }
    }

    /// A chunk that is there at once, if nothing is wrong with it.
    fn chunk_at_hand(&self, object: ObjectId, number: u32) -> Option<(Bytes, Crc64)> {
        chunk::open(object, number, self.0.objects.at_hand(object, number)?).ok()
    }

    /// One chunk of content, with its checksum.
    async fn chunk(&self, object: ObjectId, number: u32) -> std::result::Result<(Bytes, Crc64), Fault> {
        let place = || format!("chunk {number} of {}", stored::object(object));
        let found =
            self.0.objects.get(object, number).await.map_err(|error| fault_of(error).about(place()))?;
        let missing = || Fault::damaged("a chunk of content is missing").about(place());
        chunk::open(object, number, found.ok_or_else(missing)?)
    }

    /// An object of one chunk. It is durable after `sync`.
    async fn put_object(&self, fresh: &mut Fresh, content: &[u8]) -> Result<ObjectId> {
        let object = fresh.name_object();
        self.0.objects.put(object, 0, chunk::seal(object, 0, content.into())).await?;
        Ok(object)
    }

    /// The extents that a manifest lists.
    async fn extents_of(&self, manifest: &Manifest) -> std::result::Result<Vec<Extent>, Fault> {
        let (listed, _) = self.chunk(manifest.object, 0).await?;
        stored::read_manifest(manifest, &listed)
    }

    async fn remove(&self, objects: Vec<ObjectId>) -> std::result::Result<(), store::Error> {
        for some in objects.chunks(REMOVED_AT_ONCE) {
            self.0.objects.remove(some).await?;
        }
        Ok(())
    }

    /// Removes objects in the background. What can't be removed is left to the sweep.
    fn remove_later(&self, objects: Vec<ObjectId>) {
        // Without a runtime they are left to the sweep.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.0.removals.add(objects) {
            let contents = self.clone();
            runtime.spawn(async move {
                while let Some(objects) = contents.0.removals.next() {
                    let _ = contents.remove(objects).await;
                }
            });
        }
    }

    /// Waits until what was removed in the background is gone, but not long: the sweep takes the rest.
    pub(crate) async fn finish_removals(&self) {
        let _ = tokio::time::timeout(LAST_REMOVALS_TIME_MAX, async {
            while !self.0.removals.is_idle() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Like `remove_later`, unless too many wait already: then whoever removes more waits for the disk.
    async fn remove_soon(&self, objects: Vec<ObjectId>) -> std::result::Result<(), store::Error> {
        if self.0.removals.is_full() {
            return self.remove(objects).await;
        }
        self.remove_later(objects);
        Ok(())
    }

    fn now(&self) -> DateTime {
        self.0.clock.now()
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").field("in_use", &self.0.in_use).finish_non_exhaustive()
    }
}

/// What a keeper of objects answers to a read, which has no conditions.
fn fault_of(error: store::Error) -> Fault {
    match error {
        store::Error::Fault(fault) => fault,
        store::Error::Busy => Fault::busy("the keeper of objects has too much to do"),
        other => Fault::bug("a keeper of objects gave an answer that it never gives").because(other),
    }
}
