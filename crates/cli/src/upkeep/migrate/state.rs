//! The state of a move between runs, in the directory `moving` of the data directory: the other store, the accounts, and
//! the snapshot that the target holds.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{MigrateError, Result};
use crate::upkeep::{files, marks};
use store::private_directory;

const DIRECTORY: &str = "moving";
const FILE: &str = "state";

#[derive(Debug)]
pub struct MigrationState {
    directory: PathBuf,
    kept: StateFile,
    /// Held for the whole run: only one move at a time.
    _lock: File,
}

#[derive(Debug, Deserialize, Serialize)]
struct StateFile {
    /// The other store.
    place: String,
    /// Accounts that this move may overwrite in the target: they were not there before, or --replace was given.
    claimed: BTreeSet<String>,
    /// A comparison has found other content in the target, and no pass has ended since.
    #[serde(default)]
    doubted: bool,
    /// The snapshot that the target holds; `None` during a pass.
    held: Option<TargetSnapshot>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct TargetSnapshot {
    pub snapshot: u64,
    /// The accounts of the move; empty for all. The snapshot is valid only for these.
    pub accounts: Vec<String>,
}

impl MigrationState {
    /// Continues the move of an earlier run, if the other store is the same.
    pub fn open(data: &Path, place: &str) -> Result<Self> {
        let directory = data.join(DIRECTORY);
        let unusable = |source| MigrateError::Unusable { directory: directory.clone(), source };
        private_directory::create(&directory).map_err(unusable)?;
        files::sync(data).map_err(unusable)?;
        let lock = File::open(&directory).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(MigrateError::AtWork { data: data.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let kept = match fs::read_to_string(directory.join(FILE)) {
            Ok(text) => toml::from_str(&text).map_err(|error| MigrateError::StateDamaged {
                file: directory.join(FILE),
                directory: directory.clone(),
                source: Box::new(error),
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                StateFile { place: place.to_owned(), claimed: BTreeSet::new(), doubted: false, held: None }
            }
            Err(error) => return Err(unusable(error)),
        };
        if kept.place != place {
            return Err(MigrateError::OtherMove { begun: kept.place, asked: place.to_owned(), directory });
        }
        let state = Self { directory, kept, _lock: lock };
        state.remove_snapshots()?;
        Ok(state)
    }

    pub fn is_claimed(&self, account: &str) -> bool {
        self.kept.claimed.contains(account)
    }

    pub fn claimed(&self) -> impl Iterator<Item = &str> {
        self.kept.claimed.iter().map(String::as_str)
    }

    pub fn claim(&mut self, account: &str) -> Result<()> {
        self.kept.claimed.insert(account.to_owned());
        self.save()
    }

    /// The snapshot that the target holds of these accounts, if it is known and still exists.
    pub fn held(&self, accounts: &[String]) -> Option<u64> {
        let held = self.kept.held.as_ref().filter(|held| held.accounts == accounts)?;
        self.snapshot(held.snapshot).is_dir().then_some(held.snapshot)
    }

    /// Records what the target holds: `None` before a pass or after a failed comparison, the snapshot after a pass.
    pub fn hold(&mut self, held: Option<TargetSnapshot>) -> Result<()> {
        if self.kept.held == held {
            return Ok(());
        }
        self.kept.held = held;
        self.save()
    }

    /// Whether the target may have other content where it has the same rows.
    pub fn is_doubted(&self) -> bool {
        self.kept.doubted
    }

    pub fn doubt(&mut self, is_doubted: bool) -> Result<()> {
        if self.kept.doubted == is_doubted {
            return Ok(());
        }
        self.kept.doubted = is_doubted;
        self.save()
    }

    /// The directory of the snapshot with this number.
    pub fn snapshot(&self, number: u64) -> PathBuf {
        self.directory.join(number.to_string())
    }

    /// A number that no snapshot has.
    pub fn next_number(&self) -> u64 {
        let names = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        numbers.max().map_or(1, |last| last + 1)
    }

    /// Removes all snapshots except the one that the target holds.
    pub fn remove_snapshots(&self) -> Result<()> {
        let removed = self.remove_all_but_held();
        removed.map_err(|source| MigrateError::Snapshots { directory: self.directory.clone(), source })
    }

    fn remove_all_but_held(&self) -> io::Result<()> {
        let held = self.kept.held.as_ref().map(|held| held.snapshot);
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            if number.is_some() && number != held {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes the state: the move is complete.
    pub fn forget(self) -> Result<()> {
        fs::remove_dir_all(&self.directory).map_err(|source| self.unusable(source))
    }

    fn save(&self) -> Result<()> {
        let text = toml::to_string(&self.kept).map_err(|error| self.unusable(io::Error::other(error)))?;
        marks::replace(&self.directory.join(FILE), text.as_bytes()).map_err(|source| self.unusable(source))
    }

    fn unusable(&self, source: io::Error) -> MigrateError {
        MigrateError::Unusable { directory: self.directory.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn state(data: &TempDir) -> MigrationState {
        MigrationState::open(data.path(), "/new").unwrap()
    }

    #[test]
    fn a_later_run_finds_the_accounts_and_the_snapshot() {
        let data = TempDir::new().unwrap();
        let mut first = state(&data);
        assert_eq!((first.next_number(), first.held(&[])), (1, None));
        for number in [1, 2] {
            fs::create_dir(first.snapshot(number)).unwrap();
        }
        first.claim("shop").unwrap();
        first.hold(Some(TargetSnapshot { snapshot: 2, accounts: vec![] })).unwrap();
        drop(first);
        let second = state(&data);
        assert!(second.is_claimed("shop") && !second.is_claimed("other"));
        assert!(!second.is_doubted());
        assert_eq!(second.held(&[]), Some(2));
        assert_eq!(second.held(&["shop".to_owned()]), None, "it is not valid for other accounts");
        assert!(!second.snapshot(1).exists() && second.next_number() == 3);
        fs::remove_dir(second.snapshot(2)).unwrap();
        assert_eq!(second.held(&[]), None);
        second.forget().unwrap();
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_later_run_knows_whether_the_content_is_doubted() {
        let data = TempDir::new().unwrap();
        for is_doubted in [true, false] {
            state(&data).doubt(is_doubted).unwrap();
            assert_eq!(state(&data).is_doubted(), is_doubted);
        }
        // As an earlier build writes it.
        let file = data.path().join(DIRECTORY).join(FILE);
        fs::write(file, "place = \"/new\"\nclaimed = [\"shop\"]\n").unwrap();
        assert!(state(&data).is_claimed("shop") && !state(&data).is_doubted());
    }

    #[test]
    fn a_second_run_or_another_target_is_refused() {
        let data = TempDir::new().unwrap();
        let mut first = state(&data);
        assert!(matches!(MigrationState::open(data.path(), "/new"), Err(MigrateError::AtWork { .. })));
        first.claim("shop").unwrap();
        drop(first);
        let refused = MigrationState::open(data.path(), "/elsewhere").unwrap_err().to_string();
        assert!(refused.contains("/new") && refused.contains("moving"), "{refused}");
    }
}
