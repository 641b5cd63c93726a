//! Entities whose properties are not known beforehand, and what a service adds to any entity.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use model::{DateTime, Value};
use serde::de::DeserializeOwned;

use crate::{ETag, Result, answers, typed};

/// Two keys and any properties.
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

    /// With one more property, in place of one of this name.
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

    /// As a request sends it: JSON with a type beside each value that JSON has no type for. Nothing is lost by it.
    pub fn to_json(&self) -> Vec<u8> {
        let properties = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        let mut json = Vec::new();
        wire::entity_json::write_body(&mut json, &self.partition_key, &self.row_key, properties);
        json
    }

    /// The way back from [`to_json`](Self::to_json). What a service adds to an entity is passed over.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Ok(answers::entity(json, None)?.entity)
    }
}

/// An entity as a service has it: with its version and the time of its last change. Used as the entity itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stored<T> {
    pub entity: T,
    /// For writes that must not undo somebody else's: `table.replace(&entity, &stored.etag)`.
    pub etag: ETag,
    /// Not there if a projection leaves it out.
    pub timestamp: Option<DateTime>,
}

impl<T> Stored<T> {
    pub(crate) fn new(entity: T, etag: ETag, timestamp: Option<DateTime>) -> Self {
        Self { entity, etag, timestamp }
    }

    pub fn into_inner(self) -> T {
        self.entity
    }

    /// The same with another kind of entity.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Stored<U> {
        Stored { entity: change(self.entity), etag: self.etag, timestamp: self.timestamp }
    }
}

impl Stored<Entity> {
    /// As a type, with all that the service adds; for tables that hold several types.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        typed::from_entity(self.clone())
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.entity
    }
}

impl<T> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.entity
    }
}
