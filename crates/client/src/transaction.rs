//! Entity group transactions.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use wire::batch;

use crate::entity::Entity;
use crate::error::{Error, Result, ServiceRefusal};
use crate::etag::{ETag, Match};
use crate::transport::{self, Repeat, ServiceAnswer, ServiceRequest};
use crate::typed::{self, Marked};

/// Boundaries and headers of one operation, without its address and its entity.
const OVERHEAD_BYTES: usize = 1024;

/// Up to 100 changes of one partition, done all or none.
///
/// ```
/// # fn main() -> partita_client::Result<()> {
/// use partita_client::{Entity, Match, Transaction};
///
/// let mut move_desk = Transaction::new();
/// move_desk.insert(&Entity::new("desks", "2").with("Owner", "ann"))?;
/// move_desk.delete("desks", "1", Match::Any);
/// assert_eq!(move_desk.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
}

/// One change of one entity, alone or in a [`Transaction`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operation {
    pub kind: OperationKind,
    /// For a delete, and for an entity in JSON, only the keys matter.
    pub entity: Entity,
    /// Properties whose type is [`Encrypted`](crate::Encrypted).
    pub encrypted: BTreeSet<String>,
    /// Sent unchanged, instead of the entity.
    json: Option<Bytes>,
}

/// What an [`Operation`] does, and on which condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Fails if the entity exists (409).
    Insert,
    /// Fails if the entity does not exist (404), or has another version (412).
    Replace(Match),
    /// Sets these properties and keeps the others. Fails as `Replace` does.
    Merge(Match),
    UpsertReplace,
    UpsertMerge,
    /// Fails as `Replace` does.
    Delete(Match),
}

impl OperationKind {
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Insert => Method::POST,
            Self::Replace(_) | Self::UpsertReplace => Method::PUT,
            Self::Merge(_) | Self::UpsertMerge => Method::PATCH,
            Self::Delete(_) => Method::DELETE,
        }
    }

    /// The name in traces.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Replace(_) => "replace",
            Self::Merge(_) => "merge",
            Self::UpsertReplace => "upsert_replace",
            Self::UpsertMerge => "upsert_merge",
            Self::Delete(_) => "delete",
        }
    }

    pub(crate) fn condition(&self) -> Option<&Match> {
        match self {
            Self::Replace(condition) | Self::Merge(condition) | Self::Delete(condition) => Some(condition),
            Self::Insert | Self::UpsertReplace | Self::UpsertMerge => None,
        }
    }

    pub(crate) fn is_merge(&self) -> bool {
        matches!(self, Self::Merge(_) | Self::UpsertMerge)
    }

    pub(crate) fn is_delete(&self) -> bool {
        matches!(self, Self::Delete(_))
    }
}

impl Operation {
    /// With a value of any type that serde can serialize as an entity, such as [`Entity`].
    pub fn new<T: Serialize + ?Sized>(kind: OperationKind, value: &T) -> Result<Self> {
        let Marked { entity, encrypted } = typed::to_marked(value)?;
        Ok(Self { kind, entity, encrypted, json: None })
    }

    pub fn delete(
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        condition: impl Into<Match>,
    ) -> Self {
        let entity = Entity::new(partition_key, row_key);
        Self { kind: OperationKind::Delete(condition.into()), entity, encrypted: BTreeSet::new(), json: None }
    }

    /// With an entity in the service's JSON, which is sent unchanged: for exact copies. The keys must be those in the JSON.
    /// A table with encryption refuses it.
    pub fn json(
        kind: OperationKind,
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        json: impl Into<Bytes>,
    ) -> Self {
        let entity = Entity::new(partition_key, row_key);
        Self { kind, entity, encrypted: BTreeSet::new(), json: Some(json.into()) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json.is_some()
    }

    /// An upper estimate of the bytes that it adds to a transaction's request, without what encryption adds. A request may
    /// have 4 MiB.
    pub fn request_bytes(&self) -> usize {
        OVERHEAD_BYTES + self.path("").len() + self.body().len()
    }

    /// Without the endpoint's own path.
    pub(crate) fn path(&self, table: &str) -> String {
        match self.kind {
            OperationKind::Insert => table.to_owned(),
            _ => wire::url::entity_link(table, &self.entity.partition_key, &self.entity.row_key),
        }
    }

    pub(crate) fn body(&self) -> Bytes {
        match &self.json {
            _ if self.kind.is_delete() => Bytes::new(),
            Some(json) => json.clone(),
            None => self.entity.to_json().into(),
        }
    }

    pub(crate) fn repeat(&self) -> Repeat {
        match &self.kind {
            OperationKind::Insert => Repeat::Ambiguous(&[409]),
            OperationKind::UpsertReplace | OperationKind::UpsertMerge => Repeat::Harmless,
            OperationKind::Delete(Match::Any) => Repeat::Achieved(404),
            OperationKind::Replace(Match::Any) | OperationKind::Merge(Match::Any) => {
                Repeat::Ambiguous(&[404])
            }
            OperationKind::Replace(Match::Version(_))
            | OperationKind::Merge(Match::Version(_))
            | OperationKind::Delete(Match::Version(_)) => Repeat::Ambiguous(&[404, 412]),
        }
    }
}

impl FromIterator<Operation> for Transaction {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        Self { operations: operations.into_iter().collect() }
    }
}

impl Transaction {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub(crate) fn operations_mut(&mut self) -> &mut [Operation] {
        &mut self.operations
    }

    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.operations.push(operation);
        self
    }

    /// The transaction fails if the entity exists (409).
    pub fn insert<T: Serialize + ?Sized>(&mut self, entity: &T) -> Result<&mut Self> {
        self.add(OperationKind::Insert, entity)
    }

    /// The transaction fails if the entity does not exist (404), or has another version (412).
    pub fn replace<T: Serialize + ?Sized>(
        &mut self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<&mut Self> {
        self.add(OperationKind::Replace(condition.into()), entity)
    }

    /// Sets these properties and keeps the others. Fails as `replace` does.
    pub fn merge<T: Serialize + ?Sized>(
        &mut self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<&mut Self> {
        self.add(OperationKind::Merge(condition.into()), entity)
    }

    /// Inserts the entity, or replaces it if it exists.
    pub fn upsert_replace<T: Serialize + ?Sized>(&mut self, entity: &T) -> Result<&mut Self> {
        self.add(OperationKind::UpsertReplace, entity)
    }

    /// Inserts the entity, or sets these properties if it exists.
    pub fn upsert_merge<T: Serialize + ?Sized>(&mut self, entity: &T) -> Result<&mut Self> {
        self.add(OperationKind::UpsertMerge, entity)
    }

    /// The transaction fails if the entity does not exist (404), or has another version (412).
    pub fn delete(
        &mut self,
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        condition: impl Into<Match>,
    ) -> &mut Self {
        self.push(Operation::delete(partition_key, row_key, condition))
    }

    fn add<T: Serialize + ?Sized>(&mut self, kind: OperationKind, entity: &T) -> Result<&mut Self> {
        Ok(self.push(Operation::new(kind, entity)?))
    }

    /// Checks what the service would refuse, before anything is sent.
    pub(crate) fn check(&self) -> Result<()> {
        let max = model::limits::BATCH_OPERATIONS_MAX;
        if self.len() > max {
            return Err(Error::invalid(format!(
                "a transaction of {} operations; it takes {max}, so divide it",
                self.len()
            )));
        }
        self.operations
            .iter()
            .filter_map(|operation| operation.kind.condition())
            .try_for_each(Match::check)?;
        let partitions = || self.operations.iter().map(|operation| operation.entity.partition_key.as_str());
        if let Some(first) = partitions().next()
            && let Some(other) = partitions().find(|partition| *partition != first)
        {
            return Err(Error::invalid(format!(
                "a transaction of the partitions {first:?} and {other:?}; it takes one, so make it one for each"
            )));
        }
        let mut rows = std::collections::HashSet::new();
        match self.operations.iter().find(|operation| !rows.insert(&operation.entity.row_key)) {
            None => Ok(()),
            Some(twice) => Err(Error::invalid(format!(
                "a transaction that names the row {:?} twice; it takes each row once",
                twice.entity.row_key
            ))),
        }
    }

    pub(crate) fn request(&self, table: &str, base: &str) -> ServiceRequest {
        let (id, changes) = (transport::id(), transport::id());
        let urls: Vec<_> =
            self.operations.iter().map(|operation| format!("{base}/{}", operation.path(table))).collect();
        let bodies: Vec<_> = self.operations.iter().map(Operation::body).collect();
        let methods: Vec<_> = self.operations.iter().map(|operation| operation.kind.method()).collect();
        let parts: Vec<_> = (0..self.len())
            .map(|n| batch::PartRequest {
                method: methods[n].as_str(),
                url: &urls[n],
                if_match: self.operations[n].kind.condition().map(Match::header),
                body: &bodies[n],
            })
            .collect();
        let harmless = self.operations.iter().all(|operation| operation.repeat() == Repeat::Harmless);
        let repeat = if harmless { Repeat::Harmless } else { Repeat::Ambiguous(&[404, 409, 412]) };
        let body = batch::write_request(&id, &changes, &parts);
        let mut request = ServiceRequest::new("submit", Method::POST, format!("/{}", wire::names::BATCH))
            .body(batch::request_content_type(&id), body)
            .repeat(repeat);
        request.inspect = refusal;
        request
    }
}

/// A failed transaction gets the status 202; its body has one answer, that of the failed operation.
fn refusal(answer: &ServiceAnswer) -> Option<ServiceRefusal> {
    let answers = batch::read_answers(answer.header("content-type")?, &answer.body)?;
    let failed = answers.iter().find(|part| part.status >= 400)?;
    let part = ServiceAnswer { headers: answer.headers.clone(), body: Bytes::copy_from_slice(failed.body) };
    let mut refused = transport::refused(failed.status, &part);
    // `2:The specified entity already exists.`; for a transaction of one, some refusals have no number.
    let (index, message) = match refused.message.split_once(':') {
        Some((index, message)) if index.parse::<usize>().is_ok() => (index.parse().ok(), message.to_owned()),
        _ => (Some(0), refused.message.clone()),
    };
    refused.index = index;
    refused.message = message;
    Some(refused)
}

/// The new versions of the entities; `None` for deletes.
pub(crate) fn etags(answer: &ServiceAnswer, operations: usize) -> Result<Vec<Option<ETag>>> {
    let content_type = answer.header("content-type").unwrap_or_default();
    let answers =
        batch::read_answers(content_type, &answer.body).filter(|answers| answers.len() == operations);
    let answers = answers.ok_or_else(|| {
        Error::OutcomeUnknown(format!("the answer to {operations} operations is not one to each of them"))
    })?;
    Ok(answers.iter().map(|part| part.header("etag").map(ETag::new)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_can_not_add_lines_to_a_transaction() {
        for text in ["", "a\r\nPrefer: x", "W/\"é\"", "a\0"] {
            let mut transaction = Transaction::new();
            transaction.delete("p", "r", ETag::new(text));
            let error = transaction.check().unwrap_err().to_string();
            assert!(error.contains("can't be an ETag"), "{text:?}: {error}");
        }
        let mut transaction = Transaction::new();
        transaction.delete("p", "r", ETag::new("W/\"datetime'2026-11-16T09%3A44%3A55.7687827Z'\""));
        transaction.check().unwrap();
    }

    #[test]
    fn what_no_service_would_take_is_not_sent() {
        let check = |keys: &[(&str, &str)], expected: Option<&str>| {
            let mut transaction = Transaction::new();
            for (partition, row) in keys {
                transaction.delete(*partition, *row, Match::Any);
            }
            let found = transaction.check().err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected);
        };
        check(&[], None);
        check(&[("p", "a"), ("p", "b")], None);
        check(
            &[("p", "a"), ("q", "b")],
            Some("a transaction of the partitions \"p\" and \"q\"; it takes one, so make it one for each"),
        );
        check(
            &[("p", "a"), ("p", "b"), ("p", "a")],
            Some("a transaction that names the row \"a\" twice; it takes each row once"),
        );
        let rows: Vec<_> = (0..101).map(|row| row.to_string()).collect();
        let many: Vec<_> = rows.iter().map(|row| ("p", row.as_str())).collect();
        check(&many, Some("a transaction of 101 operations; it takes 100, so divide it"));
    }
}
