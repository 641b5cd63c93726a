//! Lists the tables of an account, and creates a missing one.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::TableName;
use partita_client::{Error, Table, TableService};

use crate::endpoint::{self, EndpointError, RequestError};

/// The cloud takes half a minute or more to delete a table or a queue. Until then none of the same name can be created.
pub const DELETION_ATTEMPTS: u32 = 30;
pub const DELETION_PAUSE: Duration = Duration::from_secs(4);

pub async fn list(service: &TableService) -> Result<Vec<String>, EndpointError> {
    let listed: Vec<String> = service
        .tables(None)
        .try_collect()
        .await
        .map_err(|error| EndpointError::List(RequestError::new(service, error)))?;
    // Names become file names here, so a hostile endpoint must not choose others than those of tables.
    match listed.iter().find(|name| TableName::parse(name).is_err()) {
        None => Ok(listed),
        Some(name) => Err(EndpointError::ListedName { name: name.clone() }),
    }
}

/// Creates a table if it does not exist.
pub async fn create(service: &TableService, name: &str) -> Result<Table, EndpointError> {
    let not_created = |source| EndpointError::Create { table: name.to_owned(), source };
    let table = endpoint::table(service, name).map_err(not_created)?;
    for _ in 0..DELETION_ATTEMPTS {
        let error = match table.create().await {
            Ok(()) => return Ok(table),
            Err(error) => error,
        };
        match (error.status(), error.code()) {
            (Some(409), Some("TableAlreadyExists")) => return Ok(table),
            // A shared access signature may not allow this. The first write shows whether the table exists.
            (Some(403), _) => return Ok(table),
            (Some(409), Some("TableBeingDeleted")) => tokio::time::sleep(DELETION_PAUSE).await,
            // Created by an attempt without an answer, or before. The first write shows this, too.
            _ if matches!(error, Error::OutcomeUnknown(_)) => return Ok(table),
            _ => return Err(not_created(RequestError::new(service, error))),
        }
    }
    Err(EndpointError::BeingDeleted { table: name.to_owned() })
}
