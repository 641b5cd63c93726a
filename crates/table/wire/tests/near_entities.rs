//! Bodies that are nearly entities: what is accepted is an entity within its limits, and is read again as the same one
//! from our own answer.

use std::borrow::Cow;

use model::{DateTime, Entity, EntityKey, Guid, Properties, Refusal, Value, ValueCow};
use proptest::collection::btree_map;
use proptest::prelude::*;
use testing::{Reading, check_near, text_near};
use wire::atom::{AtomContext, AtomDialect, AtomEntry, AtomValue, write_entry};
use wire::entity_json::{EntityContext, EntityView, write_entity};
use wire::format::BodyFormat;
use wire::{EntityBody, MetadataLevel};

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z<&é𝄞\"\\\\ ]{0,9}".prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY)].prop_map(Value::Double),
        (DateTime::MIN_STORED.ticks()..=DateTime::MAX.ticks())
            .prop_map(|ticks| Value::DateTime(DateTime::from_ticks(ticks).unwrap())),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Value::Binary),
    ]
}

fn entity() -> impl Strategy<Value = Entity<'static>> {
    let key = ("[a-zé]{0,3}", "[a-zé]{0,3}");
    (key, btree_map("[A-Zé]{1,3}", value(), 0..4)).prop_map(|((partition, row), properties)| {
        let list = properties.into_iter().map(|(name, value)| (Cow::Owned(name), ValueCow::Owned(value)));
        let key = EntityKey::parse(&partition, &row).unwrap();
        Entity::new(key, Properties::new(list.collect()).unwrap()).unwrap()
    })
}

/// As the server shows it.
fn in_json(entity: &Entity<'_>) -> String {
    let context = EntityContext {
        level: MetadataLevel::Full,
        base: "http://127.0.0.1:10002/shop/",
        account: "shop",
        table: "Books",
        select: None,
        etag_in_minimal: true,
        offset_times: &[],
    };
    let view = EntityView {
        partition: entity.key.partition.as_str(),
        row: entity.key.row.as_str(),
        timestamp: DateTime::MIN_STORED,
        properties: entity.properties.iter(),
    };
    let mut out = Vec::new();
    write_entity(&mut out, &context, view);
    String::from_utf8(out).unwrap()
}

fn in_atom(entity: &Entity<'_>) -> String {
    let context = AtomContext {
        dialect: AtomDialect::V2014,
        spatial_namespaces: true,
        base: "http://127.0.0.1:10002/shop/",
        account: "shop",
        set: "Books",
        now: DateTime::MIN_STORED,
    };
    let (partition, row) = (entity.key.partition.as_str(), entity.key.row.as_str());
    let keys =
        [("PartitionKey", model::ValueRef::String(partition)), ("RowKey", model::ValueRef::String(row))];
    let entry = AtomEntry {
        relative_url: "Books(PartitionKey='p',RowKey='r')",
        etag: None,
        properties: keys.into_iter().chain(entity.properties.iter()).map(|(n, v)| (n, AtomValue::Value(v))),
    };
    let mut out = Vec::new();
    write_entry(&mut out, &context, entry);
    String::from_utf8(out).unwrap()
}

fn owned(entity: &Entity<'_>) -> (EntityKey, Vec<(String, Value)>) {
    let own = |(name, value): (&str, model::ValueRef<'_>)| (name.to_owned(), value.to_owned());
    (entity.key.clone(), entity.properties.iter().map(own).collect())
}

fn is_a_clients_mistake(refusal: &Refusal) -> Result<(), TestCaseError> {
    prop_assert!((400..500).contains(&refusal.status()), "{:?}", refusal);
    Ok(())
}

fn check(
    format: BodyFormat,
    show: impl Fn(&Entity<'_>) -> String,
    text: &str,
) -> Result<Reading, TestCaseError> {
    let body = match EntityBody::read(format, text.as_bytes()) {
        Ok(body) => body,
        Err(refusal) => {
            is_a_clients_mistake(&refusal)?;
            return Ok(Reading::Refused);
        }
    };
    // Ignored keys change nothing else.
    let without_keys = EntityBody::read_without_keys(format, text.as_bytes());
    prop_assert_eq!(without_keys.map(|body| body.properties), Ok(body.properties.clone()), "{}", text);
    match body.into_entity() {
        Ok(entity) => {
            let shown = show(&entity);
            let again = EntityBody::read(format, shown.as_bytes()).and_then(EntityBody::into_entity);
            prop_assert_eq!(again.map(|entity| owned(&entity)), Ok(owned(&entity)), "{}\n{}", text, shown);
            Ok(Reading::Accepted)
        }
        Err(refusal) => {
            is_a_clients_mistake(&refusal)?;
            Ok(Reading::Refused)
        }
    }
}

const JSON_PIECES: [&str; 18] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\u00e9",
    "\\ud800",
    "null",
    "true",
    "1e999",
    "-0",
    "\"A\":1,",
    "\"A@odata.type\":\"Edm.Int64\",",
    "\"A\":\"1\",",
    "\"RowKey\":\"z\",",
    "\"Timestamp\":0,",
];

#[test]
fn json_that_is_nearly_an_entity_is_one_entity_or_refused() {
    let inputs = text_near(entity().prop_map(|entity| in_json(&entity)), &JSON_PIECES);
    check_near(inputs, 20..=80, |text| {
        let reading = check(BodyFormat::Json, in_json, &text)?;
        if reading == Reading::Accepted {
            let as_json = serde_json::from_str::<serde::de::IgnoredAny>(&text);
            prop_assert!(as_json.is_ok(), "another reader takes it for no JSON: {}", text);
        }
        Ok(reading)
    });
}

const XML_PIECES: [&str; 18] = [
    "<d:A>",
    "</d:A>",
    "<d:A m:null=\"true\" />",
    "<d:B m:type=\"Edm.Int32\">",
    "1",
    "&#x",
    "&amp;",
    ";",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE",
    "<?xml",
    "?>",
    " xmlns='x'",
    "'",
    "</m:properties>",
];

#[test]
fn an_atom_entry_that_is_nearly_an_entity_is_one_entity_or_refused() {
    let inputs = text_near(entity().prop_map(|entity| in_atom(&entity)), &XML_PIECES);
    check_near(inputs, 20..=90, |text| check(BodyFormat::Atom, in_atom, &text));
}

#[test]
fn the_name_of_a_table_is_read_out_of_what_is_nearly_its_body() {
    let inputs =
        text_near("[A-Za-z]{20,60}".prop_map(|name| format!("{{\"TableName\":\"{name}\"}}")), &JSON_PIECES);
    check_near(inputs, 10..=80, |text| {
        let read = wire::read_table_name(BodyFormat::Json, text.as_bytes());
        // Another parser finds the same name. It takes the last of two; here the first counts.
        let json = serde_json::from_str::<serde_json::Value>(&text);
        if let Ok(name) = &read {
            let json = json.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            let is_single = text.matches("TableName").count() == 1;
            prop_assert!(!is_single || json["TableName"].as_str() == Some(name), "{}", text);
        }
        Ok(Reading::of(&read))
    });
}
