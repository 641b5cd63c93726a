//! Reads request bodies. A value has the type of its annotation, or else the type that its JSON implies.

use std::borrow::Cow;

use model::{DateTime, EdmType, Guid, Refusal, Value, ValueCow, ValueRef, limits};

use super::members::{Json, Malformed, MemberReader};
use super::shape::{self, ShapeDraft};
use crate::{EntityBody, binary, names};

const TYPE_ANNOTATION: &str = "@odata.type";

/// An entity, of which anything may be missing. Malformed text is `BodyNotReadable`.
pub fn read_entity(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    shape::read(text(body)?, Keys::Count)
}

/// The same for an entity whose keys are in the URL: keys in the body are ignored, whatever their values.
pub fn read_entity_without_keys(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    shape::read(text(body)?, Keys::Ignored)
}

/// Reads the whole body, and drafts its shape.
pub(super) fn entity<'a>(
    body: &'a str,
    keys: Keys,
    draft: &mut ShapeDraft<'a>,
) -> Result<EntityBody<'a>, Refusal> {
    let Members { values, types, .. } = read_members(body, keys, draft)?;
    let types = Annotations::new(types);
    let mut offset_times = Vec::new();
    let count = values.len();
    let members = values.into_iter().map(|(name, json)| {
        let kind = match types.get(&name) {
            // The service sets the timestamp, whatever a body says.
            _ if name == names::TIMESTAMP => {
                draft.kind(None);
                return Ok((name, None));
            }
            Some(annotation) => Some(EdmType::parse(annotation).ok_or(Refusal::BodyNotReadable)?),
            None => None,
        };
        draft.kind(kind);
        if has_offset(kind, &json) {
            offset_times.push(name.clone());
        }
        Ok((name, value(kind, json)?))
    });
    let entity = EntityBody::from_members(count, members)?;
    Ok(EntityBody { offset_times, ..entity })
}

/// Whether it is a time with an offset, which the answer to an insert shows in the same way.
pub(super) fn has_offset(kind: Option<EdmType>, json: &Json<'_>) -> bool {
    kind == Some(EdmType::DateTime) && matches!(json, Json::Text(text) if DateTime::has_offset(text))
}

/// The types that annotations give to properties. Of several for one name, the last counts.
struct Annotations<'a> {
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    is_sorted: bool,
}

/// So many annotations are compared one by one, which is faster than sorting them.
const FEW_ANNOTATIONS: usize = 16;

impl<'a> Annotations<'a> {
    fn new(mut types: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Self {
        // By name, so that each is found quickly however many there are.
        let is_sorted = types.len() > FEW_ANNOTATIONS;
        if is_sorted {
            types.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        Self { types, is_sorted }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = match self.is_sorted {
            true => {
                let before = self.types.partition_point(|(known, _)| &**known <= name).checked_sub(1)?;
                Some(&self.types[before]).filter(|(known, _)| known == name)
            }
            false => self.types.iter().rev().find(|(known, _)| known == name),
        };
        found.map(|(_, kind)| &**kind)
    }
}

/// The table's name in a Create Table body.
pub fn read_table_name(body: &[u8]) -> Result<String, Refusal> {
    let body = text(body)?;
    let members = read_members(body, Keys::Count, &mut ShapeDraft::none(body))?;
    match members.values.into_iter().find(|(name, _)| name == names::TABLE_NAME) {
        Some((_, Json::Text(name))) => Ok(name.into_owned()),
        Some((_, Json::Null)) | None => Err(Refusal::PropertiesNeedValue),
        Some(_) => Err(Refusal::BodyNotReadable),
    }
}

/// `None` for null, whatever its annotation: a null property is an absent property.
pub(super) fn value(annotated: Option<EdmType>, json: Json<'_>) -> Result<Option<ValueCow<'_>>, Refusal> {
    let unreadable = Refusal::BodyNotReadable;
    let Some(kind) = annotated else {
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
            let bytes = binary::read(&text).ok_or(unreadable)?;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Count,
    Ignored,
}

fn text(body: &[u8]) -> Result<&str, Refusal> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    // Checks the UTF-8 of the whole body at once.
    std::str::from_utf8(body).map_err(|_| Refusal::BodyNotReadable)
}

fn read_members<'a>(body: &'a str, keys: Keys, draft: &mut ShapeDraft<'a>) -> Result<Members<'a>, Refusal> {
    let members = members(body, keys, draft).map_err(|Malformed| Refusal::BodyNotReadable)?;
    if members.too_many { Err(Refusal::TooManyProperties) } else { Ok(members) }
}

fn members<'a>(body: &'a str, keys: Keys, draft: &mut ShapeDraft<'a>) -> Result<Members<'a>, Malformed> {
    let mut reader = MemberReader::new(body)?;
    let mut members =
        Members { values: Vec::with_capacity(16), types: Vec::with_capacity(16), too_many: false };
    while let Some(name) = reader.next_name()? {
        if members.values.len() + members.types.len() >= limits::BODY_MEMBERS_MAX {
            members.too_many = true;
            reader.skip()?;
            continue;
        }
        let start = reader.at();
        match Role::of(&name, keys) {
            Role::Value => {
                let json = reader.value()?;
                draft.value(&name, start..reader.at());
                members.values.push((name, json));
            }
            Role::Type => members.types.push((without_annotation(name), reader.text_value()?)),
            Role::Ignored => {
                reader.skip()?;
                draft.ignored(start..reader.at());
            }
        }
    }
    reader.end()?;
    Ok(members)
}

/// What a member is, by its name.
enum Role {
    Value,
    /// The type of another member.
    Type,
    Ignored,
}

impl Role {
    fn of(name: &str, keys: Keys) -> Self {
        let is_key = || keys == Keys::Ignored && matches!(name, names::PARTITION_KEY | names::ROW_KEY);
        // Only annotations have a dot.
        match name.bytes().any(|byte| byte == b'.') {
            false if is_key() => Self::Ignored,
            false => Self::Value,
            true => match name.strip_suffix(TYPE_ANNOTATION) {
                Some(of) if !of.contains("@odata.") => Self::Type,
                _ if name.starts_with("odata.") || name.contains("@odata.") => Self::Ignored,
                _ => Self::Value,
            },
        }
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
        check(r#"{"A@odata.type":"Edm.Binary","A":"AQ\r\nID"}"#, "A=Binary([1, 2, 3])");
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
