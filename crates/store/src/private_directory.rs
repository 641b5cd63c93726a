//! Data directories. Only their owner may read them, because a user who can read the files needs no account key.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates a directory and missing parents, and syncs their names. A directory that exists keeps its permissions.
pub fn create(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create(parent)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        // A directory that may be entered may not always be read. Then its names can't be synced here.
        if let Ok(directory) = File::open(parent) {
            directory.sync_all()?;
        }
    }
    Ok(())
}

/// Whether other users than the owner may read a directory.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_private_and_what_is_there_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let deep = directory.path().join("a/b");
        create(&deep).unwrap();
        create(&deep).unwrap();
        let is_open = |path: &Path| is_open_to_others(path).unwrap();
        assert!(is_open(directory.path()) && !is_open(&deep) && !is_open(&directory.path().join("a")));
    }
}
