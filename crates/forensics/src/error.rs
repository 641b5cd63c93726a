//! Why a file of the database, or a part of it, can't be read.

use std::fmt;
use std::io;

use thiserror::Error;

/// Why a block of a table file can't be read.
#[derive(Debug, Error)]
pub enum BlockError {
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error("it would lie outside of the file")]
    Outside,
    #[error("its checksum does not match")]
    Checksum,
    #[error("it does not unpack")]
    Packed,
    #[error("it is packed in a way this version does not know ({kind})")]
    UnknownPacking { kind: u8 },
    #[error("it is not in a form this version reads")]
    Form,
    #[error("an entry can't be read")]
    Entry,
}

/// Why nothing of a table file can be read.
#[derive(Debug, Error)]
pub enum TableFileError {
    #[error("the file is missing")]
    Missing,
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error("it is too short to be a table file")]
    Short,
    #[error("its end is not that of a table file: it was cut short or overwritten")]
    Footer,
    #[error("table files of format {format} with checksums of kind {checksum} are not known here")]
    UnknownFormat { format: u32, checksum: u8 },
    #[error("its footer does not match its checksum")]
    FooterChecksum,
    #[error("its list of parts would lie outside of it")]
    PartsOutside,
    #[error("its {part}: {source}")]
    Block { part: FilePart, source: BlockError },
    #[error("its {0} can't be read")]
    Part(FilePart),
}

/// The parts without which a table file can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePart {
    Parts,
    Tombstones,
    Properties,
    Index,
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parts => "list of parts",
            Self::Tombstones => "tombstones",
            Self::Properties => "properties",
            Self::Index => "index",
        })
    }
}

/// A part of a table file that can't be read but has no rows: a filter.
#[derive(Debug, Error)]
#[error("the part {name} at {offset}: {source}")]
pub struct Flaw {
    pub name: String,
    pub offset: u64,
    pub source: BlockError,
}

/// Why rows of a table file are missing.
#[derive(Debug, Error)]
pub enum GapError {
    #[error(transparent)]
    File(#[from] TableFileError),
    #[error("the block at {offset}: {source}")]
    Block { offset: u64, source: BlockError },
    #[error("a row is not in its place")]
    Order,
}

/// Why a value of a blob file can't be read.
#[derive(Debug, Error)]
pub enum BlobError {
    #[error("the file is missing")]
    Missing,
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error("it would lie outside of the file")]
    Outside,
    #[error("it would have {bytes} bytes")]
    TooLong { bytes: u64 },
    #[error("its checksum does not match")]
    Checksum,
    #[error("it belongs to another key")]
    OtherKey,
    #[error("the reference to it can't be read")]
    Reference,
}

/// Why the MANIFEST can't be read, or not all of it.
#[derive(Debug, Error)]
pub enum ManifestError {
    #[error("CURRENT: {0}")]
    Current(#[source] io::Error),
    #[error("CURRENT does not name a MANIFEST")]
    Unnamed,
    #[error("{name}: {source}")]
    Disk { name: String, source: io::Error },
    #[error("{name}: an edit in it can't be read")]
    Edit { name: String },
    #[error("{name}: unreadable at byte {at}")]
    Damaged { name: String, at: u64 },
}
