//! `partita queue export`: the messages of a queue to a file.
//!
//! The protocol has no way to read all messages of a queue and leave them as they are. So a message is got, which hides it
//! for a time, and written to the file. Only when it is on the disk is it deleted, or made visible again. If the export is
//! killed:
//!
//! - after a Get: the messages become visible when their time is over. Nothing was written;
//! - after the write: they are in the file, and become visible as well. A run that continues gets them again, and knows by
//!   their ids that the file has them;
//! - between two deletions: as before, for those that are left.
//!
//! So a message is in the queue or in the file at any time, and in the file once.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use model::DateTime;
use partita_client::{Error, MessageHandle, Queue, TakenMessage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error as ThisError;

use super::command::QueueExportCommand;
use super::endpoint::{QueueRequestError, Queues};
use super::line::{self, LineError, MessageLine, QueueLine};
use super::receipts::Receipts;
use crate::format::FileFormat;
use crate::input::{Input, InputError};
use crate::output::{Checkpoint, Existing, Output, OutputError};
use crate::progress::{ProgressPrinter, grouped, size};

/// The most that a Get returns.
const MESSAGES_MAX: u32 = 32;
/// Messages that are deleted at the same time.
const DELETED_AT_ONCE: usize = 16;

/// Why an export is not complete.
#[derive(Debug, ThisError)]
pub enum QueueExportError {
    #[error(transparent)]
    Request(#[from] QueueRequestError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("a queue is exported to a file; `partita queue get --format json` prints messages")]
    ToStandardOutput,
    #[error("can't create the directory {}: {source}", .path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{} already exists; --resume continues an interrupted run, --overwrite replaces it", .path.display())]
    Exists { path: PathBuf },
    #[error("there is nothing to resume: {} is complete; --overwrite starts again", .path.display())]
    NothingToResume { path: PathBuf },
    #[error("--visibility is {} s; messages can be hidden for 1s to 7d", .0.as_secs())]
    Visibility(Duration),
    #[error("can't read {}: {source}; --overwrite starts again", .path.display())]
    Unreadable { path: PathBuf, source: InputError },
    #[error("{}, line {line}: {source}; --overwrite starts again", .path.display())]
    Line { path: PathBuf, line: u64, source: LineError },
    #[error("can't use {}: {source}", .path.display())]
    Receipts { path: PathBuf, source: io::Error },
    #[error(
        "{signal}; run the same command with --resume to continue. What it has hidden is visible again by {until} at the \
         latest"
    )]
    Interrupted { signal: &'static str, until: String },
}

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct QueueExportState {
    endpoint: String,
    queue: String,
    delete: bool,
    bytes: u64,
    messages: u64,
    /// The time of the server when it began. The export ends when nothing older is visible.
    began: Option<String>,
    /// Everything is in the file, and messages are being made visible.
    is_read: bool,
}

impl Checkpoint for QueueExportState {
    fn fresh(&self) -> Self {
        let (endpoint, queue) = (self.endpoint.clone(), self.queue.clone());
        Self { endpoint, queue, delete: self.delete, bytes: 0, messages: 0, began: None, is_read: false }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add_bytes(&mut self, count: u64) {
        self.bytes += count;
    }

    fn subject(&self) -> Vec<(&'static str, String)> {
        let end = if self.delete { "delete" } else { "release" };
        vec![
            ("endpoint", self.endpoint.clone()),
            ("queue", self.queue.clone()),
            ("end of messages", end.to_owned()),
        ]
    }
}

pub async fn run(command: &QueueExportCommand) -> Result<(), QueueExportError> {
    let progress = Arc::new(ProgressPrinter::of_messages(command.quiet));
    let work = async {
        if !(Duration::from_secs(1)..=Duration::from_secs(7 * 86_400)).contains(&command.visibility) {
            return Err(QueueExportError::Visibility(command.visibility));
        }
        if crate::is_standard(&command.to) {
            return Err(QueueExportError::ToStandardOutput);
        }
        let queues = Queues::connect_patiently(&command.connection, &progress)?;
        let export = Export { command, queues, progress: progress.clone() };
        tokio::select! {
            outcome = export.run() => outcome,
            signal = crate::stop_signal() => {
                let until = DateTime::now().plus(command.visibility).to_seconds_string();
                Err(QueueExportError::Interrupted { signal, until })
            }
        }
    };
    let outcome = work.await;
    progress.clear();
    outcome
}

struct Export<'a> {
    command: &'a QueueExportCommand,
    queues: Queues,
    progress: Arc<ProgressPrinter>,
}

impl Export<'_> {
    async fn run(&self) -> Result<(), QueueExportError> {
        let to = &self.command.to;
        if let Some(queue) = &self.command.queue {
            return match self.file(queue, to).await? {
                true => Ok(()),
                false => Err(QueueExportError::NothingToResume { path: to.clone() }),
            };
        }
        std::fs::create_dir_all(to)
            .map_err(|source| QueueExportError::Directory { path: to.clone(), source })?;
        let listed: Vec<_> = self
            .queues
            .service
            .queues("")
            .try_collect()
            .await
            .map_err(|error| QueueRequestError::List(self.queues.request_error(error)))?;
        // Names become file names here, so they are checked: a hostile endpoint must not choose others than those of queues.
        let names: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
        for name in &names {
            self.queues.queue(name)?;
        }
        let path = |name: &str| to.join(format!("{name}.{}", FileFormat::Jsonl.ending()));
        // Checked for all queues first, so that the export does not fail after an hour of work.
        if self.existing() == Existing::Refuse
            && let Some(path) = names.iter().map(|name| path(name)).find(|path| path.exists())
        {
            return Err(QueueExportError::Exists { path });
        }
        for name in &names {
            if !self.file(name, &path(name)).await? {
                self.progress.notice(&format!("{} is complete", path(name).display()));
            }
        }
        self.progress.notice(&format!("queues in {}: {}", to.display(), names.len()));
        Ok(())
    }

    fn existing(&self) -> Existing {
        Existing::of_flags(self.command.resume, self.command.overwrite)
    }

    /// False if the file was complete before.
    async fn file(&self, name: &str, path: &Path) -> Result<bool, QueueExportError> {
        let fresh = QueueExportState {
            endpoint: self.queues.service.url(),
            queue: name.to_owned(),
            delete: self.command.delete,
            bytes: 0,
            messages: 0,
            began: None,
            is_read: false,
        };
        let queue = self.queues.queue(name)?;
        let Some((output, state)) = Output::open(path, fresh, self.existing())? else { return Ok(false) };
        let receipts = Receipts::beside(path);
        if state.bytes == 0 {
            receipts.remove().map_err(|source| unusable(&receipts, source))?;
        }
        let known = if state.bytes > 0 { ids(path, state.bytes)? } else { HashSet::new() };
        let mut file = QueueFile { export: self, queue, receipts, output, state, known, repeats: 0 };
        file.settle_earlier_run().await?;
        file.read_all().await?;
        file.finish(path).await?;
        Ok(true)
    }
}

/// One queue on its way into one file.
struct QueueFile<'a> {
    export: &'a Export<'a>,
    queue: Queue,
    receipts: Receipts,
    output: Output,
    state: QueueExportState,
    /// Of the messages in the file.
    known: HashSet<u128>,
    /// Messages that were got since the last one that the file did not have.
    repeats: u64,
}

impl QueueFile<'_> {
    /// What an earlier run has hidden and not written is made visible, to be read now. What it has written is deleted, if
    /// that is asked for; otherwise it is made visible at the end.
    async fn settle_earlier_run(&mut self) -> Result<(), QueueExportError> {
        if self.state.is_read {
            return Ok(());
        }
        for handle in self.receipts.read().map_err(|source| unusable(&self.receipts, source))? {
            let mut handle = handle.map_err(|source| unusable(&self.receipts, source))?;
            let settled = match (self.known.contains(&key(&handle.id)), self.state.delete) {
                (true, true) => self.queue.delete(&handle).await,
                (true, false) => Ok(()),
                (false, _) => self.queue.renew(&mut handle, Duration::ZERO).await,
            };
            gone_is_done(settled).map_err(|error| self.failed(error))?;
        }
        self.forget_deleted()
    }

    async fn read_all(&mut self) -> Result<(), QueueExportError> {
        let progress = &self.export.progress;
        progress.start(format!("exporting {}", self.state.queue), self.state.messages, None);
        if self.state.bytes == 0 {
            let metadata = self.queue.properties().await.map_err(|error| self.failed(error))?.metadata;
            let mut text = Vec::new();
            line::write(&mut text, &QueueLine { queue: self.state.queue.clone(), metadata });
            self.output.write(&text, &mut self.state)?;
        }
        let mut is_more = !self.state.is_read;
        while is_more {
            let taken = self.queue.get(MESSAGES_MAX, self.export.command.visibility).await;
            let taken = taken.map_err(|error| self.failed(error))?;
            is_more = self.is_more(&taken);
            self.write(&taken)?;
            if self.state.delete {
                self.delete(taken).await?;
                self.forget_deleted()?;
            }
            progress.update(self.state.messages, self.state.bytes);
        }
        self.state.is_read = true;
        Ok(self.output.write(&[], &mut self.state)?)
    }

    /// The receipts of deleted messages are of no use.
    fn forget_deleted(&self) -> Result<(), QueueExportError> {
        if !self.state.delete {
            return Ok(());
        }
        self.receipts.remove().map_err(|source| unusable(&self.receipts, source))
    }

    /// Whether there may be more that was there when the export began. Messages of the file that have become visible again do
    /// not mean that there is nothing behind them, unless they come for the second time.
    fn is_more(&mut self, taken: &[TakenMessage]) -> bool {
        let Some(first) = taken.first() else { return false };
        let began = match self.state.began.as_deref().and_then(DateTime::parse) {
            Some(began) => began,
            None => {
                // The server's time, because messages have it too. Our own clock may be another.
                let began = before(first.handle.next_visible, self.export.command.visibility);
                self.state.began = Some(began.to_seconds_string());
                began
            }
        };
        let mut old = taken.iter().filter(|message| message.inserted <= began).peekable();
        if old.peek().is_none() {
            return false;
        }
        match old.any(|message| !self.has(message)) {
            true => self.repeats = 0,
            false => self.repeats += taken.len() as u64,
        }
        self.repeats <= self.state.messages
    }

    fn has(&self, message: &TakenMessage) -> bool {
        self.known.contains(&key(&message.handle.id))
    }

    /// On return the messages are on the disk, and the side file says so.
    fn write(&mut self, taken: &[TakenMessage]) -> Result<(), QueueExportError> {
        let added = self.receipts.add(taken.iter().map(|message| &message.handle));
        added.map_err(|source| unusable(&self.receipts, source))?;
        let mut text = Vec::new();
        let new: Vec<_> = taken.iter().filter(|message| !self.has(message)).collect();
        for message in &new {
            line::write(&mut text, &MessageLine::of_exported(message));
        }
        self.state.messages += new.len() as u64;
        self.output.write(&text, &mut self.state)?;
        self.known.extend(taken.iter().map(|message| key(&message.handle.id)));
        Ok(())
    }

    async fn delete(&self, taken: Vec<TakenMessage>) -> Result<(), QueueExportError> {
        let deletions = stream::iter(taken).map(|message| async move {
            gone_is_done(self.queue.delete(&message.handle).await).map_err(|error| self.failed(error))
        });
        deletions.buffered(DELETED_AT_ONCE).try_for_each(|()| async { Ok(()) }).await?;
        Ok(())
    }

    /// Makes visible what was hidden, in the order in which it was read, and tells what is not in the file.
    async fn finish(mut self, path: &Path) -> Result<(), QueueExportError> {
        if !self.state.delete {
            self.release().await?;
        }
        let left = self.queue.properties().await.map_err(|error| self.failed(error))?.approximate_count;
        let left = if self.state.delete { left } else { left.saturating_sub(self.state.messages) };
        self.receipts.remove().map_err(|source| unusable(&self.receipts, source))?;
        let Self { export, output, mut state, .. } = self;
        output.finish(&[], &mut state)?;
        let (messages, bytes) = (grouped(state.messages), size(state.bytes));
        let mut done = format!("{}: {messages} messages, {bytes}, in {}", state.queue, path.display());
        if left > 0 {
            let left = grouped(left);
            done += &format!("; about {left} more are hidden, or were put since, and are not in the file");
        }
        export.progress.notice(&done);
        Ok(())
    }

    async fn release(&mut self) -> Result<(), QueueExportError> {
        let handles = self.receipts.read().map_err(|source| unusable(&self.receipts, source))?;
        let releases = stream::iter(handles).map(|handle| async {
            let mut handle: MessageHandle = handle.map_err(|source| unusable(&self.receipts, source))?;
            let released = self.queue.renew(&mut handle, Duration::ZERO).await;
            gone_is_done(released).map_err(|error| QueueExportError::from(self.failed(error)))
        });
        releases.buffered(usize::from(self.export.command.parallel)).try_for_each(|()| async { Ok(()) }).await
    }

    fn failed(&self, error: Error) -> QueueRequestError {
        self.export.queues.failed(&self.state.queue, error)
    }
}

/// A message that expired, or that somebody else has got since, is no longer ours. If nobody knows whether it is visible, it
/// will be when its time is over.
fn gone_is_done(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.code() == Some("MessageNotFound") || error.is_outcome_unknown() => Ok(()),
        outcome => outcome,
    }
}

fn unusable(receipts: &Receipts, source: io::Error) -> QueueExportError {
    QueueExportError::Receipts { path: receipts.path().to_owned(), source }
}

/// The ids of the messages in this part of a file.
fn ids(path: &Path, bytes: u64) -> Result<HashSet<u128>, QueueExportError> {
    #[derive(Deserialize)]
    struct Id {
        id: Option<String>,
    }
    let unreadable = |source| QueueExportError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(|source| unreadable(InputError::Unreadable(source)))?;
    let mut input = Input::new(BufReader::new(file), FileFormat::Jsonl).map_err(unreadable)?;
    let mut ids = HashSet::new();
    while let Some(record) = input.next_raw().map_err(unreadable)?.filter(|record| record.end <= bytes) {
        let broken = |source| QueueExportError::Line { path: path.to_owned(), line: record.line, source };
        let Id { id } = serde_json::from_slice(&record.raw).map_err(|error| broken(error.into()))?;
        ids.extend(id.as_deref().map(key));
    }
    Ok(ids)
}

/// Sixteen bytes for each message, whatever its id is.
fn key(id: &str) -> u128 {
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte))
}

fn before(time: DateTime, by: Duration) -> DateTime {
    let ticks = i64::try_from(by.as_nanos() / 100).ok().and_then(|by| time.ticks().checked_sub(by));
    ticks.and_then(DateTime::from_ticks).unwrap_or(time)
}
