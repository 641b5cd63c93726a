//! Values that lie in blob files, read from there with one copy.
//!
//! RocksDB tells where a value lies, and the record there is read and checked here as RocksDB does it. Whatever is not as
//! expected is `None`: then RocksDB's own get finds the value, or says what is wrong.

use std::ffi::{c_char, c_int, c_uchar};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr;

use bytes::Bytes;
use crc_fast::CrcAlgorithm::Crc32Iscsi;
use rocksdb::{AsColumnFamilyRef as _, ColumnFamily};

/// Before the key of a record: the lengths of key and value and a time, 8 bytes each, a checksum of these, and one of key and
/// value.
const HEAD_BYTES: usize = 32;
const HEAD_CHECKED_BYTES: usize = 24;
/// No value is as long. A place that says so is damaged.
const RECORD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Answers of `partita_value_find`.
const IN_FILE: c_int = 1;
const IN_MEMORY: c_int = 2;

/// A value of `partita_value_find`.
#[repr(C)]
struct RawValue {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawPlace {
    file: u64,
    offset: u64,
    length: u64,
}

unsafe extern "C" {
    fn partita_value_find(
        family: *mut librocksdb_sys::rocksdb_column_family_handle_t,
        key: *const u8,
        key_length: usize,
        may_wait: c_uchar,
        place: *mut RawPlace,
        value: *mut *mut RawValue,
        bytes: *mut *const c_char,
        length: *mut usize,
    ) -> c_int;
    fn partita_value_free(value: *mut RawValue);
}

/// The value of a key of a column family whose blob files are in this directory. `None` if it is not there, or not as
/// expected, or if finding it would mean to wait for the disk and nobody may.
pub fn read_value(family: &ColumnFamily, directory: &Path, key: &[u8], may_wait: bool) -> Option<Bytes> {
    match find(family, key, may_wait)? {
        Found::InMemory(bytes) => Some(bytes),
        Found::InFile(place) => place.read(directory, key, may_wait),
    }
}

enum Found {
    InMemory(Bytes),
    InFile(RawPlace),
}

fn find(family: &ColumnFamily, key: &[u8], may_wait: bool) -> Option<Found> {
    let (mut place, mut value, mut bytes, mut length) =
        (RawPlace::default(), ptr::null_mut(), ptr::null(), 0);
    // SAFETY: a reference to a column family points to an open one of an open database. The key is read during the call.
    let found = unsafe {
        partita_value_find(
            family.inner(),
            key.as_ptr(),
            key.len(),
            may_wait.into(),
            &mut place,
            &mut value,
            &mut bytes,
            &mut length,
        )
    };
    match found {
        IN_FILE => Some(Found::InFile(place)),
        IN_MEMORY => {
            // SAFETY: the value was found, so these bytes can be read until it is freed, which is here and once.
            let copy = unsafe {
                let copy = Bytes::copy_from_slice(crate::slice(bytes.cast(), length));
                partita_value_free(value);
                copy
            };
            Some(Found::InMemory(copy))
        }
        _ => None,
    }
}

impl RawPlace {
    /// The value behind its record's head and key. A file that is gone was replaced since it was found.
    fn read(self, directory: &Path, key: &[u8], may_wait: bool) -> Option<Bytes> {
        let before = HEAD_BYTES + key.len();
        let start = self.offset.checked_sub(before as u64)?;
        let length = self.length.checked_add(before as u64).filter(|length| *length <= RECORD_BYTES_MAX)?;
        let file = File::open(directory.join(format!("{:06}.blob", self.file))).ok()?;
        // Below the largest record, which is a `usize`.
        let record = Bytes::from(read_at(&file, start, length as usize, may_wait).ok()?);
        is_record_of(&record, key).then(|| record.slice(before..))
    }
}

/// So many bytes of a file. `UnexpectedEof` if it has fewer. If nobody may wait for the disk, `WouldBlock` if they are not in
/// the system's cache.
pub fn read_at(file: &File, start: u64, length: usize, may_wait: bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    read_into(&mut bytes, file, start, length, may_wait)?;
    Ok(bytes)
}

/// The same, in the place of what is in a buffer.
pub fn read_into(
    buffer: &mut Vec<u8>,
    file: &File,
    start: u64,
    length: usize,
    may_wait: bool,
) -> io::Result<()> {
    buffer.clear();
    let cached = read_cached(buffer, file, start, length);
    if cached.is_ok() || !may_wait {
        return cached;
    }
    buffer.resize(length, 0);
    file.read_exact_at(buffer, start)
}

/// Fails if not all of it is in the system's cache.
fn read_cached(buffer: &mut Vec<u8>, file: &File, start: u64, length: usize) -> io::Result<()> {
    buffer.reserve(length);
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let start = libc::off_t::try_from(start).map_err(io::Error::other)?;
    // SAFETY: the file is open, and so many bytes of the buffer, which is empty, can be written.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, start, libc::RWF_NOWAIT) };
    if usize::try_from(read).ok() != Some(length) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    // SAFETY: the call has written so many bytes, which the buffer has room for.
    unsafe { buffer.set_len(length) };
    Ok(())
}

/// Whether a record has this key, and both checksums are right.
fn is_record_of(record: &[u8], key: &[u8]) -> bool {
    let Some((head, rest)) = record.split_at_checked(HEAD_BYTES) else { return false };
    let number = |at: usize| head[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let sum = |at: usize| head[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let Some(value) = rest.strip_prefix(key) else { return false };
    number(0) == Some(key.len() as u64)
        && number(8) == Some(value.len() as u64)
        && sum(HEAD_CHECKED_BYTES) == Some(masked_crc32c(&head[..HEAD_CHECKED_BYTES]))
        && sum(HEAD_CHECKED_BYTES + 4) == Some(masked_crc32c(rest))
}

/// As RocksDB stores a checksum: changed, so that a checksum of bytes with checksums in them is no special one.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    // A checksum of 32 bits in a wider number.
    let crc = crc_fast::checksum(Crc32Iscsi, bytes) as u32;
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}
