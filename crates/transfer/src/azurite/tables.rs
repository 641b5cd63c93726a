//! Tables of Azurite: entities as they are stored, in transactions of one partition.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use model::{EdmType, Guid};
use partita_client::{Operation, OperationKind, Table, TableService, Transaction};
use serde_json::value::RawValue;
use wire::names::TIMESTAMP;

use super::database::Database;
use super::records::{self, EntityRecord, TableRecord};
use super::{AzuriteError, Tally};
use crate::endpoint::RequestError;
use crate::entity::TYPE_ANNOTATION;
use crate::progress::ProgressPrinter;

const OPERATIONS_MAX: usize = 100;
/// A transaction takes 4 MiB.
const BYTES_MAX: usize = 3 * 1024 * 1024;
const PARALLEL: usize = 8;
/// Longer than any entity, even one whose every character is escaped.
const ENTITY_BYTES_MAX: usize = 4 * 1024 * 1024;

pub async fn import(
    service: &TableService,
    database: &Database,
    account: &str,
    progress: &Arc<ProgressPrinter>,
) -> Result<Tally, AzuriteError> {
    let import = Import { service, database, progress };
    let (mut tally, mut tables, mut group) = (Tally::default(), HashMap::new(), None::<Group>);
    let (mut records, mut running) = (database.records(), FuturesUnordered::new());
    progress.start("importing tables".to_owned(), 0, None);
    let prefix = format!("{account}$");
    while let Some(record) = records.next().await? {
        if record.collection == records::TABLES {
            let TableRecord { account: of, table } = database.parse(&record)?;
            if of == account {
                let created = import.table(&table).await?;
                // Collections of entities are named without regard to case.
                tables.insert(table.to_ascii_lowercase(), created);
                tally.containers += 1;
            }
            continue;
        }
        let Some(name) = record.collection.strip_prefix(&prefix) else { continue };
        let Some(table) = tables.get(&name.to_ascii_lowercase()) else { continue };
        let entity: EntityRecord = database.parse(&record)?;
        let body = import.body(&entity)?;
        let operation = Operation::json(
            OperationKind::UpsertReplace,
            entity.partition_key.as_str(),
            entity.row_key.as_str(),
            body,
        );
        let fits = group.as_ref().is_some_and(|group| group.takes(table, &entity.partition_key, &operation));
        if !fits && let Some(full) = group.take() {
            running.push(import.submit(full));
        }
        let group = group.get_or_insert_with(|| Group::new(table.clone(), entity.partition_key));
        group.bytes += operation.request_bytes();
        group.transaction.push(operation);
        if running.len() >= PARALLEL
            && let Some(done) = running.next().await
        {
            tally.items += done?;
            progress.update(tally.items, 0);
        }
    }
    if let Some(last) = group {
        running.push(import.submit(last));
    }
    while let Some(done) = running.next().await {
        tally.items += done?;
    }
    Ok(tally)
}

/// Entities of one partition that come one after the other.
struct Group {
    table: Table,
    partition_key: String,
    transaction: Transaction,
    bytes: usize,
}

impl Group {
    fn new(table: Table, partition_key: String) -> Self {
        Self { table, partition_key, transaction: Transaction::new(), bytes: 0 }
    }

    fn takes(&self, table: &Table, partition_key: &str, operation: &Operation) -> bool {
        self.table.name() == table.name()
            && self.partition_key == partition_key
            && self.transaction.len() < OPERATIONS_MAX
            && self.bytes + operation.request_bytes() <= BYTES_MAX
    }
}

struct Import<'a> {
    service: &'a TableService,
    database: &'a Database,
    progress: &'a Arc<ProgressPrinter>,
}

impl Import<'_> {
    async fn table(&self, name: &str) -> Result<Table, AzuriteError> {
        let failed = |source| AzuriteError::Request { what: format!("table {name}"), source };
        let table = crate::endpoint::table(self.service, name).map_err(failed)?;
        let created = table.create_if_missing().await;
        created.map_err(|error| failed(RequestError::new(self.service, error)))?;
        self.progress.notice(&format!("table {name}"));
        Ok(table)
    }

    /// How many entities it was.
    async fn submit(&self, group: Group) -> Result<u64, AzuriteError> {
        let what = format!("table {}, partition {:?}", group.table.name(), group.partition_key);
        let count = group.transaction.len() as u64;
        let done = group.table.submit(group.transaction).await;
        done.map_err(|error| AzuriteError::Request { what, source: RequestError::new(self.service, error) })?;
        Ok(count)
    }

    fn body(&self, entity: &EntityRecord) -> Result<Vec<u8>, AzuriteError> {
        let unreadable = |why: String| AzuriteError::Record {
            path: self.database.path().to_owned(),
            what: format!("the entity {:?}, {:?}", entity.partition_key, entity.row_key),
            why,
        };
        let length = entity.properties.get().len();
        if length > ENTITY_BYTES_MAX {
            return Err(unreadable(format!("it has {length} bytes, more than an entity can have")));
        }
        body(&entity.properties).map_err(|why| unreadable(why.to_string()))
    }
}

/// The entity in the service's JSON. Azurite keeps it as it came, but a GUID in Base64.
fn body(properties: &RawValue) -> Result<Vec<u8>, serde_json::Error> {
    // Members are copied as they were written, so numbers keep their digits.
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(properties.get())?;
    let guids: Vec<String> = members
        .iter()
        .filter(|(_, value)| {
            serde_json::from_str::<String>(value.get()).is_ok_and(|of| of == EdmType::Guid.name())
        })
        .filter_map(|(name, _)| name.strip_suffix(TYPE_ANNOTATION).map(str::to_owned))
        .collect();
    for (name, value) in &mut members {
        if guids.contains(name)
            && let Some(guid) =
                serde_json::from_str::<String>(value.get()).ok().and_then(|text| decoded(&text))
        {
            *value = RawValue::from_string(serde_json::to_string(&guid)?)?;
        }
    }
    members.retain(|name, _| name != TIMESTAMP && name.strip_suffix(TYPE_ANNOTATION) != Some(TIMESTAMP));
    serde_json::to_vec(&members)
}

/// A GUID that is written in Base64.
fn decoded(text: &str) -> Option<String> {
    let text = String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok()?;
    Guid::parse(&text).map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_is_as_it_came_but_for_guids_and_the_timestamp() {
        let check = |stored: &str, expected: &str| {
            let stored = RawValue::from_string(stored.to_owned()).unwrap();
            assert_eq!(String::from_utf8(body(&stored).unwrap()).unwrap(), expected);
        };
        check(
            r#"{"D":3,"D@odata.type":"Edm.Double","Timestamp":"t","Timestamp@odata.type":"Edm.DateTime","TimestampOfMine":1.50}"#,
            r#"{"D":3,"D@odata.type":"Edm.Double","TimestampOfMine":1.50}"#,
        );
        let guid = "11111111-2222-3333-4444-555555555555";
        let plain = format!(r#"{{"G":"{guid}","G@odata.type":"Edm.Guid"}}"#);
        let encoded = "MTExMTExMTEtMjIyMi0zMzMzLTQ0NDQtNTU1NTU1NTU1NTU1";
        check(&plain.replace(guid, encoded), &plain);
        check(&plain, &plain);
        let text = format!(r#"{{"S":"{encoded}"}}"#);
        check(&text, &text);
    }
}
