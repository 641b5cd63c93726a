//! The contract for content that is too large for a row: immutable objects, kept in chunks beside the rows.
//!
//! Rows name objects; an object never names a row. So content is written first, and the transaction that names it is its
//! commit. Whatever no row names is garbage, and is found by comparing both.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use model::DateTime;

use crate::{Error, Fault};

/// Every chunk of an object but its last has this many bytes of content, so that a place in the object says which chunk it
/// is in.
pub const CHUNK_BYTES: usize = 1024 * 1024;

/// What a chunk may have behind its content: a checksum of its writer.
pub const CHUNK_SEAL_BYTES: usize = 8;

/// The longest chunk.
pub const CHUNK_BYTES_MAX: usize = CHUNK_BYTES + CHUNK_SEAL_BYTES;

/// The name of an object: when it was named, and random bytes. Objects are ordered by the time at which they were named, so
/// that what was written together lies together, and its age is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; ObjectId::BYTES]);

impl ObjectId {
    pub const BYTES: usize = 16;
    /// Below every other.
    pub const FIRST: Self = Self([0; Self::BYTES]);

    /// Nobody else gets this name, if the bytes are random.
    pub fn new(now: DateTime, random: [u8; 8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&now.ticks().to_be_bytes());
        bytes[8..].copy_from_slice(&random);
        Self(bytes)
    }

    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, random) = text.split_once('-')?;
        let number = |half: &str| {
            let is_hex =
                half.len() == 16 && half.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then(|| u64::from_str_radix(half, 16).ok()).flatten()
        };
        let (time, random) = (number(time)?, number(random)?);
        Some(Self((u128::from(time) << 64 | u128::from(random)).to_be_bytes()))
    }

    /// When it was named; `None` if these bytes are no name of ours.
    pub fn named(&self) -> Option<DateTime> {
        let (ticks, _) = self.0.split_first_chunk::<8>()?;
        DateTime::from_ticks(i64::from_be_bytes(*ticks))
    }

    /// The name directly above it; `None` if there is none.
    pub fn next(self) -> Option<Self> {
        u128::from_be_bytes(self.0).checked_add(1).map(|next| Self(next.to_be_bytes()))
    }
}

/// In hexadecimal, the time before the dash.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if at == 8 { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Bytes of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkSpan {
    pub number: u32,
    pub within: Range<usize>,
}

/// Bytes of a chunk that was not read as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkPart {
    pub bytes: Bytes,
    /// How long the whole chunk is.
    pub chunk_bytes: usize,
}

/// The chunks that hold these bytes of an object, in order. An object has at most 2³² chunks; what lies behind them is not
/// there.
pub fn chunk_spans(bytes: Range<u64>) -> impl Iterator<Item = ChunkSpan> {
    let size = CHUNK_BYTES as u64;
    let mut at = bytes.start;
    std::iter::from_fn(move || {
        if at >= bytes.end {
            return None;
        }
        let number = u32::try_from(at / size).ok()?;
        // Below the size of a chunk, which is a `usize`.
        let start = (at % size) as usize;
        let end = (bytes.end - at).min(size - at % size) as usize + start;
        at += (end - start) as u64;
        Some(ChunkSpan { number, within: start..end })
    })
}

/// Names of objects in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsPage {
    pub objects: Vec<ObjectId>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<ObjectId>,
}

/// What every keeper of objects promises. The crate `store-suite` has each promise as a test.
///
/// - A chunk, or a part of it that was asked for, is read back byte for byte, or as a fault: never as other bytes, and never less
///   of it.
/// - After `sync` has answered, all chunks of these objects that were put before survive a crash of the process and of the
///   machine. Before that they may be lost, each as a whole.
/// - A chunk is written once. Whoever is not sure that it was, puts the same bytes again, which changes nothing. Different
///   bytes under one name are a bug of the caller.
/// - A chunk can be read as soon as its `put` has answered, and until its object is removed.
/// - Once `remove` has answered, no chunk of these objects is found, also after a crash, and `list` does not name them.
/// - `list` names every object that had a chunk when it began and was not removed meanwhile, each once and in order. Its cost
///   depends on the page, not on how many objects there are.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// One to [`CHUNK_BYTES_MAX`] bytes. Answers when there is room for more, so that a caller that waits for the answer never
    /// holds more than one chunk.
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error>;

    /// Makes what was put durable.
    async fn sync(&self, objects: &[ObjectId]) -> Result<(), Error>;

    /// A chunk that can be had without waiting, such as from memory, as `get` returns it. `None` says nothing: `get` knows.
    fn at_hand(&self, object: ObjectId, number: u32) -> Option<Bytes> {
        let _ = (object, number);
        None
    }

    /// Bytes of a chunk, as `get` returns them, for less than what the whole chunk costs. `None` says nothing: `get` knows.
    async fn part(
        &self,
        object: ObjectId,
        number: u32,
        within: Range<usize>,
    ) -> Result<Option<ChunkPart>, Error> {
        let _ = (object, number, within);
        Ok(None)
    }

    /// The same if it can be had without waiting.
    fn part_at_hand(&self, object: ObjectId, number: u32, within: Range<usize>) -> Option<ChunkPart> {
        let _ = (object, number, within);
        None
    }

    /// `None` if there is no such chunk.
    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error>;

    /// Removes objects with all their chunks. May be repeated; objects that are not there are passed over.
    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error>;

    /// At most `limit` objects, from this name on.
    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error>;

    /// Closes the storage. Later calls return a fault.
    async fn close(&self);
}

/// Whether a chunk has a length that it may have.
pub fn check_chunk(chunk: &[u8]) -> Result<(), Fault> {
    match (1..=CHUNK_BYTES_MAX).contains(&chunk.len()) {
        true => Ok(()),
        false => Err(Fault::bug(format!("a chunk of {} bytes can't be kept", chunk.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_are_ordered_by_the_time_of_their_names() {
        let time = |text| DateTime::parse(text).unwrap();
        let early = ObjectId::new(time("2026-01-01T00:00:00Z"), [0xff; 8]);
        let late = ObjectId::new(time("2026-01-01T00:00:00.0000001Z"), [0; 8]);
        assert!(ObjectId::FIRST < early && early < late);
        assert_eq!(early.named(), Some(time("2026-01-01T00:00:00Z")));
        assert_eq!(ObjectId::from_bytes(*early.as_bytes()), early);
        assert_eq!(early.to_string(), "08de48c8b4f80000-ffffffffffffffff");
        assert_eq!(ObjectId::from_bytes([0xff; 16]).named(), None);
        assert_eq!(ObjectId::from_bytes([0xff; 16]).next(), None);
        assert_eq!(early.next(), Some(late));
    }

    #[test]
    fn a_name_reads_back_and_nothing_else_is_one() {
        let object = ObjectId::from_bytes(*b"\x00\x01abcdefgh\xffijklm");
        assert_eq!(ObjectId::parse(&object.to_string()), Some(object));
        for text in [
            "",
            "-",
            "08de48c8b4f80000",
            "08DE48c8b4f80000-ffffffffffffffff",
            "08de48c8b4f80000-+fffffffffffffff",
        ] {
            assert_eq!(ObjectId::parse(text), None, "{text}");
        }
        assert_eq!(ObjectId::parse(&format!("{object}.new")), None);
    }

    #[test]
    fn a_chunk_has_one_byte_at_least() {
        assert!(check_chunk(&[]).is_err());
        assert!(check_chunk(&[0]).is_ok());
        assert!(check_chunk(&vec![0; CHUNK_BYTES_MAX]).is_ok());
        assert!(check_chunk(&vec![0; CHUNK_BYTES_MAX + 1]).is_err());
    }

    proptest! {
        #[test]
        fn spans_cover_a_range_without_gaps(start in 0..8 * CHUNK_BYTES as u64, bytes in 0..4 * CHUNK_BYTES as u64) {
            let end = start + bytes;
            let mut at = start;
            for ChunkSpan { number, within } in chunk_spans(start..end) {
                prop_assert_eq!(u64::from(number) * CHUNK_BYTES as u64 + within.start as u64, at);
                prop_assert!(within.start < within.end && within.end <= CHUNK_BYTES);
                at += within.len() as u64;
            }
            prop_assert_eq!(at, end);
        }
    }

    #[test]
    fn what_no_object_can_hold_has_no_chunks() {
        let end = (u64::from(u32::MAX) + 1) * CHUNK_BYTES as u64;
        assert_eq!(chunk_spans(end - 1..end + 5).count(), 1);
        assert_eq!(chunk_spans(u64::MAX - 1..u64::MAX).count(), 0);
        assert_eq!(chunk_spans(5..5).count(), 0);
    }
}
