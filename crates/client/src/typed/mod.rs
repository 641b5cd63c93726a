//! Entities as Rust's own types: anything that serde can write as a struct or a map with two keys.
//!
//! Knows nothing of the wire, of sizes, or of what a key may hold; the service says so soon enough.

mod de;
pub mod edm;
mod entity;
mod fault;
mod field;
mod ser;
#[cfg(test)]
mod tests;
mod ways;

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use ser::Marked;

use crate::{Entity, Error, Result, Stored};

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";
/// The service's own: given to types that ask for them, never sent.
const TIMESTAMP: &str = "Timestamp";
const ETAG: &str = "odata.etag";

/// What will be sent of a value, and what of it must be encrypted first.
pub(crate) fn to_marked<T: Serialize + ?Sized>(value: &T) -> Result<Marked> {
    let written = value.serialize(ser::EntitySerializer);
    written.map_err(|fault| Error::invalid(format!("{}: {fault}", type_name::<T>())))
}

/// What will be sent of a value that has nothing to encrypt.
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

/// A value out of what was received.
pub(crate) fn from_entity<T: DeserializeOwned>(stored: Stored<Entity>) -> Result<T> {
    let Stored { entity, etag, timestamp } = stored;
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
    T::deserialize(de::EntityDeserializer::new(own, properties)).map_err(|fault| {
        Error::Unreadable(format!(
            "the entity with PartitionKey '{partition_key}' and RowKey '{row_key}' can't be read as {}: {fault}",
            type_name::<T>()
        ))
    })
}

impl Entity {
    /// What a write sends of a value of any type that serde can write as a struct or a map.
    ///
    /// Two of its fields are called `PartitionKey` and `RowKey` and are text. A field that is `None` is no property.
    /// Fields called `Timestamp` and `odata.etag` are left out, because they are the service's.
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
    /// A type around one of these is as good as it. For another kind of property, and for everything that is none
    /// (lists, maps, structs in structs), see [`edm`](crate::edm).
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

    /// The way back from [`from_typed`](Self::from_typed).
    ///
    /// Properties that the type has no field for are passed over. A number is read as any type that holds it exactly,
    /// and `f32`, which holds what is nearest. A DateTime and a Guid can be read as text as well, and text that is one
    /// can be read as a [`DateTime`](crate::DateTime) or a [`Guid`](crate::Guid); to write such a field again changes
    /// the property's kind.
    ///
    /// Behind `#[serde(flatten)]` and in tagged or untagged enums, where serde reads a property before it knows the
    /// field, a DateTime and a Guid are not read as text, an error does not name its property, and an Int64 becomes the
    /// nearest `f64`. A map of [`Value`](crate::Value)s keeps every kind even there.
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

impl Stored<Entity> {
    /// The same with an entity of another type: see [`Entity::into_typed`].
    ///
    /// The type can have fields called `Timestamp` and `odata.etag` ([`ETag`](crate::ETag) or text).
    pub fn into_typed<T: DeserializeOwned>(self) -> Result<Stored<T>> {
        let (etag, timestamp) = (self.etag.clone(), self.timestamp);
        Ok(Stored::new(from_entity(self)?, etag, timestamp))
    }
}
