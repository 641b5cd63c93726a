//! RocksDB's own directory: whether a database is in it, and how a new one is made.
//!
//! RocksDB takes a directory without the file CURRENT for an empty one: when asked to create a database, it writes a
//! new one there and deletes all files that do not belong to it. So it is asked to create only in an empty directory.
//! A new database is made under another name and renamed when it is complete, so that an interrupted first start
//! leaves no directory without CURRENT.

use std::fs;
use std::io;
use std::path::Path;

use rocksdb::DB;

use crate::directory::DataDirectory;
use crate::layout;
use crate::open::{self, OpenError};
use crate::options::Tuning;

/// The file that names the current MANIFEST, which lists all files of the database.
const CURRENT: &str = "CURRENT";

/// What is in the database's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseState {
    /// No directory, or an empty one.
    Nothing,
    Database,
    /// There are files, but no CURRENT.
    Remains,
}

pub fn find(database: &Path) -> io::Result<DatabaseState> {
    let mut entries = match fs::read_dir(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DatabaseState::Nothing),
        entries => entries?,
    };
    if database.join(CURRENT).try_exists()? {
        return Ok(DatabaseState::Database);
    }
    Ok(if entries.next().is_some() { DatabaseState::Remains } else { DatabaseState::Nothing })
}

/// Makes an empty database where `find` found nothing.
pub fn create(directory: &DataDirectory, tuning: &Tuning) -> Result<(), OpenError> {
    let unwritable = |source| OpenError::Unwritable { directory: directory.path.clone(), source };
    let draft = directory.path.join(layout::DATABASE_DRAFT_DIRECTORY);
    match fs::remove_dir_all(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
        _ => {}
    }
    let mut options = tuning.database.clone();
    options.create_if_missing(true);
    let rocks = DB::open_cf_descriptors(&options, &draft, open::families(tuning));
    drop(rocks.map_err(|error| open::open_error(&directory.path, &error))?);
    // Its files must be durable before its name is.
    fs::File::open(&draft).and_then(|draft| draft.sync_all()).map_err(unwritable)?;
    // The system refuses to rename onto a directory that is not empty.
    fs::rename(&draft, directory.database()).map_err(unwritable)?;
    directory.sync()
}
