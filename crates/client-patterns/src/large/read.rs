//! Reads and verifies a large value.

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};

use super::chunk;
use super::head::Head;
use partita_client::{Entity, Error, Result, StoredEntity, Table};

/// An entity and its large value, which is not read yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LargeValue {
    /// The entity with its other properties.
    pub entity: StoredEntity<Entity>,
    table: Table,
    concurrency: usize,
    head: Head,
    chunks: String,
}

impl LargeValue {
    pub(super) fn new(
        table: Table,
        concurrency: usize,
        mut entity: StoredEntity<Entity>,
        head: Head,
        chunks: String,
    ) -> Self {
        Head::strip(&mut entity);
        Self { entity, table, concurrency, head, chunks }
    }

    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.head.bytes
    }

    /// All bytes, verified, in memory. Fails if the value was replaced or deleted since; [`Large::read`](super::Large::read)
    /// reads the new value then.
    pub async fn read(&self) -> Result<Vec<u8>> {
        let pieces: Vec<Vec<u8>> = self.stream().try_collect().await?;
        Ok(pieces.concat())
    }

    /// The value as a stream of pieces. They are verified only at the end: if they are wrong, the last item is an error.
    ///
    /// ```no_run
    /// # async fn run(files: partita_client_patterns::large::Large) -> Result<(), Box<dyn std::error::Error>> {
    /// use futures_util::TryStreamExt as _;
    /// use std::io::Write as _;
    ///
    /// let report = files.find("reports", "2026-01").await?.expect("it is there");
    /// let mut pieces = std::pin::pin!(report.stream());
    /// while let Some(bytes) = pieces.try_next().await? {
    ///     std::io::stdout().write_all(&bytes)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> impl Stream<Item = Result<Vec<u8>>> + Send + use<> {
        struct At {
            value: LargeValue,
            chunks: BoxStream<'static, Result<Vec<u8>>>,
            digest: Sha256,
            bytes: u64,
        }
        let value = self.clone();
        let chunks = stream::iter(0..self.head.chunks).map(move |number| {
            let value = value.clone();
            async move { value.chunk(number).await }
        });
        let chunks = chunks.buffered(self.concurrency).boxed();
        let start = At { value: self.clone(), chunks, digest: Sha256::new(), bytes: 0 };
        stream::try_unfold(start, |mut at| async move {
            if let Some(bytes) = at.chunks.try_next().await? {
                at.digest.update(&bytes);
                at.bytes += bytes.len() as u64;
                return Ok(Some((bytes, at)));
            }
            let head = &at.value.head;
            if at.bytes == head.bytes && at.digest.finalize().as_slice() == head.sha256 {
                return Ok(None);
            }
            Err(at
                .value
                .fault(&format!("is not what was written: {} bytes of {}, or others", at.bytes, head.bytes)))
        })
    }

    async fn chunk(&self, number: u32) -> Result<Vec<u8>> {
        let found = self.table.find::<Entity>(&self.chunks, &chunk::row(number)).await?;
        let found = found.ok_or_else(|| {
            let why =
                format!("lacks chunk {number} of {}; it may have been replaced meanwhile", self.head.chunks);
            self.fault(&why)
        })?;
        Ok(chunk::read(&found))
    }

    fn fault(&self, what: &str) -> Error {
        let Entity { partition_key, row_key, .. } = &*self.entity;
        Error::Unreadable(format!(
            "the large value of PartitionKey '{partition_key}' and RowKey '{row_key}' {what}"
        ))
    }
}
