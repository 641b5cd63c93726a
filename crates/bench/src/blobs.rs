//! The blobs of a run. The content of each is computed from a number, so every byte of an answer can be compared without
//! storing it, and content of any length takes no memory.

use std::fmt::Write as _;
use std::sync::Arc;

use connection::Content;

use crate::error::{BenchError, Result};
use crate::random::{Random, mix};
use crate::workload::Workload;

const MIB: u64 = 1024 * 1024;
/// The longest Put Blob and the longest Append Block of the service.
pub const PUT_BYTES_MAX: u64 = 5000 * MIB;
pub const APPEND_BYTES_MAX: u64 = 100 * MIB;
pub const BLOCK_BYTES_MAX: u64 = 4000 * MIB;
pub const BLOCKS_MAX: u64 = 50_000;
pub const BLOBS_MAX: u64 = 100_000_000;
/// Longer blobs of the data set are loaded in blocks.
const LOADED_BY_PUT_MAX: u64 = 64 * MIB;
/// Content repeats after so many bytes. A prime, so that no two chunks of a blob are the same.
const PERIOD: u64 = 1_048_583;
/// Blobs in a folder, and folders in a folder above.
const FOLDER: u64 = 100;

/// The flags that describe the blobs.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct BlobSizes {
    /// In the data set.
    pub blobs: u64,
    pub bytes: u64,
    pub block_bytes: u64,
    /// Blocks of one upload that are under way at the same time.
    pub parallel_blocks: usize,
    pub range_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct BlobSet {
    pub sizes: BlobSizes,
    /// Content is cut from these bytes, which no server can compress.
    pattern: Arc<[u8]>,
}

impl BlobSet {
    pub fn new(sizes: BlobSizes, workloads: &[Workload]) -> Result<Self> {
        let BlobSizes { blobs, bytes, block_bytes, parallel_blocks, range_bytes } = sizes;
        if !(1..=BLOBS_MAX).contains(&blobs) {
            return Err(BenchError::Blobs(blobs));
        }
        if parallel_blocks == 0 {
            return Err(BenchError::NoParallelBlocks);
        }
        if !(1..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return Err(BenchError::BlockBytes(block_bytes));
        }
        if bytes == 0 || bytes.div_ceil(block_bytes) > BLOCKS_MAX {
            return Err(BenchError::BlobBytes { bytes, block_bytes });
        }
        if range_bytes == 0 {
            return Err(BenchError::NoRange);
        }
        for workload in workloads {
            let most = match workload {
                Workload::BlobPut | Workload::BlobMixed => PUT_BYTES_MAX,
                Workload::BlobAppend => APPEND_BYTES_MAX,
                _ => u64::MAX,
            };
            if bytes > most {
                return Err(BenchError::BlobTooLong { workload: *workload, bytes, most });
            }
        }
        let mut random = Random::new(0);
        let words = (0..PERIOD.div_ceil(8)).flat_map(|_| random.next().to_le_bytes());
        Ok(Self { sizes, pattern: words.take(PERIOD as usize).collect() })
    }

    /// The bytes of content that an operation moves, if it moves content.
    pub fn operation_bytes(&self, workload: Workload) -> Option<u64> {
        match workload {
            Workload::BlobRange => Some(self.sizes.range_bytes.min(self.sizes.bytes)),
            Workload::BlobGet
            | Workload::BlobMixed
            | Workload::BlobPut
            | Workload::BlobBlocks
            | Workload::BlobAppend => Some(self.sizes.bytes),
            _ => None,
        }
    }

    pub fn is_loaded_in_blocks(&self) -> bool {
        self.sizes.bytes > LOADED_BY_PUT_MAX
    }

    /// The content of a number, from its first byte on.
    pub fn content(&self, number: u64, start: u64, length: u64) -> BlobContent<'_> {
        BlobContent { pattern: &self.pattern, first: mix(number) % PERIOD + start % PERIOD, length }
    }

    /// Sets the name of a blob of the data set. It begins with its length, so that a server that stores nothing knows it.
    pub fn name(&self, out: &mut String, number: u64) {
        self.folder(out, number / FOLDER);
        // Writing into a string can't fail.
        let _ = write!(out, "{:02}", number % FOLDER);
    }

    /// Sets the prefix of a hundred blobs.
    pub fn folder(&self, out: &mut String, folder: u64) {
        self.upper_folder(out, folder / FOLDER);
        let _ = write!(out, "{:02}/", folder % FOLDER);
    }

    /// Sets the prefix of a hundred folders.
    pub fn upper_folder(&self, out: &mut String, folder: u64) {
        out.clear();
        let _ = write!(out, "{}/{folder:06}/", self.sizes.bytes);
    }

    pub fn folders(&self) -> u64 {
        self.sizes.blobs.div_ceil(FOLDER)
    }

    pub fn upper_folders(&self) -> u64 {
        self.folders().div_ceil(FOLDER)
    }

    /// The blobs in a folder, and the folders in an upper one.
    pub fn blobs_in(&self, folder: u64) -> u64 {
        FOLDER.min(self.sizes.blobs - folder * FOLDER)
    }

    pub fn folders_in(&self, upper: u64) -> u64 {
        FOLDER.min(self.folders() - upper * FOLDER)
    }
}

/// A part of the content of a number.
#[derive(Clone, Copy, Debug)]
pub struct BlobContent<'a> {
    pattern: &'a [u8],
    /// Where it begins in the pattern, which repeats.
    first: u64,
    length: u64,
}

impl Content for BlobContent<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn piece(&self, at: u64) -> &[u8] {
        let rest = &self.pattern[((self.first + at) % PERIOD) as usize..];
        &rest[..rest.len().min((self.length - at) as usize)]
    }
}

/// Compares content as it comes.
#[derive(Debug)]
pub struct Compared<'a> {
    expected: BlobContent<'a>,
    /// Bytes that came.
    pub at: u64,
    /// The first byte that is another.
    pub wrong: Option<u64>,
    trust: bool,
}

impl<'a> Compared<'a> {
    /// With `trust`, only the length is compared.
    pub fn new(expected: BlobContent<'a>, trust: bool) -> Self {
        Self { expected, at: 0, wrong: None, trust }
    }

    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.at >= self.expected.length {
                self.wrong.get_or_insert(self.at);
                self.at += bytes.len() as u64;
                return;
            }
            let piece = self.expected.piece(self.at);
            let count = piece.len().min(bytes.len());
            if !self.trust && self.wrong.is_none() && piece[..count] != bytes[..count] {
                let place = piece.iter().zip(bytes).position(|(expected, found)| expected != found);
                self.wrong = Some(self.at + place.unwrap_or(0) as u64);
            }
            self.at += count as u64;
            bytes = &bytes[count..];
        }
    }

    /// What is wrong, if anything is.
    pub fn outcome(&self) -> std::result::Result<(), String> {
        let Self { expected, at, wrong, .. } = self;
        match wrong {
            _ if *at != expected.length => {
                Err(format!("content has {at} bytes instead of {}", expected.length))
            }
            Some(place) => Err(format!("byte {place} of the content is another than was put there")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: BlobSizes = BlobSizes {
        blobs: 20_150,
        bytes: 3_000_000,
        block_bytes: 1_000_000,
        parallel_blocks: 2,
        range_bytes: 100,
    };

    fn set() -> BlobSet {
        BlobSet::new(SIZES, &[Workload::BlobGet]).unwrap()
    }

    fn all(content: &BlobContent<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < content.length() {
            bytes.extend_from_slice(content.piece(bytes.len() as u64));
        }
        bytes
    }

    #[test]
    fn parts_of_content_are_its_parts_and_numbers_differ() {
        let set = set();
        let whole = all(&set.content(7, 0, 3_000_000));
        for (start, length) in [(0, 10), (1_048_570, 30), (2_999_990, 10), (5, 2_500_000)] {
            let part = all(&set.content(7, start, length));
            assert!(part == whole[start as usize..(start + length) as usize], "{start} {length}");
        }
        assert!(all(&set.content(8, 0, 100)) != whole[..100]);
        let mut chunks: Vec<_> = whole.chunks(1_048_576).map(|chunk| &chunk[..100]).collect();
        chunks.dedup();
        assert_eq!(chunks.len(), 3, "chunks that were swapped are noticed");
    }

    #[test]
    fn other_content_is_noticed_whatever_its_cuts() {
        let set = set();
        let content = set.content(7, 0, 2_000_000);
        let check = |bytes: &[u8], expected: std::result::Result<(), &str>| {
            for size in [1000, 65_536, 2_000_001] {
                let mut compared = Compared::new(content, false);
                bytes.chunks(size).for_each(|piece| compared.take(piece));
                assert_eq!(compared.outcome(), expected.map_err(str::to_owned), "{size}");
            }
        };
        let mut bytes = all(&content);
        check(&bytes, Ok(()));
        check(&bytes[..1_999_999], Err("content has 1999999 bytes instead of 2000000"));
        bytes.push(0);
        check(&bytes, Err("content has 2000001 bytes instead of 2000000"));
        bytes.pop();
        bytes[1_234_567] ^= 1;
        check(&bytes, Err("byte 1234567 of the content is another than was put there"));
        let mut compared = Compared::new(content, true);
        compared.take(&bytes);
        assert_eq!(compared.outcome(), Ok(()), "not compared");
        compared.take(&[0]);
        assert!(compared.outcome().is_err(), "but its length is");
    }

    #[test]
    fn names_are_in_folders_of_a_hundred() {
        let set = set();
        let mut name = String::new();
        set.name(&mut name, 12_345);
        assert_eq!(name, "3000000/000001/23/45");
        set.folder(&mut name, 123);
        assert_eq!(name, "3000000/000001/23/");
        set.upper_folder(&mut name, 1);
        assert_eq!(name, "3000000/000001/");
        assert_eq!((set.folders(), set.upper_folders()), (202, 3));
        assert_eq!((set.blobs_in(200), set.blobs_in(201)), (100, 50));
        assert_eq!((set.folders_in(0), set.folders_in(2)), (100, 2));
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let error = |sizes, workload| BlobSet::new(sizes, &[workload]).unwrap_err().to_string();
        let bytes = |bytes| BlobSizes { bytes, ..SIZES };
        let get = Workload::BlobGet;
        assert_eq!(
            error(BlobSizes { blobs: 0, ..SIZES }, get),
            "--blobs 0 is out of range; it takes 1 to 100000000"
        );
        assert!(error(bytes(0), get).starts_with("--blob-bytes 0 is out of range"));
        assert!(error(bytes(50_000_000_001), get).contains("50000 blocks"));
        assert!(
            error(BlobSizes { block_bytes: 0, ..SIZES }, get).starts_with("--block-bytes 0 is out of range")
        );
        assert!(error(BlobSizes { parallel_blocks: 0, ..SIZES }, get).starts_with("--parallel-blocks 0"));
        assert!(error(BlobSizes { range_bytes: 0, ..SIZES }, get).starts_with("--range-bytes 0"));
        assert_eq!(
            error(bytes(APPEND_BYTES_MAX + 1), Workload::BlobAppend),
            "--blob-bytes 104857601 is too long for blob-append; it takes 104857600 at most"
        );
        assert!(BlobSet::new(bytes(PUT_BYTES_MAX + 1), &[get]).is_ok(), "loaded in blocks");
    }
}
