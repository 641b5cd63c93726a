//! RocksDB's own directory: whether a database is in it, and how a new one is made.
//!
//! RocksDB takes a directory without the file CURRENT for an empty one: asked to create, it writes a new database
//! beside what lies there, and then deletes every file that the new one does not know. So it is never asked to
//! create where anything lies. A new database is made under another name and gets its own once it is whole, so
//! that no interrupted first start leaves a directory without CURRENT.

use std::fs;
use std::io;
use std::path::Path;

use rocksdb::DB;

use crate::directory::Directory;
use crate::layout;
use crate::open::{self, OpenError};
use crate::options::Tuning;

/// The file that names the manifest in use, and so all files of the database.
const CURRENT: &str = "CURRENT";

/// What lies in the database's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No directory, or an empty one.
    Nothing,
    Database,
    /// Files, but not the one that says which of them count.
    Remains,
}

pub fn find(database: &Path) -> io::Result<Found> {
    let mut entries = match fs::read_dir(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        entries => entries?,
    };
    if database.join(CURRENT).try_exists()? {
        return Ok(Found::Database);
    }
    Ok(if entries.next().is_some() { Found::Remains } else { Found::Nothing })
}

/// Makes an empty database where `find` found nothing.
pub fn create(directory: &Directory, tuning: &Tuning) -> Result<(), OpenError> {
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
    // Its files must not be less certain than its name.
    fs::File::open(&draft).and_then(|draft| draft.sync_all()).map_err(unwritable)?;
    // Onto an empty directory at most: onto any other the system refuses to.
    fs::rename(&draft, directory.database()).map_err(unwritable)?;
    directory.sync()
}
