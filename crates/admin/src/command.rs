//! Commands to a running server, whichever way they come: the control socket, HTTP, a signal. One runs at a time.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use common::DateTime;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::json;
use thiserror::Error;

/// Backups that a status lists.
const BACKUPS_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reload accounts and keys.
    Reload,
    /// Make a checkpoint beside the data.
    Checkpoint,
    /// Refuse writes. Done when no write is in flight any more.
    Freeze,
    /// Accept writes again.
    Thaw(MigrationCheck),
}

/// Whether somebody has made sure that the data was not migrated away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationCheck {
    /// `partita thaw` has looked, or was told not to.
    Done,
    Needed,
}

impl Command {
    pub fn parse(text: &str, check: MigrationCheck) -> Option<Self> {
        match text {
            "reload" => Some(Self::Reload),
            "checkpoint" => Some(Self::Checkpoint),
            "freeze" => Some(Self::Freeze),
            "thaw" => Some(Self::Thaw(check)),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Checkpoint => "checkpoint",
            Self::Freeze => "freeze",
            Self::Thaw(_) => "thaw",
        }
    }
}

/// What a command has done. As a text, it is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Reloaded {
        accounts: Vec<String>,
    },
    /// The number of its last commit, and its directory.
    Checkpoint {
        commits: u64,
        directory: PathBuf,
    },
    Frozen {
        since: DateTime,
    },
    /// `None` if it was not frozen.
    Thawed {
        since: Option<DateTime>,
    },
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded { accounts } => write!(f, "reloaded accounts and keys: {}", accounts.join(", ")),
            Self::Checkpoint { commits, directory } => write!(f, "{commits} {}", directory.display()),
            Self::Frozen { since } => write!(f, "frozen since {}", since.to_fixed_string()),
            Self::Thawed { since: Some(since) } => {
                write!(f, "thawed; it was frozen since {}", since.to_fixed_string())
            }
            Self::Thawed { since: None } => f.write_str("was not frozen"),
        }
    }
}

/// With its text, and its facts apart.
impl Serialize for Done {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = match self {
            Self::Reloaded { accounts } => json!({ "accounts": accounts }),
            Self::Checkpoint { commits, directory } => json!({ "commits": commits, "directory": directory }),
            Self::Frozen { since } => json!({ "since": since.to_fixed_string() }),
            Self::Thawed { since } => json!({ "since": since.map(|since| since.to_fixed_string()) }),
        };
        value["text"] = self.to_string().into();
        value.serialize(serializer)
    }
}

/// Why a server did not run a command.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program's own reason.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    #[error("{0} is running; try again when it is done")]
    Busy(&'static str),
    #[error("the command was interrupted: {0}; run it again")]
    CutShort(#[source] tokio::task::JoinError),
    #[error("this server does not know that command; it may be older than the program that sent it")]
    Unknown,
}

impl CommandError {
    pub fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Runs a command. May block on the disk.
pub type Run = dyn Fn(Command) -> Result<Done, CommandError> + Send + Sync;

/// A command that is running.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Job {
    pub kind: &'static str,
    pub started: String,
    /// How far it is, where that is known.
    pub done: Option<u64>,
    pub total: Option<u64>,
}

/// A checkpoint that was made for a backup since the server started.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Backup {
    pub at: String,
    pub commits: u64,
}

/// The commands of a server.
pub struct Commands {
    run: Arc<Run>,
    turn: tokio::sync::Mutex<()>,
    running: Mutex<Option<Job>>,
    backups: Mutex<VecDeque<Backup>>,
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commands")
    }
}

impl Commands {
    pub fn new(run: impl Fn(Command) -> Result<Done, CommandError> + Send + Sync + 'static) -> Self {
        let (turn, running) = (tokio::sync::Mutex::default(), Mutex::default());
        Self { run: Arc::new(run), turn, running, backups: Mutex::default() }
    }

    /// Waits until the command before it is done.
    pub async fn perform(&self, command: Command) -> Result<Done, CommandError> {
        let _turn = self.turn.lock().await;
        self.perform_now(command).await
    }

    /// Does not wait: a client could pile up commands.
    pub async fn try_perform(&self, command: Command) -> Result<Done, CommandError> {
        let Ok(_turn) = self.turn.try_lock() else {
            let running = self.running.lock().as_ref().map(|job| job.kind);
            return Err(CommandError::Busy(running.unwrap_or("another command")));
        };
        self.perform_now(command).await
    }

    async fn perform_now(&self, command: Command) -> Result<Done, CommandError> {
        let started = DateTime::now().to_seconds_string();
        *self.running.lock() = Some(Job { kind: command.name(), started, done: None, total: None });
        let _running = ClearOnDrop(&self.running);
        let run = self.run.clone();
        let outcome = tokio::task::spawn_blocking(move || run(command)).await;
        let outcome = outcome.unwrap_or_else(|error| Err(CommandError::CutShort(error)));
        if let Ok(Done::Checkpoint { commits, .. }) = &outcome {
            let mut backups = self.backups.lock();
            backups.truncate(BACKUPS_MAX - 1);
            backups.push_front(Backup { at: DateTime::now().to_seconds_string(), commits: *commits });
        }
        outcome
    }

    pub(crate) fn running(&self) -> Option<Job> {
        self.running.lock().clone()
    }

    /// The newest first.
    pub(crate) fn backups(&self) -> Vec<Backup> {
        self.backups.lock().iter().cloned().collect()
    }
}

/// Also if the caller goes away while it waits.
struct ClearOnDrop<'a>(&'a Mutex<Option<Job>>);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn one_command_runs_at_a_time_and_is_shown_while_it_does() {
        let (begun, begins) = mpsc::channel();
        let (finish, finishes) = mpsc::channel::<()>();
        let finishes = Mutex::new(finishes);
        let commands = Arc::new(Commands::new(move |_| {
            let _ = begun.send(());
            let _ = finishes.lock().recv();
            Ok(Done::Checkpoint { commits: 7, directory: "/d".into() })
        }));
        let first = tokio::spawn({
            let commands = commands.clone();
            async move { commands.perform(Command::Checkpoint).await }
        });
        tokio::task::block_in_place(|| begins.recv()).unwrap();
        assert_eq!(commands.running().map(|job| job.kind), Some("checkpoint"));
        let refused = commands.try_perform(Command::Freeze).await.unwrap_err();
        assert_eq!(refused.to_string(), "checkpoint is running; try again when it is done");
        finish.send(()).unwrap();
        assert_eq!(first.await.unwrap().unwrap().to_string(), "7 /d");
        assert!(commands.running().is_none());
        assert_eq!(commands.backups().len(), 1);
    }

    #[test]
    fn commands_are_read_as_they_are_written() {
        let check = MigrationCheck::Needed;
        for command in [Command::Reload, Command::Checkpoint, Command::Freeze, Command::Thaw(check)] {
            assert_eq!(Command::parse(command.name(), check), Some(command));
        }
        assert_eq!(Command::parse("stop", check), None);
    }
}
