//! The cost of a drop does not depend on the table's size; the space is reclaimed later.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::{bytes_of, check, eventually, files, load, open, partition_name, raw};
use model::KeyRange;
use store::{Engine, Error, NoObjects};
use store_suite::{insert, key, scan, table};
use tempfile::TempDir;

const ROWS: usize = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_table_is_dropped_without_reading_it_and_its_space_is_reclaimed() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let (books, other) = (table("Books"), table("Other"));
    load(&engine, &books, ROWS).await;
    load(&engine, &other, 1000).await;
    engine.close().await;
    let engine = open(directory.path());
    let before_bytes = bytes_of(&files(directory.path(), "sst"));
    assert!(before_bytes > 20_000_000, "{before_bytes}");

    let (before, started) = (engine.counters(), Instant::now());
    engine.drop_table(&books).await.unwrap();
    println!("drop of {ROWS} rows answered after {:?}", started.elapsed());
    let after = engine.counters();
    assert_eq!(
        (after.point_gets, after.seeks, after.rows_read),
        (before.point_gets, before.seeks, before.rows_read)
    );
    assert!(matches!(engine.get(&books, &key(&partition_name(1), "r00")).await, Err(Error::TableNotFound)));

    eventually("the dropped table is reclaimed", || engine.counters().pending_drops == 0).await;
    // Counted only now: the reclaim begins at once, and its first commit may come before the drop's answer is looked
    // at. One commit is the drop; two are its reclaim, which hides rows in shared files and then forgets the table.
    assert_eq!(engine.counters().commits, before.commits + 3);
    eventually("its files are gone", || bytes_of(&files(directory.path(), "sst")) < before_bytes / 10).await;
    println!("{before_bytes} bytes reclaimed after {:?}", started.elapsed());
    let page = engine.scan(&other, scan(vec![KeyRange::all()], 2000)).await.unwrap();
    assert_eq!(page.entities.len(), 1000, "a neighbour loses nothing");
}

#[tokio::test]
async fn an_interrupted_drop_is_continued_at_open() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 1)).await.unwrap();
    engine.close().await;
    // The state after a crash right after a drop: the record, and rows in table files hidden by a tombstone.
    let id = [0x5a; 16];
    let dropping = [b"D", &id[..]].concat();
    {
        let raw = raw(directory.path());
        let (meta, data) = (raw.cf_handle("meta").unwrap(), raw.cf_handle("data").unwrap());
        for row in 0..4000_u32 {
            let noise: Vec<u8> = (0..1000).map(|_| rand::random()).collect();
            raw.put_cf(data, [&id[..], &row.to_be_bytes()].concat(), &noise).unwrap();
        }
        raw.flush_cf(data).unwrap();
        raw.delete_range_cf(data, &id[..], &[&id[..], &[0xff]].concat()[..]).unwrap();
        raw.put_cf(meta, &dropping, [1]).unwrap();
    }
    assert!(bytes_of(&files(directory.path(), "sst")) > 4_000_000);
    let engine = open(directory.path());
    eventually("the drop is finished", || engine.counters().pending_drops == 0).await;
    eventually("its files are gone", || bytes_of(&files(directory.path(), "sst")) < 100_000).await;
    assert!(engine.get(&table("Books"), &key("p", "r")).await.unwrap().is_some());
    engine.close().await;
    let raw = raw(directory.path());
    assert_eq!(raw.get_cf(raw.cf_handle("meta").unwrap(), &dropping).unwrap(), None);
}

#[tokio::test]
async fn rows_whose_tombstone_was_deleted_with_its_file_do_not_come_back() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 1)).await.unwrap();
    engine.close().await;
    // The state after a crash right after the files of a dropped table were deleted, one of them with its tombstone:
    // the record, and a few rows in a file that is shared with another table.
    let id = [0x5a; 16];
    let dropping = [b"D", &id[..]].concat();
    {
        let raw = raw(directory.path());
        let (meta, data) = (raw.cf_handle("meta").unwrap(), raw.cf_handle("data").unwrap());
        for row in 0..50_u32 {
            raw.put_cf(data, [&id[..], &row.to_be_bytes()].concat(), row.to_be_bytes()).unwrap();
        }
        raw.flush_cf(data).unwrap();
        raw.put_cf(meta, &dropping, [1]).unwrap();
    }
    let engine = open(directory.path());
    eventually("the drop is finished", || engine.counters().pending_drops == 0).await;
    engine.close().await;
    let report = check(directory.path(), &NoObjects).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let raw = raw(directory.path());
    let (meta, data) = (raw.cf_handle("meta").unwrap(), raw.cf_handle("data").unwrap());
    assert_eq!(raw.get_cf(meta, &dropping).unwrap(), None);
    assert_eq!(raw.get_cf(data, [&id[..], &7_u32.to_be_bytes()].concat()).unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_does_not_wait_for_reclaiming_and_the_next_open_continues_it() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), ROWS).await;
    engine.drop_table(&table("Books")).await.unwrap();
    engine.close().await;
    let engine = open(directory.path());
    eventually("the drop is finished", || engine.counters().pending_drops == 0).await;
    eventually("its files are gone", || bytes_of(&files(directory.path(), "sst")) < 1_000_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_beside_a_drop_see_the_whole_table_or_none() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let books = table("Books");
    for _ in 0..30 {
        load(&engine, &books, 300).await;
        let read = Arc::new(AtomicUsize::new(0));
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (engine, books, read) = (engine.clone(), books.clone(), read.clone());
                tokio::spawn(async move {
                    loop {
                        match engine.scan(&books, scan(vec![KeyRange::all()], 1000)).await {
                            Ok(page) => assert_eq!(page.entities.len(), 300),
                            Err(Error::TableNotFound) => break,
                            Err(other) => panic!("{other}"),
                        }
                        match engine.get(&books, &key(&partition_name(1), "r00")).await {
                            Ok(row) => assert!(row.is_some()),
                            Err(Error::TableNotFound) => break,
                            Err(other) => panic!("{other}"),
                        }
                        read.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        eventually("the readers read", || read.load(Ordering::Relaxed) >= 4).await;
        engine.drop_table(&books).await.unwrap();
        for reader in readers {
            reader.await.unwrap();
        }
    }
}
