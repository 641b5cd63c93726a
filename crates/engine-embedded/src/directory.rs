//! The data directory: whose it is, who has it open, and in which format it was written.
//!
//! All of it is settled before RocksDB is let near the directory. A refusal leaves everything as it was.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::commit::CommittedFile;
use crate::layout;
use crate::open::OpenError;

/// A directory that is ours for as long as this lives.
#[derive(Debug)]
pub struct Directory {
    pub path: PathBuf,
    pub lock: File,
}

impl Directory {
    /// Makes the directory if there is none, and a store of it if it is empty.
    pub fn claim(path: &Path) -> Result<Self, OpenError> {
        let unwritable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
        store::private_directory::create(path).map_err(unwritable)?;
        // Before the lock, because even that would be a file of ours in a directory that is someone else's.
        let is_new = !check_format(path)?;
        let lock = OpenOptions::new().create(true).append(true).open(path.join(layout::LOCK_FILE));
        let lock = lock.map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { directory: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(unwritable(source)),
        }
        // Again, because someone else may have made a store of it since.
        if is_new && !check_format(path)? {
            write_format(path).map_err(unwritable)?;
        }
        Ok(Self { path: path.to_owned(), lock })
    }

    pub fn database(&self) -> PathBuf {
        self.path.join(layout::DATABASE_DIRECTORY)
    }

    /// The counter noted last, if there is a readable note.
    pub fn committed(&self) -> Result<Option<u64>, OpenError> {
        committed(&self.path)
    }

    /// Makes the names certain of what lies in the directory: a power cut could take the database's with it, and so all
    /// that is in it, however well that was synced.
    pub fn sync(&self) -> Result<(), OpenError> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| OpenError::Unwritable { directory: self.path.clone(), source })
    }

    /// The file to note counters in, with `counter` in it.
    pub fn committed_file(&self, counter: u64) -> Result<CommittedFile, OpenError> {
        let unwritable = |source| OpenError::Unwritable { directory: self.path.clone(), source };
        let path = self.path.join(layout::COMMITTED_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = CommittedFile(file.map_err(unwritable)?);
        file.write(counter).and_then(|()| file.0.sync_all()).map_err(unwritable)?;
        Ok(file)
    }
}

/// A directory that is looked at, while nobody else has it open, and not changed.
#[derive(Debug)]
pub struct Looked {
    pub path: PathBuf,
    /// `FORMAT` is gone or unreadable, but there is a database.
    pub lacks_format: bool,
    /// None if there is no file to lock, and so nobody who has it locked.
    _lock: Option<File>,
}

impl Looked {
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        let unreadable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
        let has_database = path.join(layout::DATABASE_DIRECTORY).is_dir();
        let lacks_format = match check_format(path) {
            Ok(true) => false,
            Ok(false) => return Err(OpenError::NoStore { directory: path.to_owned() }),
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

/// Whether the directory is a store; an error if it is one we can't read, or something else altogether.
fn check_format(path: &Path) -> Result<bool, OpenError> {
    let unreadable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
    let not_partita = || OpenError::NotPartita { directory: path.to_owned() };
    match fs::read_to_string(path.join(layout::FORMAT_FILE)) {
        Ok(text) => match layout::read_format(&text) {
            Some(layout::FORMAT_VERSION) => Ok(true),
            Some(found) => Err(OpenError::NewerFormat {
                directory: path.to_owned(),
                found,
                supported: layout::FORMAT_VERSION,
            }),
            None => Err(not_partita()),
        },
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(not_partita()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let foreign = foreign_entry(path).map_err(unreadable)?;
            if foreign { Err(not_partita()) } else { Ok(false) }
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Whether something lies there that neither a first start cut short nor the file system has left.
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

/// Appears whole or not at all, also if the power fails.
fn write_format(path: &Path) -> io::Result<()> {
    let draft = path.join(layout::FORMAT_DRAFT_FILE);
    let mut file = File::create(&draft)?;
    file.write_all(layout::format_text().as_bytes())?;
    file.sync_all()?;
    fs::rename(draft, path.join(layout::FORMAT_FILE))?;
    File::open(path)?.sync_all()
}
