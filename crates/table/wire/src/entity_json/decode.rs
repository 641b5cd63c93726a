//! Reads request bodies. A value has the type of its annotation, or else the type that its JSON implies.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{DateTime, EdmType, Guid, Refusal, Value, ValueCow, ValueRef, limits};

use super::members::{Json, Malformed, MemberReader};
use crate::entity_body::BodyBuilder;
use crate::{EntityBody, names};

const TYPE_ANNOTATION: &str = "@odata.type";

/// An entity, of which anything may be missing. Malformed text is `BodyNotReadable`.
pub fn read_entity(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    entity(read_members(body, Keys::Count)?)
}

/// The same for an entity whose keys are in the URL: keys in the body are ignored, whatever their values.
pub fn read_entity_without_keys(body: &[u8]) -> Result<EntityBody<'_>, Refusal> {
    entity(read_members(body, Keys::Ignored)?)
}

fn entity(members: Members<'_>) -> Result<EntityBody<'_>, Refusal> {
    let Members { values, types, .. } = members;
    let types = Annotations::new(types);
    let mut offset_times = Vec::new();
    let mut body = BodyBuilder::new(values.len());
    for (name, json) in values {
        let kind = match types.get(&name) {
            // The service sets the timestamp, whatever a body says.
            _ if name == names::TIMESTAMP => continue,
            Some(annotation) => Some(EdmType::parse(annotation).ok_or(Refusal::BodyNotReadable)?),
            None => None,
        };
        if kind == Some(EdmType::DateTime) && has_offset(&json) {
            offset_times.push(name.clone());
        }
        body.add(name, value(kind, json)?);
    }
    Ok(EntityBody { offset_times, ..body.finish()? })
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

    #[inline]
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
    let members = read_members(body, Keys::Count)?;
    match members.values.into_iter().find(|(name, _)| name == names::TABLE_NAME) {
        Some((_, Json::Text(name))) => Ok(name.into_owned()),
        Some((_, Json::Plain(name))) => Ok(name.to_owned()),
        Some((_, Json::Null)) | None => Err(Refusal::PropertiesNeedValue),
        Some(_) => Err(Refusal::BodyNotReadable),
    }
}

/// Whether it is a time with an offset from UTC, if it is a time.
fn has_offset(json: &Json<'_>) -> bool {
    match json {
        Json::Plain(text) => !text.ends_with('Z') && DateTime::has_offset(text),
        Json::Text(text) => DateTime::has_offset(text),
        _ => false,
    }
}

/// `None` for null, whatever its annotation: a null property is an absent property.
fn value(annotated: Option<EdmType>, json: Json<'_>) -> Result<Option<ValueCow<'_>>, Refusal> {
    let unreadable = Refusal::BodyNotReadable;
    let Some(kind) = annotated else {
        let value = match json {
            Json::Null => return Ok(None),
            Json::Boolean(value) => ValueRef::Boolean(value),
            Json::Whole(value) => {
                i32::try_from(value).map_or(ValueRef::Double(value as f64), ValueRef::Int32)
            }
            Json::Fraction(value, text) => return Ok(Some(spelled(ValueRef::Double(value), text))),
            Json::Plain(text) => return Ok(Some(ValueCow::Spelled(ValueRef::String(text), text))),
            Json::Text(text) => return Ok(Some(text.into())),
        };
        return Ok(Some(ValueCow::Borrowed(value)));
    };
    let value = match (kind, json) {
        (_, Json::Null) => return Ok(None),
        (EdmType::String, Json::Plain(text)) => Some(ValueCow::Spelled(ValueRef::String(text), text)),
        (EdmType::String, Json::Text(text)) => Some(text.into()),
        (EdmType::Boolean, Json::Boolean(value)) => Some(ValueCow::Borrowed(ValueRef::Boolean(value))),
        (EdmType::Int32, Json::Whole(value)) => {
            i32::try_from(value).ok().map(|value| ValueCow::Borrowed(ValueRef::Int32(value)))
        }
        (EdmType::Double, Json::Whole(value)) => Some(ValueCow::Borrowed(ValueRef::Double(value as f64))),
        (EdmType::Double, Json::Fraction(value, text)) => Some(spelled(ValueRef::Double(value), text)),
        (EdmType::Binary, json) => {
            let bytes = text_of(&json).and_then(|text| STANDARD.decode(text).ok());
            bytes.map(|bytes| ValueCow::Owned(Value::Binary(bytes)))
        }
        (kind, Json::Plain(text)) => of_text(kind, text).map(|value| {
            let is_spelled = is_spelled(kind, text);
            spelled(value, is_spelled.then_some(text))
        }),
        (kind, Json::Text(text)) => of_text(kind, &text).map(ValueCow::Borrowed),
        _ => None,
    };
    value.map(Some).ok_or(unreadable)
}

fn spelled<'a>(value: ValueRef<'a>, text: Option<&'a str>) -> ValueCow<'a> {
    text.map_or(ValueCow::Borrowed(value), |text| ValueCow::Spelled(value, text))
}

fn text_of<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json {
        Json::Plain(text) => Some(text),
        Json::Text(text) => Some(text),
        _ => None,
    }
}

/// A value of a type of fixed size, in a JSON text.
fn of_text(kind: EdmType, text: &str) -> Option<ValueRef<'static>> {
    match kind {
        EdmType::Boolean if text.eq_ignore_ascii_case("true") => Some(ValueRef::Boolean(true)),
        EdmType::Boolean if text.eq_ignore_ascii_case("false") => Some(ValueRef::Boolean(false)),
        EdmType::Int32 => text.parse().ok().map(ValueRef::Int32),
        EdmType::Int64 => text.parse().ok().map(ValueRef::Int64),
        EdmType::Double => double(text).map(ValueRef::Double),
        EdmType::DateTime => DateTime::parse(text).map(ValueRef::DateTime),
        EdmType::Guid => Guid::parse(text).map(ValueRef::Guid),
        EdmType::Boolean | EdmType::String | EdmType::Binary => None,
    }
}

/// Whether answers show the value of this text in the same way. `false` if that is not quickly seen.
fn is_spelled(kind: EdmType, text: &str) -> bool {
    let bytes = text.as_bytes();
    match kind {
        EdmType::Int64 => matches!(bytes, [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] | [b'0']),
        // A whole second, or a fraction that does not end in a zero. The end of a day is shown as the beginning of the next.
        EdmType::DateTime => match bytes {
            [.., b'Z'] if bytes.get(11..13) == Some(b"24") => false,
            [.., last, b'Z'] => bytes.len() == 20 || ((22..=28).contains(&bytes.len()) && *last != b'0'),
            _ => false,
        },
        EdmType::Guid => !bytes.iter().fold(false, |found, byte| found | byte.is_ascii_uppercase()),
        _ => false,
    }
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
    // Checks the UTF-8 of the whole body at once.
    let body = std::str::from_utf8(body).map_err(|_| Refusal::BodyNotReadable)?;
    let members = members(body, keys).map_err(|Malformed| Refusal::BodyNotReadable)?;
    if members.too_many { Err(Refusal::TooManyProperties) } else { Ok(members) }
}

fn members(body: &str, keys: Keys) -> Result<Members<'_>, Malformed> {
    let mut reader = MemberReader::new(body)?;
    let mut members =
        Members { values: Vec::with_capacity(16), types: Vec::with_capacity(16), too_many: false };
    while let Some(name) = reader.next_name()? {
        if members.values.len() + members.types.len() >= limits::BODY_MEMBERS_MAX {
            members.too_many = true;
            reader.skip()?;
            continue;
        }
        match Role::of(&name, keys) {
            Role::Value => members.values.push((name, reader.value()?)),
            Role::Type => members.types.push((without_annotation(name), reader.text_value()?)),
            Role::Ignored => reader.skip()?,
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

    /// The value of a text with this annotation, and whether it is known to be spelled as answers spell it.
    fn read_one(kind: EdmType, text: &str) -> Option<(Value, bool)> {
        let body = match kind {
            EdmType::Double => format!(r#"{{"A":{text}}}"#),
            _ => format!(r#"{{"A@odata.type":"{kind}","A":"{text}"}}"#),
        };
        let entity = read_entity(body.as_bytes()).ok()?;
        let (_, value) = entity.properties.first()?;
        if let Some(spelling) = value.spelling() {
            let mut shown = Vec::new();
            assert!(model::spelling::write_spelling(&mut shown, value.as_ref()), "{kind} {text}");
            assert_eq!(String::from_utf8(shown).unwrap(), spelling, "{kind}");
        }
        Some((value.as_ref().to_owned(), value.spelling().is_some()))
    }

    #[test]
    fn what_answers_spell_otherwise_is_not_taken_from_a_request() {
        for (kind, text) in [
            (EdmType::Int64, "+1"),
            (EdmType::Int64, "01"),
            (EdmType::Int64, "-0"),
            (EdmType::Int64, "-01"),
            (EdmType::DateTime, "2024-01-01"),
            (EdmType::DateTime, "2024-01-01T10:00"),
            (EdmType::DateTime, "2024-01-01T10:00Z"),
            (EdmType::DateTime, "2024-01-01T10:00:00"),
            (EdmType::DateTime, "2024-01-01T10:00:00.10Z"),
            (EdmType::DateTime, "2024-01-01T10:00:00.12345678Z"),
            (EdmType::DateTime, "2024-01-01T24:00:00Z"),
            (EdmType::DateTime, "2024-01-01T10:00:00+00:00"),
            (EdmType::Guid, "0F8fad5b-d9cb-469f-a165-70867728950e"),
            (EdmType::Double, "1.10"),
            (EdmType::Double, "-0.0"),
            (EdmType::Double, "0.00"),
            (EdmType::Double, "0.00001"),
            (EdmType::Double, "1e2"),
            (EdmType::String, "\\u0041"),
            (EdmType::String, "é"),
        ] {
            let (_, is_spelled) = read_one(kind, text).unwrap_or_else(|| panic!("{kind} {text}"));
            assert!(!is_spelled, "{kind} {text}");
        }
    }

    proptest! {
        #[test]
        fn what_answers_spell_is_taken_from_a_request(
            number in any::<i64>(), ticks in DateTime::MIN_STORED.ticks()..=DateTime::MAX.ticks(), seconds in 0..1_000_000_000_i64,
            guid in any::<[u8; 16]>(), text in "[ -~&&[^\"\\\\]]{0,100}", digits in "-?[1-9][0-9]{0,7}\\.[0-9]{0,6}[1-9]"
        ) {
            let seconds = DateTime::from_ticks(DateTime::MIN_STORED.ticks() + seconds * 10_000_000).unwrap();
            let time = DateTime::from_ticks(ticks).unwrap();
            for (kind, text) in [
                (EdmType::Int64, number.to_string()),
                (EdmType::DateTime, time.to_string()),
                (EdmType::DateTime, seconds.to_string()),
                (EdmType::Guid, Guid(guid).to_string()),
                (EdmType::String, text),
                (EdmType::Double, digits),
            ] {
                prop_assert!(read_one(kind, &text).unwrap().1, "{} {}", kind, text);
            }
        }

        #[test]
        fn a_spelling_is_that_of_its_value(
            number in "[+-]?[0-9]{1,20}",
            time in "20[0-9]{2}-0[1-9]-[0-2][0-9](T(0[0-9]|1[0-9]|2[0-4]):(00|[0-5][0-9])(:(00|[0-5][0-9])(\\.[0-9]{1,9})?)?(Z|[+]00:00)?)?",
            guid in "[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            double in "-?(0|[1-9][0-9]{0,16})\\.[0-9]{1,16}",
        ) {
            // `read_one` compares them.
            read_one(EdmType::Int64, &number);
            read_one(EdmType::DateTime, &time);
            read_one(EdmType::Guid, &guid);
            read_one(EdmType::Double, &double);
        }

        #[test]
        fn doubles_are_read_exactly(value in proptest::num::f64::NORMAL) {
            let body = format!(r#"{{"A":{}}}"#, model::format_double(value));
            let entity = read_entity(body.as_bytes()).unwrap();
            prop_assert_eq!(entity.properties[0].1.as_ref(), ValueRef::Double(value));
        }
    }
}
