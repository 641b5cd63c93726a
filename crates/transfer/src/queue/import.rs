//! `partita queue import`: the messages of a file into a queue.
//!
//! A Put has no key that would tell that it was done before. So what a killed run has put and not recorded is put again:
//! nothing is lost, and a message may be there twice, as with every lost answer of this protocol.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use model::DateTime;
use partita_client::{Error, PutOptions, Queue, TimeToLive};
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;
use tokio::sync::mpsc;

use super::command::QueueImportCommand;
use super::endpoint::{QueueRequestError, Queues};
use super::line::{self, ImportedMessage, Line, LineError};
use crate::format::FileFormat;
use crate::import::SUFFIX;
use crate::input::{Input, InputError, RawRecord};
use crate::output;
use crate::progress::{ProgressPrinter, grouped};
use crate::side_file::{SideFile, SideFileError};
use crate::tables::{DELETION_ATTEMPTS, DELETION_PAUSE};

/// Lines read ahead.
const READ_AHEAD: usize = 64;
/// A run that continues after a kill repeats at most the work of this time.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);
/// How long a run that must stop waits for the messages on their way.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

/// Why not every message was put.
#[derive(Debug, ThisError)]
pub enum QueueImportError {
    #[error(transparent)]
    Request(#[from] QueueRequestError),
    #[error(transparent)]
    SideFile(#[from] SideFileError),
    #[error("{file}: {source}")]
    Input { file: String, source: InputError },
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
    #[error("{file}, line {line}: {source}; correct the line{}", resume_hint(*.resumable))]
    Line { file: String, line: u64, source: LineError, resumable: bool },
    #[error("{file}, line {line}: {source}; correct the line{}", resume_hint(*.resumable))]
    Refused { file: String, line: u64, source: Box<Error>, resumable: bool },
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
    /// All messages in this many bytes of the file are put, or had expired.
    bytes: u64,
    put: u64,
    expired: u64,
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
        let from = &self.command.from;
        if let Some(queue) = &self.command.queue {
            self.file(from, queue, false).await?;
            return Ok(());
        }
        let files = files(from)?;
        for (_, path) in &files {
            refuse_unfinished(path)?;
        }
        for (queue, path) in &files {
            // Side files stay until all files are done, so that a resumed run skips the files that are complete.
            self.file(path, queue, true).await?;
        }
        for (_, path) in &files {
            SideFile::beside(path, SUFFIX).remove()?;
        }
        Ok(())
    }

    async fn file(&self, path: &Path, name: &str, keeps_side_file: bool) -> Result<(), QueueImportError> {
        refuse_unfinished(path)?;
        let is_standard = crate::is_standard(path);
        let file = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
        let queue = self.queues.queue(name)?;
        let state = self.state(path, name)?;
        if state.complete {
            self.progress.notice(&format!("{file} is complete"));
            return Ok(());
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
        let side = if is_standard { None } else { self.side(path, &state)? };
        self.progress.start(format!("importing {name}"), state.put, total);
        let is_created = state.bytes > 0;
        let mut run = Run { import: self, queue, file, side, state, is_created, saved: Instant::now() };
        let outcome = run.all(read_ahead(input)).await;
        run.state.complete = outcome.is_ok();
        if let Some(side) = &run.side {
            if run.state.complete && !keeps_side_file { side.remove()? } else { side.save(&run.state)? }
        }
        let (put, expired) = (grouped(run.state.put), grouped(run.state.expired));
        self.progress.notice(&format!("{name}: {put} messages put, {expired} had expired"));
        outcome
    }

    fn state(&self, path: &Path, queue: &str) -> Result<QueueImportState, QueueImportError> {
        let (endpoint, queue) = (self.queues.service.url(), queue.to_owned());
        let fresh = QueueImportState { endpoint, queue, bytes: 0, put: 0, expired: 0, complete: false };
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

/// One file on its way into one queue.
struct Run<'a> {
    import: &'a Import<'a>,
    queue: Queue,
    file: String,
    side: Option<SideFile>,
    state: QueueImportState,
    is_created: bool,
    saved: Instant,
}

/// A message that was put, or had expired, and where it ends in the file.
struct Settled {
    line: u64,
    end: u64,
    put: Result<bool, Error>,
}

impl Run<'_> {
    async fn all(
        &mut self,
        mut records: mpsc::Receiver<Result<RawRecord, InputError>>,
    ) -> Result<(), QueueImportError> {
        let parallel = usize::from(self.import.command.parallel);
        let mut on_their_way = FuturesOrdered::new();
        let mut stop = pin!(crate::stop_signal());
        let (mut stopped_by, mut deadline) = (None, None);
        let mut is_over = false;
        while !is_over || !on_their_way.is_empty() {
            let has_room = !is_over && on_their_way.len() < parallel;
            tokio::select! {
                signal = &mut stop, if stopped_by.is_none() => {
                    (stopped_by, is_over) = (Some(signal), true);
                    deadline = Some(tokio::time::Instant::now() + STOP_TIME_MAX);
                }
                () = until(deadline) => break,
                Some(settled) = on_their_way.next(), if !on_their_way.is_empty() => self.settle(settled)?,
                record = records.recv(), if has_room => match record {
                    None => is_over = true,
                    Some(Err(source)) => return Err(QueueImportError::Input { file: self.file.clone(), source }),
                    Some(Ok(record)) => {
                        // It may create the queue, and that may take long.
                        let message = tokio::select! {
                            message = self.message(&record) => message?,
                            signal = &mut stop => {
                                (stopped_by, is_over) = (Some(signal), true);
                                deadline = Some(tokio::time::Instant::now() + STOP_TIME_MAX);
                                continue;
                            }
                        };
                        if let Some(message) = message {
                            let queue = self.queue.clone();
                            on_their_way.push_back(async move {
                                Settled { line: record.line, end: record.end, put: put(&queue, &message).await }
                            });
                        }
                    }
                },
            }
        }
        match stopped_by {
            // A file without messages makes a queue, too.
            None => self.create(&BTreeMap::new()).await,
            Some(signal) => Err(QueueImportError::Interrupted {
                file: self.file.clone(),
                signal,
                put: self.state.put,
                resumable: self.side.is_some(),
            }),
        }
    }

    /// The message of a line; `None` if the line names the queue, which is then created.
    async fn message(&mut self, record: &RawRecord) -> Result<Option<ImportedMessage>, QueueImportError> {
        let read = line::read(&record.raw).map_err(|source| QueueImportError::Line {
            file: self.file.clone(),
            line: record.line,
            source,
            resumable: self.side.is_some(),
        })?;
        match read {
            Line::Queue(queue) => self.create(&queue.metadata).await.map(|()| None),
            Line::Message(message) => self.create(&BTreeMap::new()).await.map(|()| Some(message)),
        }
    }

    /// Creates the queue, unless it is there or this was done before.
    async fn create(&mut self, metadata: &BTreeMap<String, String>) -> Result<(), QueueImportError> {
        if self.is_created {
            return Ok(());
        }
        for _ in 0..DELETION_ATTEMPTS {
            let error = match self.queue.create(metadata).await {
                Ok(()) => break,
                Err(error) => error,
            };
            match (error.status(), error.code()) {
                (Some(409), Some("QueueAlreadyExists")) => break,
                // A shared access signature may not allow this. The first message shows whether the queue exists.
                (Some(403), _) => break,
                (Some(409), Some("QueueBeingDeleted")) => tokio::time::sleep(DELETION_PAUSE).await,
                _ if error.is_outcome_unknown() => break,
                _ => return Err(self.import.queues.failed(&self.state.queue, error).into()),
            }
        }
        self.is_created = true;
        Ok(())
    }

    fn settle(&mut self, settled: Settled) -> Result<(), QueueImportError> {
        match settled.put {
            Ok(true) => self.state.put += 1,
            Ok(false) => self.state.expired += 1,
            Err(error @ Error::Invalid(_)) => return Err(self.refused(settled.line, error)),
            Err(error) if error.status() == Some(400) || error.status() == Some(413) => {
                return Err(self.refused(settled.line, error));
            }
            Err(error) => return Err(self.import.queues.failed(&self.state.queue, error).into()),
        }
        self.state.bytes = settled.end;
        self.import.progress.update(self.state.put, self.state.bytes);
        if let Some(side) = self.side.as_ref().filter(|_| self.saved.elapsed() >= SAVE_INTERVAL) {
            side.save(&self.state)?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn refused(&self, line: u64, source: Error) -> QueueImportError {
        let (file, source, resumable) = (self.file.clone(), Box::new(source), self.side.is_some());
        QueueImportError::Refused { file, line, source, resumable }
    }
}

/// False if the message has expired. Times are reckoned when it is put, not when its line was read.
async fn put(queue: &Queue, message: &ImportedMessage) -> Result<bool, Error> {
    let now = DateTime::now();
    let mut options = PutOptions::new();
    match message.expires {
        None => {}
        Some(None) => options = options.time_to_live(TimeToLive::Forever),
        Some(Some(expires)) => match time_from(now, expires) {
            Some(time) => options = options.time_to_live(TimeToLive::For(time)),
            None => return Ok(false),
        },
    }
    if let Some(delay) = message.next_visible.and_then(|time| time_from(now, time)) {
        options = options.visible_after(delay);
    }
    queue.put_with(&message.text, options).await.map(|_| true)
}

/// `None` if the time is over.
fn time_from(now: DateTime, then: DateTime) -> Option<Duration> {
    let ticks = u64::try_from(then.ticks() - now.ticks()).ok().filter(|ticks| *ticks > 0)?;
    Some(Duration::from_nanos(ticks.saturating_mul(100)))
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Reads in its own thread, because files and standard input block.
fn read_ahead(mut input: Input) -> mpsc::Receiver<Result<RawRecord, InputError>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    // The thread ends with the file, or when the receiver is dropped.
    std::thread::spawn(move || {
        while let Some(next) = input.next_raw().transpose() {
            let failed = next.is_err();
            if sender.blocking_send(next).is_err() || failed {
                return;
            }
        }
    });
    receiver
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_over_is_none() {
        let time = |text: &str| DateTime::parse(text).unwrap();
        let now = time("2030-01-01T00:00:00Z");
        for (then, expected) in [
            ("2030-01-01T00:00:07Z", Some(Duration::from_secs(7))),
            ("2030-01-01T00:00:00.0000001Z", Some(Duration::from_nanos(100))),
            ("2030-01-01T00:00:00Z", None),
            ("2029-12-31T23:59:59Z", None),
        ] {
            assert_eq!(time_from(now, time(then)), expected, "{then}");
        }
    }
}
