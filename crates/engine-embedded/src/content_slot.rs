//! Chunks in the file of an object: each has a slot, whose place follows from its number.
//!
//! A slot has a head, and then the chunk. The head has the chunk's length and a checksum of each piece of it, so that a few bytes
//! are read and checked without the rest, and a checksum of itself and of whose chunk it is. A slot that was never written is a
//! hole, which reads as zeros, or lies behind the end of the file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use crc_fast::CrcAlgorithm::Crc64Nvme;
use store::{CHUNK_BYTES_MAX, ChunkPart, ObjectId};

use crate::read_buffers::ReadBuffers;

/// Whole pages, so that no two chunks share one.
const SLOT_BYTES: u64 = 1024 * 1024 + 4096;
/// The first bytes of every slot. The last of them is the version of its layout.
const MARK: [u8; 8] = *b"Partita\x01";
/// What one checksum is of.
const PIECE_BYTES: usize = 64 * 1024;
const PIECES_MAX: usize = CHUNK_BYTES_MAX.div_ceil(PIECE_BYTES);
const SUM_BYTES: usize = 8;
/// In a head: the mark, the length, four zeros, the checksums of the pieces, and the head's own.
const LENGTH_AT: usize = MARK.len();
const SUMS_AT: usize = LENGTH_AT + 8;
const OWN_SUM_AT: usize = SUMS_AT + PIECES_MAX * SUM_BYTES;
const HEAD_BYTES: usize = OWN_SUM_AT + SUM_BYTES;
const _: () = assert!(HEAD_BYTES + CHUNK_BYTES_MAX <= SLOT_BYTES as usize);

/// Why a slot gives no chunk.
#[derive(Debug)]
pub enum SlotError {
    Unreadable(io::Error),
    Damaged,
}

/// How many slots a file of this length has.
pub fn slots_in(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(SLOT_BYTES)).unwrap_or(u32::MAX)
}

pub fn write(file: &File, object: ObjectId, number: u32, chunk: &[u8]) -> io::Result<()> {
    let place = u64::from(number) * SLOT_BYTES;
    let length = u32::try_from(chunk.len()).map_err(io::Error::other)?;
    let mut head = [0; HEAD_BYTES];
    head[..LENGTH_AT].copy_from_slice(&MARK);
    head[LENGTH_AT..][..4].copy_from_slice(&length.to_le_bytes());
    for (sum, piece) in head[SUMS_AT..OWN_SUM_AT].chunks_exact_mut(SUM_BYTES).zip(chunk.chunks(PIECE_BYTES)) {
        sum.copy_from_slice(&sum_of(piece));
    }
    let own = own_sum(object, number, &head);
    head[OWN_SUM_AT..].copy_from_slice(&own);
    file.write_all_at(&head, place)?;
    file.write_all_at(chunk, place + HEAD_BYTES as u64)
}

/// The chunk of this number, or `None` if it was never written. If nobody may wait, `WouldBlock` if it is not in the system's
/// cache.
pub fn read(
    file: &File,
    object: ObjectId,
    number: u32,
    buffers: &ReadBuffers,
    may_wait: bool,
) -> Result<Option<Bytes>, SlotError> {
    let Some(slot) = Slot::read(file, object, number, may_wait)? else { return Ok(None) };
    slot.pieces(0..slot.length, buffers).map(Some)
}

/// The same for some bytes of a chunk. `None` also if it does not have all of them.
pub fn read_part(
    file: &File,
    object: ObjectId,
    number: u32,
    within: Range<usize>,
    buffers: &ReadBuffers,
    may_wait: bool,
) -> Result<Option<ChunkPart>, SlotError> {
    let Some(slot) = Slot::read(file, object, number, may_wait)? else { return Ok(None) };
    if within.is_empty() || within.end > slot.length {
        return Ok(None);
    }
    let start = within.start - within.start % PIECE_BYTES;
    let end = within.end.next_multiple_of(PIECE_BYTES).min(slot.length);
    let bytes = slot.pieces(start..end, buffers)?.slice(within.start - start..within.end - start);
    Ok(Some(ChunkPart { bytes, chunk_bytes: slot.length }))
}

/// A slot with a sound head.
struct Slot<'a> {
    file: &'a File,
    place: u64,
    head: Vec<u8>,
    length: usize,
    may_wait: bool,
}

impl<'a> Slot<'a> {
    fn read(
        file: &'a File,
        object: ObjectId,
        number: u32,
        may_wait: bool,
    ) -> Result<Option<Self>, SlotError> {
        let place = u64::from(number) * SLOT_BYTES;
        let head = match row_walk::read_at(file, place, HEAD_BYTES, may_wait) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            head => head.map_err(SlotError::Unreadable)?,
        };
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let length = head[LENGTH_AT..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
        let is_sound = head.starts_with(&MARK) && head[OWN_SUM_AT..] == own_sum(object, number, &head);
        if !is_sound || !(1..=CHUNK_BYTES_MAX).contains(&length) {
            return Err(SlotError::Damaged);
        }
        Ok(Some(Self { file, place, head, length, may_wait }))
    }

    /// These bytes of the chunk, which begin and end where pieces do.
    fn pieces(&self, within: Range<usize>, buffers: &ReadBuffers) -> Result<Bytes, SlotError> {
        let place = self.place + (HEAD_BYTES + within.start) as u64;
        let mut bytes = buffers.take(within.len());
        let read = row_walk::read_into(&mut bytes, self.file, place, within.len(), self.may_wait);
        // Given back also if it was not read.
        let bytes = buffers.lend(bytes);
        match read {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(SlotError::Damaged),
            read => read.map_err(SlotError::Unreadable)?,
        }
        let sums = &self.head[SUMS_AT + within.start / PIECE_BYTES * SUM_BYTES..OWN_SUM_AT];
        let mut pieces = sums.chunks_exact(SUM_BYTES).zip(bytes.chunks(PIECE_BYTES));
        match pieces.all(|(sum, piece)| sum == sum_of(piece)) {
            true => Ok(bytes),
            false => Err(SlotError::Damaged),
        }
    }
}

fn sum_of(piece: &[u8]) -> [u8; SUM_BYTES] {
    crc_fast::checksum(Crc64Nvme, piece).to_le_bytes()
}

/// Of a head, and of whose chunk it is, so that a chunk in another's place is damage.
fn own_sum(object: ObjectId, number: u32, head: &[u8]) -> [u8; SUM_BYTES] {
    let mut digest = crc_fast::Digest::new(Crc64Nvme);
    digest.update(object.as_bytes());
    digest.update(&number.to_le_bytes());
    digest.update(&head[..OWN_SUM_AT]);
    digest.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DateTime;

    fn object(number: u8) -> ObjectId {
        ObjectId::new(DateTime::MIN_STORED, [number; 8])
    }

    fn file() -> File {
        tempfile::tempfile().unwrap()
    }

    fn found(file: &File, of: ObjectId, number: u32) -> Option<Bytes> {
        let found = read(file, of, number, &ReadBuffers::default(), true).unwrap();
        if found.is_some() {
            assert_eq!(
                read(file, of, number, &ReadBuffers::default(), false).unwrap(),
                found,
                "it is in the system's cache"
            );
        }
        found
    }

    #[test]
    fn chunks_read_back_in_any_order_and_with_holes() {
        let file = file();
        for (number, bytes) in [(3, CHUNK_BYTES_MAX), (0, 1), (7, 5000)] {
            write(&file, object(1), number, &vec![number as u8 + 1; bytes]).unwrap();
        }
        for (number, bytes) in [(0, 1), (3, CHUNK_BYTES_MAX), (7, 5000)] {
            assert_eq!(found(&file, object(1), number).unwrap(), vec![number as u8 + 1; bytes]);
        }
        for never in [1, 2, 4, 6, 8, 1000] {
            assert_eq!(found(&file, object(1), never), None, "{never}");
        }
        assert_eq!(slots_in(file.metadata().unwrap().len()), 8);
        assert_eq!((slots_in(0), slots_in(1), slots_in(SLOT_BYTES), slots_in(SLOT_BYTES + 1)), (0, 1, 1, 2));
    }

    #[test]
    fn a_part_is_those_bytes_of_the_chunk() {
        let file = file();
        let chunk: Vec<u8> =
            (0..CHUNK_BYTES_MAX as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        write(&file, object(1), 0, &chunk).unwrap();
        write(&file, object(1), 1, &chunk[..PIECE_BYTES + 10]).unwrap();
        for (number, length) in [(0, chunk.len()), (1, PIECE_BYTES + 10)] {
            let last = length - 1;
            for (start, end) in [
                (0, 1),
                (0, length),
                (1, PIECE_BYTES),
                (PIECE_BYTES - 1, PIECE_BYTES + 1),
                (PIECE_BYTES, length),
                (last, length),
            ] {
                let part = read_part(&file, object(1), number, start..end, &ReadBuffers::default(), true)
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    (&part.bytes[..], part.chunk_bytes),
                    (&chunk[start..end], length),
                    "{number} {start} {end}"
                );
            }
            assert_eq!(
                read_part(&file, object(1), number, last..length + 1, &ReadBuffers::default(), true).unwrap(),
                None
            );
            assert_eq!(
                read_part(&file, object(1), number, 5..5, &ReadBuffers::default(), true).unwrap(),
                None
            );
        }
        assert_eq!(read_part(&file, object(1), 2, 0..1, &ReadBuffers::default(), true).unwrap(), None);
    }

    #[test]
    fn a_part_is_checked_and_needs_no_other_piece() {
        let file = file();
        write(&file, object(1), 0, &vec![7; 3 * PIECE_BYTES]).unwrap();
        file.write_all_at(&[8], (HEAD_BYTES + PIECE_BYTES + 100) as u64).unwrap();
        let part = |within| read_part(&file, object(1), 0, within, &ReadBuffers::default(), true);
        assert!(
            matches!(part(PIECE_BYTES..PIECE_BYTES + 1), Err(SlotError::Damaged)),
            "its piece is damaged"
        );
        assert!(matches!(part(0..3 * PIECE_BYTES), Err(SlotError::Damaged)));
        for sound in [0..PIECE_BYTES, 2 * PIECE_BYTES..2 * PIECE_BYTES + 1] {
            assert!(part(sound).unwrap().is_some());
        }
        assert!(matches!(
            read_part(&file, object(2), 0, 0..1, &ReadBuffers::default(), true),
            Err(SlotError::Damaged)
        ));
        file.write_all_at(&[9], SUMS_AT as u64).unwrap();
        assert!(
            matches!(part(2 * PIECE_BYTES..2 * PIECE_BYTES + 1), Err(SlotError::Damaged)),
            "of a damaged head"
        );
    }

    #[test]
    fn a_chunk_of_another_object_or_number_is_damage() {
        let file = file();
        write(&file, object(1), 2, b"chunk").unwrap();
        assert!(matches!(read(&file, object(2), 2, &ReadBuffers::default(), true), Err(SlotError::Damaged)));
        let mut slot = vec![0; HEAD_BYTES + 5];
        file.read_exact_at(&mut slot, 2 * SLOT_BYTES).unwrap();
        file.write_all_at(&slot, 0).unwrap();
        assert!(matches!(read(&file, object(1), 0, &ReadBuffers::default(), true), Err(SlotError::Damaged)));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let file = file();
        let length = HEAD_BYTES + 20;
        write(&file, object(1), 0, &[9; 20]).unwrap();
        let mut slot = vec![0; length];
        file.read_exact_at(&mut slot, 0).unwrap();
        for (at, byte) in slot.iter().enumerate() {
            for bit in 0..8 {
                file.write_all_at(&[byte ^ 1 << bit], at as u64).unwrap();
                assert!(
                    matches!(
                        read(&file, object(1), 0, &ReadBuffers::default(), true),
                        Err(SlotError::Damaged)
                    ),
                    "bit {bit} of {at}"
                );
            }
            file.write_all_at(&[*byte], at as u64).unwrap();
        }
        for left in HEAD_BYTES..length {
            file.set_len(left as u64).unwrap();
            assert!(
                matches!(read(&file, object(1), 0, &ReadBuffers::default(), true), Err(SlotError::Damaged)),
                "{left} bytes"
            );
        }
    }
}
