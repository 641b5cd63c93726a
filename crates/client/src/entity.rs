//! Entities as maps of properties, and the ETag and Timestamp that a service adds.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use model::{DateTime, Value};
use serde::de::DeserializeOwned;

use crate::{ETag, Result, answers, typed};

/// An entity as a map: two keys and any properties.
///
/// ```
/// use partita_client::Entity;
///
/// let book = Entity::new("novels", "emma").with("Title", "Emma").with("Year", 1815).with("Price", 9.5);
/// assert_eq!(book.get("Year"), Some(&1815.into()));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entity {
    pub partition_key: String,
    pub row_key: String,
    pub properties: BTreeMap<String, Value>,
}

impl Entity {
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key: row_key.into(), properties: BTreeMap::new() }
    }

    /// Sets a property.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.properties.insert(name.into(), value.into());
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// A String property's text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.properties.remove(name)
    }

    /// The JSON of a request, with an annotation for each type that JSON lacks. It keeps all types and values.
    pub fn to_json(&self) -> Vec<u8> {
        let properties = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        let mut json = Vec::new();
        wire::entity_json::write_body(&mut json, &self.partition_key, &self.row_key, properties);
        json
    }

    /// The inverse of [`to_json`](Self::to_json). Ignores what a service adds to an entity.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Ok(answers::entity(json, None)?.entity)
    }
}

/// An entity as it is stored, with its ETag and its Timestamp. Dereferences to the entity.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredEntity<T> {
    pub entity: T,
    /// For writes that must not undo a change by somebody else: `table.replace(&entity, &stored.etag)`.
    pub etag: ETag,
    /// `None` if a projection leaves it out.
    pub timestamp: Option<DateTime>,
}

impl<T> StoredEntity<T> {
    pub(crate) fn new(entity: T, etag: ETag, timestamp: Option<DateTime>) -> Self {
        Self { entity, etag, timestamp }
    }

    pub fn into_inner(self) -> T {
        self.entity
    }

    /// Converts the entity, and keeps ETag and Timestamp.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> StoredEntity<U> {
        StoredEntity { entity: change(self.entity), etag: self.etag, timestamp: self.timestamp }
    }
}

impl StoredEntity<Entity> {
    /// Converts it to a type, which may have fields for what the service adds. For tables with several types.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        typed::from_entity(self.clone())
    }
}

impl<T> Deref for StoredEntity<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.entity
    }
}

impl<T> DerefMut for StoredEntity<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.entity
    }
}
