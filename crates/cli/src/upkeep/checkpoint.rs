//! Checkpoints of a running server: how a command asks for one, and how it takes one over.
//!
//! The server makes a checkpoint at the same place each time, and removes the one before it unless that is locked.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use admin::Command;
use engine_embedded::Checkpoint;
use store::Fault;
use thiserror::Error;

use crate::control::{self, AskError};

/// Why this command can't lock a directory.
#[derive(Debug, Error)]
pub enum TurnError {
    #[error("can't open {}: {source}; check its path and its permissions", .directory.display())]
    Unreadable { directory: PathBuf, source: io::Error },
    #[error("another backup of or in {} is in progress; wait for it", .directory.display())]
    Taken { directory: PathBuf },
    #[error("can't lock {}: {source}; its file system must support locks", .directory.display())]
    NoLock { directory: PathBuf, source: io::Error },
}

/// Why there is no checkpoint to make a backup of.
#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the server gave an unexpected answer: {answer:?}; is it of another version?")]
    Strange { answer: String },
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(
        "the checkpoint {} is not the one that was made: another command has replaced it meanwhile; run the command again",
        .checkpoint.display()
    )]
    Replaced { checkpoint: PathBuf },
}

/// Locks a directory: two backups at the same time would remove each other's partial files.
pub fn take_turn(directory: &Path) -> Result<File, TurnError> {
    let owned = || directory.to_owned();
    let file =
        File::open(directory).map_err(|source| TurnError::Unreadable { directory: owned(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TurnError::Taken { directory: owned() }),
        Err(TryLockError::Error(source)) => Err(TurnError::NoLock { directory: owned(), source }),
    }
}

/// Made by the server that listens at this socket.
pub fn ask_for_checkpoint(socket: &Path) -> Result<Checkpoint, CheckpointError> {
    let answer = control::ask(socket, Command::Checkpoint)?;
    let parsed = answer.split_once(' ').and_then(|(commits, path)| Some((commits.parse().ok()?, path)));
    match parsed {
        Some((commits, path)) => Ok(Checkpoint { directory: path.into(), commits }),
        None => Err(CheckpointError::Strange { answer }),
    }
}

/// Locks the checkpoint, so that no other command replaces it before it is moved or copied. Before that another one may have:
/// then what is there may be unfinished.
pub fn hold(checkpoint: &Checkpoint) -> Result<File, CheckpointError> {
    let replaced = || CheckpointError::Replaced { checkpoint: checkpoint.directory.clone() };
    let lock = match take_turn(&checkpoint.directory) {
        // It is removed before the next one is made.
        Err(TurnError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Err(replaced());
        }
        taken => taken?,
    };
    match is_whole(checkpoint, &lock) {
        Ok(true) => Ok(lock),
        Ok(false) => Err(replaced()),
        Err(source) => Err(TurnError::Unreadable { directory: checkpoint.directory.clone(), source }.into()),
    }
}

/// Whether this lock is that of the directory, which has all that the checkpoint must have.
fn is_whole(Checkpoint { directory, commits }: &Checkpoint, lock: &File) -> io::Result<bool> {
    let read = || -> io::Result<bool> {
        let (locked, found) = (lock.metadata()?, fs::metadata(directory)?);
        let is_locked = (locked.dev(), locked.ino()) == (found.dev(), found.ino());
        // The format is written last.
        Ok(is_locked
            && engine_embedded::stored_format(directory)?.is_some()
            && engine_embedded::stored_commits(directory)? >= Some(*commits))
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upkeep::files;

    #[test]
    fn only_a_whole_checkpoint_with_all_commits_is_held() {
        let data = tempfile::TempDir::new().unwrap();
        let directory = data.path().join("backup-staging");
        let held = |commits| hold(&Checkpoint { directory: directory.clone(), commits });
        let is_replaced = |commits| matches!(held(commits), Err(CheckpointError::Replaced { .. }));
        assert!(is_replaced(7), "it is removed");
        fs::create_dir(&directory).unwrap();
        assert!(is_replaced(7), "it is empty");
        let committed = [7_u64.to_le_bytes(), (!7_u64).to_le_bytes()].concat();
        fs::write(directory.join(files::COMMITTED_FILE), committed).unwrap();
        assert!(is_replaced(7), "it has no format");
        fs::write(directory.join(files::FORMAT_FILE), "").unwrap();
        assert!(is_replaced(7), "its format is about to be written");
        fs::write(directory.join(files::FORMAT_FILE), "partita-store 2\n").unwrap();
        assert!(is_replaced(8), "it is older");
        let lock = held(7).unwrap();
        assert!(matches!(held(7), Err(CheckpointError::Turn(TurnError::Taken { .. }))));
        drop(lock);
        held(6).unwrap();
    }

    #[test]
    fn a_lock_of_a_directory_that_was_removed_is_not_that_of_the_next() {
        let data = tempfile::TempDir::new().unwrap();
        let directory = data.path().join("backup-staging");
        let make = || {
            fs::create_dir(&directory).unwrap();
            let committed = [0_u64.to_le_bytes(), (!0_u64).to_le_bytes()].concat();
            fs::write(directory.join(files::COMMITTED_FILE), committed).unwrap();
            fs::write(directory.join(files::FORMAT_FILE), "partita-store 2\n").unwrap();
        };
        let checkpoint = Checkpoint { directory: directory.clone(), commits: 0 };
        make();
        let lock = take_turn(&directory).unwrap();
        assert!(is_whole(&checkpoint, &lock).unwrap());
        fs::remove_dir_all(&directory).unwrap();
        make();
        assert!(!is_whole(&checkpoint, &lock).unwrap());
    }
}
