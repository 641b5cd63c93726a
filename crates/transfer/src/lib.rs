//! `partita export`, `partita import`, `partita queue` and `partita blob`: tables, queues and containers to files and back, and
//! from the command line, by the REST API only; and the data folder of Azurite into an endpoint.
//!
//! So they work with any endpoint: Partita, Azurite, Azure, and Cosmos DB for tables. `partita-client` sends and retries the
//! requests. This crate knows files, their formats, how far a run is, and which lines were rejected. Entities stay in the
//! service's own JSON, so nothing in them changes.

mod azurite;
mod blob;
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
mod plain_file;
mod progress;
mod queue;
mod rejects;
mod side_file;
mod table;
mod tables;
mod writer;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use azurite::AzuriteError;
pub use blob::{BLOB_HELP, BlobCommand, BlobError, BlobOutcome, blob};
pub use command::{ExportCommand, ImportCommand};
pub use export::ExportError;
pub use import::ImportError;
pub use queue::{QUEUE_HELP, QueueCommand, QueueError, QueueOutcome, queue};
pub use table::{
    CountCommand, DeleteCommand, ExplainCommand, GetCommand, Probe, PutCommand, QueryCommand, TableCommand,
    TableError, TableOutcome, TablesCommand, TopCommand, probe, table,
};

use progress::ProgressPrinter;

pub fn export(command: &ExportCommand) -> Result<(), ExportError> {
    let progress = Arc::new(ProgressPrinter::of_entities(command.common.quiet));
    let service = endpoint::connect(&command.common, &progress)?;
    let work = async {
        let export = export::Export::new(command, service, progress.clone());
        tokio::select! {
            outcome = export.run() => outcome,
            signal = stop_signal() => Err(match is_standard(&command.to) {
                true => ExportError::PartOfTable { signal },
                false => ExportError::Interrupted { signal },
            }),
        }
    };
    let outcome = run(work).map_err(ExportError::Runtime).flatten();
    progress.clear();
    outcome
}

pub fn import(command: &ImportCommand) -> Result<(), ImportError> {
    if let Some(folder) = &command.azurite {
        let progress = Arc::new(ProgressPrinter::of_items(command.common.quiet));
        let account = command.azurite_account.as_deref();
        let work = azurite::run(folder, account, &command.common, &progress);
        let outcome = run(work).map_err(ImportError::Runtime);
        progress.clear();
        return Ok(outcome??);
    }
    let progress = Arc::new(ProgressPrinter::of_entities(command.common.quiet));
    let service = endpoint::connect(&command.common, &progress)?;
    let outcome =
        run(import::run(command, service, progress.clone())).map_err(ImportError::Runtime).flatten();
    progress.clear();
    outcome
}

/// `-` is standard input or output.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Runs to the end; the error says that it could not start.
fn run<T>(work: impl Future<Output = T>) -> io::Result<T> {
    // One thread: it waits for the network most of the time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work))
}

/// Waits for SIGTERM or Ctrl-C, and returns the word for it.
async fn stop_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => "terminated",
        Ok(()) = tokio::signal::ctrl_c() => "interrupted",
    }
}
