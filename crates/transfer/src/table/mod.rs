//! `partita tables`, `query`, `get`, `put`, `delete`, `count`, `explain` and `top`: tables from the command line, at any Table
//! endpoint. Only `explain` and `top` need Partita.

mod command;
mod explain;
mod layout;
mod tool;
mod top;

use std::io;

use futures_util::TryStreamExt as _;
use partita_client::{Error, RetryPolicy, Table, TableService};
use thiserror::Error as ThisError;

pub use command::{
    CountCommand, DeleteCommand, ExplainCommand, GetCommand, PutCommand, QueryCommand, TablesCommand,
    TopCommand,
};

use crate::columns::{CellError, RowError};
use crate::endpoint::{self, EndpointError, RequestError};
use crate::entity::EntityError;
use crate::queue::QueueConnectionFlags;

/// One of the commands on tables.
#[derive(Clone, Debug)]
pub enum TableCommand {
    Tables(TablesCommand),
    Query(Box<QueryCommand>),
    Get(GetCommand),
    Put(PutCommand),
    Delete(DeleteCommand),
    Count(CountCommand),
    Explain(ExplainCommand),
    Top(TopCommand),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOutcome {
    Done,
    /// There is no such entity.
    NotFound,
}

/// Why a command failed.
#[derive(Debug, ThisError)]
pub enum TableError {
    #[error("can't start: {0}")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("there is no table {table} at {url}; `partita tables` lists those that exist")]
    NoTable { table: String, url: String },
    #[error("{what}: {source}")]
    Failed { what: String, source: RequestError },
    #[error("{url} is not Partita, or its extensions are off: {source}")]
    NotPartita { url: String, source: RequestError },
    #[error("can't write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("can't read standard input: {0}")]
    Input(#[source] io::Error),
    #[error("the answer can't be read: {0}")]
    Answer(#[source] serde_json::Error),
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error(
        "{name} appears only after the first page, and CSV names its columns first; use --select, or `partita export`"
    )]
    LateColumn { name: String },
    #[error("{text:?} is not NAME=TEXT, NAME:TYPE=VALUE or NAME:=JSON")]
    Property { text: String },
    #[error(transparent)]
    Value(#[from] RowError),
    #[error("the entity: {0}")]
    Entity(#[from] EntityError),
}

pub fn table(command: &TableCommand) -> Result<TableOutcome, TableError> {
    crate::run(run(command)).map_err(TableError::Runtime)?
}

async fn run(command: &TableCommand) -> Result<TableOutcome, TableError> {
    match command {
        TableCommand::Tables(command) => tool::tables(command).await?,
        TableCommand::Query(command) => tool::query(command).await?,
        TableCommand::Get(command) => return tool::get(command).await,
        TableCommand::Put(command) => tool::put(command).await?,
        TableCommand::Delete(command) => return tool::delete(command).await,
        TableCommand::Count(command) => tool::count(command).await?,
        TableCommand::Explain(command) => explain::explain(command).await?,
        TableCommand::Top(command) => top::top(command).await?,
    }
    Ok(TableOutcome::Done)
}

/// The tables of an account, for one command of a person, who waits for it.
fn connect(flags: &QueueConnectionFlags) -> Result<TableService, EndpointError> {
    let fault = |error| EndpointError::Connect(Box::new(error));
    let retry = RetryPolicy::default().needs_contact(true);
    let mut builder = TableService::builder(&flags.connection_string).map_err(fault)?.retry(retry);
    if let Some(pem) = endpoint::authority_file(flags.ca.as_deref())? {
        builder = builder.trust(pem);
    }
    builder.build().map_err(fault)
}

/// The endpoint, and one of its tables.
struct Chosen {
    service: TableService,
    table: Table,
}

impl Chosen {
    fn new(flags: &QueueConnectionFlags, name: &str) -> Result<Self, TableError> {
        let service = connect(flags)?;
        let failed = |source| TableError::Failed { what: format!("table {name}"), source };
        let table = endpoint::table(&service, name).map_err(failed)?;
        Ok(Self { service, table })
    }

    fn failed(&self, error: Error) -> TableError {
        let table = self.table.name().to_owned();
        match error.code() {
            Some("TableNotFound") => TableError::NoTable { table, url: self.service.url() },
            _ => TableError::Failed {
                what: format!("table {table}"),
                source: RequestError::new(&self.service, error),
            },
        }
    }
}

/// A document below `$partita`, which other services do not have.
async fn document(
    service: &TableService,
    path: &str,
    query: Vec<(&'static str, String)>,
) -> Result<serde_json::Value, TableError> {
    let answer = service.extension(path, query).await.map_err(|error| {
        // How services without extensions refuse the address. The names of tables were checked before.
        let is_foreign =
            matches!(error.code(), Some("InvalidResourceName" | "OutOfRangeInput" | "InvalidUri"));
        let (url, source) = (service.url(), RequestError::new(service, error));
        match is_foreign {
            true => TableError::NotPartita { url, source },
            false => TableError::Failed { what: path.trim_start_matches('/').to_owned(), source },
        }
    })?;
    serde_json::from_slice(&answer).map_err(TableError::Answer)
}

/// What a look at an endpoint shows.
#[derive(Clone, Debug)]
pub struct Probe {
    pub url: String,
    /// Partita's; `None` if it is another service, or hides it.
    pub version: Option<String>,
}

/// Lists the first tables of an endpoint, without a retry.
pub fn probe(connection_string: &str, ca: Option<&std::path::Path>) -> Result<Probe, TableError> {
    let flags = QueueConnectionFlags {
        connection_string: connection_string.to_owned(),
        ca: ca.map(std::path::Path::to_owned),
    };
    crate::run(async {
        let service = connect(&flags)?;
        let first = std::pin::pin!(service.tables(None)).try_next().await;
        first.map_err(|error| TableError::Failed {
            what: "can't list the tables".to_owned(),
            source: RequestError::new(&service, error),
        })?;
        let discovered = document(&service, "", Vec::new()).await.ok();
        let version = discovered.and_then(|found| found["version"].as_str().map(str::to_owned));
        Ok(Probe { url: service.url(), version })
    })
    .map_err(TableError::Runtime)?
}
