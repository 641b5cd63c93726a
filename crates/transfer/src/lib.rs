//! `partita export` and `partita import`: tables to files and back, through the REST API alone.
//!
//! So they copy from and to any Table endpoint: Partita, Azurite, Azure, Cosmos DB. `partita-client` sends the requests and
//! repeats them; here stands what is particular to copies: files, formats, how far a run is, what was rejected. Entities
//! travel as the service's own JSON, so that nothing in them changes.

mod columns;
mod command;
mod csv;
mod endpoint;
mod entity;
mod export;
mod format;
mod group;
mod import;
mod input;
mod ledger;
mod output;
mod progress;
mod rejects;
mod side_file;
mod tables;
mod writer;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

pub use command::{ExportCommand, ImportCommand};

use progress::Progress;

pub fn export(command: &ExportCommand) -> Result<(), String> {
    let progress = Arc::new(Progress::new(command.common.quiet));
    let service = endpoint::connect(&command.common, &progress)?;
    let work = async {
        let export = export::Export::new(command, service, progress.clone());
        tokio::select! {
            outcome = export.run() => outcome,
            signal = stop_signal() => Err(format!("{signal}; {}", export_left(command))),
        }
    };
    let outcome = run(work);
    progress.clear();
    outcome
}

/// What an interrupted export leaves.
fn export_left(command: &ExportCommand) -> &'static str {
    if is_standard(&command.to) {
        "what was written is a part of the table"
    } else {
        "the same command with --resume goes on from here"
    }
}

pub fn import(command: &ImportCommand) -> Result<(), String> {
    let progress = Arc::new(Progress::new(command.common.quiet));
    let service = endpoint::connect(&command.common, &progress)?;
    let outcome = run(import::run(command, service, progress.clone()));
    progress.clear();
    outcome
}

/// `-` is standard input or output.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn run(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    // One thread: it waits for the network most of the time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("can't start: {error}"))?.block_on(work)
}

/// Ends when somebody wants this to end.
async fn stop_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => "terminated",
        Ok(()) = tokio::signal::ctrl_c() => "interrupted",
    }
}
