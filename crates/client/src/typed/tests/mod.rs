//! Users' types with serde's derives, as entities.

mod any_entity;
mod refusals;
mod shapes;
mod ways;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{from_entity, to_entity};
use crate::{DateTime, ETag, Entity, Guid, StoredEntity};

/// With ETag and Timestamp, as a service returns it.
fn stored(entity: Entity) -> StoredEntity<Entity> {
    StoredEntity::new(entity, ETag::new("W/\"1\""), Some(time("2021-05-06T07:08:09.5Z")))
}

/// Checks that the value is written as the entity, and the entity read as the value.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + Debug + PartialEq>(value: T, entity: Entity) {
    assert_eq!(to_entity(&value).unwrap(), entity, "written");
    assert_eq!(from_entity::<T>(stored(entity)).unwrap(), value, "read");
}

/// Checks a property called `P`, read directly and behind a `flatten`, where serde buffers it.
#[track_caller]
fn check_read<T: DeserializeOwned + Debug + PartialEq>(property: impl Into<crate::Value>, expected: T) {
    let entity = Entity::new("a", "b").with("P", property);
    let One::<T> { p } = from_entity(stored(entity.clone())).unwrap();
    assert_eq!(p, expected, "direct");
    let Flat::<T> { one: One { p } } = from_entity(stored(entity)).unwrap();
    assert_eq!(p, expected, "flattened");
}

#[derive(serde::Deserialize)]
struct One<T> {
    #[serde(rename = "P")]
    p: T,
}

#[derive(serde::Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Flat<T> {
    #[serde(flatten)]
    one: One<T>,
}

fn time(text: &str) -> DateTime {
    text.parse().unwrap()
}

fn guid() -> Guid {
    "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap()
}
