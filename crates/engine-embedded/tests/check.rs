//! A check finds nothing in a sound store, and says where the damage is in one that is not.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{self, crash, files, hundred_rows, load, open, raw};
use bytes::Bytes;
use engine_embedded::{EmbeddedEngine, OpenError, Options, Report};
use model::{ServiceKind, TableName};
use store::{Change, Condition, Engine, NoObjects, TableRef, Transaction};
use store_suite::{account, insert, key, number, table};
use tempfile::TempDir;

fn check(directory: &Path) -> Report {
    support::check(directory, &NoObjects).unwrap()
}

fn counts(report: &Report) -> Vec<(String, u64)> {
    report.tables.iter().map(|table| (format!("{}/{}", table.account, table.table), table.entities)).collect()
}

fn assert_sound(directory: &Path) -> Report {
    let report = check(directory);
    let shown: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    assert!(report.is_sound(), "{shown:#?}");
    report
}

/// The name, size and modification time of every file, to see that nothing was changed.
fn listing(directory: &Path) -> Vec<(String, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    for place in [directory.to_owned(), directory.join("db")] {
        for entry in fs::read_dir(place).unwrap() {
            let entry = entry.unwrap();
            let data = entry.metadata().unwrap();
            found.push((entry.path().display().to_string(), data.len(), data.modified().unwrap()));
        }
    }
    found.sort();
    found
}

async fn delete(engine: &Arc<EmbeddedEngine>, table: &TableRef, partition: &str, row: &str) {
    let transaction = Transaction::of_one(key(partition, row), Condition::Exists, Change::Delete);
    engine.apply(table, transaction).await.unwrap();
}

async fn replace(engine: &Arc<EmbeddedEngine>, table: &TableRef, partition: &str, row: &str) {
    let transaction = Transaction::of_one(key(partition, row), Condition::Exists, Change::Put(number(2)));
    engine.apply(table, transaction).await.unwrap();
}

/// Accounts, drops, odd keys, replaced and deleted rows; in table files, and then some more in the log.
async fn lively_store(directory: &Path) -> Vec<(String, u64)> {
    let other = TableRef::table(account("second"), TableName::parse("Books").unwrap());
    let engine = open(directory);
    load(&engine, &table("Gone"), 6000).await;
    load(&engine, &table("Big"), 5000).await;
    engine.create_table(&other, None).await.unwrap();
    assert!(
        engine
            .replace_service_metadata(
                &account("second"),
                ServiceKind::Table,
                None,
                Bytes::from_static(b"cors")
            )
            .await
            .unwrap()
    );
    engine.drop_table(&table("Gone")).await.unwrap();
    let odd = ["", " ", "é", "𝄞", "\u{ffff}", "\u{10ffff}", "a'b", "%"];
    for partition in odd {
        for row in odd {
            engine.apply(&other, insert(partition, row, 1)).await.unwrap();
        }
    }
    engine.close().await;
    drop(engine);
    let engine = open(directory);
    for partition in odd {
        replace(&engine, &other, partition, "").await;
        delete(&engine, &other, partition, "𝄞").await;
    }
    engine.create_table(&table("Empty"), None).await.unwrap();
    load(&engine, &table("Dropped"), 100).await;
    engine.drop_table(&table("Dropped")).await.unwrap();
    load(&engine, &table("Dropped"), 200).await;
    crash(engine);
    let expected = [("Big", 5000), ("Dropped", 200), ("Empty", 0)];
    let mut expected: Vec<(String, u64)> =
        expected.into_iter().map(|(name, rows)| (format!("devstoreaccount1/{name}"), rows)).collect();
    expected.push(("second/Books".to_owned(), 56));
    expected
}

#[tokio::test]
async fn an_undamaged_store_is_counted_and_not_changed() {
    let directory = TempDir::new().unwrap();
    let expected = lively_store(directory.path()).await;
    let before = listing(directory.path());
    let report = assert_sound(directory.path());
    assert_eq!(counts(&report), expected);
    assert_eq!(listing(directory.path()), before);
    // And after everything is flushed to table files.
    open(directory.path()).close().await;
    assert_eq!(counts(&assert_sound(directory.path())), expected);
}

#[tokio::test]
async fn a_store_with_many_levels_is_counted() {
    let directory = TempDir::new().unwrap();
    let mut options = Options::new(directory.path());
    (options.block_cache_bytes, options.write_buffer_bytes) = (8 << 20, 2 << 20);
    let engine = Arc::new(EmbeddedEngine::open(options).unwrap());
    load(&engine, &table("Big"), 60_000).await;
    // Replaced in another order, so that files overlap, until some of them do: how soon they are flushed depends on the machine,
    // and a compaction joins them again.
    let mut tables = 0;
    for (done, partition) in (0..600).rev().step_by(3).cycle().take(6000).enumerate() {
        let mut again = hundred_rows(partition);
        let operations = again.operations().iter().cloned();
        let operations =
            operations.map(|operation| store::RowOperation { condition: Condition::Exists, ..operation });
        again = Transaction::new(support::partition_key(partition), operations.collect()).unwrap();
        engine.apply(&table("Big"), again).await.unwrap();
        tables = files(directory.path(), "sst").len();
        if done >= 200 && tables > 3 {
            break;
        }
    }
    crash(engine);
    assert!(tables > 3, "{tables}");
    assert_eq!(counts(&assert_sound(directory.path())), [("devstoreaccount1/Big".to_owned(), 60_000)]);
}

#[tokio::test]
async fn a_new_store_is_sound_and_a_missing_one_is_an_error() {
    let directory = TempDir::new().unwrap();
    let nothing = engine_embedded::check(directory.path(), &NoObjects, &mut |_| {}).unwrap_err();
    assert!(matches!(nothing, OpenError::NoStore { .. }), "{nothing}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let engine = open(directory.path());
    let busy = engine_embedded::check(directory.path(), &NoObjects, &mut |_| {}).unwrap_err();
    assert!(matches!(busy, OpenError::InUse { .. }), "{busy}");
    engine.close().await;
    assert_sound(directory.path());
    fs::write(directory.path().join("FORMAT"), "partita-store 3\n").unwrap();
    let newer = support::check(directory.path(), &NoObjects).unwrap_err();
    assert!(matches!(newer, OpenError::NewerFormat { .. }), "{newer}");
}

#[tokio::test]
async fn a_row_with_a_right_checksum_but_unreadable_content_is_named() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 100).await;
    engine.close().await;
    drop(engine);
    let rocks = raw(directory.path());
    let data = rocks.cf_handle("data").unwrap();
    let first = rocks.iterator_cf(data, rocksdb::IteratorMode::Start).next().unwrap().unwrap().0;
    rocks.put_cf(data, &first, b"nonsense").unwrap();
    // A key in a wrong form, and a key of a table that no record names.
    rocks.put_cf(data, [&first[..16], b"no separator"].concat(), b"").unwrap();
    rocks.put_cf(data, [&[7; 16], &first[16..]].concat(), [1, 0, 64, 79, 228, 33, 16, 217, 8, 0, 0]).unwrap();
    rocks.put_cf(rocks.cf_handle("meta").unwrap(), b"Tshop\0books", b"\x01half").unwrap();
    drop(rocks);
    let damage: Vec<String> = check(directory.path()).damage.iter().map(ToString::to_string).collect();
    let expected = [
        "the meta record \"Tshop/books\" can't be read",
        "a stored row of 8 bytes can't be read; devstoreaccount1/Books(PartitionKey='p00000',RowKey='r00')",
        "the stored key [6e, 6f, 20",
        "1 rows belong to a table that no record names (id 07070707070707070707070707070707)",
    ];
    assert_eq!(damage.len(), expected.len(), "{damage:#?}");
    for part in expected {
        assert!(damage.iter().any(|damage| damage.contains(part)), "{part} is not in {damage:#?}");
    }
}
