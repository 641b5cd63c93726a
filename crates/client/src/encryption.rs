//! How a table's entities are encrypted. The ciphers are not here: the crate `partita-client-encryption` has them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use async_trait::async_trait;

use crate::entity::Entity;
use crate::error::Result;

/// Encrypts the entities of a [`Table`](crate::Table) before they are sent, and decrypts them when they come back.
///
/// The crate `partita-client-encryption` has one that other libraries understand. A table uses it after
/// [`Table::with_encryption`](crate::Table::with_encryption).
#[async_trait]
pub trait EntityEncryption: Debug + Send + Sync {
    /// The entity as it may be stored. `marked` are the properties whose type is [`Encrypted`](crate::Encrypted).
    async fn encrypt(&self, entity: Entity, marked: &BTreeSet<String>) -> Result<Entity>;

    /// Whether the entity may be merged into a stored one as it is. A merge is not encrypted.
    fn check_merge(&self, entity: &Entity, marked: &BTreeSet<String>) -> Result<()>;

    /// The entity as it was before [`encrypt`](Self::encrypt). `selected` are the properties of a projection; an empty
    /// list stands for all properties.
    async fn decrypt(&self, entity: Entity, selected: &[String]) -> Result<Entity>;

    /// Adds to a projection the properties that [`decrypt`](Self::decrypt) needs.
    fn extend_select(&self, names: &mut Vec<String>);
}
