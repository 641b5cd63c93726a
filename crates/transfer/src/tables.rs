//! The tables of an account: which there are, and that one is there.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::TableName;
use partita_client::{Error, Table, TableService};

use crate::endpoint::{self, explain};

/// The cloud takes half a minute or more to delete a table, and until then there can be no other of its name.
const DELETION_ATTEMPTS: u32 = 30;
const DELETION_PAUSE: Duration = Duration::from_secs(4);

pub async fn list(service: &TableService) -> Result<Vec<String>, String> {
    let listed: Vec<String> = service
        .tables(None)
        .try_collect()
        .await
        .map_err(|error| format!("can't list the tables: {}", explain(service, &error)))?;
    // Names become names of files here: whatever is listed, nothing but a table's name may.
    match listed.iter().find(|name| TableName::parse(name).is_err()) {
        None => Ok(listed),
        Some(name) => Err(format!("the list of tables has {name:?} in it, which can't be a table's name")),
    }
}

/// Makes a table unless it is there.
pub async fn create(service: &TableService, name: &str) -> Result<Table, String> {
    let unmade = |why: String| format!("can't make the table {name}: {why}");
    let table = endpoint::table(service, name).map_err(unmade)?;
    for _ in 0..DELETION_ATTEMPTS {
        let error = match table.create().await {
            Ok(()) => return Ok(table),
            Err(error) => error,
        };
        match (error.status(), error.code()) {
            (Some(409), Some("TableAlreadyExists")) => return Ok(table),
            // A shared access signature need not allow this. Whether the table is there the first write will tell.
            (Some(403), _) => return Ok(table),
            (Some(409), Some("TableBeingDeleted")) => tokio::time::sleep(DELETION_PAUSE).await,
            // Made by an attempt without an answer, or there before. The first write will tell this too.
            _ if matches!(error, Error::OutcomeUnknown(_)) => return Ok(table),
            _ => return Err(unmade(explain(service, &error))),
        }
    }
    Err(unmade("the one before it is still being deleted".to_owned()))
}
