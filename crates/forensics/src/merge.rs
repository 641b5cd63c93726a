//! Rows of many files as one table: of each key its newest version, and that only if it is not deleted.
//!
//! A file is opened when the merge gets to its first key and closed behind its last, so that memory holds a block
//! and an index of each level, however large the store.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::path::PathBuf;

use crate::entry::{Tombstone, Tombstones};
use crate::error::GapError;
use crate::table_file::{Rows, Step, TableFile};

/// A table file that waits until the merge gets to it.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub path: PathBuf,
    /// The first and the last key in it, as far as anybody knows.
    pub first: Option<Vec<u8>>,
    pub last: Option<Vec<u8>>,
}

/// A part of a file that could not be read.
#[derive(Debug)]
pub struct Gap {
    pub path: PathBuf,
    pub cause: GapError,
    pub after: Edge,
    pub before: Edge,
}

/// Where a gap begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// This row is there.
    Found(Vec<u8>),
    /// This one is the file's first or last, and lost itself.
    Lost(Vec<u8>),
    Unknown,
}

impl Edge {
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

/// Newest versions of keys that no table file has yet.
pub type Memory = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

#[derive(Debug)]
enum Origin {
    File { rows: Box<Rows>, waiting: Waiting },
    Memory(btree_map::IntoIter<Vec<u8>, (u64, Option<Vec<u8>>)>, Vec<u8>),
}

/// A file in the merge, and where it stands.
#[derive(Debug)]
struct Source {
    key: Vec<u8>,
    sequence: u64,
    is_deletion: bool,
    origin: Origin,
}

/// All files of a column family and what the logs have beside them, as one sequence of rows.
#[derive(Debug)]
pub struct Merge {
    /// By their first key, the last one first.
    waiting: Vec<Waiting>,
    sources: BinaryHeap<Reverse<Source>>,
    tombstones: Tombstones,
    current: Option<Source>,
    /// The key judged last; what else comes under it is older.
    judged: Option<Vec<u8>>,
    gaps: Vec<Gap>,
    bytes_read: u64,
    hidden: u64,
}

impl Merge {
    pub fn new(mut waiting: Vec<Waiting>, memory: Memory, tombstones: Vec<Tombstone>) -> Self {
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
        merge.go_on(Source { key: Vec::new(), sequence: 0, is_deletion: true, origin });
        merge
    }

    /// Whether there is another row, to which this goes.
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

    /// The row this stands at; after an `advance` that found one.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let source = self.current.as_ref()?;
        let value = match &source.origin {
            Origin::File { rows, .. } => rows.value(),
            Origin::Memory(_, value) => value,
        };
        Some((&source.key, value))
    }

    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }

    /// Keys whose newest version is under a tombstone.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    fn open_those_reached(&mut self) {
        while let Some(next) = self.waiting.last() {
            // A file that begins nobody knows where comes first.
            let first = next.first.as_deref().unwrap_or_default();
            if self.sources.peek().is_some_and(|Reverse(source)| &source.key[..] < first) {
                return;
            }
            let Some(waiting) = self.waiting.pop() else { return };
            match TableFile::open(&waiting.path) {
                Ok(table) => {
                    let origin = Origin::File { rows: Box::new(table.rows()), waiting };
                    self.go_on(Source { key: Vec::new(), sequence: u64::MAX, is_deletion: true, origin });
                }
                Err(error) => {
                    let cause = error.into();
                    let (after, before) = (Edge::of_file(waiting.first), Edge::of_file(waiting.last));
                    self.gaps.push(Gap { path: waiting.path, cause, after, before });
                }
            }
        }
    }

    /// To the source's next row, past whatever can't be read; a source at its end is let go of.
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
                // A new source has no key yet: what lies before its first readable row begins where the file does.
                let is_new = source.sequence == u64::MAX;
                let open_gap = |gap: &mut Option<Gap>, cause: GapError| {
                    let after = if is_new {
                        Edge::of_file(waiting.first.clone())
                    } else {
                        Edge::Found(source.key.clone())
                    };
                    let path = waiting.path.clone();
                    gap.get_or_insert(Gap { path, cause, after, before: Edge::Unknown });
                };
                let reached = loop {
                    let step = rows.advance();
                    self.bytes_read += rows.take_bytes_read();
                    match step {
                        Step::Unreadable { offset, source } => {
                            open_gap(&mut gap, GapError::Block { offset, source });
                        }
                        Step::End => break None,
                        Step::Row => {
                            let Some(entry) = rows.entry() else { continue };
                            let place = (entry.key, Reverse(entry.sequence));
                            if !is_new && place <= (&source.key, Reverse(source.sequence)) {
                                open_gap(&mut gap, GapError::Order);
                                continue;
                            }
                            break Some((entry.key.to_vec(), entry.sequence, entry.is_deletion));
                        }
                    }
                };
                if let Some(mut gap) = gap {
                    gap.before = match &reached {
                        Some((key, ..)) => Edge::Found(key.clone()),
                        None => Edge::of_file(waiting.last.clone()),
                    };
                    self.gaps.push(gap);
                }
                if let Some((key, sequence, is_deletion)) = reached {
                    (source.key, source.sequence, source.is_deletion) = (key, sequence, is_deletion);
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
