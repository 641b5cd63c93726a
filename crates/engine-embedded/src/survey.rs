//! Reads a whole store without opening it, and passes everything readable to a `Finder`.
//!
//! The check and the salvage both use it; they differ in what they do with the rows. Nothing in the directory is
//! changed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use forensics::entry::Tombstone;
use forensics::log_file::{self, LogChange, LogPart};
use forensics::manifest::{ListedFile, Manifest};
use forensics::merge::{Gap, GapEdge, LogRows, MergeFile, MergedRows};
use forensics::table_file::{RowStep, TableFile};
use model::ServiceKind;
use store::{Fault, ObjectId, ObjectNaming, RowView};

use crate::directory::DirectoryView;
use crate::fields::Unusable;
use crate::layout::{self, CommitRecord, ObjectKey, TableId};
use crate::open::{self, OpenError};
use crate::records::{self, Records};
use crate::report::{Damage, DamageEdge, Report, TableCount};
use crate::survey_objects::{ChunkError, Lack, ObjectEntry, ObjectReader};

/// How far a survey has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    pub bytes_total: u64,
    pub rows: u64,
}

/// Receives what a survey finds.
pub trait Finder {
    /// Called before the first row.
    fn records(&mut self, records: &Records) -> Result<(), Fault>;
    /// Called for each sound row, in the order of stored keys. There may be no record of its table.
    fn row(&mut self, table: TableId, key: &[u8], row: RowView<'_>) -> Result<(), Fault>;
    /// Called for each sound entry of the family of objects, before the first row: names with an empty value, and chunks.
    fn object(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault>;
}

/// Why a survey could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The finder failed.
    #[error(transparent)]
    Finder(#[from] Fault),
}

/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 4096;
/// Chunks between two.
const CHUNKS_PER_REPORT: u64 = 64;
/// The ids that RocksDB gives to our column families in a new store, after its default one.
const META_ID: u32 = 1;
const DATA_ID: u32 = 2;
const OBJECTS_ID: u32 = 3;

pub fn survey(
    directory: &Path,
    naming: &dyn ObjectNaming,
    finder: &mut dyn Finder,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SurveyError> {
    let looked = DirectoryView::at(directory)?;
    let noted = looked.committed()?;
    let mut survey = Survey {
        database: looked.database(),
        report: Report::default(),
        so_far: Progress::default(),
        progress,
        meta: Family::new(layout::META_FAMILY, META_ID),
        data: Family::new(layout::DATA_FAMILY, DATA_ID),
        objects: Family::new(layout::OBJECTS_FAMILY, OBJECTS_ID),
        reader: ObjectReader::new(directory, naming),
        lost: Vec::new(),
        lost_objects: false,
    };
    if looked.lacks_format {
        survey.report.add(Damage::of(layout::FORMAT_FILE, "missing or unreadable"));
    }
    // An interrupted first start leaves no database, so nothing can be missing.
    let is_new = noted.unwrap_or(0) == 0 && survey.names("").is_empty();
    if !is_new {
        survey.run(directory, noted, finder)?;
    }
    Ok(survey.report)
}

/// A column family: its table files, and the rows of it that are only in the logs.
struct Family {
    name: &'static str,
    id: u32,
    files: Vec<MergeFile>,
    tombstones: Vec<Tombstone>,
    memory: LogRows,
}

impl Family {
    fn new(name: &'static str, id: u32) -> Self {
        Self { name, id, files: Vec::new(), tombstones: Vec::new(), memory: LogRows::new() }
    }

    fn merge(&mut self) -> MergedRows {
        let (files, memory) = (mem::take(&mut self.files), mem::take(&mut self.memory));
        MergedRows::new(files, memory, mem::take(&mut self.tombstones))
    }
}

struct Survey<'p> {
    database: PathBuf,
    report: Report,
    so_far: Progress,
    progress: &'p mut dyn FnMut(Progress),
    meta: Family,
    data: Family,
    objects: Family,
    reader: ObjectReader<'p>,
    /// Files of the data family that can't be read at all.
    lost: Vec<Gap>,
    /// Names of objects are perhaps lost: with a file of their family, or with a part of a log.
    lost_objects: bool,
}

impl Survey<'_> {
    fn run(
        &mut self,
        directory: &Path,
        noted: Option<u64>,
        finder: &mut dyn Finder,
    ) -> Result<(), SurveyError> {
        let (tables, blobs, first_log) = match Manifest::read(&self.database) {
            Ok(manifest) => {
                for family in [&mut self.meta, &mut self.data, &mut self.objects] {
                    family.id = manifest.family(family.name).unwrap_or(family.id);
                }
                (manifest.files().collect(), manifest.blob_files().collect(), manifest.first_log())
            }
            Err(error) => {
                // A file that is missing is not missed.
                self.lost_objects = true;
                self.report.add(Damage::new(
                    None,
                    format!("which files belong to the store is not known, so all are taken: {error}"),
                ));
                let unlisted = |name| ListedFile { name, ..ListedFile::default() };
                let tables = self.names("sst").into_iter().map(unlisted).collect::<Vec<_>>();
                (tables, self.names("blob"), 0)
            }
        };
        let logs: Vec<String> = self
            .names("log")
            .into_iter()
            .filter(|name| number(name).is_some_and(|n| n >= first_log))
            .collect();
        let sizes = tables.iter().map(|file| &file.name).chain(&logs).chain(&blobs);
        let sizes =
            sizes.filter_map(|name| fs::metadata(self.database.join(name)).ok()).map(|file| file.len());
        self.so_far.bytes_total = sizes.sum();
        self.report.file_bytes = self.so_far.bytes_total;
        self.report.files = (tables.len() + logs.len() + blobs.len()) as u64;
        match self.reader.find_files() {
            Ok((files, bytes)) => {
                self.so_far.bytes_total += bytes;
                self.report.file_bytes += bytes;
                self.report.files += files;
            }
            Err(error) => {
                let detail = format!("its files can't be listed: {error}");
                self.report.add(Damage::of(layout::CONTENT_DIRECTORY, detail));
            }
        }

        for file in &tables {
            self.take_table_file(file);
        }
        let commits = self.commits_in_table_files();
        self.take_logs(&logs, commits, noted);
        let records = self.read_records(directory)?;
        self.report.commits = records.last.map_or(0, |record| record.counter);
        finder.records(&records)?;
        self.read_objects(finder)?;
        self.read_rows(&records, finder)
    }

    /// The names of the files with this extension, in order; of all files if it is empty.
    fn names(&self, extension: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.database) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let suffix = format!(".{extension}");
        let mut names: Vec<String> =
            names.filter(|name| extension.is_empty() || name.ends_with(&suffix)).collect();
        names.sort_by_key(|name| (number(name), name.clone()));
        names
    }

    fn take_table_file(&mut self, listed: &ListedFile) {
        let name = &listed.name;
        let path = self.database.join(name);
        let (first, last) = (listed.first.clone(), listed.last.clone());
        let table = match TableFile::open(&path) {
            Ok(table) => table,
            Err(error) => {
                // The family is known only if the MANIFEST lists the file. Otherwise it may have had rows.
                if listed.family == self.meta.name {
                    self.report.add(Damage::of(name, format!("{error}; it held records of tables")));
                } else if listed.family == self.objects.name {
                    self.lost_objects = true;
                    self.report.add(Damage::of(name, format!("{error}; it held the places of content")));
                } else {
                    let (after, before) = (GapEdge::of_file(first), GapEdge::of_file(last));
                    self.lost.push(Gap { path, cause: error.into(), after, before });
                }
                return;
            }
        };
        if let Some(size) = listed.size.filter(|size| *size != table.size()) {
            let detail = format!("{} bytes long instead of {size}", table.size());
            self.report.add(Damage::of(name, detail));
        }
        for flaw in &table.flaws {
            let damage = Damage::of(name, format!("{flaw}; no row is lost by it"));
            self.report.add(Damage { loses_rows: false, ..damage });
        }
        let family = match table.family.as_str() {
            layout::META_FAMILY => &mut self.meta,
            layout::DATA_FAMILY => &mut self.data,
            layout::OBJECTS_FAMILY => &mut self.objects,
            // RocksDB's default family, which is always empty.
            _ => return,
        };
        family.id = table.family_id;
        family.tombstones.extend(table.tombstones.iter().cloned());
        let mut rows = table.rows();
        let first = match rows.advance() {
            RowStep::Row => rows.entry().map(|entry| entry.key.to_vec()),
            RowStep::Unreadable { .. } | RowStep::End => first,
        };
        family.files.push(MergeFile { path, first, last });
    }

    /// The number of the last commit in the table files.
    fn commits_in_table_files(&self) -> u64 {
        let mut meta = MergedRows::new(self.meta.files.clone(), LogRows::new(), Vec::new());
        while meta.advance()
            && let Some((key, value)) = meta.row().filter(|(key, _)| *key <= layout::COMMIT_KEY)
        {
            if key == layout::COMMIT_KEY {
                return CommitRecord::decode(value).map_or(0, |record| record.counter);
            }
        }
        0
    }

    /// Reads the logs, and reports commits that are missing.
    fn take_logs(&mut self, logs: &[String], in_table_files: u64, noted: Option<u64>) {
        let mut last = in_table_files;
        for name in logs {
            let bytes = match fs::read(self.database.join(name)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.lost_objects = true;
                    self.report.add(Damage::of(name, error.to_string()));
                    continue;
                }
            };
            self.so_far.bytes += bytes.len() as u64;
            let mut hole = None;
            log_file::read(&bytes, |part| match part {
                LogPart::Unreadable { at, .. } => {
                    hole.get_or_insert(at);
                }
                LogPart::Batch(batch) => {
                    // What is unreadable before it had perhaps names, whether or not it had commits.
                    self.lost_objects |= hole.is_some();
                    self.take_batch(name, batch, (&mut hole, noted), &mut last);
                }
            });
            if let Some(at) = hole.filter(|_| noted.is_some_and(|noted| last < noted)) {
                self.report.add(Damage::of(name, format!("unreadable from byte {at} to its end")));
            }
        }
        if let Some(noted) = noted.filter(|noted| last < *noted) {
            self.lost_objects = true;
            let detail = format!("{} acknowledged, but not there", commits(last + 1, noted));
            self.report.add(Damage::of(layout::COMMITTED_FILE, detail));
        }
    }

    /// Reads one batch of a log. `hole` is where unreadable bytes before it begin, `noted` the last commit that was
    /// acknowledged, `last` the number of the commit before it.
    fn take_batch(
        &mut self,
        log: &str,
        batch: &[u8],
        (hole, noted): (&mut Option<u64>, Option<u64>),
        last: &mut u64,
    ) {
        let Some(changes) = log_file::changes(batch) else {
            self.lost_objects = true;
            self.report.add(Damage::of(log, "a commit in it is not one that Partita writes"));
            return;
        };
        let commit = self.take_changes(&changes);
        // A log may begin with commits that are already in table files.
        let Some(commit) = commit.filter(|commit| commit > last) else { return };
        // Unreadable bytes that cost no commit are left by a crash, or are unused space, unless a server would miss those behind.
        let hole = hole.take();
        if commit > *last + 1 {
            self.lost_objects = true;
            let lost = commits(*last + 1, commit - 1);
            let detail = match hole {
                Some(at) => format!("unreadable at byte {at}: {lost} lost, those behind are readable"),
                None => format!("{lost} missing before it"),
            };
            self.report.add(Damage::of(log, detail));
        } else if let Some(at) = hole.filter(|_| noted.is_some_and(|noted| commit <= noted)) {
            let detail = format!("unreadable at byte {at}: no commit is lost, those behind are readable");
            self.report.add(Damage { loses_rows: false, ..Damage::of(log, detail) });
        }
        *last = commit;
    }

    /// The number of the commit, if the changes have a commit record.
    fn take_changes(&mut self, changes: &[(u64, LogChange<'_>)]) -> Option<u64> {
        let mut commit = None;
        for (sequence, change) in changes {
            let family = match change.family() {
                id if id == self.meta.id => &mut self.meta,
                id if id == self.data.id => &mut self.data,
                id if id == self.objects.id => &mut self.objects,
                _ => continue,
            };
            let (key, value) = match change {
                LogChange::Put { key, value, .. } => (*key, Some(value.to_vec())),
                LogChange::Delete { key, .. } => (*key, None),
                LogChange::Hide { .. } => {
                    family.tombstones.extend(change.tombstone(*sequence));
                    continue;
                }
            };
            if family.name == layout::META_FAMILY && key == layout::COMMIT_KEY {
                commit = value.as_deref().and_then(CommitRecord::decode).map(|record| record.counter);
            }
            // Logs are read in order, so later changes are newer.
            family.memory.insert(key.to_vec(), (*sequence, value));
        }
        commit
    }

    /// An error if a record needs a newer version: this one can't know what the rows mean then.
    fn read_records(&mut self, directory: &Path) -> Result<Records, OpenError> {
        let mut records = Records::default();
        let mut merge = self.meta.merge();
        while merge.advance() {
            let Some((key, value)) = merge.row() else { break };
            match records.take(key, value) {
                Ok(()) => {}
                Err(newer @ Unusable::Newer(_)) => return Err(open::unusable_record(directory, key, &newer)),
                Err(Unusable::Damaged) => {
                    let text = String::from_utf8_lossy(key).replace('\0', "/");
                    self.report.add(Damage::new(
                        None,
                        format!("the meta record {text:?} can't be read, or contradicts another"),
                    ));
                }
            }
        }
        self.so_far.bytes += merge.take_bytes_read();
        for gap in merge.take_gaps() {
            let edge =
                |edge: &GapEdge| String::from_utf8_lossy(edge.key().unwrap_or_default()).replace('\0', "/");
            let between = format!("between {:?} and {:?}", edge(&gap.after), edge(&gap.before));
            self.report.add(Damage::of(&file_name(&gap.path), format!("{}; records {between}", gap.cause)));
        }
        if records.last.is_none() && !records.tables.is_empty() {
            self.report.add(Damage::new(None, "the record of the last commit is missing"));
        }
        Ok(records)
    }

    /// Reads every chunk, and notes how much there is of each object.
    fn read_objects(&mut self, finder: &mut dyn Finder) -> Result<(), SurveyError> {
        let names = self.names_of_objects();
        let mut merge = self.objects.merge();
        let mut entries = 0_u64;
        loop {
            let found = merge.advance();
            for gap in merge.take_gaps() {
                let detail = format!("{}; places of content are lost", gap.cause);
                self.report.add(Damage::of(&file_name(&gap.path), detail));
            }
            let Some((key, value)) = merge.row().filter(|_| found) else { break };
            match ObjectKey::read(key) {
                Some(ObjectKey::Chunk(object, number)) => {
                    self.read_content_files(Some((object, number)), finder)?;
                }
                // Names come behind all chunks.
                Some(ObjectKey::Name(_)) => self.read_content_files(None, finder)?,
                // What comes behind it is not known.
                None => {}
            }
            match self.reader.take(key, value, merge.is_reference()) {
                Ok(ObjectEntry::Name) => finder.object(key, &[])?,
                Ok(ObjectEntry::Chunk(chunk)) => finder.object(key, &chunk)?,
                Err(ChunkError { file, detail }) => self.report.add(Damage::new(file, detail)),
            }
            entries += 1;
            if entries.is_multiple_of(CHUNKS_PER_REPORT) {
                self.so_far.bytes += merge.take_bytes_read() + mem::take(&mut self.reader.bytes_read);
                (self.progress)(self.so_far);
            }
        }
        self.so_far.bytes += merge.take_bytes_read() + mem::take(&mut self.reader.bytes_read);
        self.read_content_files(None, finder)?;
        // If names are lost with a damaged file, every file of content is one of an object.
        for object in names.into_iter().flatten() {
            self.reader.objects.list(object);
            finder.object(&layout::object_name_key(object), &[])?;
        }
        Ok(())
    }

    /// The objects that the database names, as far as they have files of content: the others' files are passed over. If some
    /// names are unreadable, all files are taken, and the objects of these are returned.
    fn names_of_objects(&mut self) -> Option<Vec<ObjectId>> {
        if !self.reader.has_files() {
            return None;
        }
        let is_name = |key: &[u8]| matches!(ObjectKey::read(key), Some(ObjectKey::Name(_)));
        let memory = self.objects.memory.iter().filter(|(key, _)| is_name(key));
        let memory = memory.map(|(key, value)| (key.clone(), value.clone())).collect();
        let (files, tombstones) = (self.objects.files.clone(), self.objects.tombstones.clone());
        let mut merge = MergedRows::new(files, memory, tombstones);
        let mut named = HashSet::new();
        while merge.advance() {
            if let Some(ObjectKey::Name(object)) = merge.row().and_then(|(key, _)| ObjectKey::read(key)) {
                named.insert(object);
            }
        }
        if self.lost_objects || !merge.take_gaps().is_empty() {
            return Some(self.reader.files());
        }
        self.reader.keep_files(|object| named.contains(&object));
        None
    }

    /// Reads the chunks in files of content that come before this chunk of the database, or all that are left.
    fn read_content_files(
        &mut self,
        before: Option<(ObjectId, u32)>,
        finder: &mut dyn Finder,
    ) -> Result<(), SurveyError> {
        while let Some(found) = self.reader.next_in_file(before) {
            match found {
                Ok((object, number, chunk)) => finder.object(&layout::chunk_key(object, number), &chunk)?,
                Err(ChunkError { file, detail }) => self.report.add(Damage::new(file, detail)),
            }
            self.so_far.bytes += mem::take(&mut self.reader.bytes_read);
            (self.progress)(self.so_far);
        }
        Ok(())
    }

    /// Whether the objects that a row names are whole.
    fn check_needs(&mut self, records: &Records, key: &[u8], row: RowView<'_>) {
        let partition = records.place(key).map_or_else(String::new, |place| place.partition_key);
        let lacks = match self.reader.lacks(&partition, row) {
            Ok(lacks) => lacks.iter().map(lack_text).collect(),
            Err(fault) => vec![fault.happened()],
        };
        for detail in lacks {
            let place = records.place(key).map(DamageEdge::Lost);
            self.report.add(Damage { after: place.clone(), before: place, ..Damage::new(None, detail) });
        }
    }

    fn read_rows(&mut self, records: &Records, finder: &mut dyn Finder) -> Result<(), SurveyError> {
        let mut counts: HashMap<TableId, (u64, u64)> = HashMap::new();
        let mut merge = self.data.merge();
        let mut gaps = mem::take(&mut self.lost);
        for gap in &gaps {
            self.report.add(damage(gap, records));
        }
        loop {
            let found = merge.advance();
            for gap in merge.take_gaps() {
                self.report.add(damage(&gap, records));
                gaps.push(gap);
            }
            let Some((key, value)) = merge.row().filter(|_| found) else { break };
            gaps.retain(|gap| gap.before.key().is_some_and(|before| key <= before));
            match records::check_row(records, key, value) {
                Err(error) => {
                    let lost = records.place(key).map(DamageEdge::Lost);
                    self.report.add(Damage {
                        after: lost.clone(),
                        before: lost,
                        ..Damage::new(None, error.to_string())
                    });
                }
                // The table was dropped, but its tombstone was in a file that was deleted.
                Ok((id, _)) if records.dropping.contains(&id) => self.report.dropped_rows += 1,
                Ok((id, row)) => {
                    let is_doubtful = gaps.iter().any(|gap| is_inside(key, gap));
                    self.report.doubtful_rows += u64::from(is_doubtful);
                    let (entities, bytes) = counts.entry(id).or_default();
                    *entities += 1;
                    *bytes += (key.len() + value.len()) as u64;
                    let service = records.tables.get(&id).map(|(_, record)| record.service);
                    // Without a record, the service is not known.
                    if service.is_none_or(|service| service == ServiceKind::Blob) {
                        self.check_needs(records, key, row);
                    }
                    finder.row(id, key, row)?;
                }
            }
            self.so_far.rows += 1;
            if self.so_far.rows.is_multiple_of(ROWS_PER_REPORT) {
                self.so_far.bytes += merge.take_bytes_read();
                (self.progress)(self.so_far);
            }
        }
        self.report.dropped_rows += merge.hidden();
        (self.progress)(Progress { bytes: self.so_far.bytes_total, ..self.so_far });
        self.count(counts, records);
        self.report.objects = self.reader.objects.counts();
        if self.report.objects.unlisted > 0 {
            let detail = format!("{} objects have content but are not listed", self.report.objects.unlisted);
            self.report.add(Damage { loses_rows: false, ..Damage::new(None, detail) });
        }
        Ok(())
    }

    fn count(&mut self, mut counts: HashMap<TableId, (u64, u64)>, records: &Records) {
        for (id, (account, record)) in &records.tables {
            let (entities, bytes) = counts.remove(id).unwrap_or_default();
            let (account, table) = (account.to_string(), record.name.as_str().to_owned());
            let service = record.service;
            self.report.tables.push(TableCount { account, service, table, entities, bytes });
        }
        self.report.tables.sort_by(|a, b| {
            let order = |count: &TableCount| (count.service != ServiceKind::Table, count.service);
            (&a.account, order(a), &a.table).cmp(&(&b.account, order(b), &b.table))
        });
        let mut strays: Vec<_> = counts.into_iter().map(|(id, (rows, _))| (id.to_string(), rows)).collect();
        strays.sort();
        for (id, rows) in strays {
            let detail = format!("{rows} rows belong to a table that no record names (id {id})");
            self.report.add(Damage { loses_rows: false, ..Damage::new(None, detail) });
        }
    }
}

/// Whether a row lies within a gap of another file, and so may be an old version.
fn is_inside(key: &[u8], gap: &Gap) -> bool {
    let begun = match &gap.after {
        GapEdge::Found(after) => key > &after[..],
        GapEdge::Lost(first) => key >= &first[..],
        GapEdge::Unknown => true,
    };
    begun && gap.before != GapEdge::Found(key.to_vec())
}

fn damage(gap: &Gap, records: &Records) -> Damage {
    let place = |edge: &GapEdge| {
        let row = records.place(edge.key()?)?;
        Some(if matches!(edge, GapEdge::Found(_)) { DamageEdge::Found(row) } else { DamageEdge::Lost(row) })
    };
    let (after, before) = (place(&gap.after), place(&gap.before));
    Damage { after, before, ..Damage::of(&file_name(&gap.path), gap.cause.to_string()) }
}

fn lack_text(lack: &Lack) -> String {
    let Lack { object, needed, found } = lack;
    match found {
        0 => format!("its content, object {object}, is missing"),
        _ => format!("of its content, object {object}, only {found} of {needed} bytes are there"),
    }
}

fn commits(first: u64, last: u64) -> String {
    if first == last { format!("commit {first} is") } else { format!("commits {first} to {last} are") }
}

fn number(name: &str) -> Option<u64> {
    name.split('.').next()?.parse().ok()
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
