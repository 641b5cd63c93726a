//! Concurrent writers share a sync; a single writer does not wait. The committer merges little itself.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::open;
use engine_embedded::{EmbeddedEngine, Options};
use model::Value;
use std::sync::Arc;
use store::{Change, Condition, Engine, Error, TableRef, Transaction};
use store_suite::{draft, insert, key, number, table};
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
async fn a_single_writer_commits_each_write_at_once() {
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
async fn a_row_that_no_other_transaction_changes_is_read_once() {
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
async fn a_transaction_that_finds_the_queue_full_is_answered_busy_and_not_done() {
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

/// Merges one property into a row of the table, from as many clients at once.
async fn merge_at_once(engine: &Arc<EmbeddedEngine>, books: &TableRef, clients: i32) {
    let merges: Vec<_> = (0..clients)
        .map(|client| {
            let (engine, books) = (engine.clone(), books.clone());
            let change = Change::Merge(draft(&[(&format!("C{client}"), Value::Int32(client))]));
            let merge = Transaction::of_one(key("p", "r"), Condition::Exists, change);
            tokio::spawn(async move { engine.apply(&books, merge).await })
        })
        .collect();
    for merge in merges {
        merge.await.unwrap().unwrap();
    }
    let row = engine.get(books, &key("p", "r")).await.unwrap().unwrap();
    let names = row.raw().open().unwrap().properties().filter(|(name, _)| name.starts_with('C')).count();
    assert_eq!(names, clients as usize, "no merge is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_committer_does_not_merge_rows_that_no_other_transaction_changes() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let books = table("Books");
    engine.create_table(&books, None).await.unwrap();
    for row in 0..200 {
        engine.apply(&books, insert("p", &row.to_string(), row)).await.unwrap();
    }
    let merges: Vec<_> = (0..200)
        .map(|row| {
            let (engine, books) = (engine.clone(), books.clone());
            let change = Change::Merge(number(1));
            let merge = Transaction::of_one(key("p", &row.to_string()), Condition::Exists, change);
            tokio::spawn(async move { engine.apply(&books, merge).await })
        })
        .collect();
    for merge in merges {
        merge.await.unwrap().unwrap();
    }
    let counters = engine.counters();
    // Keys share the slots in which their last commit is noted: two of 200 in one of 32,768 happen in half of the runs.
    assert!(counters.late_merges < 8, "{counters:?}");
    assert_eq!(counters.returned, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_merges_into_one_row_are_not_made_by_the_committer() {
    const CLIENTS: i32 = 40;
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let books = table("Books");
    engine.create_table(&books, None).await.unwrap();
    let large: Vec<(String, Value)> =
        (0..15).map(|n| (format!("P{n}"), Value::Binary(vec![n; 60 * 1024]))).collect();
    let large: Vec<(&str, Value)> =
        large.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let put = |draft| Transaction::of_one(key("p", "r"), Condition::Anything, Change::Put(draft));

    engine.apply(&books, put(number(1))).await.unwrap();
    merge_at_once(&engine, &books, CLIENTS).await;
    assert_eq!(engine.counters().returned, 0, "small merges share a commit");

    engine.apply(&books, put(draft(&large))).await.unwrap();
    let before = engine.counters();
    merge_at_once(&engine, &books, CLIENTS).await;
    let after = engine.counters();
    let (merges, commits) = (after.late_merges - before.late_merges, after.commits - before.commits);
    println!("{CLIENTS} large merges: {commits} commits, {merges} late, {} returned", after.returned);
    // The row has 900 KiB, so one commit has room for one late merge.
    assert!(after.returned > 0 && merges <= commits, "{before:?} {after:?}");
}
