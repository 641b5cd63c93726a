//! Rows that were stamped by another engine are loaded as they are.

use model::{DateTime, Key, KeyRange, Value};
use store::{Change, Condition, Error, FaultKind, StoredRow, TableRef, Transaction};

use crate::Shared;
use crate::fixtures::{account, created, draft, fault_kind, insert, key, keys, number, scan, value_of};

/// A row as another engine may have stored it, this many seconds ago or, if negative, in the future.
fn stored(properties: &[(&str, Value)], seconds_ago: i64) -> StoredRow {
    let ticks = DateTime::now().ticks() - seconds_ago * 10_000_000;
    StoredRow::new(draft(properties).stamp(DateTime::from_ticks(ticks).unwrap()).as_bytes().to_vec())
}

fn partition(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// All rows of the table.
async fn contents(engine: &Shared, table: &TableRef) -> Vec<(String, Vec<u8>)> {
    let page = engine.scan(table, scan(vec![KeyRange::all()], 1000)).await.unwrap();
    let rows = page.entities.iter().map(|entity| entity.row.bytes().to_vec());
    keys(&page).into_iter().zip(rows).collect()
}

pub async fn loaded_rows_are_read_back_byte_for_byte(engine: Shared) {
    let table = created(&engine, "Books").await;
    let shapes = [
        vec![],
        vec![("Z", Value::Int32(1)), ("A", Value::String("é𝄞".to_owned()))],
        vec![("B", Value::Binary(vec![7; 60_000])), ("C", Value::Binary(vec![8; 60_000]))],
    ];
    let mut expected = Vec::new();
    for owner in ["", "p", "é𝄞"] {
        let rows: Vec<(Key, StoredRow)> = (0..model::limits::BATCH_OPERATIONS_MAX)
            .map(|n| {
                (partition(&format!("r{n:03}")), stored(&shapes[n % if n < 9 { 3 } else { 2 }], n as i64))
            })
            .collect();
        expected.extend(
            rows.iter()
                .map(|(row, stored)| (format!("{owner}|{}", row.as_str()), stored.raw().bytes().to_vec())),
        );
        let rows = rows.into_iter().map(|(row, stored)| (row, Some(stored))).collect::<Vec<_>>();
        // A caller that got no answer tries again.
        engine.load(&table, &partition(owner), rows.clone()).await.unwrap();
        engine.load(&table, &partition(owner), rows).await.unwrap();
    }
    assert_eq!(contents(&engine, &table).await, expected);
    let got = engine.get(&table, &key("p", "r001")).await.unwrap().unwrap();
    assert_eq!(got.raw().bytes(), expected[101].1);
    let version = got.raw().timestamp().unwrap();
    let update = Transaction::of_one(key("p", "r001"), Condition::Version(version), Change::Merge(number(1)));
    assert!(engine.apply(&table, update).await.unwrap()[0] > version);
    let gone = TableRef { account: account("another"), ..table };
    let refused = engine.load(&gone, &partition("p"), vec![(partition("r"), Some(stored(&[], 0)))]).await;
    assert!(matches!(refused, Err(Error::TableNotFound)));
}

pub async fn loading_replaces_and_removes(engine: Shared) {
    let table = created(&engine, "Books").await;
    for row in ["a", "b", "c"] {
        engine.apply(&table, insert("p", row, 1)).await.unwrap();
    }
    // Older than the row that it replaces.
    let old = stored(&[("N", Value::Int32(7))], 1_000_000);
    let rows = vec![
        (partition("a"), Some(old.clone())),
        (partition("b"), None),
        (partition("d"), Some(old.clone())),
        (partition("missing"), None),
    ];
    engine.load(&table, &partition("p"), rows).await.unwrap();
    let found = contents(&engine, &table).await;
    let old = old.raw().bytes();
    assert_eq!((found[0].0.as_str(), &found[0].1[..]), ("p|a", old));
    assert_eq!((found[1].0.as_str(), found[1].1 == old), ("p|c", false));
    assert_eq!((found[2].0.as_str(), &found[2].1[..]), ("p|d", old));
    assert_eq!(found.len(), 3);
    let again = engine.apply(&table, insert("p", "b", 2)).await;
    assert!(again.is_ok(), "a condition must not see the removed row: {again:?}");
    let rows = ["a", "b", "c", "d"].map(|row| (partition(row), None));
    engine.load(&table, &partition("p"), rows.to_vec()).await.unwrap();
    assert_eq!(contents(&engine, &table).await, []);
}

pub async fn later_timestamps_are_above_loaded_ones(engine: Shared) {
    let table = created(&engine, "Books").await;
    for (row, seconds_ago) in [("past", 1_000), ("now", 0), ("future", -100_000)] {
        let loaded = stored(&[("N", Value::Int32(1))], seconds_ago);
        let stamp = loaded.raw().timestamp().unwrap();
        engine.load(&table, &partition("p"), vec![(partition(row), Some(loaded))]).await.unwrap();
        for (change, number) in [(Change::Merge(number(2)), 2), (Change::Put(number(3)), 3)] {
            let write = Transaction::of_one(key("p", row), Condition::Anything, change);
            let later = engine.apply(&table, write).await.unwrap()[0];
            assert!(later > stamp, "{row}: {later} after {stamp}");
            assert_eq!(value_of(&engine, &table, "p", row).await, Some(number));
        }
    }
    let ahead = engine.get(&table, &key("p", "future")).await.unwrap().unwrap().raw().timestamp().unwrap();
    let delete = Transaction::of_one(key("p", "future"), Condition::Exists, Change::Delete);
    assert!(engine.apply(&table, delete).await.unwrap()[0] > ahead);
    assert!(engine.apply(&table, insert("p", "future", 4)).await.unwrap()[0] > ahead);
}

pub async fn a_damaged_row_is_not_loaded(engine: Shared) {
    let table = created(&engine, "Books").await;
    let whole = stored(&[("N", Value::Int32(1))], 0);
    let cut = StoredRow::new(whole.raw().bytes()[..12].to_vec());
    let rows = vec![(partition("a"), Some(whole)), (partition("b"), Some(cut))];
    let refused = engine.load(&table, &partition("p"), rows).await;
    assert_eq!(fault_kind(refused), FaultKind::Damaged);
    assert_eq!(contents(&engine, &table).await, []);
}
