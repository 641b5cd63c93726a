//! The files a store consists of: listed, copied, synced.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Says when and from what a backup was taken.
pub const BACKUP_FILE: &str = "BACKUP";
/// What makes a directory a store; comes last when one is made.
pub const FORMAT_FILE: &str = "FORMAT";
pub const COMMITTED_FILE: &str = "committed";
pub const DATABASE: &str = "db";

/// A file of a store.
#[derive(Clone, Debug)]
pub struct StoreFile {
    /// In the store's directory.
    pub path: PathBuf,
    pub bytes: u64,
}

/// All there is to a store in this directory. Locks, sockets and what else lies beside it are not.
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
    // A store without it opens; there is nothing to compare with then.
    match add(COMMITTED_FILE.into()) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for entry in fs::read_dir(directory.join(DATABASE))? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        // RocksDB's lock and its notes for people, which belong to the place and not to the data.
        if text != "LOCK" && text != "LOG" && !text.starts_with("LOG.old") {
            add(Path::new(DATABASE).join(&name))?;
        }
    }
    Ok(found)
}

/// Whether it never changes once it is written.
pub fn is_table_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

/// A real copy, on the disk when this returns.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Every file and directory in it, and itself.
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

/// A directory's entries, not what they hold.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The end of a table file tells which database wrote it and as which file.
const IDENTITY: u64 = 64 * 1024;

/// Whether two table files of one size hold the same: all of them, or only what tells files apart.
pub fn are_equal(a: &Path, b: &Path, whole: bool) -> io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    let length = a.metadata()?.len();
    if length != b.metadata()?.len() {
        return Ok(false);
    }
    if !whole {
        let at = length.saturating_sub(IDENTITY);
        let mut ends = [vec![0; (length - at) as usize], vec![0; (length - at) as usize]];
        a.read_exact_at(&mut ends[0], at)?;
        b.read_exact_at(&mut ends[1], at)?;
        return Ok(ends[0] == ends[1]);
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

/// Nothing to remove is fine.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
