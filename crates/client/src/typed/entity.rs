//! `Serialize` and `Deserialize` of [`Entity`] itself, for any format of serde.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ETAG, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::{Entity, StoredEntity};

/// A map of the keys and the properties. [`Value`](crate::Value) says what other formats keep of the types.
impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.properties.len() + 2))?;
        map.serialize_entry(PARTITION_KEY, &self.partition_key)?;
        map.serialize_entry(ROW_KEY, &self.row_key)?;
        for (name, value) in &self.properties {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// From a map with the keys. `Timestamp`, `odata.etag` and nulls are ignored.
impl<'de> Deserialize<'de> for Entity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntityVisitor)
    }
}

struct EntityVisitor;

impl<'de> Visitor<'de> for EntityVisitor {
    type Value = Entity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity: a map with a PartitionKey and a RowKey")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entity, A::Error> {
        let (mut partition_key, mut row_key, mut properties) = (None, None, BTreeMap::new());
        while let Some(name) = map.next_key::<String>()? {
            let known = match name.as_str() {
                PARTITION_KEY => partition_key.replace(map.next_value()?).is_some(),
                ROW_KEY => row_key.replace(map.next_value()?).is_some(),
                TIMESTAMP | ETAG => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
                _ => match map.next_value()? {
                    Some(value) => properties.insert(name.clone(), value).is_some(),
                    None => false,
                },
            };
            if known {
                return Err(A::Error::custom(format!("property {name} is there twice")));
            }
        }
        let partition_key = partition_key.ok_or_else(|| A::Error::missing_field(PARTITION_KEY))?;
        let row_key = row_key.ok_or_else(|| A::Error::missing_field(ROW_KEY))?;
        Ok(Entity { partition_key, row_key, properties })
    }
}

/// As the entity, so that it can be written back: `table.replace(&stored, &stored.etag)`.
impl<T: Serialize> Serialize for StoredEntity<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entity.serialize(serializer)
    }
}
