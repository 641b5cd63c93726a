//! Writes answers as JSON, straight from the stored values, without a document in between.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{DateTime, ETag, ValueRef, format_double};

use crate::format::MetadataLevel;
use crate::{Select, names, url};

/// What all entities of one answer share.
#[derive(Clone, Copy, Debug)]
pub struct EntityContext<'a> {
    pub level: MetadataLevel,
    /// Scheme, host and, in path style, account; with a slash at the end.
    pub base: &'a str,
    pub account: &'a str,
    /// As the request's URL has it.
    pub table: &'a str,
    pub select: Option<&'a Select>,
    /// Whether this version shows `odata.etag` at the minimal level.
    pub etag_in_minimal: bool,
    /// The names of times that are shown with `+00:00` instead of `Z`.
    pub offset_times: &'a [String],
}

/// One entity to show.
#[derive(Clone, Debug)]
pub struct EntityView<'a, I> {
    pub partition: &'a str,
    pub row: &'a str,
    pub timestamp: DateTime,
    /// Custom properties in the order of the answer. A value that is `None` is left out.
    pub properties: I,
}

/// The answer to a point read or an insert: one entity with its `odata.metadata`.
pub fn write_entity<'a, I, V>(
    out: &mut Vec<u8>,
    context: &EntityContext<'_>,
    entity: EntityView<'a, I>,
    alone: bool,
) where
    I: Iterator<Item = (&'a str, V)>,
    V: Into<Option<ValueRef<'a>>>,
{
    let mut object = Object::open(out);
    if alone && context.level != MetadataLevel::None {
        object.text("odata.metadata", &metadata(context, "/@Element"));
    }
    if context.level == MetadataLevel::Full {
        let link = url::entity_link(context.table, entity.partition, entity.row);
        object.text("odata.type", &format!("{}.{}", context.account, context.table));
        object.text("odata.id", &format!("{}{link}", context.base));
        object.etag(entity.timestamp);
        object.text("odata.editLink", &link);
    } else if context.level == MetadataLevel::Minimal && context.etag_in_minimal {
        object.etag(entity.timestamp);
    }
    let shows = |name: &str| context.select.is_none_or(|select| select.shows(name));
    if shows(names::PARTITION_KEY) {
        object.text(names::PARTITION_KEY, entity.partition);
    }
    if shows(names::ROW_KEY) {
        object.text(names::ROW_KEY, entity.row);
    }
    if shows(names::TIMESTAMP) {
        if context.level == MetadataLevel::Full {
            object.text("Timestamp@odata.type", "Edm.DateTime");
        }
        object.name(names::TIMESTAMP);
        write_value(object.out, ValueRef::DateTime(entity.timestamp));
    }
    match context.select.and_then(Select::names) {
        None => {
            for (name, value) in entity.properties {
                if let Some(value) = value.into() {
                    object.property(context.level, name, value);
                    let is_time = matches!(value, ValueRef::DateTime(_));
                    if is_time && context.offset_times.iter().any(|known| known == name) {
                        object.show_offset();
                    }
                }
            }
        }
        Some(names) => {
            let values = Select::pick(names, entity.properties);
            for (name, value) in names.iter().zip(values) {
                if matches!(name.as_str(), names::PARTITION_KEY | names::ROW_KEY | names::TIMESTAMP) {
                    continue;
                }
                match value {
                    Some(value) => object.property(context.level, name, value),
                    None => object.null(name),
                }
            }
        }
    }
    object.close();
}

/// The body of a request: an entity with its keys, each value with its type unless the JSON implies it.
pub fn write_body<'a>(
    out: &mut Vec<u8>,
    partition: &str,
    row: &str,
    properties: impl Iterator<Item = (&'a str, ValueRef<'a>)>,
) {
    let mut object = Object::open(out);
    object.text(names::PARTITION_KEY, partition);
    object.text(names::ROW_KEY, row);
    for (name, value) in properties {
        // Some servers take 5.0 for an integer if it has no type.
        if matches!(value, ValueRef::Double(number) if number.is_finite()) {
            object.annotation(name, value);
        }
        object.property(MetadataLevel::Minimal, name, value);
    }
    object.close();
}

pub fn write_entity_set_start(out: &mut Vec<u8>, context: &EntityContext<'_>) {
    write_set_start(out, context.level, &metadata(context, ""));
}

pub fn write_entity_set_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"]}");
}

fn write_set_start(out: &mut Vec<u8>, level: MetadataLevel, metadata: &str) {
    out.push(b'{');
    if level != MetadataLevel::None {
        out.extend_from_slice(b"\"odata.metadata\":");
        write_string(out, metadata);
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
}

fn metadata(context: &EntityContext<'_>, element: &str) -> String {
    let select = context.select.map_or(String::new(), Select::metadata_suffix);
    format!("{}$metadata#{}{element}{select}", context.base, context.table)
}

/// One table: the answer to Create Table and to a get of the table.
pub fn write_table(out: &mut Vec<u8>, level: MetadataLevel, base: &str, account: &str, table: &str) {
    let metadata = format!("{base}$metadata#Tables/@Element");
    write_table_object(out, level, Some(&metadata), base, account, table);
}

/// A page of tables.
pub fn write_table_set<'a>(
    out: &mut Vec<u8>,
    level: MetadataLevel,
    base: &str,
    account: &str,
    tables: impl Iterator<Item = &'a str>,
) {
    write_set_start(out, level, &format!("{base}$metadata#Tables"));
    for (index, table) in tables.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_table_object(out, level, None, base, account, table);
    }
    out.extend_from_slice(b"]}");
}

fn write_table_object(
    out: &mut Vec<u8>,
    level: MetadataLevel,
    metadata: Option<&str>,
    base: &str,
    account: &str,
    table: &str,
) {
    let mut object = Object::open(out);
    if let (Some(metadata), true) = (metadata, level != MetadataLevel::None) {
        object.text("odata.metadata", metadata);
    }
    if level == MetadataLevel::Full {
        let link = url::table_link(table);
        object.text("odata.type", &format!("{account}.Tables"));
        object.text("odata.id", &format!("{base}{link}"));
        object.text("odata.editLink", &link);
    }
    object.text(names::TABLE_NAME, table);
    object.close();
}

/// An object being written. It knows whether the next member needs a comma.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
    }

    /// The text of the ETag, with its quotes escaped.
    fn etag(&mut self, timestamp: DateTime) {
        self.name("odata.etag");
        self.out.extend_from_slice(b"\"W/\\\"");
        ETag(timestamp).write_opaque(self.out);
        self.out.extend_from_slice(b"\\\"\"");
    }

    fn name(&mut self, name: &str) {
        self.comma();
        write_string(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_string(self.out, value);
    }

    fn null(&mut self, name: &str) {
        self.name(name);
        self.out.extend_from_slice(b"null");
    }

    fn property(&mut self, level: MetadataLevel, name: &str, value: ValueRef<'_>) {
        let annotated = match value {
            ValueRef::Int64(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Binary(_) => true,
            ValueRef::Double(number) => !number.is_finite(),
            ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => false,
        };
        if annotated && level != MetadataLevel::None {
            self.annotation(name, value);
        }
        self.name(name);
        write_value(self.out, value);
    }

    /// Replaces the `Z` of the time just written by an offset.
    fn show_offset(&mut self) {
        if self.out.ends_with(b"Z\"") {
            self.out.truncate(self.out.len() - 2);
            self.out.extend_from_slice(b"+00:00\"");
        }
    }

    fn annotation(&mut self, name: &str, value: ValueRef<'_>) {
        self.comma();
        self.out.push(b'"');
        write_escaped(self.out, name);
        self.out.extend_from_slice(b"@odata.type\":\"");
        self.out.extend_from_slice(value.edm_type().name().as_bytes());
        self.out.push(b'"');
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(text) => write_string(out, text),
        ValueRef::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Int32(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Int64(value) => {
            quoted(out, |out| out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()));
        }
        ValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        ValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"\"Infinity\""),
        ValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"\"-Infinity\""),
        ValueRef::Double(value) => out.extend_from_slice(format_double(value).as_bytes()),
        ValueRef::DateTime(value) => quoted(out, |out| value.write(out)),
        ValueRef::Guid(value) => quoted(out, |out| value.write(out)),
        ValueRef::Binary(bytes) => {
            quoted(out, |out| out.extend_from_slice(STANDARD.encode(bytes).as_bytes()));
        }
    }
}

/// For text without characters that need escaping.
fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// From this length on, searching for characters to escape is worth its set-up.
const LONG: usize = 32;
const WORD: usize = size_of::<u64>();

/// Whether a byte is written as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=0x7f) && byte != b'"' && byte != b'\\'
}

/// Whether each of eight bytes is. Names and most values have at most sixteen.
fn is_plain_word(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // A borrow can make a byte look special that is not, but only next to a byte that is.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (word | below(word, b' ') | is(b'"') | is(b'\\')) & HIGHS == 0
}

fn word(bytes: &[u8]) -> u64 {
    // Callers pass exactly eight bytes.
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// How far to look ahead. The text after an escaped character is searched again, so without a bound a text of such
/// characters would take quadratic time.
const AHEAD: usize = 256;

/// How many bytes at the start are written as they are. All of them are ASCII, so the cut is between characters.
fn plain_length(bytes: &[u8]) -> usize {
    if bytes.len() >= LONG {
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let bounds = |(least, most): (u8, u8), byte: &u8| (least.min(*byte), most.max(*byte));
        // The compiler vectorizes the search for the smallest and the greatest byte, which decide for most texts.
        return match bytes[..end].iter().fold((u8::MAX, 0), bounds) {
            (b' '.., ..=0x7f) => end,
            _ => bytes.iter().position(|byte| !(b' '..=0x7f).contains(byte)).unwrap_or(end),
        };
    }
    // The last word overlaps the one before it, so no bytes are left over.
    let last = bytes.len().checked_sub(WORD);
    if last.is_some_and(|last| {
        bytes.chunks_exact(WORD).chain([&bytes[last..]]).all(|eight| is_plain_word(word(eight)))
    }) {
        return bytes.len();
    }
    bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len())
}

/// A JSON string as the service writes one: everything beyond ASCII as lower-case `\u` escapes.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let ahead = &rest.as_bytes()[..rest.len().min(AHEAD)];
        // Such characters seldom come alone. If the next one needs escaping too, no search is needed.
        let plain = if is_plain(ahead[0]) { plain_length(ahead) } else { 0 };
        let (plain, special) = rest.split_at(plain);
        out.extend_from_slice(plain.as_bytes());
        if plain.len() == ahead.len() {
            rest = special;
            continue;
        }
        let mut chars = special.chars();
        match chars.next() {
            None => break,
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a Vec can't fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Guid, Value};
    use proptest::prelude::*;

    const BASE: &str = "https://acct1.table.core.windows.net/";

    fn shown(level: MetadataLevel, select: Option<&str>, alone: bool) -> String {
        let select = select.map(|raw| Select::parse(raw).unwrap());
        let context = EntityContext {
            level,
            base: BASE,
            account: "acct1",
            table: "Books",
            select: select.as_ref(),
            etag_in_minimal: true,
            offset_times: &[],
        };
        let properties = [
            ("Title", Value::String("Café Noir".into())),
            ("Year", Value::Int32(1971)),
            ("Price", Value::Double(3.0)),
            ("Sold", Value::Int64(9_000_000_000)),
            ("Odd", Value::Double(f64::NEG_INFINITY)),
            ("Cover", Value::Binary(vec![1, 2, 3])),
            ("Uid", Value::Guid(Guid([0xab; 16]))),
            ("InPrint", Value::Boolean(true)),
        ];
        let view = EntityView {
            partition: "sf",
            row: "o'clock",
            timestamp: DateTime::parse("2021-05-06T07:08:09.12Z").unwrap(),
            properties: properties.iter().map(|(name, value)| (*name, value.as_ref())),
        };
        let mut out = Vec::new();
        write_entity(&mut out, &context, view, alone);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_entity_at_each_level() {
        assert_eq!(
            shown(MetadataLevel::None, None, true),
            r#"{"PartitionKey":"sf","RowKey":"o'clock","Timestamp":"2021-05-06T07:08:09.12Z","Title":"Caf\u00e9 Noir","Year":1971,"Price":3.0,"Sold":"9000000000","Odd":"-Infinity","Cover":"AQID","Uid":"abababab-abab-abab-abab-abababababab","InPrint":true}"#
        );
        assert_eq!(
            shown(MetadataLevel::Minimal, None, true),
            r#"{"odata.metadata":"https://acct1.table.core.windows.net/$metadata#Books/@Element","odata.etag":"W/\"datetime'2021-05-06T07%3A08%3A09.12Z'\"","PartitionKey":"sf","RowKey":"o'clock","Timestamp":"2021-05-06T07:08:09.12Z","Title":"Caf\u00e9 Noir","Year":1971,"Price":3.0,"Sold@odata.type":"Edm.Int64","Sold":"9000000000","Odd@odata.type":"Edm.Double","Odd":"-Infinity","Cover@odata.type":"Edm.Binary","Cover":"AQID","Uid@odata.type":"Edm.Guid","Uid":"abababab-abab-abab-abab-abababababab","InPrint":true}"#
        );
        let full = shown(MetadataLevel::Full, None, false);
        assert!(full.starts_with(r#"{"odata.type":"acct1.Books","odata.id":"https://acct1.table.core.windows.net/Books(PartitionKey='sf',RowKey='o''clock')","odata.etag":"W/\"datetime'2021-05-06T07%3A08%3A09.12Z'\"","odata.editLink":"Books(PartitionKey='sf',RowKey='o''clock')","PartitionKey":"sf","RowKey":"o'clock","Timestamp@odata.type":"Edm.DateTime","Timestamp":"#), "{full}");
    }

    #[test]
    fn select_shows_what_was_chosen_and_null_for_what_is_not_there() {
        assert_eq!(
            shown(MetadataLevel::Minimal, Some("Year,Nope,RowKey"), true),
            r#"{"odata.metadata":"https://acct1.table.core.windows.net/$metadata#Books/@Element&$select=Year,Nope,RowKey","odata.etag":"W/\"datetime'2021-05-06T07%3A08%3A09.12Z'\"","RowKey":"o'clock","Nope":null,"Year":1971}"#
        );
        assert_eq!(shown(MetadataLevel::None, Some("Nope"), false), r#"{"Nope":null}"#);
    }

    #[test]
    fn tables_at_each_level() {
        let one = |level| {
            let mut out = Vec::new();
            write_table(&mut out, level, BASE, "acct1", "Books");
            String::from_utf8(out).unwrap()
        };
        assert_eq!(one(MetadataLevel::None), r#"{"TableName":"Books"}"#);
        assert_eq!(
            one(MetadataLevel::Full),
            r#"{"odata.metadata":"https://acct1.table.core.windows.net/$metadata#Tables/@Element","odata.type":"acct1.Tables","odata.id":"https://acct1.table.core.windows.net/Tables('Books')","odata.editLink":"Tables('Books')","TableName":"Books"}"#
        );
        let mut out = Vec::new();
        write_table_set(&mut out, MetadataLevel::Minimal, BASE, "acct1", ["Books", "Cards"].into_iter());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"odata.metadata":"https://acct1.table.core.windows.net/$metadata#Tables","value":[{"TableName":"Books"},{"TableName":"Cards"}]}"#
        );
    }

    #[test]
    fn strings_are_escaped_as_recorded() {
        let mut out = Vec::new();
        write_string(&mut out, "a\"\\/\n\u{1}é𝄞'<>&\u{7f}");
        assert_eq!(
            out,
            br#""a\"\\/\n\u0001\u00e9\ud834\udd1e'<>&"#.iter().chain(b"\x7f\"").copied().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_must_be_escaped_is_found_wherever_looking_ahead_ends() {
        for length in AHEAD - 3..AHEAD + 3 {
            for special in ["é", "𝄞", "\"", "\n", ""] {
                let text = format!("{}{special}{}{special}", "a".repeat(length), "b".repeat(AHEAD));
                let mut out = Vec::new();
                write_string(&mut out, &text);
                assert!(out.is_ascii());
                assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            }
        }
    }

    proptest! {
        #[test]
        fn long_strings_read_back(text in "[ -~]{0,100}(.|[ -~]{0,40}){0,8}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn a_word_is_plain_if_each_of_its_bytes_is(bytes in prop::array::uniform8(prop_oneof![
            b' '..=0x7f_u8, Just(b'"'), Just(b'\\'), Just(0x1f), Just(b'!'), Just(b'#'), Just(b'['), any::<u8>(),
        ])) {
            prop_assert_eq!(is_plain_word(u64::from_le_bytes(bytes)), bytes.iter().all(|byte| is_plain(*byte)));
        }

        #[test]
        fn etags_are_those_of_the_header(ticks in 0..=DateTime::MAX.ticks()) {
            let time = DateTime::from_ticks(ticks).unwrap();
            let mut out = Vec::new();
            let mut object = Object::open(&mut out);
            object.etag(time);
            object.close();
            let shown: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(shown["odata.etag"].as_str().unwrap(), ETag(time).to_string());
        }

        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
