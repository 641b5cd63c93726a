//! Objects in memory that a test looks into: what was called, what is there, and with damage on request.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use store::{ChunkPart, Error, Fault, MemoryObjects, ObjectId, Objects, ObjectsPage};

#[derive(Debug, Default)]
pub struct WatchedObjects {
    inner: MemoryObjects,
    pub puts: AtomicUsize,
    pub gets: AtomicUsize,
    pub parts: AtomicUsize,
    pub largest: AtomicUsize,
    /// Puts from this one on fail; 0 for none.
    pub fails_from: AtomicUsize,
    getting: AtomicUsize,
    pub getting_most: AtomicUsize,
    /// What is returned instead of a chunk.
    damaged: Mutex<Vec<(ObjectId, u32, Option<Bytes>)>>,
}

impl WatchedObjects {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn damage(&self, object: ObjectId, number: u32, chunk: Option<Bytes>) {
        self.damaged.lock().unwrap().push((object, number, chunk));
    }

    pub async fn names(&self) -> Vec<ObjectId> {
        self.inner.list(ObjectId::FIRST, usize::MAX).await.unwrap().objects
    }

    pub async fn chunk(&self, object: ObjectId, number: u32) -> Option<Bytes> {
        self.inner.get(object, number).await.unwrap()
    }

    /// How many gets there were since the last question.
    pub fn take_gets(&self) -> usize {
        self.gets.swap(0, Ordering::SeqCst)
    }

    pub fn take_puts(&self) -> usize {
        self.puts.swap(0, Ordering::SeqCst)
    }
}

#[async_trait]
impl Objects for WatchedObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error> {
        let put = self.puts.fetch_add(1, Ordering::SeqCst) + 1;
        let fails_from = self.fails_from.load(Ordering::SeqCst);
        if fails_from > 0 && put >= fails_from {
            return Err(Fault::disk("no space left").into());
        }
        self.largest.fetch_max(chunk.len(), Ordering::SeqCst);
        self.inner.put(object, number, chunk).await
    }

    async fn sync(&self, objects: &[ObjectId]) -> Result<(), Error> {
        self.inner.sync(objects).await
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        let getting = self.getting.fetch_add(1, Ordering::SeqCst) + 1;
        self.getting_most.fetch_max(getting, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.getting.fetch_sub(1, Ordering::SeqCst);
        let damaged =
            self.damaged.lock().unwrap().iter().rev().find(|d| (d.0, d.1) == (object, number)).cloned();
        match damaged {
            Some((_, _, chunk)) => Ok(chunk),
            None => self.inner.get(object, number).await,
        }
    }

    /// Of a damaged chunk it says nothing, as one that has seen the damage.
    async fn part(
        &self,
        object: ObjectId,
        number: u32,
        within: Range<usize>,
    ) -> Result<Option<ChunkPart>, Error> {
        if self.damaged.lock().unwrap().iter().any(|damaged| (damaged.0, damaged.1) == (object, number)) {
            return Ok(None);
        }
        self.parts.fetch_add(1, Ordering::SeqCst);
        self.inner.part(object, number, within).await
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error> {
        self.inner.remove(objects).await
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error> {
        self.inner.list(from, limit).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
