//! What a running server does for `partita reload`, `backup`, `freeze`, `thaw` and `migrate`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admin::{Command, CommandError, Commands, Done, MigrationCheck};
use engine_embedded::EmbeddedEngine;
use front::account::SharedAccounts;
use front::bearer::SharedBearer;
use store::{Fault, Gate};
use thiserror::Error;

use crate::config::{Config, Flags, SettingsError};
use crate::control::{BindError, Control};
use crate::upkeep::marks::{self, MarkError};

/// Reloads accounts and keys, including those of bearer tokens, so that keys can be rotated without a restart.
pub struct Reload {
    pub flags: Flags,
    pub accounts: SharedAccounts,
    pub bearer: SharedBearer,
    /// Whether the server serves the development account.
    pub development: AtomicBool,
}

/// Why a server did not run a command. The command prints this text.
#[derive(Debug, Error)]
pub enum Failed {
    #[error("accounts and keys are unchanged: {source}")]
    Settings { source: SettingsError },
    #[error(
        "accounts and keys are unchanged: no account is configured any more, and a reload never selects the \
         development account; name accounts again, then reload"
    )]
    AccountsGone,
    #[error("this server has no data directory; there is nothing here to back up")]
    NothingToBackUp,
    #[error(transparent)]
    Checkpoint(#[from] Fault),
    #[error(
        "the checkpoint was made, but its absolute path is unknown: {source}; start the server with an absolute --data"
    )]
    NoPath { source: io::Error },
    #[error("still frozen: {0}")]
    Moved(#[from] MarkError),
}

impl Reload {
    fn run(&self) -> Result<Done, Failed> {
        let outcome = self.replace();
        match &outcome {
            Ok(done) => tracing::info!("{done}"),
            Err(error) => tracing::error!(%error, "accounts and keys were not reloaded"),
        }
        outcome
    }

    fn replace(&self) -> Result<Done, Failed> {
        match Config::from_flags(self.flags.clone()) {
            // If a file has lost its keys, the server must not fall back to the published one.
            Ok(config) if config.development && !self.development.load(Ordering::Relaxed) => {
                Err(Failed::AccountsGone)
            }
            Ok(config) => {
                self.development.store(config.development, Ordering::Relaxed);
                let names = config.accounts.iter().map(|account| account.name.as_str().to_owned());
                let done = Done::Reloaded { accounts: names.collect() };
                self.accounts.replace(config.accounts());
                self.bearer.replace(config.bearer);
                Ok(done)
            }
            Err(source) => Err(Failed::Settings { source }),
        }
    }
}

pub async fn reload_on_hangup(reload: Arc<Reload>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        // `run` has logged the outcome.
        let _ = reload.run();
    }
}

/// What commands need of the server.
pub struct CommandParts {
    pub reload: Arc<Reload>,
    pub gate: Arc<Gate>,
    /// The engine that can make checkpoints, and its data directory.
    pub embedded: Option<(Arc<EmbeddedEngine>, PathBuf)>,
}

impl CommandParts {
    pub fn commands(self) -> Arc<Commands> {
        Arc::new(Commands::new(move |command| self.run(command).map_err(CommandError::failed)))
    }

    fn run(&self, command: Command) -> Result<Done, Failed> {
        match command {
            Command::Reload => self.reload.run(),
            Command::Checkpoint => checkpoint(self.embedded.as_ref().map(|(engine, _)| &**engine)),
            Command::Freeze => Ok(freeze(&self.gate)),
            Command::Thaw(check) => {
                if let (MigrationCheck::Needed, Some((_, data))) = (check, &self.embedded) {
                    marks::check(data, false)?;
                }
                Ok(thaw(&self.gate))
            }
        }
    }
}

/// A socket named by `--control` must bind; the default one is best-effort.
pub fn listen_for_commands(
    config: &Config,
    commands: Arc<Commands>,
) -> Result<Option<AbortOnDrop>, BindError> {
    let Some((path, asked_for)) = &config.control else { return Ok(None) };
    let control = match Control::bind(path) {
        Ok(control) => control,
        Err(error) if *asked_for => return Err(error),
        Err(error) => {
            tracing::warn!(
                %error,
                "`partita reload`, `backup` and `migrate` can't reach this server; SIGHUP still reloads"
            );
            return Ok(None);
        }
    };
    Ok(Some(AbortOnDrop(tokio::spawn(control.serve(commands)))))
}

fn checkpoint(engine: Option<&EmbeddedEngine>) -> Result<Done, Failed> {
    let engine = engine.ok_or(Failed::NothingToBackUp)?;
    let taken = engine.checkpoint().inspect_err(|fault| {
        tracing::error!(kind = %fault.kind(), %fault, "could not make a checkpoint for a backup");
    })?;
    tracing::info!(commits = taken.commits, "made a checkpoint for a backup");
    let directory = std::path::absolute(&taken.directory).map_err(|source| Failed::NoPath { source })?;
    Ok(Done::Checkpoint { commits: taken.commits, directory })
}

/// Blocks; commands run on threads that may block.
fn freeze(gate: &Gate) -> Done {
    let since = tokio::runtime::Handle::current().block_on(gate.close());
    tracing::warn!(
        since = %since.to_fixed_string(),
        "frozen: writes are refused until `partita thaw`; reads continue"
    );
    Done::Frozen { since }
}

fn thaw(gate: &Gate) -> Done {
    let since = tokio::runtime::Handle::current().block_on(gate.open());
    if let Some(since) = since {
        tracing::warn!(since = %since.to_fixed_string(), "thawed: writes are accepted again");
    }
    Done::Thawed { since }
}

/// Ends the task when dropped, and releases what the task owns.
pub struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
