//! The lines of one file, each on its way into the queue: put, left out, or rejected, in the order of the file.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use model::DateTime;
use partita_client::{Error, PutOptions, Queue, TimeToLive};
use thiserror::Error as ThisError;
use tokio::sync::mpsc;

use super::{Import, QueueImportError, QueueImportState};
use crate::input::{Input, InputError, RawRecord};
use crate::queue::line::{self, ImportedMessage, Line, LineError};
use crate::rejects::Rejects;
use crate::side_file::SideFile;
use crate::tables::{DELETION_ATTEMPTS, DELETION_PAUSE};

/// Lines read ahead.
const READ_AHEAD: usize = 64;
/// A run that continues after a kill repeats at most the work of this time.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);
/// How long a run that must stop waits for the messages on their way.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

/// One file on its way into one queue.
pub struct Run<'a> {
    import: &'a Import<'a>,
    queue: Queue,
    file: String,
    pub side: Option<SideFile>,
    rejects: Option<Rejects>,
    pub state: QueueImportState,
    is_created: bool,
    saved: Instant,
}

/// Why a line can't be put.
#[derive(Debug, ThisError)]
pub enum Rejection {
    /// It is no message.
    #[error(transparent)]
    Unreadable(LineError),
    /// The service, or the client for it, refuses the message.
    #[error(transparent)]
    Refused(Box<Error>),
}

/// A line, and what became of it.
struct Settled {
    record: RawRecord,
    outcome: Result<Put, NotPut>,
}

/// What became of a message.
enum Put {
    Done,
    HadExpired,
}

enum NotPut {
    Rejected(Rejection),
    Failed(Error),
}

impl<'a> Run<'a> {
    pub fn new(
        import: &'a Import<'a>,
        queue: Queue,
        file: String,
        side: Option<SideFile>,
        rejects: Option<Rejects>,
        state: QueueImportState,
        is_created: bool,
    ) -> Self {
        Self { import, queue, file, side, rejects, state, is_created, saved: Instant::now() }
    }

    pub async fn all(
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
                            message = self.message(&record) => message,
                            signal = &mut stop => {
                                (stopped_by, is_over) = (Some(signal), true);
                                deadline = Some(tokio::time::Instant::now() + STOP_TIME_MAX);
                                continue;
                            }
                        };
                        let message = match message? {
                            Read::Queue => continue,
                            Read::Message(message) => Ok(message),
                            Read::Neither(error) => Err(error),
                        };
                        let queue = self.queue.clone();
                        // In the order of the file, also if it is nothing that can be put.
                        on_their_way.push_back(async move {
                            let outcome = match message {
                                Ok(message) => put(&queue, &message).await.map_err(NotPut::of),
                                Err(error) => Err(NotPut::Rejected(Rejection::Unreadable(error))),
                            };
                            Settled { record, outcome }
                        });
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

    /// Reads a line. The queue is created by the line that names it, or by the first message.
    async fn message(&mut self, record: &RawRecord) -> Result<Read, QueueImportError> {
        match line::read(&record.raw) {
            Ok(Line::Queue(queue)) => self.create(&queue.metadata).await.map(|()| Read::Queue),
            Ok(Line::Message(message)) => {
                self.create(&BTreeMap::new()).await.map(|()| Read::Message(message))
            }
            Err(error) => Ok(Read::Neither(error)),
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
        let Settled { record, outcome } = settled;
        match outcome {
            Ok(Put::Done) => self.state.put += 1,
            Ok(Put::HadExpired) => self.state.expired += 1,
            Err(NotPut::Rejected(reason)) => self.reject(&record, reason)?,
            Err(NotPut::Failed(error)) => {
                return Err(self.import.queues.failed(&self.state.queue, error).into());
            }
        }
        self.state.bytes = record.end;
        self.import.progress.update(self.state.put, self.state.bytes);
        if let Some(side) = self.side.as_ref().filter(|_| self.saved.elapsed() >= SAVE_INTERVAL) {
            side.save(&self.state)?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    /// Sets the line aside, or stops.
    fn reject(&mut self, record: &RawRecord, reason: Rejection) -> Result<(), QueueImportError> {
        let Some(rejects) = &mut self.rejects else {
            let (file, resumable) = (self.file.clone(), self.side.is_some());
            return Err(QueueImportError::Stopped { file, line: record.line, reason, resumable });
        };
        self.import.progress.say(&format!("line {}: {reason}", record.line));
        rejects.add([record.raw.as_slice()])?;
        self.state.rejected += 1;
        self.state.rejects_bytes = rejects.bytes();
        Ok(())
    }
}

/// What a line is.
enum Read {
    Queue,
    Message(ImportedMessage),
    Neither(LineError),
}

impl NotPut {
    fn of(error: Error) -> Self {
        let is_refused = matches!(error, Error::Invalid(_)) || matches!(error.status(), Some(400 | 413));
        match is_refused {
            true => Self::Rejected(Rejection::Refused(Box::new(error))),
            false => Self::Failed(error),
        }
    }
}

/// Times are reckoned when the message is put, not when its line was read.
async fn put(queue: &Queue, message: &ImportedMessage) -> Result<Put, Error> {
    let now = DateTime::now();
    let mut options = PutOptions::new();
    match message.expires {
        None => {}
        Some(None) => options = options.time_to_live(TimeToLive::Forever),
        Some(Some(expires)) => match time_from(now, expires) {
            Some(time) => options = options.time_to_live(TimeToLive::For(time)),
            None => return Ok(Put::HadExpired),
        },
    }
    if let Some(delay) = message.next_visible.and_then(|time| time_from(now, time)) {
        options = options.visible_after(delay);
    }
    queue.put_with(&message.text, options).await.map(|_| Put::Done)
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
pub fn read_ahead(mut input: Input) -> mpsc::Receiver<Result<RawRecord, InputError>> {
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
