//! What a running server does for `partita reload`, `backup`, `freeze`, `thaw` and `migrate`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine_embedded::EmbeddedEngine;
use front::account::SharedAccounts;
use front::bearer::SharedBearer;
use store::{Fault, Gate};
use thiserror::Error;
use tokio::task::JoinError;

use crate::config::{Config, Flags, SettingsError};
use crate::control::{self, BindError, Control};

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
pub enum CommandError {
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
    #[error("the command was interrupted: {0}; run it again")]
    CutShort(#[source] JoinError),
    #[error("this server does not know that command; it may be older than the program that sent it")]
    Unknown,
}

impl Reload {
    fn run(&self) -> Result<String, CommandError> {
        let outcome = self.replace();
        match &outcome {
            Ok(done) => tracing::info!("{done}"),
            Err(error) => tracing::error!(%error, "accounts and keys were not reloaded"),
        }
        outcome
    }

    fn replace(&self) -> Result<String, CommandError> {
        match Config::from_flags(self.flags.clone()) {
            // If a file has lost its keys, the server must not fall back to the published one.
            Ok(config) if config.development && !self.development.load(Ordering::Relaxed) => {
                Err(CommandError::AccountsGone)
            }
            Ok(config) => {
                self.development.store(config.development, Ordering::Relaxed);
                let names: Vec<&str> = config.accounts.iter().map(|account| account.name.as_str()).collect();
                let done = format!("reloaded accounts and keys: {}", names.join(", "));
                self.accounts.replace(config.accounts());
                self.bearer.replace(config.bearer);
                Ok(done)
            }
            Err(source) => Err(CommandError::Settings { source }),
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

/// A socket named by `--control` must bind; the default one is best-effort.
pub fn listen_for_commands(
    config: &Config,
    reload: Arc<Reload>,
    gate: Arc<Gate>,
    engine: Option<Arc<EmbeddedEngine>>,
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
    let run = move |command| match command {
        control::Command::Reload => reload.run(),
        control::Command::Checkpoint => checkpoint(engine.as_deref()),
        control::Command::Freeze => Ok(freeze(&gate)),
        control::Command::Thaw => Ok(thaw(&gate)),
    };
    Ok(Some(AbortOnDrop(tokio::spawn(control.serve(Arc::new(run))))))
}

fn checkpoint(engine: Option<&EmbeddedEngine>) -> Result<String, CommandError> {
    let engine = engine.ok_or(CommandError::NothingToBackUp)?;
    let taken = engine.checkpoint().inspect_err(|fault| {
        tracing::error!(kind = %fault.kind(), %fault, "could not make a checkpoint for a backup");
    })?;
    tracing::info!(commits = taken.commits, "made a checkpoint for a backup");
    let directory =
        std::path::absolute(&taken.directory).map_err(|source| CommandError::NoPath { source })?;
    Ok(format!("{} {}", taken.commits, directory.display()))
}

/// Blocks; commands run on threads that may block.
fn freeze(gate: &Gate) -> String {
    let since = tokio::runtime::Handle::current().block_on(gate.close()).to_fixed_string();
    tracing::warn!(%since, "frozen: writes are refused until `partita thaw`; reads continue");
    format!("frozen since {since}")
}

fn thaw(gate: &Gate) -> String {
    match tokio::runtime::Handle::current().block_on(gate.open()) {
        Some(since) => {
            tracing::warn!(since = %since.to_fixed_string(), "thawed: writes are accepted again");
            format!("thawed; it was frozen since {}", since.to_fixed_string())
        }
        None => "was not frozen".to_owned(),
    }
}

/// Ends the task when dropped, and releases what the task owns.
pub struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
