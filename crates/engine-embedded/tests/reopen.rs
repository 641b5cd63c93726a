//! What was acknowledged is there after a restart, clean or not.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::os::unix::fs::MetadataExt as _;

use crate::support::{bytes_of, crash, files, open, open_with, raw};
use bytes::Bytes;
use engine_embedded::Options;
use model::{DateTime, KeyRange, ServiceKind};
use store::{Condition, Engine, Error, Transaction};
use store_suite::{account, insert, key, scan, table};
use tempfile::TempDir;

/// Where the file system can reserve space, the log has some of it in advance.
#[tokio::test]
async fn a_new_store_takes_little_disk_however_much_memory_there_is() {
    const LITTLE: u64 = 100 << 20;
    let directory = TempDir::new().unwrap();
    let engine = open_with(Options::new(directory.path()).with_cache(8 << 30));
    fill(&*engine).await;
    let taken: u64 =
        files(directory.path(), "log").iter().map(|file| file.metadata().unwrap().blocks() * 512).sum();
    assert!(taken > 0 && taken < LITTLE, "the log takes {taken} bytes");
}

async fn fill(engine: &dyn Engine) {
    let books = table("Books");
    engine.create_table(&books, None).await.unwrap();
    for row in 0..50 {
        engine.apply(&books, insert("p", &format!("{row:02}"), row)).await.unwrap();
    }
    let delete = Transaction::of_one(key("p", "07"), Condition::Exists, store::Change::Delete);
    engine.apply(&books, delete).await.unwrap();
    assert!(engine.replace_table_metadata(&books, None, Bytes::from_static(b"policies")).await.unwrap());
    for service in ServiceKind::ALL {
        let document = Bytes::from(format!("properties of {service:?}"));
        let mine = account("devstoreaccount1");
        assert!(engine.replace_service_metadata(&mine, service, None, document).await.unwrap());
    }
    engine.create_table(&table("Gone"), None).await.unwrap();
    engine.apply(&table("Gone"), insert("p", "r", 1)).await.unwrap();
    engine.drop_table(&table("Gone")).await.unwrap();
    engine.create_table(&table("Again"), None).await.unwrap();
    engine.apply(&table("Again"), insert("p", "old", 1)).await.unwrap();
    engine.drop_table(&table("Again")).await.unwrap();
    engine.create_table(&table("AGAIN"), None).await.unwrap();
}

async fn check(engine: &dyn Engine) {
    let books = table("books");
    assert_eq!(engine.find_table(&books).await.unwrap().as_str(), "Books");
    let page = engine.scan(&books, scan(vec![KeyRange::all()], 100)).await.unwrap();
    assert_eq!(page.entities.len(), 49);
    assert!(engine.get(&books, &key("p", "07")).await.unwrap().is_none());
    assert_eq!(engine.table_metadata(&books).await.unwrap().as_deref(), Some(&b"policies"[..]));
    for service in ServiceKind::ALL {
        let document = engine.service_metadata(&account("devstoreaccount1"), service).await.unwrap();
        assert_eq!(document, Some(Bytes::from(format!("properties of {service:?}"))));
    }
    assert!(matches!(engine.find_table(&table("Gone")).await, Err(Error::TableNotFound)));
    assert_eq!(engine.find_table(&table("again")).await.unwrap().as_str(), "AGAIN");
    assert!(engine.get(&table("again"), &key("p", "old")).await.unwrap().is_none());
}

#[tokio::test]
async fn everything_survives_a_close() {
    let directory = TempDir::new().unwrap();
    for round in 0..3 {
        let engine = open(directory.path());
        if round == 0 {
            fill(&*engine).await;
        }
        check(&*engine).await;
        engine.close().await;
        assert_eq!(bytes_of(&files(directory.path(), "log")), 0, "nothing is left to replay");
    }
}

#[tokio::test]
async fn everything_survives_a_process_that_ends_without_a_close() {
    let directory = TempDir::new().unwrap();
    for round in 0..3 {
        let engine = open(directory.path());
        if round == 0 {
            fill(&*engine).await;
        }
        check(&*engine).await;
        crash(engine);
    }
}

#[tokio::test]
async fn a_close_finishes_the_accepted_transactions() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let writers: Vec<_> = (0..200)
        .map(|row| {
            let engine = engine.clone();
            tokio::spawn(async move {
                (row, engine.apply(&table("Books"), insert("p", &row.to_string(), row)).await)
            })
        })
        .collect();
    tokio::task::yield_now().await;
    engine.close().await;
    let mut answers = Vec::new();
    for writer in writers {
        answers.push(writer.await.unwrap());
    }
    drop(engine);
    let engine = open(directory.path());
    for (row, answer) in answers {
        let found = engine.get(&table("Books"), &key("p", &row.to_string())).await.unwrap().is_some();
        match answer {
            Ok(_) => assert!(found, "{row} was acknowledged"),
            Err(Error::Fault(_)) => assert!(!found, "{row} was refused"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn timestamps_grow_over_a_restart_even_if_the_clock_was_set_back() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "a", 1)).await.unwrap();
    engine.close().await;
    // As if the clock had been an hour ahead during the last commit.
    let ahead = DateTime::now().plus(std::time::Duration::from_secs(3600));
    {
        let raw = raw(directory.path());
        let meta = raw.cf_handle("meta").unwrap();
        let mut record = raw.get_cf(meta, b"C").unwrap().unwrap();
        record[9..17].copy_from_slice(&ahead.ticks().to_le_bytes());
        raw.put_cf(meta, b"C", record).unwrap();
    }
    let engine = open(directory.path());
    let first = engine.apply(&table("Books"), insert("p", "b", 1)).await.unwrap()[0];
    assert_eq!(first.ticks(), ahead.ticks() + 1);
    crash(engine);
    let engine = open(directory.path());
    let second = engine.apply(&table("Books"), insert("p", "c", 1)).await.unwrap()[0];
    assert_eq!(second.ticks(), first.ticks() + 1);
}
