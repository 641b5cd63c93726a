//! A small file beside an exported or imported file. It records how far the run is, so that an interrupted run can
//! continue. It never contains secrets.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::plain_file;

/// Longer than any state.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Error)]
pub enum SideFileError {
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is damaged ({source}); delete it to start again", .path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("can't write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("can't delete {}: {source}; delete it by hand", .path.display())]
    NotDeleted { path: PathBuf, source: io::Error },
}

#[derive(Clone, Debug)]
pub struct SideFile {
    path: PathBuf,
}

impl SideFile {
    /// `books.jsonl` and `.progress` give `books.jsonl.progress`.
    pub fn beside(path: &Path, suffix: &str) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Self { path: name.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, SideFileError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let read = || {
            let mut text = Vec::new();
            plain_file::open(folder, &self.path)?.take(BYTES_MAX).read_to_end(&mut text)?;
            Ok::<_, io::Error>(text)
        };
        let text = match read() {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SideFileError::Unreadable { path: self.path.clone(), source }),
        };
        let state = serde_json::from_slice(&text);
        state.map(Some).map_err(|source| SideFileError::Damaged { path: self.path.clone(), source })
    }

    /// Replaces the file atomically: a reader finds the old state or the new one.
    pub fn save(&self, state: &impl Serialize) -> Result<(), SideFileError> {
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let write = || {
            let text = serde_json::to_vec_pretty(state)?;
            // The folder may come from somebody else: what has this name already could be a link to another file.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = File::create_new(&new)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|source| SideFileError::Unwritable { path: self.path.clone(), source })
    }

    pub fn remove(&self) -> Result<(), SideFileError> {
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(SideFileError::NotDeleted { path: self.path.clone(), source })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_folder_leads_to_no_other_file() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        fs::write(&other, "7").unwrap();
        let side = SideFile::beside(&directory.path().join("books.jsonl"), ".progress");
        std::os::unix::fs::symlink(&other, directory.path().join("books.jsonl.progress.new")).unwrap();
        side.save(&1).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "7");
        side.remove().unwrap();
        std::os::unix::fs::symlink(&other, side.path()).unwrap();
        assert!(side.load::<u32>().unwrap_err().to_string().contains("links are not followed"));
        side.save(&1).unwrap();
        assert_eq!((fs::read_to_string(&other).unwrap().as_str(), side.load().unwrap()), ("7", Some(1)));
    }

    #[test]
    fn the_last_saved_state_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let side = SideFile::beside(&directory.path().join("books.jsonl"), ".progress");
        assert_eq!(side.load::<u32>().unwrap(), None);
        side.save(&1).unwrap();
        side.save(&2).unwrap();
        assert_eq!(side.load::<u32>().unwrap(), Some(2));
        let names: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["books.jsonl.progress"]);
        fs::write(side.path(), "{").unwrap();
        let error = side.load::<u32>().unwrap_err();
        assert!(error.to_string().contains("books.jsonl.progress is damaged"), "{error}");
        side.remove().unwrap();
        side.remove().unwrap();
        assert!(!side.exists());
    }
}
