//! Checks answers as bytes: parsing every answer would cost more than sending it.

use memchr::memmem;

use crate::data::{DataSet, EntityKeys};
use crate::tally::OperationFailure;

/// One of so many pages is parsed completely.
pub const PARSED_ONE_IN: u64 = 256;

/// Checks the keys and the values of an entity.
pub fn entity(body: &[u8], key: &EntityKeys, data: &DataSet, number: u64) -> Result<(), OperationFailure> {
    let sequence = data.sequence(number).to_string();
    for (name, value) in [
        ("PartitionKey", key.partition.as_str()),
        ("RowKey", &key.row),
        ("Sequence", &sequence),
        ("Notes", data.notes(number)),
    ] {
        if !has(body, name, value) {
            let EntityKeys { partition, row } = key;
            let what = format!("entity '{partition}' '{row}' has not {name} = {value:?} in its answer");
            return Err(OperationFailure::wrong(what, body));
        }
    }
    Ok(())
}

/// Whether the text property has this value. `name":"` occurs only once, so the first occurrence decides.
fn has(body: &[u8], name: &str, value: &str) -> bool {
    let Some(at) = memmem::find(body, name.as_bytes()) else { return false };
    let rest = &body[at + name.len()..];
    let rest = rest.strip_prefix(b"\":\"").and_then(|rest| rest.strip_prefix(value.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&b'"'))
}

/// Checks the number of entities of a page, and a value of the first.
pub fn page(body: &[u8], rows: u64, name: &str, first: &str, parse: bool) -> Result<(), OperationFailure> {
    let found = memmem::find_iter(body, &format!("\"{name}\":")).count() as u64;
    if found != rows {
        return Err(OperationFailure::wrong(format!("a page has {found} entities instead of {rows}"), body));
    }
    if !has(body, name, first) {
        return Err(OperationFailure::wrong(format!("a page does not begin with {name} = {first:?}"), body));
    }
    if parse {
        let parsed: Result<Document, _> = serde_json::from_slice(body);
        match parsed {
            Ok(document) if document.value.len() as u64 == rows => {}
            Ok(document) => {
                let what = format!("a page parses to {} entities instead of {rows}", document.value.len());
                return Err(OperationFailure::wrong(what, body));
            }
            Err(error) => return Err(OperationFailure::wrong(format!("a page is not JSON: {error}"), body)),
        }
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Document {
    value: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// Checks the names of a list: numbers of two digits from 0 on, between a prefix and an end.
pub fn names(body: &[u8], prefix: &str, end: &str, expected: u64) -> Result<(), OperationFailure> {
    let mut found = 0;
    for at in memmem::find_iter(body, b"<Name>") {
        let rest = &body[at + b"<Name>".len()..];
        let rest = rest
            .strip_prefix(prefix.as_bytes())
            .and_then(|rest| rest.strip_prefix(format!("{found:02}{end}").as_bytes()));
        if !rest.is_some_and(|rest| rest.starts_with(b"</Name>")) {
            let what = format!("name {found} of the list of {prefix} is another");
            return Err(OperationFailure::wrong(what, &body[at..]));
        }
        found += 1;
    }
    if found == expected {
        return Ok(());
    }
    Err(OperationFailure::wrong(
        format!("the list of {prefix} has {found} names instead of {expected}"),
        body,
    ))
}

/// The pages of one query.
#[derive(Debug, Default)]
pub struct Pages {
    found: u64,
}

impl Pages {
    pub fn add(&mut self, body: &[u8]) {
        self.found += memmem::find_iter(body, b"\"RowKey\":").count() as u64;
    }

    pub fn expect(&self, entities: u64, trust: bool) -> Result<(), OperationFailure> {
        if trust || self.found == entities {
            return Ok(());
        }
        Err(OperationFailure::wrong(
            format!("a query found {} entities instead of {entities}", self.found),
            b"",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_entity_is_detected() {
        let data = DataSet::new(1000, 1024).unwrap();
        let mut key = EntityKeys::default();
        key.of(&data, 5);
        let mut body = Vec::new();
        data.write_entity(&mut body, &key, 5);
        assert!(entity(&body, &key, &data, 5).is_ok());
        assert!(entity(&body, &key, &data, 6).is_err(), "other values");
        let mut other = key.clone();
        other.row.push('1');
        assert!(entity(&body, &other, &data, 5).is_err(), "a longer row key");
        other.row = key.row[..key.row.len() - 1].to_owned();
        assert!(entity(&body, &other, &data, 5).is_err(), "the beginning of a row key");
        assert!(entity(&body[..body.len() - 2], &key, &data, 5).is_err(), "cut off");
    }

    #[test]
    fn every_name_of_a_list_is_checked() {
        let list =
            |names: &[&str]| names.iter().map(|name| format!("<Name>{name}</Name>")).collect::<String>();
        let check = |found: &[&str], end: &str| names(list(found).as_bytes(), "a/", end, 2).is_ok();
        assert!(check(&["a/00", "a/01"], ""));
        assert!(check(&["a/00/", "a/01/"], "/"));
        for other in [
            &["a/00"] as &[_],
            &["a/00", "a/02"],
            &["a/00", "a/010"],
            &["a/00", "b/01"],
            &["a/00", "a/01", "a/02"],
        ] {
            assert!(!check(other, ""), "{other:?}");
        }
    }

    #[test]
    fn pages_are_counted_and_parsed() {
        let check = |body: &str, (name, first): (&str, &str), parse, expected: Result<(), &str>| {
            let got = page(body.as_bytes(), 2, name, first, parse).map_err(|failure| failure.sample);
            match expected {
                Ok(()) => assert_eq!(got, Ok(())),
                Err(text) => assert!(got.as_ref().is_err_and(|sample| sample.contains(text)), "{got:?}"),
            }
        };
        let two = r#"{"value":[{"RowKey":"a"},{"RowKey":"b"}]}"#;
        check(two, ("RowKey", "a"), true, Ok(()));
        check(two, ("RowKey", "b"), false, Err("does not begin with RowKey = \"b\""));
        check(r#"{"value":[{"RowKey":"a"}]}"#, ("RowKey", "a"), false, Err("has 1 entities instead of 2"));
        check(&two[..two.len() - 1], ("RowKey", "a"), false, Ok(()));
        check(&two[..two.len() - 1], ("RowKey", "a"), true, Err("is not JSON"));
        check(r#"{"value":[{"Sequence":"1"},{"Sequence":"2"}]}"#, ("Sequence", "1"), true, Ok(()));
    }
}
