//! Bodies of answers: empty, whole in memory, or a stream that is read as fast as the client reads it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

use crate::analytics::Exchange;
use crate::connections::ActiveRequest;
use crate::memory::{FREE_BYTES, MemoryShare};

/// A response body.
#[derive(Debug)]
pub struct Body {
    content: Content,
    /// Dropped with the body.
    exchange: Option<Box<Exchange>>,
    active_request: Option<ActiveRequest>,
}

enum Content {
    Nothing,
    /// Sent with its length.
    Sized(Bytes),
    /// Sent in chunks, even if it is empty.
    Chunked(Bytes),
    Stream(Pieces),
    /// Sent in chunks, without a length, until it ends.
    Open(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// A body that is too large to be held whole. The next piece is read when the previous one has been sent, so a slow client
/// holds one piece, not the body.
struct Pieces {
    pieces: Pin<Box<dyn Stream<Item = Result<Bytes, BrokenStream>> + Send>>,
    /// Bytes left of the announced length.
    left: u64,
}

/// The rest of a stream can't be read. The client already has the status, so the connection is closed: a cut-off body must
/// not look whole.
#[derive(Debug)]
pub struct BrokenStream(pub Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for BrokenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rest of the body can't be read: {}", self.0)
    }
}

impl std::error::Error for BrokenStream {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl Body {
    pub fn empty() -> Self {
        Self::of(Content::Nothing)
    }

    pub fn sized(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::of(if bytes.is_empty() { Content::Nothing } else { Content::Sized(bytes) })
    }

    pub fn chunked(bytes: Bytes) -> Self {
        Self::of(Content::Chunked(bytes))
    }

    /// A body of this length, piece by piece. Each piece should hold its share of the memory for requests
    /// (`held_bytes`). A stream of another length breaks the connection.
    pub fn stream(
        length: u64,
        pieces: impl Stream<Item = Result<Bytes, BrokenStream>> + Send + 'static,
    ) -> Self {
        if length == 0 {
            return Self::empty();
        }
        Self::of(Content::Stream(Pieces { pieces: Box::pin(pieces), left: length }))
    }

    /// A body without a known end, such as a stream of events.
    pub fn open_stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Content::Open(Box::pin(pieces)))
    }

    fn of(content: Content) -> Self {
        Self { content, exchange: None, active_request: None }
    }

    /// Bytes not sent yet; of an open stream, none are known.
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Nothing | Content::Open(_) => 0,
            Content::Sized(bytes) | Content::Chunked(bytes) => bytes.len() as u64,
            Content::Stream(pieces) => pieces.left,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a refusal repeats of its request may be long. It is held like any answer until it is sent, and left out if there is
    /// no memory for it, or if nobody is known to hold it.
    pub(crate) fn hold(&mut self, by: impl FnOnce() -> Option<MemoryShare>) {
        let (Content::Sized(bytes) | Content::Chunked(bytes)) = &mut self.content else { return };
        if bytes.len() <= FREE_BYTES {
            return;
        }
        let held = by().and_then(|mut held| held.resize(bytes.len()).then_some(held));
        match held {
            Some(held) => *bytes = with_memory(std::mem::take(bytes), held),
            None => self.content = Content::Nothing,
        }
    }

    /// The request ends when the body is dropped.
    pub(crate) fn belong_to(&mut self, request: ActiveRequest) {
        self.active_request = Some(request);
    }

    pub(crate) fn carry(&mut self, exchange: Option<Exchange>) {
        self.exchange = exchange.map(Box::new);
    }
}

/// A stream that ends before its length, because its client went away or its source failed, is no success in the log.
impl Drop for Body {
    fn drop(&mut self) {
        if let Content::Stream(Pieces { left, .. }) = &self.content
            && *left > 0
            && let Some(exchange) = &mut self.exchange
        {
            exchange.break_off(*left);
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenStream;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.content {
            Content::Nothing => Poll::Ready(None),
            Content::Stream(pieces) => pieces.poll(context),
            Content::Open(pieces) => {
                pieces.as_mut().poll_next(context).map(|piece| Some(Ok(Frame::data(piece?))))
            }
            Content::Sized(bytes) | Content::Chunked(bytes) => {
                let bytes = std::mem::take(bytes);
                self.content = Content::Nothing;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Nothing => true,
            Content::Sized(_) | Content::Chunked(_) | Content::Open(_) => false,
            Content::Stream(pieces) => pieces.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Chunked(_) | Content::Open(_) => SizeHint::default(),
            Content::Nothing | Content::Sized(_) | Content::Stream(_) => SizeHint::with_exact(self.len()),
        }
    }
}

impl Pieces {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenStream>>> {
        let broken = |why: &str| Poll::Ready(Some(Err(BrokenStream(why.into()))));
        match std::task::ready!(self.pieces.as_mut().poll_next(context)) {
            Some(Ok(piece)) => match self.left.checked_sub(piece.len() as u64) {
                Some(left) => {
                    self.left = left;
                    Poll::Ready(Some(Ok(Frame::data(piece))))
                }
                None => broken("it is longer than its announced length"),
            },
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None if self.left > 0 => broken("it is shorter than its announced length"),
            None => Poll::Ready(None),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Sized(bytes) => write!(f, "Sized({})", bytes.len()),
            Self::Chunked(bytes) => write!(f, "Chunked({})", bytes.len()),
            Self::Stream(pieces) => write!(f, "Stream({})", pieces.left),
            Self::Open(_) => f.write_str("Open"),
        }
    }
}

/// These bytes, which hold their share of the memory for requests until they are dropped.
pub fn held_bytes(bytes: Bytes, mut held: MemoryShare) -> Bytes {
    // It only shrinks: making the bytes held at least as much.
    held.resize(bytes.len());
    if held.bytes() == 0 { bytes } else { with_memory(bytes, held) }
}

/// These bytes, which hold this memory until they are dropped.
pub fn with_memory(bytes: Bytes, held: MemoryShare) -> Bytes {
    Bytes::from_owner(HeldBytes { bytes, _held: held })
}

struct HeldBytes {
    bytes: Bytes,
    _held: MemoryShare,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
