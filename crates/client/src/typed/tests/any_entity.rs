//! Types that take any property lose nothing of an entity.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::stored;
use crate::typed::{from_entity, to_entity};
use crate::{DateTime, Entity, Guid, Value};

fn any_value() -> impl Strategy<Value = Value> {
    // Texts and small numbers that look like another type, because that is where types get lost.
    let time = (0..=DateTime::MAX.ticks()).prop_map(|ticks| DateTime::from_ticks(ticks).unwrap());
    let guid = any::<[u8; 16]>().prop_map(Guid);
    prop_oneof![
        ".{0,20}".prop_map(Value::String),
        time.clone().prop_map(|time| Value::String(time.to_string())),
        guid.clone().prop_map(|guid| Value::String(guid.to_string())),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        (-9..9).prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        (-9..9_i64).prop_map(Value::Int64),
        any::<i32>().prop_map(|number| Value::Int64(number.into())),
        proptest::num::f64::ANY.prop_map(Value::Double),
        (-9..9_i32).prop_map(|number| Value::Double(number.into())),
        time.prop_map(Value::DateTime),
        guid.prop_map(Value::Guid),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
    ]
}

fn any_entity() -> impl Strategy<Value = Entity> {
    let properties = proptest::collection::btree_map("[A-Za-zé_]{1,6}", any_value(), 0..12);
    (".{0,9}", ".{0,9}", properties).prop_map(|(partition_key, row_key, properties)| Entity {
        partition_key,
        row_key,
        properties,
    })
}

fn through<T: Serialize + DeserializeOwned>(entity: &Entity) -> Entity {
    let typed: T = from_entity(stored(entity.clone())).unwrap();
    to_entity(&typed).unwrap()
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Rest<T> {
    partition_key: String,
    row_key: String,
    #[serde(flatten)]
    rest: BTreeMap<String, T>,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Untagged {
    Never(NeverThere),
    Map(BTreeMap<String, Value>),
}

#[derive(Deserialize, Serialize)]
struct NeverThere {
    #[serde(rename = "no property's name")]
    field: Value,
}

#[derive(Deserialize, Serialize)]
struct Wrapped(Option<Box<Entity>>);

/// What JSON keeps of a value; `None` for numbers that JSON lacks.
fn in_json(value: &Value) -> Option<Value> {
    match value {
        Value::Double(number) if !number.is_finite() => None,
        Value::DateTime(time) => Some(Value::String(time.to_string())),
        Value::Guid(guid) => Some(Value::String(guid.to_string())),
        Value::Int64(number) => Some(i32::try_from(*number).map_or(Value::Int64(*number), Value::Int32)),
        other => Some(other.clone()),
    }
}

proptest! {
    #[test]
    fn a_type_that_takes_anything_keeps_everything(entity in any_entity()) {
        prop_assert_eq!(&through::<Entity>(&entity), &entity);
        prop_assert_eq!(&through::<BTreeMap<String, Value>>(&entity), &entity);
        prop_assert_eq!(&through::<HashMap<String, Value>>(&entity), &entity);
        prop_assert_eq!(&through::<HashMap<String, Option<Value>>>(&entity), &entity);
        prop_assert_eq!(&through::<Rest<Value>>(&entity), &entity);
        prop_assert_eq!(&through::<Rest<Option<Value>>>(&entity), &entity);
        prop_assert_eq!(&through::<Rest<Around<Value>>>(&entity), &entity);
        prop_assert_eq!(&through::<Untagged>(&entity), &entity);
        prop_assert_eq!(&through::<Wrapped>(&entity), &entity);
    }

    #[test]
    fn the_services_json_keeps_everything(entity in any_entity()) {
        prop_assert_eq!(&Entity::from_json(&entity.to_json()).unwrap(), &entity);
    }

    #[test]
    fn json_keeps_what_its_documentation_says(entity in any_entity()) {
        let json = serde_json::to_string(&entity).unwrap();
        let kept = entity.properties.iter().filter_map(|(name, value)| Some((name.clone(), in_json(value)?)));
        let expected = Entity { properties: kept.collect(), ..entity.clone() };
        prop_assert_eq!(&serde_json::from_str::<Entity>(&json).unwrap(), &expected);
        // From a reader, which can't lend texts.
        prop_assert_eq!(&serde_json::from_reader::<_, Entity>(json.as_bytes()).unwrap(), &expected);
    }

    #[test]
    fn a_json_value_takes_any_entity(entity in any_entity()) {
        let value: serde_json::Value = from_entity(stored(entity.clone())).unwrap();
        let fields = value.as_object().unwrap();
        for name in entity.properties.keys() {
            prop_assert!(fields.contains_key(name), "{}", name);
        }
    }
}

/// A newtype around a value.
#[derive(Deserialize, Serialize)]
struct Around<T>(T);

#[test]
fn timestamp_and_etag_are_not_sent() {
    let entity =
        Entity::new("a", "b").with("Timestamp", DateTime::MAX).with("odata.etag", "x").with("Age", 5);
    assert_eq!(to_entity(&entity).unwrap(), Entity::new("a", "b").with("Age", 5));
}

#[test]
fn an_entity_in_json_has_its_keys() {
    let read = serde_json::from_str::<Entity>;
    let entity = read(
        r#"{"RowKey": "b", "PartitionKey": "a", "Timestamp": 1, "odata.etag": 2, "Age": 5, "No": null}"#,
    );
    assert_eq!(entity.unwrap(), Entity::new("a", "b").with("Age", 5));
    assert!(read(r#"{"RowKey": "b"}"#).is_err());
    assert!(read(r#"{"PartitionKey": "a"}"#).is_err());
    assert!(read(r#"{"PartitionKey": "a", "RowKey": 5}"#).is_err());
    assert!(read(r#"{"PartitionKey": "a", "RowKey": "b", "Age": 5, "Age": 6}"#).is_err());
    assert!(read(r#"{"PartitionKey": "a", "RowKey": "b", "RowKey": "c"}"#).is_err());
}
