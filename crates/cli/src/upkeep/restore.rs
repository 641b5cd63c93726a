//! `partita restore`: copies a backup to a new data directory.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Args;

use super::check::{self, CheckError};
use super::files::{self, COMMITTED_FILE, CONTENT, DATABASE, FORMAT_FILE};
use super::progress::{ProgressLine, size};
use store::private_directory;
use thiserror::Error;

#[derive(Args, Debug)]
pub struct RestoreFlags {
    /// The backup, such as /backups/2026-11-16T03-20-11Z
    backup: PathBuf,
    /// The new data directory; must be missing or empty
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA")]
    data: PathBuf,
    /// Do not verify the backup first
    #[arg(long)]
    no_verify: bool,
}

/// Holds files during the copy. It is inside the new data directory, because that may be a separate file system.
const PARTIAL: &str = "restore.partial";

/// Why there is no new data directory.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(
        "{} is not a complete backup; name one of the directories that `partita backup` has made",
        .backup.display()
    )]
    NotWhole { backup: PathBuf },
    #[error("can't use {}: {source}; check its path and its permissions", .data.display())]
    Unusable { data: PathBuf, source: io::Error },
    #[error(
        "{} is not empty (it contains {name:?}); restore to a directory that is missing or empty, or move \
         this one away",
        .data.display()
    )]
    Occupied { data: PathBuf, name: String },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(
        "the backup {} is damaged; restore another one, or save what is readable of this one: \
         partita check --data {} --salvage {}\n{damage}",
        .backup.display(), .backup.display(), .data.display()
    )]
    Damaged { backup: PathBuf, data: PathBuf, damage: String },
    #[error("could not restore to {}: {source}; it is not a store yet, so you can run the command again", .data.display())]
    Unwritten { data: PathBuf, source: io::Error },
}

pub fn run(flags: &RestoreFlags) -> Result<String, RestoreError> {
    let (backup, data) = (&flags.backup, &flags.data);
    if !backup.join(FORMAT_FILE).is_file() || backup.extension().is_some_and(|end| end == "partial") {
        return Err(RestoreError::NotWhole { backup: backup.clone() });
    }
    make_room(data)?;
    if !flags.no_verify {
        let report = check::check(backup, "checking the backup")?;
        if !report.is_sound() {
            let (backup, data) = (backup.clone(), data.clone());
            return Err(RestoreError::Damaged { backup, data, damage: check::damage_text(&report) });
        }
    }
    let bytes =
        copy(backup, data).map_err(|source| RestoreError::Unwritten { data: data.clone(), source })?;
    Ok(format!(
        "{} restored to {}; serve it with: partita serve --data {}",
        size(bytes),
        data.display(),
        data.display()
    ))
}

/// Removes what an interrupted restore has left; refuses a directory with other files.
fn make_room(data: &Path) -> Result<(), RestoreError> {
    let failed = |source| RestoreError::Unusable { data: data.to_owned(), source };
    let entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let names: Vec<_> = entries
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?
        .iter()
        .map(|entry| entry.file_name())
        .collect();
    let is_interrupted =
        names.iter().any(|name| name == PARTIAL) && !names.iter().any(|name| name == FORMAT_FILE);
    let ours = [PARTIAL, DATABASE, CONTENT, COMMITTED_FILE];
    let in_the_way = names
        .iter()
        .find(|name| *name != "lost+found" && !(is_interrupted && ours.iter().any(|ours| *name == ours)));
    if let Some(name) = in_the_way {
        let name = name.to_string_lossy().into_owned();
        return Err(RestoreError::Occupied { data: data.to_owned(), name });
    }
    if is_interrupted {
        for directory in [DATABASE, CONTENT, PARTIAL] {
            files::remove_directory(&data.join(directory)).map_err(failed)?;
        }
        match fs::remove_file(data.join(COMMITTED_FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(())
}

/// `FORMAT` comes last: without it the directory is not a store, with it the store is complete.
fn copy(backup: &Path, data: &Path) -> io::Result<u64> {
    let all = files::of_store(backup)?;
    let total = all.iter().map(|file| file.bytes).sum();
    let partial = data.join(PARTIAL);
    for directory in files::DIRECTORIES {
        private_directory::create(&partial.join(directory))?;
    }
    let mut progress = ProgressLine::new("copying");
    let mut done = 0;
    for file in &all {
        files::copy(&backup.join(&file.path), &partial.join(&file.path))?;
        done += file.bytes;
        progress.show(done, total, "");
    }
    files::sync_all(&partial)?;
    for name in [DATABASE, CONTENT, COMMITTED_FILE] {
        if partial.join(name).exists() {
            fs::rename(partial.join(name), data.join(name))?;
        }
    }
    files::sync(data)?;
    fs::rename(partial.join(FORMAT_FILE), data.join(FORMAT_FILE))?;
    fs::remove_dir(&partial)?;
    files::sync(data)?;
    // The directory itself may be new.
    if let Some(parent) = data.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        files::sync(parent)?;
    }
    Ok(total)
}
