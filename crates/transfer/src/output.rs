//! Where an export goes: standard output, or a file with a side file that says how much of it is good.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::format::Format;
use crate::side_file::SideFile;

const SUFFIX: &str = ".progress";

/// The side file of a file that is being exported to.
pub fn side_file(path: &Path) -> SideFile {
    SideFile::beside(path, SUFFIX)
}

/// What is exported: a run can go on only with the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub endpoint: String,
    pub table: String,
    pub filter: Option<String>,
    pub select: Vec<String>,
    pub columns: Vec<String>,
    pub format: Format,
}

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    #[serde(flatten)]
    pub subject: Subject,
    /// Of CSV, once they are known.
    pub found_columns: Option<Vec<String>>,
    /// Where the next page begins: at the table's beginning if there is none.
    pub continuation: Option<Continuation>,
    pub bytes: u64,
    pub entities: u64,
}

impl State {
    pub fn new(subject: Subject) -> Self {
        Self { subject, found_columns: None, continuation: None, bytes: 0, entities: 0 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    pub partition: String,
    pub row: Option<String>,
}

impl Continuation {
    pub fn of(next: &partita_client::Continuation) -> Self {
        Self { partition: next.partition_key().to_owned(), row: next.row_key().map(str::to_owned) }
    }

    pub fn to_client(&self) -> partita_client::Continuation {
        partita_client::Continuation::new(self.partition.as_str(), self.row.clone())
    }
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Refused,
    Overwritten,
    Resumed,
}

#[derive(Debug)]
pub enum Output {
    Standard,
    /// Not opened before there is something to write: what can't be read leaves no trace.
    File {
        path: PathBuf,
        file: Option<File>,
        side: SideFile,
    },
}

impl Output {
    /// Where to go on, or nothing if the file is there and whole. It is not touched yet.
    pub fn open(path: &Path, subject: Subject, existing: Existing) -> Result<Option<(Self, State)>, String> {
        let side = side_file(path);
        let fresh = State::new(subject);
        let state = match (existing, path.exists()) {
            (Existing::Refused, true) => {
                let name = path.display();
                return Err(if side.exists() {
                    format!(
                        "{name} is of an export that was interrupted; --resume goes on, --overwrite begins anew"
                    )
                } else {
                    format!("{name} is there already; --overwrite replaces it")
                });
            }
            (Existing::Resumed, true) => match side.load::<State>()? {
                None => return Ok(None),
                Some(state) if state.subject == fresh.subject => state,
                Some(state) => return Err(other_subject(&side, &state.subject, &fresh.subject)),
            },
            _ => fresh,
        };
        Ok(Some((Self::File { path: path.to_owned(), file: None, side }, state)))
    }

    /// Adds a page. On return it is where it should be, and the side file says so.
    pub fn write(&mut self, page: &[u8], state: &mut State) -> Result<(), String> {
        self.append(page, state)?;
        match self {
            Self::Standard => Ok(()),
            Self::File { side, .. } => side.save(state),
        }
    }

    /// Adds the last page. Until the side file is gone it tells of the page before: one without a continuation
    /// would send a resumed run back to the beginning.
    pub fn finish(mut self, page: &[u8], state: &mut State) -> Result<(), String> {
        self.append(page, state)?;
        match self {
            Self::Standard => Ok(()),
            Self::File { side, .. } => side.remove(),
        }
    }

    fn append(&mut self, page: &[u8], state: &mut State) -> Result<(), String> {
        match self {
            Self::Standard => {
                let mut out = std::io::stdout().lock();
                out.write_all(page)
                    .and_then(|()| out.flush())
                    .map_err(|error| format!("can't write to standard output: {error}"))?;
            }
            Self::File { path, file, side } => {
                let file = match file {
                    Some(file) => file,
                    none => none.insert(open_at(path, side, state)?),
                };
                let written = file.write_all(page).and_then(|()| file.sync_data());
                written.map_err(|error| {
                    format!("can't write {}: {error}; once there is room, --resume goes on", path.display())
                })?;
            }
        }
        state.bytes += page.len() as u64;
        Ok(())
    }
}

/// Opens a file where the state says that it ends.
fn open_at(path: &Path, side: &SideFile, state: &State) -> Result<File, String> {
    // First the side file: a file without one is whole.
    if state.bytes == 0 {
        side.save(&State::new(state.subject.clone()))?;
    }
    let fault = |error: std::io::Error| format!("can't write {}: {error}", path.display());
    let options = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let mut file = options.map_err(fault)?;
    if file.metadata().map_err(fault)?.len() < state.bytes {
        let (path, side) = (path.display(), side.path().display());
        return Err(format!("{path} is shorter than {side} says; --overwrite begins anew"));
    }
    file.set_len(state.bytes).map_err(fault)?;
    file.seek(SeekFrom::End(0)).map_err(fault)?;
    Ok(file)
}

fn other_subject(side: &SideFile, recorded: &Subject, asked: &Subject) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let list = |names: &[String]| if names.is_empty() { "all".to_owned() } else { names.join(",") };
    let pairs = [
        ("endpoint", recorded.endpoint.clone(), asked.endpoint.clone()),
        ("table", recorded.table.clone(), asked.table.clone()),
        ("filter", text(&recorded.filter), text(&asked.filter)),
        ("select", list(&recorded.select), list(&asked.select)),
        ("columns", list(&recorded.columns), list(&asked.columns)),
        ("format", recorded.format.ending().to_owned(), asked.format.ending().to_owned()),
    ];
    let differs = pairs.iter().find(|(_, recorded, asked)| recorded != asked);
    let (what, recorded, asked) = differs.map_or(("subject", "", ""), |(what, a, b)| (*what, a, b));
    format!(
        "{} is of an export whose {what} was {recorded}, not {asked}; --resume needs the same, --overwrite begins anew",
        side.path().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(table: &str) -> Subject {
        let endpoint = "http://h/a".to_owned();
        let (table, format) = (table.to_owned(), Format::Jsonl);
        Subject { endpoint, table, filter: None, select: vec![], columns: vec![], format }
    }

    fn ready(opened: Result<Option<(Output, State)>, String>) -> (Output, State) {
        opened.unwrap().unwrap()
    }

    #[test]
    fn what_was_written_after_the_last_page_is_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let (mut output, mut state) = ready(Output::open(&path, subject("t"), Existing::Refused));
        state.entities = 7;
        output.write(b"page", &mut state).unwrap();
        drop(output);
        // A kill may leave a part of the next page.
        std::fs::write(&path, "page and a ha").unwrap();
        let (output, mut state) = ready(Output::open(&path, subject("t"), Existing::Resumed));
        assert_eq!((state.entities, state.bytes), (7, 4));
        output.finish(b"+next", &mut state).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "page+next");
        assert!(!side_file(&path).exists());
        assert!(Output::open(&path, subject("t"), Existing::Resumed).unwrap().is_none());
    }

    #[test]
    fn a_file_is_only_replaced_when_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        std::fs::write(&path, "precious").unwrap();
        let refused = |subject, existing| Output::open(&path, subject, existing).unwrap_err();
        assert!(
            refused(subject("t"), Existing::Refused).ends_with("is there already; --overwrite replaces it")
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let (mut output, mut state) = ready(Output::open(&path, subject("t"), Existing::Overwritten));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious", "until there is something else");
        output.write(b"new", &mut state).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert!(refused(subject("t"), Existing::Refused).contains("--resume goes on"));
        assert!(refused(subject("u"), Existing::Resumed).contains("whose table was t, not u"));
    }
}
