//! A checkpoint is a complete store of one moment, whatever is written meanwhile.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{ROWS_PER_TRANSACTION, check, crash, hundred_rows, load, open, partition_name};
use model::KeyRange;
use store::{Engine, NoObjects};
use store_suite::{scan, table};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_checkpoint_has_everything_acknowledged_before_it_and_only_complete_transactions() {
    const WRITERS: usize = 4;
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 1000).await;
    engine.create_table(&table("Written"), None).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    // How many transactions of each writer were acknowledged.
    let acknowledged: Arc<Vec<AtomicUsize>> = Arc::new((0..WRITERS).map(|_| AtomicUsize::new(0)).collect());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (engine, stop, acknowledged) = (engine.clone(), stop.clone(), acknowledged.clone());
            tokio::spawn(async move {
                let mut next = 0;
                while !stop.load(Ordering::Relaxed) {
                    engine.apply(&table("Written"), hundred_rows(next * WRITERS + writer)).await.unwrap();
                    next += 1;
                    acknowledged[writer].store(next, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for _ in 0..4 {
        let least: Vec<usize> = loop {
            let counts: Vec<usize> = acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect();
            if counts.iter().all(|count| *count > 0) {
                break counts;
            }
            tokio::task::yield_now().await;
        };
        let taking = engine.clone();
        let taken = tokio::task::spawn_blocking(move || taking.checkpoint()).await.unwrap().unwrap();
        // Moved away, because the next checkpoint replaces it.
        let place = TempDir::new_in(directory.path().parent().unwrap()).unwrap();
        let backup = place.path().join("backup");
        fs::rename(&taken.directory, &backup).unwrap();

        let report = check(&backup, &NoObjects).unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        assert!(report.commits >= taken.commits);
        let copy = open(&backup);
        let page = copy.scan(&table("Written"), scan(vec![KeyRange::all()], usize::MAX)).await.unwrap();
        let mut partitions = std::collections::BTreeMap::<String, usize>::new();
        for entity in page.entities.iter() {
            *partitions.entry(entity.partition.to_string()).or_default() += 1;
        }
        assert!(partitions.values().all(|rows| *rows == ROWS_PER_TRANSACTION), "{partitions:?}");
        for (writer, least) in least.into_iter().enumerate() {
            for next in 0..least {
                assert!(partitions.contains_key(&partition_name(next * WRITERS + writer)), "{writer} {next}");
            }
        }
        assert_eq!(page.entities.len() as u64 + 1000, report.entities());
        copy.close().await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    engine.close().await;
    let report = check(directory.path(), &NoObjects).unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
}

#[tokio::test]
async fn remains_of_an_interrupted_backup_are_removed() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 100).await;
    let first = engine.checkpoint().unwrap();
    fs::write(first.directory.join("left"), "").unwrap();
    let second = engine.checkpoint().unwrap();
    assert_eq!(first.directory, second.directory);
    assert!(!second.directory.join("left").exists());
    // But not while a backup has it locked.
    let lock = fs::File::open(&second.directory).unwrap();
    lock.lock().unwrap();
    let refused = engine.checkpoint().unwrap_err().to_string();
    assert!(refused.contains("a backup is being taken"), "{refused}");
    assert!(second.directory.join("FORMAT").exists());
    drop(lock);
    crash(engine);
    open(directory.path()).close().await;
    assert!(!second.directory.exists());
}
