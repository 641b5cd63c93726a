//! Files with large chunks: one for each object, beside the database.
//!
//! RocksDB writes every byte of content twice, first to its log or its buffers and then to a blob file, and copies it at each
//! step. A large chunk is written once, into the file of its object. The database still has the object's name: an object
//! that it does not name is removed, whatever files are left of it.
//!
//! A file that is being written ends in `.new`. `seal` syncs it and takes that end away, so a file with its final name is
//! whole, also after a power cut. What ends in `.new` when a server starts was never durable.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use store::{ChunkPart, Fault, ObjectId};
use tracing::warn;

use crate::content_slot::{self, SlotError};
use crate::layout;
use crate::read_buffers::ReadBuffers;

/// Chunks below this are in the database: a file and its syncs would cost more than a second writing.
pub const CHUNK_BYTES_MIN: usize = 512 * 1024;
/// Chunks from this number on are in the database. File systems have files of up to 16 TiB.
const CHUNKS_MAX: u32 = 8 * 1024 * 1024;
/// Files that are written at a time, each with a handle. Further objects are in the database.
const WRITING_MAX: usize = 256;
/// Chunks of one file between two syncs. Without them a sync of the log would wait behind all of a large upload.
const CHUNKS_PER_SYNC: u32 = 32;

/// The end of the name of a file that is not sealed.
const DRAFT: &str = "new";

#[derive(Debug)]
pub struct ContentFiles {
    directory: PathBuf,
    /// For syncs of names.
    names: File,
    /// Objects with chunks that are not durable. Not locked while anybody waits for the disk.
    unsynced: Mutex<HashMap<ObjectId, Unsynced>>,
    /// Held while a file is made or gets its final name, and while an object is taken out of `unsynced`: a removal comes before
    /// such a step or after it, also if nobody waits any more for whoever takes it.
    steps: Mutex<()>,
    /// One checkpoint at a time.
    checkpoints: Mutex<()>,
    /// While a checkpoint is taken, removed objects whose files it may need. Read by whoever deletes files, until it is done: a
    /// checkpoint waits for that, because a file must not go between being listed and being linked.
    kept_back: RwLock<Option<Mutex<Vec<ObjectId>>>>,
    /// Of all sealed files, once `survey` has seen those of earlier runs.
    bytes: AtomicU64,
    /// Objects that were sealed before `survey` has ended.
    counted: Mutex<Option<HashSet<ObjectId>>>,
    buffers: ReadBuffers,
}

/// How far an object is that is not durable.
#[derive(Debug)]
enum Unsynced {
    /// Its file is written.
    Draft(Arc<Draft>),
    /// Its file is synced and has its final name, which is perhaps not durable.
    Renamed,
}

/// A file that is written.
#[derive(Debug)]
struct Draft {
    file: File,
    /// Read by whoever writes a chunk, until it is written: a file does not change once it has its final name.
    stage: RwLock<Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Sealed,
    /// A sync has failed, so nobody knows what is on the disk. A second one could succeed all the same.
    Lost,
}

impl Draft {
    fn new(file: File) -> Self {
        Self { file, stage: RwLock::new(Stage::Open) }
    }

    /// Not a second time after it has failed.
    fn sync(&self, stage: &mut Stage) -> io::Result<()> {
        if *stage == Stage::Lost {
            return Err(io::Error::other("an earlier sync of it has failed"));
        }
        self.file.sync_data().inspect_err(|_| *stage = Stage::Lost)
    }
}

/// Whether a chunk went into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    InFile,
    /// It belongs into the database.
    Elsewhere,
}

impl ContentFiles {
    /// Makes the directory if it is missing.
    pub fn open(data: &Path) -> io::Result<Self> {
        let directory = data.join(layout::CONTENT_DIRECTORY);
        store::private_directory::create(&directory)?;
        Ok(Self {
            names: File::open(&directory)?,
            directory,
            unsynced: Mutex::default(),
            steps: Mutex::default(),
            checkpoints: Mutex::default(),
            kept_back: RwLock::default(),
            bytes: AtomicU64::new(0),
            counted: Mutex::new(Some(HashSet::new())),
            buffers: ReadBuffers::default(),
        })
    }

    /// Bytes of all sealed files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes a chunk, if it is one for a file. It can be read when this returns, and is durable after `seal`. `name` makes the
    /// object known to the database, before its file is there.
    pub fn put(
        &self,
        object: ObjectId,
        number: u32,
        chunk: &[u8],
        name: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<Placed, PutError> {
        if chunk.len() < CHUNK_BYTES_MIN || number >= CHUNKS_MAX {
            return Ok(Placed::Elsewhere);
        }
        let Some(draft) = self.file_to_write(object, name)? else {
            return Ok(self.put_again(object, number, chunk));
        };
        {
            let stage = draft.stage.read();
            if *stage == Stage::Sealed {
                return Ok(self.put_again(object, number, chunk));
            }
            let failed = |error: io::Error| PutError::of(&self.draft(object), error);
            content_slot::write(&draft.file, object, number, chunk).map_err(failed)?;
        }
        if (number + 1).is_multiple_of(CHUNKS_PER_SYNC) {
            // Not a matter of room: after a failed sync nobody knows which of the chunks before are there.
            let lost = |error| fault("could not sync a file of content", &self.draft(object), error);
            draft.sync(&mut draft.stage.write()).map_err(lost).map_err(PutError::Failed)?;
        }
        Ok(Placed::InFile)
    }

    /// The file of an object that is being written, or a new one. `None` if it is sealed, or if there are too many.
    fn file_to_write(
        &self,
        object: ObjectId,
        name: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<Option<Arc<Draft>>, PutError> {
        if let Some(draft) = self.draft_of(object) {
            return Ok(Some(draft));
        }
        name().map_err(PutError::Failed)?;
        // Two chunks of one object do not both make its file.
        let _step = self.steps.lock();
        if let Some(draft) = self.draft_of(object) {
            return Ok(Some(draft));
        }
        let failed = |error| PutError::of(&self.draft(object), error);
        if self.drafts() >= WRITING_MAX || self.sealed(object).try_exists().map_err(failed)? {
            return Ok(None);
        }
        let made =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.draft(object));
        let draft = match made {
            // Connections have taken all handles. The database has its own already.
            Err(error) if is_out_of_handles(&error) => return Ok(None),
            made => Arc::new(Draft::new(made.map_err(failed)?)),
        };
        self.unsynced.lock().insert(object, Unsynced::Draft(draft.clone()));
        Ok(Some(draft))
    }

    /// A chunk that a sealed file has is not written again, into the database, where it would stay as long as its object.
    fn put_again(&self, object: ObjectId, number: u32, chunk: &[u8]) -> Placed {
        // What can't be read there is as good as missing.
        let file = File::open(self.sealed(object)).ok();
        let found = file
            .and_then(|file| content_slot::read(&file, object, number, &self.buffers, true).ok().flatten());
        if found.is_none_or(|found| found != chunk) {
            return Placed::Elsewhere;
        }
        // An earlier process may have ended before its name was durable.
        self.unsynced.lock().entry(object).or_insert(Unsynced::Renamed);
        Placed::InFile
    }

    fn draft_of(&self, object: ObjectId) -> Option<Arc<Draft>> {
        match self.unsynced.lock().get(&object) {
            Some(Unsynced::Draft(draft)) => Some(draft.clone()),
            Some(Unsynced::Renamed) | None => None,
        }
    }

    fn drafts(&self) -> usize {
        self.unsynced.lock().values().filter(|state| matches!(state, Unsynced::Draft(_))).count()
    }

    /// Whether some of these objects have to be sealed, or have names that are not synced.
    pub fn are_unsynced(&self, objects: &[ObjectId]) -> bool {
        let unsynced = self.unsynced.lock();
        objects.iter().any(|object| unsynced.contains_key(object))
    }

    /// Makes the chunks of these objects durable. Their names are after `sync_names`.
    pub fn seal(&self, objects: &[ObjectId]) -> Result<(), Fault> {
        for object in objects {
            let Some(draft) = self.draft_of(*object) else { continue };
            // Without others that write or seal it.
            let mut stage = draft.stage.write();
            if *stage == Stage::Sealed {
                continue;
            }
            let (name, sealed) = (self.draft(*object), self.sealed(*object));
            let failed = |error| fault("could not sync a file of content", &name, error);
            draft.sync(&mut stage).map_err(failed)?;
            let bytes = draft.file.metadata().map_err(failed)?.len();
            let _step = self.steps.lock();
            // Its upload may have been given up, and what it wrote removed.
            if self.draft_of(*object).is_none() {
                continue;
            }
            fs::rename(&name, &sealed).map_err(failed)?;
            *stage = Stage::Sealed;
            if let Some(counted) = &mut *self.counted.lock() {
                counted.insert(*object);
            }
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            // Only now: whoever reads finds the file in this map, or by its final name.
            self.unsynced.lock().insert(*object, Unsynced::Renamed);
        }
        Ok(())
    }

    /// The names of these objects are synced, here and in the database.
    pub fn note_synced(&self, objects: &[ObjectId]) {
        let mut unsynced = self.unsynced.lock();
        for object in objects {
            if matches!(unsynced.get(object), Some(Unsynced::Renamed)) {
                unsynced.remove(object);
            }
        }
    }

    pub fn sync_names(&self) -> Result<(), Fault> {
        let synced = self.names.sync_all();
        synced.map_err(|error| fault("could not sync the names of files of content", &self.directory, error))
    }

    /// A chunk of an object that the database names. `None` if no file has it.
    pub fn get(&self, object: ObjectId, number: u32, may_wait: bool) -> Result<Option<Bytes>, Fault> {
        self.read(object, number, |file| content_slot::read(file, object, number, &self.buffers, may_wait))
    }

    /// Some bytes of such a chunk.
    pub fn part(
        &self,
        object: ObjectId,
        number: u32,
        within: Range<usize>,
        may_wait: bool,
    ) -> Result<Option<ChunkPart>, Fault> {
        self.read(object, number, |file| {
            content_slot::read_part(file, object, number, within, &self.buffers, may_wait)
        })
    }

    fn read<T>(
        &self,
        object: ObjectId,
        number: u32,
        read: impl FnOnce(&File) -> Result<Option<T>, SlotError>,
    ) -> Result<Option<T>, Fault> {
        if number >= CHUNKS_MAX {
            return Ok(None);
        }
        let path = self.sealed(object);
        let read = match self.draft_of(object) {
            Some(draft) => read(&draft.file),
            None => match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(fault("could not open a file of content", &path, error)),
                Ok(file) => read(&file),
            },
        };
        read.map_err(|error| match error {
            SlotError::Unreadable(error) => fault("could not read a chunk of an object", &path, error),
            SlotError::Damaged => {
                Fault::damaged("a chunk in a file of content is damaged").about(path.display())
            }
        })
    }

    /// Deletes the files of objects that the database does not name any more.
    pub fn remove(&self, objects: &[ObjectId]) -> Result<(), Fault> {
        {
            let _step = self.steps.lock();
            let mut unsynced = self.unsynced.lock();
            for object in objects {
                unsynced.remove(object);
            }
        }
        self.delete_or_keep_back(objects)
    }

    fn delete_or_keep_back(&self, objects: &[ObjectId]) -> Result<(), Fault> {
        let kept_back = self.kept_back.read();
        if let Some(kept_back) = &*kept_back {
            kept_back.lock().extend_from_slice(objects);
            return Ok(());
        }
        self.delete_all(objects)
    }

    /// One that can't be deleted keeps no other.
    fn delete_all(&self, objects: &[ObjectId]) -> Result<(), Fault> {
        objects.iter().map(|object| self.delete(*object)).fold(Ok(()), Result::and)
    }

    fn delete(&self, object: ObjectId) -> Result<(), Fault> {
        let failed = |path: &Path, error| fault("could not delete a file of content", path, error);
        let (sealed, draft) = (self.sealed(object), self.draft(object));
        let bytes = match fs::metadata(&sealed) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found.map_err(|error| failed(&sealed, error))?.len()),
        };
        if delete_file(&sealed).map_err(|error| failed(&sealed, error))?
            && let Some(bytes) = bytes
        {
            let less = |all: u64| Some(all.saturating_sub(bytes));
            // It fails only if there is no new value.
            let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        delete_file(&draft).map_err(|error| failed(&draft, error))?;
        Ok(())
    }

    /// Counts the files of earlier runs, and deletes those of objects that are not needed: the database does not name them. A
    /// power cut can lose the name of a file that was not sealed, and a kill comes between a removal and its files. Returns how
    /// many objects it has deleted files of.
    pub fn survey(&self, is_needed: impl Fn(ObjectId) -> Result<bool, Fault>) -> Result<u64, Fault> {
        let surveyed = self.survey_all(is_needed);
        *self.counted.lock() = None;
        surveyed
    }

    fn survey_all(&self, is_needed: impl Fn(ObjectId) -> Result<bool, Fault>) -> Result<u64, Fault> {
        let (mut deleted, mut failed) = (0, Ok(()));
        let unlisted = |error| fault("could not list files of content", &self.directory, error);
        for entry in fs::read_dir(&self.directory).map_err(unlisted)? {
            let found = ours(&entry.map_err(unlisted)?).map_err(unlisted)?;
            let Some((object, entry)) = found else { continue };
            // What `seal` has added is not added again.
            let is_counted = self.counted.lock().as_ref().is_none_or(|counted| counted.contains(&object));
            if entry.is_sealed && !is_counted {
                self.bytes.fetch_add(entry.bytes, Ordering::Relaxed);
            }
            if !is_needed(object)? {
                let removed = self.remove_unneeded(object, &is_needed);
                deleted += u64::from(matches!(removed, Ok(true)));
                failed = failed.and(removed.map(drop));
            }
        }
        failed.map(|()| deleted)
    }

    /// What is put meanwhile is named before its file is made. So this asks again while no file is made: a migration that goes on
    /// after a power cut puts objects again whose files are there already.
    fn remove_unneeded(
        &self,
        object: ObjectId,
        is_needed: impl Fn(ObjectId) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let _step = self.steps.lock();
        if is_needed(object)? {
            return Ok(false);
        }
        self.unsynced.lock().remove(&object);
        self.delete_or_keep_back(&[object])?;
        Ok(true)
    }

    /// Runs a checkpoint during which no file is deleted. Those that were removed meanwhile are deleted after it.
    pub fn kept_during<T>(&self, checkpoint: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        let _turn = self.checkpoints.lock();
        *self.kept_back.write() = Some(Mutex::default());
        let made = checkpoint();
        let removed = self.kept_back.write().take().unwrap_or_default().into_inner();
        if let Err(fault) = self.delete_all(&removed) {
            warn!(%fault, "files of removed objects take space until the next start");
        }
        made
    }

    fn sealed(&self, object: ObjectId) -> PathBuf {
        self.directory.join(object.to_string())
    }

    fn draft(&self, object: ObjectId) -> PathBuf {
        self.directory.join(format!("{object}.{DRAFT}"))
    }
}

/// Why a chunk was not written.
#[derive(Debug)]
pub enum PutError {
    /// The disk is full. Nothing that was written before is in doubt.
    NoRoom,
    Failed(Fault),
}

impl PutError {
    fn of(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoRoom,
            _ => Self::Failed(fault("could not write a chunk of an object", path, error)),
        }
    }
}

fn is_out_of_handles(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether it was there.
fn delete_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        deleted => deleted.map(|()| true),
    }
}

/// A file of content in a directory.
struct Entry {
    bytes: u64,
    is_sealed: bool,
}

/// `None` if the name is not one of ours, or the file is gone.
fn ours(entry: &DirEntry) -> io::Result<Option<(ObjectId, Entry)>> {
    let name = entry.file_name();
    let Some((object, is_sealed)) = name.to_str().and_then(read_name) else { return Ok(None) };
    match entry.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => {
            let file = file?;
            Ok(file.is_file().then_some((object, Entry { bytes: file.len(), is_sealed })))
        }
    }
}

/// The object of a file's name, and whether the file is sealed.
fn read_name(name: &str) -> Option<(ObjectId, bool)> {
    let draft = name.strip_suffix(DRAFT).and_then(|name| name.strip_suffix('.'));
    Some((ObjectId::parse(draft.unwrap_or(name))?, draft.is_none()))
}

/// The objects with a sealed file in the content directory of a store, in order, each with the bytes of its file.
pub fn sealed_in(data: &Path) -> io::Result<Vec<(ObjectId, u64)>> {
    let entries = match fs::read_dir(data.join(layout::CONTENT_DIRECTORY)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        if let Some((object, entry)) = ours(&entry?)?.filter(|(_, entry)| entry.is_sealed) {
            found.push((object, entry.bytes));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Links every sealed file into the content directory of another store, or copies it where the file system has no links. All is
/// synced.
pub fn link_all(data: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (data.join(layout::CONTENT_DIRECTORY), to.join(layout::CONTENT_DIRECTORY));
    // Stores of earlier versions have none, and get none before they are upgraded.
    if !from.try_exists()? {
        return Ok(());
    }
    store::private_directory::create(&to)?;
    for (object, _) in sealed_in(data)? {
        let (from, to) = (from.join(object.to_string()), to.join(object.to_string()));
        match fs::hard_link(&from, &to) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Unsupported
                        | ErrorKind::PermissionDenied
                        | ErrorKind::TooManyLinks
                        | ErrorKind::CrossesDevices
                ) =>
            {
                fs::copy(&from, &to)?;
                File::open(&to)?.sync_all()?;
            }
            linked => linked?,
        }
    }
    File::open(&to)?.sync_all()
}

fn fault(what: &'static str, path: &Path, error: io::Error) -> Fault {
    Fault::disk(what).about(path.display()).because(error)
}

#[cfg(test)]
mod tests;
