//! The cost of an operation, counted in reads, does not grow with the table.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{self, load, open, open_with, partition_name};
use engine_embedded::{Counters, Options};
use model::{Cut, KeyRange};
use store::Engine;
use store_suite::{key, scan, table};
use tempfile::TempDir;

/// A seek reads an index block and a data block of each file of level 0, and of one file of every other level.
/// RocksDB stalls writers before there are more files than this.
const BLOCKS_MAX: u64 = 64;

#[derive(Debug, PartialEq, Eq)]
struct Reads {
    opened_records: u64,
    cold_get: (u64, u64),
    warm_get: (u64, u64),
    missing_get: (u64, u64),
    page_in_partition: (u64, u64),
    page_across_partitions: (u64, u64),
}

#[derive(Debug)]
struct Blocks {
    cold_get: u64,
    warm_get: u64,
    missing_get: u64,
    page_in_partition: u64,
    page_across_partitions: u64,
}

async fn measure(directory: &Path, rows: usize) -> (Reads, Blocks) {
    let started = Instant::now();
    let options = Options { statistics: true, ..Options::new(directory) };
    let engine = open_with(options);
    println!("{rows} rows opened in {:?}", started.elapsed());
    let opened_records = engine.counters().opened_records;
    let books = table("Books");
    let middle = rows / support::ROWS_PER_TRANSACTION / 2;
    let (partition, next) = (partition_name(middle), partition_name(middle + 1));

    let mut before = Counters::default();
    let mut spent = || {
        let now = engine.counters();
        let reads =
            (now.point_gets - before.point_gets, now.seeks - before.seeks + now.rows_read - before.rows_read);
        let blocks = now.blocks_asked - before.blocks_asked;
        before = now;
        (reads, blocks)
    };
    // RocksDB also counts the blocks of compactions, so they must have ended.
    let mut quiet = 0;
    while quiet < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        quiet = if spent().1 == 0 { quiet + 1 } else { 0 };
    }
    assert!(engine.get(&books, &key(&partition, "r50")).await.unwrap().is_some());
    let cold_get = spent();
    assert!(engine.get(&books, &key(&partition, "r50")).await.unwrap().is_some());
    let warm_get = spent();
    assert!(engine.get(&books, &key(&partition, "r5x")).await.unwrap().is_none());
    let missing_get = spent();
    let page = engine.scan(&books, scan(vec![KeyRange::partition(&partition)], 1000)).await.unwrap();
    assert_eq!((page.entities.len(), page.examined), (100, 100));
    let page_in_partition = spent();
    let across = KeyRange { start: Cut::before(&partition, "r50"), end: Cut::before(&next, "r50") };
    let page = engine.scan(&books, scan(vec![across], 1000)).await.unwrap();
    assert_eq!(page.entities.len(), 100);
    let page_across_partitions = spent();
    engine.close().await;
    (
        Reads {
            opened_records,
            cold_get: cold_get.0,
            warm_get: warm_get.0,
            missing_get: missing_get.0,
            page_in_partition: page_in_partition.0,
            page_across_partitions: page_across_partitions.0,
        },
        Blocks {
            cold_get: cold_get.1,
            warm_get: warm_get.1,
            missing_get: missing_get.1,
            page_in_partition: page_in_partition.1,
            page_across_partitions: page_across_partitions.1,
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn gets_and_pages_cost_the_same_in_a_million_rows_as_in_a_thousand() {
    let mut found = Vec::new();
    for rows in [1_000, 1_000_000] {
        let directory = TempDir::new().unwrap();
        let engine = open(directory.path());
        load(&engine, &table("Books"), rows).await;
        engine.close().await;
        drop(engine);
        let (reads, blocks) = measure(directory.path(), rows).await;
        println!("{rows} rows: {reads:?} {blocks:?}");
        for (what, blocks) in [
            ("cold get", blocks.cold_get),
            ("warm get", blocks.warm_get),
            ("missing get", blocks.missing_get),
            ("page in a partition", blocks.page_in_partition),
            ("page across partitions", blocks.page_across_partitions),
        ] {
            assert!(blocks <= BLOCKS_MAX, "{what} of {rows} rows: {blocks} blocks");
        }
        found.push(reads);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].warm_get, (1, 0));
    assert_eq!(found[0].page_in_partition, (0, 1 + 100));
}
