//! Uploads a block blob: small content as a whole, larger content in blocks, several at a time.
//!
//! Blocks are not visible until the list of them is committed, so an upload that fails leaves the blob as it was. Each block is
//! sent again by itself if its connection breaks.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;

use blob_model::{BlockChoice, BlockId, Checksums, limits};
use blob_wire::names as blob_names;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use http::Method;

use super::blob::Blob;
use super::properties::{self, BlobType, ContentHeaders};
use super::writes::{self, Written};
use crate::error::{Error, Result};
use crate::transport::ServiceRequest;

const BLOCK_BYTES: usize = 8 * 1024 * 1024;
/// Of any version of the service since 2019-12-12.
const BLOCK_BYTES_MAX: usize = 4000 * 1024 * 1024;
const PARALLEL: usize = 4;
/// After so many blocks, blocks are twice as large as before. So an endless stream fits in the blocks that a blob may have:
/// the last ones are 16 times as large as the first.
const BLOCKS_OF_ONE_SIZE: usize = limits::COMMITTED_BLOCKS_MAX / 5;

/// How to upload, and what a blob has besides its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct UploadOptions {
    pub(super) headers: ContentHeaders,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) tags: BTreeMap<String, String>,
    tier: Option<String>,
    block_bytes: usize,
    parallel: usize,
}

impl Default for UploadOptions {
    fn default() -> Self {
        Self {
            headers: ContentHeaders::default(),
            metadata: BTreeMap::new(),
            tags: BTreeMap::new(),
            tier: None,
            block_bytes: BLOCK_BYTES,
            parallel: PARALLEL,
        }
    }
}

impl UploadOptions {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn headers(self, headers: ContentHeaders) -> Self {
        Self { headers, ..self }
    }

    /// Shorthand for a header: `text/plain`.
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.headers.content_type = Some(content_type.into());
        self
    }

    pub fn metadata(self, metadata: BTreeMap<String, String>) -> Self {
        Self { metadata, ..self }
    }

    pub fn tags(self, tags: BTreeMap<String, String>) -> Self {
        Self { tags, ..self }
    }

    /// The tier of a block blob: `Hot`, `Cool`, `Cold` or `Archive`.
    pub fn tier(self, tier: impl Into<String>) -> Self {
        Self { tier: Some(tier.into()), ..self }
    }

    /// The size of a block, and of the content that is put as a whole: 8 MiB if it is not set. An upload holds as many of
    /// these in memory as it sends at the same time, and two more.
    pub fn block_bytes(self, bytes: usize) -> Self {
        Self { block_bytes: bytes.clamp(1, BLOCK_BYTES_MAX), ..self }
    }

    /// Blocks that are sent at the same time; four if it is not set.
    pub fn parallel(self, blocks: usize) -> Self {
        Self { parallel: blocks.max(1), ..self }
    }

    pub(super) fn add(&self, request: ServiceRequest) -> Result<ServiceRequest> {
        let request = self.headers.add(properties::with_metadata(request, &self.metadata)?);
        let request = writes::with_tags(request, &self.tags)?;
        Ok(match &self.tier {
            Some(tier) => request.header(blob_names::ACCESS_TIER, tier.as_str()),
            None => request,
        })
    }
}

impl Blob {
    /// Uploads this content as a block blob, over any blob that is there.
    pub async fn upload(&self, content: impl Into<Bytes>) -> Result<Written> {
        self.upload_with(content, &UploadOptions::default()).await
    }

    pub async fn upload_with(&self, content: impl Into<Bytes>, options: &UploadOptions) -> Result<Written> {
        let content = content.into();
        self.upload_stream(stream::iter([Ok::<_, std::convert::Infallible>(content)]), options).await
    }

    /// Uploads what a stream yields, of any length, in bounded memory.
    ///
    /// ```no_run
    /// # async fn run(blob: partita_client::Blob) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::Read as _;
    /// use futures_util::stream;
    /// use partita_client::UploadOptions;
    ///
    /// let file = std::fs::File::open("backup.tar")?;
    /// let pieces = stream::try_unfold(file, |mut file| async move {
    ///     let mut piece = vec![0; 256 * 1024];
    ///     let length = file.read(&mut piece)?;
    ///     piece.truncate(length);
    ///     Ok::<_, std::io::Error>((length > 0).then_some((piece.into(), file)))
    /// });
    /// blob.upload_stream(pieces, &UploadOptions::new().content_type("application/x-tar")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_stream<E: fmt::Display>(
        &self,
        content: impl Stream<Item = Result<Bytes, E>>,
        options: &UploadOptions,
    ) -> Result<Written> {
        let mut content = pin!(content);
        let mut pending = Pending::default();
        let first = pending.fill(content.as_mut(), options.block_bytes).await?;
        // One byte more tells whether the content goes on.
        let Some(second) = pending.fill(content.as_mut(), options.block_bytes).await? else {
            return self.put_whole(first.unwrap_or_default(), options).await;
        };
        let first = first.unwrap_or_default();
        let upload = Upload { blob: self, tag: rand::random(), options };
        let blocks = stream::unfold((content, pending, 2), |(mut content, mut pending, index)| async move {
            let length = options.block_bytes << (index / BLOCKS_OF_ONE_SIZE).min(4);
            let block = pending.fill(content.as_mut(), length.min(BLOCK_BYTES_MAX)).await;
            block.transpose().map(|block| (block.map(|block| (index, block)), (content, pending, index + 1)))
        });
        let blocks = stream::iter([Ok((0, first)), Ok((1, second))]).chain(blocks);
        let sent = blocks.map(|block| upload.put_block(block)).buffer_unordered(options.parallel);
        let blocks = sent.try_fold(0, |most, index: usize| async move { Ok(most.max(index + 1)) }).await?;
        self.commit(&upload, blocks).await
    }

    async fn put_whole(&self, content: Bytes, options: &UploadOptions) -> Result<Written> {
        let request = self.request("put_blob", Method::PUT);
        let request = options.add(request.header(blob_names::BLOB_TYPE, BlobType::Block.name()))?;
        Written::of(&self.send(with_checksum(request, content)).await?)
    }

    async fn commit(&self, upload: &Upload<'_>, blocks: usize) -> Result<Written> {
        let list = (0..blocks).map(|index| Ok((BlockChoice::Uncommitted, upload.block_id(index)?)));
        self.commit_blocks_of(&list.collect::<Result<Vec<_>>>()?, upload.options).await
    }
}

/// The blocks of one upload.
struct Upload<'a> {
    blob: &'a Blob,
    /// In all of its block ids, so that two uploads at the same time do not mix.
    tag: u128,
    options: &'a UploadOptions,
}

impl Upload<'_> {
    async fn put_block(&self, block: Result<(usize, Bytes)>) -> Result<usize> {
        let (index, content) = block?;
        self.blob.put_block_of(&self.block_id(index)?, content).await?;
        Ok(index)
    }

    fn block_id(&self, index: usize) -> Result<BlockId> {
        if index >= limits::COMMITTED_BLOCKS_MAX {
            return Err(Error::invalid(format!(
                "the content is longer than {} blocks of {} bytes; UploadOptions::block_bytes sets larger ones",
                limits::COMMITTED_BLOCKS_MAX,
                self.options.block_bytes
            )));
        }
        let mut id = self.tag.to_be_bytes().to_vec();
        id.extend((index as u32).to_be_bytes());
        BlockId::of_bytes(&id).map_err(|fault| Error::invalid(fault.to_string()))
    }
}

/// A body with its checksum, so that bytes that changed on the way are refused.
pub fn with_checksum(request: ServiceRequest, content: Bytes) -> ServiceRequest {
    let mut checksums = Checksums::new(false);
    checksums.update(&content);
    let crc64 = checksums.finish().crc64.to_string();
    request.header("x-ms-content-crc64", crc64).body("application/octet-stream", content)
}

/// Pieces of the content that belong to no block yet.
#[derive(Default)]
struct Pending {
    pieces: VecDeque<Bytes>,
    length: usize,
    has_ended: bool,
}

impl Pending {
    /// A block of this length, or what is left; `None` at the end.
    async fn fill<E: fmt::Display>(
        &mut self,
        mut content: std::pin::Pin<&mut impl Stream<Item = Result<Bytes, E>>>,
        length: usize,
    ) -> Result<Option<Bytes>> {
        while self.length < length && !self.has_ended {
            match content.try_next().await.map_err(|error| Error::Source(error.to_string()))? {
                None => self.has_ended = true,
                Some(piece) if piece.is_empty() => {}
                Some(piece) => {
                    self.length += piece.len();
                    self.pieces.push_back(piece);
                }
            }
        }
        Ok((self.length > 0).then(|| self.take(length)))
    }

    /// Without a copy if it is all of one piece.
    fn take(&mut self, length: usize) -> Bytes {
        let length = length.min(self.length);
        self.length -= length;
        if let Some(first) = self.pieces.front_mut()
            && first.len() >= length
        {
            let block = first.split_to(length);
            if first.is_empty() {
                self.pieces.pop_front();
            }
            return block;
        }
        let mut block = BytesMut::with_capacity(length);
        while block.len() < length
            && let Some(mut piece) = self.pieces.pop_front()
        {
            let rest = length - block.len();
            if piece.len() > rest {
                block.extend_from_slice(&piece.split_to(rest));
                self.pieces.push_front(piece);
            } else {
                block.extend_from_slice(&piece);
            }
        }
        block.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Blocks are full but the last, none is empty, and together they are the content.
        #[test]
        fn pieces_become_blocks(pieces in proptest::collection::vec(0_usize..20, 0..20), length in 1_usize..30) {
            let total: usize = pieces.iter().sum();
            let whole: Vec<u8> = (0..total).map(|n| n as u8).collect();
            let mut rest = Bytes::from(whole.clone());
            let pieces: Vec<Result<Bytes, std::convert::Infallible>> =
                pieces.into_iter().map(|length| Ok(rest.split_to(length))).collect();
            let blocks = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
                let mut content = pin!(stream::iter(pieces));
                let (mut pending, mut blocks) = (Pending::default(), Vec::new());
                while let Some(block) = pending.fill(content.as_mut(), length).await.unwrap() {
                    blocks.push(block);
                }
                blocks
            });
            prop_assert!(blocks.iter().rev().skip(1).all(|block| block.len() == length));
            prop_assert!(blocks.last().is_none_or(|block| !block.is_empty() && block.len() <= length));
            prop_assert_eq!(blocks.concat(), whole);
        }
    }
}
