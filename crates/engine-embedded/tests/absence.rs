//! Batches whose rows are not there yet: they cost one search, and find what is there.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;

use model::{Key, Value};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use store::{Change, Condition, Engine, Error, Reason, RowOperation, Transaction};
use store_suite::{draft, key, table};
use tempfile::TempDir;

use crate::support::{hundred_rows, open, partition_key};

fn operation(row: u32, condition: Condition, change: Change) -> RowOperation {
    RowOperation { row: Key::parse(format!("r{row:04}")).unwrap(), condition, change }
}

fn insert(row: u32) -> RowOperation {
    operation(row, Condition::Absent, Change::Put(draft(&[("A", Value::Int32(1))])))
}

fn in_partition(operations: Vec<RowOperation>) -> Transaction {
    Transaction::new(partition_key(0), operations).unwrap()
}

#[tokio::test]
async fn a_batch_in_a_free_place_costs_one_search() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let spent = |before: engine_embedded::Counters| {
        let now = engine.counters();
        (now.seeks - before.seeks, now.point_gets - before.point_gets)
    };
    for partition in [3, 1, 2] {
        let before = engine.counters();
        engine.apply(&table("Books"), hundred_rows(partition)).await.unwrap();
        assert_eq!(spent(before), (1, 0), "partition {partition}");
    }
    // There are rows in this place.
    let before = engine.counters();
    engine.apply(&table("Books"), hundred_rows(2)).await.unwrap_err();
    assert_eq!(spent(before), (1, 100));
    let before = engine.counters();
    engine.apply(&table("Books"), in_partition((0..4).map(insert).collect())).await.unwrap();
    assert_eq!(spent(before), (0, 4));
}

/// In files, around which nothing is in memory, as after a start.
#[tokio::test]
async fn a_batch_between_rows_on_the_disk_costs_one_search() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    for partition in [1, 3] {
        engine.apply(&table("Books"), hundred_rows(partition)).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    let engine = open(directory.path());
    let before = engine.counters();
    engine.apply(&table("Books"), hundred_rows(2)).await.unwrap();
    let now = engine.counters();
    assert_eq!((now.seeks - before.seeks, now.point_gets - before.point_gets), (1, 0));
    // The rows beside it are found there all the same.
    engine.apply(&table("Books"), hundred_rows(3)).await.unwrap_err();
}

/// Whatever lies between the rows of a batch: rows, deleted ones, other partitions, in memory and in files.
#[tokio::test]
async fn what_is_there_is_found_wherever_it_lies_among_the_rows_of_a_batch() {
    const ROWS: u32 = 300;
    let mut random = StdRng::seed_from_u64(7);
    let (mut applied, mut refused) = (0, 0);
    for round in 0..3 {
        let directory = TempDir::new().unwrap();
        let mut engine = open(directory.path());
        engine.create_table(&table("Books"), None).await.unwrap();
        let mut rows = BTreeMap::new();
        for step in 0..300 {
            let (first, spread) = (random.random_range(0..ROWS), random.random_range(1..60));
            let mut chosen: Vec<u32> =
                (0..random.random_range(1..20)).map(|_| first + random.random_range(0..spread)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            if random.random() {
                chosen.reverse();
            }
            let new = Value::Int32(step);
            let put = || draft(&[("B", new.clone())]);
            let operations: Vec<_> = chosen
                .iter()
                .map(|row| match random.random_range(0..8) {
                    0 => operation(*row, Condition::Anything, Change::Merge(put())),
                    1 => operation(*row, Condition::Anything, Change::Put(put())),
                    2 | 3 if rows.contains_key(row) => operation(*row, Condition::Exists, Change::Delete),
                    _ => operation(*row, Condition::Absent, Change::Put(put())),
                })
                .collect();
            let there = |operation: &RowOperation, row| {
                operation.condition == Condition::Absent && rows.contains_key(row)
            };
            let expected = operations.iter().zip(&chosen).position(|(operation, row)| there(operation, row));
            let changes: Vec<_> = operations.iter().map(|operation| operation.change.clone()).collect();
            let outcome = engine.apply(&table("Books"), in_partition(operations)).await;
            match (outcome, expected) {
                (Ok(_), None) => {
                    applied += 1;
                    for (row, change) in chosen.into_iter().zip(changes) {
                        let is_there = !matches!(change, Change::Delete);
                        if is_there {
                            rows.insert(row, step)
                        } else {
                            rows.remove(&row)
                        };
                    }
                }
                (Err(Error::Rejected { index, reason: Reason::Exists }), Some(expected)) => {
                    refused += 1;
                    assert_eq!(index, expected, "round {round}, step {step}");
                }
                (outcome, expected) => panic!("round {round}, step {step}: {outcome:?}, not {expected:?}"),
            }
            // Closing writes all rows to files.
            if step % 60 == 59 {
                engine.close().await;
                drop(engine);
                engine = open(directory.path());
            }
        }
        for row in 0..ROWS + 60 {
            let found = engine.get(&table("Books"), &key("p00000", &format!("r{row:04}"))).await.unwrap();
            assert_eq!(found.is_some(), rows.contains_key(&row), "round {round}, row {row}");
        }
    }
    assert!(applied > 100 && refused > 100, "{applied} applied, {refused} refused");
}

#[tokio::test]
async fn many_deleted_rows_in_the_way_are_not_stepped_over() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    for start in (0..1000).step_by(100) {
        let chosen = start..start + 100;
        engine.apply(&table("Books"), in_partition(chosen.clone().map(insert).collect())).await.unwrap();
        let delete = |row| operation(row, Condition::Anything, Change::Delete);
        engine.apply(&table("Books"), in_partition(chosen.map(delete).collect())).await.unwrap();
    }
    let before = engine.counters();
    let apart = (0..1000).step_by(100).map(insert).collect();
    engine.apply(&table("Books"), in_partition(apart)).await.unwrap();
    let now = engine.counters();
    assert_eq!((now.seeks - before.seeks, now.point_gets - before.point_gets), (1, 10));
}
