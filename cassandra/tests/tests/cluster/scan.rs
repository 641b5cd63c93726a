//! Scans that take more than one read of a partition, while it changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::CassandraEngine;
use model::{Cut, Key, KeyRange, Value, ValueRef};
use store::{Budget, Change, Condition, Engine, Error, Page, RowOperation, Scan, TableRef, Transaction};
use store_suite::{draft, key, number, table};

const ROWS: usize = 90;

/// Puts this version into all rows of the partition, in one transaction of about 2 MiB.
fn round(version: i32) -> Transaction {
    let filler = Value::Binary(vec![7; 24 * 1024]);
    let change = |n: usize| RowOperation {
        row: Key::parse(format!("{n:03}")).unwrap(),
        condition: Condition::Anything,
        change: Change::Put(draft(&[("B", filler.clone()), ("N", Value::Int32(version))])),
    };
    Transaction::new(Key::parse("large").unwrap(), (0..ROWS).map(change).collect()).unwrap()
}

fn versions(page: &Page) -> BTreeSet<i32> {
    let version = |row: store::RowView<'_>| match row.property("N") {
        Some(ValueRef::Int32(version)) => version,
        other => panic!("N is {other:?}"),
    };
    let large = page.entities.iter().filter(|entity| entity.partition == "large");
    large.map(|entity| version(entity.row.open().unwrap())).collect()
}

fn budget(rows: usize) -> Budget {
    Budget { rows, bytes: usize::MAX, time: Duration::from_secs(60), examined: u64::MAX }
}

async fn write_rounds(engine: Arc<CassandraEngine>, table: TableRef, over: Arc<AtomicBool>) {
    let mut version = 1;
    while !over.load(Ordering::Acquire) {
        match engine.apply(&table, round(version)).await {
            Ok(_) => version += 1,
            Err(Error::Busy | Error::OutcomeUnknown) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_page_never_shows_two_states_of_a_partition() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engine = open(&options).await;
    let table = table("States");
    engine.create_table(&table, None).await.unwrap();
    for small in ["a", "z"] {
        let insert = Transaction::of_one(key(small, "r"), Condition::Absent, Change::Put(number(1)));
        engine.apply(&table, insert).await.unwrap();
    }
    engine.apply(&table, round(0)).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write_rounds(engine.clone(), table.clone(), over.clone()));

    // One partition, all partitions, and separate ranges.
    let odd_rows = (0..ROWS / 2).map(|n| KeyRange::entity("large", &format!("{:03}", 2 * n + 1)));
    let parts = [("000", "020"), ("040", "060"), ("070", "089")];
    let parts =
        parts.map(|(from, to)| KeyRange { start: Cut::before("large", from), end: Cut::after("large", to) });
    for ranges in
        [vec![KeyRange::partition("large")], vec![KeyRange::all()], odd_rows.collect(), parts.to_vec()]
    {
        let mut whole = 0;
        for _ in 0..12 {
            match engine
                .scan(
                    &table,
                    Scan { ranges: ranges.clone(), budget: budget(1000), filter: None, lasts: false },
                )
                .await
            {
                Ok(page) => {
                    let versions = versions(&page);
                    assert!(versions.len() <= 1, "{versions:?} in one page of {ranges:?}");
                    assert!(page.next.is_none() || !page.entities.is_empty(), "every page advances");
                    whole += usize::from(page.next.is_none());
                }
                Err(Error::Busy) => {}
                Err(error) => panic!("{error}"),
            }
        }
        eprintln!("{whole} of 12 pages were whole, {} ranges", ranges.len());
    }
    over.store(true, Ordering::Release);
    writer.await.unwrap();

    let all = Scan { ranges: vec![KeyRange::all()], budget: budget(1000), filter: None, lasts: false };
    let page = engine.scan(&table, all).await.unwrap();
    assert_eq!((page.entities.len(), page.next), (ROWS + 2, None), "undisturbed, one page is enough");
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_without_time_advances_page_by_page() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engine = open(&options).await;
    let table = table("Hurry");
    engine.create_table(&table, None).await.unwrap();
    let keys: Vec<(String, String)> =
        (0..40).map(|n| (format!("p{:02}", n / 2), format!("r{:03}", n % 2))).collect();
    for (partition, row) in &keys {
        let insert = Transaction::of_one(key(partition, row), Condition::Absent, Change::Put(number(1)));
        engine.apply(&table, insert).await.unwrap();
    }
    let (mut seen, mut from, mut pages) = (Vec::new(), Cut::start(), 0);
    loop {
        let ranges = vec![KeyRange { start: from.clone(), end: Cut::End }];
        let hurried = Scan {
            ranges,
            budget: Budget { time: Duration::ZERO, ..budget(1000) },
            filter: None,
            lasts: false,
        };
        let page = engine.scan(&table, hurried).await.unwrap();
        seen.extend(
            page.entities.iter().map(|entity| (entity.partition.to_owned(), entity.row_key.to_owned())),
        );
        pages += 1;
        match page.next {
            Some(next) => from = Cut::before(next.partition.as_str(), next.row.as_str()),
            None => break,
        }
    }
    assert_eq!(seen, keys);
    assert!(pages > 1, "there was no time");
    engine.close().await;
    drop_keyspace(&options).await;
}
