//! What `partita migrate` notes in a data directory, so that nobody serves one half of a move for the whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use model::DateTime;
use serde::{Deserialize, Serialize};

use super::files;

/// All of it is elsewhere now.
pub const MOVED: &str = "MOVED";
/// Not all of it is here yet.
pub const ARRIVING: &str = "ARRIVING";

#[derive(Debug, Deserialize, Serialize)]
pub struct Mark {
    /// The other end of the move, as the command named it.
    pub place: String,
    /// What to run instead.
    pub instead: String,
    pub time: String,
}

impl Mark {
    pub fn new(place: &str, instead: &str) -> Self {
        Self { place: place.into(), instead: instead.into(), time: DateTime::now().to_seconds_string() }
    }

    /// On the disk when this returns.
    pub fn write(&self, data: &Path, name: &str) -> Result<(), String> {
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        replace(&data.join(name), text.as_bytes())
            .map_err(|error| format!("can't write {}: {error}", data.join(name).display()))
    }
}

pub fn read(data: &Path, name: &str) -> Result<Option<Mark>, String> {
    let path = data.join(name);
    let unreadable = |error: &dyn std::fmt::Display| format!("can't read {}: {error}", path.display());
    match fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(|error| unreadable(&error)),
        // What is no directory has no mark; whoever opens it says what it is.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(&error)),
    }
}

pub fn remove(data: &Path, name: &str) -> Result<(), String> {
    let removed = match fs::remove_file(data.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        removed => removed.and_then(|()| files::sync(data)),
    };
    removed.map_err(|error| format!("can't remove {}: {error}", data.join(name).display()))
}

/// Whether the directory holds what it is to be served as; if not, what else to do.
pub fn check(data: &Path, accept: bool) -> Result<(), String> {
    if accept {
        return Ok(());
    }
    let shown = data.display();
    if let Some(Mark { place, instead, time }) = read(data, MOVED)? {
        return Err(format!(
            "the data in {shown} was moved to {place} at {time}; use that: {instead}. \
             --accept-migration takes what was left here all the same, without what was written there since"
        ));
    }
    if let Some(Mark { place, instead, .. }) = read(data, ARRIVING)? {
        return Err(format!(
            "the data of {place} is being moved to {shown} and not all of it is there; finish that first: {instead}. \
             --accept-migration takes what there is"
        ));
    }
    Ok(())
}

/// Appears whole or not at all, also if the power fails.
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
        assert_eq!(check(data, false), Ok(()));
        for (name, words) in [(MOVED, "was moved to /new"), (ARRIVING, "data of /new is being moved")] {
            Mark::new("/new", "partita serve --data /new").write(data, name).unwrap();
            let refused = check(data, false).unwrap_err();
            for part in [words, "partita serve --data /new", "--accept-migration"] {
                assert!(refused.contains(part), "{refused}");
            }
            assert_eq!(check(data, true), Ok(()));
            remove(data, name).unwrap();
            assert_eq!(check(data, false), Ok(()));
        }
        fs::write(data.join(MOVED), "torn").unwrap();
        assert!(check(data, false).unwrap_err().contains("MOVED"), "what can't be read is no leave to serve");
    }
}
