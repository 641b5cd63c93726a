//! RocksDB below its public interface: walks the rows of a column family between two keys, as a snapshot shows them, and reads
//! large values with one copy ([`read_value`]).
//!
//! A walk does what RocksDB's iterator does for rows of plain values, with one call a row and without what this database does
//! not use. The C++ behind it reads RocksDB's internal iterator (`walk.cc`). Why that is worth its unsafe code:
//! docs/decisions/0009-scans-walk-rocksdb-inside.md.

mod value;

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use librocksdb_sys as _;
use rocksdb::{AsColumnFamilyRef as _, ColumnFamily, Snapshot};

pub use value::{read_at, read_into, read_value};

/// A walk of `partita_walk_open`.
#[repr(C)]
struct RawWalk {
    _private: [u8; 0],
}

#[repr(C)]
struct RawRow {
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
}

unsafe extern "C" {
    fn partita_walk_open(
        family: *mut librocksdb_sys::rocksdb_column_family_handle_t,
        newest: u64,
        start: *const u8,
        start_length: usize,
        end: *const u8,
        end_length: usize,
        reads_whole_rows: c_uchar,
    ) -> *mut RawWalk;
    fn partita_walk_close(walk: *mut RawWalk);
    fn partita_walk_next(walk: *mut RawWalk, row: *mut RawRow) -> c_uchar;
    fn partita_walk_status(walk: *const RawWalk, text: *mut *mut c_char) -> c_int;
    fn partita_walk_free(text: *mut c_char);
}

/// How much of each row the caller reads. So much of the next one is fetched from memory meanwhile; it changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// What a filter needs: the key and the first properties.
    Front,
    /// All of it, as a copy does.
    Whole,
}

/// The rows between two keys. Ranges of keys that were deleted at once are shown all the same.
pub struct Walk<'a> {
    raw: NonNull<RawWalk>,
    /// The database is not closed, and what the snapshot shows is not removed, while the walk lives. It is used by one
    /// thread: a raw pointer is neither `Send` nor `Sync`.
    _borrowed: PhantomData<&'a ColumnFamily>,
}

/// Why a walk ended before its last row.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct WalkError {
    pub text: String,
    /// Whether stored bytes are damaged; else they could not be read.
    pub is_damage: bool,
}

impl<'a> Walk<'a> {
    /// From `start` up to but not including `end`. The snapshot is one of the same database.
    pub fn new(
        family: &'a ColumnFamily,
        snapshot: &'a Snapshot<'a>,
        start: &[u8],
        end: &[u8],
        reads: Reads,
    ) -> Self {
        let newest = snapshot.sequence_number();
        let (from, to) = ((start.as_ptr(), start.len()), (end.as_ptr(), end.len()));
        let whole = c_uchar::from(reads == Reads::Whole);
        // SAFETY: a reference to a column family points to an open one of an open database. The call copies both keys.
        let raw = unsafe { partita_walk_open(family.inner(), newest, from.0, from.1, to.0, to.1, whole) };
        // `new` in C++ does not return null.
        let raw = NonNull::new(raw).expect("a walk was made");
        Self { raw, _borrowed: PhantomData }
    }

    /// The key and the value of the next row; `None` after the last one, and after an error, which `status` tells.
    #[inline]
    pub fn next_row(&mut self) -> Option<(&[u8], &[u8])> {
        let mut row = RawRow { key: ptr::null(), key_length: 0, value: ptr::null(), value_length: 0 };
        // SAFETY: the walk was opened and is not closed, and nobody else uses it.
        if unsafe { partita_walk_next(self.raw.as_ptr(), &mut row) } == 0 {
            return None;
        }
        // SAFETY: a row that is returned has a key and a value, which stay in place until the walk is used again or ends.
        // Both slices borrow the walk, so that it can't be used while they live.
        Some(unsafe { (slice(row.key, row.key_length), slice(row.value, row.value_length)) })
    }

    /// An error if the walk ended too early.
    pub fn status(&self) -> Result<(), WalkError> {
        let mut text = ptr::null_mut();
        // SAFETY: the walk was opened and is not closed. `text` is written if there is an error.
        let code = unsafe { partita_walk_status(self.raw.as_ptr(), &mut text) };
        if code == 0 {
            return Ok(());
        }
        let shown = if text.is_null() {
            "no memory for the text of the error".to_owned()
        } else {
            // SAFETY: the text ends with a zero and is ours until it is freed, once, after it was copied.
            unsafe {
                let shown = CStr::from_ptr(text).to_string_lossy().into_owned();
                partita_walk_free(text);
                shown
            }
        };
        Err(WalkError { text: shown, is_damage: code == 1 })
    }
}

/// # Safety
///
/// Unless the length is 0, so many bytes from `start` on can be read as long as `'b` lasts.
unsafe fn slice<'b>(start: *const u8, length: usize) -> &'b [u8] {
    // SAFETY: what the caller promises; without bytes the pointer may be null.
    if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, length) } }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: the walk was opened, and is closed only here.
        unsafe { partita_walk_close(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walk")
    }
}
