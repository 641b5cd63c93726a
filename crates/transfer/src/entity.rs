//! An entity in the service's JSON: its members in their order, each value as it was written.
//!
//! Nothing is converted, so nothing can change in a copy: `1.0` stays a Double, and an escape stays an escape.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;
use wire::names::{PARTITION_KEY, ROW_KEY, TIMESTAMP};

pub const TYPE_ANNOTATION: &str = "@odata.type";
/// Members that describe the answer, not the entity.
const CONTROL_PREFIX: &str = "odata.";

#[derive(Debug)]
pub struct JsonEntity<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
}

/// Why a text is not an entity with keys.
#[derive(Debug, Error)]
pub enum EntityError {
    #[error("it is not an entity in JSON: {0}")]
    Json(#[source] serde_json::Error),
    #[error("it has no {name}")]
    NoKey { name: &'static str },
    #[error("its {name} is not a string")]
    KeyIsNotAString { name: &'static str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityKeys {
    pub partition: String,
    pub row: String,
}

impl fmt::Display for EntityKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionKey {:?}, RowKey {:?}", self.partition, self.row)
    }
}

impl<'a> JsonEntity<'a> {
    pub fn parse(text: &'a str) -> Result<Self, EntityError> {
        serde_json::from_str(text).map_err(EntityError::Json)
    }

    /// The value as JSON.
    pub fn json(&self, name: &str) -> Option<&'a str> {
        self.members.iter().find(|(found, _)| found == name).map(|(_, json)| *json)
    }

    pub fn keys(&self) -> Result<EntityKeys, EntityError> {
        let key = |name: &'static str| match self.json(name) {
            None => Err(EntityError::NoKey { name }),
            Some(json) => text(json).ok_or(EntityError::KeyIsNotAString { name }),
        };
        Ok(EntityKeys { partition: key(PARTITION_KEY)?.into_owned(), row: key(ROW_KEY)?.into_owned() })
    }

    /// Properties with their values, without annotations and nulls.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &'a str)> {
        let members = self.members.iter().map(|(name, json)| (&**name, *json));
        members.filter(|(name, json)| !is_annotation(name) && *json != "null")
    }

    /// The same without its keys.
    pub fn without_keys(&self) -> Self {
        let is_key = |name: &str| matches!(property_of(name), PARTITION_KEY | ROW_KEY);
        Self { members: self.members.iter().filter(|(name, _)| !is_key(name)).cloned().collect() }
    }

    /// The type in the property's annotation.
    pub fn annotated_type(&self, property: &str) -> Option<&'a str> {
        let annotated = |name: &str| name.strip_suffix(TYPE_ANNOTATION) == Some(property);
        let (_, json) = self.members.iter().find(|(name, _)| annotated(name))?;
        json.strip_prefix('"').and_then(|json| json.strip_suffix('"'))
    }

    /// Writes a line of a file, without its end. Nulls are left out: they only say that a property of `$select` is absent.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        self.write(out, |name, json| !name.starts_with(CONTROL_PREFIX) && json != "null");
    }

    /// Writes the body of a request, without the members that a service ignores.
    pub fn write_body(&self, out: &mut Vec<u8>) {
        self.write(out, |name, _| !name.starts_with(CONTROL_PREFIX) && property_of(name) != TIMESTAMP);
    }

    fn write(&self, out: &mut Vec<u8>, keeps: impl Fn(&str, &str) -> bool) {
        let mut mark = b'{';
        for (name, json) in self.members.iter().filter(|(name, json)| keeps(name, json)) {
            out.push(mark);
            write_text(out, name);
            out.push(b':');
            out.extend_from_slice(json.as_bytes());
            mark = b',';
        }
        if mark == b'{' {
            out.push(mark);
        }
        out.push(b'}');
    }
}

/// The text of a JSON string; `None` if it is not a string, or contains half of a surrogate pair.
pub fn text(json: &str) -> Option<Cow<'_, str>> {
    let Name(text) = serde_json::from_str(json).ok()?;
    Some(text)
}

/// Writes a text as a JSON string.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    wire::entity_json::write_string(out, text);
}

fn is_annotation(name: &str) -> bool {
    name.starts_with(CONTROL_PREFIX) || name.contains("@odata.")
}

/// `Name` of `Name@odata.type`.
fn property_of(name: &str) -> &str {
    name.split_once("@odata.").map_or(name, |(property, _)| property)
}

/// Borrowed, unless it contains escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonEntity<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntityVisitor)
    }
}

struct EntityVisitor;

impl<'de> Visitor<'de> for EntityVisitor {
    type Value = JsonEntity<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of properties")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonEntity<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let json = map.next_value::<&RawValue>()?.get();
            if json.starts_with(['{', '[']) {
                return Err(A::Error::custom(format_args!(
                    "the value of {name:?} is an object or a list, which a property can't hold"
                )));
            }
            members.push((name, json));
        }
        Ok(JsonEntity { members })
    }
}

/// The body of an answer to a query.
#[derive(Debug, Deserialize)]
pub struct PageBody<'a> {
    #[serde(borrow)]
    pub value: Vec<JsonEntity<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(entity: &str) -> String {
        let mut out = Vec::new();
        JsonEntity::parse(entity).unwrap().write_line(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_has_the_members_of_the_answer_unchanged() {
        for same in [
            r#"{"PartitionKey":"a","RowKey":"\u00e9\ud83d\ude00","A":1.0,"B":1E+300,"C@odata.type":"Edm.Int64","C":"-1"}"#,
            r#"{"PartitionKey":"a","RowKey":"","Lone":"\ud800","D@odata.type":"Edm.Double","D":"NaN","E":true}"#,
            "{}",
        ] {
            assert_eq!(line(same), same);
        }
        assert_eq!(
            line(r#"{ "odata.etag" : "W/\"x\"", "PartitionKey":"a", "Timestamp":"t", "None":null }"#),
            r#"{"PartitionKey":"a","Timestamp":"t"}"#
        );
    }

    #[test]
    fn a_body_has_no_timestamp_and_no_control_members() {
        let mut out = Vec::new();
        let text = r#"{"odata.etag":"x","PartitionKey":"a","Timestamp@odata.type":"Edm.DateTime","Timestamp":"t","A":1}"#;
        JsonEntity::parse(text).unwrap().write_body(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"PartitionKey":"a","A":1}"#);
    }

    #[test]
    fn a_text_that_is_not_an_entity_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = JsonEntity::parse(text).and_then(|entity| entity.keys()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("[]", "it is not an entity in JSON");
        check(r#"{"PartitionKey":"a""#, "it is not an entity in JSON");
        check(r#"{"PartitionKey":"a"} x"#, "trailing characters");
        check(r#"{"A":{"B":1}}"#, "the value of \"A\" is an object or a list");
        check(r#"{"PartitionKey":"a"}"#, "it has no RowKey");
        check(r#"{"PartitionKey":1,"RowKey":"b"}"#, "its PartitionKey is not a string");
    }
}
