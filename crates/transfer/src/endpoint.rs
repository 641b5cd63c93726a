//! The endpoint that tables are copied from or to: how to connect, how long to retry, and why a request failed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{Refusal, TableName};
use partita_client::{Error, RetryPolicy, Table, TableService};
use thiserror::Error as ThisError;

use crate::command::ConnectionFlags;
use crate::progress::ProgressPrinter;

/// With the pauses below, about two minutes in total.
const ATTEMPTS_MAX: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// The service stops working on a request after 30 s; the transfer of a page takes additional time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);
/// Shorter pauses are not reported.
const REPORTED_FROM: Duration = Duration::from_secs(1);

/// Why the tables of an endpoint can't be copied.
#[derive(Debug, ThisError)]
pub enum EndpointError {
    #[error(transparent)]
    Connect(Box<Error>),
    #[error("can't read --ca {}: {source}", .path.display())]
    Authority { path: PathBuf, source: io::Error },
    #[error("can't list the tables: {0}")]
    List(#[source] RequestError),
    #[error("the list of tables contains {name:?}, which can't be a table's name; is it a Table endpoint?")]
    ListedName { name: String },
    #[error("can't create the table {table}: {source}")]
    Create { table: String, source: RequestError },
    #[error(
        "can't create the table {table}: the old table of that name is still being deleted; try again later"
    )]
    BeingDeleted { table: String },
    #[error("can't read the table {table}: {source}")]
    Read { table: String, source: RequestError },
    #[error(
        "can't read the table {table}: a page is not a list of entities in JSON: {source}; is it a Table endpoint?"
    )]
    Page { table: String, source: serde_json::Error },
}

/// Why a request failed.
#[derive(Debug, ThisError)]
pub enum RequestError {
    /// The refusal of the service, known before anything is sent.
    #[error("{} {}: {refusal}", .refusal.status(), .refusal.code())]
    TableName {
        #[source]
        refusal: Box<Refusal>,
    },
    #[error("no answer from {url}: {}; is the server running there?{}", reason(.source), authority(.url))]
    Unanswered { url: String, source: Box<Error> },
    #[error(transparent)]
    Failed(Box<Error>),
}

impl RequestError {
    /// The code of the service's refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => error.code(),
            Self::TableName { .. } | Self::Unanswered { .. } => None,
        }
    }

    pub fn new(service: &TableService, error: Error) -> Self {
        Self::at(|| service.url(), error)
    }

    /// The failure of a request to the service at this address.
    pub fn at(url: impl FnOnce() -> String, error: Error) -> Self {
        match error {
            Error::Unanswered(_) => Self::Unanswered { url: url(), source: Box::new(error) },
            error => Self::Failed(Box::new(error)),
        }
    }
}

/// The reason in the client's error, without the words that the message has already.
fn reason(error: &Error) -> String {
    match error {
        Error::Unanswered(reason) => reason.clone(),
        other => other.to_string(),
    }
}

fn authority(url: &str) -> &'static str {
    if url.starts_with("https:") { " --ca names an authority to trust besides the system's" } else { "" }
}

pub fn connect(
    common: &ConnectionFlags,
    progress: &Arc<ProgressPrinter>,
) -> Result<TableService, EndpointError> {
    let fault = |error| EndpointError::Connect(Box::new(error));
    let builder = TableService::builder(&common.connection_string).map_err(fault)?;
    let mut builder = builder.retry(patience(progress));
    if let Some(pem) = authority_file(common.ca.as_deref())? {
        builder = builder.trust(pem);
    }
    builder.build().map_err(fault)
}

/// How long a copy retries.
pub fn patience(progress: &Arc<ProgressPrinter>) -> RetryPolicy {
    let progress = progress.clone();
    RetryPolicy::default()
        .attempts(ATTEMPTS_MAX)
        .pauses(FIRST_PAUSE, PAUSE_MAX)
        .answer_within(ANSWER_TIME_MAX)
        .needs_contact(true)
        .on_pause(move |why, pause| {
            if pause >= REPORTED_FROM {
                progress.notice(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
            }
        })
}

/// The certificate authority that a flag names.
pub fn authority_file(path: Option<&Path>) -> Result<Option<Vec<u8>>, EndpointError> {
    let Some(path) = path else { return Ok(None) };
    let pem = std::fs::read(path);
    pem.map(Some).map_err(|source| EndpointError::Authority { path: path.to_owned(), source })
}

/// A table by its name, or the service's refusal of the name.
pub fn table(service: &TableService, name: &str) -> Result<Table, RequestError> {
    TableName::parse(name).map_err(|refusal| RequestError::TableName { refusal: Box::new(refusal) })?;
    service.table(name).map_err(|error| RequestError::new(service, error))
}
