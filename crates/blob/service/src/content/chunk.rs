//! Chunks of objects as content has them: bytes, and a checksum that proves that these are the bytes of this chunk.
//!
//! Keepers of objects promise to return what they were given. The checksum makes that promise visible: a chunk that is
//! damaged, cut short, or another one than was asked for is a fault, also if only a part of it is read.

use blob_model::Crc64;
use bytes::{Bytes, BytesMut};
use store::{CHUNK_BYTES, CHUNK_SEAL_BYTES, Fault, ObjectId};

use super::stored::object as named;

/// Adds the checksum to the content of a chunk.
pub fn seal(object: ObjectId, number: u32, content: BytesMut) -> Bytes {
    let crc64 = Crc64::of(&content);
    seal_known(object, number, content, crc64)
}

/// The same for content whose CRC is known.
pub fn seal_known(object: ObjectId, number: u32, mut content: BytesMut, crc64: Crc64) -> Bytes {
    debug_assert!((1..=CHUNK_BYTES).contains(&content.len()) && crc64 == Crc64::of(&content));
    content.extend_from_slice(&checksum(object, number, crc64));
    content.freeze()
}

/// The content of a stored chunk, with its checksum.
pub fn open(object: ObjectId, number: u32, mut chunk: Bytes) -> Result<(Bytes, Crc64), Fault> {
    let damaged = || {
        Fault::damaged("a chunk of content is damaged").about(format!("chunk {number} of {}", named(object)))
    };
    let length = chunk.len().checked_sub(CHUNK_SEAL_BYTES).ok_or_else(damaged)?;
    let seal = chunk.split_off(length);
    let crc64 = Crc64::of(&chunk);
    match seal == checksum(object, number, crc64)[..] {
        true => Ok((chunk, crc64)),
        false => Err(damaged()),
    }
}

/// Of the chunk's name and the checksum of its content.
fn checksum(object: ObjectId, number: u32, crc64: Crc64) -> [u8; CHUNK_SEAL_BYTES] {
    let mut text = Vec::with_capacity(ObjectId::BYTES + size_of::<u32>() + CHUNK_SEAL_BYTES);
    text.extend_from_slice(object.as_bytes());
    text.extend_from_slice(&number.to_be_bytes());
    text.extend_from_slice(&crc64.0.to_le_bytes());
    Crc64::of(&text).0.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::DateTime;

    fn object(number: u8) -> ObjectId {
        ObjectId::new(DateTime::MIN_STORED, [number; 8])
    }

    #[test]
    fn a_chunk_opens_as_itself_and_as_no_other() {
        let sealed = seal(object(1), 3, BytesMut::from(&b"hello"[..]));
        assert_eq!(sealed.len(), 5 + CHUNK_SEAL_BYTES);
        assert_eq!(open(object(1), 3, sealed.clone()).unwrap(), ("hello".into(), Crc64::of(b"hello")));
        for (other, number) in [(object(1), 2), (object(2), 3)] {
            assert!(open(other, number, sealed.clone()).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let sealed = seal(object(1), 0, BytesMut::from(&b"some content"[..]));
        for at in 0..sealed.len() {
            assert!(open(object(1), 0, sealed.slice(..at)).is_err());
            for bit in 0..8 {
                let mut damaged = sealed.to_vec();
                damaged[at] ^= 1 << bit;
                assert!(open(object(1), 0, damaged.into()).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}
