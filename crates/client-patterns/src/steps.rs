//! The steps of an outbox: changes that do no harm if they are repeated or late.

use std::cmp::Ordering;
use std::time::Duration;

use model::Value;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::collect::MARK_PREFIX;
use super::{key_list, parts};
use partita_client::{Entity, Error, Result, Table, Transaction};

/// How often to retry a change that conflicts with changes by others.
pub(crate) const OVERTAKEN_MAX: u32 = 50;

/// A change of one entity of any table, which an [`Outbox`](super::outbox::Outbox) makes at least once.
///
/// Workers repeat steps, and a worker that was suspended may continue with an old step. So a step must be harmless if it is
/// repeated or late; each kind says under which condition it is.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxStep {
    table: String,
    verb: Verb,
    /// For some verbs only its keys, or its keys and the properties to compare.
    entity: Entity,
    /// The property whose greater value wins.
    by: Option<String>,
    /// A unique id of this step.
    mark: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Insert,
    InsertIfAbsent,
    Upsert,
    UpsertNewer,
    Delete,
    DeleteIf,
    AddMember,
    RemoveMember,
}

/// A step in the JSON of a message.
#[derive(Serialize, Deserialize)]
struct Written {
    table: String,
    step: Verb,
    entity: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

impl OutboxStep {
    /// Inserts an entity exactly once: even if the entity is deleted later, a repetition does not insert it again. For that
    /// the step leaves a mark in the same partition, a row `~done~…`.
    /// [`Outbox::collect_marks`](super::outbox::Outbox::collect_marks) deletes old marks. If another entity with these keys
    /// exists, the step fails, and its message is poisoned in the end: nothing is overwritten.
    pub fn insert<T: Serialize + ?Sized>(table: impl Into<String>, entity: &T) -> Result<Self> {
        let step = Self::new(table, Verb::Insert, Entity::from_typed(entity)?)?;
        Ok(Self { mark: Some(crate::ids::random()), ..step })
    }

    /// Inserts an entity if none with these keys exists. Harmless if an existing entity is always newer or the same, for
    /// example if keys are used only once.
    pub fn insert_if_absent<T: Serialize + ?Sized>(table: impl Into<String>, entity: &T) -> Result<Self> {
        Self::new(table, Verb::InsertIfAbsent, Entity::from_typed(entity)?)
    }

    /// Inserts or replaces an entity. Harmless if nobody else writes another entity with these keys. Otherwise it may undo a
    /// newer change; use [`upsert_newer`](Self::upsert_newer) then.
    pub fn upsert<T: Serialize + ?Sized>(table: impl Into<String>, entity: &T) -> Result<Self> {
        Self::new(table, Verb::Upsert, Entity::from_typed(entity)?)
    }

    /// Inserts an entity, or replaces one whose property `by` is less. `by` is a number, a time or a text that grows with
    /// every change. Harmless even if it is late, as long as the entity is not deleted.
    pub fn upsert_newer<T: Serialize + ?Sized>(
        table: impl Into<String>,
        entity: &T,
        by: impl Into<String>,
    ) -> Result<Self> {
        let (entity, by) = (Entity::from_typed(entity)?, by.into());
        match entity.get(&by) {
            Some(value) if compare(value, value).is_some() => {
                Ok(Self { by: Some(by), ..Self::new(table, Verb::UpsertNewer, entity)? })
            }
            _ => Err(Error::Invalid(format!(
                "the entity has no property {by:?} that is a number, a time or a text, so it can't be said which is newer"
            ))),
        }
    }

    /// Deletes an entity if it exists. Harmless if its keys are never used again.
    pub fn delete(
        table: impl Into<String>,
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
    ) -> Result<Self> {
        Self::new(table, Verb::Delete, Entity::new(partition_key, row_key))
    }

    /// Deletes the entity with these keys if its properties have these values, for example a version, so that a newer one
    /// stays.
    pub fn delete_if<T: Serialize + ?Sized>(table: impl Into<String>, entity: &T) -> Result<Self> {
        Self::new(table, Verb::DeleteIf, Entity::from_typed(entity)?)
    }

    /// Adds a member to the list with these keys, unless it was removed before.
    pub(crate) fn add_member(table: &str, list: Entity, member: &str) -> Result<Self> {
        Self::new(table, Verb::AddMember, list.with(key_list::MEMBER, member))
    }

    /// Removes a member from the list with these keys, for good.
    pub(crate) fn remove_member(table: &str, list: Entity, member: &str) -> Result<Self> {
        Self::new(table, Verb::RemoveMember, list.with(key_list::MEMBER, member))
    }

    fn new(table: impl Into<String>, verb: Verb, entity: Entity) -> Result<Self> {
        parts::check_keys(&entity)?;
        Ok(Self { table: table.into(), verb, entity, by: None, mark: None })
    }

    /// The table it changes.
    pub fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn into_entity(self) -> Entity {
        self.entity
    }

    /// Steps as the text of a message.
    pub(crate) fn write(steps: &[Self]) -> Result<String> {
        let written = steps.iter().map(|step| {
            let entity = serde_json::from_slice(&step.entity.to_json()).map_err(unwritable)?;
            Ok(Written {
                table: step.table.clone(),
                step: step.verb,
                entity,
                by: step.by.clone(),
                mark: step.mark.clone(),
            })
        });
        serde_json::to_string(&written.collect::<Result<Vec<_>>>()?).map_err(unwritable)
    }

    pub(crate) fn read(text: &str) -> Result<Vec<Self>> {
        let written: Vec<Written> = serde_json::from_str(text)
            .map_err(|error| Error::Unreadable(format!("the message has no steps: {error}")))?;
        let steps = written.into_iter().map(|Written { table, step, entity, by, mark }| {
            let entity = Entity::from_json(entity.get().as_bytes())?;
            if step == Verb::Insert && mark.is_none() {
                return Err(Error::Unreadable("the message holds an insertion without a mark".to_owned()));
            }
            Ok(Self { table, verb: step, entity, by, mark })
        });
        steps.collect()
    }

    /// Makes the change, unless it was made before.
    pub(crate) async fn carry_out(&self, table: &Table) -> Result<()> {
        let Entity { partition_key, row_key, .. } = &self.entity;
        match self.verb {
            Verb::Insert => self.insert_once(table).await,
            Verb::InsertIfAbsent => match table.insert(&self.entity).await {
                Err(error) if is_there(&error) => Ok(()),
                other => other.map(drop),
            },
            Verb::Upsert => table.upsert_replace(&self.entity).await.map(drop),
            Verb::UpsertNewer => self.replace_older(table).await,
            Verb::Delete => table.delete_if_there(partition_key, row_key).await.map(drop),
            Verb::DeleteIf => self.delete_same(table).await,
            Verb::AddMember => key_list::add(table, &self.entity).await,
            Verb::RemoveMember => key_list::remove(table, &self.entity).await,
        }
    }

    async fn insert_once(&self, table: &Table) -> Result<()> {
        let id = self.mark.as_deref().unwrap_or_default();
        let mark = Entity::new(&self.entity.partition_key, format!("{MARK_PREFIX}{id}"));
        let mut transaction = Transaction::new();
        transaction.insert(&mark)?.insert(&self.entity)?;
        match table.submit(transaction).await {
            Err(error) if is_there(&error) && error.index() == Some(0) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn replace_older(&self, table: &Table) -> Result<()> {
        let by = self.by.as_deref().unwrap_or_default();
        for _ in 0..OVERTAKEN_MAX {
            let found = table.find::<Entity>(&self.entity.partition_key, &self.entity.row_key).await?;
            let written = match found {
                None => table.insert(&self.entity).await,
                Some(found) => {
                    let order =
                        found.get(by).zip(self.entity.get(by)).and_then(|(old, new)| compare(old, new));
                    match order {
                        Some(Ordering::Less) => table.replace(&self.entity, &found.etag).await,
                        Some(_) => return Ok(()),
                        None => return Err(self.other_kind(by)),
                    }
                }
            };
            match written {
                Err(error) if is_overtaken(&error) => step_aside().await,
                other => return other.map(drop),
            }
        }
        Err(overtaken(&self.entity))
    }

    async fn delete_same(&self, table: &Table) -> Result<()> {
        let Entity { partition_key, row_key, properties, .. } = &self.entity;
        for _ in 0..OVERTAKEN_MAX {
            let found = table.find::<Entity>(partition_key, row_key).await?;
            let same = |found: &Entity| properties.iter().all(|(name, value)| found.get(name) == Some(value));
            let Some(found) = found.filter(|found| same(found)) else { return Ok(()) };
            match table.delete(partition_key, row_key, &found.etag).await {
                Err(error) if is_overtaken(&error) => step_aside().await,
                other => return other,
            }
        }
        Err(overtaken(&self.entity))
    }

    fn other_kind(&self, by: &str) -> Error {
        Error::Unreadable(format!(
            "the entity {:?} of partition {:?} has no {by:?} to compare with",
            self.entity.row_key, self.entity.partition_key
        ))
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Invalid(format!("the steps can't be written: {error}"))
}

fn is_there(error: &Error) -> bool {
    error.code() == Some("EntityAlreadyExists")
}

/// Whether somebody else has changed the entity, so that it must be read again.
pub(crate) fn is_overtaken(error: &Error) -> bool {
    is_there(error) || error.is_changed() || error.code() == Some("ResourceNotFound")
}

/// A short random pause.
pub(crate) async fn step_aside() {
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..20))).await;
}

pub(crate) fn overtaken(entity: &Entity) -> Error {
    Error::Unanswered(format!(
        "the entity {:?} of partition {:?} was changed by others {OVERTAKEN_MAX} times in between; try again",
        entity.row_key, entity.partition_key
    ))
}

/// `None` for types without an order, and for values of different types.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int32(a), Value::Int32(b)) => Some(a.cmp(b)),
        (Value::Int64(a), Value::Int64(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(model::ordinal_cmp(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_back_from_their_text() {
        let entity = Entity::new("p", "it's")
            .with("S", "é\u{1}\"")
            .with("L", i64::MAX)
            .with("D", 1.0)
            .with("N", f64::NAN)
            .with("B", vec![0, 255])
            .with("T", model::DateTime::MAX);
        let steps = [
            OutboxStep::insert("Books", &entity).unwrap(),
            OutboxStep::insert_if_absent("Books", &entity).unwrap(),
            OutboxStep::upsert("Books", &entity).unwrap(),
            OutboxStep::upsert_newer("Books", &entity, "L").unwrap(),
            OutboxStep::delete("Books", "p", "").unwrap(),
            OutboxStep::delete_if("Books", &entity).unwrap(),
            OutboxStep::add_member("Books", Entity::new("p", "r"), "m").unwrap(),
            OutboxStep::remove_member("Books", Entity::new("p", "r"), "m").unwrap(),
        ];
        assert_eq!(OutboxStep::read(&OutboxStep::write(&steps).unwrap()).unwrap(), steps);
    }

    #[test]
    fn a_message_of_the_first_version_is_read_for_ever() {
        let text = r#"[{"table":"Books","step":"upsert_newer","by":"N","entity":{"PartitionKey":"p","RowKey":"r","N":1}}]"#;
        let expected = OutboxStep::upsert_newer("Books", &Entity::new("p", "r").with("N", 1), "N").unwrap();
        assert_eq!(OutboxStep::read(text).unwrap(), [expected]);
    }

    #[test]
    fn a_step_that_could_never_be_made_is_refused_at_once() {
        let check = |step: Result<OutboxStep>, expected: &str| {
            let fault = step.unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check(
            OutboxStep::insert("Books", &Entity::new("a/b", "r")),
            "the PartitionKey \"a/b\" holds characters",
        );
        check(OutboxStep::upsert_newer("Books", &Entity::new("p", "r"), "N"), "no property \"N\"");
        check(
            OutboxStep::upsert_newer("Books", &Entity::new("p", "r").with("N", true), "N"),
            "no property \"N\"",
        );
        check(
            OutboxStep::upsert_newer("Books", &Entity::new("p", "r").with("N", f64::NAN), "N"),
            "no property \"N\"",
        );
    }
}
