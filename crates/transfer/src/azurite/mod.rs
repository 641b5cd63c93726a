//! `partita import --azurite`: the data folder of Azurite into an endpoint, by the REST API.
//!
//! Azurite keeps what it knows of each service in one JSON file, and content in files beside it. The JSON is read piece by
//! piece, so a large one does not have to fit in memory. Only snapshots of blobs wait in memory, because they are written before
//! their blob and the file has them in any order.

mod blobs;
mod bounded;
mod content;
mod database;
mod queues;
mod records;
mod survey;
mod tables;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use partita_client::{BlobService, Error, QueueService, RetryPolicy, TableService};
use thiserror::Error as ThisError;

use crate::command::ConnectionFlags;
use crate::endpoint::{self, EndpointError, RequestError};
use crate::progress::{ProgressPrinter, grouped, size};
use database::Database;
use survey::Survey;

/// Why not everything was imported.
#[derive(Debug, ThisError)]
pub enum AzuriteError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(
        "{} has no data of Azurite: none of the files __azurite_db_table__.json, __azurite_db_queue__.json and \
         __azurite_db_blob__.json; name the folder of Azurite's --location",
        .folder.display()
    )]
    NoData { folder: PathBuf },
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is damaged, or is not Azurite's: {source}", .path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{}: {what} can't be read: {why}", .path.display())]
    Record { path: PathBuf, what: String, why: String },
    #[error("the folder has the accounts {}; --azurite-account chooses one", survey::shown(.accounts))]
    WhichAccount { accounts: Vec<String> },
    #[error("the folder has no account {account}, but {}", survey::shown(.accounts))]
    NoAccount { account: String, accounts: Vec<String> },
    #[error(
        "the queue {queue} already has messages, and an import would put them beside those; clear it first: \
         `partita queue clear {queue}`"
    )]
    QueueHasMessages { queue: String },
    #[error("{what}: {source}")]
    Request { what: String, source: RequestError },
    #[error("{signal}; run the same command again: what is there is replaced")]
    Interrupted { signal: &'static str },
}

/// What was imported of a service, and what was not.
#[derive(Debug, Default)]
struct Tally {
    containers: u64,
    items: u64,
    bytes: u64,
    left_out: Vec<String>,
}

pub async fn run(
    folder: &Path,
    account: Option<&str>,
    common: &ConnectionFlags,
    progress: &Arc<ProgressPrinter>,
) -> Result<(), AzuriteError> {
    tokio::select! {
        outcome = import(folder, account, common, progress) => outcome,
        signal = crate::stop_signal() => Err(AzuriteError::Interrupted { signal }),
    }
}

async fn import(
    folder: &Path,
    account: Option<&str>,
    common: &ConnectionFlags,
    progress: &Arc<ProgressPrinter>,
) -> Result<(), AzuriteError> {
    let [tables, queues, blobs] = ["table", "queue", "blob"].map(|service| Database::of(folder, service));
    if ![&tables, &queues, &blobs].into_iter().any(Database::exists) {
        return Err(AzuriteError::NoData { folder: folder.to_owned() });
    }
    // Everything is read once before anything is written, so that a damaged file is found before.
    let survey = Survey::of(&tables, &queues, &blobs).await?;
    let account = survey.account(account)?;
    let target = Target { connection: common, progress };
    let mut done = Vec::new();
    if survey.has_tables(&account) {
        let tally = tables::import(&target.tables()?, &tables, &account, progress).await?;
        done.push((tally, "tables", "entities"));
    }
    if survey.has_queues(&account) {
        let tally = queues::import(&target.queues()?, folder, &queues, &account, progress).await?;
        done.push((tally, "queues", "messages"));
    }
    if survey.has_containers(&account) {
        let snapshots = survey.snapshots(&account);
        let tally = blobs::import(&target.blobs()?, folder, &blobs, &account, snapshots, progress).await?;
        done.push((tally, "containers", "blobs and snapshots"));
    }
    for (tally, containers, items) in &done {
        let bytes = if tally.bytes > 0 { format!(", {}", size(tally.bytes)) } else { String::new() };
        progress.notice(&format!(
            "{containers}: {}, {items}: {}{bytes}",
            grouped(tally.containers),
            grouped(tally.items)
        ));
        for left_out in &tally.left_out {
            progress.notice(&format!("  left out: {left_out}"));
        }
    }
    if done.is_empty() {
        progress.notice(&format!("the account {account} has no tables, queues or containers"));
    }
    Ok(())
}

/// The endpoint that is imported into. A service is reached only if there is something for it.
struct Target<'a> {
    connection: &'a ConnectionFlags,
    progress: &'a Arc<ProgressPrinter>,
}

impl Target<'_> {
    fn tables(&self) -> Result<TableService, AzuriteError> {
        Ok(endpoint::connect(self.connection, self.progress)?)
    }

    fn queues(&self) -> Result<QueueService, AzuriteError> {
        let builder = QueueService::builder(&self.connection.connection_string).map_err(connect)?;
        let builder = builder.retry(self.retry());
        let builder = match self.authority()? {
            Some(pem) => builder.trust(pem),
            None => builder,
        };
        Ok(builder.build().map_err(connect)?)
    }

    fn blobs(&self) -> Result<BlobService, AzuriteError> {
        let builder = BlobService::builder(&self.connection.connection_string).map_err(connect)?;
        let builder = builder.retry(self.retry());
        let builder = match self.authority()? {
            Some(pem) => builder.trust(pem),
            None => builder,
        };
        Ok(builder.build().map_err(connect)?)
    }

    fn retry(&self) -> RetryPolicy {
        endpoint::patience(self.progress)
    }

    fn authority(&self) -> Result<Option<Vec<u8>>, EndpointError> {
        endpoint::authority_file(self.connection.ca.as_deref())
    }
}

fn connect(error: Error) -> EndpointError {
    EndpointError::Connect(Box::new(error))
}
