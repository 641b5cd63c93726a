//! What a disk may contain after a power failure, computed from a journal.
//!
//! Data is certain if it was recorded before a sync of its file began and that sync ended. Otherwise each page of a
//! file may have its content of any moment since then, independently of other pages, and the file may have any length
//! that it had. Pages that were allocated and not written contain zeros or garbage. Names (files created, renamed,
//! removed) are certain after a sync of their directory; see `Names` for the rest.

mod names;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng as _, RngCore as _, SeedableRng as _};

use crate::journal::{Kind, Record};
use names::{Place, Tree};

/// `O_CREAT` and `O_TRUNC` of Linux on the architectures Partita is built for.
const CREATE: u32 = 0o100;
const TRUNCATE: u32 = 0o1000;
/// `FALLOC_FL_KEEP_SIZE`
const KEEP_SIZE: u32 = 1;

/// The contents of files without a name are discarded every this many records.
const SWEEP: u64 = 4096;

/// What happens to changes of names that are not certain yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Names {
    /// All changes up to some moment are kept, as on a journaling file system.
    Prefix,
    /// Any of the changes are kept, which is all that POSIX promises.
    Any,
}

/// What happens to data that is not certain yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Data {
    Lost,
    Kept,
    Mixed,
}

/// The rules of one power cut.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Laws {
    pub names: Names,
    pub data: Data,
    /// The unit that the disk writes at once: 4,096 or 512 bytes.
    pub page: usize,
    /// Unwritten pages contain garbage, not zeros.
    pub garbage: bool,
}

impl Laws {
    pub fn choose(random: &mut StdRng) -> Self {
        Self {
            names: if random.random_bool(0.5) { Names::Prefix } else { Names::Any },
            data: match random.random_range(0..10) {
                0..2 => Data::Lost,
                2 => Data::Kept,
                _ => Data::Mixed,
            },
            page: if random.random_bool(0.7) { 4096 } else { 512 },
            garbage: random.random_bool(0.3),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum DataChange<'a> {
    Write { offset: usize, data: &'a [u8] },
    Resize(usize),
}

#[derive(Debug, Default)]
struct Inode<'a> {
    directory: bool,
    durable: Vec<u8>,
    /// With the record's number.
    pending: Vec<(u64, DataChange<'a>)>,
}

#[derive(Clone, Debug)]
struct NameChange {
    at: u64,
    /// A sync of the directory covers it.
    durable: bool,
    /// The name gets the inode, or is removed. A rename is two entries that are kept or lost together.
    entries: Vec<(Place, Option<usize>)>,
}

/// The disk as of one point of a journal.
#[derive(Debug)]
pub struct Disk<'a> {
    inodes: Vec<Inode<'a>>,
    handles: HashMap<(u32, u64), usize>,
    /// As the running server sees them.
    names: Tree,
    durable_names: Tree,
    pending_names: VecDeque<NameChange>,
    syncs: HashMap<(u32, u64), VecDeque<u64>>,
    /// Records applied.
    clock: u64,
}

impl<'a> Disk<'a> {
    /// An empty data directory.
    pub fn new() -> Self {
        let root = Inode { directory: true, ..Inode::default() };
        Self {
            inodes: vec![root],
            handles: HashMap::new(),
            names: Tree::default(),
            durable_names: Tree::default(),
            pending_names: VecDeque::new(),
            syncs: HashMap::new(),
            clock: 0,
        }
    }

    /// A disk on which everything is certain.
    pub fn at_rest(directory: &Path) -> Result<Self, String> {
        let mut disk = Self::new();
        disk.take_up(directory, names::ROOT_INODE)?;
        disk.durable_names = disk.names.clone();
        Ok(disk)
    }

    fn take_up(&mut self, folder: &Path, directory: usize) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("can't read {}: {error}", folder.display());
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (kind, name) = (entry.file_type().map_err(failed)?, entry.file_name());
            if !kind.is_dir() && !kind.is_file() {
                continue;
            }
            let durable =
                if kind.is_dir() { Vec::new() } else { std::fs::read(entry.path()).map_err(failed)? };
            let inode = self.inodes.len();
            self.names.change(&[((directory, name.to_string_lossy().into_owned()), Some(inode))]);
            self.inodes.push(Inode { directory: kind.is_dir(), durable, ..Inode::default() });
            if kind.is_dir() {
                self.take_up(&entry.path(), inode)?;
            }
        }
        Ok(())
    }

    pub fn apply(&mut self, record: &Record<'a>) -> Result<(), String> {
        self.clock += 1;
        let key = (record.process, record.handle);
        match record.kind {
            Kind::Open => self.open(record)?,
            Kind::Write => {
                let offset = record.offset as usize;
                self.change_data(key, DataChange::Write { offset, data: record.data })?;
            }
            Kind::Truncate => self.change_data(key, DataChange::Resize(record.offset as usize))?,
            Kind::Allocate => {
                let (end, inode) = (record.offset as usize, self.handle(key)?);
                if record.flags & KEEP_SIZE == 0 && self.inodes[inode].length() < end {
                    self.change_data(key, DataChange::Resize(end))?;
                }
            }
            Kind::Rename => {
                // A name that is not known is the control socket, which is not a file.
                if let Some(inode) = self.names.find(record.path) {
                    self.change_names(&[(record.path, None), (record.target, Some(inode))])?;
                }
            }
            Kind::Unlink | Kind::Rmdir => {
                if self.names.find(record.path).is_some() {
                    self.change_names(&[(record.path, None)])?;
                }
            }
            Kind::Link => {
                let inode = self.names.find(record.path);
                let inode = inode.ok_or_else(|| format!("a link to {}, which is not there", record.path))?;
                self.change_names(&[(record.target, Some(inode))])?;
            }
            Kind::Mkdir => {
                let inode = self.inodes.len();
                self.inodes.push(Inode { directory: true, ..Inode::default() });
                self.change_names(&[(record.path, Some(inode))])?;
            }
            Kind::SyncBegin => self.syncs.entry(key).or_default().push_back(self.clock),
            Kind::SyncEnd => self.sync(key)?,
            Kind::SyncFailed => self.fail_sync(key)?,
            Kind::Sent | Kind::Answered => {}
        }
        if self.clock.is_multiple_of(SWEEP) {
            self.sweep();
        }
        Ok(())
    }

    fn open(&mut self, record: &Record<'_>) -> Result<(), String> {
        let inode = match self.names.find(record.path) {
            Some(inode) => inode,
            None if record.flags & CREATE != 0 => {
                let inode = self.inodes.len();
                self.inodes.push(Inode::default());
                self.change_names(&[(record.path, Some(inode))])?;
                inode
            }
            None => return Err(format!("{} was opened, but no record created it", record.path)),
        };
        let key = (record.process, record.handle);
        self.handles.insert(key, inode);
        if record.flags & TRUNCATE != 0 && self.inodes[inode].length() > 0 {
            self.change_data(key, DataChange::Resize(0))?;
        }
        Ok(())
    }

    fn handle(&self, key: (u32, u64)) -> Result<usize, String> {
        self.handles.get(&key).copied().ok_or_else(|| format!("{key:?} is used, but no record opened it"))
    }

    fn change_data(&mut self, key: (u32, u64), change: DataChange<'a>) -> Result<(), String> {
        let inode = self.handle(key)?;
        self.inodes[inode].pending.push((self.clock, change));
        Ok(())
    }

    fn change_names(&mut self, entries: &[(&str, Option<usize>)]) -> Result<(), String> {
        let places = entries.iter().map(|(path, inode)| {
            let place = self.names.place(path);
            place
                .map(|place| (place, *inode))
                .ok_or_else(|| format!("no record created the directory of {path}"))
        });
        let entries = places.collect::<Result<Vec<_>, _>>()?;
        self.names.change(&entries);
        self.pending_names.push_back(NameChange { at: self.clock, durable: false, entries });
        Ok(())
    }

    fn sync(&mut self, key: (u32, u64)) -> Result<(), String> {
        let inode = self.handle(key)?;
        // If several syncs run at once, the one that began first covers the least.
        let began = self.syncs.get_mut(&key).and_then(VecDeque::pop_front);
        let began = began.ok_or_else(|| format!("a sync of {key:?} ended that did not begin"))?;
        if !self.inodes[inode].directory {
            self.inodes[inode].make_durable(began);
            return Ok(());
        }
        for change in self.pending_names.iter_mut().filter(|change| change.at < began) {
            change.durable |= change.entries.iter().any(|((directory, _), _)| *directory == inode);
        }
        while self.pending_names.front().is_some_and(|change| change.durable) {
            let Some(change) = self.pending_names.pop_front() else { break };
            self.durable_names.change(&change.entries);
        }
        Ok(())
    }

    /// As on Linux: pages that could not be written count as written, and no later sync writes them again.
    fn fail_sync(&mut self, key: (u32, u64)) -> Result<(), String> {
        let inode = self.handle(key)?;
        if !self.inodes[inode].directory {
            let mut random = StdRng::seed_from_u64(self.clock);
            let laws = Laws { names: Names::Prefix, data: Data::Mixed, page: 4096, garbage: false };
            let length = self.inodes[inode].length();
            let mut content = self.inodes[inode].content(laws, &mut random);
            content.resize(length, 0);
            self.inodes[inode] = Inode { durable: content, ..Inode::default() };
        }
        Ok(())
    }

    fn sweep(&mut self) {
        let pending = self.pending_names.iter().flat_map(|change| &change.entries);
        let named = self.names.inodes().chain(self.durable_names.inodes());
        let named: BTreeSet<usize> = named.chain(pending.filter_map(|(_, inode)| *inode)).collect();
        for (number, inode) in self.inodes.iter_mut().enumerate() {
            if !named.contains(&number) {
                inode.durable = Vec::new();
                inode.pending = Vec::new();
            }
        }
    }

    /// Writes one of the states that a power cut here may leave to an empty directory.
    pub fn cut(&self, laws: Laws, random: &mut StdRng, into: &Path) -> Result<(), String> {
        // If a directory is lost, everything in it is lost too.
        for (path, inode) in self.cut_names(laws.names, laws.data, random).paths() {
            let (place, inode) = (into.join(path), &self.inodes[inode]);
            let written = if inode.directory {
                std::fs::create_dir(&place)
            } else {
                std::fs::write(&place, inode.content(laws, random))
            };
            written.map_err(|error| format!("can't write {}: {error}", place.display()))?;
        }
        Ok(())
    }

    /// Writes everything as the running server sees it to an empty directory.
    pub fn write(&self, into: &Path) -> Result<(), String> {
        let laws = Laws { names: Names::Prefix, data: Data::Kept, page: 4096, garbage: false };
        self.cut(laws, &mut StdRng::seed_from_u64(0), into)
    }

    fn cut_names(&self, laws: Names, data: Data, random: &mut StdRng) -> Tree {
        let pending = self.pending_names.len();
        let least = self.pending_names.iter().rposition(|change| change.durable).map_or(0, |last| last + 1);
        let prefix = match data {
            Data::Lost => least,
            Data::Kept => pending,
            Data::Mixed => random.random_range(least..=pending),
        };
        let mut names = self.durable_names.clone();
        for (index, change) in self.pending_names.iter().enumerate() {
            let kept = match (laws, data) {
                (Names::Prefix, _) => index < prefix,
                (Names::Any, Data::Lost) => change.durable,
                (Names::Any, Data::Kept) => true,
                (Names::Any, Data::Mixed) => change.durable || random.random_bool(0.5),
            };
            if kept {
                names.change(&change.entries);
            }
        }
        names
    }

    /// The present path of an open file, if it still has a name.
    pub fn path_of(&self, process: u32, handle: u64) -> Option<String> {
        let inode = *self.handles.get(&(process, handle))?;
        self.names.paths().into_iter().find(|(_, named)| *named == inode).map(|(path, _)| path)
    }

    /// Every file as the running server sees it.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let laws = Laws { names: Names::Prefix, data: Data::Kept, page: 4096, garbage: false };
        let mut random = StdRng::seed_from_u64(0);
        let files = self.names.paths().into_iter().filter(|(_, inode)| !self.inodes[*inode].directory);
        files.map(|(path, inode)| (path, self.inodes[inode].content(laws, &mut random))).collect()
    }
}

impl Inode<'_> {
    /// As the running server sees it.
    fn length(&self) -> usize {
        self.lengths().last().copied().unwrap_or(0)
    }

    /// Every length since the last sync.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![self.durable.len()];
        let mut length = self.durable.len();
        for (_, change) in &self.pending {
            length = match change {
                DataChange::Write { offset, data } => length.max(offset + data.len()),
                DataChange::Resize(to) => *to,
            };
            lengths.push(length);
        }
        lengths
    }

    fn make_durable(&mut self, before: u64) {
        let count = self.pending.iter().take_while(|(at, _)| *at < before).count();
        for (_, change) in self.pending.drain(..count) {
            match change {
                DataChange::Write { offset, data } => {
                    if self.durable.len() < offset + data.len() {
                        self.durable.resize(offset + data.len(), 0);
                    }
                    self.durable[offset..offset + data.len()].copy_from_slice(data);
                }
                DataChange::Resize(length) => self.durable.resize(length, 0),
            }
        }
    }

    fn content(&self, laws: Laws, random: &mut StdRng) -> Vec<u8> {
        if self.pending.is_empty() {
            return self.durable.clone();
        }
        let lengths = self.lengths();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut content = self.durable.clone();
        content.resize(longest, 0);
        if laws.garbage {
            random.fill_bytes(&mut content[self.durable.len()..]);
        }
        for (page, changes) in self.changes_by_page(laws.page, longest) {
            let versions = match (laws.data, random.random_range(0..5)) {
                (Data::Lost, _) | (Data::Mixed, 0..2) => 0,
                (Data::Kept, _) | (Data::Mixed, 2..4) => changes.len(),
                (Data::Mixed, _) => random.random_range(0..=changes.len()),
            };
            let range = page * laws.page..((page + 1) * laws.page).min(longest);
            if versions > 0 && range.end > self.durable.len() {
                // A page is always written as a whole, and a new one begins with zeros.
                content[range.start.max(self.durable.len())..range.end].fill(0);
            }
            for index in &changes[..versions] {
                change_page(&mut content, range.clone(), self.pending[*index].1);
            }
        }
        let length = match (laws.data, random.random_range(0..3)) {
            (Data::Lost, _) | (Data::Mixed, 0) => lengths[0],
            (Data::Kept, _) | (Data::Mixed, 1) => lengths[lengths.len() - 1],
            (Data::Mixed, _) => lengths[random.random_range(0..lengths.len())],
        };
        content.truncate(length);
        content
    }

    /// Which of the pending changes touch each page, in order.
    fn changes_by_page(&self, page: usize, longest: usize) -> BTreeMap<usize, Vec<usize>> {
        let mut pages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, (_, change)) in self.pending.iter().enumerate() {
            let touched = match change {
                DataChange::Write { data: [], .. } => 0..0,
                DataChange::Write { offset, data } => offset / page..(offset + data.len()).div_ceil(page),
                DataChange::Resize(length) => length / page..longest.div_ceil(page),
            };
            for number in touched {
                pages.entry(number).or_default().push(index);
            }
        }
        pages
    }
}

fn change_page(content: &mut [u8], page: std::ops::Range<usize>, change: DataChange<'_>) {
    match change {
        DataChange::Write { offset, data } => {
            let (start, end) = (offset.max(page.start), (offset + data.len()).min(page.end));
            if start < end {
                content[start..end].copy_from_slice(&data[start - offset..end - offset]);
            }
        }
        DataChange::Resize(length) => content[length.max(page.start).min(page.end)..page.end].fill(0),
    }
}

#[cfg(test)]
mod tests;
