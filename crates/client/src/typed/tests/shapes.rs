//! Fields of every type, and the attributes of serde.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{check, check_read, guid, stored, time};
use crate::edm::Binary;
use crate::typed::{from_entity, to_entity};
use crate::{DateTime, ETag, Entity, Guid, StoredEntity, Value};

fn entity() -> Entity {
    Entity::new("a", "b")
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
enum Colour {
    Red,
    #[serde(rename = "pale green")]
    Green,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Metres(f64);

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Everything {
    partition_key: String,
    row_key: Box<str>,
    flag: bool,
    tiny: i8,
    small: i16,
    int: i32,
    long: i64,
    byte: u8,
    short: u16,
    word: u32,
    big: u64,
    wide: i128,
    float: f32,
    double: f64,
    letter: char,
    text: String,
    #[serde(default)]
    nothing: (),
    colour: Colour,
    other: Colour,
    length: Metres,
    bytes: Binary,
    time: DateTime,
    guid: Guid,
    value: Value,
    some: Option<u8>,
    none: Option<u8>,
}

#[test]
fn every_rust_type_becomes_its_property_type() {
    let everything = Everything {
        partition_key: "a".into(),
        row_key: "b".into(),
        flag: true,
        tiny: -1,
        small: -2,
        int: -3,
        long: -4,
        byte: 1,
        short: 2,
        word: 3,
        big: 4,
        wide: -5,
        float: 0.5,
        double: 0.25,
        letter: 'é',
        text: "text".into(),
        nothing: (),
        colour: Colour::Red,
        other: Colour::Green,
        length: Metres(1.5),
        bytes: vec![1, 2].into(),
        time: time("2021-05-06T07:08:09.1234567Z"),
        guid: guid(),
        value: Value::Int64(7),
        some: Some(8),
        none: None,
    };
    let written = entity()
        .with("Flag", true)
        .with("Tiny", -1)
        .with("Small", -2)
        .with("Int", -3)
        .with("Long", -4_i64)
        .with("Byte", 1)
        .with("Short", 2)
        .with("Word", 3_i64)
        .with("Big", 4_i64)
        .with("Wide", -5_i64)
        .with("Float", 0.5)
        .with("Double", 0.25)
        .with("Letter", "é")
        .with("Text", "text")
        .with("Colour", "Red")
        .with("Other", "pale green")
        .with("Length", 1.5)
        .with("Bytes", vec![1, 2])
        .with("Time", time("2021-05-06T07:08:09.1234567Z"))
        .with("Guid", guid())
        .with("Value", 7_i64)
        .with("Some", 8);
    check(everything, written);
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Keyed<T> {
    partition_key: String,
    row_key: String,
    p: T,
}

#[track_caller]
fn check_field<T>(value: T, property: impl Into<Value>)
where
    T: Serialize + serde::de::DeserializeOwned + std::fmt::Debug + PartialEq,
{
    let value = Keyed { partition_key: "a".into(), row_key: "b".into(), p: value };
    check(value, entity().with("P", property));
}

#[test]
fn written_values_are_read_back() {
    check_field(true, true);
    check_field(i8::MIN, -128);
    check_field(u16::MAX, 65_535);
    check_field(u32::MAX, 4_294_967_295_i64);
    check_field(i64::MIN, i64::MIN);
    check_field(i64::MAX as u64, i64::MAX);
    check_field(i128::from(i64::MIN), i64::MIN);
    check_field(0.1_f32, f64::from(0.1_f32));
    check_field(f64::INFINITY, f64::INFINITY);
    check_field('é', "é");
    check_field(Colour::Green, "pale green");
    check_field(Metres(2.0), 2.0);
    check_field(Some(Metres(2.0)), 2.0);
    check_field(Some(guid()), guid());
    check_field(Some(DateTime::MIN), DateTime::MIN);
    check_field(Some(Value::from(DateTime::MAX)), DateTime::MAX);
    check_field(std::net::Ipv4Addr::LOCALHOST, "127.0.0.1");
    check_field(ETag::new("x"), "x");
}

#[test]
fn numbers_are_read_as_any_type_that_holds_them() {
    check_read(5, 5_u8);
    check_read(5, 5_i64);
    check_read(5, 5_u64);
    check_read(5, 5.0_f64);
    check_read(5, 5.0_f32);
    check_read(-5, -5_i8);
    check_read(-5_i64, -5_i32);
    check_read(5_i64, 5_u16);
    check_read(5_i64, 5.0_f64);
    check_read(i64::MIN, i64::MIN);
    check_read(5.5, 5.5_f64);
}

#[test]
fn times_and_guids_are_read_from_their_type_and_from_text() {
    check_read(time("2021-05-06"), time("2021-05-06"));
    check_read(time("2021-05-06"), Some(time("2021-05-06")));
    check_read("2021-05-06", time("2021-05-06"));
    check_read(guid(), guid());
    check_read(guid(), Some(guid()));
    check_read(guid().to_string(), guid());
    check_read(vec![1_u8], Binary(vec![1]));
    check_read(vec![1_u8], vec![1_u8]);
    check_read(vec![1_u8, 2], [1_u8, 2]);
}

#[test]
fn times_and_guids_are_read_as_text() {
    let read = |property: Value| {
        let keyed: Keyed<String> = from_entity(stored(entity().with("P", property))).unwrap();
        keyed.p
    };
    assert_eq!(read(time("2021-05-06").into()), "2021-05-06T00:00:00Z");
    assert_eq!(read(guid().into()), guid().to_string());
}

#[test]
fn a_json_value_takes_every_property() {
    check_read("a", serde_json::json!("a"));
    check_read(5, serde_json::json!(5));
    check_read(-5_i64, serde_json::json!(-5));
    check_read(0.5, serde_json::json!(0.5));
    check_read(true, serde_json::json!(true));
    check_read(vec![1_u8], serde_json::json!([1]));
    check_read(guid(), serde_json::json!(guid().to_string()));
    check_read(time("2021-05-06"), serde_json::json!("2021-05-06T00:00:00Z"));
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Address {
    #[serde(rename = "Town")]
    town: String,
    #[serde(rename = "Since")]
    since: DateTime,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Flattening {
    partition_key: String,
    row_key: String,
    #[serde(flatten)]
    address: Address,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[test]
fn flattened_fields_are_properties() {
    let since = time("2021-05-06");
    let rest = BTreeMap::from([("Guid".to_owned(), guid().into()), ("Small".to_owned(), 5_i64.into())]);
    let value = Flattening {
        partition_key: "a".into(),
        row_key: "b".into(),
        address: Address { town: "Riga".into(), since },
        rest,
    };
    let written =
        entity().with("Town", "Riga").with("Since", since).with("Guid", guid()).with("Small", 5_i64);
    assert_eq!(to_entity(&value).unwrap(), written);
    assert_eq!(written.into_typed::<Flattening>().unwrap(), value);
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "Kind")]
enum Animal {
    Dog {
        #[serde(rename = "PartitionKey")]
        owner: String,
        #[serde(rename = "RowKey")]
        name: String,
        #[serde(rename = "Born")]
        born: DateTime,
        #[serde(rename = "Chip", with = "crate::edm::guid")]
        chip: [u8; 16],
    },
    Fish {
        #[serde(rename = "PartitionKey")]
        owner: String,
        #[serde(rename = "RowKey")]
        name: String,
        #[serde(rename = "Depth")]
        depth: i64,
    },
}

#[test]
fn a_tagged_enum_is_an_entity() {
    let born = time("2021-05-06");
    check(
        Animal::Dog { owner: "a".into(), name: "b".into(), born, chip: guid().into() },
        entity().with("Kind", "Dog").with("Born", born).with("Chip", guid()),
    );
    check(
        Animal::Fish { owner: "a".into(), name: "b".into(), depth: -5 },
        entity().with("Kind", "Fish").with("Depth", -5_i64),
    );
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Versioned {
    partition_key: String,
    row_key: String,
    timestamp: Option<DateTime>,
    #[serde(rename = "odata.etag")]
    etag: Option<ETag>,
}

#[test]
fn timestamp_and_etag_are_read_and_not_written() {
    let versioned: Versioned = from_entity(stored(entity())).unwrap();
    assert_eq!(versioned.timestamp, Some(time("2021-05-06T07:08:09.5Z")));
    assert_eq!(versioned.etag, Some(ETag::new("W/\"1\"")));
    assert_eq!(to_entity(&versioned).unwrap(), entity());
    assert_eq!(entity().into_typed::<Versioned>().unwrap().etag, None);
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Projection {
    #[serde(rename = "Name")]
    name: String,
}

#[test]
fn a_type_need_not_know_keys_and_versions() {
    let read: Projection = from_entity(stored(entity().with("Name", "Emma"))).unwrap();
    assert_eq!(read, Projection { name: "Emma".into() });
    assert!(from_entity::<Projection>(stored(entity().with("Name", "Emma").with("Age", 5))).is_err());
}

#[test]
fn a_map_gets_the_keys_timestamp_and_etag() {
    let map: HashMap<String, Value> = from_entity(stored(entity().with("Age", 5))).unwrap();
    let expected = [
        ("PartitionKey", "a".into()),
        ("RowKey", "b".into()),
        ("Timestamp", time("2021-05-06T07:08:09.5Z").into()),
        ("odata.etag", "W/\"1\"".into()),
        ("Age", Value::Int32(5)),
    ];
    assert_eq!(map, expected.map(|(name, value)| (name.to_owned(), value)).into());
    assert_eq!(to_entity(&map).unwrap(), entity().with("Age", 5));
}

#[test]
fn a_stored_entity_is_written_as_the_entity() {
    let again: StoredEntity<Address> =
        stored(entity().with("Town", "Riga").with("Since", DateTime::MAX)).into_typed().unwrap();
    assert_eq!(again.town, "Riga");
    assert_eq!(again.etag, ETag::new("W/\"1\""));
    assert_eq!(again.timestamp, Some(time("2021-05-06T07:08:09.5Z")));
    assert_eq!(to_entity(&stored(entity())).unwrap(), entity());
}

#[derive(Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
struct Name(String);

#[test]
fn names_in_a_map_may_be_a_newtype() {
    let keys = [("PartitionKey", "a"), ("RowKey", "b")];
    let map: HashMap<Name, String> = keys.map(|(name, key)| (Name(name.into()), key.to_owned())).into();
    assert_eq!(to_entity(&map).unwrap(), entity());
    assert_eq!(entity().into_typed::<HashMap<Name, String>>().unwrap(), map);
}
