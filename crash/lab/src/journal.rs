//! The journal of a recorded run: every change to the disk and every operation, in the order they happened.
//!
//! The preloaded library appends what the server does to its files; the lab appends its requests and their answers.
//! Both open the file for appending and write a record with one call, so records are complete and in order. The layout
//! is `struct record` in `faults.c`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;

const HEAD: usize = 48;

/// One record; the kinds up to `SyncFailed` are the library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Open,
    Write,
    Truncate,
    Allocate,
    Rename,
    Unlink,
    Link,
    Mkdir,
    Rmdir,
    SyncBegin,
    SyncEnd,
    SyncFailed,
    Sent,
    Answered,
}

const KINDS: [(u8, Kind); 14] = [
    (1, Kind::Open),
    (2, Kind::Write),
    (3, Kind::Truncate),
    (4, Kind::Allocate),
    (5, Kind::Rename),
    (6, Kind::Unlink),
    (7, Kind::Link),
    (8, Kind::Mkdir),
    (9, Kind::Rmdir),
    (10, Kind::SyncBegin),
    (11, Kind::SyncEnd),
    (12, Kind::SyncFailed),
    (SENT, Kind::Sent),
    (ANSWERED, Kind::Answered),
];
const SENT: u8 = 100;
const ANSWERED: u8 = 101;

#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub kind: Kind,
    /// Each process numbers its open files by itself. In the lab's own records: the writer.
    pub process: u32,
    pub flags: u32,
    /// In the lab's own records: the number of the operation.
    pub handle: u64,
    pub offset: u64,
    pub path: &'a str,
    pub target: &'a str,
    pub data: &'a [u8],
}

/// Parses a journal; an error names the position that can't be read.
pub fn read(bytes: &[u8]) -> Result<Vec<Record<'_>>, String> {
    let (mut records, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let record = bytes.get(at..).and_then(read_one);
        let (record, length) = record.ok_or_else(|| format!("the journal is unreadable at byte {at}"))?;
        records.push(record);
        at += length;
    }
    Ok(records)
}

fn read_one(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let head = bytes.get(..HEAD)?;
    let narrow = |at: usize| head[at..at + 4].try_into().ok().map(u32::from_ne_bytes);
    let wide = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_ne_bytes);
    let length = narrow(0)? as usize;
    let (_, kind) = KINDS.iter().find(|(number, _)| *number == head[4])?;
    let (path, target, data) = (narrow(32)? as usize, narrow(36)? as usize, wide(40)? as usize);
    let rest = bytes.get(HEAD..length)?;
    if rest.len() != path + target + data {
        return None;
    }
    let (path, rest) = rest.split_at(path);
    let (target, data) = rest.split_at(target);
    let record = Record {
        kind: *kind,
        process: narrow(8)?,
        flags: narrow(12)?,
        handle: wide(16)?,
        offset: wide(24)?,
        path: std::str::from_utf8(path).ok()?,
        target: std::str::from_utf8(target).ok()?,
        data,
    };
    Some((record, length))
}

/// Writes the lab's own records.
#[derive(Debug)]
pub struct JournalWriter(Mutex<File>);

impl JournalWriter {
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| Self(Mutex::new(file)))
            .map_err(|error| format!("can't write {}: {error}", path.display()))
    }

    pub fn sent(&self, writer: usize, number: usize, operation: &impl Serialize) {
        self.append(SENT, writer, number, &serde_json::to_vec(operation));
    }

    pub fn answered(&self, writer: usize, number: usize, outcome: &impl Serialize) {
        self.append(ANSWERED, writer, number, &serde_json::to_vec(outcome));
    }

    fn append(&self, kind: u8, writer: usize, number: usize, data: &serde_json::Result<Vec<u8>>) {
        // They consist of names, numbers and texts, all of which JSON can represent.
        let Ok(data) = data else { return };
        let mut record = Vec::with_capacity(HEAD + data.len());
        record.extend(((HEAD + data.len()) as u32).to_ne_bytes());
        record.extend([kind, 0, 0, 0]);
        record.extend((writer as u32).to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record.extend((number as u64).to_ne_bytes());
        record.extend([0; 16]);
        record.extend((data.len() as u64).to_ne_bytes());
        record.extend(data);
        let Ok(mut file) = self.0.lock() else { return };
        // A journal without this record would lead to wrong judgements.
        file.write_all(&record).expect("the journal must be writable while a run is recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Operation, Outcome};

    #[test]
    fn records_are_read_back_and_a_torn_end_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journal = JournalWriter::open(&path).unwrap();
        let operation = Operation::Create { table: "Own1".to_owned() };
        journal.sent(1, 7, &operation);
        journal.answered(1, 7, &Outcome::Done(Vec::new()));
        let bytes = std::fs::read(&path).unwrap();
        let records = read(&bytes).unwrap();
        let kinds: Vec<Kind> = records.iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [Kind::Sent, Kind::Answered]);
        assert_eq!((records[0].process, records[0].handle), (1, 7));
        assert_eq!(serde_json::from_slice::<Operation>(records[0].data).unwrap(), operation);
        assert!(read(&bytes[..bytes.len() - 1]).unwrap_err().contains("unreadable at byte"));
    }
}
