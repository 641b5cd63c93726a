//! One table: its entities, its policies, itself.

use std::sync::Arc;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::access_policies;
use wire::names;

use crate::answers;
use crate::encryption::EntityEncryption;
use crate::entity::{Entity, Stored};
use crate::error::{Error, Result};
use crate::etag::{ETag, Match};
use crate::query::Query;
use crate::sas::{self, AccessPolicy, TableSas};
use crate::transaction::{self, Operation, OperationKind, Transaction};
use crate::transport::{Answer, Repeat, Request, Transport};

const JSON: &str = "application/json";
const XML: &str = "application/xml";

/// A table of an account, made by [`TableService::table`](crate::TableService::table). Cheap to clone.
///
/// The methods that write take any type that serde can serialize, [`Entity`] among them, and those that read give any
/// that it can deserialize; [`edm`](crate::edm) says how types become those of the service.
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

    /// The same table, with chosen properties encrypted before they are sent and decrypted when they come back. The
    /// crate `partita-client-encryption` has what to give here.
    #[must_use]
    pub fn with_encryption(&self, encryption: impl EntityEncryption + 'static) -> Self {
        Self { encryption: Some(Arc::new(encryption)), ..self.clone() }
    }

    /// The same table with its entities as they are stored: to look at keys takes no decryption.
    #[must_use]
    pub fn without_encryption(&self) -> Self {
        Self { encryption: None, ..self.clone() }
    }

    /// Makes the table. Fails if there is one (409).
    pub async fn create(&self) -> Result<()> {
        let body = serde_json::json!({ names::TABLE_NAME: &*self.name }).to_string();
        let request = Request::new("create_table", Method::POST, format!("/{}", names::TABLES))
            .header(names::PREFER, names::RETURN_NO_CONTENT)
            .body(JSON, body)
            .repeat(Repeat::Ambiguous(&[409]));
        self.send(request).await.map(drop)
    }

    /// Makes the table unless it is there. Whether it was made.
    pub async fn create_if_missing(&self) -> Result<bool> {
        match self.create().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("TableAlreadyExists") => Ok(false),
            // Made just now by an attempt without an answer, or by somebody else: it is there.
            Err(Error::OutcomeUnknown(_)) if self.exists().await? => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Deletes the table with all that is in it. Fails if there is none (404).
    pub async fn drop(&self) -> Result<()> {
        let path = format!("/{}", wire::url::table_link(&self.name));
        let request = Request::new("drop_table", Method::DELETE, path).repeat(Repeat::Achieved(404));
        self.send(request).await.map(drop)
    }

    pub async fn exists(&self) -> Result<bool> {
        let path = format!("/{}", wire::url::table_link(&self.name));
        match self.send(Request::new("get_table", Method::GET, path)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Fails if there is such an entity (409).
    pub async fn insert<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::Insert, entity).await
    }

    /// The whole entity, properties that are not named are gone. Fails if there is none (404), or not this version (412).
    pub async fn replace<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        self.write(OperationKind::Replace(condition.into()), entity).await
    }

    /// Sets these properties and leaves others alone. Fails as `replace` does.
    pub async fn merge<T: Serialize + ?Sized>(
        &self,
        entity: &T,
        condition: impl Into<Match>,
    ) -> Result<ETag> {
        self.write(OperationKind::Merge(condition.into()), entity).await
    }

    /// Inserts the entity, or replaces the one that is there.
    pub async fn upsert_replace<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::UpsertReplace, entity).await
    }

    /// Inserts the entity, or sets these properties of the one that is there.
    pub async fn upsert_merge<T: Serialize + ?Sized>(&self, entity: &T) -> Result<ETag> {
        self.write(OperationKind::UpsertMerge, entity).await
    }

    /// Fails if there is no such entity (404), or not this version (412).
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<Match>,
    ) -> Result<()> {
        self.apply(Operation::delete(partition_key, row_key, condition)).await.map(drop)
    }

    /// One operation by itself. The version that the entity has now, or `None` if it was deleted.
    pub async fn apply(&self, mut operation: Operation) -> Result<Option<ETag>> {
        self.encrypt(&mut operation).await?;
        let answer = self.send_operation(&operation).await?;
        Ok(answer.header("etag").map(ETag::new))
    }

    /// Deletes the entity if it is there, whatever its version. Whether it was.
    pub async fn delete_if_there(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        match self.delete(partition_key, row_key, Match::Any).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("ResourceNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A point query: the cheapest there is. Fails if there is no such entity (404).
    pub async fn get<T: DeserializeOwned>(&self, partition_key: &str, row_key: &str) -> Result<Stored<T>> {
        let path = format!("/{}", wire::url::entity_link(&self.name, partition_key, row_key));
        let answer = self.send(Request::new("get", Method::GET, path)).await?;
        let mut stored = answers::entity(&answer.body, answer.header("etag"))?;
        self.decrypt(&mut stored, None).await?;
        stored.into_typed()
    }

    /// The same, with nothing in place of a failure if there is no such entity.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Stored<T>>> {
        match self.get(partition_key, row_key).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == Some("ResourceNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All entities, unless it is told which.
    pub fn query(&self) -> Query {
        Query::new(self.clone())
    }

    /// All of the transaction, or nothing: then the error says which operation failed ([`Error::index`]). The versions
    /// that the entities have now, in the order of the operations; `None` for those that were deleted.
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

    /// The stored access policies, which tokens of this table can name.
    pub async fn policies(&self) -> Result<Vec<AccessPolicy>> {
        let request = self.request("get_policies", Method::GET, "").query(names::COMP, "acl");
        let answer = self.send(request).await?;
        let policies = access_policies::read(&answer.body)
            .map_err(|refusal| Error::Unreadable(format!("the policies can't be read: {refusal}")))?;
        Ok(policies.into_iter().map(AccessPolicy::from_wire).collect())
    }

    /// Puts these policies, five at most, in place of all there are. It may take half a minute until Azure heeds them.
    pub async fn set_policies(&self, policies: &[AccessPolicy]) -> Result<()> {
        let policies: Vec<_> = policies.iter().map(AccessPolicy::to_wire).collect();
        let document = access_policies::write(&policies);
        // The mark that answers begin with is not understood by all.
        let document = document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&document).to_vec();
        let request =
            self.request("set_policies", Method::PUT, "").query(names::COMP, "acl").body(XML, document);
        self.send(request).await.map(drop)
    }

    /// A token for this table; needs the account's key. [`TableSas`] says what it grants.
    pub fn sign(&self, sas: &TableSas) -> Result<String> {
        sas::sign_table(&self.transport.endpoint, &self.name, sas)
    }

    async fn write<T: Serialize + ?Sized>(&self, kind: OperationKind, entity: &T) -> Result<ETag> {
        let etag = self.apply(Operation::new(kind, entity)?).await?;
        Ok(etag.unwrap_or_else(|| ETag::new("")))
    }

    async fn send_operation(&self, operation: &Operation) -> Result<Answer> {
        let path = format!("/{}", operation.path(&self.name));
        let mut request =
            Request::new(operation.kind.name(), operation.kind.method(), path).repeat(operation.repeat());
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

    /// `selected` are the properties that were asked for, if not all.
    pub(crate) async fn decrypt(
        &self,
        stored: &mut Stored<Entity>,
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
    pub(crate) fn request(&self, name: &'static str, method: Method, suffix: &str) -> Request {
        Request::new(name, method, format!("/{}{suffix}", self.name))
    }

    pub(crate) async fn send(&self, request: Request) -> Result<Answer> {
        self.transport.send(request).await
    }
}
