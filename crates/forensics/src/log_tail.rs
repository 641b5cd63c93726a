//! Keeps RocksDB from reading a log for ever.
//!
//! RocksDB has two kinds of log records, and each log has only one kind. When it meets a record of the other kind it
//! should skip it, but it does not advance and meets the record again: `Reader::ReadPhysicalRecord` checks the type
//! before the checksum and returns without having consumed anything. The garbage that a crash can leave after the
//! last record, in blocks that were allocated but not written, can look like such a record: six of the 256 values of
//! one byte do.
//!
//! Our logs never have the other kind, which is for reused logs. So such a record is damage, and its checksum would
//! show it if RocksDB compared it. Here its type is changed to an unknown one: then RocksDB does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tracing::warn;

/// Logs are written in blocks. The header of a record never crosses the end of a block.
pub const BLOCK: usize = 32 * 1024;
/// Checksum, length, type.
pub const HEADER: usize = 4 + 2 + 1;
const TYPE_AT: usize = 6;
/// An unknown type without the bit that lets RocksDB skip it silently.
const UNKNOWN_TYPE: u8 = 0x7f;

/// Mends every log of the database; changes nothing in one that RocksDB can read to its end.
pub fn mend(database: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            mend_log(&path)?;
        }
    }
    Ok(())
}

fn mend_log(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let places = endless(&bytes);
    if places.is_empty() {
        return Ok(());
    }
    let file: File = OpenOptions::new().write(true).open(path)?;
    for at in places {
        let found = bytes[at];
        warn!(log = %path.display(), at, found, "a damaged record would have been read for ever; its type is changed");
        file.write_all_at(&[UNKNOWN_TYPE], at as u64)?;
    }
    file.sync_all()
}

/// The offsets of the types of records that RocksDB would read for ever. Reads the log as RocksDB does: record by
/// record, and from a damaged one to the next block.
fn endless(log: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    for (index, block) in log.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while let Some(header) = block.get(at..at + HEADER) {
            if is_of_reused_log(header[TYPE_AT]) {
                places.push(index * BLOCK + at + TYPE_AT);
                break;
            }
            let Some((_, payload)) = record(&block[at..]) else { break };
            at += HEADER + payload.len();
        }
    }
    places
}

/// The type and the payload of the record that begins here, if it matches its checksum.
pub fn record(block: &[u8]) -> Option<(u8, &[u8])> {
    let header = block.get(..HEADER)?;
    let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
    let record = block.get(TYPE_AT..HEADER + length)?;
    let checksum = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let (kind, payload) = record.split_first()?;
    (masked(crc32c::crc32c(record)) == checksum).then_some((*kind, payload))
}

fn is_of_reused_log(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}

/// Masks a checksum as RocksDB does, because a checksum of bytes that contain checksums is weak.
pub fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let body = [&[kind], payload].concat();
        let length = u16::try_from(payload.len()).unwrap().to_le_bytes();
        [&masked(crc32c::crc32c(&body)).to_le_bytes()[..], &length, &body].concat()
    }

    #[test]
    fn a_record_of_the_other_kind_is_found_behind_good_ones_and_in_every_block() {
        let good = record(1, b"payload");
        let foreign = [0, 0, 0, 0, 1, 0, 7, 9];
        assert_eq!(endless(&good.repeat(3)), []);
        assert_eq!(endless(&[&good[..], &foreign].concat()), [good.len() + TYPE_AT]);
        // Damage ends a block, and the next one is looked at from its start.
        let mut log = good.clone();
        log.extend([0xff; HEADER]);
        log.extend(foreign);
        assert_eq!(endless(&log), [], "behind damage nobody looks on in the same block");
        log.resize(BLOCK, 0);
        log.extend(foreign);
        assert_eq!(endless(&log), [BLOCK + TYPE_AT]);
        assert_eq!(endless(&good[..5]), []);
    }
}
