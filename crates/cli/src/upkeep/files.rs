//! The files of a store: lists, copies and syncs them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Says when and from what a backup was taken.
pub const BACKUP_FILE: &str = "BACKUP";
/// Makes a directory a store; written last.
pub const FORMAT_FILE: &str = "FORMAT";
pub const COMMITTED_FILE: &str = "committed";
pub const DATABASE: &str = "db";
/// Files with large chunks of blobs.
pub const CONTENT: &str = "content";

/// A file of a store.
#[derive(Clone, Debug)]
pub struct StoreFile {
    /// Relative to the store's directory.
    pub path: PathBuf,
    pub bytes: u64,
}

/// The files of the store in this directory, without locks, sockets and foreign files.
pub fn of_store(directory: &Path) -> io::Result<Vec<StoreFile>> {
    let mut found = Vec::new();
    let mut add = |path: PathBuf| {
        let file = fs::metadata(directory.join(&path))?;
        if file.is_file() {
            found.push(StoreFile { path, bytes: file.len() });
        }
        Ok::<(), io::Error>(())
    };
    add(FORMAT_FILE.into())?;
    // A store without this file can be opened; then the number of commits is not compared.
    match add(COMMITTED_FILE.into()) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for entry in fs::read_dir(directory.join(DATABASE))? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        // RocksDB's lock and log files belong to the directory, not to the data.
        if text != "LOCK" && text != "LOG" && !text.starts_with("LOG.old") {
            add(Path::new(DATABASE).join(&name))?;
        }
    }
    let content = match fs::read_dir(directory.join(CONTENT)) {
        // Stores of earlier versions have none.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        content => content?,
    };
    for entry in content {
        let path = Path::new(CONTENT).join(entry?.file_name());
        // What is not finished belongs to a server that is writing it.
        if is_finished_file(&path) {
            add(path)?;
        }
    }
    Ok(found)
}

/// The directories of a store.
pub const DIRECTORIES: [&str; 2] = [DATABASE, CONTENT];

/// Table files and blob files never change once they are written, nor do files of content once they have their final name.
pub fn is_finished_file(path: &Path) -> bool {
    if path.starts_with(CONTENT) {
        return path.extension().is_none();
    }
    path.extension().is_some_and(|extension| extension == "sst" || extension == "blob")
}

/// A real copy, durable when this returns.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Syncs a directory with everything in it.
pub fn sync_all(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync(directory)
}

/// Syncs a directory's entries, not the files' contents.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The last bytes of a table file contain the ids of the database and of the file. The first bytes of a blob file contain
/// the name of an object, which no other object gets; a file of content is called so.
const IDENTITY: u64 = 64 * 1024;

/// Whether two table files or blob files are equal. Compares all bytes if `whole`, else only the first and the last ones,
/// which identify the file.
pub fn are_equal(a: &Path, b: &Path, whole: bool) -> io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    let length = a.metadata()?.len();
    if length != b.metadata()?.len() {
        return Ok(false);
    }
    if !whole {
        let some = length.min(IDENTITY);
        let mut parts = [vec![0; some as usize], vec![0; some as usize]];
        for at in [0, length - some] {
            a.read_exact_at(&mut parts[0], at)?;
            b.read_exact_at(&mut parts[1], at)?;
            if parts[0] != parts[1] {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let (mut a, mut b) = (a, b);
    let (mut from_a, mut from_b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let read = a.read(&mut from_a)?;
        if read == 0 {
            return Ok(true);
        }
        b.read_exact(&mut from_b[..read])?;
        if from_a[..read] != from_b[..read] {
            return Ok(false);
        }
    }
}

/// No error if it does not exist.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
