//! Upgrades a store of an older format to the format of this version, when it is opened.
//!
//! Only the meta records are rewritten; they are few. Rows stay as they are: their first byte says how to read them.
//!
//! The steps are ordered so that the process may end anywhere between or within them:
//!
//! | step | what is on the disk before it | what the next open does |
//! |---|---|---|
//! | `Checkpoint` | `FORMAT` 1, perhaps a part of a checkpoint under its draft name | begins again |
//! | `KeepCheckpoint` | the whole checkpoint under its draft name | begins again |
//! | `Mark` | the whole checkpoint under its own name | begins again: an older program may have written since |
//! | `Rewrite` | `FORMAT` 2, records of both formats; older programs refuse the store | continues here |
//! | `Flush`, `Verify` | all records are in the new format | continues here |
//! | `Seal` | the same | continues here |
//! | `Clean` | the checkpoint under its draft name again, perhaps a part of it | removes it |
//!
//! So `FORMAT` 2 with a checkpoint under its own name is an upgrade that is not sealed. Until then the checkpoint is
//! a whole store of the older format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{DB, IteratorMode, WriteBatch, WriteOptions};
use store::Fault;
use tracing::{info, warn};

use crate::checkpoint;
use crate::commit::CommittedFile;
use crate::directory::DataDirectory;
use crate::layout::{self, CommitRecord};
use crate::open::{self, OpenError};
use crate::records::Records;

/// Records that are rewritten with one commit.
const RECORDS_PER_COMMIT: usize = 1000;

/// The steps of an upgrade, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeStep {
    Checkpoint,
    KeepCheckpoint,
    Mark,
    /// A commit that rewrites this many records.
    Rewrite(usize),
    Flush,
    Verify,
    Seal,
    Clean,
}

/// How an upgrade runs: how many records per commit, and a callback before each step that may end it there.
pub struct UpgradePace<'a> {
    pub records_per_commit: usize,
    pub before: Box<dyn FnMut(UpgradeStep) -> Result<(), OpenError> + 'a>,
}

impl UpgradePace<'_> {
    pub fn usual() -> Self {
        Self { records_per_commit: RECORDS_PER_COMMIT, before: Box::new(|_| Ok(())) }
    }
}

/// Whether the store must be upgraded, or an upgrade finished. Outdated records are a reason too: someone may have
/// removed the checkpoint of an unfinished upgrade.
pub fn is_needed(directory: &DataDirectory, records: &Records) -> bool {
    directory.format < layout::FORMAT_VERSION || kept(&directory.path).exists() || records.outdated > 0
}

/// Removes the draft of a checkpoint that an interrupted upgrade has left.
pub fn clear(directory: &Path) {
    match fs::remove_dir_all(draft(directory)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!(%error, "could not remove what an upgrade has left");
        }
        _ => {}
    }
}

pub struct Upgrade<'a, 'b> {
    pub directory: &'a mut DataDirectory,
    pub rocks: &'a DB,
    pub committed: &'a CommittedFile,
    pub pace: &'a mut UpgradePace<'b>,
}

impl Upgrade<'_, '_> {
    /// Upgrades the store to the format of this version. Takes its records and returns the same records, except for
    /// the number of the last commit.
    pub fn run(mut self, before: Records) -> Result<Records, OpenError> {
        let path = self.directory.path.clone();
        let (from, to) = (self.directory.format, layout::FORMAT_VERSION);
        if from < to {
            info!(directory = %path.display(), from, to, "upgrading the store");
            self.keep_checkpoint(from)?;
            self.step(UpgradeStep::Mark)?;
            self.directory.mark_format().map_err(|error| self.unwritable(error))?;
        } else {
            info!(directory = %path.display(), to, "finishing an interrupted upgrade of the store");
        }
        let records = self.rewrite(before.last.unwrap_or(CommitRecord::NONE))?;
        self.step(UpgradeStep::Flush)?;
        let flushed = self.rocks.flush_cf(open::meta_family(self.rocks, &path)?);
        flushed.map_err(|error| open::open_error(&path, &error))?;
        self.step(UpgradeStep::Verify)?;
        let after = self.verify(before)?;
        self.step(UpgradeStep::Seal)?;
        self.seal()?;
        info!(directory = %path.display(), format = to, records, "store upgraded");
        self.step(UpgradeStep::Clean)?;
        clear(&path);
        Ok(after)
    }

    /// Keeps a checkpoint of the store. Its name shows that an upgrade has begun.
    fn keep_checkpoint(&mut self, format: u32) -> Result<(), OpenError> {
        let path = &self.directory.path.clone();
        let (draft, kept) = (draft(path), kept(path));
        self.step(UpgradeStep::Checkpoint)?;
        for left in [&draft, &kept] {
            remove(left).map_err(|error| self.unwritable(error))?;
        }
        let meta = open::meta_family(self.rocks, path)?;
        checkpoint::make(self.rocks, meta, path, &draft, format).map_err(|fault| self.failed(fault))?;
        self.step(UpgradeStep::KeepCheckpoint)?;
        fs::rename(&draft, &kept).map_err(|error| self.unwritable(error))?;
        self.directory.sync()?;
        info!(checkpoint = %kept.display(), "the store as it was is kept until the upgrade is sealed");
        Ok(())
    }

    /// Rewrites the records of older formats. Each commit has its number, so that a lost commit is noticed.
    fn rewrite(&mut self, mut last: CommitRecord) -> Result<usize, OpenError> {
        let path = self.directory.path.clone();
        let meta = open::meta_family(self.rocks, &path)?;
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        let mut rewritten = 0;
        // The iterator reads from a snapshot, so it does not see the records that are rewritten here.
        let mut outdated = outdated(self.rocks, &path)?.peekable();
        while outdated.peek().is_some() {
            let (mut batch, mut records) = (WriteBatch::default(), 0);
            for entry in outdated.by_ref().take(self.pace.records_per_commit) {
                let Outdated { key, newest: (newest_key, newest_value) } = entry?;
                if newest_key != *key {
                    batch.delete_cf(meta, key);
                }
                batch.put_cf(meta, newest_key, newest_value);
                records += 1;
            }
            last.counter += 1;
            batch.put_cf(meta, layout::COMMIT_KEY, last.encode());
            self.step(UpgradeStep::Rewrite(records))?;
            self.rocks.write_opt(batch, &synced).map_err(|error| open::open_error(&path, &error))?;
            self.committed.write(last.counter).map_err(|error| self.unwritable(error))?;
            rewritten += records;
            info!(records = rewritten, "meta records rewritten");
        }
        Ok(rewritten)
    }

    /// Reads all records again and compares them with those from before the upgrade.
    fn verify(&self, before: Records) -> Result<Records, OpenError> {
        let path = &self.directory.path;
        let after = open::read_meta(self.rocks, path)?;
        let stamp = |records: &Records| records.last.unwrap_or(CommitRecord::NONE).last_stamp;
        let is_same_stamp = stamp(&before) == stamp(&after);
        // Only the number of the last commit may differ, and nothing may be outdated any more.
        if !is_same_stamp || (Records { last: after.last, outdated: 0, ..before }) != after {
            let detail = format!(
                "the upgrade changed what the meta records say; the store as it was is in {}",
                kept(path).display()
            );
            return Err(OpenError::Damaged { directory: path.clone(), missing: None, detail, source: None });
        }
        Ok(after)
    }

    /// Ends the upgrade: after this the checkpoint is only removed.
    fn seal(&self) -> Result<(), OpenError> {
        let path = &self.directory.path;
        remove(&draft(path)).map_err(|error| self.unwritable(error))?;
        match fs::rename(kept(path), draft(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.unwritable(error)),
            _ => self.directory.sync(),
        }
    }

    fn step(&mut self, step: UpgradeStep) -> Result<(), OpenError> {
        (self.pace.before)(step)
    }

    fn unwritable(&self, source: io::Error) -> OpenError {
        OpenError::Unwritable { directory: self.directory.path.clone(), source }
    }

    fn failed(&self, source: Fault) -> OpenError {
        OpenError::NotUpgraded { directory: self.directory.path.clone(), source }
    }
}

/// A record that is not as this version writes it.
struct Outdated {
    key: Box<[u8]>,
    newest: (Vec<u8>, Vec<u8>),
}

fn outdated<'a>(
    rocks: &'a DB,
    directory: &'a Path,
) -> Result<impl Iterator<Item = Result<Outdated, OpenError>> + 'a, OpenError> {
    let entries = rocks.iterator_cf(open::meta_family(rocks, directory)?, IteratorMode::Start);
    Ok(entries.filter_map(move |entry| match entry {
        Ok((key, value)) => layout::is_outdated(&key, &value).then(|| {
            let newest = layout::in_newest_layout(&key, &value);
            let newest = newest.map_err(|why| open::unusable_record(directory, &key, &why))?;
            Ok(Outdated { key, newest })
        }),
        Err(error) => Some(Err(open::open_error(directory, &error))),
    }))
}

fn kept(directory: &Path) -> PathBuf {
    directory.join(layout::BEFORE_UPGRADE_DIRECTORY)
}

fn draft(directory: &Path) -> PathBuf {
    directory.join(layout::BEFORE_UPGRADE_DRAFT_DIRECTORY)
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
