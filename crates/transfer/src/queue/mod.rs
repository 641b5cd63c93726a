//! `partita queue`: queues and messages from the command line, and messages to files and back.

mod command;
mod endpoint;
mod export;
mod import;
mod line;
mod receipts;
mod show;
mod tool;

use std::io;

use thiserror::Error;

pub use command::{QUEUE_HELP, QueueCommand};
pub(crate) use command::{QueueConnectionFlags, Shown, pair};
pub use export::QueueExportError;
pub use import::QueueImportError;
pub(crate) use show::{Display, fitted};
pub use tool::ToolError;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOutcome {
    Done,
    /// There was nothing to peek at or to get.
    NoMessage,
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum QueueError {
    #[error("can't start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Export(#[from] QueueExportError),
    #[error(transparent)]
    Import(#[from] QueueImportError),
}

pub fn queue(command: &QueueCommand) -> Result<QueueOutcome, QueueError> {
    crate::run(run(command)).map_err(QueueError::Runtime)?
}

async fn run(command: &QueueCommand) -> Result<QueueOutcome, QueueError> {
    match command {
        QueueCommand::List(command) => tool::list(command).await?,
        QueueCommand::Create(command) => tool::create(command).await?,
        QueueCommand::Delete(command) => tool::delete(command).await?,
        QueueCommand::Count(command) => tool::count(command).await?,
        QueueCommand::Put(command) => tool::put(command).await?,
        QueueCommand::Peek(command) => return Ok(tool::peek(command).await?),
        QueueCommand::Get(command) => return Ok(tool::get(command).await?),
        QueueCommand::DeleteMessage(command) => tool::delete_message(command).await?,
        QueueCommand::Clear(command) => tool::clear(command).await?,
        QueueCommand::Export(command) => export::run(command).await?,
        QueueCommand::Import(command) => import::run(command).await?,
    }
    Ok(QueueOutcome::Done)
}
