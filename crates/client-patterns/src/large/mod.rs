//! Large values: bytes of any length that belong to an entity, stored in chunks.
//!
//! The chunks are written first, to a separate partition that no reader knows yet. Then one small write makes them visible:
//! the entity gets their partition, number, length and SHA-256. So a reader sees a whole value or none, and verifies it.
//! Replaced chunks are deleted afterwards. [`Large::sweep`] deletes the chunks of a writer that died.
//!
//! A table's [encryption](partita_client::EntityEncryption) encrypts properties only: the value is stored as it is given.
//!
//! ```no_run
//! # async fn run(table: partita_client::Table) -> Result<(), Box<dyn std::error::Error>> {
//! use partita_client::Entity;
//! use partita_client_patterns::large::Large;
//!
//! let files = Large::new(&table);
//! let file = tokio_file("report.pdf").await?;
//! files.put_from(&Entity::new("reports", "2026-01").with("Type", "application/pdf"), file).await?;
//!
//! let bytes = files.read("reports", "2026-01").await?.expect("it was just written");
//! # async fn tokio_file(_: &str) -> std::io::Result<tokio::io::Empty> { Ok(tokio::io::empty()) }
//! # Ok(())
//! # }
//! ```

mod chunk;
mod head;
mod read;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::JoinSet;

use super::bulk::Bulk;
use super::keys;
use head::Head;
use model::DateTime;
use partita_client::{ETag, Entity, Error, Filter, Result, StoredEntity, Table, partition_key, row_key};

pub use read::LargeValue;

/// The default number of concurrent chunks. Each has up to 704 KiB.
const CONCURRENCY: usize = 4;
/// How often to retry a read or a write that conflicts with other writers.
const ATTEMPTS: usize = 8;

/// The large values of a table's entities. [The module](self) has an example.
///
/// The chunks of the entity with the keys `p` and `r` are in a partition `p!r!…` of the same table.
#[derive(Clone, Debug)]
pub struct Large {
    table: Table,
    concurrency: usize,
}

impl Large {
    /// The large values of this table.
    pub fn new(table: &Table) -> Self {
        Self { table: table.clone(), concurrency: CONCURRENCY }
    }

    /// The number of chunks that are written or read at the same time; by default 4, at least 1.
    #[must_use]
    pub fn concurrency(self, chunks: usize) -> Self {
        Self { concurrency: chunks.max(1), ..self }
    }

    /// Inserts or replaces an entity with this value. The entity may have other properties, but none called `Large…`.
    pub async fn put<T: Serialize + ?Sized>(&self, entity: &T, value: &[u8]) -> Result<ETag> {
        self.put_from(entity, value).await
    }

    /// The same with the bytes of a reader. Only a few chunks are in memory.
    pub async fn put_from<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        value: impl AsyncRead + Unpin,
    ) -> Result<ETag> {
        let entity = Entity::from_typed(entity)?;
        head::check(&entity)?;
        let (partition, row) = (entity.partition_key.clone(), entity.row_key.clone());
        let generation = generation(DateTime::now());
        let chunks = chunk_partition(&partition, &row, &generation);
        let written = match self.write_chunks(&chunks, value).await {
            Ok(written) => self.make_visible(Head { generation, ..written }.write(entity)).await,
            Err(error) => Err(error),
        };
        match written {
            // The chunks may be visible, so they must stay.
            Err(Error::OutcomeUnknown(why)) => Err(Error::OutcomeUnknown(why)),
            Err(error) => {
                self.delete_chunks(partition_key().eq(chunks)).await;
                Err(error)
            }
            Ok((etag, replaced)) => {
                if let Some(replaced) = replaced {
                    let chunks = chunk_partition(&partition, &row, &replaced);
                    self.delete_chunks(partition_key().eq(chunks)).await;
                }
                Ok(etag)
            }
        }
    }

    /// An entity and its value, which is not read yet. `None` if the entity does not exist.
    pub async fn find(&self, partition: &str, row: &str) -> Result<Option<LargeValue>> {
        let Some(stored) = self.table.find::<Entity>(partition, row).await? else { return Ok(None) };
        let head = Head::read(&stored)?;
        let chunks = chunk_partition(partition, row, &head.generation);
        Ok(Some(LargeValue::new(self.table.clone(), self.concurrency, stored, head, chunks)))
    }

    /// All bytes of a value, verified, in memory. `None` if the entity does not exist. [`LargeValue::stream`] reads chunk by
    /// chunk.
    pub async fn read(&self, partition: &str, row: &str) -> Result<Option<Vec<u8>>> {
        let mut attempts = 1;
        let Some(mut found) = self.find(partition, row).await? else { return Ok(None) };
        loop {
            let error = match found.read().await {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) => error,
            };
            // Chunks are deleted after the value was replaced, so the newer value must be read.
            let Some(again) = self.find(partition, row).await? else { return Ok(None) };
            if again.entity.etag == found.entity.etag || attempts == ATTEMPTS {
                return Err(error);
            }
            found = again;
            attempts += 1;
        }
    }

    /// Deletes an entity, then its value. Returns whether the entity existed.
    pub async fn delete(&self, partition: &str, row: &str) -> Result<bool> {
        let mut attempts = 1;
        loop {
            let Some(found) = self.head(partition, row).await? else { return Ok(false) };
            match self.table.delete(partition, row, &found.etag).await {
                Ok(()) => {
                    if let Some(generation) = head::generation(&found) {
                        let chunks = chunk_partition(partition, row, &generation);
                        self.delete_chunks(partition_key().eq(chunks)).await;
                    }
                    return Ok(true);
                }
                Err(error) if error.is_changed() && attempts < ATTEMPTS => attempts += 1,
                Err(error) if error.code() == Some("ResourceNotFound") => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes invisible chunks of this entity, left by writers that died. Keeps chunks written after `before`, because their
    /// writer may still be working; choose a time before the start of every running write. Returns the number of deleted
    /// chunks.
    pub async fn sweep(&self, partition: &str, row: &str, before: DateTime) -> Result<u64> {
        let first = keys::join([partition, row, ""]);
        let end = keys::join([partition, row, &keys::oldest_first(before)]);
        let mut unseen = partition_key().between(first, end);
        let seen = self.head(partition, row).await?.and_then(|found| head::generation(&found));
        if let Some(generation) = seen {
            unseen = unseen.and(partition_key().ne(chunk_partition(partition, row, &generation)));
        }
        let report = Bulk::new(&self.table).delete(|all| all.filter(unseen)).await;
        match report.stopped {
            Some(stop) => Err(stop.error),
            None => Ok(report.done),
        }
    }

    async fn write_chunks(&self, partition: &str, value: impl AsyncRead + Unpin) -> Result<Head> {
        let mut under_way = JoinSet::new();
        let outcome = self.start_chunks(partition, value, &mut under_way).await;
        // After a failure all chunks are deleted, so wait until none can arrive any more.
        while under_way.join_next().await.is_some() {}
        outcome
    }

    async fn start_chunks(
        &self,
        partition: &str,
        mut value: impl AsyncRead + Unpin,
        under_way: &mut JoinSet<Result<ETag>>,
    ) -> Result<Head> {
        let mut head = Head::default();
        let mut digest = Sha256::new();
        loop {
            let mut bytes = Vec::with_capacity(chunk::BYTES_MAX);
            let mut chunk = (&mut value).take(chunk::BYTES_MAX as u64);
            let read = chunk.read_to_end(&mut bytes).await;
            read.map_err(|error| Error::Invalid(format!("the value can't be read to its end: {error}")))?;
            if bytes.is_empty() {
                break;
            }
            digest.update(&bytes);
            head.bytes += bytes.len() as u64;
            let entity = chunk::write(partition, head.chunks, &bytes);
            head.chunks =
                head.chunks.checked_add(1).filter(|chunks| *chunks <= chunk::CHUNKS_MAX).ok_or_else(
                    || Error::Invalid(format!("the value is longer than {} chunks", chunk::CHUNKS_MAX)),
                )?;
            if under_way.len() >= self.concurrency {
                finish_one(under_way).await?;
            }
            let table = self.table.clone();
            // Nobody else writes to this row, so a retry is harmless.
            under_way.spawn(async move { table.upsert_replace(&entity).await });
        }
        while !under_way.is_empty() {
            finish_one(under_way).await?;
        }
        head.sha256 = digest.finalize().to_vec();
        Ok(head)
    }

    /// Writes the entity that points to the chunks. Returns its version, and the generation that it has replaced.
    async fn make_visible(&self, entity: Entity) -> Result<(ETag, Option<String>)> {
        let mut attempts = 0;
        // An attempt with an unknown outcome, and the version that it was to replace.
        let mut doubt: Option<(Error, Option<ETag>)> = None;
        let prefer_doubt =
            |error, doubt: Option<(Error, _)>| Err(doubt.map_or(error, |(unknown, _)| unknown));
        loop {
            attempts += 1;
            let there = match self.head(&entity.partition_key, &entity.row_key).await {
                Ok(there) => there,
                Err(error) => return prefer_doubt(error, doubt),
            };
            let replaced = there.as_ref().and_then(|there| head::generation(there));
            if let Some(there) = &there
                && replaced == head::generation(&entity)
            {
                return Ok((there.etag.clone(), None));
            }
            let version = there.map(|there| there.etag);
            // If the entity is neither ours nor the old one, somebody may have replaced ours and deleted its chunks.
            // Writing it again could point readers to missing chunks.
            if let Some((unknown, expected)) = &doubt
                && (version.is_none() || version != *expected)
            {
                return Err(unknown.clone());
            }
            let written = match &version {
                None => self.table.insert(&entity).await,
                Some(etag) => self.table.replace(&entity, etag).await,
            };
            let error = match written {
                Ok(etag) => return Ok((etag, replaced)),
                Err(error) => error,
            };
            let unknown = error.is_outcome_unknown();
            if unknown {
                doubt = Some((error.clone(), version));
            }
            if attempts == ATTEMPTS || !unknown && !was_overtaken(&error) {
                return prefer_doubt(error, doubt);
            }
        }
    }

    /// Reads only the generation of an entity.
    async fn head(&self, partition: &str, row: &str) -> Result<Option<StoredEntity<Entity>>> {
        let it = partition_key().eq(partition).and(row_key().eq(row));
        self.table.query().filter(it).select([head::GENERATION]).first().await
    }

    /// Ignores errors: the value itself is correct, and [`sweep`](Self::sweep) deletes what is left.
    async fn delete_chunks(&self, which: Filter) {
        let report = Bulk::new(&self.table).delete(|all| all.filter(which)).await;
        if !report.is_complete() {
            tracing::warn!(?report, "chunks that nobody can see are left; sweep them");
        }
    }
}

/// Whether somebody else wrote the entity between the read and the write.
fn was_overtaken(error: &Error) -> bool {
    error.is_changed() || matches!(error.code(), Some("EntityAlreadyExists" | "ResourceNotFound"))
}

/// A new id for every write, which begins with the time.
fn generation(now: DateTime) -> String {
    format!("{}{:016x}", keys::oldest_first(now), rand::random::<u64>())
}

fn chunk_partition(partition: &str, row: &str, generation: &str) -> String {
    keys::join([partition, row, generation])
}

async fn finish_one(under_way: &mut JoinSet<Result<ETag>>) -> Result<()> {
    match under_way.join_next().await {
        None => Ok(()),
        Some(Ok(written)) => written.map(drop).map_err(|error| match error {
            // For a chunk that nobody can see yet, the outcome does not matter.
            Error::OutcomeUnknown(why) => Error::Unanswered(why),
            other => other,
        }),
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Some(Err(_)) => Err(Error::Unanswered("the runtime was shut down".to_owned())),
    }
}
