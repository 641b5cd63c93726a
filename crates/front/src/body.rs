//! Bodies of requests: read whole up to a limit, or piece by piece, within the memory for requests; or read and
//! discarded.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use common::Refusal;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

use crate::connections::Connection;
use crate::headers::header;
use crate::memory::{AccountMemory, MemoryShare};
use crate::response_body::with_memory;

/// How much of a refused request's body is read and discarded, so that its sender gets the refusal and not a broken
/// connection.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);

/// A body can be held three times: as received, decoded, and as rows to be written.
const COPIES_OF_A_BODY: usize = 3;
/// The first size of the buffer for a body of several pieces.
const BUFFER_BYTES_MIN: usize = 4096;

/// Why a body can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFailure {
    Refused(Refusal),
    /// Its sender closed the connection, or its chunks are malformed. Each service has its own refusal for this.
    Broken,
}

impl From<Refusal> for BodyFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The unread rest of a request's body.
#[derive(Debug)]
pub struct RequestBody {
    /// `None` once it is read to its end.
    unread: Option<Incoming>,
    /// Its sender waits for `100 Continue`.
    is_held_back: bool,
    /// Bytes read so far.
    received: u64,
    /// Reading it failed: see `BodyFailure::Broken`.
    is_broken: bool,
}

impl RequestBody {
    pub fn new(headers: &HeaderMap, body: Incoming) -> Self {
        let unread = Some(body).filter(|body| !body.is_end_stream());
        let expects = unread.as_ref().and_then(|_| header(headers, EXPECT).if_readable());
        Self {
            unread,
            is_held_back: expects.is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue")),
            received: 0,
            is_broken: false,
        }
    }

    /// The body of a request that has none.
    pub fn none() -> Self {
        Self { unread: None, is_held_back: false, received: 0, is_broken: false }
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The `Content-Length` of a request.
    pub fn announced(headers: &HeaderMap) -> Option<u64> {
        header(headers, CONTENT_LENGTH).if_readable().and_then(|length| length.parse().ok())
    }

    /// The whole body, up to `bytes_max`. Only for an authenticated request.
    pub async fn read_whole(
        &mut self,
        headers: &HeaderMap,
        bytes_max: usize,
        deadline: tokio::time::Instant,
        held: &mut MemoryShare,
    ) -> Result<Bytes, BodyFailure> {
        let Some(body) = &mut self.unread else { return Ok(Bytes::new()) };
        let announced = Self::announced(headers).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if announced.is_some_and(|length| length > bytes_max) {
            return Err(Refusal::RequestBodyTooLarge.into());
        }
        self.is_held_back = false;
        let collected = tokio::time::timeout_at(deadline, collect(body, announced, bytes_max, held)).await;
        let whole = collected.map_err(|_| Refusal::TimedOut)?;
        self.is_broken = whole == Err(BodyFailure::Broken);
        let whole = whole?;
        self.received = whole.len() as u64;
        self.unread = None;
        Ok(whole)
    }

    /// The next piece, or `None` at the end. Only for an authenticated request. Reads nothing from the connection between
    /// calls, so a slow reader slows its sender down. A piece takes its share of the memory for requests until it is
    /// dropped.
    pub async fn next(
        &mut self,
        deadline: tokio::time::Instant,
        memory: &AccountMemory,
    ) -> Result<Option<Bytes>, BodyFailure> {
        self.is_held_back = false;
        loop {
            let Some(body) = &mut self.unread else { return Ok(None) };
            let frame =
                tokio::time::timeout_at(deadline, body.frame()).await.map_err(|_| Refusal::TimedOut)?;
            let Some(frame) = frame else {
                self.unread = None;
                return Ok(None);
            };
            let Ok(frame) = frame else {
                self.is_broken = true;
                return Err(BodyFailure::Broken);
            };
            let Ok(piece) = frame.into_data() else { continue };
            self.received += piece.len() as u64;
            let mut held = memory.nothing();
            if !held.grow(piece.len()) {
                return Err(Refusal::Busy.into());
            }
            return Ok(Some(with_memory(piece, held)));
        }
    }

    /// Reads and discards the rest in the background: closing a connection while the client still sends would lose the
    /// refusal. Until the body ends, this connection is the first to be closed to make room.
    pub fn discard(self, connection: &Arc<Connection>) {
        // A sender that waits for `100 Continue` gets the refusal instead, and sends no body.
        let Some(body) = self.unread.filter(|_| !self.is_held_back) else { return };
        let discarding = connection.discard();
        tokio::spawn(async move {
            let read = async {
                let mut body = std::pin::pin!(Limited::new(body, DISCARDED_BYTES_MAX));
                while let Some(Ok(_)) = body.frame().await {}
            };
            // After too many bytes or too much time, the body is dropped before its end, which closes the connection.
            let _ = tokio::time::timeout(DISCARD_TIME_MAX, read).await;
            drop(discarding);
        });
    }
}

async fn collect(
    body: &mut Incoming,
    announced: Option<usize>,
    bytes_max: usize,
    held: &mut MemoryShare,
) -> Result<Bytes, BodyFailure> {
    let mut whole = BodyBuffer::Nothing;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyFailure::Broken)?.into_data() else { continue };
        let length = whole.len() + piece.len();
        if length > bytes_max {
            return Err(Refusal::RequestBodyTooLarge.into());
        }
        let room = whole.room_for(length, announced);
        if !held.resize(room * COPIES_OF_A_BODY) {
            return Err(Refusal::Busy.into());
        }
        whole.push(piece, room);
    }
    Ok(whole.into_bytes())
}

/// The received part of a body: one piece as received, or several joined in one buffer. A list of pieces is not kept:
/// there can be as many as the body has bytes.
enum BodyBuffer {
    Nothing,
    One(Bytes),
    Several(BytesMut),
}

impl BodyBuffer {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(piece) => piece.len(),
            Self::Several(buffer) => buffer.len(),
        }
    }

    /// The size of the buffer for so many bytes: twice its present size, or the announced length.
    fn room_for(&self, length: usize, announced: Option<usize>) -> usize {
        let present = match self {
            Self::Nothing => return length,
            Self::One(_) => BUFFER_BYTES_MIN,
            Self::Several(buffer) => buffer.capacity(),
        };
        if length <= present {
            return present;
        }
        length.max(2 * present).min(announced.unwrap_or(usize::MAX).max(length))
    }

    fn push(&mut self, piece: Bytes, room: usize) {
        *self = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => Self::One(piece),
            Self::One(first) => {
                let mut buffer = BytesMut::with_capacity(room);
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&piece);
                Self::Several(buffer)
            }
            Self::Several(mut buffer) => {
                // `reserve` may allocate more than asked for, and so more than is counted as held.
                if room > buffer.capacity() {
                    let mut larger = BytesMut::with_capacity(room);
                    larger.extend_from_slice(&buffer);
                    buffer = larger;
                }
                buffer.extend_from_slice(&piece);
                Self::Several(buffer)
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(piece) => piece,
            Self::Several(buffer) => buffer.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(pieces: &[&'static [u8]], announced: Option<usize>) -> (Bytes, usize) {
        let (mut whole, mut most) = (BodyBuffer::Nothing, 0);
        for piece in pieces {
            let room = whole.room_for(whole.len() + piece.len(), announced);
            whole.push(Bytes::from_static(piece), room);
            most = most.max(room);
        }
        (whole.into_bytes(), most)
    }

    #[test]
    fn a_body_takes_room_by_its_length_however_many_pieces_it_comes_in() {
        let (whole, room) = gather(&vec![b"a".as_slice(); 100_000], None);
        assert_eq!(whole.len(), 100_000);
        assert!(room <= 2 * whole.len(), "{room}");
        let (whole, room) = gather(&vec![b"a".as_slice(); 100_000], Some(100_000));
        assert_eq!((whole.len(), room), (100_000, 100_000));
        let (whole, room) = gather(&[b"abc"], None);
        assert_eq!((&whole[..], room), (&b"abc"[..], 3));
        assert_eq!(gather(&[b"ab", b"", b"c"], Some(3)).0, "abc");
        assert_eq!(gather(&[], None).0, "");
    }
}
