//! Writers who come together share a sync; one who comes alone does not wait.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::open;
use engine_embedded::{EmbeddedEngine, Options};
use std::sync::Arc;
use store::{Engine, Error};
use store_suite::{insert, key, table};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_share_few_syncs() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let before = engine.counters();
    let started = std::time::Instant::now();
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for row in 0..100 {
                    let transaction = insert(&format!("w{writer}"), &row.to_string(), row);
                    engine.apply(&table("Books"), transaction).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let after = engine.counters();
    let (transactions, commits) = (after.transactions - before.transactions, after.commits - before.commits);
    println!("{transactions} transactions in {commits} commits, {:?}", started.elapsed());
    assert_eq!(transactions, 6400);
    assert!(commits * 8 < transactions, "{commits} commits for {transactions} transactions");
}

#[tokio::test]
async fn a_lone_writer_goes_at_once() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let before = engine.counters();
    let started = std::time::Instant::now();
    for row in 0..200 {
        engine.apply(&table("Books"), insert("p", &row.to_string(), row)).await.unwrap();
    }
    println!("200 lone writes in {:?}", started.elapsed());
    let after = engine.counters();
    assert_eq!(after.commits - before.commits, 200);
    assert_eq!(after.transactions - before.transactions, 200);
}

#[tokio::test]
async fn a_row_that_nobody_else_changes_is_looked_for_once() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let before = engine.counters();
    for row in 0..200 {
        engine.apply(&table("Books"), insert("p", &row.to_string(), row)).await.unwrap();
    }
    assert_eq!(engine.counters().point_gets - before.point_gets, 200);
}

#[tokio::test]
async fn a_refused_transaction_costs_no_sync() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 1)).await.unwrap();
    let before = engine.counters();
    assert!(engine.apply(&table("Books"), insert("p", "r", 1)).await.is_err());
    assert!(engine.create_table(&table("books"), None).await.is_err());
    assert_eq!(engine.counters().commits, before.commits);
}

#[tokio::test]
async fn what_finds_the_queue_full_is_told_and_not_done() {
    let directory = TempDir::new().unwrap();
    let options = Options { queue_transactions: 4, ..Options::new(directory.path()) };
    let engine = Arc::new(EmbeddedEngine::open(options).unwrap());
    engine.create_table(&table("Books"), None).await.unwrap();
    let writers: Vec<_> = (0..500)
        .map(|row| {
            let engine = engine.clone();
            tokio::spawn(
                async move { engine.apply(&table("Books"), insert("p", &row.to_string(), row)).await },
            )
        })
        .collect();
    let mut busy = 0;
    for (row, writer) in writers.into_iter().enumerate() {
        let answer = writer.await.unwrap();
        let found = engine.get(&table("Books"), &key("p", &row.to_string())).await.unwrap().is_some();
        match answer {
            Ok(_) => assert!(found),
            Err(Error::Busy) => {
                assert!(!found);
                busy += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(busy > 0, "500 at once do not fit into a queue of 4");
}
