//! Reads values from blob files. A table file refers to each by file, place and length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::block::take_varint;
use crate::error::BlobError;
use crate::log_tail::masked;

/// The kind of a reference without an expiry, the only one that is written.
const PLAIN: u8 = 1;
const NOT_PACKED: u8 = 0;
/// Before each value: lengths of key and value, expiry, a checksum of these, a checksum of key and value; then the key.
const HEADER: usize = 32;
const LENGTHS: usize = 24;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobReference {
    pub file: u64,
    /// Of the value itself, behind its key.
    pub offset: u64,
    pub size: u64,
}

impl BlobReference {
    /// From the value that a table file has in place of the real one.
    pub fn read(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        let reference =
            Self { file: take_varint(bytes)?, offset: take_varint(bytes)?, size: take_varint(bytes)? };
        (*kind == PLAIN && **bytes == [NOT_PACKED]).then_some(reference)
    }

    pub fn file_name(self) -> String {
        file_name(self.file)
    }
}

pub fn file_name(number: u64) -> String {
    format!("{number:06}.blob")
}

#[derive(Debug)]
pub struct BlobFile {
    file: File,
    size: u64,
}

impl BlobFile {
    pub fn open(path: &Path) -> Result<Self, BlobError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing,
            _ => error.into(),
        })?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }

    /// The value of this key, if its checksum matches. A value above `bytes_max` is not read.
    pub fn value(&self, key: &[u8], reference: BlobReference, bytes_max: u64) -> Result<Vec<u8>, BlobError> {
        let before = (HEADER + key.len()) as u64;
        let start = reference.offset.checked_sub(before).ok_or(BlobError::Outside)?;
        let end = reference.offset.checked_add(reference.size).ok_or(BlobError::Outside)?;
        if end > self.size {
            return Err(BlobError::Outside);
        }
        if reference.size > bytes_max {
            return Err(BlobError::TooLong { bytes: reference.size });
        }
        let mut record = vec![0; (end - start) as usize];
        self.file.read_exact_at(&mut record, start)?;
        let (header, content) = record.split_first_chunk::<HEADER>().ok_or(BlobError::Outside)?;
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if masked(crc32c::crc32c(&header[..LENGTHS])) != number(LENGTHS)
            || masked(crc32c::crc32c(content)) != number(LENGTHS + 4)
        {
            return Err(BlobError::Checksum);
        }
        if (long(0), long(8)) != (key.len() as u64, reference.size) || !content.starts_with(key) {
            return Err(BlobError::OtherKey);
        }
        record.drain(..HEADER + key.len());
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
        let lengths = [(key.len() as u64).to_le_bytes(), (value.len() as u64).to_le_bytes(), [0; 8]].concat();
        let content = [key, value].concat();
        let sums = [masked(crc32c::crc32c(&lengths)), masked(crc32c::crc32c(&content))];
        [lengths, sums[0].to_le_bytes().to_vec(), sums[1].to_le_bytes().to_vec(), content].concat()
    }

    #[test]
    fn a_value_is_read_only_if_it_is_whole_and_belongs_to_its_key() {
        let path = std::env::temp_dir().join(format!("partita-blob-file-{}", std::process::id()));
        let whole = [vec![0; 30], record(b"key", b"value"), record(b"other", b"thing")].concat();
        fs::write(&path, &whole).unwrap();
        let reference = BlobReference { file: 7, offset: 30 + 32 + 3, size: 5 };
        let read = |key: &[u8], reference| BlobFile::open(&path).unwrap().value(key, reference, 5);
        assert_eq!(read(b"key", reference).unwrap(), b"value");
        assert!(matches!(read(b"kez", reference), Err(BlobError::OtherKey)));
        assert!(matches!(read(b"ke", reference), Err(BlobError::Checksum)));
        let long = BlobReference { size: 6, ..reference };
        assert!(matches!(read(b"key", long), Err(BlobError::TooLong { bytes: 6 })));
        for outside in
            [BlobReference { offset: 34, ..reference }, BlobReference { size: u64::MAX, ..reference }]
        {
            assert!(matches!(read(b"key", outside), Err(BlobError::Outside)));
        }
        for at in 30..30 + 32 + 8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert!(read(b"key", reference).is_err(), "byte {at}");
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(BlobFile::open(&path), Err(BlobError::Missing)));
    }

    #[test]
    fn references_are_read_as_they_are_written() {
        let reference = BlobReference { file: 300, offset: 65, size: 5 };
        assert_eq!(BlobReference::read(&[1, 0xac, 2, 65, 5, 0]), Some(reference));
        assert_eq!(reference.file_name(), "000300.blob");
        for damaged in [&[][..], &[2, 7, 65, 5, 0], &[1, 7, 65, 5], &[1, 7, 65, 5, 4], &[1, 7, 65, 5, 0, 0]] {
            assert_eq!(BlobReference::read(damaged), None, "{damaged:?}");
        }
    }
}
