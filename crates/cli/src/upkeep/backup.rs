//! `partita backup`: a verified copy of a store in its own directory, made while the server runs.
//!
//! The server only makes a checkpoint beside its data; this process does the slow work. A backup gets its name when it is
//! complete and durable. Until then it is called `NAME.partial`, and the next run removes it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config;
use crate::control;
use clap::Args;
use engine_embedded::{Checkpoint, EmbeddedEngine, OpenError, Options};
use model::DateTime;

use super::check::{self, CheckError};
use super::checkpoint::{CheckpointError, TurnError, ask_for_checkpoint, hold, take_turn};
use super::files::{self, BACKUP_FILE, StoreFile};
use super::progress::{ProgressLine, size};
use store::private_directory;
use thiserror::Error;

#[derive(Args, Debug)]
pub struct BackupFlags {
    /// The directory for backups; each backup is a directory in it, named after its time
    backups: PathBuf,
    /// The data directory
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA", default_value = config::DATA)]
    data: PathBuf,
    /// The running server's control socket, if it is not in its data directory
    #[arg(long, value_name = "SOCKET", env = "PARTITA_CONTROL")]
    control: Option<PathBuf>,
    /// When this backup is complete, delete all but the newest N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Copy files even where hard links are possible
    #[arg(long)]
    copy: bool,
    /// Do not verify the backup
    #[arg(long)]
    no_verify: bool,
}

pub const HELP: &str = "\
On the file system of the data, a backup consists of hard links: it takes seconds and no space, but does not survive
the loss of that disk. On another file system, or with --copy, files are copied, except those that the previous backup
already has. `partita restore` restores a backup; `partita check --data BACKUP` verifies it again.";

const PARTIAL: &str = ".partial";

/// Why there is no backup.
#[derive(Debug, Error)]
pub enum BackupError {
    #[error("can't use {}: {source}; check its path, its permissions and its free space", .backups.display())]
    Unusable { backups: PathBuf, source: io::Error },
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(
        "can't find the server's checkpoint {}; run this command on the server's machine",
        .checkpoint.display()
    )]
    OutOfSight { checkpoint: PathBuf },
    #[error("there is no store in {}; name its data directory with --data", .data.display())]
    NoStore { data: PathBuf },
    #[error(
        "a server has {} open but does not answer at {}; name its socket with --control",
        .directory.display(), .socket.display()
    )]
    SocketUnknown { directory: PathBuf, socket: PathBuf },
    #[error(transparent)]
    Open(OpenError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("could not write the backup to {}: {source}; check its permissions and its free space", .backups.display())]
    Unwritten { backups: PathBuf, source: io::Error },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error("no backup was made, because the store, or the copy of it, is damaged.\n{damage}")]
    Damaged { damage: String },
    #[error("{} is complete, but older backups could not be deleted: {source}; delete them by hand", .backup.display())]
    NotDeleted { backup: PathBuf, source: io::Error },
}

pub fn run(flags: &BackupFlags) -> Result<String, BackupError> {
    let backups = &flags.backups;
    let unusable = |source| BackupError::Unusable { backups: backups.clone(), source };
    private_directory::create(backups).map_err(unusable)?;
    let _turn = take_turn(backups)?;
    // With --control, only the server has to know where its data is.
    let _turn_of_store = if flags.data.is_dir() { Some(take_turn(&flags.data)?) } else { None };
    remove_partial(backups).map_err(unusable)?;

    let checkpoint = checkpoint(flags)?;
    if !checkpoint.directory.is_dir() {
        return Err(BackupError::OutOfSight { checkpoint: checkpoint.directory });
    }
    let _held = hold(&checkpoint)?;
    let made = make(flags, &checkpoint);
    // If it was moved, there is nothing to remove.
    let _ = files::remove_directory(&checkpoint.directory);
    let (name, shown) = made.inspect_err(|_| {
        // If this fails, the next run removes it.
        let _ = remove_partial(backups);
    })?;
    let mut text = format!("{}: {shown}", backups.join(&name).display());
    if let Some(keep) = flags.keep {
        let removed = keep_newest(backups, keep as usize)
            .map_err(|source| BackupError::NotDeleted { backup: backups.join(&name), source })?;
        for name in removed {
            text.push_str(&format!("\n{}: deleted", backups.join(name).display()));
        }
    }
    Ok(text)
}

/// Made by the running server, or by this process if no server runs.
fn checkpoint(flags: &BackupFlags) -> Result<Checkpoint, BackupError> {
    let socket = flags.control.clone().unwrap_or_else(|| flags.data.join(control::SOCKET));
    if flags.control.is_some() || control::is_answered(&socket) {
        return Ok(ask_for_checkpoint(&socket)?);
    }
    // Opening would create a store in an empty directory.
    if !flags.data.join(files::FORMAT_FILE).exists() {
        return Err(BackupError::NoStore { data: flags.data.clone() });
    }
    let engine = EmbeddedEngine::open(Options::new(&flags.data)).map_err(|error| match error {
        OpenError::InUse { directory } => BackupError::SocketUnknown { directory, socket },
        other => BackupError::Open(other),
    })?;
    Ok(engine.checkpoint().map_err(CheckpointError::Fault)?)
}

/// Returns the name of the complete backup, and a description.
fn make(flags: &BackupFlags, checkpoint: &Checkpoint) -> Result<(String, String), BackupError> {
    let backups = &flags.backups;
    let failed = |source| BackupError::Unwritten { backups: backups.clone(), source };
    let (taken, name) = free_name(backups).map_err(failed)?;
    let partial = backups.join(format!("{name}{PARTIAL}"));
    let how = match if flags.copy { None } else { moved(&checkpoint.directory, &partial).map_err(failed)? } {
        Some(()) => "hard links to the store's files".to_owned(),
        None => copied(flags, &checkpoint.directory, &partial).map_err(failed)?,
    };
    // Copied files are not synced yet; of linked files, RocksDB may not have synced all.
    files::sync_all(&partial).map_err(failed)?;

    let (commits, verified) = if flags.no_verify {
        (checkpoint.commits, "not checked".to_owned())
    } else {
        let report = check::check(&partial, "checking the backup")?;
        if !report.is_sound() {
            return Err(BackupError::Damaged { damage: check::damage_text(&report) });
        }
        (report.commits, format!("checked, {} entities", report.entities()))
    };
    let note = format!(
        "taken = \"{}\"\nversion = \"{}\"\ncommits = {commits}\n",
        taken.to_seconds_string(),
        env!("CARGO_PKG_VERSION")
    );
    let mut file = File::create(partial.join(BACKUP_FILE)).map_err(failed)?;
    file.write_all(note.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    files::sync(&partial).map_err(failed)?;
    fs::rename(&partial, backups.join(&name)).map_err(failed)?;
    files::sync(backups).map_err(failed)?;
    Ok((name, format!("{how}, {verified}")))
}

/// The time, and a name after it or, if the clock was set back, after the newest backup: names are in the order in
/// which backups were made, so that the oldest names are those to delete.
fn free_name(backups: &Path) -> io::Result<(DateTime, String)> {
    let now = DateTime::now();
    let newest = whole(backups)?.pop().and_then(|name| time_of(&name));
    let mut time = newest.map_or(now, |newest| now.max(newest.plus(Duration::from_secs(1))));
    loop {
        let name = name_of(time);
        if !backups.join(&name).exists() {
            return Ok((now, name));
        }
        time = time.plus(Duration::from_secs(1));
    }
}

/// With `-` in place of `:`, which some file systems don't allow.
fn name_of(time: DateTime) -> String {
    time.to_seconds_string().replace(':', "-")
}

/// `None` if the two are on different file systems.
fn moved(from: &Path, to: &Path) -> io::Result<Option<()>> {
    match fs::rename(from, to) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => Ok(None),
        Err(error) => Err(error),
    }
}

fn copied(flags: &BackupFlags, from: &Path, to: &Path) -> io::Result<String> {
    let all = files::of_store(from)?;
    let total = all.iter().map(|file| file.bytes).sum();
    let earlier = whole(&flags.backups)?.pop().map(|name| flags.backups.join(name));
    for directory in files::DIRECTORIES {
        private_directory::create(&to.join(directory))?;
    }
    let mut progress = ProgressLine::new("copying");
    let (mut done, mut copied) = (0, 0);
    for file in &all {
        let (source, target) = (from.join(&file.path), to.join(&file.path));
        let old = earlier.as_ref().map(|earlier| earlier.join(&file.path));
        if !old.is_some_and(|old| linked(file, &source, &old, &target, !flags.no_verify)) {
            files::copy(&source, &target)?;
            copied += file.bytes;
        }
        done += file.bytes;
        progress.show(done, total, "");
    }
    Ok(format!("{} copied, {} shared with the previous backup", size(copied), size(total - copied)))
}

/// Links the file from the earlier backup, if that has the same file.
fn linked(file: &StoreFile, source: &Path, old: &Path, target: &Path, compare_all: bool) -> bool {
    files::is_finished_file(&file.path)
        && files::are_equal(source, old, compare_all).unwrap_or(false)
        && fs::hard_link(old, target).is_ok()
}

/// The names of complete backups, the oldest first.
fn whole(backups: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(backups)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_backup_name(&name) && entry.path().join(BACKUP_FILE).is_file() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn is_backup_name(name: &str) -> bool {
    time_of(name).is_some()
}

/// The time that a backup of this name is named after.
fn time_of(name: &str) -> Option<DateTime> {
    let mut text = name.to_owned().into_bytes();
    if text.len() != "2026-11-16T03-20-11Z".len() || text[13] != b'-' || text[16] != b'-' {
        return None;
    }
    (text[13], text[16]) = (b':', b':');
    DateTime::parse(std::str::from_utf8(&text).ok()?)
}

fn keep_newest(backups: &Path, keep: usize) -> io::Result<Vec<String>> {
    let mut names = whole(backups)?;
    names.truncate(names.len().saturating_sub(keep));
    for name in &names {
        // Renamed first, so that an interrupted deletion does not leave what looks like a complete backup.
        let partial = backups.join(format!("{name}{PARTIAL}"));
        fs::rename(backups.join(name), &partial)?;
        fs::remove_dir_all(&partial)?;
    }
    files::sync(backups)?;
    Ok(names)
}

fn remove_partial(backups: &Path) -> io::Result<()> {
    for entry in fs::read_dir(backups)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(|name| name.strip_suffix(PARTIAL)).is_some_and(is_backup_name) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_names_of_backups() {
        let name = DateTime::now().to_seconds_string().replace(':', "-");
        for (name, expected) in [
            (name.as_str(), true),
            ("2026-11-16T03-20-11Z", true),
            ("2026-13-16T03-20-11Z", false),
            ("2026-11-16T03:20:11Z", false),
            ("2026-11-16T03-20-11Z.partial", false),
            ("important", false),
            ("", false),
        ] {
            assert_eq!(is_backup_name(name), expected, "{name}");
        }
    }
}
