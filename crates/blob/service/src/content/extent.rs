//! A piece of content: some bytes of one object.
//!
//! As stored: the object's name, where the bytes begin, how many there are, their CRC-64 in eight bytes, and the length of the
//! block's id with the id; no id has length 0.

use blob_model::{BlockId, Crc64};
use store::ObjectId;

use super::number;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub object: ObjectId,
    /// The first of its bytes in the object.
    pub start: u64,
    /// Never 0.
    pub length: u64,
    /// Of these bytes.
    pub crc64: Crc64,
    /// The block that it is, if its blob was made of blocks.
    pub block: Option<BlockId>,
}

impl Extent {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.object.as_bytes());
        number::put(out, self.start);
        number::put(out, self.length);
        out.extend_from_slice(&self.crc64.0.to_le_bytes());
        let block = self.block.as_ref().map_or(&[][..], BlockId::as_bytes);
        number::put(out, block.len() as u64);
        out.extend_from_slice(block);
    }

    /// Takes an extent from the front; `None` if there is none.
    pub fn take(bytes: &mut &[u8]) -> Option<Self> {
        let object = ObjectId::from_bytes(number::take_array(bytes)?);
        let start = number::take(bytes)?;
        let length = number::take(bytes)?;
        if length == 0 || start.checked_add(length).is_none() {
            return None;
        }
        let crc64 = Crc64(u64::from_le_bytes(number::take_array(bytes)?));
        let block = match usize::try_from(number::take(bytes)?).ok()? {
            0 => None,
            bytes_of_id => {
                let (id, rest) = bytes.split_at_checked(bytes_of_id)?;
                *bytes = rest;
                Some(BlockId::of_bytes(id).ok()?)
            }
        };
        Some(Self { object, start, length, crc64, block })
    }
}
