//! Reading a large value, checked.

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};

use super::chunk;
use super::head::Head;
use partita_client::{Entity, Error, Result, Stored, Table};

/// An entity and its large value, which is still to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LargeValue {
    /// With its other properties.
    pub entity: Stored<Entity>,
    table: Table,
    concurrency: usize,
    head: Head,
    chunks: String,
}

impl LargeValue {
    pub(super) fn new(
        table: Table,
        concurrency: usize,
        mut entity: Stored<Entity>,
        head: Head,
        chunks: String,
    ) -> Self {
        Head::strip(&mut entity);
        Self { entity, table, concurrency, head, chunks }
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.head.bytes
    }

    /// All of it in memory, checked. Fails if it was replaced or deleted meanwhile; [`Large::read`](super::Large::read)
    /// then reads what is there now.
    pub async fn read(&self) -> Result<Vec<u8>> {
        let pieces: Vec<Vec<u8>> = self.stream().try_collect().await?;
        Ok(pieces.concat())
    }

    /// Piece by piece. That all of them are right is known only at the end: a last item that is an error says that they
    /// were not.
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
