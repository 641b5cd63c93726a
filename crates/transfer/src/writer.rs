//! Stores groups of entities, one after the other.
//!
//! A group is one transaction. If that is refused, its entities are stored one by one, which tells exactly which of
//! them the service does not take.

use partita_client::{Entity, Error, Operation, OperationKind, Table, TableService, Transaction};

use crate::command::Mode;
use crate::endpoint;
use crate::group::{Group, Item, Rejected};

#[derive(Debug)]
pub struct Writer {
    service: TableService,
    table: Table,
    rules: Rules,
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub mode: Mode,
    /// An earlier run may have stored some of what is stored now.
    pub resumed: bool,
    /// The first entity that is refused is the last that is tried.
    pub stops: bool,
}

/// What became of a group.
#[derive(Debug, Default)]
pub struct Stored {
    pub written: u64,
    pub rejected: Vec<Rejected>,
}

impl Writer {
    pub fn new(service: TableService, table: Table, rules: Rules) -> Self {
        Self { service, table, rules }
    }

    /// An error is of the endpoint, not of an entity.
    pub async fn store(&self, group: Group) -> Result<Stored, String> {
        let mut stored = Stored { written: 0, rejected: group.unreadable.into_iter().collect() };
        let mut doubtful = self.rules.resumed;
        if group.items.len() > 1 {
            let transaction: Transaction = group.items.iter().map(|item| self.operation(item)).collect();
            match self.table.submit(transaction).await {
                Ok(_) => {
                    stored.written = group.items.len() as u64;
                    return Ok(stored);
                }
                Err(Error::OutcomeUnknown(_)) => doubtful = true,
                // What is true of one entity is told by storing it alone.
                Err(Error::Refused(refused)) if !matches!(refused.status, 401 | 403 | 404 | 429 | 503) => {}
                Err(error) => return Err(self.explain(&error)),
            }
        }
        for item in group.items {
            match self.store_one(&item, doubtful).await? {
                None => stored.written += 1,
                Some(why) => {
                    stored.rejected.push(Rejected {
                        line: item.line,
                        why: format!("{}: {why}", item.keys),
                        raw: item.raw,
                    });
                    if self.rules.stops {
                        break;
                    }
                }
            }
        }
        Ok(stored)
    }

    /// What the service has against it, if anything. `doubtful`: an earlier attempt may have been carried out.
    async fn store_one(&self, item: &Item, mut doubtful: bool) -> Result<Option<String>, String> {
        let mut outcome = self.table.apply(self.operation(item)).await;
        if self.inserts() && matches!(outcome, Err(Error::OutcomeUnknown(_))) {
            // An insert that is sent anew either stores the entity or is told that there is one.
            doubtful = true;
            outcome = self.table.apply(self.operation(item)).await;
        }
        let Err(error) = outcome else { return Ok(None) };
        let is_about_the_entity = match &error {
            Error::Refused(refused) => {
                matches!(refused.status, 400 | 409 | 412 | 413) && refused.code != "TableBeingDeleted"
            }
            _ => false,
        };
        if !is_about_the_entity {
            return Err(self.explain(&error));
        }
        let is_stored = doubtful && self.inserts() && error.is_conflict() && self.is_there(item).await?;
        Ok((!is_stored).then(|| error.to_string()))
    }

    fn inserts(&self) -> bool {
        self.rules.mode == Mode::Insert
    }

    /// Whether the table has just this entity.
    async fn is_there(&self, item: &Item) -> Result<bool, String> {
        match self.table.find::<Entity>(&item.keys.partition, &item.keys.row).await {
            Ok(found) => Ok(found.is_some_and(|found| is_same(&found, &item.body))),
            Err(Error::Unreadable(_)) => Ok(false),
            Err(error) => Err(self.explain(&error)),
        }
    }

    fn operation(&self, item: &Item) -> Operation {
        let kind = match self.rules.mode {
            Mode::Replace => OperationKind::UpsertReplace,
            Mode::Merge => OperationKind::UpsertMerge,
            Mode::Insert => OperationKind::Insert,
        };
        Operation::json(kind, item.keys.partition.as_str(), item.keys.row.as_str(), item.body.clone())
    }

    fn explain(&self, error: &Error) -> String {
        endpoint::explain(&self.service, error)
    }
}

/// Whether the body says this entity, however it spells it.
fn is_same(found: &Entity, body: &[u8]) -> bool {
    Entity::from_json(body).is_ok_and(|entity| entity == *found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_the_same_whatever_their_spelling() {
        let check = |one: &str, other: &str, expected| {
            let whole = |text: &str| format!(r#"{{"PartitionKey":"p","RowKey":"r",{text}}}"#);
            let one = Entity::from_json(whole(one).as_bytes()).unwrap();
            assert_eq!(is_same(&one, whole(other).as_bytes()), expected, "{one:?} {other}");
        };
        check(
            r#""A":1,"B":2.0,"Timestamp":"t""#,
            r#""B@odata.type":"Edm.Double","B":2,"A":1,"odata.etag":"x""#,
            true,
        );
        check(
            r#""D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z""#,
            r#""D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00.0000000Z""#,
            true,
        );
        check(r#""A":1"#, r#""A":2"#, false);
        check(r#""A":1"#, r#""A":1,"B":1"#, false);
        check(r#""A":1"#, r#""A":1.0"#, false);
        check(r#""A":1"#, r#""A":{}"#, false);
    }
}
