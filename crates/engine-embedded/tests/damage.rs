//! A store is opened after damage that a crash can cause, and refused after damage that only a failing disk can cause.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{bytes_of, crash, files, open, open_with, refusal, try_open};
use engine_embedded::{OpenError, Options};
use store::{Engine, FaultKind};
use store_suite::{insert, key, table};
use tempfile::TempDir;

const COMMITS: i32 = 200;

/// A store that ended without a close, and its log.
async fn crashed() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    for row in 1..COMMITS {
        engine.apply(&table("Books"), insert("p", &format!("{row:03}"), row)).await.unwrap();
    }
    crash(engine);
    let logs = files(directory.path(), "log");
    let log = logs.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    (directory, log)
}

async fn rows(directory: &Path) -> i32 {
    let engine = open(directory);
    let mut found = 0;
    for row in 1..COMMITS {
        let row = engine.get(&table("Books"), &key("p", &format!("{row:03}"))).await.unwrap();
        found += i32::from(row.is_some());
    }
    engine.close().await;
    found
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn note_committed(directory: &Path, counter: u64) {
    let bytes = [counter.to_le_bytes(), (!counter).to_le_bytes()].concat();
    fs::write(directory.join("committed"), bytes).unwrap();
}

fn missing(directory: &Path) -> u64 {
    let error = refusal(directory);
    let OpenError::Damaged { missing: Some(missing), .. } = error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains(&format!("the last {missing} acknowledged commits are missing")), "{text}");
    assert!(text.contains("restore a backup, or accept their loss"), "{text}");
    missing
}

#[tokio::test]
async fn a_flipped_bit_inside_the_log_is_noticed_and_nothing_is_changed() {
    let (directory, log) = crashed().await;
    let middle = fs::metadata(&log).unwrap().len() as usize / 2;
    flip(&log, middle);
    let lost = missing(directory.path());
    assert!((80..120).contains(&lost), "about half of {COMMITS} lie behind the middle, not {lost}");
    assert_eq!(missing(directory.path()), lost, "asking twice gives the same answer");
    // The refusal has changed nothing, so the store can still be repaired.
    flip(&log, middle);
    assert_eq!(rows(directory.path()).await, COMMITS - 1);
}

#[tokio::test]
async fn a_loss_can_be_accepted_once() {
    let (directory, log) = crashed().await;
    flip(&log, fs::metadata(&log).unwrap().len() as usize / 2);
    let lost = missing(directory.path());
    let options = Options { accept_loss: true, ..Options::new(directory.path()) };
    let engine = open_with(options);
    engine.apply(&table("Books"), insert("p", "after", 1)).await.unwrap();
    drop(engine);
    assert_eq!(rows(directory.path()).await as u64, COMMITS as u64 - 1 - lost);
}

#[tokio::test]
async fn an_acknowledged_commit_cut_off_the_log_is_noticed() {
    let (directory, log) = crashed().await;
    let length = fs::metadata(&log).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length - 3).unwrap();
    assert_eq!(missing(directory.path()), 1);
}

#[tokio::test]
async fn a_commit_torn_before_it_was_acknowledged_is_ignored() {
    for torn in [1, 2, 30, 60] {
        let (directory, log) = crashed().await;
        note_committed(directory.path(), COMMITS as u64 - 1);
        let length = fs::metadata(&log).unwrap().len();
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length - torn).unwrap();
        assert_eq!(rows(directory.path()).await, COMMITS - 2);
    }
}

#[tokio::test]
async fn a_torn_tail_opens() {
    // Blocks that were allocated before a crash but not written: zeros, or old data.
    let zeros = vec![0; 700];
    let noise: Vec<u8> = (0..900).map(|_| rand::random()).collect();
    // Record types of reused logs, which RocksDB would read for ever.
    let foreign: Vec<Vec<u8>> =
        [5, 6, 7, 8, 11, 131].map(|kind| [&[0, 0, 0, 0, 9, 0, kind][..], &noise].concat()).into();
    let endless = foreign.iter().map(Vec::as_slice);
    for tail in [&zeros[..], &zeros[..3], &noise[..], &noise[..3]].into_iter().chain(endless) {
        let (directory, log) = crashed().await;
        let mut bytes = fs::read(&log).unwrap();
        bytes.extend(tail);
        fs::write(&log, bytes).unwrap();
        assert_eq!(rows(directory.path()).await, COMMITS - 1);
    }
}

#[tokio::test]
async fn a_counter_that_lags_or_is_unreadable_does_not_matter() {
    let (directory, _) = crashed().await;
    let committed = directory.path().join("committed");
    note_committed(directory.path(), 50);
    assert_eq!(rows(directory.path()).await, COMMITS - 1);
    fs::write(&committed, "half a no").unwrap();
    assert_eq!(rows(directory.path()).await, COMMITS - 1);
    fs::remove_file(&committed).unwrap();
    assert_eq!(rows(directory.path()).await, COMMITS - 1);
}

#[tokio::test]
async fn a_missing_database_is_noticed() {
    let (directory, _) = crashed().await;
    fs::remove_dir_all(directory.path().join("db")).unwrap();
    assert_eq!(missing(directory.path()), COMMITS as u64);
}

/// Every file under the directory with its bytes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[tokio::test]
async fn a_store_without_current_is_always_refused_and_not_changed() {
    for closed in [false, true] {
        let (directory, _) = crashed().await;
        if closed {
            open(directory.path()).close().await;
            assert!(bytes_of(&files(directory.path(), "sst")) > 0);
        }
        let current = fs::read(directory.path().join("db/CURRENT")).unwrap();
        fs::remove_file(directory.path().join("db/CURRENT")).unwrap();
        // With the commit counter, which shows the loss, and then without it.
        for counted in [true, false] {
            if !counted {
                fs::remove_file(directory.path().join("committed")).unwrap();
            }
            let before = contents(directory.path());
            for accept_loss in [false, true] {
                let options = Options { accept_loss, ..Options::new(directory.path()) };
                let error = try_open(options).expect_err("must not open");
                let text = error.to_string();
                assert!(matches!(error, OpenError::Damaged { missing: None, .. }), "{text}");
                assert!(text.contains("CURRENT is missing"), "{text}");
                assert_eq!(contents(directory.path()), before, "closed {closed}, counted {counted}");
            }
        }
        // The refusal has changed nothing.
        fs::write(directory.path().join("db/CURRENT"), current).unwrap();
        assert_eq!(rows(directory.path()).await, COMMITS - 1);
    }
}

#[tokio::test]
async fn remains_of_a_database_never_become_a_new_one() {
    for left in ["000007.sst", "000008.log", "MANIFEST-000004", "LOG", "notes.txt"] {
        let directory = TempDir::new().unwrap();
        open(directory.path()).close().await;
        fs::remove_file(directory.path().join("committed")).unwrap();
        fs::remove_dir_all(directory.path().join("db")).unwrap();
        fs::create_dir(directory.path().join("db")).unwrap();
        fs::write(directory.path().join("db").join(left), "some of it").unwrap();
        let before = contents(directory.path());
        for accept_loss in [false, true] {
            let options = Options { accept_loss, ..Options::new(directory.path()) };
            let error = try_open(options).expect_err("must not open");
            assert!(error.to_string().contains("CURRENT is missing"), "{left}: {error}");
        }
        assert_eq!(contents(directory.path()), before, "{left}");
    }
}

#[tokio::test]
async fn a_first_start_that_is_interrupted_anywhere_is_repeated() {
    let directory = TempDir::new().unwrap();
    open(directory.path()).close().await;
    fs::remove_file(directory.path().join("committed")).unwrap();
    // The directory of the database was being created and did not have its name yet.
    fs::remove_dir_all(directory.path().join("db")).unwrap();
    fs::create_dir(directory.path().join("db.new")).unwrap();
    fs::write(directory.path().join("db.new/MANIFEST-000001"), "half").unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    crash(engine);
    assert!(!directory.path().join("db.new").exists());
    let engine = open(directory.path());
    assert!(engine.find_table(&table("Books")).await.is_ok());
}

#[tokio::test]
async fn the_error_of_rocksdb_is_kept_if_it_can_not_open_a_store() {
    let (directory, _) = crashed().await;
    open(directory.path()).close().await;
    fs::write(directory.path().join("db/CURRENT"), "nonsense").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::Damaged { missing: None, .. }), "{error:?}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<rocksdb::Error>());
    assert_eq!(cause.map(rocksdb::Error::kind), Some(rocksdb::ErrorKind::Corruption), "{error:?}");
    let shown = error.to_string();
    assert!(
        shown.contains(&directory.path().display().to_string()) && shown.contains("restore a backup"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_flipped_bit_in_a_table_file_is_never_read_as_a_row() {
    let (directory, _) = crashed().await;
    open(directory.path()).close().await;
    let tables = files(directory.path(), "sst");
    assert!(bytes_of(&tables) > 0);
    let data = tables.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    flip(&data, 100);
    match try_open(Options::new(directory.path())) {
        Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error}"),
        Ok(engine) => {
            let found = engine.get(&table("Books"), &key("p", "001")).await;
            let Err(store::Error::Fault(fault)) = found else { panic!("{found:?}") };
            assert_eq!(fault.kind(), FaultKind::Damaged, "{fault}");
            let cause = fault.chain().find_map(|cause| cause.downcast_ref::<rocksdb::Error>());
            assert_eq!(cause.map(rocksdb::Error::kind), Some(rocksdb::ErrorKind::Corruption), "{fault}");
            assert!(fault.to_string().contains("PartitionKey \"p\", RowKey \"001\", table Books"), "{fault}");
        }
    }
}
