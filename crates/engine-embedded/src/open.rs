//! From a directory to an open database and what its meta records say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forensics::log_tail;
use rocksdb::{ColumnFamilyDescriptor, DB, ErrorKind, IteratorMode};
use store::Fault;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::catalog::{Catalog, Changes, Table};
use crate::checkpoint;
use crate::commit::CommittedFile;
use crate::counters::Tally;
use crate::database::{self, Found};
use crate::db::Db;
use crate::directory::Directory;
use crate::layout::{self, CommitRecord, MetaKey, TableId, TableRecord};
use crate::options::{Options, Tuning};

/// Why a directory could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the data directory {} is in use by another process; stop that process or choose another directory",
        .directory.display()
    )]
    InUse { directory: PathBuf },
    #[error(
        "the data directory {} is in store format {found}, but this version reads only format {supported}; \
         use the version that wrote it, or a newer one",
        .directory.display()
    )]
    NewerFormat { directory: PathBuf, found: u32, supported: u32 },
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
    #[error("the data directory {} could not be looked through: {source}", .directory.display())]
    Interrupted { directory: PathBuf, source: Fault },
}

/// An open store, before its threads are started.
pub struct Opened {
    pub db: Db,
    pub catalog: Catalog,
    pub last: CommitRecord,
    pub committed: CommittedFile,
    /// Tables whose drop was made durable but whose space was not given back.
    pub dropping: Vec<TableId>,
}

pub fn open(options: &Options, tally: &Arc<Tally>, closing: watch::Sender<()>) -> Result<Opened, OpenError> {
    let directory = Directory::claim(&options.directory)?;
    let failed = |error| open_error(&directory.path, &error);
    let unwritable = |source| OpenError::Unwritable { directory: directory.path.clone(), source };
    let noted = directory.committed()?.unwrap_or(0);
    let tuning = Tuning::new(options).map_err(failed)?;
    match database::find(&directory.database()).map_err(unwritable)? {
        Found::Remains => return Err(current_missing(&directory.path)),
        Found::Nothing if noted > 0 && !options.accept_loss => {
            return Err(missing_commits(&directory.path, noted));
        }
        Found::Nothing => database::create(&directory, &tuning)?,
        Found::Database => {
            log_tail::mend(&directory.database()).map_err(unwritable)?;
            if noted > 0 && !options.accept_loss {
                check_for_loss(options, &directory, noted)?;
            }
        }
    }
    let families = families(&tuning);
    let rocks = DB::open_cf_descriptors(&tuning.database, directory.database(), families).map_err(failed)?;
    let Meta { catalog, last, dropping } = read_meta(&rocks, tally, &directory.path)?;
    if last.counter < noted {
        let missing = noted - last.counter;
        if !options.accept_loss {
            return Err(missing_commits(&directory.path, missing));
        }
        warn!(missing, "opened without acknowledged commits, as asked");
    }
    let committed = directory.committed_file(last.counter)?;
    if let Err(error) = checkpoint::clear(&directory.path) {
        warn!(%error, "what an interrupted backup has left could not be removed");
    }
    directory.sync()?;
    let db = Db::new(rocks, tuning.database, tally.clone(), directory.lock, closing);
    info!(directory = %directory.path.display(), commits = last.counter, "store opened");
    Ok(Opened { db, catalog, last, committed, dropping })
}

/// Opening for writing replays the log up to the first hole and then deletes it, and with it whatever could
/// still be rescued from behind the hole. So a look comes first that changes nothing.
fn check_for_loss(options: &Options, directory: &Directory, noted: u64) -> Result<(), OpenError> {
    let failed = |error| open_error(&directory.path, &error);
    let database = directory.database();
    // After a clean close there is nothing in the log, and nothing that a hole could hide.
    if !has_log(&database) {
        return Ok(());
    }
    let tuning = Tuning::new(options).map_err(failed)?;
    let families = families(&tuning);
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

pub fn families(tuning: &Tuning) -> Vec<ColumnFamilyDescriptor> {
    vec![
        ColumnFamilyDescriptor::new(layout::META_FAMILY, tuning.meta.clone()),
        ColumnFamilyDescriptor::new(layout::DATA_FAMILY, tuning.data.clone()),
    ]
}

struct Meta {
    catalog: Catalog,
    last: CommitRecord,
    dropping: Vec<TableId>,
}

fn read_meta(rocks: &DB, tally: &Tally, directory: &Path) -> Result<Meta, OpenError> {
    let failed = |error| open_error(directory, &error);
    let (mut changes, mut last, mut dropping) = (Changes::default(), CommitRecord::NONE, Vec::new());
    let Some(family) = rocks.cf_handle(layout::META_FAMILY) else {
        return Err(unreadable_meta(directory, &[]));
    };
    for entry in rocks.iterator_cf(family, IteratorMode::Start) {
        let (key, value) = entry.map_err(failed)?;
        tally.opened_records.add(1);
        let unreadable = || unreadable_meta(directory, &key);
        match MetaKey::read(&key).ok_or_else(unreadable)? {
            MetaKey::Commit => last = CommitRecord::decode(&value).ok_or_else(unreadable)?,
            MetaKey::Dropping(id) => dropping.push(id),
            MetaKey::Service(account) => {
                let metadata = layout::read_service_record(&value).ok_or_else(unreadable)?;
                changes.services.insert(account, metadata);
            }
            MetaKey::Table => {
                let record = TableRecord::decode(&value).ok_or_else(unreadable)?;
                changes.tables.insert(key.to_vec(), Some(Arc::new(Table::new(key.to_vec(), record))));
            }
        }
    }
    let catalog = Catalog::default();
    catalog.publish(changes);
    tally.pending_drops.add(dropping.len());
    Ok(Meta { catalog, last, dropping })
}

fn current_missing(directory: &Path) -> OpenError {
    let detail =
        "the file CURRENT is missing from its database, so that nothing says which of the other files \
                  count; they were left as they are; restore a backup, or save what can be read of them"
            .to_owned();
    OpenError::Damaged { directory: directory.to_owned(), missing: None, detail, source: None }
}

fn missing_commits(directory: &Path, missing: u64) -> OpenError {
    let detail = format!(
        "the last {missing} acknowledged commits are missing from its log; restore a backup, or accept their \
         loss and open what is left"
    );
    OpenError::Damaged { directory: directory.to_owned(), missing: Some(missing), detail, source: None }
}

fn unreadable_meta(directory: &Path, key: &[u8]) -> OpenError {
    let detail = format!("the meta record {key:02x?} is unreadable; restore a backup");
    OpenError::Damaged { directory: directory.to_owned(), missing: None, detail, source: None }
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
