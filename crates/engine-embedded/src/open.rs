//! Opens the database of a data directory, and reads its meta records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forensics::log_tail;
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DEFAULT_COLUMN_FAMILY_NAME, ErrorKind, IteratorMode,
};
use store::Fault;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::catalog::Catalog;
use crate::checkpoint;
use crate::commit::CommittedFile;
use crate::content_files;
use crate::counters::LiveCounters;
use crate::database::{self, DatabaseState};
use crate::db::Db;
use crate::directory::DataDirectory;
use crate::fields::Unusable;
use crate::layout::{self, CommitRecord, TableId};
use crate::options::{Options, Tuning};
use crate::records::Records;
use crate::upgrade::{self, Upgrade, UpgradePace};

/// Why a directory could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the data directory {} is in use by another process; stop that process or choose another directory",
        .directory.display()
    )]
    InUse { directory: PathBuf },
    #[error(
        "the data directory {} is in store format {found}, but this version reads no format above {supported}; \
         use the version that wrote it, or a newer one",
        .directory.display()
    )]
    NewerFormat { directory: PathBuf, found: u32, supported: u32 },
    /// The store has a known format, but a record with a field that a later version added.
    #[error(
        "the data directory {} was used by a newer version: the meta record {record} can't be used, because {why}; \
         use the version that wrote it, or a newer one",
        .directory.display()
    )]
    NewerRecord { directory: PathBuf, record: String, why: String },
    #[error(
        "the data directory {} was used by a newer version: its database has the column family {family}; use the \
         version that wrote it, or a newer one",
        .directory.display()
    )]
    NewerFamily { directory: PathBuf, family: String },
    #[error(
        "the directory {} holds something that is not a Partita store; choose an empty or a new directory",
        .directory.display()
    )]
    NotPartita { directory: PathBuf },
    #[error("there is no Partita store in {}; check its path", .directory.display())]
    NoStore { directory: PathBuf },
    #[error(
        "the data directory {} cannot be read and written: {source}; check its path, owner, permissions and \
         free space",
        .directory.display()
    )]
    Unwritable { directory: PathBuf, source: std::io::Error },
    /// `missing`: how many acknowledged commits, if that is what is wrong and it is known.
    #[error("the data directory {} is damaged: {detail}", .directory.display())]
    Damaged { directory: PathBuf, missing: Option<u64>, detail: String, source: Option<rocksdb::Error> },
    #[error("the data directory {} could not be opened by RocksDB: {source}; report this", .directory.display())]
    Refused { directory: PathBuf, source: rocksdb::Error },
    #[error(
        "the data directory {} could not be opened: no thread could be started: {source}; raise the system's limit \
         on threads",
        .directory.display()
    )]
    NoThread { directory: PathBuf, source: std::io::Error },
    #[error(
        "the data directory {} could not be upgraded: {source}; check free space and start again",
        .directory.display()
    )]
    NotUpgraded { directory: PathBuf, source: Fault },
    #[error("the data directory {} could not be examined: {source}", .directory.display())]
    Interrupted { directory: PathBuf, source: Fault },
}

/// An open store, before its threads are started.
pub struct OpenStore {
    pub db: Db,
    pub catalog: Catalog,
    pub last: CommitRecord,
    pub committed: CommittedFile,
    /// Dropped tables whose space is not reclaimed yet.
    pub dropping: Vec<TableId>,
}

pub fn open(
    options: &Options,
    counts: &Arc<LiveCounters>,
    closing: watch::Sender<()>,
) -> Result<OpenStore, OpenError> {
    open_at_pace(options, counts, closing, &mut UpgradePace::usual())
}

/// The same, with an upgrade that tests can interrupt.
pub fn open_at_pace(
    options: &Options,
    counts: &Arc<LiveCounters>,
    closing: watch::Sender<()>,
    pace: &mut UpgradePace<'_>,
) -> Result<OpenStore, OpenError> {
    let mut directory = DataDirectory::claim(&options.directory)?;
    let path = options.directory.as_path();
    let failed = |error| open_error(path, &error);
    let unwritable = |source| OpenError::Unwritable { directory: path.to_owned(), source };
    let noted = directory.committed()?.unwrap_or(0);
    let tuning = Tuning::new(options).map_err(failed)?;
    match database::find(&directory.database()).map_err(unwritable)? {
        DatabaseState::Remains => return Err(current_missing(path)),
        DatabaseState::Nothing if noted > 0 && !options.accept_loss => {
            return Err(missing_commits(path, noted));
        }
        // Also if a loss is accepted: a new database names none of them, and they would be deleted.
        DatabaseState::Nothing if !content_files::sealed_in(path).map_err(unwritable)?.is_empty() => {
            return Err(database_missing(path));
        }
        DatabaseState::Nothing => database::create(&directory, &tuning)?,
        DatabaseState::Database => {
            log_tail::mend(&directory.database()).map_err(unwritable)?;
            if noted > 0 && !options.accept_loss {
                check_for_loss(options, &directory, noted)?;
            }
        }
    }
    let families = families_in(&directory, &tuning)?;
    let mut rocks =
        DB::open_cf_descriptors(&tuning.database, directory.database(), families).map_err(failed)?;
    let mut records = read_meta(&rocks, path)?;
    let found = records.last.map_or(0, |last| last.counter);
    if found < noted {
        let missing = noted - found;
        if !options.accept_loss {
            return Err(missing_commits(path, missing));
        }
        warn!(missing, "opened without acknowledged commits, as asked");
    }
    let committed = directory.committed_file(found)?;
    if let Err(error) = checkpoint::clear(path) {
        warn!(%error, "could not remove what an interrupted backup has left");
    }
    if upgrade::is_needed(&directory, &records) {
        records =
            Upgrade { directory: &mut directory, rocks: &rocks, committed: &committed, pace }.run(records)?;
    }
    upgrade::clear(path);
    // After an upgrade, whose checkpoint is for programs that do not know these families.
    for (family, options) in [(layout::OBJECTS_FAMILY, &tuning.objects), (layout::FILES_FAMILY, &tuning.meta)]
    {
        if rocks.cf_handle(family).is_none() {
            rocks.create_cf(family, options).map_err(failed)?;
        }
    }
    directory.sync()?;
    counts.opened_records.add(records.count());
    counts.pending_drops.add(records.dropping.len());
    let last = records.last.unwrap_or(CommitRecord::NONE);
    let dropping = records.dropping.iter().copied().collect();
    let catalog = Catalog::new(records);
    let db = Db::new(rocks, tuning.database, counts.clone(), directory.lock, closing);
    info!(directory = %path.display(), commits = last.counter, "store opened");
    Ok(OpenStore { db, catalog, last, committed, dropping })
}

/// Opening for writing replays the log up to the first hole and then deletes it, with everything that could still be
/// salvaged from behind the hole. So this check comes first; it changes nothing.
fn check_for_loss(options: &Options, directory: &DataDirectory, noted: u64) -> Result<(), OpenError> {
    let failed = |error| open_error(&directory.path, &error);
    let database = directory.database();
    // After a clean close the log is empty, so no hole can hide anything.
    if !has_log(&database) {
        return Ok(());
    }
    let tuning = Tuning::new(options).map_err(failed)?;
    let families = families_in(directory, &tuning)?;
    let rocks = DB::open_cf_descriptors_read_only(&tuning.database, &database, families, false);
    let rocks = rocks.map_err(failed)?;
    let record = rocks.cf_handle(layout::META_FAMILY).map(|meta| rocks.get_cf(meta, layout::COMMIT_KEY));
    let record = record.transpose().map_err(failed)?.flatten();
    let found = record.and_then(|bytes| CommitRecord::decode(&bytes)).unwrap_or(CommitRecord::NONE);
    if found.counter < noted {
        return Err(missing_commits(&directory.path, noted - found.counter));
    }
    Ok(())
}

fn has_log(database: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(database) else { return true };
    entries.flatten().any(|entry| {
        let is_log = entry.path().extension().is_some_and(|extension| extension == "log");
        is_log && entry.metadata().map_or(true, |metadata| metadata.len() > 0)
    })
}

/// The column families of a new database.
pub fn families(tuning: &Tuning) -> Vec<ColumnFamilyDescriptor> {
    vec![
        ColumnFamilyDescriptor::new(layout::META_FAMILY, tuning.meta.clone()),
        ColumnFamilyDescriptor::new(layout::DATA_FAMILY, tuning.data.clone()),
        ColumnFamilyDescriptor::new(layout::OBJECTS_FAMILY, tuning.objects.clone()),
        ColumnFamilyDescriptor::new(layout::FILES_FAMILY, tuning.meta.clone()),
    ]
}

/// The column families of a database that is there. Those of earlier versions lack some.
fn families_in(directory: &DataDirectory, tuning: &Tuning) -> Result<Vec<ColumnFamilyDescriptor>, OpenError> {
    let found = DB::list_cf(&tuning.database, directory.database());
    let found = found.map_err(|error| open_error(&directory.path, &error))?;
    let is_known = |name: &str| name == DEFAULT_COLUMN_FAMILY_NAME || layout::FAMILIES.contains(&name);
    if let Some(newer) = found.iter().find(|name| !is_known(name)) {
        return Err(OpenError::NewerFamily { directory: directory.path.clone(), family: newer.clone() });
    }
    let mut families = families(tuning);
    let later = [layout::OBJECTS_FAMILY, layout::FILES_FAMILY];
    families
        .retain(|family| !later.contains(&family.name()) || found.iter().any(|name| name == family.name()));
    Ok(families)
}

/// Reads all meta records. Each of them must be readable.
pub fn read_meta(rocks: &DB, directory: &Path) -> Result<Records, OpenError> {
    let mut records = Records::default();
    for entry in rocks.iterator_cf(meta_family(rocks, directory)?, IteratorMode::Start) {
        let (key, value) = entry.map_err(|error| open_error(directory, &error))?;
        records.take(&key, &value).map_err(|why| unusable_record(directory, &key, &why))?;
    }
    Ok(records)
}

pub fn meta_family<'a>(rocks: &'a DB, directory: &Path) -> Result<&'a ColumnFamily, OpenError> {
    rocks.cf_handle(layout::META_FAMILY).ok_or_else(|| unusable_record(directory, &[], &Unusable::Damaged))
}

fn current_missing(directory: &Path) -> OpenError {
    let detail =
        "the file CURRENT is missing from its database, so it is not known which of the other files are \
                  valid; they were not changed; restore a backup, or save what can be read of them"
            .to_owned();
    OpenError::Damaged { directory: directory.to_owned(), missing: None, detail, source: None }
}

fn database_missing(directory: &Path) -> OpenError {
    let detail = format!(
        "its database is missing, and {}/ has content that nothing else names; restore a backup, or move that directory away \
         to begin with an empty store",
        layout::CONTENT_DIRECTORY
    );
    OpenError::Damaged { directory: directory.to_owned(), missing: None, detail, source: None }
}

fn missing_commits(directory: &Path, missing: u64) -> OpenError {
    let detail = format!(
        "the last {missing} acknowledged commits are missing from its log; restore a backup, or accept their \
         loss and open what is left"
    );
    OpenError::Damaged { directory: directory.to_owned(), missing: Some(missing), detail, source: None }
}

pub fn unusable_record(directory: &Path, key: &[u8], why: &Unusable) -> OpenError {
    let directory = directory.to_owned();
    match why {
        Unusable::Newer(_) => {
            OpenError::NewerRecord { directory, record: format!("{key:02x?}"), why: why.to_string() }
        }
        Unusable::Damaged => {
            let detail = format!("the meta record {key:02x?} is unreadable; restore a backup");
            OpenError::Damaged { directory, missing: None, detail, source: None }
        }
    }
}

pub fn open_error(directory: &Path, error: &rocksdb::Error) -> OpenError {
    let directory = directory.to_owned();
    match error.kind() {
        ErrorKind::Corruption => {
            let detail = format!("{error}; restore a backup");
            OpenError::Damaged { directory, missing: None, detail, source: Some(error.clone()) }
        }
        ErrorKind::IOError if error.as_ref().contains("lock") => OpenError::InUse { directory },
        ErrorKind::IOError => {
            OpenError::Unwritable { directory, source: std::io::Error::other(error.clone()) }
        }
        _ => OpenError::Refused { directory, source: error.clone() },
    }
}
