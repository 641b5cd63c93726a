//! Blocks of RocksDB's table files: reads them, compares their checksums, unpacks them, and reads their entries.
//!
//! Knows only the format that `engine-embedded` uses: format 7, XXH3 checksums, lz4 or no compression.

use std::fs::File;
use std::os::unix::fs::FileExt;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::BlockError;

/// The trailer of every block: its compression, and its checksum.
pub const TRAILER: u64 = 1 + 4;

const NOT_PACKED: u8 = 0;
const LZ4: u8 = 4;

/// The highest compression ratio of lz4. A damaged size above it is refused before memory is allocated.
const LZ4_RATIO_MAX: usize = 255;

/// A file of blocks.
#[derive(Debug)]
pub struct BlockFile {
    pub file: File,
    pub size: u64,
    /// A number that is part of all its checksums.
    pub context: u32,
}

/// The place of a block in its file, without its trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub offset: u64,
    pub size: u64,
}

impl Handle {
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { offset: take_varint(bytes)?, size: take_varint(bytes)? })
    }

    /// The unpacked bytes of the block, if its checksum matches.
    pub fn read(self, from: &BlockFile) -> Result<Vec<u8>, BlockError> {
        let length = self.size.checked_add(TRAILER);
        let end = length.and_then(|length| length.checked_add(self.offset)).filter(|end| *end <= from.size);
        let (Some(length), Some(_)) = (length, end) else {
            return Err(BlockError::Outside);
        };
        let mut bytes = vec![0; length as usize];
        from.file.read_exact_at(&mut bytes, self.offset)?;
        // The trailer has more bytes than the checksum.
        let (packed, stored) = bytes.split_last_chunk::<4>().ok_or(BlockError::Outside)?;
        let computed = checksum(packed).wrapping_add(modifier(from.context, self.offset));
        if computed != u32::from_le_bytes(*stored) {
            return Err(BlockError::Checksum);
        }
        let size = self.size as usize;
        let kind = bytes[size];
        bytes.truncate(size);
        match kind {
            NOT_PACKED => Ok(bytes),
            LZ4 => unpack(&bytes).ok_or(BlockError::Packed),
            _ => Err(BlockError::UnknownPacking { kind }),
        }
    }
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut rest = packed;
    let size = take_length(&mut rest)?;
    (size <= packed.len().saturating_mul(LZ4_RATIO_MAX)).then_some(())?;
    lz4_flex::block::decompress(rest, size).ok().filter(|bytes| bytes.len() == size)
}

/// RocksDB's checksum, which treats the last byte separately.
pub fn checksum(bytes: &[u8]) -> u32 {
    let Some((last, rest)) = bytes.split_last() else { return 0 };
    xxh3_64(rest) as u32 ^ u32::from(*last).wrapping_mul(0x6b90_83d9)
}

/// The part of a checksum that depends on the file and the offset, so that a block at a wrong place does not match.
pub fn modifier(context: u32, offset: u64) -> u32 {
    context ^ (offset as u32).wrapping_add((offset >> 32) as u32)
}

/// The keys and values of a block, in order.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    /// Where the next entry begins.
    at: usize,
    /// Where entries end and the restart points begin.
    end: usize,
    key: Vec<u8>,
    value: std::ops::Range<usize>,
}

/// A flag in the last four bytes of a block, beside the number of restart points.
const SEPARATE_VALUES: u32 = 1 << 28;
const RESTARTS_MASK: u32 = SEPARATE_VALUES - 1;

impl Block {
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let (rest, packed) = bytes.split_last_chunk::<4>()?;
        let packed = u32::from_le_bytes(*packed);
        // The other upper bits do not matter for reading the whole block.
        if packed & SEPARATE_VALUES != 0 {
            return None;
        }
        let restarts = (packed & RESTARTS_MASK) as usize;
        let end = rest.len().checked_sub(restarts * size_of::<u32>())?;
        Some(Self { bytes, at: 0, end, key: Vec::new(), value: 0..0 })
    }

    /// Moves to the next entry. False if there is none; `None` if it can't be read.
    pub fn advance(&mut self) -> Option<bool> {
        if self.at >= self.end {
            return Some(false);
        }
        let mut rest = &self.bytes[self.at..self.end];
        let shared = take_length(&mut rest)?;
        let own = take_length(&mut rest)?;
        let length = take_length(&mut rest)?;
        let (own, rest) = rest.split_at_checked(own)?;
        let (_, behind) = rest.split_at_checked(length)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        self.at = self.end - behind.len();
        self.value = self.at - length..self.at;
        Some(true)
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn value(&self) -> &[u8] {
        &self.bytes[self.value.clone()]
    }

    /// The entries of an index: for each data block a key that is not below its last key, and its place.
    ///
    /// `short` values have no length, and only the first after a restart point is complete. The others have the
    /// difference between the sizes of their block and the one before.
    pub fn index(mut self, short: bool) -> Option<Vec<(Vec<u8>, Handle)>> {
        let mut entries: Vec<(Vec<u8>, Handle)> = Vec::new();
        if !short {
            while self.advance()? {
                entries.push((self.key.clone(), Handle::decode(&mut self.value())?));
            }
            return Some(entries);
        }
        let mut rest = &self.bytes[..self.end];
        while !rest.is_empty() {
            let shared = take_length(&mut rest)?;
            let own = take_length(&mut rest)?;
            let (own, tail) = rest.split_at_checked(own)?;
            rest = tail;
            let (handle, key) = match entries.last() {
                Some((key, last)) if shared > 0 => {
                    let more = take_varint(&mut rest)?;
                    let more = (more >> 1) as i64 ^ -((more & 1) as i64);
                    let offset = last.offset.checked_add(last.size)?.checked_add(TRAILER)?;
                    (Handle { offset, size: last.size.checked_add_signed(more)? }, key.get(..shared)?)
                }
                _ => (Handle::decode(&mut rest)?, &[][..]),
            };
            entries.push(([key, own].concat(), handle));
        }
        Some(entries)
    }
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_varint(bytes)?).ok()
}

pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes bytes with their length before them.
pub fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_length(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_share_the_start_of_the_key_before() {
        let mut bytes = vec![0, 3, 1];
        bytes.extend(b"abcX");
        bytes.extend([2, 1, 2]);
        bytes.extend(b"dYZ");
        bytes.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        let mut block = Block::new(bytes.clone()).unwrap();
        let mut found = Vec::new();
        while block.advance().unwrap() {
            found.push((block.key().to_vec(), block.value().to_vec()));
        }
        assert_eq!(found, [(b"abc".to_vec(), b"X".to_vec()), (b"abd".to_vec(), b"YZ".to_vec())]);
        // An entry that reaches beyond the block.
        bytes[2] = 200;
        assert_eq!(Block::new(bytes).unwrap().advance(), None);
    }

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    /// As in a table file: each key shares what it can with the one before.
    fn block(entries: &Entries) -> Vec<u8> {
        let (mut bytes, mut before) = (Vec::new(), &[][..]);
        for (key, value) in entries {
            let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
            for length in [shared, key.len() - shared, value.len()] {
                put_varint(&mut bytes, length as u64);
            }
            bytes.extend_from_slice(&key[shared..]);
            bytes.extend_from_slice(value);
            before = key;
        }
        bytes.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        bytes
    }

    fn walk(bytes: Vec<u8>) -> Option<Entries> {
        let mut block = Block::new(bytes)?;
        let mut entries = Vec::new();
        while block.advance()? {
            entries.push((block.key().to_vec(), block.value().to_vec()));
        }
        Some(entries)
    }

    fn any_entries() -> Entries {
        let bytes = |most| (0..rand::random_range(0..most)).map(|_| rand::random_range(b'a'..b'd')).collect();
        let mut entries: Entries = (0..rand::random_range(0..6)).map(|_| (bytes(9), bytes(20))).collect();
        entries.sort();
        entries
    }

    fn change(bytes: &mut Vec<u8>) {
        let at = rand::random_range(0..bytes.len());
        match rand::random_range(0..4) {
            0 => bytes[at] ^= 1 << rand::random_range(0..8),
            1 => bytes[at] = rand::random_range(0..8),
            2 => bytes.insert(at, rand::random_range(0..8)),
            _ => drop(bytes.remove(at)),
        }
    }

    #[test]
    fn a_changed_block_holds_entries_that_read_back_or_is_refused() {
        const BLOCKS: usize = 20_000;
        let mut walked = 0;
        for _ in 0..BLOCKS {
            let entries = any_entries();
            let mut bytes = block(&entries);
            assert_eq!(walk(bytes.clone()), Some(entries));
            change(&mut bytes);
            let length = bytes.len();
            if let Some(found) = walk(bytes) {
                walked += 1;
                let values: usize = found.iter().map(|(_, value)| value.len()).sum();
                assert!(3 * found.len() + values <= length, "more than there was: {found:?}");
                assert_eq!(walk(block(&found)), Some(found));
            }
        }
        assert!((BLOCKS / 10..BLOCKS * 9 / 10).contains(&walked), "{walked} of {BLOCKS} could be walked");
    }

    /// An index in its short form; the blocks lie one behind the other, as they do in a file.
    fn short_index(entries: &[(Vec<u8>, Handle)]) -> Vec<u8> {
        let (mut bytes, mut before) = (Vec::new(), None::<&(Vec<u8>, Handle)>);
        for entry @ (key, handle) in entries {
            let alike =
                |(other, _): &(Vec<u8>, Handle)| key.iter().zip(other).take_while(|(a, b)| a == b).count();
            let shared = before.map_or(0, alike);
            put_varint(&mut bytes, shared as u64);
            put_varint(&mut bytes, (key.len() - shared) as u64);
            bytes.extend_from_slice(&key[shared..]);
            match before {
                Some((_, last)) if shared > 0 => {
                    let more = handle.size.wrapping_sub(last.size) as i64;
                    put_varint(&mut bytes, (more << 1 ^ more >> 63) as u64);
                }
                _ => {
                    put_varint(&mut bytes, handle.offset);
                    put_varint(&mut bytes, handle.size);
                }
            }
            before = Some(entry);
        }
        bytes.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        bytes
    }

    #[test]
    fn a_changed_index_leads_to_blocks_one_behind_the_other_or_is_refused() {
        const INDEXES: usize = 20_000;
        let mut read = 0;
        for _ in 0..INDEXES {
            let mut offset = 0;
            let index = any_entries().into_iter().map(|(key, _)| {
                let handle = Handle { offset, size: rand::random_range(0..5000) };
                offset += handle.size + TRAILER;
                (key, handle)
            });
            let index: Vec<_> = index.collect();
            let long = index.iter().map(|(key, handle)| {
                let mut value = Vec::new();
                put_varint(&mut value, handle.offset);
                put_varint(&mut value, handle.size);
                (key.clone(), value)
            });
            let long = Block::new(block(&long.collect())).unwrap();
            assert_eq!(long.index(false).as_ref(), Some(&index), "both forms say the same");
            let mut bytes = short_index(&index);
            assert_eq!(Block::new(bytes.clone()).unwrap().index(true).as_ref(), Some(&index));
            change(&mut bytes);
            if let Some(found) = Block::new(bytes).and_then(|block| block.index(true)) {
                read += 1;
                let again = Block::new(short_index(&found)).unwrap().index(true);
                // A key that now begins otherwise stands alone, and then its handle is whole.
                let follows = found.windows(2).all(|pair| {
                    let alike = pair[0].0.first() == pair[1].0.first() && !pair[1].0.is_empty();
                    !alike || pair[1].1.offset == pair[0].1.offset + pair[0].1.size + TRAILER
                });
                assert!(!follows || again.as_ref() == Some(&found), "{found:?} {again:?}");
            }
        }
        assert!((INDEXES / 10..INDEXES * 9 / 10).contains(&read), "{read} of {INDEXES} could be read");
    }

    #[test]
    fn numbers_of_any_size_are_read() {
        assert_eq!(take_varint(&mut &[0x7f][..]), Some(127));
        assert_eq!(take_varint(&mut &[0x80, 1][..]), Some(128));
        assert_eq!(take_varint(&mut &[0xff; 11][..]), None);
        assert_eq!(take_varint(&mut &[0x80][..]), None);
    }
}
