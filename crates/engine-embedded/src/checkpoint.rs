//! A checkpoint of an open store inside its data directory, for a backup to copy.
//!
//! Table files and files of content never change, so the checkpoint has hard links to them: it takes seconds and no space,
//! whatever the size of the store, and writes continue meanwhile.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamily, DB};
use store::Fault;

use crate::content_files;
use crate::db::{self, Db};
use crate::layout::{self, CommitRecord};

/// A complete data directory inside the one it was taken from. The next checkpoint replaces it, unless a backup has
/// locked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub directory: PathBuf,
    /// It has every commit up to this one, and perhaps some later ones.
    pub commits: u64,
}

fn failed(directory: &Path, error: io::Error) -> Fault {
    Fault::disk("could not make a checkpoint").about(directory.display()).because(error)
}

pub fn take(db: &Db, data: &Path) -> Result<Checkpoint, Fault> {
    let directory = data.join(layout::STAGING_DIRECTORY);
    clear(data).map_err(|error| failed(data, error))?;
    let commits = make(db.rocks(), db.meta(), data, &directory, layout::FORMAT_VERSION)?;
    Ok(Checkpoint { directory, commits })
}

/// Makes the directory a store of this format, with all commits so far. Returns the number of the last commit that it
/// has for certain. Everything is synced, except for the directory's own name. No file of content may be deleted meanwhile.
pub fn make(
    rocks: &DB,
    meta: &ColumnFamily,
    data: &Path,
    directory: &Path,
    format: u32,
) -> Result<u64, Fault> {
    let failed = |error: io::Error| failed(directory, error);
    store::private_directory::create(directory).map_err(failed)?;
    // Before the checkpoint: a commit that can be read is in the log, which the checkpoint includes.
    let record = rocks.get_cf(meta, layout::COMMIT_KEY);
    let record = record.map_err(|error| db::fault("could not read the last commit", error))?;
    let commits = record.and_then(|bytes| CommitRecord::decode(&bytes)).map_or(0, |record| record.counter);

    let taken = rocksdb::checkpoint::Checkpoint::new(rocks)
        .and_then(|checkpoint| checkpoint.create_checkpoint(directory.join(layout::DATABASE_DIRECTORY)));
    taken.map_err(|error| db::fault("could not make a checkpoint", error).about(directory.display()))?;
    // After the checkpoint: content is in its file before a row names it.
    content_files::link_all(data, directory).map_err(failed)?;
    write(&directory.join(layout::COMMITTED_FILE), &layout::committed_bytes(commits)).map_err(failed)?;
    // Last, because it makes the directory a store.
    write(&directory.join(layout::FORMAT_FILE), layout::format_text(format).as_bytes()).map_err(failed)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(commits)
}

/// Removes what an interrupted backup has left, but nothing that a backup has locked.
pub fn clear(data: &Path) -> io::Result<()> {
    let directory = data.join(layout::STAGING_DIRECTORY);
    let lock = match File::open(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    match lock.try_lock() {
        Ok(()) => fs::remove_dir_all(directory),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other(format!("a backup is being taken from {}", directory.display())))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
