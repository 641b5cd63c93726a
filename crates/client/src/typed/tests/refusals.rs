//! What can't be written or read, and the error texts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{guid, stored, time};
use crate::typed::{from_entity, to_entity};
use crate::{Entity, Error, Value};

#[derive(Serialize)]
struct Written<T> {
    #[serde(rename = "PartitionKey")]
    partition_key: &'static str,
    #[serde(rename = "RowKey")]
    row_key: &'static str,
    #[serde(rename = "P")]
    p: T,
}

#[track_caller]
fn check_message<T: Serialize + ?Sized>(value: &T, expected: &str) {
    let error = to_entity(value).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    let text = error.to_string();
    let (_, message) = text.split_once(": ").unwrap();
    assert_eq!(message, expected);
}

#[track_caller]
fn refuses<T: Serialize>(p: T, expected: &str) {
    check_message(&Written { partition_key: "a", row_key: "b", p }, &format!("property P: {expected}"));
}

#[derive(Serialize)]
struct Inner {
    a: i32,
}

#[derive(Serialize)]
struct Pair(i32, i32);

#[derive(Serialize)]
enum Shape {
    Empty,
    Round(f64),
    Corners(i32, i32),
    Named { a: i32 },
}

#[test]
fn a_field_that_cannot_be_a_property_gets_a_hint() {
    let json = "#[serde(with = \"partita_client::edm::json\")] writes it as JSON text";
    let binary = "#[serde(with = \"partita_client::edm::binary\")] writes bytes";
    let text = "#[serde(with = \"partita_client::edm::string\")] writes it as text";
    refuses(vec![1], &format!("a sequence is no property's value; {json}, {binary}"));
    refuses([1, 2], &format!("an array or a tuple is no property's value; {json}, {binary}"));
    refuses((1, "a"), &format!("an array or a tuple is no property's value; {json}, {binary}"));
    refuses(BTreeMap::from([("a", 1)]), &format!("a map is no property's value; {json}"));
    refuses(Inner { a: 1 }, &format!("the struct Inner is no property's value; {json}"));
    refuses(Some(Inner { a: 1 }), &format!("the struct Inner is no property's value; {json}"));
    refuses(Pair(1, 2), &format!("the struct Pair is no property's value; {json}"));
    let variant = |name| format!("the variant {name}, which has fields, is no property's value; {json}");
    refuses(Shape::Round(1.0), &variant("Round"));
    refuses(Shape::Corners(1, 2), &variant("Corners"));
    refuses(Shape::Named { a: 1 }, &variant("Named"));
    refuses(u64::MAX, &format!("18446744073709551615 does not fit into an Edm.Int64; {text}"));
    refuses(i128::MIN, &format!("{} does not fit into an Edm.Int64; {text}", i128::MIN));
}

#[derive(Serialize)]
struct Keyless {
    #[serde(rename = "RowKey")]
    row_key: Option<&'static str>,
}

#[derive(Serialize)]
struct Numbered {
    #[serde(rename = "PartitionKey")]
    partition_key: &'static str,
    #[serde(rename = "RowKey")]
    row_key: u32,
}

#[derive(Serialize)]
struct Twice {
    #[serde(rename = "PartitionKey")]
    partition_key: &'static str,
    #[serde(rename = "RowKey")]
    row_key: &'static str,
    #[serde(rename = "Age")]
    age: i32,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[test]
fn both_keys_must_occur_once_and_be_strings() {
    check_message(
        &Keyless { row_key: None },
        "there is no PartitionKey; name the field that holds it so: #[serde(rename = \"PartitionKey\")]",
    );
    check_message(
        &BTreeMap::from([("PartitionKey", "a")]),
        "there is no RowKey; name the field that holds it so: #[serde(rename = \"RowKey\")]",
    );
    check_message(
        &Numbered { partition_key: "a", row_key: 5 },
        "property RowKey: a key is an Edm.String, not an Edm.Int64; \
         #[serde(with = \"partita_client::edm::string\")] writes it as one",
    );
    let rest = BTreeMap::from([("Age".to_owned(), 6.into())]);
    check_message(
        &Twice { partition_key: "a", row_key: "b", age: 5, rest },
        "property Age: is there twice; a flattened field may have it as well",
    );
    check_message(
        &Entity::new("a", "b").with("RowKey", "c"),
        "property RowKey: is there twice; a flattened field may have it as well",
    );
}

#[test]
fn a_value_that_is_not_a_struct_or_map_is_refused() {
    check_message("a", "an entity is a struct or a map, not text");
    check_message(&5, "an entity is a struct or a map, not a number");
    check_message(&true, "an entity is a struct or a map, not a boolean");
    check_message(&vec![Entity::new("a", "b")], "an entity is a struct or a map, not a sequence");
    check_message(&(1, 2), "an entity is a struct or a map, not a tuple");
    check_message(&None::<Entity>, "an entity is a struct or a map, not nothing");
    check_message(&BTreeMap::from([(1, 2)]), "a property's name is text, not an Edm.Int32");
    for shape in [Shape::Empty, Shape::Named { a: 1 }] {
        let name = if matches!(shape, Shape::Empty) { "Empty" } else { "Named" };
        check_message(
            &shape,
            &format!(
                "an entity is a struct or a map; for the variant {name} to be one, name the property that tells \
                 which variant it is: #[serde(tag = \"Kind\")]"
            ),
        );
    }
}

#[test]
fn an_error_names_the_type() {
    let error = to_entity(&Keyless { row_key: None }).unwrap_err().to_string();
    assert!(error.starts_with(std::any::type_name::<Keyless>()), "{error}");
}

#[derive(Debug, Deserialize)]
struct Read<T> {
    #[serde(rename = "P")]
    _p: T,
}

#[derive(Debug, Deserialize)]
#[serde(rename = "Inner")]
struct ReadInner {}

#[derive(Debug, Deserialize)]
enum Colour {
    Red,
}

#[track_caller]
fn check_unread<T: serde::de::DeserializeOwned + std::fmt::Debug>(
    property: impl Into<Value>,
    expected: &str,
) {
    let entity = stored(Entity::new("a", "b").with("P", property));
    let error = from_entity::<Read<T>>(entity).unwrap_err();
    assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
    let start = format!(
        "the entity with PartitionKey 'a' and RowKey 'b' can't be read as {}: property P: ",
        std::any::type_name::<Read<T>>()
    );
    assert_eq!(error.to_string().strip_prefix(&start), Some(expected), "{error}");
}

#[test]
fn an_error_names_the_property_that_does_not_fit_its_field() {
    check_unread::<i32>(5_000_000_000_i64, "invalid value: integer `5000000000`, expected i32");
    check_unread::<u8>(-1, "invalid value: integer `-1`, expected u8");
    check_unread::<i32>(5.0, "invalid type: Edm.Double, expected i32");
    check_unread::<i32>("5", "invalid type: Edm.String, expected i32");
    check_unread::<i32>(crate::DateTime::MAX, "invalid type: Edm.DateTime, expected i32");
    check_unread::<f64>(i64::MAX, "9223372036854775807, an Edm.Int64, does not fit into f64");
    check_unread::<f64>("5", "invalid type: Edm.String, expected f64");
    check_unread::<bool>(1, "invalid type: Edm.Int32, expected a boolean");
    check_unread::<String>(5, "invalid type: Edm.Int32, expected a string");
    check_unread::<String>(vec![65_u8], "invalid type: Edm.Binary, expected a string");
    check_unread::<crate::edm::Binary>("QQ==", "invalid type: Edm.String, expected bytes");
    check_unread::<crate::DateTime>(
        5,
        "invalid type: Edm.Int32, expected a time such as 2021-05-06T07:08:09Z",
    );
    check_unread::<crate::DateTime>(
        guid(),
        "invalid type: Edm.Guid, expected a time such as 2021-05-06T07:08:09Z",
    );
    check_unread::<crate::DateTime>(
        "soon",
        "'soon' is not an Edm.DateTime; write it like 2021-05-06T07:08:09.1234567Z",
    );
    check_unread::<crate::Guid>(
        time("2021-05-06"),
        "invalid type: Edm.DateTime, expected a Guid such as 0f8fad5b-d9cb-469f-a165-70867728950e",
    );
    check_unread::<Colour>("Blue", "unknown variant `Blue`, expected `Red`");
    let json = "#[serde(with = \"partita_client::edm::json\")] reads and writes JSON text";
    check_unread::<Vec<i32>>("[1]", &format!("an Edm.String can't be read as a sequence; {json}"));
    check_unread::<ReadInner>("{}", &format!("an Edm.String can't be read as the struct Inner; {json}"));
    check_unread::<BTreeMap<String, i32>>("{}", &format!("an Edm.String can't be read as a map; {json}"));
}

#[test]
fn an_error_names_the_entity_with_a_missing_property() {
    let error = from_entity::<Read<i32>>(stored(Entity::new("a", "b"))).unwrap_err().to_string();
    let message =
        "property P: is not there; if that can be, let the field be an Option or mark it #[serde(default)]";
    assert!(error.starts_with("the entity with PartitionKey 'a' and RowKey 'b' can't be read as"), "{error}");
    assert!(error.ends_with(message), "{error}");
    let read = from_entity::<Read<Option<i32>>>(stored(Entity::new("a", "b"))).unwrap();
    assert_eq!(read._p, None);
}

#[test]
fn an_entity_is_not_read_as_a_number_or_an_untagged_enum() {
    let read = |error: crate::Result<()>| error.unwrap_err().to_string();
    let entity = || stored(Entity::new("a", "b"));
    let error = read(from_entity::<i32>(entity()).map(drop));
    assert!(error.ends_with("invalid type: map, expected i32"), "{error}");
    let error = read(from_entity::<Colour>(entity()).map(drop));
    assert!(error.ends_with("which variant of Colour it is: #[serde(tag = \"Kind\")]"), "{error}");
}
