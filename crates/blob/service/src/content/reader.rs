//! Reads a range of content as a stream.
//!
//! Chunks are read ahead, a few at a time. Every chunk proves itself (`chunk`); where a whole extent is read, its checksum is
//! compared too, before its last bytes are given out. Of a range, a few bytes of a large chunk are read without the rest, if the
//! keeper of objects can check them alone.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use blob_model::{AccountName, Crc64};
use bytes::Bytes;
use futures_core::Stream;
use store::{
    AccountMemory, CHUNK_BYTES, CHUNK_SEAL_BYTES, ChunkPart, ChunkSpan, Fault, MemoryShare, ObjectId,
    chunk_spans,
};
use tokio::task::JoinHandle;

use super::{Content, Contents, Extent, Manifest, ReadPin, fault_of, stored};
use crate::Upload;

/// Chunks that are held or under way: with the one that was given out last, less than 8 MiB.
const AHEAD_MAX: usize = 6;

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A part of what is to be read.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    Zeros(u64),
    Object {
        object: ObjectId,
        bytes: Range<u64>,
        /// Of these bytes, if that is known.
        crc64: Option<Crc64>,
    },
    /// The bytes of this range of what it lists.
    Manifest(Manifest, Range<u64>),
}

/// Tells what is to be read, a part at a time, for what is too long to be known at once.
#[async_trait]
pub(crate) trait PieceSource: Send + Sync + fmt::Debug {
    /// `None` at the end.
    async fn next(&mut self) -> Result<Option<VecDeque<Piece>>, Fault>;
}

/// The bytes of a range of content, whatever happens to its blob meanwhile.
#[derive(Debug)]
pub struct ContentReader {
    contents: Contents,
    _pin: ReadPin,
    pieces: VecDeque<Piece>,
    /// What comes behind them.
    source: Option<Box<dyn PieceSource>>,
    /// The rest of the piece that is being read ahead.
    current: Option<CurrentObject>,
    /// What is read ahead, and the memory that is held for it.
    ahead: VecDeque<(Ahead, Option<MemoryShare>)>,
    /// For the chunk that is given out next, if that was reserved.
    reserved: Option<MemoryShare>,
    payer: Option<AccountMemory>,
    /// How many chunks to read ahead: one at first, as most content is one chunk.
    window: usize,
    /// Of what was read of the present extent, if it is checked.
    crc64: Crc64,
}

#[derive(Debug)]
struct CurrentObject {
    object: ObjectId,
    rest: Range<u64>,
    crc64: Option<Crc64>,
    is_begun: bool,
}

#[derive(Debug)]
enum Ahead {
    Bytes(Bytes),
    Chunk {
        load: Load,
        /// Its extent has a checksum, and all of it is read.
        is_checked: bool,
        /// Nothing was read of its extent before.
        is_first: bool,
        /// Its extent ends here, and has this checksum.
        ends_with: Option<Crc64>,
    },
}

#[derive(Debug)]
enum Load {
    Waiting(ObjectId, ChunkSpan),
    Running(Running),
}

/// Ends with its reader.
#[derive(Debug)]
struct Running(JoinHandle<Result<Part, Fault>>);

/// Bytes of a chunk, with the checksum of the whole one if these are all of it.
#[derive(Debug)]
struct Part {
    bytes: Bytes,
    crc64: Option<Crc64>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Contents {
    /// Reads these bytes of the content. The pin was taken before the row was read that the content is from.
    pub fn reader(&self, content: &Content, range: Range<u64>, pin: ReadPin) -> Result<ContentReader, Fault> {
        if range.start > range.end || range.end > content.length() {
            return Err(Fault::bug(format!("bytes {range:?} of content with {} bytes", content.length())));
        }
        let mut at = 0;
        // What this part of the content, behind what was seen, has of the range.
        let mut within = |length: u64| {
            let begin = at;
            at += length;
            overlap(&range, begin, length)
        };
        let mut pieces = VecDeque::new();
        for manifest in &content.manifests {
            pieces.extend(within(manifest.length).map(|range| Piece::Manifest(*manifest, range)));
        }
        for extent in &content.extents {
            pieces.extend(within(extent.length).map(|range| piece_of(extent, range)));
        }
        let inline = &content.inline;
        // The range lies in bytes that are in memory, so its ends are.
        let slice = |range: Range<u64>| Piece::Bytes(inline.slice(range.start as usize..range.end as usize));
        pieces.extend(within(inline.len() as u64).map(slice));
        Ok(self.reader_of(pieces, None, pin))
    }

    pub(crate) fn reader_of(
        &self,
        pieces: VecDeque<Piece>,
        source: Option<Box<dyn PieceSource>>,
        pin: ReadPin,
    ) -> ContentReader {
        ContentReader {
            contents: self.clone(),
            _pin: pin,
            pieces,
            source,
            current: None,
            ahead: VecDeque::new(),
            reserved: None,
            payer: None,
            window: 1,
            crc64: Crc64::EMPTY,
        }
    }

    /// Bytes of a chunk. Of a whole extent its checksum is needed, so all of it is read.
    async fn part(&self, object: ObjectId, span: ChunkSpan, is_checked: bool) -> Result<Part, Fault> {
        if !is_checked && is_small(&span) {
            let part = self.0.objects.part(object, span.number, span.within.clone()).await;
            if let Some(part) = part.map_err(fault_of)?.and_then(|part| content_of(part, &span)) {
                return Ok(part);
            }
        }
        let read = self.chunk(object, span.number).await?;
        part_of(read, object, span)
    }

    /// The same if it can be had without waiting.
    fn part_at_hand(&self, object: ObjectId, span: &ChunkSpan, is_checked: bool) -> Option<Part> {
        if !is_checked && is_small(span) {
            let part = self.0.objects.part_at_hand(object, span.number, span.within.clone());
            if let Some(part) = part.and_then(|part| content_of(part, span)) {
                return Some(part);
            }
        }
        part_of(self.chunk_at_hand(object, span.number)?, object, span.clone()).ok()
    }
}

/// Whether a part costs less than its chunk.
fn is_small(span: &ChunkSpan) -> bool {
    span.within.len() <= CHUNK_BYTES / 2
}

/// A part, which its keeper has checked. `None` if not all of it is content.
fn content_of(part: ChunkPart, span: &ChunkSpan) -> Option<Part> {
    let is_content =
        part.bytes.len() == span.within.len() && span.within.end + CHUNK_SEAL_BYTES <= part.chunk_bytes;
    is_content.then_some(Part { bytes: part.bytes, crc64: None })
}

/// These bytes of a chunk that was read.
fn part_of((chunk, crc64): (Bytes, Crc64), object: ObjectId, span: ChunkSpan) -> Result<Part, Fault> {
    if span.within.end > chunk.len() {
        let place = format!("chunk {} of {}", span.number, stored::object(object));
        return Err(Fault::damaged("a chunk of content is too short").about(place));
    }
    let is_whole = span.within == (0..chunk.len());
    Ok(Part { bytes: chunk.slice(span.within), crc64: is_whole.then_some(crc64) })
}

/// The part of a range that lies in `length` bytes from `begin` on, counted from there.
fn overlap(range: &Range<u64>, begin: u64, length: u64) -> Option<Range<u64>> {
    let start = range.start.max(begin);
    let end = range.end.min(begin + length);
    (start < end).then(|| start - begin..end - begin)
}

fn piece_of(extent: &Extent, range: Range<u64>) -> Piece {
    let is_whole = range.end - range.start == extent.length;
    let bytes = extent.start + range.start..extent.start + range.end;
    Piece::Object { object: extent.object, bytes, crc64: is_whole.then_some(extent.crc64) }
}

impl ContentReader {
    /// Charges what it holds to this account's part of the memory for requests.
    pub fn charged_to(mut self, account: &AccountName) -> Self {
        self.payer = self.contents.memory_of(account);
        self
    }

    /// Memory of this size; `None` if there is not enough left.
    fn hold(&self, bytes: usize) -> Option<Option<MemoryShare>> {
        let mut share = match (&self.payer, &self.contents.0.memory) {
            (Some(payer), _) => payer.nothing(),
            (None, Some(memory)) => memory.nothing(),
            (None, None) => return Some(None),
        };
        share.resize(bytes).then_some(Some(share))
    }

    /// Reserves memory for what is held while these bytes are read, one chunk at most. Whoever answers a client reserves before
    /// the answer begins: a reader that finds none is refused as busy. Reading ahead takes more, as long as there is some.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), store::Error> {
        // At most a chunk, which is a `usize`.
        let bytes = bytes.min(CHUNK_BYTES as u64) as usize;
        self.reserved = self.hold(bytes).ok_or(store::Error::Busy)?;
        Ok(())
    }

    /// The next bytes; `None` at the end. After a fault nothing more comes.
    pub async fn next(&mut self) -> Option<Result<Bytes, Fault>> {
        let next = self.read().await.transpose();
        if !matches!(next, Some(Ok(_))) {
            self.pieces.clear();
            self.source = None;
            self.current = None;
            self.ahead.clear();
        }
        next
    }

    pub fn into_stream(self) -> ContentStream {
        ContentStream(State::Idle(Box::new(self)))
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Fault> {
        self.look_ahead().await?;
        let Some((next, _held)) = self.ahead.pop_front() else { return Ok(None) };
        self.window = (self.window * 2).min(AHEAD_MAX);
        let (load, is_checked, is_first, ends_with) = match next {
            Ahead::Bytes(bytes) => return Ok(Some(bytes)),
            Ahead::Chunk { load, is_checked, is_first, ends_with } => (load, is_checked, is_first, ends_with),
        };
        let Part { bytes, crc64 } = match load {
            // Not for more than one: reading ahead is for others to do, while this thread sends.
            Load::Waiting(object, span) => match self.contents.part_at_hand(object, &span, is_checked) {
                Some(part) => part,
                None => self.contents.part(object, span, is_checked).await?,
            },
            Load::Running(mut running) => {
                let done = (&mut running.0).await;
                done.map_err(|error| Fault::bug("reading ahead has failed").because(error))??
            }
        };
        if is_checked {
            let crc64 = crc64.unwrap_or_else(|| Crc64::of(&bytes));
            self.crc64 = if is_first { crc64 } else { self.crc64.join(crc64, bytes.len() as u64) };
        }
        if ends_with.is_some_and(|expected| expected != self.crc64) {
            return Err(Fault::damaged("content has another checksum than when it was written"));
        }
        Ok(Some(bytes))
    }

    /// Begins to read as many chunks as the window has. One alone is read by who waits for it.
    async fn look_ahead(&mut self) -> Result<(), Fault> {
        while self.ahead.len() < self.window {
            let held = match self.ahead.is_empty() {
                true => None,
                false => {
                    let Some(held) = self.hold(CHUNK_BYTES) else { break };
                    held
                }
            };
            let Some(next) = self.plan().await? else { break };
            self.ahead.push_back((next, held));
        }
        if self.ahead.len() < 2 {
            return Ok(());
        }
        for (ahead, _) in &mut self.ahead {
            if let Ahead::Chunk { load, is_checked, .. } = ahead
                && let Load::Waiting(object, span) = load
            {
                let (contents, object, span, is_checked) =
                    (self.contents.clone(), *object, span.clone(), *is_checked);
                let running = tokio::spawn(async move { contents.part(object, span, is_checked).await });
                *load = Load::Running(Running(running));
            }
        }
        Ok(())
    }

    /// What comes behind all that is read ahead.
    async fn plan(&mut self) -> Result<Option<Ahead>, Fault> {
        loop {
            if let Some(current) = &mut self.current {
                let Some(span) = chunk_spans(current.rest.clone()).next() else {
                    return Err(Fault::bug("content behind the last chunk of an object"));
                };
                let is_first = !current.is_begun;
                current.is_begun = true;
                current.rest.start += span.within.len() as u64;
                let is_last = current.rest.is_empty();
                let load = Load::Waiting(current.object, span);
                let is_checked = current.crc64.is_some();
                let ends_with = current.crc64.filter(|_| is_last);
                if is_last {
                    self.current = None;
                }
                return Ok(Some(Ahead::Chunk { load, is_checked, is_first, ends_with }));
            }
            match self.pieces.pop_front() {
                None => {
                    let Some(source) = &mut self.source else { return Ok(None) };
                    match source.next().await? {
                        Some(pieces) => self.pieces = pieces,
                        None => self.source = None,
                    }
                }
                Some(Piece::Bytes(bytes)) => return Ok(Some(Ahead::Bytes(bytes))),
                Some(Piece::Zeros(length)) => {
                    let now = length.min(ZEROS.len() as u64);
                    if length > now {
                        self.pieces.push_front(Piece::Zeros(length - now));
                    }
                    // At most the length of the zeros there are.
                    return Ok(Some(Ahead::Bytes(Bytes::from_static(&ZEROS[..now as usize]))));
                }
                Some(Piece::Object { object, bytes, crc64 }) => {
                    self.current = Some(CurrentObject { object, rest: bytes, crc64, is_begun: false });
                }
                Some(Piece::Manifest(manifest, range)) => {
                    let mut at = 0;
                    let mut listed = VecDeque::new();
                    for extent in &self.contents.extents_of(&manifest).await? {
                        let within = overlap(&range, at, extent.length);
                        listed.extend(within.map(|range| piece_of(extent, range)));
                        at += extent.length;
                    }
                    listed.append(&mut self.pieces);
                    self.pieces = listed;
                }
            }
        }
    }
}

// A chunk is read as a whole, and counts as one.
const _: () = assert!((AHEAD_MAX + 1) * (CHUNK_BYTES + 1024) < 8 * 1024 * 1024);

/// A reader as a stream.
pub struct ContentStream(State);

/// A reader, and what it has read.
type Read = (Box<ContentReader>, Option<Result<Bytes, Fault>>);

enum State {
    Idle(Box<ContentReader>),
    Reading(Pin<Box<dyn Future<Output = Read> + Send>>),
    Done,
}

impl Stream for ContentStream {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.0, State::Done) {
                State::Done => return Poll::Ready(None),
                State::Idle(mut reader) => {
                    self.0 = State::Reading(Box::pin(async move {
                        let next = reader.next().await;
                        (reader, next)
                    }));
                }
                State::Reading(mut reading) => match reading.as_mut().poll(context) {
                    Poll::Pending => {
                        self.0 = State::Reading(reading);
                        return Poll::Pending;
                    }
                    Poll::Ready((reader, next)) => {
                        if matches!(next, Some(Ok(_))) {
                            self.0 = State::Idle(reader);
                        }
                        return Poll::Ready(next);
                    }
                },
            }
        }
    }
}

impl fmt::Debug for ContentStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentStream")
    }
}

/// Content as the body of an upload.
#[async_trait]
impl Upload for ContentReader {
    async fn next(&mut self) -> crate::Result<Option<Bytes>> {
        Ok(Self::next(self).await.transpose()?)
    }
}
