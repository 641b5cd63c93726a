//! Guards of what is in use: see `in_use`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blob_model::DateTime;
use store::{AccountMemory, Engine, Fault, ObjectId, TableRef, Transaction};
use tokio::task::JoinHandle;

use super::{BlobKey, Content, Contents, WRITING_TIME_MAX, counts};
use crate::Result;

/// Extents of contents that are compared before something is removed at once. If there are more, the sweep does it.
const COMPARED_MAX: u64 = 200_000;
/// What each of them may take: its object in a set, and in two lists, which have room for as many again.
const COMPARED_BYTES: usize = 8 * size_of::<ObjectId>();

/// Objects that were written and that no row names yet. To be kept until the commit has answered: so long the sweep leaves them
/// alone, however long it takes.
#[derive(Debug)]
pub struct Fresh {
    contents: Contents,
    objects: Vec<ObjectId>,
}

impl Fresh {
    pub(super) fn new(contents: &Contents) -> Self {
        Self { contents: contents.clone(), objects: Vec::new() }
    }

    /// A new name, for an object that is about to be written.
    pub(super) fn name_object(&mut self) -> ObjectId {
        let object = ObjectId::new(self.contents.now(), rand::random());
        counts::add(&self.contents.0.counts.written, 1);
        self.contents.0.in_use.hold_fresh(object);
        self.objects.push(object);
        object
    }

    pub(super) fn take(&mut self) -> Self {
        Self { contents: self.contents.clone(), objects: std::mem::take(&mut self.objects) }
    }

    /// In the background: for what nobody can have named.
    pub(super) fn discard_later(&mut self) {
        self.discard_after::<()>(None);
    }

    /// In the background, and after the chunk that is being written: for what nobody can have named.
    pub(super) fn discard_after<T: Send + 'static>(&mut self, putting: Option<JoinHandle<T>>) {
        let mut fresh = self.take();
        if !fresh.objects.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                if let Some(putting) = putting {
                    let _ = putting.await;
                }
                fresh.remove().await;
            });
        }
    }

    pub fn objects(&self) -> &[ObjectId] {
        &self.objects
    }

    /// Removes them, because what was to name them was refused. Never to be called while a commit that names them may still
    /// happen, or if it is not known whether it did.
    pub async fn discard(mut self) {
        self.remove().await;
    }

    async fn remove(&mut self) {
        // What can't be removed now is left to the sweep.
        if self.contents.remove(self.objects.clone()).await.is_ok() {
            counts::add(&self.contents.0.counts.removed, self.objects.len());
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.contents.0.in_use.release_fresh(&self.objects);
    }
}

/// As long as it lives, nothing that a row of this blob named when it was made is removed.
#[derive(Debug)]
pub struct ReadPin {
    contents: Contents,
    begin: u64,
}

/// An operation that names objects which it has found in rows, or that removes objects. It begins before these rows are read.
#[derive(Debug)]
pub struct Change {
    /// Shared with commits that run: what is held is held until the engine has answered, whoever still waits for that.
    hold: Arc<Hold>,
}

#[derive(Debug)]
struct Hold {
    contents: Contents,
    begin: u64,
    held: Mutex<Vec<ObjectId>>,
    fresh: Mutex<Vec<Fresh>>,
    maps: Mutex<Vec<NewMap>>,
}

/// A map of a page blob that a change writes, and when it began to.
#[derive(Clone, Copy, Debug)]
struct NewMap {
    id: [u8; 8],
    begun: DateTime,
}

impl Contents {
    /// To be called before the blob's row is read, and to be kept as long as its content is.
    pub fn pin(&self, blob: BlobKey) -> ReadPin {
        ReadPin { contents: self.clone(), begin: self.0.in_use.begin_reading(Some(blob)) }
    }

    /// Like `pin`, for all that there is.
    pub(super) fn pin_everything(&self) -> ReadPin {
        ReadPin { contents: self.clone(), begin: self.0.in_use.begin_reading(None) }
    }

    /// To be called before rows are read.
    pub fn begin_change(&self) -> Change {
        self.change_of(Vec::new())
    }

    fn change_of(&self, fresh: Vec<Fresh>) -> Change {
        let (contents, begin) = (self.clone(), self.0.in_use.begin_change());
        Change {
            hold: Arc::new(Hold {
                contents,
                begin,
                held: Mutex::default(),
                fresh: Mutex::new(fresh),
                maps: Mutex::default(),
            }),
        }
    }

    /// Every object that this content needs, manifests too, each once and in order.
    pub async fn objects_of(&self, content: &Content) -> Result<Vec<ObjectId>> {
        let mut objects: Vec<ObjectId> = content.manifests.iter().map(|manifest| manifest.object).collect();
        let mut walk = self.extents(content);
        while let Some(extent) = walk.next().await? {
            objects.push(extent.object);
        }
        objects.sort_unstable();
        objects.dedup();
        Ok(objects)
    }
}

impl Change {
    /// Keeps what was written for it until it ends.
    pub fn keep(&self, fresh: Fresh) {
        lock(&self.hold.fresh).push(fresh);
    }

    /// Before a row is committed that names what another row names: false if something of it is gone. Then the change must
    /// begin again, and read its rows again.
    #[must_use = "a change that can't hold what it names must begin again"]
    pub async fn hold(&self, content: &Content) -> Result<bool> {
        // Manifests first: while they are held, they can be read.
        let manifests: Vec<ObjectId> = content.manifests.iter().map(|manifest| manifest.object).collect();
        if !self.hold_objects(&manifests) {
            return Ok(false);
        }
        let objects = self.hold.contents.objects_of(content).await?;
        Ok(self.hold_objects(&objects))
    }

    #[must_use = "a change that can't hold what it names must begin again"]
    pub fn hold_objects(&self, objects: &[ObjectId]) -> bool {
        let Hold { contents, begin, held, .. } = &*self.hold;
        lock(held).extend_from_slice(objects);
        contents.0.in_use.hold(*begin, objects)
    }

    /// Before the first row of a new map is written, and until the change ends: no sweep of this server removes its rows.
    pub fn hold_map(&self, id: [u8; 8]) {
        let contents = &self.hold.contents;
        lock(&self.hold.maps).push(NewMap { id, begun: contents.now() });
        contents.0.in_use.hold_map(id);
    }

    /// The maps that are held.
    pub fn new_maps(&self) -> Vec<[u8; 8]> {
        lock(&self.hold.maps).iter().map(|map| map.id).collect()
    }

    /// Where several servers share the data: refused if another one may take the rows of a map that is held for old by now.
    pub fn check_maps(&self) -> Result<()> {
        let contents = &self.hold.contents;
        let is_late = |map: &NewMap| contents.now() > map.begun.plus(WRITING_TIME_MAX);
        if contents.0.is_shared && lock(&self.hold.maps).iter().any(is_late) {
            return Err(blob_model::Refusal::Shared(common::Refusal::TimedOut).into());
        }
        Ok(())
    }

    /// The same change from its beginning: with what was written for it, and nothing held.
    pub fn begin_again(self) -> Self {
        let fresh = std::mem::take(&mut *lock(&self.hold.fresh));
        self.hold.contents.change_of(fresh)
    }

    /// Commits. If nobody waits for the answer any more, what is held is held until the engine has given it.
    pub async fn commit(
        &self,
        engine: &Arc<dyn Engine>,
        table: &TableRef,
        transaction: Transaction,
    ) -> std::result::Result<Vec<DateTime>, store::Error> {
        let (hold, engine, table) = (self.hold.clone(), engine.clone(), table.clone());
        let commit = tokio::spawn(async move {
            let answer = engine.apply(&table, transaction).await;
            drop(hold);
            answer
        });
        commit.await.map_err(|error| Fault::bug("a commit has failed").because(error))?
    }

    /// Removes what was written for it, because its commit was refused. Not if it is unknown whether it was.
    pub async fn discard(self) {
        let fresh = std::mem::take(&mut *lock(&self.hold.fresh));
        for fresh in fresh {
            fresh.discard().await;
        }
    }

    /// After a commit: removes these objects, which were named by rows of this blob and are not any more. Nobody else may
    /// name them but changes that run now.
    pub async fn remove(&self, blob: BlobKey, objects: Vec<ObjectId>) -> Result<()> {
        let Hold { contents, begin, .. } = &*self.hold;
        if contents.0.is_shared {
            return Ok(());
        }
        let (count, ready) = contents.0.in_use.remove(*begin, blob, objects);
        counts::add(&contents.0.counts.removed, count);
        Ok(contents.remove_soon(ready).await?)
    }

    /// After a commit: removes what this content needs and none of the others do, which are all that rows of this blob name.
    /// Content that is shared with other blobs must not be given here. It does nothing if the payer has no memory for it.
    pub async fn remove_content(
        &self,
        blob: BlobKey,
        content: &Content,
        kept: &[&Content],
        payer: Option<&AccountMemory>,
    ) -> Result<()> {
        let contents = &self.hold.contents;
        if contents.0.is_shared {
            return Ok(());
        }
        let extents: u64 = kept.iter().copied().chain([content]).map(Content::extent_count).sum();
        if extents > COMPARED_MAX {
            return Ok(());
        }
        // At most `COMPARED_MAX`, which is a `usize`.
        let bytes = extents as usize * COMPARED_BYTES;
        let mut held = payer.map(AccountMemory::nothing);
        if !held.as_mut().is_none_or(|held| held.resize(bytes)) {
            return Ok(());
        }
        let mut kept_objects = HashSet::new();
        for kept in kept {
            kept_objects.extend(contents.objects_of(kept).await?);
        }
        let mut objects = contents.objects_of(content).await?;
        objects.retain(|object| !kept_objects.contains(object));
        self.remove(blob, objects).await
    }
}

impl Drop for ReadPin {
    fn drop(&mut self) {
        let ready = self.contents.0.in_use.end_reading(self.begin);
        self.contents.remove_later(ready);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let maps: Vec<[u8; 8]> = lock(&self.maps).iter().map(|map| map.id).collect();
        self.contents.0.in_use.release_maps(&maps);
        self.contents.0.in_use.end_change(self.begin, &lock(&self.held));
    }
}

/// What is in these locks is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
