//! Rows and keys that are nearly as they were stored: every way of reading them agrees on what they are, or that they are
//! damaged.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use model::{DateTime, EntityKey, Guid, Key, UnreadName as _, UnreadValue as _, Value, ValueRef};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use store::encoding::key;
use store::{RawRow, RowDraft, StoredRow};
use testing::{Reading, bytes_near, check_near};

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-zé𝄞]{0,9}".prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<f64>().prop_map(Value::Double),
        (0..=DateTime::MAX.ticks()).prop_map(|ticks| Value::DateTime(DateTime::from_ticks(ticks).unwrap())),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
        vec(any::<u8>(), 0..200).prop_map(Value::Binary),
    ]
}

fn row() -> impl Strategy<Value = Vec<u8>> {
    (btree_map("[A-Cé]{1,2}", value(), 0..6), 0..=DateTime::MAX.ticks()).prop_map(|(properties, ticks)| {
        let properties = properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        RowDraft::new(properties).stamp(DateTime::from_ticks(ticks).unwrap()).as_bytes().to_vec()
    })
}

fn owned<'a>(properties: impl Iterator<Item = (&'a str, ValueRef<'a>)>) -> Vec<(String, Value)> {
    properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn all_ways_of_reading_a_row_agree() {
    check_near(bytes_near(row()), 10..=70, |bytes| {
        let raw = RawRow::new(&bytes);
        let shown = StoredRow::new(bytes.clone()).show(|stamp, properties| {
            let read = properties.filter_map(|(name, value)| name.text().zip(value.value()));
            (stamp, owned(read))
        });
        let opened = raw.open();
        prop_assert_eq!(shown.is_ok(), opened.is_ok(), "shown as damaged exactly if it can't be opened");
        let Ok(row) = opened else { return Ok(Reading::Refused) };
        let properties = owned(row.properties());
        prop_assert_eq!(shown.unwrap(), (row.timestamp(), properties.clone()));
        prop_assert_eq!(raw.timestamp().unwrap(), row.timestamp());
        prop_assert_eq!(row.properties().len(), properties.len());
        // Two of a name are no row that was ever written, but each way of reading takes the first.
        for (name, _) in &properties {
            let mut found = [None, None];
            raw.find(&[name.as_str(), "Missing"], &mut found).unwrap();
            prop_assert_eq!(found, [row.property(name), None]);
            prop_assert_eq!(raw.value_of(name.as_bytes()).unwrap(), row.property(name));
        }
        Ok(Reading::Accepted)
    });
}

#[test]
fn a_row_that_can_be_read_is_read_the_same_after_it_is_written_again() {
    check_near(bytes_near(row()), 10..=70, |bytes| {
        let Ok(row) = RawRow::new(&bytes).open() else { return Ok(Reading::Refused) };
        let again = RowDraft::new(row.properties()).stamp(row.timestamp());
        prop_assert_eq!(again.timestamp(), row.timestamp());
        prop_assert_eq!(owned(again.view().properties()), owned(row.properties()));
        Ok(Reading::Accepted)
    });
}

#[test]
fn a_filter_finds_in_a_damaged_row_what_is_there_or_a_fault() {
    // Which properties come before the damage is not known here, so a row that can't be opened may still answer.
    check_near(bytes_near(row()), 15..=90, |bytes| {
        let raw = RawRow::new(&bytes);
        let mut found = [None; 3];
        let searched = raw.find(&["A", "B", "C"], &mut found);
        if let Ok(row) = raw.open() {
            prop_assert!(searched.is_ok());
            prop_assert_eq!(found, ["A", "B", "C"].map(|name| row.property(name)));
        }
        Ok(Reading::of(&searched))
    });
}

fn entity_key() -> impl Strategy<Value = Vec<u8>> {
    let part = || "[a-d]{0,6}|[ab/ é\u{7f}\u{e000}\u{ffff}𝄞]{0,4}";
    (part(), part())
        .prop_map(|(partition, row)| key::encode(&EntityKey::parse_stored(&partition, &row).unwrap()))
}

#[test]
fn a_stored_key_is_read_as_a_key_exactly_if_both_of_its_texts_are_keys() {
    check_near(bytes_near(entity_key()), 10..=80, |bytes| {
        let read = key::decode_key(&bytes);
        let texts = key::decode(&bytes).ok();
        let both = texts.as_ref().is_some_and(|(partition, row)| {
            Key::parse_stored(partition.as_ref()).is_ok() && Key::parse_stored(row.as_ref()).is_ok()
        });
        prop_assert_eq!(read.is_ok(), both);
        if let Ok(read) = &read {
            let (partition, row) = texts.unwrap();
            prop_assert_eq!((read.partition.as_str(), read.row.as_str()), (&*partition, &*row));
            prop_assert_eq!(&key::decode_key(&key::encode(read)).unwrap(), read);
        }
        Ok(Reading::of(&read))
    });
}
