//! Stores groups of entities, one after the other.
//!
//! A group is one transaction. If the service refuses it, the writer stores the entities one by one, to find out which of
//! them the service refuses.

use partita_client::{Entity, Error, Operation, OperationKind, Table, TableService, Transaction};

use crate::command::Mode;
use crate::endpoint::RequestError;
use crate::group::{EntityGroup, Item, Rejection, RejectionReason};

#[derive(Debug)]
pub struct GroupWriter {
    service: TableService,
    table: Table,
    rules: Rules,
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub mode: Mode,
    /// An earlier run may have stored some of the entities.
    pub resumed: bool,
    /// Stop after the first entity that the service refuses.
    pub stops: bool,
}

#[derive(Debug)]
pub struct GroupOutcome {
    /// The offset of the group's end in the file.
    pub end: u64,
    pub written: u64,
    pub rejections: Vec<Rejection>,
}

impl GroupWriter {
    pub fn new(service: TableService, table: Table, rules: Rules) -> Self {
        Self { service, table, rules }
    }

    /// The error is one of the endpoint, not of an entity.
    pub async fn store(&self, group: EntityGroup) -> Result<GroupOutcome, RequestError> {
        let rejections = group.unreadable.into_iter().collect();
        let mut outcome = GroupOutcome { end: group.end, written: 0, rejections };
        let mut doubtful = self.rules.resumed;
        if group.items.len() > 1 {
            let transaction: Transaction = group.items.iter().map(|item| self.operation(item)).collect();
            match self.table.submit(transaction).await {
                Ok(_) => {
                    outcome.written = group.items.len() as u64;
                    return Ok(outcome);
                }
                Err(Error::OutcomeUnknown(_)) => doubtful = true,
                // Storing each entity alone shows which one is refused.
                Err(Error::Refused(refused)) if !matches!(refused.status, 401 | 403 | 404 | 429 | 503) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        for item in group.items {
            match self.store_one(&item, doubtful).await? {
                None => outcome.written += 1,
                Some(error) => {
                    let reason = RejectionReason::Refused { keys: item.keys, error: Box::new(error) };
                    outcome.rejections.push(Rejection { line: item.line, reason, raw: item.raw });
                    if self.rules.stops {
                        break;
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// Returns the service's refusal, if it refused. `doubtful`: an earlier attempt may have stored the entity.
    async fn store_one(&self, item: &Item, mut doubtful: bool) -> Result<Option<Error>, RequestError> {
        let mut outcome = self.table.apply(self.operation(item)).await;
        if self.inserts() && matches!(outcome, Err(Error::OutcomeUnknown(_))) {
            // The second insert stores the entity, or the answer says that it exists.
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
            return Err(self.failed(error));
        }
        let is_stored = doubtful && self.inserts() && error.is_conflict() && self.is_there(item).await?;
        Ok((!is_stored).then_some(error))
    }

    fn inserts(&self) -> bool {
        self.rules.mode == Mode::Insert
    }

    /// Whether the table has exactly this entity.
    async fn is_there(&self, item: &Item) -> Result<bool, RequestError> {
        match self.table.find::<Entity>(&item.keys.partition, &item.keys.row).await {
            Ok(found) => Ok(found.is_some_and(|found| is_same(&found, &item.body))),
            Err(Error::Unreadable(_)) => Ok(false),
            Err(error) => Err(self.failed(error)),
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

    fn failed(&self, error: Error) -> RequestError {
        RequestError::new(&self.service, error)
    }
}

/// Whether the body is this entity, in any spelling.
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
