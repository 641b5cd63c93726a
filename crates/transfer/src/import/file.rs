//! One file into one table.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use partita_client::{Table, TableService};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant as TokioInstant;

use super::{ImportError, SUFFIX};
use crate::command::Mode;
use crate::endpoint::RequestError;
use crate::format::FileFormat;
use crate::group::{self, EntityGroup, EntityGroups, Rejection};
use crate::input::{Input, InputError};
use crate::ledger::Ledger;
use crate::output;
use crate::progress::{ProgressPrinter, grouped};
use crate::rejects::{Rejects, RejectsError};
use crate::side_file::{SideFile, SideFileError};
use crate::tables;
use crate::writer::{GroupOutcome, GroupWriter, Rules};

const READ_BYTES: usize = 256 * 1024;
/// Groups read ahead, in addition to those that wait for their partition.
const READ_AHEAD: usize = 2;
/// A resumed run repeats at most the work of this time.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// How long a run that must stop waits for the groups in flight.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

pub fn side_file(path: &Path) -> SideFile {
    SideFile::beside(path, SUFFIX)
}

/// Why the import of a file stopped before its end.
#[derive(Debug, Error)]
pub enum StopCause {
    #[error("{0}")]
    Signal(&'static str),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{0}; --rejects FILE sets such lines aside")]
    Rejection(#[source] Rejection),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("a writer failed: {0}")]
    Writer(#[from] JoinError),
    #[error(transparent)]
    Rejects(#[from] RejectsError),
    #[error(transparent)]
    SideFile(#[from] SideFileError),
}

/// Refuses an unfinished export: it has only a part of the table.
pub fn refuse_unfinished(path: &Path) -> Result<(), ImportError> {
    let side = output::side_file(path);
    if !crate::is_standard(path) && side.exists() {
        return Err(ImportError::UnfinishedExport { path: path.to_owned(), side: side.path().to_owned() });
    }
    Ok(())
}

#[derive(Debug)]
pub struct FileImport {
    pub path: PathBuf,
    pub table: String,
    pub format: FileFormat,
    pub rejects: Option<PathBuf>,
    /// Keep the side file at the end; it then says that the file is complete.
    pub keeps_side_file: bool,
    pub mode: Mode,
    pub parallel: usize,
    pub resume: bool,
    pub service: TableService,
    pub progress: Arc<ProgressPrinter>,
}

/// How far an import is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ImportState {
    endpoint: String,
    table: String,
    mode: Mode,
    /// All entities in this many bytes of the file are stored or rejected.
    bytes: u64,
    written: u64,
    rejected: u64,
    /// The length of the file of rejected lines at that point.
    rejects_bytes: u64,
    complete: bool,
}

impl FileImport {
    /// Returns the number of rejected entities.
    pub async fn run(self) -> Result<u64, ImportError> {
        let file =
            if self.is_standard() { "standard input".to_owned() } else { self.path.display().to_string() };
        let unreadable = |source| ImportError::Input { file: file.clone(), source };
        refuse_unfinished(&self.path)?;
        let mut state = self.state()?;
        if state.complete {
            self.progress.notice(&format!("{file} is complete"));
            return Ok(state.rejected);
        }
        let (mut input, total) = self.input().map_err(unreadable)?;
        input.skip_to(state.bytes).map_err(unreadable)?;
        let resumed = self.resume.then_some(state.rejects_bytes);
        let first_line = input.first_line().to_vec();
        let rejects = self.rejects.as_deref().map(|path| Rejects::open(path, &first_line, resumed));
        let rejects = rejects.transpose()?;
        let table = tables::create(&self.service, &self.table).await?;

        let side = self.side(&state)?;
        self.progress.start(format!("importing {}", self.table), state.written, total);
        let writers = self.writers(&table);
        let mut run = Run {
            groups: read_ahead(EntityGroups::new(input, rejects.is_some())),
            waiting_max: 2 * writers.len(),
            idle: writers,
            in_flight: JoinSet::new(),
            waiting: VecDeque::new(),
            busy: HashSet::new(),
            ledger: Ledger::default(),
            rejects,
            side,
            saved: Instant::now(),
            progress: &self.progress,
            stopped_by: None,
            deadline: None,
        };
        let outcome = run.all(&mut state).await;
        state.complete = outcome.is_ok();
        if let Some(side) = &run.side {
            if state.complete && !self.keeps_side_file { side.remove()? } else { side.save(&state)? }
        }
        let done = state.written + state.rejected;
        let read = grouped(done);
        let (written, rejected) = (grouped(state.written), grouped(state.rejected));
        self.progress
            .notice(&format!("{}: {read} entities read, {written} written, {rejected} rejected", self.table));
        match outcome {
            Ok(()) => Ok(state.rejected),
            Err(cause) => Err(ImportError::Stopped {
                file,
                cause: Box::new(cause),
                resumable: run.side.is_some().then_some(done),
            }),
        }
    }

    fn is_standard(&self) -> bool {
        crate::is_standard(&self.path)
    }

    fn writers(&self, table: &Table) -> Vec<GroupWriter> {
        let rules = Rules { mode: self.mode, resumed: self.resume, stops: self.rejects.is_none() };
        (0..self.parallel).map(|_| GroupWriter::new(self.service.clone(), table.clone(), rules)).collect()
    }

    fn input(&self) -> Result<(Input, Option<u64>), InputError> {
        if self.is_standard() {
            return Ok((
                Input::new(BufReader::with_capacity(READ_BYTES, std::io::stdin()), self.format)?,
                None,
            ));
        }
        let file = File::open(&self.path).map_err(InputError::Unreadable)?;
        let length = file.metadata().map_err(InputError::Unreadable)?.len();
        Ok((Input::new(BufReader::with_capacity(READ_BYTES, file), self.format)?, Some(length)))
    }

    fn state(&self) -> Result<ImportState, ImportError> {
        let fresh = ImportState {
            endpoint: self.service.url(),
            table: self.table.clone(),
            mode: self.mode,
            bytes: 0,
            written: 0,
            rejected: 0,
            rejects_bytes: 0,
            complete: false,
        };
        if !self.resume {
            return Ok(fresh);
        }
        if self.is_standard() {
            return Err(ImportError::ResumeFromStandardInput);
        }
        let side = side_file(&self.path);
        let Some(state) = side.load::<ImportState>()? else { return Ok(fresh) };
        let name = |mode: Mode| format!("{mode:?}").to_lowercase();
        let pairs = [
            ("endpoint", state.endpoint.clone(), fresh.endpoint),
            ("table", state.table.clone(), fresh.table),
            ("mode", name(state.mode), name(fresh.mode)),
        ];
        match pairs.into_iter().find(|(_, was, is)| was != is) {
            None => Ok(state),
            Some((what, was, is)) => {
                Err(ImportError::OtherImport { side: side.path().to_owned(), what, was, is })
            }
        }
    }

    /// The side file; `None` if there can't be one.
    fn side(&self, state: &ImportState) -> Result<Option<SideFile>, SideFileError> {
        if self.is_standard() {
            return Ok(None);
        }
        let side = side_file(&self.path);
        match side.save(state) {
            Ok(()) => Ok(Some(side)),
            // A file in a read-only directory can be imported, too.
            Err(error) if !self.resume => {
                self.progress.notice(&format!("{error}; if this import is interrupted, it can't be resumed"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads in its own thread, because files and standard input block.
fn read_ahead(mut groups: EntityGroups) -> mpsc::Receiver<Result<EntityGroup, InputError>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    // The thread ends with the file, or when the receiver is dropped.
    std::thread::spawn(move || {
        while let Some(next) = groups.next().transpose() {
            let failed = next.is_err();
            if sender.blocking_send(next).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

/// Hands groups to writers.
struct Run<'a> {
    groups: mpsc::Receiver<Result<EntityGroup, InputError>>,
    waiting_max: usize,
    idle: Vec<GroupWriter>,
    in_flight: JoinSet<WriterReport>,
    /// Groups that were read and wait, mostly because another group of their partition is in flight.
    waiting: VecDeque<EntityGroup>,
    /// Partitions of the groups in flight.
    busy: HashSet<String>,
    ledger: Ledger,
    rejects: Option<Rejects>,
    side: Option<SideFile>,
    saved: Instant,
    progress: &'a ProgressPrinter,
    /// Why no more groups are sent, and the number of the group that is the reason. The earliest group counts.
    stopped_by: Option<(u64, StopCause)>,
    /// Then: how long to wait for the groups in flight.
    deadline: Option<TokioInstant>,
}

/// What a writer did with one group.
struct WriterReport {
    writer: GroupWriter,
    number: u64,
    partition: Option<String>,
    outcome: Result<GroupOutcome, RequestError>,
}

impl Run<'_> {
    async fn all(&mut self, state: &mut ImportState) -> Result<(), StopCause> {
        let mut stop = Box::pin(crate::stop_signal());
        let mut at_end = false;
        loop {
            let stopping = self.deadline.is_some();
            if !stopping {
                self.begin();
            }
            if self.in_flight.is_empty() && (stopping || at_end && self.waiting.is_empty()) {
                break;
            }
            let reads = !stopping && !at_end && self.waiting.len() < self.waiting_max;
            tokio::select! {
                Some(report) = self.in_flight.join_next() => self.end(report?, state)?,
                group = self.groups.recv(), if reads => match group {
                    Some(Ok(group)) => self.waiting.push_back(group),
                    Some(Err(error)) => self.stop(u64::MAX, error.into()),
                    None => at_end = true,
                },
                signal = &mut stop, if !stopping => self.stop(0, StopCause::Signal(signal)),
                () = until(self.deadline) => break,
            }
        }
        match self.stopped_by.take() {
            Some((_, cause)) => Err(cause),
            None => Ok(()),
        }
    }

    fn stop(&mut self, number: u64, cause: StopCause) {
        if self.stopped_by.as_ref().is_none_or(|(earliest, _)| number < *earliest) {
            self.stopped_by = Some((number, cause));
        }
        self.deadline.get_or_insert_with(|| TokioInstant::now() + STOP_TIME_MAX);
    }

    fn begin(&mut self) {
        while !self.idle.is_empty()
            && let Some(place) = group::ready(&self.waiting, &self.busy)
            && self.waiting.get(place).is_some_and(|group| self.ledger.admits(group.number))
            && let Some(group) = self.waiting.remove(place)
            && let Some(writer) = self.idle.pop()
        {
            let number = group.number;
            let partition = group.partition().map(str::to_owned);
            self.busy.extend(partition.clone());
            self.in_flight.spawn(async move {
                let outcome = writer.store(group).await;
                WriterReport { writer, number, partition, outcome }
            });
        }
    }

    fn end(&mut self, report: WriterReport, state: &mut ImportState) -> Result<(), StopCause> {
        let WriterReport { writer, number, partition, outcome } = report;
        self.idle.push(writer);
        if let Some(partition) = &partition {
            self.busy.remove(partition);
        }
        match outcome {
            Err(error) => self.stop(number, error.into()),
            Ok(mut outcome) if self.rejects.is_none() && !outcome.rejections.is_empty() => {
                self.stop(number, StopCause::Rejection(outcome.rejections.swap_remove(0)));
            }
            Ok(outcome) => self.ledger.done(number, outcome),
        }
        while let Some(outcome) = self.ledger.settle() {
            for rejection in &outcome.rejections {
                self.progress.say(&rejection.to_string());
            }
            if let Some(rejects) = &mut self.rejects {
                rejects.add(outcome.rejections.iter().map(|rejection| rejection.raw.as_slice()))?;
                state.rejects_bytes = rejects.bytes();
            }
            state.bytes = outcome.end;
            state.written += outcome.written;
            state.rejected += outcome.rejections.len() as u64;
        }
        self.progress.update(state.written, state.bytes);
        if let Some(side) = &self.side
            && self.saved.elapsed() >= SAVE_INTERVAL
        {
            side.save(state)?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}

async fn until(deadline: Option<TokioInstant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
