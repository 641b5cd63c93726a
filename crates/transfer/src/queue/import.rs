//! `partita queue import`: the messages of a file into a queue.
//!
//! A Put has no key that would tell that it was done before. So what a killed run has put and not recorded is put again:
//! nothing is lost, and a message may be there twice, as with every lost answer of this protocol.

mod run;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use super::command::QueueImportCommand;
use super::endpoint::{QueueRequestError, Queues};
use crate::format::FileFormat;
use crate::import::SUFFIX;
use crate::input::{Input, InputError};
use crate::output;
use crate::progress::{ProgressPrinter, grouped};
use crate::rejects::{Rejects, RejectsError};
use crate::side_file::{SideFile, SideFileError};
use run::{Rejection, Run};

/// Why not every message was put.
#[derive(Debug, ThisError)]
pub enum QueueImportError {
    #[error(transparent)]
    Request(#[from] QueueRequestError),
    #[error(transparent)]
    SideFile(#[from] SideFileError),
    #[error("{file}: {source}")]
    Input { file: String, source: InputError },
    #[error(transparent)]
    Rejects(#[from] RejectsError),
    #[error("can't create the directory {}: {source}", .path.display())]
    RejectsDirectory { path: PathBuf, source: io::Error },
    #[error("can't read the directory {}: {source}", .path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{} contains no .jsonl file", .directory.display())]
    NoFiles { directory: PathBuf },
    #[error(
        "{} is an interrupted export; finish it with `partita queue export --resume`, or delete {} to import the part that \
         exists",
        .path.display(), .side.display()
    )]
    UnfinishedExport { path: PathBuf, side: PathBuf },
    #[error("an import from standard input can't be resumed; import a file")]
    ResumeFromStandardInput,
    #[error("{} belongs to an import whose {what} was {was}, not {is}; --resume needs the same", .side.display())]
    OtherImport { side: PathBuf, what: &'static str, was: String, is: String },
    #[error(
        "can't create the queue {queue}: the old queue of that name is still being deleted; try again later"
    )]
    BeingDeleted { queue: String },
    #[error(
        "{file}, line {line}: {reason}; correct the line, or set it aside with --rejects FILE{}",
        resume_hint(*.resumable)
    )]
    Stopped { file: String, line: u64, reason: Rejection, resumable: bool },
    #[error("{} lines were rejected; they are in {}", grouped(*.count), .rejects.display())]
    Rejected { count: u64, rejects: PathBuf },
    #[error("{file}: {signal} after {} messages{}", grouped(*.put), resume_hint(*.resumable))]
    Interrupted { file: String, signal: &'static str, put: u64, resumable: bool },
}

fn resume_hint(resumable: bool) -> &'static str {
    if resumable { "; --resume continues after the messages that are put" } else { "" }
}

/// How far an import is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct QueueImportState {
    endpoint: String,
    queue: String,
    /// All messages in this many bytes of the file are put, had expired, or are rejected.
    bytes: u64,
    put: u64,
    expired: u64,
    #[serde(default)]
    rejected: u64,
    /// The length of the file of rejected lines at that point.
    #[serde(default)]
    rejects_bytes: u64,
    complete: bool,
}

pub async fn run(command: &QueueImportCommand) -> Result<(), QueueImportError> {
    let progress = Arc::new(ProgressPrinter::of_messages(command.quiet));
    let queues = Queues::connect_patiently(&command.connection, &progress)?;
    let import = Import { command, queues, progress: progress.clone() };
    let outcome = import.run().await;
    progress.clear();
    outcome
}

struct Import<'a> {
    command: &'a QueueImportCommand,
    queues: Queues,
    progress: Arc<ProgressPrinter>,
}

impl Import<'_> {
    async fn run(&self) -> Result<(), QueueImportError> {
        let (from, rejects) = (&self.command.from, self.command.rejects.as_deref());
        let rejected = match &self.command.queue {
            Some(queue) => self.file(from, queue, rejects, false).await?,
            None => self.all(from, rejects).await?,
        };
        match rejects.filter(|_| rejected > 0) {
            None => Ok(()),
            Some(rejects) => Err(QueueImportError::Rejected { count: rejected, rejects: rejects.to_owned() }),
        }
    }

    async fn all(&self, from: &Path, rejects: Option<&Path>) -> Result<u64, QueueImportError> {
        let files = files(from)?;
        for (_, path) in &files {
            refuse_unfinished(path)?;
        }
        if let Some(rejects) = rejects {
            std::fs::create_dir_all(rejects)
                .map_err(|source| QueueImportError::RejectsDirectory { path: rejects.to_owned(), source })?;
        }
        let mut rejected = 0;
        for (queue, path) in &files {
            let rejects = rejects.zip(path.file_name()).map(|(directory, name)| directory.join(name));
            // Side files stay until all files are done, so that a resumed run skips the files that are complete.
            rejected += self.file(path, queue, rejects.as_deref(), true).await?;
        }
        for (_, path) in &files {
            SideFile::beside(path, SUFFIX).remove()?;
        }
        Ok(rejected)
    }

    /// How many lines were rejected.
    async fn file(
        &self,
        path: &Path,
        name: &str,
        rejects: Option<&Path>,
        keeps_side_file: bool,
    ) -> Result<u64, QueueImportError> {
        refuse_unfinished(path)?;
        let is_standard = crate::is_standard(path);
        let file = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
        let queue = self.queues.queue(name)?;
        let state = self.state(path, name)?;
        if state.complete {
            self.progress.notice(&format!("{file} is complete"));
            return Ok(state.rejected);
        }
        let broken = |source| QueueImportError::Input { file: file.clone(), source };
        let (reader, total): (Box<dyn BufRead + Send>, _) = match is_standard {
            true => (Box::new(BufReader::new(io::stdin())), None),
            false => {
                let unreadable = |source| broken(InputError::Unreadable(source));
                let open = File::open(path).map_err(unreadable)?;
                let length = open.metadata().map_err(unreadable)?.len();
                (Box::new(BufReader::new(open)), Some(length))
            }
        };
        let mut input = Input::new(reader, FileFormat::Jsonl).map_err(broken)?;
        input.skip_to(state.bytes).map_err(broken)?;
        let resumed = self.command.resume.then_some(state.rejects_bytes);
        let rejects = rejects.map(|path| Rejects::open(path, b"", resumed)).transpose()?;
        let side = if is_standard { None } else { self.side(path, &state)? };
        self.progress.start(format!("importing {name}"), state.put, total);
        let is_created = state.bytes > 0;
        let mut run = Run::new(self, queue, file, side, rejects, state, is_created);
        let outcome = run.all(run::read_ahead(input)).await;
        run.state.complete = outcome.is_ok();
        if let Some(side) = &run.side {
            if run.state.complete && !keeps_side_file { side.remove()? } else { side.save(&run.state)? }
        }
        let (put, expired) = (grouped(run.state.put), grouped(run.state.expired));
        self.progress.notice(&format!("{name}: {put} messages put, {expired} had expired"));
        outcome.map(|()| run.state.rejected)
    }

    fn state(&self, path: &Path, queue: &str) -> Result<QueueImportState, QueueImportError> {
        let (endpoint, queue) = (self.queues.service.url(), queue.to_owned());
        let fresh = QueueImportState {
            endpoint,
            queue,
            bytes: 0,
            put: 0,
            expired: 0,
            rejected: 0,
            rejects_bytes: 0,
            complete: false,
        };
        if !self.command.resume {
            return Ok(fresh);
        }
        if crate::is_standard(path) {
            return Err(QueueImportError::ResumeFromStandardInput);
        }
        let side = SideFile::beside(path, SUFFIX);
        let Some(state) = side.load::<QueueImportState>()? else { return Ok(fresh) };
        let pairs = [
            ("endpoint", state.endpoint.clone(), fresh.endpoint),
            ("queue", state.queue.clone(), fresh.queue),
        ];
        match pairs.into_iter().find(|(_, was, is)| was != is) {
            None => Ok(state),
            Some((what, was, is)) => {
                Err(QueueImportError::OtherImport { side: side.path().to_owned(), what, was, is })
            }
        }
    }

    /// The side file; `None` if there can't be one.
    fn side(&self, path: &Path, state: &QueueImportState) -> Result<Option<SideFile>, SideFileError> {
        let side = SideFile::beside(path, SUFFIX);
        match side.save(state) {
            Ok(()) => Ok(Some(side)),
            // A file in a read-only directory can be imported, too.
            Err(error) if !self.command.resume => {
                self.progress.notice(&format!("{error}; if this import is interrupted, it can't be resumed"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn refuse_unfinished(path: &Path) -> Result<(), QueueImportError> {
    let side = output::side_file(path);
    if !crate::is_standard(path) && side.exists() {
        let (path, side) = (path.to_owned(), side.path().to_owned());
        return Err(QueueImportError::UnfinishedExport { path, side });
    }
    Ok(())
}

/// The files of a directory with their queues, which their names say.
fn files(directory: &Path) -> Result<Vec<(String, PathBuf)>, QueueImportError> {
    let fault = |source| QueueImportError::Directory { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let is_ours = FileFormat::of_ending(&path) == Some(FileFormat::Jsonl);
        if let Some(queue) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_ours) {
            files.push((queue.to_owned(), path.clone()));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(QueueImportError::NoFiles { directory: directory.to_owned() });
    }
    Ok(files)
}
