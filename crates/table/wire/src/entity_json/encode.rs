//! Writes answers as JSON, straight from the stored values, without a document in between.

use model::{DateTime, UnreadName as _, UnreadProperties, ValueRef};

use super::object::Object;
use super::text::{write_plain_string, write_string};
use super::written_names::{self, WrittenNames};
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
    /// Custom properties in the order of the answer. What can't be read is left out.
    pub properties: I,
}

/// The answer to a point read or an insert: one entity with its `odata.metadata`.
pub fn write_entity<'a, I>(out: &mut Vec<u8>, context: &EntityContext<'_>, entity: EntityView<'a, I>)
where
    I: UnreadProperties<'a>,
{
    // Chosen properties are seldom the same ones next time.
    let is_remembered = context.select.is_none();
    let names = if is_remembered { written_names::take(context) } else { WrittenNames::forgetting() };
    let mut writer = EntityWriter { names, ..EntityWriter::new(context) };
    let mut object = Object::open(out);
    if context.level != MetadataLevel::None {
        object.text("odata.metadata", &metadata(context, "/@Element"));
    }
    writer.write_members(object, entity);
    if is_remembered {
        written_names::keep(context, writer.names);
    }
}

/// Writes the entities of one answer, and remembers what they have in common.
#[derive(Debug)]
pub struct EntityWriter<'c> {
    context: &'c EntityContext<'c>,
    names: WrittenNames,
    shows_partition: bool,
    shows_row: bool,
    shows_timestamp: bool,
    shows_etag: bool,
    /// The chosen custom properties in ordinal order; `None` for all.
    chosen: Option<Vec<&'c str>>,
}

/// Most answers show all properties or a few chosen ones. More of them are looked up in a list made for each entity.
const FEW: usize = 8;

impl<'c> EntityWriter<'c> {
    pub fn new(context: &'c EntityContext<'c>) -> Self {
        let shows = |name| context.select.is_none_or(|select| select.shows(name));
        Self {
            context,
            names: WrittenNames::default(),
            shows_partition: shows(names::PARTITION_KEY),
            shows_row: shows(names::ROW_KEY),
            shows_timestamp: shows(names::TIMESTAMP),
            shows_etag: match context.level {
                MetadataLevel::None => false,
                MetadataLevel::Minimal => context.etag_in_minimal,
                MetadataLevel::Full => true,
            },
            chosen: context.select.and_then(Select::custom_names),
        }
    }

    pub fn write<'a, I>(&mut self, out: &mut Vec<u8>, entity: EntityView<'a, I>)
    where
        I: UnreadProperties<'a>,
    {
        self.write_members(Object::open(out), entity);
    }

    fn write_members<'a, I>(&mut self, mut object: Object<'_>, entity: EntityView<'a, I>)
    where
        I: UnreadProperties<'a>,
    {
        let context = self.context;
        // The ETag is the timestamp in other letters.
        let time = (self.shows_etag || self.shows_timestamp).then(|| entity.timestamp.text());
        let etag = time.as_ref().filter(|_| self.shows_etag);
        if context.level == MetadataLevel::Full {
            let link = url::entity_link(context.table, entity.partition, entity.row);
            object.text("odata.type", &format!("{}.{}", context.account, context.table));
            object.text("odata.id", &format!("{}{link}", context.base));
            etag.inspect(|time| object.etag(time));
            object.text("odata.editLink", &link);
        } else {
            etag.inspect(|time| object.etag(time));
        }
        if self.shows_partition {
            object.literal_name(b"\"PartitionKey\":");
            write_string(object.out, entity.partition);
        }
        if self.shows_row {
            object.literal_name(b"\"RowKey\":");
            write_string(object.out, entity.row);
        }
        if let Some((text, length)) = time.filter(|_| self.shows_timestamp) {
            if context.level == MetadataLevel::Full {
                object.text("Timestamp@odata.type", "Edm.DateTime");
            }
            object.literal_name(b"\"Timestamp\":");
            write_plain_string(object.out, &text[..length]);
        }
        match &self.chosen {
            None => {
                let mut properties = entity.properties;
                for place in 0.. {
                    // The keys are before the properties, so none of them is the first member.
                    if let Some(last) = self.names.last_at(place)
                        && let Some(value) = properties.next_like(&last.spelled)
                    {
                        let read = object.alike(context.level, last, value);
                        show_offset(&mut object, context, read, last.name.as_bytes());
                    } else if let Some((name, value)) = properties.next() {
                        let read = object.unread(context.level, &mut self.names, place, name, value);
                        show_offset(&mut object, context, read, name.bytes());
                    } else {
                        break;
                    }
                }
            }
            Some(chosen) => {
                let (mut few, mut many) = ([None; FEW], Vec::new());
                let found = if chosen.len() <= FEW {
                    &mut few[..chosen.len()]
                } else {
                    many.resize(chosen.len(), None);
                    &mut many[..]
                };
                Select::pick(chosen, entity.properties, found);
                for (place, (name, value)) in chosen.iter().zip(found).enumerate() {
                    match *value {
                        Some(value) => {
                            object.unread(context.level, &mut self.names, place, *name, value);
                        }
                        None => object.null(name),
                    }
                }
            }
        }
        object.close();
    }
}

/// Shows the value just written with an offset if it is one of the times to be shown so.
#[inline]
fn show_offset(
    object: &mut Object<'_>,
    context: &EntityContext<'_>,
    read: Option<ValueRef<'_>>,
    name: &[u8],
) {
    if matches!(read, Some(ValueRef::DateTime(_)))
        && context.offset_times.iter().any(|known| known.as_bytes() == name)
    {
        object.show_offset();
    }
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
            object.annotation(name, value.edm_type());
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
        if alone {
            write_entity(&mut out, &context, view);
        } else {
            EntityWriter::new(&context).write(&mut out, view);
        }
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

    /// Few names and types, so that entities often have the same ones, and often nearly the same.
    fn properties() -> impl Strategy<Value = Vec<(String, Value)>> {
        let value = prop_oneof![
            prop_oneof![Just("plain".to_owned()), Just("é\"".to_owned())].prop_map(Value::String),
            Just(Value::Int32(-1)),
            Just(Value::Int64(2)),
            prop_oneof![Just(Value::Double(1.5)), Just(Value::Double(f64::NAN))],
            Just(Value::Binary(vec![1, 2, 3, 4])),
        ];
        let name = prop_oneof![
            Just("A".to_owned()),
            Just("Aé".to_owned()),
            Just("B\"".to_owned()),
            Just("a".repeat(600))
        ];
        proptest::collection::vec((name, value), 0..4)
    }

    /// A property with stored bytes of its name and type.
    #[derive(Clone, Debug)]
    struct Stored<'a> {
        name: &'a str,
        value: ValueRef<'a>,
        spelled: Vec<u8>,
    }

    impl<'a> Stored<'a> {
        fn new(name: &'a str, value: ValueRef<'a>) -> Self {
            let spelled = [&[value.edm_type() as u8 + 1], name.as_bytes()].concat();
            Self { name, value, spelled }
        }
    }

    #[derive(Clone, Copy)]
    struct StoredName<'a>(&'a str, &'a [u8]);

    impl<'a> model::UnreadName<'a> for StoredName<'a> {
        fn bytes(self) -> &'a [u8] {
            self.0.as_bytes()
        }

        fn spelled(self) -> &'a [u8] {
            self.1
        }

        fn text(self) -> Option<&'a str> {
            Some(self.0)
        }
    }

    struct StoredList<'a>(std::slice::Iter<'a, Stored<'a>>);

    impl<'a> Iterator for StoredList<'a> {
        type Item = (StoredName<'a>, ValueRef<'a>);

        fn next(&mut self) -> Option<Self::Item> {
            self.0.next().map(|stored| (StoredName(stored.name, &stored.spelled), stored.value))
        }
    }

    impl<'a> UnreadProperties<'a> for StoredList<'a> {
        type Name = StoredName<'a>;
        type Value = ValueRef<'a>;

        fn next_like(&mut self, spelled: &[u8]) -> Option<ValueRef<'a>> {
            let next = self.0.as_slice().first().filter(|next| next.spelled == spelled)?;
            self.0.next();
            Some(next.value)
        }
    }

    proptest! {
        #[test]
        fn what_is_spelled_alike_is_written_alike(
            entities in proptest::collection::vec(properties(), 0..6),
            level in prop_oneof![Just(MetadataLevel::None), Just(MetadataLevel::Minimal), Just(MetadataLevel::Full)],
        ) {
            let context = EntityContext {
                level, base: BASE, account: "acct1", table: "Books", select: None, etag_in_minimal: true, offset_times: &[],
            };
            let mut writer = EntityWriter::new(&context);
            for entity in entities {
                let stored: Vec<_> = entity.iter().map(|(name, value)| Stored::new(name, value.as_ref())).collect();
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                let view = |properties| EntityView { partition: "p", row: "r", timestamp: DateTime::MIN_STORED, properties };
                writer.write(&mut out, view(StoredList(stored.iter())));
                let plain = entity.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
                let EntityView { partition, row, timestamp, .. } = view(StoredList([].iter()));
                EntityWriter::new(&context).write(&mut expected, EntityView { partition, row, timestamp, properties: plain });
                prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
            }
        }

        #[test]
        fn what_is_remembered_does_not_show(
            entities in proptest::collection::vec(properties(), 0..6),
            level in prop_oneof![Just(MetadataLevel::None), Just(MetadataLevel::Minimal), Just(MetadataLevel::Full)],
            select in prop_oneof![Just(None), Just(Some("RowKey,Aé,A,Nope"))],
        ) {
            let select = select.map(|raw| Select::parse(raw).unwrap());
            let context = EntityContext {
                level, base: BASE, account: "acct1", table: "Books", select: select.as_ref(), etag_in_minimal: true, offset_times: &[],
            };
            let write = |writer: &mut EntityWriter<'_>, properties: &[(String, Value)]| {
                let mut out = Vec::new();
                let properties = properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
                writer.write(&mut out, EntityView { partition: "p", row: "r", timestamp: DateTime::MIN_STORED, properties });
                String::from_utf8(out).unwrap()
            };
            let mut writer = EntityWriter::new(&context);
            for entity in entities {
                prop_assert_eq!(write(&mut writer, &entity), write(&mut EntityWriter::new(&context), &entity));
            }
        }
    }
}
