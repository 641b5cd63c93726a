//! Directories that hold data: their owner's alone, because whoever reads the files needs no key.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Makes a directory and those above it, as far as they are missing; names a power cut can't take back.
///
/// One that is there keeps the rights it was given.
pub fn create(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create(parent)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        // Not every directory that may be passed through may also be read; then its names are its owner's matter.
        if let Ok(directory) = File::open(parent) {
            directory.sync_all()?;
        }
    }
    Ok(())
}

/// Whether users other than the owner may look into a directory.
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
