//! A small file beside a large one that says how far it is, so that an interrupted run can go on. Never holds secrets.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

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

    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("can't read {}: {error}", self.path.display())),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            format!("{} does not say how far it was ({error}); delete it to begin anew", self.path.display())
        })
    }

    /// Whoever reads it finds the old state or the new one, never a part of one.
    pub fn save(&self, state: &impl Serialize) -> Result<(), String> {
        let fault = |error: &dyn std::fmt::Display| format!("can't write {}: {error}", self.path.display());
        let text = serde_json::to_vec_pretty(state).map_err(|error| fault(&error))?;
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error| fault(&error))
    }

    pub fn remove(&self) -> Result<(), String> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("can't delete {}: {error}", self.path.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_last_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let side = SideFile::beside(&directory.path().join("books.jsonl"), ".progress");
        assert_eq!(side.load::<u32>(), Ok(None));
        side.save(&1).unwrap();
        side.save(&2).unwrap();
        assert_eq!(side.load::<u32>(), Ok(Some(2)));
        let names: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["books.jsonl.progress"]);
        fs::write(side.path(), "{").unwrap();
        assert!(side.load::<u32>().unwrap_err().contains("delete it to begin anew"));
        side.remove().unwrap();
        side.remove().unwrap();
        assert!(!side.exists());
    }
}
