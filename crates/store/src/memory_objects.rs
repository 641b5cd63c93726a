//! Objects in memory, for tests and for `--in-memory`. They are gone when the process ends.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::objects::check_chunk;
use crate::{ChunkPart, Error, Fault, ObjectId, Objects, ObjectsPage};

/// One lock around one map: so simple that other keepers of objects can be compared with it.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ObjectId, BTreeMap<u32, Bytes>>,
    closed: bool,
}

impl MemoryObjects {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        // The maps are consistent after every statement, so a poisoned lock is harmless.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(Fault::closed().into()) } else { Ok(state) }
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error> {
        check_chunk(&chunk)?;
        self.state()?.objects.entry(object).or_default().entry(number).or_insert(chunk);
        Ok(())
    }

    async fn sync(&self, _objects: &[ObjectId]) -> Result<(), Error> {
        // Nothing here survives a crash.
        self.state().map(drop)
    }

    async fn part(
        &self,
        object: ObjectId,
        number: u32,
        within: Range<usize>,
    ) -> Result<Option<ChunkPart>, Error> {
        let chunk = self.get(object, number).await?;
        Ok(chunk
            .filter(|chunk| within.start <= within.end && within.end <= chunk.len())
            .map(|chunk| ChunkPart { bytes: chunk.slice(within), chunk_bytes: chunk.len() }))
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error> {
        let state = self.state()?;
        Ok(state.objects.get(&object).and_then(|chunks| chunks.get(&number)).cloned())
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error> {
        let mut state = self.state()?;
        for object in objects {
            state.objects.remove(object);
        }
        Ok(())
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error> {
        let state = self.state()?;
        let mut names = state.objects.range(from..).map(|(object, _)| *object);
        let objects = names.by_ref().take(limit).collect();
        Ok(ObjectsPage { objects, next: names.next() })
    }

    async fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    }
}
