//! Reads a table file: its properties, its range tombstones, and its rows, also behind blocks that can't be read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::block::{self, Block, BlockFile, Handle, TRAILER};
use crate::entry::{Entry, Tombstone};
use crate::error::{BlockError, FilePart, Flaw, TableFileError};

const FOOTER: usize = 53;
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const EXTENDED_MAGIC: &[u8] = &[0x3e, 0x00, 0x7a, 0x00];
/// The only format that `engine-embedded` has written.
const FORMAT: u32 = 7;
const XXH3: u8 = 4;

const INDEX: &[u8] = b"rocksdb.index";
const PROPERTIES: &[u8] = b"rocksdb.properties";
const TOMBSTONES: &[u8] = b"rocksdb.range_del";

/// A table file that can be read, except perhaps for some blocks.
#[derive(Debug)]
pub struct TableFile {
    file: BlockFile,
    pub family: String,
    pub family_id: u32,
    pub tombstones: Vec<Tombstone>,
    /// Damage that loses no rows.
    pub flaws: Vec<Flaw>,
    blocks: Vec<Handle>,
}

impl TableFile {
    pub fn open(path: &Path) -> Result<Self, TableFileError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TableFileError::Missing,
            _ => error.into(),
        })?;
        let size = file.metadata()?.len();
        let (context, metaindex) = footer(&file, size)?;
        let mut table = Self {
            file: BlockFile { file, size, context },
            family: String::new(),
            family_id: 0,
            tombstones: Vec::new(),
            flaws: Vec::new(),
            blocks: Vec::new(),
        };
        table.read_parts(metaindex)?;
        Ok(table)
    }

    fn read_parts(&mut self, metaindex: Handle) -> Result<(), TableFileError> {
        let mut parts = self.part(FilePart::Parts, metaindex)?;
        let (mut index, mut properties) = (None, None);
        while parts.advance().ok_or(TableFileError::Part(FilePart::Parts))? {
            let handle = Handle::decode(&mut parts.value()).ok_or(TableFileError::Part(FilePart::Parts))?;
            match parts.key() {
                INDEX => index = Some(handle),
                PROPERTIES => properties = Some(handle),
                TOMBSTONES => self.read_tombstones(handle)?,
                // Filters. They only save reads, so the file can be read without them.
                other => {
                    if let Err(source) = handle.read(&self.file) {
                        let name = String::from_utf8_lossy(other).into_owned();
                        self.flaws.push(Flaw { name, offset: handle.offset, source });
                    }
                }
            }
        }
        let properties = properties.ok_or(TableFileError::Part(FilePart::Properties))?;
        let short = self.read_properties(properties)?;
        let index = self.part(FilePart::Index, index.ok_or(TableFileError::Part(FilePart::Index))?)?;
        let index = index.index(short).ok_or(TableFileError::Part(FilePart::Index))?;
        self.blocks = index.into_iter().map(|(_, handle)| handle).collect();
        Ok(())
    }

    fn read_tombstones(&mut self, handle: Handle) -> Result<(), TableFileError> {
        let unreadable = || TableFileError::Part(FilePart::Tombstones);
        let mut block = self.part(FilePart::Tombstones, handle)?;
        while block.advance().ok_or_else(unreadable)? {
            let start = Entry::read(block.key()).ok_or_else(unreadable)?;
            let (start, sequence) = (start.key.to_vec(), start.sequence);
            self.tombstones.push(Tombstone { start, end: block.value().to_vec(), sequence });
        }
        Ok(())
    }

    /// Returns whether the index has short values.
    fn read_properties(&mut self, handle: Handle) -> Result<bool, TableFileError> {
        let unreadable = || TableFileError::Part(FilePart::Properties);
        let mut block = self.part(FilePart::Properties, handle)?;
        let mut short = false;
        while block.advance().ok_or_else(unreadable)? {
            let number = || block::take_varint(&mut block.value());
            match block.key() {
                b"rocksdb.column.family.name" => {
                    self.family = String::from_utf8_lossy(block.value()).into_owned();
                }
                b"rocksdb.column.family.id" => {
                    self.family_id = number().and_then(|id| u32::try_from(id).ok()).ok_or_else(unreadable)?;
                }
                b"rocksdb.index.value.is.delta.encoded" => short = number().ok_or_else(unreadable)? != 0,
                _ => {}
            }
        }
        Ok(short)
    }

    fn part(&self, part: FilePart, handle: Handle) -> Result<Block, TableFileError> {
        self.block(handle).map_err(|source| TableFileError::Block { part, source })
    }

    fn block(&self, handle: Handle) -> Result<Block, BlockError> {
        Block::new(handle.read(&self.file)?).ok_or(BlockError::Form)
    }

    pub fn size(&self) -> u64 {
        self.file.size
    }

    pub fn rows(self) -> Rows {
        Rows { table: self, next: 0, block: None, bytes_read: 0 }
    }
}

/// The number that is part of the checksums of this file, and the place of its list of parts.
fn footer(file: &File, size: u64) -> Result<(u32, Handle), TableFileError> {
    let mut bytes = [0; FOOTER];
    let at = size.checked_sub(FOOTER as u64).ok_or(TableFileError::Short)?;
    file.read_exact_at(&mut bytes, at)?;
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let magic = u64::from(number(45)) | u64::from(number(49)) << 32;
    if magic != MAGIC || bytes[1..5] != *EXTENDED_MAGIC {
        return Err(TableFileError::Footer);
    }
    let (format, checksum) = (number(41), bytes[0]);
    if format != FORMAT || checksum != XXH3 {
        return Err(TableFileError::UnknownFormat { format, checksum });
    }
    let (stored, context, metaindex) = (number(5), number(9), u64::from(number(13)));
    let mut blank = bytes;
    blank[5..9].fill(0);
    if block::checksum(&blank).wrapping_add(block::modifier(context, at)) != stored {
        return Err(TableFileError::FooterChecksum);
    }
    let offset = at.checked_sub(TRAILER + metaindex).ok_or(TableFileError::PartsOutside)?;
    Ok((context, Handle { offset, size: metaindex }))
}

/// The result of moving to the next row.
#[derive(Debug)]
pub enum RowStep {
    Row,
    /// A block that can't be read. There may be more rows behind it.
    Unreadable {
        offset: u64,
        source: BlockError,
    },
    End,
}

/// The rows of a table file, with older versions and deletions.
#[derive(Debug)]
pub struct Rows {
    table: TableFile,
    next: usize,
    block: Option<Block>,
    bytes_read: u64,
}

impl Rows {
    pub fn advance(&mut self) -> RowStep {
        loop {
            if let Some(block) = &mut self.block {
                match block.advance() {
                    Some(true) if Entry::read(block.key()).is_some() => return RowStep::Row,
                    Some(false) => self.block = None,
                    Some(true) | None => {
                        self.block = None;
                        let offset = self.table.blocks[self.next - 1].offset;
                        return RowStep::Unreadable { offset, source: BlockError::Entry };
                    }
                }
                continue;
            }
            let Some(handle) = self.table.blocks.get(self.next).copied() else { return RowStep::End };
            self.next += 1;
            self.bytes_read += handle.size + TRAILER;
            match self.table.block(handle) {
                Ok(block) => self.block = Some(block),
                Err(source) => return RowStep::Unreadable { offset: handle.offset, source },
            }
        }
    }

    /// The current entry, after `RowStep::Row`.
    pub fn entry(&self) -> Option<Entry<'_>> {
        Entry::read(self.block.as_ref()?.key())
    }

    pub fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], Block::value)
    }

    /// Bytes read from the file since the last call.
    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }
}
