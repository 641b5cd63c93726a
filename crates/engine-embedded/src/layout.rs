//! Every byte this crate stores: file names, meta records, and the table id in front of each row key.
//!
//! What follows the table id, and the rows themselves, is `store::encoding`'s. `docs/storage-format.md` draws
//! all of it; a change here is a new format version there.

use std::fmt;

use bytes::Bytes;
use model::{AccountName, DateTime, Key, KeyRange, TableName};
use store::encoding;

/// Names the version of everything below; checked before the database is touched.
pub const FORMAT_FILE: &str = "FORMAT";
/// `FORMAT` while it is being written.
pub const FORMAT_DRAFT_FILE: &str = "FORMAT.new";
/// Held locked by the process that has the directory open.
pub const LOCK_FILE: &str = "LOCK";
/// The number of the last commit known to be durable.
pub const COMMITTED_FILE: &str = "committed";
/// RocksDB's own directory.
pub const DATABASE_DIRECTORY: &str = "db";
/// The same while a new database is being made.
pub const DATABASE_DRAFT_DIRECTORY: &str = "db.new";

/// A checkpoint, until a backup has taken it away.
pub const STAGING_DIRECTORY: &str = "backup-staging";

pub const META_FAMILY: &str = "meta";
pub const DATA_FAMILY: &str = "data";

const FORMAT_NAME: &str = "partita-store";
pub const FORMAT_VERSION: u32 = 1;

pub fn format_text() -> String {
    format!("{FORMAT_NAME} {FORMAT_VERSION}\n")
}

/// The version a `FORMAT` file names, if it is one of ours.
pub fn read_format(text: &str) -> Option<u32> {
    text.trim_end().strip_prefix(FORMAT_NAME)?.strip_prefix(' ')?.parse().ok()
}

/// The counter and, to tell it from a torn or foreign file, its complement.
pub fn committed_bytes(counter: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&counter.to_le_bytes());
    bytes[8..].copy_from_slice(&(!counter).to_le_bytes());
    bytes
}

pub fn read_committed(bytes: &[u8]) -> Option<u64> {
    let (counter, complement) = bytes.split_first_chunk::<8>()?;
    let counter = u64::from_le_bytes(*counter);
    (complement == (!counter).to_le_bytes()).then_some(counter)
}

/// A table's rows lie under 16 random bytes that no later table ever gets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId([u8; TABLE_ID_BYTES]);

const TABLE_ID_BYTES: usize = 16;
/// No row key begins with it (CESU-8 ends at EF), so id ‖ FF lies above every row of the table.
const ABOVE_ROWS: u8 = 0xFF;

impl TableId {
    pub fn random() -> Self {
        Self(rand::random())
    }

    pub fn row(self, partition: &Key, row: &Key) -> Vec<u8> {
        let (partition, row) = (partition.as_str(), row.as_str());
        let mut out = Vec::with_capacity(TABLE_ID_BYTES + partition.len() + row.len() + 1);
        out.extend(self.0);
        encoding::key::append(&mut out, partition, row);
        out
    }

    /// Bounds of a key range, lower included, upper not; `None` if nothing can lie in it.
    pub fn range(self, range: &KeyRange) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, end) = encoding::key::encode_range(range)?;
        let start = [&self.0[..], &start].concat();
        let end = end.map_or_else(|| self.all().1, |end| [&self.0[..], &end].concat());
        (start < end).then_some((start, end))
    }

    /// Bounds of all rows the table can have.
    pub fn all(self) -> (Vec<u8>, Vec<u8>) {
        (self.0.to_vec(), [&self.0[..], &[ABOVE_ROWS]].concat())
    }

    /// A stored row key as its table id and the rest.
    pub fn split(stored: &[u8]) -> Option<(Self, &[u8])> {
        let (id, rest) = stored.split_first_chunk()?;
        Some((Self(*id), rest))
    }

    /// A stored row key without its table id.
    pub fn strip(stored: &[u8]) -> &[u8] {
        stored.get(TABLE_ID_BYTES..).unwrap_or_default()
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const COMMIT: u8 = b'C';
const DROPPING: u8 = b'D';
const SERVICE: u8 = b'S';
const TABLE: u8 = b'T';
/// Names are letters and digits, so 00 ends one and sorts below them.
const NAME_END: u8 = 0x00;

/// The key of a meta record, read back.
#[derive(Debug, PartialEq, Eq)]
pub enum MetaKey {
    Commit,
    Dropping(TableId),
    Service(AccountName),
    /// The key itself is what tables are looked up by.
    Table,
}

impl MetaKey {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            COMMIT => rest.is_empty().then_some(Self::Commit),
            DROPPING => Some(Self::Dropping(TableId(rest.try_into().ok()?))),
            SERVICE => Some(Self::Service(AccountName::parse(std::str::from_utf8(rest).ok()?)?)),
            TABLE => Some(Self::Table),
            _ => None,
        }
    }
}

pub const COMMIT_KEY: &[u8] = &[COMMIT];

pub fn dropping_key(id: TableId) -> Vec<u8> {
    [&[DROPPING][..], &id.0].concat()
}

pub fn service_key(account: &AccountName) -> Vec<u8> {
    [&[SERVICE][..], account.as_str().as_bytes()].concat()
}

/// Sorts tables by account and then by lower-case name.
pub fn table_key(account: &AccountName, folded: &str) -> Vec<u8> {
    [&[TABLE][..], account.as_str().as_bytes(), &[NAME_END], folded.as_bytes()].concat()
}

/// The account and the lower-case name in the key of a table's record.
pub fn read_table_key(key: &[u8]) -> Option<(AccountName, &str)> {
    let text = std::str::from_utf8(key.strip_prefix(&[TABLE])?).ok()?;
    let (account, folded) = text.split_once(char::from(NAME_END))?;
    Some((AccountName::parse(account)?, folded))
}

const RECORD_FORMAT: u8 = 1;

/// What `dropping` and service records begin with, and all there is in the former.
pub const DROPPING_RECORD: &[u8] = &[RECORD_FORMAT];

pub fn service_record(metadata: &[u8]) -> Vec<u8> {
    [&[RECORD_FORMAT][..], metadata].concat()
}

pub fn read_service_record(bytes: &[u8]) -> Option<Bytes> {
    bytes.strip_prefix(&[RECORD_FORMAT]).map(Bytes::copy_from_slice)
}

/// Written with every group: which commit it was, and the latest timestamp given so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRecord {
    pub counter: u64,
    pub last_stamp: DateTime,
}

impl CommitRecord {
    pub const NONE: Self = Self { counter: 0, last_stamp: DateTime::MIN };

    pub fn encode(self) -> Vec<u8> {
        [&[RECORD_FORMAT][..], &self.counter.to_le_bytes(), &self.last_stamp.ticks().to_le_bytes()].concat()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (counter, ticks) = bytes.strip_prefix(&[RECORD_FORMAT])?.split_first_chunk::<8>()?;
        let last_stamp = DateTime::from_ticks(i64::from_le_bytes(ticks.try_into().ok()?))?;
        Some(Self { counter: u64::from_le_bytes(*counter), last_stamp })
    }
}

/// A table: where its rows are, what it is called, and what the service keeps with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRecord {
    pub id: TableId,
    /// In the case it was created with.
    pub name: TableName,
    pub metadata: Option<Bytes>,
}

const NO_METADATA: u8 = 0;
const METADATA: u8 = 1;
const _: () = assert!(model::limits::TABLE_NAME_MAX <= u8::MAX as usize); // a name's length is one byte

impl TableRecord {
    pub fn encode(&self) -> Vec<u8> {
        let name = self.name.as_str().as_bytes();
        let mut out = vec![RECORD_FORMAT];
        out.extend(self.id.0);
        out.push(name.len() as u8);
        out.extend(name);
        match &self.metadata {
            None => out.push(NO_METADATA),
            Some(metadata) => {
                out.push(METADATA);
                out.extend(metadata);
            }
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.strip_prefix(&[RECORD_FORMAT])?.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let name = TableName::parse(std::str::from_utf8(name).ok()?).ok()?;
        let metadata = match rest {
            [NO_METADATA] => None,
            [METADATA, metadata @ ..] => Some(Bytes::copy_from_slice(metadata)),
            _ => return None,
        };
        Some(Self { id: TableId(*id), name, metadata })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Cut;

    #[test]
    fn format_names_are_told_from_others() {
        assert_eq!(read_format(&format_text()), Some(FORMAT_VERSION));
        assert_eq!(read_format("partita-store 12\n"), Some(12));
        for foreign in ["", "partita-store", "partita-stores 1", "partita-store one", "rocksdb 1"] {
            assert_eq!(read_format(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_damaged_committed_file_reads_as_none() {
        for counter in [0, 1, 77, u64::MAX] {
            let bytes = committed_bytes(counter);
            assert_eq!(read_committed(&bytes), Some(counter));
            for at in 0..bytes.len() {
                let mut flipped = bytes;
                flipped[at] ^= 4;
                assert_eq!(read_committed(&flipped), None);
                assert_eq!(read_committed(&bytes[..at]), None);
            }
        }
    }

    #[test]
    fn records_read_back_and_a_record_cut_short_does_not() {
        let name = TableName::parse("Books").unwrap();
        let commit = CommitRecord { counter: 9, last_stamp: DateTime::MIN_STORED };
        assert_eq!(CommitRecord::decode(&commit.encode()), Some(commit));
        assert_eq!(CommitRecord::decode(&commit.encode()[..16]), None);
        for metadata in [None, Some(Bytes::new()), Some(Bytes::from_static(b"policies"))] {
            let table = TableRecord { id: TableId::random(), name: name.clone(), metadata };
            let bytes = table.encode();
            assert_eq!(TableRecord::decode(&bytes), Some(table));
            assert_eq!(TableRecord::decode(&bytes[..20]), None);
        }
        assert_eq!(read_service_record(&service_record(b"cors")), Some(Bytes::from_static(b"cors")));
    }

    #[test]
    fn meta_keys_read_back() {
        let (account, id) = (AccountName::parse("devstoreaccount1").unwrap(), TableId::random());
        assert_eq!(MetaKey::read(COMMIT_KEY), Some(MetaKey::Commit));
        assert_eq!(MetaKey::read(&dropping_key(id)), Some(MetaKey::Dropping(id)));
        assert_eq!(MetaKey::read(&table_key(&account, "books")), Some(MetaKey::Table));
        assert_eq!(read_table_key(&table_key(&account, "books")), Some((account.clone(), "books")));
        assert_eq!(MetaKey::read(&service_key(&account)), Some(MetaKey::Service(account)));
        assert_eq!(MetaKey::read(b"X"), None);
    }

    #[test]
    fn rows_of_a_table_lie_within_its_bounds_and_no_others() {
        let (id, other) = (TableId([7; 16]), TableId([8; 16]));
        let (start, end) = id.all();
        for (partition, row) in [("", ""), ("\u{10ffff}", "\u{ffff}"), ("p", "r")] {
            let key = model::EntityKey::parse(partition, row).unwrap();
            let (inside, outside) = (id.row(&key.partition, &key.row), other.row(&key.partition, &key.row));
            assert!(start <= inside && inside < end && outside >= end);
            assert_eq!(encoding::key::decode_key(TableId::strip(&inside)).unwrap(), key);
        }
        assert_eq!(id.range(&KeyRange::all()).unwrap().1, end);
        assert_eq!(id.range(&KeyRange { start: Cut::before("b", ""), end: Cut::before("a", "") }), None);
    }
}
