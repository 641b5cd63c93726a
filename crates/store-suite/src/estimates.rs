//! About how much a table holds. An engine that can't tell says so for every table.

use model::{Cut, KeyRange};
use store::{Change, Condition, Error, TableEstimate, TableRef, Transaction};

use crate::Shared;
use crate::fixtures::{created, filled, insert, key, table};

/// More than any table here has.
const ENOUGH: u64 = 10_000;

async fn all(engine: &Shared, table: &TableRef) -> Option<TableEstimate> {
    engine.estimate_table(table, &KeyRange::all(), ENOUGH).await.unwrap()
}

pub async fn an_engine_that_tells_counts_a_small_table(engine: Shared) {
    let empty = created(&engine, "Empty").await;
    let Some(nothing) = all(&engine, &empty).await else {
        let books = filled(&engine).await;
        assert_eq!(all(&engine, &books).await, None, "it can't tell");
        return;
    };
    assert_eq!(nothing, TableEstimate::default());
    let books = filled(&engine).await;
    let rows = engine.scan(&books, crate::scan(vec![KeyRange::all()], 1_000)).await.unwrap().entities.len();
    let found = all(&engine, &books).await.unwrap();
    assert!(found.rows == rows as u64 && found.bytes > found.rows, "{rows}: {found:?}");
    assert_eq!(all(&engine, &empty).await, Some(nothing), "tables are apart");

    engine.apply(&books, insert("p1", "one more", 1)).await.unwrap();
    assert_eq!(all(&engine, &books).await.unwrap().rows, found.rows + 1);
    let delete = Transaction::of_one(key("p1", "one more"), Condition::Exists, Change::Delete);
    engine.apply(&books, delete).await.unwrap();
    assert_eq!(all(&engine, &books).await.unwrap().rows, found.rows, "a deleted row does not count");

    let of_partition = KeyRange { start: Cut::before("p1", ""), end: Cut::AfterPartition("p1".into()) };
    let page = engine.scan(&books, crate::scan(vec![of_partition.clone()], 1_000)).await.unwrap();
    let part = engine.estimate_table(&books, &of_partition, ENOUGH).await.unwrap().unwrap();
    assert!(part.rows == page.entities.len() as u64 && part.rows > 0 && part.rows < found.rows, "{part:?}");
    let none = KeyRange { start: Cut::before("b", ""), end: Cut::before("a", "") };
    assert_eq!(engine.estimate_table(&books, &none, ENOUGH).await.unwrap(), Some(nothing));

    engine.drop_table(&books).await.unwrap();
    let missing = engine.estimate_table(&table("Books"), &KeyRange::all(), ENOUGH).await;
    assert!(matches!(missing, Err(Error::TableNotFound)), "{missing:?}");
    created(&engine, "Books").await;
    assert_eq!(all(&engine, &books).await, Some(nothing), "a new table of the same name is empty");
}

pub async fn an_estimate_reads_no_more_than_it_may(engine: Shared) {
    let books = filled(&engine).await;
    for rows_max in [0, 1, 3] {
        let found = engine.estimate_table(&books, &KeyRange::all(), rows_max).await.unwrap();
        if let Some(found) = found {
            assert!(found.read <= rows_max && found.rows >= found.read, "{rows_max}: {found:?}");
        }
    }
}
