//! One file into one table.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use partita_client::{Table, TableService};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant as TokioInstant;

use crate::command::Mode;
use crate::format::Format;
use crate::group::{self, Group, Groups, Rejected};
use crate::input::Input;
use crate::ledger::Ledger;
use crate::output;
use crate::progress::{Progress, grouped};
use crate::rejects::Rejects;
use crate::side_file::SideFile;
use crate::tables;
use crate::writer::{Rules, Stored, Writer};

const SUFFIX: &str = ".import-progress";
const READ_BYTES: usize = 256 * 1024;
/// Groups read ahead, besides those that wait for their partition.
const READ_AHEAD: usize = 2;
/// An interruption repeats at most this much.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// How long what is under way is waited for once it is known that all can't be done.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

pub fn side_file(path: &Path) -> SideFile {
    SideFile::beside(path, SUFFIX)
}

/// A part of a table should not pass for the whole of it.
pub fn refuse_unfinished(path: &Path) -> Result<(), String> {
    let side = output::side_file(path);
    if !crate::is_standard(path) && side.exists() {
        let (path, side) = (path.display(), side.path().display());
        return Err(format!(
            "{path} is of an export that was interrupted; finish it with `partita export --resume`, \
             or delete {side} to import what there is"
        ));
    }
    Ok(())
}

#[derive(Debug)]
pub struct FileImport {
    pub path: PathBuf,
    pub table: String,
    pub format: Format,
    pub rejects: Option<PathBuf>,
    /// Leave a side file that says that it is complete.
    pub keeps_side_file: bool,
    pub mode: Mode,
    pub parallel: usize,
    pub resume: bool,
    pub service: TableService,
    pub progress: Arc<Progress>,
}

/// How far an import is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    endpoint: String,
    table: String,
    mode: Mode,
    /// Of the file: all their entities are stored, or rejected.
    bytes: u64,
    written: u64,
    rejected: u64,
    /// How long the file of rejected lines is at that point.
    rejects_bytes: u64,
    complete: bool,
}

impl FileImport {
    /// Gives the number of rejected entities.
    pub async fn run(self) -> Result<u64, String> {
        let name =
            if self.is_standard() { "standard input".to_owned() } else { self.path.display().to_string() };
        let named = |why: String| format!("{name}: {why}");
        refuse_unfinished(&self.path)?;
        let mut state = self.state()?;
        if state.complete {
            self.progress.notice(&format!("{name} is complete"));
            return Ok(state.rejected);
        }
        let (mut input, total) = self.input().map_err(named)?;
        input.skip_to(state.bytes).map_err(named)?;
        let resumed = self.resume.then_some(state.rejects_bytes);
        let first_line = input.first_line().to_vec();
        let rejects = self.rejects.as_deref().map(|path| Rejects::open(path, &first_line, resumed));
        let rejects = rejects.transpose()?;
        let table = tables::create(&self.service, &self.table).await?;

        let side = self.side(&state)?;
        self.progress.start(format!("importing {}", self.table), state.written, total);
        let writers = self.writers(&table);
        let mut run = Run {
            groups: read_ahead(Groups::new(input, rejects.is_some())),
            waiting_max: 2 * writers.len(),
            idle: writers,
            under_way: JoinSet::new(),
            waiting: VecDeque::new(),
            busy: HashSet::new(),
            ledger: Ledger::default(),
            rejects,
            side,
            saved: Instant::now(),
            progress: &self.progress,
            faults: Vec::new(),
            deadline: None,
        };
        let outcome = run.all(&mut state).await;
        state.complete = outcome.is_ok();
        if let Some(side) = &run.side {
            if state.complete && !self.keeps_side_file { side.remove()? } else { side.save(&state)? }
        }
        let read = grouped(state.written + state.rejected);
        let (written, rejected) = (grouped(state.written), grouped(state.rejected));
        self.progress
            .notice(&format!("{}: {read} entities read, {written} written, {rejected} rejected", self.table));
        match outcome {
            Ok(()) => Ok(state.rejected),
            Err(why) if run.side.is_some() => {
                Err(format!("{}; --resume goes on after the {read} entities that are done", named(why)))
            }
            Err(why) => Err(named(why)),
        }
    }

    fn is_standard(&self) -> bool {
        crate::is_standard(&self.path)
    }

    fn writers(&self, table: &Table) -> Vec<Writer> {
        let rules = Rules { mode: self.mode, resumed: self.resume, stops: self.rejects.is_none() };
        (0..self.parallel).map(|_| Writer::new(self.service.clone(), table.clone(), rules)).collect()
    }

    fn input(&self) -> Result<(Input, Option<u64>), String> {
        if self.is_standard() {
            return Ok((
                Input::new(BufReader::with_capacity(READ_BYTES, std::io::stdin()), self.format)?,
                None,
            ));
        }
        let fault = |error: std::io::Error| format!("can't read it: {error}");
        let file = File::open(&self.path).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        Ok((Input::new(BufReader::with_capacity(READ_BYTES, file), self.format)?, Some(length)))
    }

    fn state(&self) -> Result<State, String> {
        let fresh = State {
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
            return Err("what came from standard input can't be resumed; import a file".to_owned());
        }
        let side = side_file(&self.path);
        let Some(state) = side.load::<State>()? else { return Ok(fresh) };
        let was = |what: &str, was: &str, is: &str| {
            let side = side.path().display();
            Err(format!("{side} is of an import whose {what} was {was}, not {is}; --resume needs the same"))
        };
        if state.endpoint != fresh.endpoint {
            return was("endpoint", &state.endpoint, &fresh.endpoint);
        }
        if state.table != fresh.table {
            return was("table", &state.table, &fresh.table);
        }
        if state.mode != fresh.mode {
            let name = |mode: Mode| format!("{mode:?}").to_lowercase();
            return was("mode", &name(state.mode), &name(fresh.mode));
        }
        Ok(state)
    }

    /// Where the state is kept, if it can be.
    fn side(&self, state: &State) -> Result<Option<SideFile>, String> {
        if self.is_standard() {
            return Ok(None);
        }
        let side = side_file(&self.path);
        match side.save(state) {
            Ok(()) => Ok(Some(side)),
            // A file on a medium that can't be written to can be imported all the same.
            Err(why) if !self.resume => {
                self.progress.notice(&format!("{why}; an interruption will begin anew"));
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }
}

/// Reads in a thread of its own: files and standard input block.
fn read_ahead(mut groups: Groups) -> mpsc::Receiver<Result<Group, String>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    // Ends with the file, or when nobody wants more of it.
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
    groups: mpsc::Receiver<Result<Group, String>>,
    waiting_max: usize,
    idle: Vec<Writer>,
    under_way: JoinSet<Ended>,
    /// Read, but not under way: mostly because their partition is.
    waiting: VecDeque<Group>,
    /// Partitions under way.
    busy: HashSet<String>,
    ledger: Ledger,
    rejects: Option<Rejects>,
    side: Option<SideFile>,
    saved: Instant,
    progress: &'a Progress,
    /// Why no more is begun, by the group that said so.
    faults: Vec<(u64, String)>,
    /// Until when what is under way is waited for then.
    deadline: Option<TokioInstant>,
}

struct Ended {
    writer: Writer,
    number: u64,
    end: u64,
    partition: Option<String>,
    outcome: Result<Stored, String>,
}

impl Run<'_> {
    async fn all(&mut self, state: &mut State) -> Result<(), String> {
        let mut stop = Box::pin(crate::stop_signal());
        let mut at_end = false;
        loop {
            let stopping = self.deadline.is_some();
            if !stopping {
                self.begin();
            }
            if self.under_way.is_empty() && (stopping || at_end && self.waiting.is_empty()) {
                break;
            }
            let reads = !stopping && !at_end && self.waiting.len() < self.waiting_max;
            tokio::select! {
                Some(ended) = self.under_way.join_next() => self.end(ended, state)?,
                group = self.groups.recv(), if reads => match group {
                    Some(Ok(group)) => self.waiting.push_back(group),
                    Some(Err(why)) => self.stop(u64::MAX, why),
                    None => at_end = true,
                },
                signal = &mut stop, if !stopping => self.stop(0, signal.to_owned()),
                () = until(self.deadline) => break,
            }
        }
        match self.faults.iter().min_by_key(|(number, _)| *number) {
            Some((_, why)) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn stop(&mut self, number: u64, why: String) {
        self.faults.push((number, why));
        self.deadline.get_or_insert_with(|| TokioInstant::now() + STOP_TIME_MAX);
    }

    fn begin(&mut self) {
        while !self.idle.is_empty()
            && let Some(place) = group::ready(&self.waiting, &self.busy)
            && self.waiting.get(place).is_some_and(|group| self.ledger.admits(group.number))
            && let Some(group) = self.waiting.remove(place)
            && let Some(writer) = self.idle.pop()
        {
            let (number, end) = (group.number, group.end);
            let partition = group.partition().map(str::to_owned);
            self.busy.extend(partition.clone());
            self.under_way.spawn(async move {
                let outcome = writer.store(group).await;
                Ended { writer, number, end, partition, outcome }
            });
        }
    }

    fn end(&mut self, ended: Result<Ended, tokio::task::JoinError>, state: &mut State) -> Result<(), String> {
        let ended = ended.map_err(|error| format!("a writer failed: {error}"))?;
        self.idle.push(ended.writer);
        if let Some(partition) = &ended.partition {
            self.busy.remove(partition);
        }
        match ended.outcome {
            Err(why) => self.stop(ended.number, why),
            Ok(stored) => match stored.rejected.first() {
                Some(rejected) if self.rejects.is_none() => {
                    let way_out = "--rejects FILE sets such lines aside";
                    self.stop(ended.number, format!("{}; {way_out}", describe(rejected)));
                }
                _ => self.ledger.done(ended.number, ended.end, stored),
            },
        }
        while let Some(settled) = self.ledger.settle() {
            for rejected in &settled.rejected {
                self.progress.say(&describe(rejected));
            }
            if let Some(rejects) = &mut self.rejects {
                rejects.add(&settled.rejected)?;
                state.rejects_bytes = rejects.bytes();
            }
            state.bytes = settled.end;
            state.written += settled.written;
            state.rejected += settled.rejected.len() as u64;
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

fn describe(rejected: &Rejected) -> String {
    format!("line {}: {}", rejected.line, rejected.why)
}
