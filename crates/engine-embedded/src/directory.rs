//! The data directory: whether it is a store, whether another process has it open, and its format.
//!
//! All of this is checked before RocksDB opens it. If it is refused, nothing in it is changed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::commit::CommittedFile;
use crate::layout;
use crate::open::OpenError;

/// A data directory, locked for this process as long as this lives.
#[derive(Debug)]
pub struct DataDirectory {
    pub path: PathBuf,
    pub lock: File,
    /// The format that the file `FORMAT` names.
    pub format: u32,
}

impl DataDirectory {
    /// Creates the directory if it is missing, and makes an empty one a store.
    pub fn claim(path: &Path) -> Result<Self, OpenError> {
        let unwritable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
        store::private_directory::create(path).map_err(unwritable)?;
        // Before the lock file is made: the directory may belong to another program.
        let found = check_format(path)?;
        let lock = OpenOptions::new().create(true).append(true).open(path.join(layout::LOCK_FILE));
        let lock = lock.map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { directory: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(unwritable(source)),
        }
        // Again: another process may have made a store of it, or upgraded it, before we had the lock.
        let format = match check_format(path)? {
            Some(format) => format,
            None if found.is_some() => return Err(OpenError::NoStore { directory: path.to_owned() }),
            None => {
                write_format(path, layout::FORMAT_VERSION).map_err(unwritable)?;
                layout::FORMAT_VERSION
            }
        };
        Ok(Self { path: path.to_owned(), lock, format })
    }

    /// Writes the format of this version to `FORMAT`. Older programs refuse the store from then on.
    pub fn mark_format(&mut self) -> io::Result<()> {
        write_format(&self.path, layout::FORMAT_VERSION)?;
        self.format = layout::FORMAT_VERSION;
        Ok(())
    }

    pub fn database(&self) -> PathBuf {
        self.path.join(layout::DATABASE_DIRECTORY)
    }

    /// The commit counter, if the file is readable.
    pub fn committed(&self) -> Result<Option<u64>, OpenError> {
        committed(&self.path)
    }

    /// Syncs the names in the directory. Without this a power cut could remove the name of the database's directory,
    /// and so everything in it, although its files were synced.
    pub fn sync(&self) -> Result<(), OpenError> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| OpenError::Unwritable { directory: self.path.clone(), source })
    }

    /// Opens the file of the commit counter and writes `counter` to it.
    pub fn committed_file(&self, counter: u64) -> Result<CommittedFile, OpenError> {
        let unwritable = |source| OpenError::Unwritable { directory: self.path.clone(), source };
        let path = self.path.join(layout::COMMITTED_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = CommittedFile(file.map_err(unwritable)?);
        file.write(counter).and_then(|()| file.0.sync_all()).map_err(unwritable)?;
        Ok(file)
    }
}

/// A data directory that is only read, while no process has it open.
#[derive(Debug)]
pub struct DirectoryView {
    pub path: PathBuf,
    /// `FORMAT` is missing or unreadable, but there is a database.
    pub lacks_format: bool,
    /// `None` if there is no lock file, so no process has it locked.
    _lock: Option<File>,
}

impl DirectoryView {
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        let unreadable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
        let has_database = path.join(layout::DATABASE_DIRECTORY).is_dir();
        let lacks_format = match check_format(path) {
            Ok(Some(_)) => false,
            Ok(None) => return Err(OpenError::NoStore { directory: path.to_owned() }),
            Err(OpenError::NotPartita { .. }) if has_database => true,
            Err(error) => return Err(error),
        };
        let lock = match File::open(path.join(layout::LOCK_FILE)) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(unreadable(source)),
        };
        match lock.as_ref().map_or(Ok(()), File::try_lock) {
            Ok(()) => Ok(Self { path: path.to_owned(), lacks_format, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { directory: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(unreadable(source)),
        }
    }

    pub fn database(&self) -> PathBuf {
        self.path.join(layout::DATABASE_DIRECTORY)
    }

    pub fn committed(&self) -> Result<Option<u64>, OpenError> {
        committed(&self.path)
    }
}

fn committed(path: &Path) -> Result<Option<u64>, OpenError> {
    match fs::read(path.join(layout::COMMITTED_FILE)) {
        Ok(bytes) => Ok(layout::read_committed(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OpenError::Unwritable { directory: path.to_owned(), source }),
    }
}

/// The format that the file `FORMAT` of a directory names; `None` if it names none. Nothing else is looked at.
pub fn stored_format(directory: &Path) -> io::Result<Option<u32>> {
    fs::read_to_string(directory.join(layout::FORMAT_FILE)).map(|text| layout::read_format(&text))
}

/// The number of commits that a directory says it has; `None` if it does not say it. Nothing else is looked at.
pub fn stored_commits(directory: &Path) -> io::Result<Option<u64>> {
    fs::read(directory.join(layout::COMMITTED_FILE)).map(|bytes| layout::read_committed(&bytes))
}

/// The format of the store, or `None` if the directory is empty and can become a store. An error if this version
/// can't read the store, or if the directory has other files.
fn check_format(path: &Path) -> Result<Option<u32>, OpenError> {
    let unreadable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
    let not_partita = || OpenError::NotPartita { directory: path.to_owned() };
    match fs::read_to_string(path.join(layout::FORMAT_FILE)) {
        Ok(text) => match layout::read_format(&text) {
            Some(found @ layout::FORMAT_OLDEST..=layout::FORMAT_VERSION) => Ok(Some(found)),
            Some(found) if found > layout::FORMAT_VERSION => Err(OpenError::NewerFormat {
                directory: path.to_owned(),
                found,
                supported: layout::FORMAT_VERSION,
            }),
            // No release has written a format below the oldest.
            Some(_) | None => Err(not_partita()),
        },
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(not_partita()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let foreign = foreign_entry(path).map_err(unreadable)?;
            if foreign { Err(not_partita()) } else { Ok(None) }
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Whether there is a file that comes neither from an interrupted first start nor from the file system.
fn foreign_entry(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let expected = [layout::LOCK_FILE, layout::FORMAT_DRAFT_FILE, "lost+found"];
        if !expected.iter().any(|expected| name == *expected) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The file appears complete or not at all, even if the power fails.
fn write_format(path: &Path, version: u32) -> io::Result<()> {
    let draft = path.join(layout::FORMAT_DRAFT_FILE);
    let mut file = File::create(&draft)?;
    file.write_all(layout::format_text(version).as_bytes())?;
    file.sync_all()?;
    fs::rename(draft, path.join(layout::FORMAT_FILE))?;
    File::open(path)?.sync_all()
}
