//! `partita blob`: containers and blobs from the command line, and containers to folders of files and back.

mod command;
mod endpoint;
mod export;
mod import;
mod index;
mod place;
mod tool;

use std::io;

use thiserror::Error;

pub use command::{BLOB_HELP, BlobCommand};
pub use export::BlobExportError;
pub use import::BlobImportError;
pub use tool::BlobToolError;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobOutcome {
    Done,
    /// There is no such blob.
    NotFound,
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum BlobError {
    #[error("can't start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Tool(#[from] BlobToolError),
    #[error(transparent)]
    Export(#[from] BlobExportError),
    #[error(transparent)]
    Import(#[from] BlobImportError),
}

pub fn blob(command: &BlobCommand) -> Result<BlobOutcome, BlobError> {
    crate::run(run(command)).map_err(BlobError::Runtime)?
}

async fn run(command: &BlobCommand) -> Result<BlobOutcome, BlobError> {
    match command {
        BlobCommand::List(command) => tool::list(command).await?,
        BlobCommand::CreateContainer(command) => tool::create_container(command).await?,
        BlobCommand::DeleteContainer(command) => tool::delete_container(command).await?,
        BlobCommand::Put(command) => tool::put(command).await?,
        BlobCommand::Get(command) => return Ok(tool::get(command).await?),
        BlobCommand::Show(command) => return Ok(tool::show(command).await?),
        BlobCommand::Delete(command) => return Ok(tool::delete(command).await?),
        BlobCommand::Export(command) => export::run(command).await?,
        BlobCommand::Import(command) => import::run(command).await?,
    }
    Ok(BlobOutcome::Done)
}
