//! What several targets check: an entity reads back from an answer as it was stored, and a refusal is a document that
//! clients can read, whatever it quotes.

use model::{DateTime, Entity, Refusal, Value, ValueRef};
use quick_xml::Reader;
use quick_xml::events::Event;
use store::{RowDraft, StoredRow};
use wire::atom::{self, AtomContext, AtomDialect, AtomEntry, AtomValue};
use wire::entity_json::{self, EntityContext, EntityView};
use wire::error_body::ErrorText;
use wire::format::BodyFormat;
use wire::{EntityBody, MetadataLevel, url};

const BASE: &str = "http://127.0.0.1:10002/shop/";
const TABLE: &str = "Books";

/// Stores an entity, reads it from its stored bytes, shows it in every format and reads it as a client: nothing changes on
/// the way.
pub fn check_entity(entity: &Entity<'_>, timestamp: DateTime) {
    let row = RowDraft::new(entity.properties.iter()).stamp(timestamp);
    let stored = StoredRow::new(row.as_bytes().to_vec());
    let (partition, row_key) = (entity.key.partition.as_str(), entity.key.row.as_str());
    let expected = told(entity.properties.iter());
    let opened = stored.raw().open().expect("an encoded row opens");
    assert_eq!(told(opened.properties()), expected, "stored");

    for level in [MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full] {
        let context = EntityContext {
            level,
            base: BASE,
            account: "shop",
            table: TABLE,
            select: None,
            offset_times: &[],
            etag_in_minimal: true,
        };
        let mut shown = Vec::new();
        stored
            .show(|timestamp, properties| {
                let view = EntityView { partition, row: row_key, timestamp, properties };
                entity_json::write_entity(&mut shown, &context, view);
            })
            .expect("an encoded row is shown");
        let text = String::from_utf8_lossy(&shown);
        let json: Result<serde_json::Value, _> = serde_json::from_slice(&shown);
        assert!(json.is_ok_and(|json| json.is_object()), "{text}");
        // Without metadata the types are lost, as the client asked.
        if level != MetadataLevel::None {
            check_read_back(BodyFormat::Json, &shown, entity, &expected);
        }
    }
    for dialect in [AtomDialect::V2011, AtomDialect::V2014] {
        let context = AtomContext {
            dialect,
            spatial_namespaces: true,
            base: BASE,
            account: "shop",
            set: TABLE,
            now: timestamp,
        };
        let link = url::entity_link(TABLE, partition, row_key);
        let keys = [("PartitionKey", ValueRef::String(partition)), ("RowKey", ValueRef::String(row_key))];
        let properties = keys.into_iter().chain(entity.properties.iter());
        let entry = AtomEntry {
            relative_url: &link,
            etag: Some("W/\"datetime'x'\"".to_owned()),
            properties: properties.map(|(name, value)| (name, AtomValue::Value(value))),
        };
        let mut shown = Vec::new();
        atom::write_entry(&mut shown, &context, entry);
        check_read_back(BodyFormat::Atom, &shown, entity, &expected);
    }
}

fn check_read_back(format: BodyFormat, shown: &[u8], entity: &Entity<'_>, expected: &[(String, Told)]) {
    let text = String::from_utf8_lossy(shown);
    let body = EntityBody::read(format, shown).unwrap_or_else(|refusal| panic!("{refusal:?}: {text}"));
    let read = body.into_entity().unwrap_or_else(|refusal| panic!("{refusal:?}: {text}"));
    assert_eq!(read.key, entity.key, "{text}");
    assert_eq!(told(read.properties.iter()), expected, "{text}");
}

/// A value that equals itself even if it is NaN. All NaNs are equal: they have the same text.
#[derive(Debug, PartialEq)]
pub enum Told {
    NotANumber,
    Value(Value),
}

pub fn told<'a>(properties: impl Iterator<Item = (&'a str, ValueRef<'a>)>) -> Vec<(String, Told)> {
    let tell = |value: ValueRef<'_>| match value {
        ValueRef::Double(number) if number.is_nan() => Told::NotANumber,
        value => Told::Value(value.to_owned()),
    };
    properties.map(|(name, value)| (name.to_owned(), tell(value))).collect()
}

/// Many refusals quote what was sent.
pub fn check_refusal(refusal: &Refusal) {
    assert!((400..600).contains(&refusal.status()), "{refusal:?}");
    let error = ErrorText::new(refusal, Some(0), "id", DateTime::MIN_STORED);
    let json: Result<serde_json::Value, _> = serde_json::from_slice(&error.json());
    assert!(json.is_ok(), "{refusal:?}");
    for document in [error.xml(), error.old_xml(), error.front_end_xml(), error.version_xml()] {
        let text = String::from_utf8(document).expect("a document is UTF-8");
        assert!(
            !text.contains(|c: char| c < ' ' && !"\t\r\n".contains(c)),
            "{text:?} holds what XML has no place for"
        );
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        while reader.read_event().unwrap_or_else(|error| panic!("{error}: {text:?}")) != Event::Eof {}
    }
}

/// The lines of an input with several texts. Missing lines are empty.
pub fn lines<const N: usize>(input: &str) -> [&str; N] {
    let mut lines = input.splitn(N, '\n');
    std::array::from_fn(|_| lines.next().unwrap_or_default())
}
