//! Writes content that comes in pieces.

use std::time::Duration;

use blob_model::{AccountName, Checksums, Crc64, Sums};
use bytes::{Bytes, BytesMut};
use store::{CHUNK_BYTES, CHUNK_BYTES_MAX, CHUNK_SEAL_BYTES, Fault, MemoryShare, ObjectId};
use tokio::task::JoinHandle;

use super::{Content, Contents, Extent, Fresh, INLINE_BYTES_MAX, chunk};
use crate::Result;

/// How long writing may take. The sweep leaves objects alone that are younger than a day, so content that takes so long is
/// still safe when its row is committed.
pub const WRITING_TIME_MAX: Duration = Duration::from_secs(20 * 3600);

/// What a writer begins with; most content is small, and a large one needs a chunk soon.
const FIRST_BUFFER_BYTES: usize = INLINE_BYTES_MAX;
/// A larger buffer is one for a whole chunk. A buffer is never more than four times what it has.
const GROWING_BUFFER_BYTES_MAX: usize = CHUNK_BYTES / 4;

type PutOutcome = std::result::Result<(), store::Error>;

/// Where content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Into the row, if it is small enough.
    SmallInRow,
    /// Always into an object of its own, as one extent.
    InObject,
}

/// Holds at most two chunks besides the piece that it is given: one that is filled, and the one before it, which is written
/// meanwhile. If it is dropped before it is finished, what it has written is removed.
#[derive(Debug)]
pub struct ContentWriter {
    contents: Contents,
    keep: Keep,
    buffer: BytesMut,
    share: Option<MemoryShare>,
    /// Once something was written.
    object: Option<ObjectId>,
    /// The chunk before this one. A task of its own, because it holds a turn of the engine: that must not depend on how fast
    /// the next chunk comes.
    putting: Option<JoinHandle<PutOutcome>>,
    fresh: Fresh,
    chunks: u32,
    length: u64,
    /// Of the chunks before the one that is filled.
    crc64: Crc64,
    /// The CRC is that of the chunk that is filled, the MD5 that of all.
    checksums: Checksums,
}

/// Content that is written and durable, and that no row names yet.
#[derive(Debug)]
pub struct Written {
    pub content: Content,
    pub length: u64,
    pub sums: Sums,
    /// To be kept until the commit has answered, and to be discarded if that was refused.
    pub fresh: Fresh,
}

impl Contents {
    pub fn writer(&self, keep: Keep, with_md5: bool) -> ContentWriter {
        ContentWriter {
            contents: self.clone(),
            keep,
            buffer: BytesMut::new(),
            share: self.0.memory.as_ref().map(|memory| memory.nothing()),
            object: None,
            putting: None,
            fresh: Fresh::new(self),
            chunks: 0,
            length: 0,
            crc64: Crc64::EMPTY,
            checksums: Checksums::new(with_md5),
        }
    }
}

impl ContentWriter {
    /// Charges what it holds to this account's part of the memory for requests.
    pub fn charged_to(mut self, account: &AccountName) -> Self {
        self.share = self.contents.memory_of(account).map(|memory| memory.nothing());
        self
    }

    /// Charges nothing to the memory for requests: whoever writes has a bound of his own.
    pub fn uncharged(mut self) -> Self {
        self.share = None;
        self
    }

    /// Bytes that it was given.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub async fn push(&mut self, piece: Bytes) -> Result<()> {
        self.length += piece.len() as u64;
        if self.putting.as_ref().is_some_and(JoinHandle::is_finished) {
            self.settle().await?;
        }
        let mut rest = &piece[..];
        while !rest.is_empty() {
            // Written only when more comes, so that what is left at the end is never empty.
            if self.buffer.len() == CHUNK_BYTES {
                let (_, put) = self.next_chunk().await?;
                self.putting = Some(tokio::spawn(put));
            }
            let (some, behind) = rest.split_at(rest.len().min(CHUNK_BYTES - self.buffer.len()));
            self.make_room(some.len())?;
            self.checksums.update(some);
            self.buffer.extend_from_slice(some);
            rest = behind;
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Written> {
        let is_small = self.object.is_none() && self.buffer.len() <= INLINE_BYTES_MAX;
        if self.length == 0 || is_small && self.keep == Keep::SmallInRow {
            let content = Content::inline(self.buffer.split().freeze());
            let (length, sums) = (self.length, self.checksums.clone().finish());
            debug_assert_eq!(self.crc64, Crc64::EMPTY, "nothing was written before");
            return Ok(Written { content, length, sums, fresh: self.fresh.take() });
        }
        let (object, put) = self.next_chunk().await?;
        // By a task too, so that whoever gives up removes what was written when nothing is written any more.
        self.putting = Some(tokio::spawn(put));
        self.settle().await?;
        self.contents.0.objects.sync(&[object]).await?;
        let sums = Sums { crc64: self.crc64, ..self.checksums.clone().finish() };
        let extent = Extent { object, start: 0, length: self.length, crc64: sums.crc64, block: None };
        let (content, length) = (Content::of_extent(extent), self.length);
        Ok(Written { content, length, sums, fresh: self.fresh.take() })
    }

    /// Grows the buffer in few steps, and never beyond a chunk with its checksum.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let needed = self.buffer.len() + bytes + CHUNK_SEAL_BYTES;
        if needed <= self.buffer.capacity() {
            return Ok(());
        }
        let capacity = match self.object {
            None if needed <= GROWING_BUFFER_BYTES_MAX => needed.next_power_of_two().max(FIRST_BUFFER_BYTES),
            _ => CHUNK_BYTES_MAX,
        };
        let written = if self.putting.is_some() { CHUNK_BYTES_MAX } else { 0 };
        if let Some(share) = &mut self.share
            && !share.resize(capacity + written)
        {
            return Err(store::Error::Busy.into());
        }
        // `reserve` would take more.
        let mut buffer = match capacity == CHUNK_BYTES_MAX {
            true => self.contents.0.buffers.take(),
            false => BytesMut::with_capacity(capacity),
        };
        buffer.extend_from_slice(&self.buffer);
        self.buffer = buffer;
        Ok(())
    }

    /// Waits for the chunk before this one, and gives its memory back.
    async fn settle(&mut self) -> Result<()> {
        let Some(putting) = &mut self.putting else { return Ok(()) };
        let put = putting.await.map_err(|error| Fault::bug("writing a chunk has failed").because(error));
        self.putting = None;
        if let Some(share) = &mut self.share {
            // Shrinking never fails.
            let _ = share.resize(self.buffer.capacity());
        }
        Ok(put??)
    }

    /// What writes the filled chunk, once the one before it is written.
    async fn next_chunk(&mut self) -> Result<(ObjectId, impl Future<Output = PutOutcome> + use<>)> {
        self.settle().await?;
        let object = *self.object.get_or_insert_with(|| self.fresh.name_object());
        let begun = object.named().ok_or_else(|| Fault::bug("a name that was just made has no time"))?;
        if self.contents.now() > begun.plus(WRITING_TIME_MAX) {
            return Err(blob_model::Refusal::Shared(common::Refusal::TimedOut).into());
        }
        let number = self.chunks;
        self.chunks = number.checked_add(1).ok_or_else(|| Fault::bug("an object has no more chunks"))?;
        let crc64 = self.checksums.take_crc64();
        self.crc64 = self.crc64.join(crc64, self.buffer.len() as u64);
        // Not `split`, which would leave a second owner of the buffer.
        let chunk = chunk::seal_known(object, number, std::mem::take(&mut self.buffer), crc64);
        let contents = self.contents.clone();
        Ok((object, async move {
            let put = contents.0.objects.put(object, number, chunk.clone()).await;
            contents.0.buffers.give_back(chunk);
            put
        }))
    }
}

impl Drop for ContentWriter {
    fn drop(&mut self) {
        self.fresh.discard_after(self.putting.take());
    }
}
