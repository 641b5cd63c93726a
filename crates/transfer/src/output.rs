//! The target of an export: standard output, or a file with a side file that records how much of it is valid.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::format::FileFormat;
use crate::side_file::{SideFile, SideFileError};

const SUFFIX: &str = ".progress";

#[derive(Debug, Error)]
pub enum OutputError {
    #[error("{} already exists; --overwrite replaces it", .path.display())]
    Exists { path: PathBuf },
    #[error("{} is an interrupted export; --resume continues it, --overwrite starts again", .path.display())]
    Unfinished { path: PathBuf },
    #[error(
        "{} belongs to an export whose {what} was {was}, not {is}; --resume needs the same, --overwrite starts again",
        .side.display()
    )]
    OtherExport { side: PathBuf, what: &'static str, was: String, is: String },
    #[error("{} is shorter than {} records; --overwrite starts again", .path.display(), .side.display())]
    Shorter { path: PathBuf, side: PathBuf },
    #[error("can't write to standard output: {0}")]
    StandardOutput(#[source] io::Error),
    #[error("can't open {} for writing: {source}", .path.display())]
    Unopened { path: PathBuf, source: io::Error },
    #[error("can't write {}: {source}; free some space if the disk is full, then continue with --resume", .path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    #[error(transparent)]
    SideFile(#[from] SideFileError),
}

/// The side file of a file that is being exported to.
pub fn side_file(path: &Path) -> SideFile {
    SideFile::beside(path, SUFFIX)
}

/// How far an export is, as its side file records it.
pub trait Checkpoint: Serialize + DeserializeOwned {
    /// The same export before its first byte.
    fn fresh(&self) -> Self;

    /// How much of the file is valid.
    fn bytes(&self) -> u64;

    fn add_bytes(&mut self, count: u64);

    /// What is exported, as names and values. A run can be resumed only with the same.
    fn subject(&self) -> Vec<(&'static str, String)>;
}

/// What is exported of a table. A run can be resumed only with the same subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub endpoint: String,
    pub table: String,
    pub filter: Option<String>,
    pub select: Vec<String>,
    pub columns: Vec<String>,
    pub format: FileFormat,
}

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportState {
    #[serde(flatten)]
    pub subject: Subject,
    /// In CSV, once they are known.
    pub found_columns: Option<Vec<String>>,
    /// The start of the next page; `None` for the first page.
    pub continuation: Option<SavedContinuation>,
    pub bytes: u64,
    pub entities: u64,
}

impl ExportState {
    pub fn new(subject: Subject) -> Self {
        Self { subject, found_columns: None, continuation: None, bytes: 0, entities: 0 }
    }
}

impl Checkpoint for ExportState {
    fn fresh(&self) -> Self {
        Self::new(self.subject.clone())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add_bytes(&mut self, count: u64) {
        self.bytes += count;
    }

    fn subject(&self) -> Vec<(&'static str, String)> {
        let Subject { endpoint, table, filter, select, columns, format } = &self.subject;
        let list = |names: &[String]| if names.is_empty() { "all".to_owned() } else { names.join(",") };
        vec![
            ("endpoint", endpoint.clone()),
            ("table", table.clone()),
            ("filter", filter.clone().unwrap_or_else(|| "none".to_owned())),
            ("select", list(select)),
            ("columns", list(columns)),
            ("format", format.ending().to_owned()),
        ]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedContinuation {
    pub partition: String,
    pub row: Option<String>,
}

impl SavedContinuation {
    pub fn of(next: &partita_client::Continuation) -> Self {
        Self { partition: next.partition_key().to_owned(), row: next.row_key().map(str::to_owned) }
    }

    pub fn to_client(&self) -> partita_client::Continuation {
        partita_client::Continuation::new(self.partition.as_str(), self.row.clone())
    }
}

/// What to do with a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Overwrite,
    Resume,
}

impl Existing {
    pub fn of_flags(resume: bool, overwrite: bool) -> Self {
        match (resume, overwrite) {
            (true, _) => Self::Resume,
            (false, true) => Self::Overwrite,
            (false, false) => Self::Refuse,
        }
    }
}

#[derive(Debug)]
pub enum Output {
    Standard,
    /// Opened by the first write, so a table that can't be read leaves no file.
    File {
        path: PathBuf,
        file: Option<File>,
        side: SideFile,
    },
}

impl Output {
    /// The state to continue from, or `None` if the file exists and is complete. Changes no file.
    pub fn open<S: Checkpoint>(
        path: &Path,
        fresh: S,
        existing: Existing,
    ) -> Result<Option<(Self, S)>, OutputError> {
        let side = side_file(path);
        let state = match (existing, path.exists()) {
            (Existing::Refuse, true) => {
                let path = path.to_owned();
                return Err(match side.exists() {
                    true => OutputError::Unfinished { path },
                    false => OutputError::Exists { path },
                });
            }
            (Existing::Resume, true) => match side.load::<S>()? {
                None => return Ok(None),
                Some(state) => same_subject(&side, state, &fresh)?,
            },
            _ => fresh,
        };
        Ok(Some((Self::File { path: path.to_owned(), file: None, side }, state)))
    }

    /// Adds a page. On return the page is durable, and the side file records it.
    pub fn write(&mut self, page: &[u8], state: &mut impl Checkpoint) -> Result<(), OutputError> {
        self.append(page, state)?;
        if let Self::File { side, .. } = self {
            side.save(state)?;
        }
        Ok(())
    }

    /// Adds the last page and deletes the side file. The state after the last page is never saved: it has no
    /// continuation, so a resumed run would export the table again from the first page.
    pub fn finish(mut self, page: &[u8], state: &mut impl Checkpoint) -> Result<(), OutputError> {
        self.append(page, state)?;
        if let Self::File { side, .. } = self {
            side.remove()?;
        }
        Ok(())
    }

    fn append(&mut self, page: &[u8], state: &mut impl Checkpoint) -> Result<(), OutputError> {
        match self {
            Self::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(page).and_then(|()| out.flush()).map_err(OutputError::StandardOutput)?;
            }
            Self::File { path, file, side } => {
                let file = match file {
                    Some(file) => file,
                    none => none.insert(open_at(path, side, state)?),
                };
                let written = file.write_all(page).and_then(|()| file.sync_data());
                written.map_err(|source| OutputError::Unwritten { path: path.clone(), source })?;
            }
        }
        state.add_bytes(page.len() as u64);
        Ok(())
    }
}

/// Opens a file and cuts off what follows the bytes that the state records.
fn open_at(path: &Path, side: &SideFile, state: &impl Checkpoint) -> Result<File, OutputError> {
    // The side file comes first: a file without one is complete.
    if state.bytes() == 0 {
        side.save(&state.fresh())?;
    }
    let fault = |source| OutputError::Unopened { path: path.to_owned(), source };
    let options = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let mut file = options.map_err(fault)?;
    if file.metadata().map_err(fault)?.len() < state.bytes() {
        return Err(OutputError::Shorter { path: path.to_owned(), side: side.path().to_owned() });
    }
    file.set_len(state.bytes()).map_err(fault)?;
    file.seek(SeekFrom::End(0)).map_err(fault)?;
    Ok(file)
}

/// The recorded state, if it is of the export that is asked for.
fn same_subject<S: Checkpoint>(side: &SideFile, recorded: S, asked: &S) -> Result<S, OutputError> {
    let pairs = recorded.subject().into_iter().zip(asked.subject());
    match pairs.into_iter().find(|(recorded, asked)| recorded != asked) {
        None => Ok(recorded),
        Some(((what, was), (_, is))) => {
            Err(OutputError::OtherExport { side: side.path().to_owned(), what, was, is })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(table: &str) -> ExportState {
        let endpoint = "http://h/a".to_owned();
        let (table, format) = (table.to_owned(), FileFormat::Jsonl);
        ExportState::new(Subject { endpoint, table, filter: None, select: vec![], columns: vec![], format })
    }

    fn ready(opened: Result<Option<(Output, ExportState)>, OutputError>) -> (Output, ExportState) {
        opened.unwrap().unwrap()
    }

    #[test]
    fn a_resumed_export_cuts_off_what_follows_the_last_recorded_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let (mut output, mut state) = ready(Output::open(&path, subject("t"), Existing::Refuse));
        state.entities = 7;
        output.write(b"page", &mut state).unwrap();
        drop(output);
        // A kill may leave a part of the next page.
        std::fs::write(&path, "page and a ha").unwrap();
        let (output, mut state) = ready(Output::open(&path, subject("t"), Existing::Resume));
        assert_eq!((state.entities, state.bytes), (7, 4));
        output.finish(b"+next", &mut state).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "page+next");
        assert!(!side_file(&path).exists());
        assert!(Output::open(&path, subject("t"), Existing::Resume).unwrap().is_none());
    }

    #[test]
    fn a_file_is_replaced_only_by_overwrite() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        std::fs::write(&path, "precious").unwrap();
        let refused = |subject, existing| Output::open(&path, subject, existing).unwrap_err();
        assert!(matches!(refused(subject("t"), Existing::Refuse), OutputError::Exists { .. }));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let (mut output, mut state) = ready(Output::open(&path, subject("t"), Existing::Overwrite));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious", "until the first write");
        output.write(b"new", &mut state).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert!(matches!(refused(subject("t"), Existing::Refuse), OutputError::Unfinished { .. }));
        let other = refused(subject("u"), Existing::Resume).to_string();
        assert!(other.contains("whose table was t, not u"), "{other}");
    }
}
