//! The bytes on disk are those of `docs/storage-format.md`.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;

use crate::support::{open, raw};
use bytes::Bytes;
use model::{ServiceKind, Value};
use rocksdb::{DB, IteratorMode};
use store::{Change, Condition, Engine, Transaction};
use store_suite::{account, draft, key, table};
use tempfile::TempDir;

type Entry = (Box<[u8]>, Box<[u8]>);

fn entries(raw: &DB, family: &str) -> Vec<Entry> {
    let family = raw.cf_handle(family).unwrap();
    raw.iterator_cf(family, IteratorMode::Start).map(Result::unwrap).collect()
}

#[tokio::test]
async fn bytes_are_as_documented() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.create_table(&table("Notes"), None).await.unwrap();
    assert!(engine.replace_table_metadata(&table("Notes"), None, Bytes::from_static(b"acl")).await.unwrap());
    assert!(
        engine
            .replace_service_metadata(
                &account("another"),
                ServiceKind::Table,
                None,
                Bytes::from_static(b"cors")
            )
            .await
            .unwrap()
    );
    let row = draft(&[("Name", Value::String("Ada".into())), ("Age", Value::Int32(36))]);
    let put = |partition, row_key| {
        Transaction::of_one(key(partition, row_key), Condition::Absent, Change::Put(row.clone()))
    };
    engine.apply(&table("Books"), put("𝄞", "")).await.unwrap();
    let stamp = engine.apply(&table("Books"), put("Köln", "7")).await.unwrap()[0];
    engine.close().await;

    assert_eq!(fs::read(directory.path().join("FORMAT")).unwrap(), b"partita-store 2\n");
    let counter = 6_u64;
    let committed = [counter.to_le_bytes(), (!counter).to_le_bytes()].concat();
    assert_eq!(fs::read(directory.path().join("committed")).unwrap(), committed);

    let raw = raw(directory.path());
    let meta = entries(&raw, "meta");
    let keys: Vec<&[u8]> = meta.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, [&b"C"[..], b"S\x01another", b"Tdevstoreaccount1\0books", b"Tdevstoreaccount1\0notes"]);
    let commit = [&[1][..], &counter.to_le_bytes(), &stamp.ticks().to_le_bytes()].concat();
    assert_eq!(*meta[0].1, commit);
    assert_eq!(*meta[1].1, *b"\x02\x01\x04cors");
    let (books, notes) = (&meta[2].1, &meta[3].1);
    assert_eq!((&books[..3], &books[19..]), (&b"\x02\x01\x10"[..], &b"\x02\x05Books"[..]));
    assert_eq!((&notes[..3], &notes[19..]), (&b"\x02\x01\x10"[..], &b"\x02\x05Notes\x03\x03acl"[..]));
    assert_ne!(books[3..19], notes[3..19]);

    let data = entries(&raw, "data");
    let id = &books[3..19];
    assert_eq!(*data[0].0, [id, b"\x4b\xc3\xb6\x6c\x6e\x00\x37"].concat());
    assert_eq!(*data[1].0, [id, b"\xed\xa0\xb4\xed\xb4\x9e\x00"].concat());
    let properties = b"\x02\x0c\x01\x04Name\x03\x03\x03AgeAda\x24\x00\x00\x00";
    assert_eq!(*data[0].1, [&[1][..], &stamp.ticks().to_le_bytes(), properties].concat());
    assert_eq!((data.len(), data[0].1.len()), (2, 30));
}

/// A later version may add fields to records. A version that does not know them keeps them when it changes the record.
#[tokio::test]
async fn unknown_fields_stay_when_a_record_is_written_again() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let mine = account("devstoreaccount1");
    assert!(
        engine
            .replace_service_metadata(&mine, ServiceKind::Table, None, Bytes::from_static(b"old"))
            .await
            .unwrap()
    );
    engine.close().await;
    drop(engine);
    let keys = [&b"S\x01devstoreaccount1"[..], b"Tdevstoreaccount1\0books"];
    let unknown = b"\x7f\x05later";
    let rocks = raw(directory.path());
    for (key, value) in entries(&rocks, "meta").into_iter().filter(|(key, _)| keys.contains(&&**key)) {
        rocks.put_cf(rocks.cf_handle("meta").unwrap(), key, [&value[..], unknown].concat()).unwrap();
    }
    drop(rocks);
    let engine = open(directory.path());
    assert!(engine.replace_table_metadata(&table("Books"), None, Bytes::from_static(b"acl")).await.unwrap());
    let old = Some(Bytes::from_static(b"old"));
    assert!(
        engine
            .replace_service_metadata(&mine, ServiceKind::Table, old, Bytes::from_static(b"new"))
            .await
            .unwrap()
    );
    engine.close().await;
    drop(engine);
    let found = entries(&raw(directory.path()), "meta");
    let found: Vec<_> = found.into_iter().filter(|(key, _)| keys.contains(&&**key)).collect();
    assert_eq!(*found[0].1, [&b"\x02\x01\x03new"[..], unknown].concat());
    assert_eq!(found[1].1[19..], [&b"\x02\x05Books\x03\x03acl"[..], unknown].concat());
}
