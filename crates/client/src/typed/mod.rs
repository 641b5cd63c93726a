//! Converts entities from and to Rust types: anything that serde writes as a struct or a map with two keys.
//!
//! Knows neither the wire nor the limits of sizes and keys; the service checks these.

mod conversion_error;
mod de;
pub mod edm;
mod entity;
mod field;
mod ser;
#[cfg(test)]
mod tests;
mod ways;

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use ser::Marked;

use crate::{Entity, Error, Result, StoredEntity};

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";
/// Set by the service: readable as fields, never sent.
const TIMESTAMP: &str = "Timestamp";
const ETAG: &str = "odata.etag";

/// Converts a value to an entity, and names the properties that must be encrypted.
pub(crate) fn to_marked<T: Serialize + ?Sized>(value: &T) -> Result<Marked> {
    let written = value.serialize(ser::EntitySerializer);
    written.map_err(|error| Error::invalid(format!("{}: {error}", type_name::<T>())))
}

/// Converts a value without encrypted fields to an entity.
pub(crate) fn to_entity<T: Serialize + ?Sized>(value: &T) -> Result<Entity> {
    let Marked { entity, encrypted } = to_marked(value)?;
    match encrypted.first() {
        None => Ok(entity),
        Some(name) => Err(Error::invalid(format!(
            "{}: property {name} is to be encrypted, and there is no policy here; write the value to a table with one \
             (Table::with_encryption)",
            type_name::<T>()
        ))),
    }
}

/// Converts an entity to a value.
pub(crate) fn from_entity<T: DeserializeOwned>(stored: StoredEntity<Entity>) -> Result<T> {
    let StoredEntity { entity, etag, timestamp } = stored;
    read(entity, vec![(TIMESTAMP, timestamp.map(Into::into)), (ETAG, Some(etag.as_str().into()))])
}

fn read<T: DeserializeOwned>(
    entity: Entity,
    services: Vec<(&'static str, Option<crate::Value>)>,
) -> Result<T> {
    let Entity { partition_key, row_key, properties } = entity;
    let keys = [(PARTITION_KEY, partition_key.as_str().into()), (ROW_KEY, row_key.as_str().into())];
    let services = services.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let own = keys.into_iter().chain(services).filter(|(name, _)| !properties.contains_key(*name)).collect();
    T::deserialize(de::EntityDeserializer::new(own, properties)).map_err(|error| {
        Error::Unreadable(format!(
            "the entity with PartitionKey '{partition_key}' and RowKey '{row_key}' can't be read as {}: {error}",
            type_name::<T>()
        ))
    })
}

impl Entity {
    /// Converts a value of any type that serde can write as a struct or a map.
    ///
    /// It needs fields `PartitionKey` and `RowKey`, which must be strings. A field that is `None` does not become a
    /// property. Fields `Timestamp` and `odata.etag` are left out, because the service sets them.
    ///
    /// | Rust | property |
    /// |---|---|
    /// | `String`, `&str`, `char`, a variant without fields | String |
    /// | `bool` | Boolean |
    /// | `i8`, `i16`, `i32`, `u8`, `u16` | Int32 |
    /// | `i64`, `u32`; `u64`, `i128` and `u128` if it fits | Int64 |
    /// | `f32`, `f64` | Double |
    /// | [`DateTime`](crate::DateTime), [`Guid`](crate::Guid), [`edm::Binary`](crate::edm::Binary) | of that name |
    /// | [`Value`](crate::Value) | what it is |
    ///
    /// A newtype around one of these becomes the same property. For other property types, and for lists, maps and nested
    /// structs, see [`edm`](crate::edm).
    ///
    /// ```
    /// use partita_client::{DateTime, Entity, Value};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Debug, Deserialize, PartialEq, Serialize)]
    /// #[serde(rename_all = "PascalCase")]
    /// struct Employee {
    ///     #[serde(rename = "PartitionKey")]
    ///     department: String,
    ///     #[serde(rename = "RowKey")]
    ///     number: String,
    ///     age: u8,
    ///     hired: DateTime,
    ///     nickname: Option<String>,
    /// }
    ///
    /// let employee = Employee {
    ///     department: "Sales".into(),
    ///     number: "000223".into(),
    ///     age: 41,
    ///     hired: "2009-10-01".parse()?,
    ///     nickname: None,
    /// };
    /// let entity = Entity::from_typed(&employee)?;
    /// assert_eq!(entity.row_key, "000223");
    /// assert_eq!(entity.get("Age"), Some(&Value::Int32(41)));
    /// assert_eq!(entity.get("Nickname"), None);
    /// assert_eq!(entity.into_typed::<Employee>()?, employee);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_typed<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        to_entity(value)
    }

    /// The inverse of [`from_typed`](Self::from_typed).
    ///
    /// Properties without a field are ignored. A number can be read as any type that holds it exactly, and as `f32`, which
    /// gets the nearest value. A DateTime or Guid can be read as a `String`, and a String with such a text as a
    /// [`DateTime`](crate::DateTime) or a [`Guid`](crate::Guid); writing the field back changes the type of the property.
    ///
    /// With `#[serde(flatten)]` and in tagged or untagged enums, serde reads a property before it knows the field. There a
    /// DateTime or Guid can't be read as a `String`, an error does not name the property, and an `f64` field gets the
    /// nearest value of an Int64. A map of [`Value`](crate::Value)s keeps every type even there.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use partita_client::{Entity, Value};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// #[serde(rename_all = "PascalCase")]
    /// struct Book {
    ///     title: String,
    ///     year: u16,
    ///     #[serde(flatten)]
    ///     rest: BTreeMap<String, Value>,
    /// }
    ///
    /// let entity = Entity::new("novels", "emma").with("Title", "Emma").with("Year", 1815).with("Sold", 5_i64);
    /// let book: Book = entity.into_typed()?;
    /// assert_eq!(book.year, 1815);
    /// assert_eq!(book.rest["RowKey"], Value::from("emma"));
    /// assert_eq!(book.rest["Sold"], Value::Int64(5));
    /// # Ok::<(), partita_client::Error>(())
    /// ```
    pub fn into_typed<T: DeserializeOwned>(self) -> Result<T> {
        read(self, Vec::new())
    }
}

impl StoredEntity<Entity> {
    /// Converts the entity: see [`Entity::into_typed`].
    ///
    /// The type can have fields called `Timestamp` and `odata.etag` ([`ETag`](crate::ETag) or text).
    pub fn into_typed<T: DeserializeOwned>(self) -> Result<StoredEntity<T>> {
        let (etag, timestamp) = (self.etag.clone(), self.timestamp);
        Ok(StoredEntity::new(from_entity(self)?, etag, timestamp))
    }
}
