//! Writes everything that can still be read of a damaged store into a new store.
//!
//! The old store is only read. Rows keep their timestamps and so their ETags; tables keep their ids, names and
//! policies. A table that has rows but no record gets a new name, so that all readable rows are saved.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use model::{AccountName, DateTime, ServiceKind};
use rocksdb::{ColumnFamily, DB, WriteBatch, WriteOptions};
use store::{Fault, ObjectNaming, RowView, StoredName, encoding};

use crate::database;
use crate::db;
use crate::directory::DataDirectory;
use crate::layout::{self, CommitRecord, TableId, TableRecord};
use crate::open::{self, OpenError};
use crate::options::{Options, Tuning};
use crate::records::Records;
use crate::report::{Report, TableCount};
use crate::survey::{self, Finder, Progress, SurveyError};

/// What was saved, and the damage that was found.
#[derive(Clone, Debug)]
pub struct SalvageReport {
    /// The check of the old store.
    pub report: Report,
    /// Tables that got a new name because no record names them.
    pub named: Vec<TableCount>,
    pub entities: u64,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    #[error(transparent)]
    Source(OpenError),
    #[error("{} is there already and not empty; name a directory that is missing or empty", .0.display())]
    Occupied(PathBuf),
    #[error("the new store {} can't be written: {source}", .directory.display())]
    Target { directory: PathBuf, source: Fault },
}

/// The new store is written as `NAME.partial` and renamed when it is complete.
pub fn salvage(
    source: &Path,
    target: &Path,
    naming: &dyn ObjectNaming,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport, SalvageError> {
    let failed = |source: Fault| SalvageError::Target { directory: target.to_owned(), source };
    let unwritable = |error: io::Error| failed(Fault::disk("the file system refuses it").because(error));
    if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) || target.is_file() {
        return Err(SalvageError::Occupied(target.to_owned()));
    }
    // Checked before anything is written: there must be a store to salvage.
    drop(crate::directory::DirectoryView::at(source).map_err(SalvageError::Source)?);
    let mut partial = target.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
        _ => {}
    }
    let save = |progress| {
        let mut writer = Writer::create(&partial).map_err(failed)?;
        let report = survey::survey(source, naming, &mut writer, progress).map_err(|error| match error {
            SurveyError::Open(error) => SalvageError::Source(error),
            SurveyError::Finder(fault) => failed(fault),
        })?;
        let (named, entities) = writer.finish(&report).map_err(failed)?;
        Ok(SalvageReport { report, named, entities })
    };
    let salvaged = save(progress).inspect_err(|_| {
        // The next salvage removes what is left of it.
        let _ = fs::remove_dir_all(&partial);
    })?;
    if target.exists() {
        fs::remove_dir(target).map_err(unwritable)?;
    }
    fs::rename(&partial, target).map_err(unwritable)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(unwritable)?;
    Ok(salvaged)
}

/// Bytes of one write to the new store.
const BATCH_BYTES: usize = 1024 * 1024;

struct Writer {
    directory: DataDirectory,
    rocks: DB,
    unlogged: WriteOptions,
    batch: WriteBatch,
    /// Tables that have a record in the new store.
    tables: HashMap<TableId, TableRecord>,
    /// The account that gets the tables without a record.
    heir: AccountName,
    named: HashMap<TableId, TableCount>,
    last: CommitRecord,
    latest: DateTime,
    entities: u64,
}

impl Writer {
    fn create(path: &Path) -> Result<Self, Fault> {
        let unmade = |error: OpenError| Fault::disk("could not make the new store").because(error);
        let directory = DataDirectory::claim(path).map_err(unmade)?;
        let tuning = Tuning::new(&Options::new(path))
            .map_err(|error| db::fault("could not set up the new store", error))?;
        database::create(&directory, &tuning).map_err(unmade)?;
        let families = open::families(&tuning);
        let rocks = DB::open_cf_descriptors(&tuning.database, directory.database(), families);
        let mut unlogged = WriteOptions::default();
        // No log: the store is flushed at the end, and of no use before that.
        unlogged.disable_wal(true);
        Ok(Self {
            directory,
            rocks: rocks.map_err(|error| db::fault("could not open the new store", error))?,
            unlogged,
            batch: WriteBatch::default(),
            tables: HashMap::new(),
            heir: AccountName::parse("salvaged")
                .ok_or_else(|| Fault::bug("no account can be called salvaged"))?,
            named: HashMap::new(),
            last: CommitRecord::NONE,
            latest: DateTime::MIN,
            entities: 0,
        })
    }

    fn put(&mut self, family: &str, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let handle = family_of(&self.rocks, family)?;
        self.batch.put_cf(handle, key, value);
        if self.batch.size_in_bytes() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn delete(&mut self, family: &str, key: &[u8]) -> Result<(), Fault> {
        let handle = family_of(&self.rocks, family)?;
        self.batch.delete_cf(handle, key);
        Ok(())
    }

    fn write(&mut self) -> Result<(), Fault> {
        let batch = std::mem::take(&mut self.batch);
        let written = self.rocks.write_opt(batch, &self.unlogged);
        written.map_err(|error| db::fault("could not write to the new store", error))
    }

    /// Makes a record for rows whose table has none. Of whichever service it was: as entities, its rows can be read.
    fn name(&mut self, id: TableId) -> Result<(), Fault> {
        self.name_as(id, ServiceKind::Table, format!("Salvaged{}", &id.to_string()[..16]))
    }

    /// The same once a key was found that only blobs have. What was written as a table becomes a container.
    fn rename(&mut self, id: TableId) -> Result<(), Fault> {
        if let Some(record) = self.tables.get(&id) {
            let key = layout::table_key(&self.heir, &record.stored_name());
            self.delete(layout::META_FAMILY, &key)?;
        }
        self.name_as(id, ServiceKind::Blob, format!("salvaged{}", &id.to_string()[..16]))
    }

    fn name_as(&mut self, id: TableId, service: ServiceKind, text: String) -> Result<(), Fault> {
        let name = StoredName::parse(service, &text)
            .ok_or_else(|| Fault::bug("a name for a table without a record is not valid"))?;
        let record = TableRecord::new(id, service, name);
        let key = layout::table_key(&self.heir, &record.stored_name());
        self.put(layout::META_FAMILY, &key, &record.encode())?;
        self.tables.insert(id, record);
        let account = self.heir.to_string();
        let before = self.named.remove(&id);
        let (entities, bytes) = before.map_or((0, 0), |count| (count.entities, count.bytes));
        self.named.insert(id, TableCount { account, service, table: text, entities, bytes });
        Ok(())
    }

    fn finish(mut self, report: &Report) -> Result<(Vec<TableCount>, u64), Fault> {
        // At least the highest timestamp of all rows: no two versions of a row may have the same timestamp.
        let last_stamp = self.last.last_stamp.max(self.latest);
        let counter = self.last.counter.max(report.commits).max(1);
        let record = CommitRecord { counter, last_stamp };
        self.put(layout::META_FAMILY, layout::COMMIT_KEY, &record.encode())?;
        self.write()?;
        for family in [layout::OBJECTS_FAMILY, layout::DATA_FAMILY, layout::META_FAMILY] {
            let handle = family_of(&self.rocks, family)?;
            self.rocks.flush_cf(handle).map_err(|error| db::fault("could not flush the new store", error))?;
        }
        self.directory
            .committed_file(counter)
            .map_err(|error| Fault::disk("could not note the last commit").because(error))?;
        drop(self.rocks);
        let synced = File::open(&self.directory.path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| Fault::disk("could not sync the new store").because(error))?;
        let mut named: Vec<TableCount> = self.named.into_values().collect();
        named.sort_by(|a, b| a.table.cmp(&b.table));
        Ok((named, self.entities))
    }
}

fn family_of<'a>(rocks: &'a DB, name: &str) -> Result<&'a ColumnFamily, Fault> {
    rocks.cf_handle(name).ok_or_else(|| Fault::bug("the new store lacks a column family"))
}

impl Finder for Writer {
    fn records(&mut self, records: &Records) -> Result<(), Fault> {
        self.last = records.last.unwrap_or(CommitRecord::NONE);
        for (id, (account, record)) in &records.tables {
            let key = layout::table_key(account, &record.stored_name());
            self.put(layout::META_FAMILY, &key, &record.encode())?;
            self.tables.insert(*id, record.clone());
        }
        for ((service, account), record) in &records.services {
            self.put(layout::META_FAMILY, &layout::service_key(*service, account), &record.encode())?;
        }
        // If there is only one account, its owner will look for these tables.
        let mut accounts: Vec<&AccountName> = records.tables.values().map(|(account, _)| account).collect();
        accounts.extend(records.services.keys().map(|(_, account)| account));
        accounts.sort();
        accounts.dedup();
        if let [only] = accounts[..] {
            self.heir = only.clone();
        }
        Ok(())
    }

    fn row(&mut self, table: TableId, key: &[u8], row: RowView<'_>) -> Result<(), Fault> {
        if !self.tables.contains_key(&table) {
            self.name(table)?;
        }
        let is_table = self.named.get(&table).is_some_and(|count| count.service == ServiceKind::Table);
        if is_table && !encoding::key::decode_key(TableId::strip(key))?.is_entity_key() {
            self.rename(table)?;
        }
        if let Some(count) = self.named.get_mut(&table) {
            count.entities += 1;
            count.bytes += (key.len() + row.bytes().len()) as u64;
        }
        self.latest = self.latest.max(row.timestamp());
        self.entities += 1;
        self.put(layout::DATA_FAMILY, key, row.bytes())
    }

    /// All objects, also those that no row names: a server removes these when they are a day old.
    fn object(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.put(layout::OBJECTS_FAMILY, key, value)
    }
}
