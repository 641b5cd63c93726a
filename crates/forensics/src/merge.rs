//! Merges the rows of many files: of each key the newest version, unless it is deleted.
//!
//! A file is opened when the merge reaches its first key, and closed after its last. So the memory needed is one
//! block and one index for each level, however large the store is.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::path::PathBuf;

use crate::entry::{Tombstone, Tombstones};
use crate::error::GapError;
use crate::table_file::{RowStep, Rows, TableFile};

/// A table file for the merge, not opened yet.
#[derive(Clone, Debug)]
pub struct MergeFile {
    pub path: PathBuf,
    /// Its first and last key, if they are known.
    pub first: Option<Vec<u8>>,
    pub last: Option<Vec<u8>>,
}

/// A part of a file that could not be read.
#[derive(Debug)]
pub struct Gap {
    pub path: PathBuf,
    pub cause: GapError,
    pub after: GapEdge,
    pub before: GapEdge,
}

/// Where a gap begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapEdge {
    /// The row next to the gap. It was read.
    Found(Vec<u8>),
    /// The first or last row of the file. It is lost.
    Lost(Vec<u8>),
    Unknown,
}

impl GapEdge {
    pub fn of_file(key: Option<Vec<u8>>) -> Self {
        key.map_or(Self::Unknown, Self::Lost)
    }

    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Found(key) | Self::Lost(key) => Some(key),
            Self::Unknown => None,
        }
    }
}

/// The newest versions of keys that are only in the logs: their sequence numbers and values.
pub type LogRows = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

#[derive(Debug)]
enum Origin {
    File { rows: Box<Rows>, waiting: MergeFile },
    Memory(btree_map::IntoIter<Vec<u8>, (u64, Option<Vec<u8>>)>, Vec<u8>),
}

/// An open file of the merge, and its current row.
#[derive(Debug)]
struct Source {
    key: Vec<u8>,
    sequence: u64,
    is_deletion: bool,
    is_reference: bool,
    origin: Origin,
}

/// The rows of a column family, from all its table files and the logs, in key order.
#[derive(Debug)]
pub struct MergedRows {
    /// By their first key, in descending order.
    waiting: Vec<MergeFile>,
    sources: BinaryHeap<Reverse<Source>>,
    tombstones: Tombstones,
    current: Option<Source>,
    /// The last key seen. Further versions of it are older.
    judged: Option<Vec<u8>>,
    gaps: Vec<Gap>,
    bytes_read: u64,
    hidden: u64,
}

impl MergedRows {
    pub fn new(mut waiting: Vec<MergeFile>, memory: LogRows, tombstones: Vec<Tombstone>) -> Self {
        waiting.sort_by(|a, b| b.first.cmp(&a.first));
        let mut merge = Self {
            waiting,
            sources: BinaryHeap::new(),
            tombstones: Tombstones::new(tombstones),
            current: None,
            judged: None,
            gaps: Vec::new(),
            bytes_read: 0,
            hidden: 0,
        };
        let origin = Origin::Memory(memory.into_iter(), Vec::new());
        merge.go_on(Source { key: Vec::new(), sequence: 0, is_deletion: true, is_reference: false, origin });
        merge
    }

    /// Moves to the next row; false if there is none.
    pub fn advance(&mut self) -> bool {
        loop {
            if let Some(source) = self.current.take() {
                self.go_on(source);
            }
            self.open_those_reached();
            let Some(Reverse(source)) = self.sources.pop() else { return false };
            let is_newest = self.judged.as_ref() != Some(&source.key);
            let shown =
                is_newest && !source.is_deletion && !self.tombstones.hide(&source.key, source.sequence);
            if is_newest {
                self.judged = Some(source.key.clone());
                self.hidden += u64::from(!shown && !source.is_deletion);
            }
            self.current = Some(source);
            if shown {
                return true;
            }
        }
    }

    /// The current row, after `advance` returned true.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let source = self.current.as_ref()?;
        let value = match &source.origin {
            Origin::File { rows, .. } => rows.value(),
            Origin::Memory(_, value) => value,
        };
        Some((&source.key, value))
    }

    /// Whether the value of the current row is a reference to a blob file.
    pub fn is_reference(&self) -> bool {
        self.current.as_ref().is_some_and(|source| source.is_reference)
    }

    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }

    /// The number of keys whose newest version is hidden by a tombstone.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    fn open_those_reached(&mut self) {
        while let Some(next) = self.waiting.last() {
            // A file whose first key is not known is opened first.
            let first = next.first.as_deref().unwrap_or_default();
            if self.sources.peek().is_some_and(|Reverse(source)| &source.key[..] < first) {
                return;
            }
            let Some(waiting) = self.waiting.pop() else { return };
            match TableFile::open(&waiting.path) {
                Ok(table) => {
                    let origin = Origin::File { rows: Box::new(table.rows()), waiting };
                    let (key, sequence) = (Vec::new(), u64::MAX);
                    self.go_on(Source { key, sequence, is_deletion: true, is_reference: false, origin });
                }
                Err(error) => {
                    let cause = error.into();
                    let (after, before) = (GapEdge::of_file(waiting.first), GapEdge::of_file(waiting.last));
                    self.gaps.push(Gap { path: waiting.path, cause, after, before });
                }
            }
        }
    }

    /// Moves a source to its next readable row. A source at its end is dropped.
    fn go_on(&mut self, mut source: Source) {
        match &mut source.origin {
            Origin::Memory(rows, held) => {
                let Some((key, (sequence, value))) = rows.next() else { return };
                (source.key, source.sequence, source.is_deletion) = (key, sequence, value.is_none());
                *held = value.unwrap_or_default();
                self.sources.push(Reverse(source));
            }
            Origin::File { rows, waiting } => {
                let mut gap: Option<Gap> = None;
                // A new source has no key yet: a gap before its first readable row begins at the start of the file.
                let is_new = source.sequence == u64::MAX;
                let open_gap = |gap: &mut Option<Gap>, cause: GapError| {
                    let after = if is_new {
                        GapEdge::of_file(waiting.first.clone())
                    } else {
                        GapEdge::Found(source.key.clone())
                    };
                    let path = waiting.path.clone();
                    gap.get_or_insert(Gap { path, cause, after, before: GapEdge::Unknown });
                };
                let reached = loop {
                    let step = rows.advance();
                    self.bytes_read += rows.take_bytes_read();
                    match step {
                        RowStep::Unreadable { offset, source } => {
                            open_gap(&mut gap, GapError::Block { offset, source });
                        }
                        RowStep::End => break None,
                        RowStep::Row => {
                            let Some(entry) = rows.entry() else { continue };
                            let place = (entry.key, Reverse(entry.sequence));
                            if !is_new && place <= (&source.key, Reverse(source.sequence)) {
                                open_gap(&mut gap, GapError::Order);
                                continue;
                            }
                            let kind = (entry.is_deletion, entry.is_reference);
                            break Some((entry.key.to_vec(), entry.sequence, kind));
                        }
                    }
                };
                if let Some(mut gap) = gap {
                    gap.before = match &reached {
                        Some((key, ..)) => GapEdge::Found(key.clone()),
                        None => GapEdge::of_file(waiting.last.clone()),
                    };
                    self.gaps.push(gap);
                }
                if let Some((key, sequence, kind)) = reached {
                    (source.key, source.sequence) = (key, sequence);
                    (source.is_deletion, source.is_reference) = kind;
                    self.sources.push(Reverse(source));
                }
            }
        }
    }
}

impl Source {
    fn place(&self) -> (&[u8], Reverse<u64>) {
        (&self.key, Reverse(self.sequence))
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Source {}
