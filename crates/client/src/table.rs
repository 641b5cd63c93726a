//! One table: its entities and its policies; creates and drops it.

use std::sync::Arc;

use http::Method;
use model::ServiceKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::names;

use crate::answers;
use crate::encryption::EntityEncryption;
use crate::entity::{Entity, StoredEntity};
use crate::error::{Error, Result};
use crate::etag::{ETag, Match};
use crate::query::Query;
use crate::sas::{self, AccessPolicy, TableSas};
use crate::transaction::{self, Operation, OperationKind, Transaction};
use crate::transport::{Repeat, ServiceAnswer, ServiceRequest, Transport};

const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// A table of an account, made by [`TableService::table`](crate::TableService::table). Cheap to clone.
///
/// Writes take any type that implements serde's `Serialize`, and reads return any that implements `Deserialize`, such as
/// [`Entity`]. [`edm`](crate::edm) says how Rust types map to those of the service.
#[derive(Clone, Debug)]
pub struct Table {
    transport: Transport,
    name: Arc<str>,
    encryption: Option<Arc<dyn EntityEncryption>>,
}

impl Table {
    pub(crate) fn new(transport: Transport, name: &str) -> Result<Self> {
        match model::TableName::parse(name) {
            Ok(_) => Ok(Self { transport, name: name.into(), encryption: None }),
            Err(refusal) => Err(Error::invalid(format!(
                "{name:?} can't be the name of a table ({refusal}); it takes 3 to 63 letters and digits, a letter first"
            ))),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same table with encryption: chosen properties are encrypted before they are sent, and decrypted when they are
    /// read. The crate `partita-client-encryption` has an implementation.
    #[must_use]
    pub fn with_encryption(&self, encryption: impl EntityEncryption + 'static) -> Self {
        Self { encryption: Some(Arc::new(encryption)), ..self.clone() }
    }

    /// The same table without decryption, for example to read only keys.
    #[must_use]
    pub fn without_encryption(&self) -> Self {
        Self { encryption: None, ..self.clone() }
    }

    /// Creates the table. Fails if it exists (409).
    pub async fn create(&self) -> Result<()> {
        let body = serde_json::json!({ names::TABLE_NAME: &*self.name }).to_string();
        let request = ServiceRequest::new("create_table", Method::POST, format!("/{}", names::TABLES))
            .header(names::PREFER, names::RETURN_NO_CONTENT)
            .body(JSON, body)
            .repeat(Repeat::Ambiguous(&[409]));
        self.send(request).await.map(drop)
    }

    /// Creates the table if it does not exist. Returns whether it was created.
    pub async fn create_if_missing(&self) -> Result<bool> {
        match self.create().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("TableAlreadyExists") => Ok(false),
            // Created by an attempt without an answer, or by somebody else.
            Err(Error::OutcomeUnknown(_)) if self.exists().await? => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Deletes the table with its entities. Fails if it does not exist (404).
    pub async fn drop(&self) -> Result<()> {
        let path = format!("/{}", wire::url::table_link(&self.name));
        let request = ServiceRequest::new("drop_table", Method::DELETE, path).repeat(Repeat::Achieved(404));
        self.send(request).await.map(drop)
    }

    pub async fn exists(&self) -> Result<bool> {
        let path = format!("/{}", wire::url::table_link(&self.name));
        match self.send(ServiceRequest::new("get_table", Method::GET, path)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Inserts an entity. Fails if it exists (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::Insert, entity).await
    }

    /// Replaces the whole entity: other properties are removed. Fails if it does not exist (404), or has another version
    /// (412).
    pub async fn replace<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        self.write(OperationKind::Replace(condition.into()), entity).await
    }

    /// Sets these properties and keeps the others. Fails as `replace` does.
    pub async fn merge<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        self.write(OperationKind::Merge(condition.into()), entity).await
    }

    /// Inserts the entity, or replaces it if it exists.
    pub async fn upsert_replace<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::UpsertReplace, entity).await
    }

    /// Inserts the entity, or sets these properties if it exists.
    pub async fn upsert_merge<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::UpsertMerge, entity).await
    }

    /// Deletes an entity. Fails if it does not exist (404), or has another version (412).
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<Match>,
    ) -> Result<()> {
        self.apply(Operation::delete(partition_key, row_key, condition)).await.map(drop)
    }

    /// Does one operation. Returns the new version of the entity, or `None` if it was deleted.
    pub async fn apply(&self, mut operation: Operation) -> Result<Option<ETag>> {
        self.encrypt(&mut operation).await?;
        let answer = self.send_operation(&operation).await?;
        Ok(answer.header("etag").map(ETag::new))
    }

    /// Deletes the entity in any version, if it exists. Returns whether it existed.
    pub async fn delete_if_there(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        match self.delete(partition_key, row_key, Match::Any).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("ResourceNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A point read, the cheapest read. Fails if the entity does not exist (404).
    pub async fn get<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<StoredEntity<T>> {
        let path = format!("/{}", wire::url::entity_link(&self.name, partition_key, row_key));
        let answer = self.send(ServiceRequest::new("get", Method::GET, path)).await?;
        let mut stored = answers::entity(&answer.body, answer.header("etag"))?;
        self.decrypt(&mut stored, None).await?;
        stored.into_typed()
    }

    /// A point read; `None` if the entity does not exist.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<StoredEntity<T>>> {
        match self.get(partition_key, row_key).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == Some("ResourceNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A query of all entities; its methods narrow it.
    pub fn query(&self) -> Query {
        Query::new(self.clone())
    }

    /// Does all operations of the transaction, or none; then the error names the operation that failed ([`Error::index`]).
    /// Returns the new versions in the order of the operations, `None` for deletes.
    pub async fn submit(&self, mut transaction: Transaction) -> Result<Vec<Option<ETag>>> {
        transaction.check()?;
        if transaction.is_empty() {
            return Ok(Vec::new());
        }
        for operation in transaction.operations_mut() {
            self.encrypt(operation).await?;
        }
        let request = transaction.request(&self.name, &self.transport.endpoint.url());
        let answer = self.send(request).await?;
        transaction::etags(&answer, transaction.len())
    }

    /// The stored access policies of this table.
    pub async fn policies(&self) -> Result<Vec<AccessPolicy>> {
        let request = self.request("get_policies", Method::GET, "").query(names::COMP, "acl");
        let answer = self.send(request).await?;
        sas::read_policies(ServiceKind::Table, &answer.body)
    }

    /// Replaces all stored access policies; at most five. On Azure it can take half a minute until they apply.
    pub async fn set_policies(&self, policies: &[AccessPolicy]) -> Result<()> {
        let request = self.request("set_policies", Method::PUT, "").query(names::COMP, "acl");
        self.send(request.body(XML, sas::write_policies(policies))).await.map(drop)
    }

    /// A shared access signature for this table; needs the account's key.
    pub fn sign(&self, sas: &TableSas) -> Result<String> {
        sas::sign_table(&self.transport.endpoint, &self.name, sas)
    }

    async fn write<T: Serialize + ?Sized>(&self, kind: OperationKind, entity: &T) -> Result<ETag> {
        let etag = self.apply(Operation::new(kind, entity)?).await?;
        Ok(etag.unwrap_or_else(|| ETag::new("")))
    }

    async fn send_operation(&self, operation: &Operation) -> Result<ServiceAnswer> {
        let path = format!("/{}", operation.path(&self.name));
        let mut request = ServiceRequest::new(operation.kind.name(), operation.kind.method(), path)
            .repeat(operation.repeat());
        if operation.kind == OperationKind::Insert {
            request = request.header(names::PREFER, names::RETURN_NO_CONTENT);
        }
        if let Some(condition) = operation.kind.condition() {
            condition.check()?;
            request = request.header("if-match", condition.header());
        }
        if !operation.kind.is_delete() {
            request = request.body(JSON, operation.body());
        }
        self.send(request).await
    }

    async fn encrypt(&self, operation: &mut Operation) -> Result<()> {
        if operation.is_json() && self.encryption.is_some() {
            return Err(Error::invalid(
                "an entity in JSON is sent as it is, and this table is encrypted; use Table::without_encryption",
            ));
        }
        let Operation { kind, entity, encrypted, .. } = operation;
        let Some(encryption) = &self.encryption else {
            return match encrypted.first() {
                None => Ok(()),
                Some(name) => Err(Error::invalid(format!(
                    "property {name} is to be encrypted, and this table has no policy; use Table::with_encryption"
                ))),
            };
        };
        if kind.is_merge() {
            return encryption.check_merge(entity, encrypted);
        }
        if !kind.is_delete() {
            *entity = encryption.encrypt(std::mem::take(entity), encrypted).await?;
        }
        Ok(())
    }

    /// `selected` are the properties of a projection; empty for all.
    pub(crate) async fn decrypt(
        &self,
        stored: &mut StoredEntity<Entity>,
        selected: Option<&[String]>,
    ) -> Result<()> {
        if let Some(encryption) = &self.encryption {
            let entity = std::mem::take(&mut stored.entity);
            stored.entity = encryption.decrypt(entity, selected.unwrap_or_default()).await?;
        }
        Ok(())
    }

    pub(crate) fn extend_select(&self, select: &mut Vec<String>) {
        if let Some(encryption) = &self.encryption {
            encryption.extend_select(select);
        }
    }

    /// `suffix` follows the table's name.
    pub(crate) fn request(&self, name: &'static str, method: Method, suffix: &str) -> ServiceRequest {
        ServiceRequest::new(name, method, format!("/{}{suffix}", self.name))
    }

    pub(crate) async fn send(&self, request: ServiceRequest) -> Result<ServiceAnswer> {
        self.transport.send(request).await
    }
}
