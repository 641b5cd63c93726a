//! Every byte this crate stores: file names, meta records, and the table id in front of each row key.
//!
//! `store::encoding` defines what follows the table id, and the rows. `docs/storage-format.md` describes all of it; a
//! change here is a new format version there.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use model::{AccountName, DateTime, Key, KeyRange, ServiceKind};
use store::{ObjectId, StoredName, encoding};

use crate::fields::{Fields, MUST_UNDERSTAND, Unusable};

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
/// Files with large chunks of objects.
pub const CONTENT_DIRECTORY: &str = "content";

/// A checkpoint, until a backup has taken it away.
pub const STAGING_DIRECTORY: &str = "backup-staging";
/// The store as it was before an upgrade to this format. It is there until the upgrade is sealed.
pub const BEFORE_UPGRADE_DIRECTORY: &str = "before-format-2";
/// The same while it is being made or removed.
pub const BEFORE_UPGRADE_DRAFT_DIRECTORY: &str = "before-format-2.partial";

pub const META_FAMILY: &str = "meta";
pub const DATA_FAMILY: &str = "data";
/// Content that is too large for rows, in chunks.
pub const OBJECTS_FAMILY: &str = "objects";
/// Always empty. It says that content may be in files, to programs that know nothing of them: they refuse to open the store.
pub const FILES_FAMILY: &str = "files";
/// All families of a new store.
pub const FAMILIES: [&str; 4] = [META_FAMILY, DATA_FAMILY, OBJECTS_FAMILY, FILES_FAMILY];

const FORMAT_NAME: &str = "partita-store";
/// The format that this version writes. It reads and upgrades every format from `FORMAT_OLDEST` on.
pub const FORMAT_VERSION: u32 = 2;
pub const FORMAT_OLDEST: u32 = 1;

pub fn format_text(version: u32) -> String {
    format!("{FORMAT_NAME} {version}\n")
}

/// The version a `FORMAT` file names, if it is one of ours.
pub fn read_format(text: &str) -> Option<u32> {
    text.trim_end().strip_prefix(FORMAT_NAME)?.strip_prefix(' ')?.parse().ok()
}

/// The counter and its complement, which shows whether the file is torn or not ours.
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

/// 16 random bytes before the keys of a table's rows. No later table gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId([u8; TABLE_ID_BYTES]);

const TABLE_ID_BYTES: usize = 16;
/// No row key begins with it (CESU-8 ends at EF), so id ‖ FF lies above every row of the table.
const ABOVE_ROWS: u8 = 0xFF;

impl TableId {
    pub fn random() -> Self {
        Self(rand::random())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
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

/// An object that has a chunk. The value is empty. Objects are listed by these, because RocksDB would read the content of
/// every chunk that it steps over.
const OBJECT_NAME: u8 = b'N';
/// A chunk: object ‖ number, big-endian.
const OBJECT_CHUNK: u8 = b'C';

pub fn object_name_key(object: ObjectId) -> [u8; 1 + ObjectId::BYTES] {
    let mut key = [OBJECT_NAME; 1 + ObjectId::BYTES];
    key[1..].copy_from_slice(object.as_bytes());
    key
}

/// The first key above all names of objects.
pub const ABOVE_OBJECT_NAMES: [u8; 1] = [OBJECT_NAME + 1];

pub fn chunk_key(object: ObjectId, number: u32) -> [u8; 5 + ObjectId::BYTES] {
    let mut key = [OBJECT_CHUNK; 5 + ObjectId::BYTES];
    key[1..=ObjectId::BYTES].copy_from_slice(object.as_bytes());
    key[1 + ObjectId::BYTES..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The bounds of all chunks of an object, lower included, upper not.
pub fn chunk_range(object: ObjectId) -> (Vec<u8>, Vec<u8>) {
    let last = chunk_key(object, u32::MAX);
    // Longer than every key, so it lies directly above the last.
    (chunk_key(object, 0).to_vec(), [&last[..], &[0]].concat())
}

/// The key of an entry of the family of objects, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKey {
    Name(ObjectId),
    Chunk(ObjectId, u32),
}

impl ObjectKey {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (object, rest) = rest.split_first_chunk::<{ ObjectId::BYTES }>()?;
        let object = ObjectId::from_bytes(*object);
        match *kind {
            OBJECT_NAME if rest.is_empty() => Some(Self::Name(object)),
            OBJECT_CHUNK => Some(Self::Chunk(object, u32::from_be_bytes(rest.try_into().ok()?))),
            _ => None,
        }
    }
}

const COMMIT: u8 = b'C';
const DROPPING: u8 = b'D';
const SERVICE: u8 = b'S';
const TABLE: u8 = b'T';
/// Names are printable ASCII, so 00 ends one and sorts below them.
const NAME_END: u8 = 0x00;

/// The key of a meta record, read back.
#[derive(Debug, PartialEq, Eq)]
pub enum MetaKey {
    Commit,
    Dropping(TableId),
    Service(ServiceKind, AccountName),
    /// Tables are looked up by the key itself.
    Table,
}

impl MetaKey {
    /// Reads the keys of every format. Programs of format 1 knew one service, and wrote no byte for it.
    pub fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        let (kind, rest) = bytes.split_first().ok_or(Unusable::Damaged)?;
        match *kind {
            COMMIT if rest.is_empty() => Ok(Self::Commit),
            DROPPING => TableId::from_bytes(rest).map(Self::Dropping).ok_or(Unusable::Damaged),
            SERVICE => read_service_key(rest),
            TABLE => Ok(Self::Table),
            COMMIT => Err(Unusable::Damaged),
            other => Err(Unusable::Newer(format!("the kind {:?}", char::from(other)))),
        }
    }
}

fn read_service_key(rest: &[u8]) -> Result<MetaKey, Unusable> {
    let account = |name: &[u8]| AccountName::parse(std::str::from_utf8(name).ok()?);
    if let Some(account) = account(rest) {
        return Ok(MetaKey::Service(ServiceKind::Table, account));
    }
    let (byte, name) = rest.split_first().ok_or(Unusable::Damaged)?;
    let account = account(name).ok_or(Unusable::Damaged)?;
    Ok(MetaKey::Service(read_service(&[*byte])?, account))
}

pub const COMMIT_KEY: &[u8] = &[COMMIT];

pub fn dropping_key(id: TableId) -> Vec<u8> {
    [&[DROPPING][..], &id.0].concat()
}

pub fn service_key(service: ServiceKind, account: &AccountName) -> Vec<u8> {
    [&[SERVICE, encoding::service::to_byte(service)][..], account.as_str().as_bytes()].concat()
}

/// Sorts tables by account and then by stored name (`store::encoding::table_name`).
pub fn table_key(account: &AccountName, stored_name: &str) -> Vec<u8> {
    [&[TABLE][..], account.as_str().as_bytes(), &[NAME_END], stored_name.as_bytes()].concat()
}

/// The account and the stored name in the key of a table's record.
pub fn read_table_key(key: &[u8]) -> Option<(AccountName, &str)> {
    let text = std::str::from_utf8(key.strip_prefix(&[TABLE])?).ok()?;
    let (account, stored_name) = text.split_once(char::from(NAME_END))?;
    Some((AccountName::parse(account)?, stored_name))
}

/// The first byte of every record of format 1, and of commit records in all formats. Other records are `Fields`.
const RECORD_FORMAT_1: u8 = 1;

/// A dropped table whose space is not given back yet. It has no fields of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppingRecord {
    /// Fields of later versions.
    pub unknown: Fields,
}

impl DroppingRecord {
    pub fn encode(&self) -> Vec<u8> {
        self.unknown.write()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        match bytes {
            [RECORD_FORMAT_1] => Ok(Self::default()),
            _ => Ok(Self { unknown: Fields::read(bytes)?.into_unknown()? }),
        }
    }
}

/// What a service keeps with an account: a document that it reads and replaces as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    pub document: Bytes,
    /// Fields of later versions.
    pub unknown: Fields,
}

const DOCUMENT_FIELD: u8 = 1;

impl ServiceRecord {
    pub fn encode(&self) -> Vec<u8> {
        self.unknown.clone().with(DOCUMENT_FIELD, self.document.clone()).write()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        if let Some(document) = bytes.strip_prefix(&[RECORD_FORMAT_1]) {
            return Ok(Self { document: Bytes::copy_from_slice(document), unknown: Fields::default() });
        }
        let mut fields = Fields::read(bytes)?;
        let document = fields.take(DOCUMENT_FIELD).ok_or(Unusable::Damaged)?;
        Ok(Self { document, unknown: fields.into_unknown()? })
    }
}

/// Written with every commit group: its number, and the latest timestamp so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRecord {
    pub counter: u64,
    pub last_stamp: DateTime,
}

impl CommitRecord {
    pub const NONE: Self = Self { counter: 0, last_stamp: DateTime::MIN };

    pub fn encode(self) -> Vec<u8> {
        [&[RECORD_FORMAT_1][..], &self.counter.to_le_bytes(), &self.last_stamp.ticks().to_le_bytes()].concat()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (counter, ticks) = bytes.strip_prefix(&[RECORD_FORMAT_1])?.split_first_chunk::<8>()?;
        let last_stamp = DateTime::from_ticks(i64::from_le_bytes(ticks.try_into().ok()?))?;
        Some(Self { counter: u64::from_le_bytes(*counter), last_stamp })
    }
}

/// A table: where its rows are, what it is called, and what the service keeps with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRecord {
    pub id: TableId,
    pub service: ServiceKind,
    /// In the case it was created with.
    pub name: StoredName,
    pub metadata: Option<Bytes>,
    /// Fields of later versions.
    pub unknown: Fields,
}

const ID_FIELD: u8 = 1;
const NAME_FIELD: u8 = 2;
const METADATA_FIELD: u8 = 3;
/// Missing for a table of the Table service. A program that knows of no other would show its rows as entities.
const SERVICE_FIELD: u8 = MUST_UNDERSTAND | 4;

impl TableRecord {
    pub fn new(id: TableId, service: ServiceKind, name: StoredName) -> Self {
        Self { id, service, name, metadata: None, unknown: Fields::default() }
    }

    /// The name in the key of the record.
    pub fn stored_name(&self) -> Cow<'_, str> {
        encoding::table_name::write(self.service, self.name.folded())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut fields = self.unknown.clone();
        fields = fields.with(ID_FIELD, Bytes::copy_from_slice(&self.id.0));
        fields = fields.with(NAME_FIELD, Bytes::copy_from_slice(self.name.as_str().as_bytes()));
        if let Some(metadata) = &self.metadata {
            fields = fields.with(METADATA_FIELD, metadata.clone());
        }
        if self.service != ServiceKind::Table {
            fields = fields.with(SERVICE_FIELD, vec![encoding::service::to_byte(self.service)].into());
        }
        fields.write()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        if bytes.first() == Some(&RECORD_FORMAT_1) {
            return Self::decode_format_1(bytes).ok_or(Unusable::Damaged);
        }
        let mut fields = Fields::read(bytes)?;
        let id = fields.take(ID_FIELD).and_then(|id| TableId::from_bytes(&id)).ok_or(Unusable::Damaged)?;
        let service =
            fields.take(SERVICE_FIELD).map_or(Ok(ServiceKind::Table), |byte| read_service(&byte))?;
        let name = fields.take(NAME_FIELD).and_then(|name| parse_name(service, &name));
        let name = name.ok_or(Unusable::Damaged)?;
        let metadata = fields.take(METADATA_FIELD);
        Ok(Self { id, service, name, metadata, unknown: fields.into_unknown()? })
    }

    /// Format 1: the id, a length and the name, then whether there is metadata, which takes the rest.
    fn decode_format_1(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.strip_prefix(&[RECORD_FORMAT_1])?.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let metadata = match rest {
            [0] => None,
            [1, metadata @ ..] => Some(Bytes::copy_from_slice(metadata)),
            _ => return None,
        };
        let name = parse_name(ServiceKind::Table, name)?;
        Some(Self { metadata, ..Self::new(TableId(*id), ServiceKind::Table, name) })
    }
}

fn parse_name(service: ServiceKind, bytes: &[u8]) -> Option<StoredName> {
    StoredName::parse(service, std::str::from_utf8(bytes).ok()?)
}

fn read_service(field: &[u8]) -> Result<ServiceKind, Unusable> {
    let [byte] = field else { return Err(Unusable::Damaged) };
    encoding::service::from_byte(*byte).ok_or_else(|| Unusable::Newer(format!("the service {byte:#04x}")))
}

/// Whether an entry is in the layout of an older format. Commit records have one layout in all formats.
pub fn is_outdated(key: &[u8], value: &[u8]) -> bool {
    key != COMMIT_KEY && value.first() == Some(&RECORD_FORMAT_1)
}

/// The entry as this version writes it.
pub fn in_newest_layout(key: &[u8], value: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Unusable> {
    Ok(match MetaKey::read(key)? {
        MetaKey::Commit => (key.to_vec(), value.to_vec()),
        MetaKey::Dropping(_) => (key.to_vec(), DroppingRecord::decode(value)?.encode()),
        MetaKey::Service(service, account) => {
            (service_key(service, &account), ServiceRecord::decode(value)?.encode())
        }
        MetaKey::Table => (key.to_vec(), TableRecord::decode(value)?.encode()),
    })
}

#[cfg(test)]
mod tests;
