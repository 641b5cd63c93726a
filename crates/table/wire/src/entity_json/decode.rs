//! Reads request bodies. A value has the type of its annotation, or else the type that its JSON implies.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{DateTime, EdmType, Guid, Refusal, Value, ValueCow, ValueRef, limits};
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};

use crate::{EntityBody, names};

const TYPE_ANNOTATION: &str = "@odata.type";

/// A JSON value that keeps its spelling: `20` and `20.0` have different types.
#[derive(Debug)]
enum Json<'a> {
    Null,
    Boolean(bool),
    Whole(i64),
    Fraction(f64),
    /// Borrowed from the body, unless it has escapes.
    Text(Cow<'a, str>),
}

/// An entity, of which anything may be missing. Malformed text is `BodyNotReadable`.
pub fn read_entity(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    entity(read_members(body, Keys::Count)?)
}

/// The same for an entity whose keys are in the URL: keys in the body are ignored, whatever their values.
pub fn read_entity_without_keys(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    entity(read_members(body, Keys::Ignored)?)
}

fn entity(members: Members<'_>) -> Result<EntityBody<'_>, Refusal> {
    let Members { values, mut types, .. } = members;
    // Sorted by name, so that each is found quickly however many there are. Of several with one name, the last counts.
    types.sort_by(|(a, _), (b, _)| a.cmp(b));
    let annotated = |name: &str| {
        let found = types.partition_point(|(known, _)| &**known <= name).checked_sub(1)?;
        Some(&types[found]).filter(|(known, _)| known == name).map(|(_, kind)| &**kind)
    };
    let mut members = Vec::with_capacity(values.len());
    let mut offset_times = Vec::new();
    for (name, json) in values.into_iter().filter(|(name, _)| name != names::TIMESTAMP) {
        let has_offset = matches!(&json, Json::Text(text) if DateTime::has_offset(text));
        let value = value(annotated(&name), json)?;
        if has_offset && matches!(value, Some(ValueCow::Borrowed(ValueRef::DateTime(_)))) {
            offset_times.push(name.clone());
        }
        members.push((name, value));
    }
    let entity = EntityBody::from_members(members.into_iter())?;
    Ok(EntityBody { offset_times, ..entity })
}

/// The table's name in a Create Table body.
pub fn read_table_name(body: &[u8]) -> Result<String, Refusal> {
    let members = read_members(body, Keys::Count)?;
    match members.values.into_iter().find(|(name, _)| name == names::TABLE_NAME) {
        Some((_, Json::Text(name))) => Ok(name.into_owned()),
        Some((_, Json::Null)) | None => Err(Refusal::PropertiesNeedValue),
        Some(_) => Err(Refusal::BodyNotReadable),
    }
}

/// `None` for null, whatever its annotation: a null property is an absent property.
fn value<'a>(annotated: Option<&str>, json: Json<'a>) -> Result<Option<ValueCow<'a>>, Refusal> {
    let unreadable = Refusal::BodyNotReadable;
    let Some(annotation) = annotated else {
        let value = match json {
            Json::Null => return Ok(None),
            Json::Boolean(value) => ValueRef::Boolean(value),
            Json::Whole(value) => {
                i32::try_from(value).map_or(ValueRef::Double(value as f64), ValueRef::Int32)
            }
            Json::Fraction(value) => ValueRef::Double(value),
            Json::Text(text) => return Ok(Some(text.into())),
        };
        return Ok(Some(ValueCow::Borrowed(value)));
    };
    let kind = EdmType::parse(annotation).ok_or(unreadable.clone())?;
    let value = match (kind, json) {
        (_, Json::Null) => return Ok(None),
        (EdmType::String, Json::Text(text)) => return Ok(Some(text.into())),
        (EdmType::Boolean, Json::Boolean(value)) => Some(ValueRef::Boolean(value)),
        (EdmType::Boolean, Json::Text(text)) if text.eq_ignore_ascii_case("true") => {
            Some(ValueRef::Boolean(true))
        }
        (EdmType::Boolean, Json::Text(text)) if text.eq_ignore_ascii_case("false") => {
            Some(ValueRef::Boolean(false))
        }
        (EdmType::Int32, Json::Text(text)) => text.parse().ok().map(ValueRef::Int32),
        (EdmType::Int32, Json::Whole(value)) => i32::try_from(value).ok().map(ValueRef::Int32),
        (EdmType::Int64, Json::Text(text)) => text.parse().ok().map(ValueRef::Int64),
        (EdmType::Double, Json::Whole(value)) => Some(ValueRef::Double(value as f64)),
        (EdmType::Double, Json::Fraction(value)) => Some(ValueRef::Double(value)),
        (EdmType::Double, Json::Text(text)) => double(&text).map(ValueRef::Double),
        (EdmType::DateTime, Json::Text(text)) => DateTime::parse(&text).map(ValueRef::DateTime),
        (EdmType::Guid, Json::Text(text)) => Guid::parse(&text).map(ValueRef::Guid),
        (EdmType::Binary, Json::Text(text)) => {
            let bytes = STANDARD.decode(&*text).map_err(|_| unreadable)?;
            return Ok(Some(ValueCow::Owned(Value::Binary(bytes))));
        }
        _ => None,
    };
    value.map(|value| Some(ValueCow::Borrowed(value))).ok_or(unreadable)
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        // Rust would also read words such as "inf"; a number that is too large for a double is refused.
        _ if text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text.parse().ok().filter(|value: &f64| value.is_finite())
        }
        _ => None,
    }
}

/// The members of the object in a body, with annotations kept separately.
#[derive(Default)]
struct Members<'a> {
    values: Vec<(Cow<'a, str>, Json<'a>)>,
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// There were more members than are kept. The rest is still read, because malformed JSON has its own refusal.
    too_many: bool,
}

/// Whether `PartitionKey` and `RowKey` of a body count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Count,
    Ignored,
}

fn read_members(body: &[u8], keys: Keys) -> Result<Members<'_>, Refusal> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    // Checks the UTF-8 of the whole body at once: given bytes, serde_json checks every string by itself, and most are
    // short.
    let body = std::str::from_utf8(body).map_err(|_| Refusal::BodyNotReadable)?;
    let mut json = serde_json::Deserializer::from_str(body);
    let members = json.deserialize_map(MembersVisitor { keys }).map_err(|_| Refusal::BodyNotReadable)?;
    json.end().map_err(|_| Refusal::BodyNotReadable)?;
    if members.too_many { Err(Refusal::TooManyProperties) } else { Ok(members) }
}

struct MembersVisitor {
    keys: Keys,
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members =
            Members { values: Vec::with_capacity(16), types: Vec::with_capacity(16), too_many: false };
        while let Some(name) = map.next_key_seed(TextSeed)? {
            if members.values.len() + members.types.len() >= limits::BODY_MEMBERS_MAX {
                members.too_many = true;
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let is_key =
                self.keys == Keys::Ignored && matches!(&*name, names::PARTITION_KEY | names::ROW_KEY);
            let of_annotation = || name[..name.len() - TYPE_ANNOTATION.len()].contains("@odata.");
            if name.ends_with(TYPE_ANNOTATION) && !of_annotation() {
                members.types.push((without_annotation(name), map.next_value_seed(TextSeed)?));
            } else if is_key || name.starts_with("odata.") || name.contains("@odata.") {
                map.next_value::<IgnoredAny>()?;
            } else {
                let value = map.next_value_seed(JsonSeed)?;
                members.values.push((name, value));
            }
        }
        Ok(members)
    }
}

fn without_annotation(name: Cow<'_, str>) -> Cow<'_, str> {
    let end = name.len() - TYPE_ANNOTATION.len();
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[..end]),
        Cow::Owned(mut name) => {
            name.truncate(end);
            Cow::Owned(name)
        }
    }
}

/// A string, borrowed from the body if it has no escapes.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_owned()))
    }
}

struct JsonSeed;

impl<'de> DeserializeSeed<'de> for JsonSeed {
    type Value = Json<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Objects and arrays are left to the default methods, which refuse them.
impl<'de> Visitor<'de> for JsonSeed {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Boolean(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Json<'de>, E> {
        // Above i64 it can only become a double.
        Ok(i64::try_from(value).map_or(Json::Fraction(value as f64), Json::Whole))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json<'de>, E> {
        if value.is_finite() { Ok(Json::Fraction(value)) } else { Err(E::custom("number out of range")) }
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(body: &str, expected: &str) {
        let shown = match read_entity(body.as_bytes()) {
            Ok(entity) => {
                let list =
                    entity.properties.iter().map(|(name, value)| format!("{name}={:?}", value.as_ref()));
                list.collect::<Vec<_>>().join(" ")
            }
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{body}");
    }

    #[test]
    fn types_are_inferred_from_the_text() {
        check(
            r#"{"A":1,"B":-2147483648,"C":2147483648}"#,
            "A=Int32(1) B=Int32(-2147483648) C=Double(2147483648.0)",
        );
        check(
            r#"{"A":20.0,"B":2e1,"C":5454161346626}"#,
            "A=Double(20.0) B=Double(20.0) C=Double(5454161346626.0)",
        );
        check(r#"{"A":18446744073709551615,"B":1e22}"#, "A=Double(1.8446744073709552e19) B=Double(1e22)");
        check(
            r#"{"A":true,"B":"2021-01-01T00:00:00Z","C":null}"#,
            r#"A=Boolean(true) B=String("2021-01-01T00:00:00Z")"#,
        );
    }

    #[test]
    fn annotations_decide() {
        check(r#"{"A@odata.type":"Edm.Int64","A":"9000000000"}"#, "A=Int64(9000000000)");
        check(r#"{"A":"9000000000","A@odata.type":"Edm.Int64"}"#, "A=Int64(9000000000)");
        check(
            r#"{"A@odata.type":"Edm.Double","A":3,"B@odata.type":"Edm.Double","B":"1.23e+24"}"#,
            "A=Double(3.0) B=Double(1.23e24)",
        );
        check(
            r#"{"A@odata.type":"Edm.Double","A":"NaN","B@odata.type":"Edm.Double","B":"-Infinity"}"#,
            "A=Double(NaN) B=Double(-inf)",
        );
        check(r#"{"A@odata.type":"Edm.Binary","A":"AQID"}"#, "A=Binary([1, 2, 3])");
        check(
            r#"{"A@odata.type":"Edm.Boolean","A":"true","B@odata.type":"Edm.Int32","B":5}"#,
            "A=Boolean(true) B=Int32(5)",
        );
        check(
            r#"{"A@odata.type":"Edm.Boolean","A":"False","B@odata.type":"Edm.Int32","B":"-12345"}"#,
            "A=Boolean(false) B=Int32(-12345)",
        );
        check(r#"{"A@odata.type":"Edm.Int32","A":5,"A@odata.type@odata.type":"Edm.String"}"#, "A=Int32(5)");
        check(r#"{"A@odata.type@odata.type":{"x":1},"A":"5"}"#, "A=String(\"5\")");
        check(r#"{"A@odata.type":"Edm.Int64","A":null,"B@odata.type":"Edm.Guid"}"#, "");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for body in [
            "",
            "[]",
            "1",
            "{",
            r#"{"A":}"#,
            r#"{"A":1}x"#,
            r#"{"A":{}}"#,
            r#"{"A":[1]}"#,
            r#"{"A":1e400}"#,
            r#"{"A":"\ud800"}"#,
            r#"{"A@odata.type":"Edm.Int64","A":5}"#,
            r#"{"A@odata.type":"Edm.Int64","A":"5.0"}"#,
            r#"{"A@odata.type":"Edm.Int64","A":"9223372036854775808"}"#,
            r#"{"A@odata.type":"Edm.Boolean","A":"yes"}"#,
            r#"{"A@odata.type":"Edm.Boolean","A":" true"}"#,
            r#"{"A@odata.type":"Edm.Int32","A":"1.0"}"#,
            r#"{"A@odata.type":"Edm.Int32","A":""}"#,
            r#"{"A@odata.type":"Edm.Int32","A":"2147483648"}"#,
            r#"{"A@odata.type":"Edm.Int32","A":2147483648}"#,
            r#"{"A@odata.type":"Edm.Int32","A":1.0}"#,
            r#"{"A@odata.type":"Edm.Double","A":"inf"}"#,
            r#"{"A@odata.type":"Edm.Double","A":"13e7705"}"#,
            r#"{"A@odata.type":"Edm.DateTime","A":"yesterday"}"#,
            r#"{"A@odata.type":"Edm.Guid","A":"1"}"#,
            r#"{"A@odata.type":"Edm.Binary","A":"*"}"#,
            r#"{"A@odata.type":"Edm.Single","A":1}"#,
            r#"{"A@odata.type":"Edm.String","A":1}"#,
            r#"{"PartitionKey":5}"#,
            r#"{"A@odata.type":1,"A":1}"#,
        ] {
            check(body, "InvalidInput");
        }
    }

    #[test]
    fn no_more_members_are_kept_than_an_entity_could_have() {
        let body = |count: usize, end: &str| {
            let members: Vec<String> = (0..count).map(|n| format!(r#""a{n}":null"#)).collect();
            format!("{{{}{end}", members.join(","))
        };
        check(&body(limits::BODY_MEMBERS_MAX, "}"), "");
        check(&body(limits::BODY_MEMBERS_MAX + 1, "}"), "TooManyProperties");
        check(&body(limits::BODY_MEMBERS_MAX + 1, ""), "InvalidInput");
    }

    #[test]
    fn keys_that_do_not_count_may_be_anything() {
        for key in ["5", "null", "{}", "[1]", "\"a/b\""] {
            for annotation in
                ["", "\"RowKey@odata.type\":\"Edm.Guid\",", "\"PartitionKey@odata.type\":\"Edm.X\","]
            {
                let body =
                    format!("{{{annotation}\"PartitionKey\":{key},\"RowKey\":{key},\"RowKey\":1,\"A\":1}}");
                let entity = read_entity_without_keys(body.as_bytes()).unwrap();
                assert_eq!(
                    (entity.partition_key, entity.row_key, entity.properties.len()),
                    (None, None, 1),
                    "{body}"
                );
                assert!(read_entity(body.as_bytes()).is_err(), "{body}");
            }
        }
    }

    #[test]
    fn times_with_an_offset_are_told_apart() {
        let body = br#"{"A@odata.type":"Edm.DateTime","A":"2020-01-01T01:02:00+00:00","B":"2020-01-01T01:02:00+00:00","C@odata.type":"Edm.DateTime","C":"2020-01-01T01:02:00Z"}"#;
        assert_eq!(read_entity(body).unwrap().offset_times, ["A"]);
    }

    #[test]
    fn a_null_counts_as_a_mention() {
        check(r#"{"A":null,"A":1}"#, "DuplicatePropertiesSpecified");
        check(r#"{"A":1,"A":null}"#, "DuplicatePropertiesSpecified");
        check(r#"{"A":null,"A":null}"#, "DuplicatePropertiesSpecified");
        check(r#"{"A":null,"a":1}"#, "a=Int32(1)");
    }

    #[test]
    fn system_members_are_told_apart() {
        let body = br#"{"odata.etag":"x","odata.x":{"y":1},"PartitionKey":"p","PartitionKey@odata.type":"Edm.String","RowKey":null,"Timestamp":"z","A":1}"#;
        let entity = read_entity(body).unwrap();
        assert_eq!((entity.partition_key.as_deref(), entity.row_key.as_deref()), (Some("p"), None));
        assert_eq!(entity.properties.len(), 1);
        assert_eq!(read_table_name(br#"{"TableName":"Books"}"#), Ok("Books".into()));
        assert_eq!(read_table_name(b"{}"), Err(Refusal::PropertiesNeedValue));
        assert_eq!(read_entity(br#"{"RowKey":"a","RowKey":"a"}"#), Err(Refusal::DuplicateProperties));
    }

    proptest! {
        #[test]
        fn doubles_are_read_exactly(value in proptest::num::f64::NORMAL) {
            let body = format!(r#"{{"A":{}}}"#, model::format_double(value));
            let entity = read_entity(body.as_bytes()).unwrap();
            prop_assert_eq!(entity.properties[0].1.as_ref(), ValueRef::Double(value));
        }
    }
}
