//! After a kill, and on a full disk: acknowledged writes are there, and batches are complete or missing.
//!
//! Each test starts this binary again as the process to kill.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::open;
use model::{Cut, Key, KeyRange, Value};
use store::{Change, Condition, Engine, Error, FaultKind, RowOperation, Transaction};
use store_suite::{draft, key, scan, table};
use tempfile::TempDir;

const DIRECTORY: &str = "PARTITA_CRASH_DIRECTORY";
const ACKNOWLEDGED: &str = "acknowledged ";
const BATCH: usize = 10;

fn batch(number: usize) -> Transaction {
    let operation = |row| RowOperation {
        row: Key::parse(format!("{row}")).unwrap(),
        condition: Condition::Absent,
        change: Change::Put(draft(&[("Filler", Value::Binary(vec![7; 2000]))])),
    };
    Transaction::new(Key::parse(format!("{number:06}")).unwrap(), (0..BATCH).map(operation).collect())
        .unwrap()
}

/// Not a test, but the process that the tests start: it writes as long as it can and prints what was acknowledged. It
/// does nothing if no test started it.
#[tokio::test]
async fn victim() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let engine = open(Path::new(&directory));
    let failure = engine.on_failure();
    engine.create_table(&table("Books"), None).await.unwrap();
    for number in 0.. {
        match engine.apply(&table("Books"), batch(number)).await {
            Ok(_) => println!("{ACKNOWLEDGED}{number}"),
            Err(Error::OutcomeUnknown) => break,
            Err(other) => panic!("{other}"),
        }
    }
    // From here on every call fails until a restart.
    let told = failure.await;
    println!("told: {told}");
    assert_eq!(told.kind(), FaultKind::Disk, "{told}");
    assert!(told.chain().any(|cause| cause.is::<rocksdb::Error>()), "{told}");
    assert_eq!(engine.check_health().map_err(|fault| fault.kind()), Err(FaultKind::Disk));
    assert!(matches!(engine.apply(&table("Books"), batch(0)).await, Err(Error::Fault(_))));
    assert!(matches!(engine.get(&table("Books"), &key("000000", "0")).await, Err(Error::Fault(_))));
    assert!(matches!(engine.create_table(&table("More"), None).await, Err(Error::Fault(_))));
    engine.close().await;
    println!("refused to the end");
}

fn start(directory: &Path, shell: &str) -> Child {
    let binary = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" --exact crashes::victim --nocapture")])
        .arg(binary)
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads until `enough` batches are acknowledged, or to the end.
fn listen(victim: &mut Child, enough: usize) -> (usize, Vec<String>) {
    let (mut acknowledged, mut rest) = (0, Vec::new());
    for line in BufReader::new(victim.stdout.as_mut().unwrap()).lines() {
        let line = line.unwrap();
        // The test harness writes on the first line what it is about to run.
        match line.split_once(ACKNOWLEDGED) {
            Some(_) => acknowledged += 1,
            None => rest.push(line),
        }
        if acknowledged == enough {
            break;
        }
    }
    (acknowledged, rest)
}

/// Checks that every acknowledged batch is there, and no batch in part.
async fn check(directory: &Path, acknowledged: usize) {
    let engine = open(directory);
    for number in 0..acknowledged + 20 {
        let partition = format!("{number:06}");
        let range = KeyRange { start: Cut::before(&partition, ""), end: Cut::after_partition(&partition) };
        let rows = engine.scan(&table("Books"), scan(vec![range], 100)).await.unwrap().entities.len();
        assert!(rows == BATCH || (rows == 0 && number >= acknowledged), "batch {number} has {rows} rows");
    }
    engine.close().await;
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_write() {
    for round in 0..8 {
        let directory = TempDir::new().unwrap();
        let mut victim = start(directory.path(), "");
        let (acknowledged, _) = listen(&mut victim, 30 + round * 17);
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(acknowledged >= 30);
        check(directory.path(), acknowledged).await;
    }
}

#[tokio::test]
async fn a_full_disk_ends_the_service_and_loses_no_acknowledged_write() {
    let directory = TempDir::new().unwrap();
    // No file may grow beyond about a megabyte. Above that, a write fails and does not kill the process.
    let mut victim = start(directory.path(), "trap '' XFSZ; ulimit -f 2048;");
    let (acknowledged, rest) = listen(&mut victim, usize::MAX);
    assert!(victim.wait().unwrap().success(), "{rest:?}");
    assert!(acknowledged > 10, "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("told: could not write a commit")), "{rest:?}");
    assert!(rest.iter().any(|line| line == "refused to the end"), "{rest:?}");
    check(directory.path(), acknowledged).await;
}
