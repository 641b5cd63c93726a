//! Files that `partita migrate` writes to a data directory, so that nobody serves incomplete or outdated data by mistake.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use model::DateTime;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::files;

/// The data was moved to another store.
pub const MOVED: &str = "MOVED";
/// A move into this directory is not complete yet.
pub const ARRIVING: &str = "ARRIVING";

#[derive(Debug, Deserialize, Serialize)]
pub struct Mark {
    /// The other store of the move, as the command named it.
    pub place: String,
    /// The command to run instead.
    pub instead: String,
    pub time: String,
    /// Nobody has made sure yet that all of the data was moved. Marks of earlier versions don't say it, and are confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

/// Why a directory must not be served, or its marks can't be read or written.
#[derive(Debug, Error)]
pub enum MarkError {
    #[error(
        "the data in {} was moved to {} at {}; use that: {}. --accept-migration uses the old data here \
         anyway, without what was written there since",
        .data.display(), .mark.place, .mark.time, .mark.instead
    )]
    Moved { data: PathBuf, mark: Mark },
    #[error(
        "the data in {} is being moved to {}, and the last step was interrupted at {}; finish that first: {}. \
         --accept-migration uses the data here anyway",
        .data.display(), .mark.place, .mark.time, .mark.instead
    )]
    Leaving { data: PathBuf, mark: Mark },
    #[error(
        "the data of {} is being moved to {}, which is not complete yet; finish that first: {}. \
         --accept-migration uses the incomplete data",
        .mark.place, .data.display(), .mark.instead
    )]
    Arriving { data: PathBuf, mark: Mark },
    #[error("can't read {}: {source}; check its permissions", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "can't read {}, which says where the data was moved: {source}; find out where it is served before you \
         remove that file",
        .path.display()
    )]
    Damaged { path: PathBuf, source: toml::de::Error },
    #[error("can't write {}: {source}; check its directory's permissions and free space", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("can't remove {}: {source}; remove it by hand", .path.display())]
    Unremovable { path: PathBuf, source: io::Error },
}

impl Mark {
    pub fn new(place: &str, instead: &str) -> Self {
        let time = DateTime::now().to_seconds_string();
        Self { place: place.into(), instead: instead.into(), time, unconfirmed: false }
    }

    pub fn unconfirmed(self) -> Self {
        Self { unconfirmed: true, ..self }
    }

    /// Durable when this returns.
    pub fn write(&self, data: &Path, name: &str) -> Result<(), MarkError> {
        let path = data.join(name);
        let text = toml::to_string(self).map_err(|source| MarkError::Unwritable {
            source: io::Error::other(source),
            path: path.clone(),
        })?;
        replace(&path, text.as_bytes()).map_err(|source| MarkError::Unwritable { path, source })
    }
}

pub fn read(data: &Path, name: &str) -> Result<Option<Mark>, MarkError> {
    let path = data.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(|source| MarkError::Damaged { path, source }),
        // A path that is not a directory has no mark; opening the store reports it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(MarkError::Unreadable { path, source }),
    }
}

pub fn remove(data: &Path, name: &str) -> Result<(), MarkError> {
    let removed = match fs::remove_file(data.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        removed => removed.and_then(|()| files::sync(data)),
    };
    removed.map_err(|source| MarkError::Unremovable { path: data.join(name), source })
}

/// Refuses a marked directory, unless `accept`.
pub fn check(data: &Path, accept: bool) -> Result<(), MarkError> {
    if accept {
        return Ok(());
    }
    if let Some(mark) = read(data, MOVED)? {
        let data = data.to_owned();
        return Err(match mark.unconfirmed {
            true => MarkError::Leaving { data, mark },
            false => MarkError::Moved { data, mark },
        });
    }
    if let Some(mark) = read(data, ARRIVING)? {
        return Err(MarkError::Arriving { data: data.to_owned(), mark });
    }
    Ok(())
}

/// Replaces a file atomically, even if the power fails.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = File::create(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    path.parent().map_or(Ok(()), files::sync)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_directory_is_refused_and_says_what_to_do_instead() {
        let directory = tempfile::TempDir::new().unwrap();
        let data = directory.path();
        assert!(check(data, false).is_ok());
        for (name, words) in [(MOVED, "was moved to /new"), (ARRIVING, "data of /new is being moved")] {
            Mark::new("/new", "partita serve --data /new").write(data, name).unwrap();
            let refused = check(data, false).unwrap_err().to_string();
            for part in [words, "partita serve --data /new", "--accept-migration"] {
                assert!(refused.contains(part), "{refused}");
            }
            assert!(check(data, true).is_ok());
            remove(data, name).unwrap();
            assert!(check(data, false).is_ok());
        }
        let mark = Mark::new("/new", "partita migrate --finish").unconfirmed();
        mark.write(data, MOVED).unwrap();
        let refused = check(data, false).unwrap_err().to_string();
        assert!(refused.contains("is being moved to /new") && refused.contains("--finish"), "{refused}");
        fs::write(data.join(MOVED), "torn").unwrap();
        let refused = check(data, false).unwrap_err();
        assert!(matches!(refused, MarkError::Damaged { .. }), "an unreadable mark must not allow serving");
        assert!(refused.to_string().contains("MOVED"), "{refused}");
    }

    #[test]
    fn a_mark_of_an_earlier_version_is_confirmed() {
        let directory = tempfile::TempDir::new().unwrap();
        let data = directory.path();
        let text =
            "place = \"/new\"\ninstead = \"partita serve --data /new\"\ntime = \"2026-11-16T03:20:11Z\"\n";
        fs::write(data.join(MOVED), text).unwrap();
        let mark = read(data, MOVED).unwrap().unwrap();
        assert!(!mark.unconfirmed);
        mark.write(data, MOVED).unwrap();
        assert_eq!(fs::read_to_string(data.join(MOVED)).unwrap(), text, "and is written as it was");
        mark.unconfirmed().write(data, MOVED).unwrap();
        assert!(read(data, MOVED).unwrap().unwrap().unconfirmed);
    }
}
