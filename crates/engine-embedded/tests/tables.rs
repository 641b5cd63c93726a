//! Ten thousand tables are created in groups, and the next open reads one record for each.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::time::Instant;

use crate::support::{self, open};
use model::ServiceKind;
use store::Engine;
use store_suite::{account, insert, table};
use tempfile::TempDir;

const TABLES: usize = 10_000;
const TASKS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tables() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for number in (task..TABLES).step_by(TASKS) {
                    engine.create_table(&table(&format!("Table{number:05}")), None).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let commits = engine.counters().commits;
    println!("{TABLES} tables made in {:?}, {commits} commits", started.elapsed());
    assert!(commits * 4 < TABLES as u64, "tables made together share commits: {commits}");
    engine.apply(&table("Table00077"), insert("p", "r", 1)).await.unwrap();
    engine.close().await;

    let started = Instant::now();
    let engine = open(directory.path());
    println!("opened in {:?}", started.elapsed());
    assert_eq!(engine.counters().opened_records, TABLES as u64 + 1, "each table, and the commit record");
    let page = engine
        .list_tables(&account("devstoreaccount1"), ServiceKind::Table, "table09990", 100)
        .await
        .unwrap();
    assert_eq!(page.names.len(), 10);

    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for number in (task..TABLES).step_by(TASKS) {
                    engine.drop_table(&table(&format!("Table{number:05}"))).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("{TABLES} tables dropped in {:?}", started.elapsed());
    support::eventually("all are reclaimed", || engine.counters().pending_drops == 0).await;
    println!("and reclaimed after {:?}", started.elapsed());
    engine.close().await;
    assert_eq!(open(directory.path()).counters().opened_records, 1, "nothing is left but the commit record");
}
