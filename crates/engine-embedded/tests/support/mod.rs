//! What the tests of this crate share.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use engine_embedded::{EmbeddedEngine, OpenError, Options, Report, SalvageError, SalvageReport};
use model::{Key, Value};
use rocksdb::DB;
use store::{Change, Condition, Engine, ObjectNaming, RowOperation, TableRef, Transaction};
use store_suite::draft;

pub const ROWS_PER_TRANSACTION: usize = 100;

pub fn open(directory: &Path) -> Arc<EmbeddedEngine> {
    open_with(Options::new(directory))
}

pub fn open_with(options: Options) -> Arc<EmbeddedEngine> {
    Arc::new(try_open(options).unwrap())
}

/// A test that starts a program keeps, until that runs, a copy of every lock of this process. So the lock of an engine that is
/// gone may be held for a moment.
pub fn try_open(options: Options) -> Result<EmbeddedEngine, OpenError> {
    testing::wait_until("the store is in use by nobody else", || {
        match EmbeddedEngine::open(options.clone()) {
            Err(OpenError::InUse { .. }) => None,
            opened => Some(opened),
        }
    })
}

/// Waits for the lock, as `try_open` does.
pub fn check(directory: &Path, naming: &dyn ObjectNaming) -> Result<Report, OpenError> {
    testing::wait_until("the store is in use by nobody else", || {
        match engine_embedded::check(directory, naming, &mut |_| {}) {
            Err(OpenError::InUse { .. }) => None,
            checked => Some(checked),
        }
    })
}

/// The same.
pub fn salvage(
    directory: &Path,
    target: &Path,
    naming: &dyn ObjectNaming,
) -> Result<SalvageReport, SalvageError> {
    testing::wait_until("the store is in use by nobody else", || {
        match engine_embedded::salvage(directory, target, naming, &mut |_| {}) {
            Err(SalvageError::Source(OpenError::InUse { .. })) => None,
            salvaged => Some(salvaged),
        }
    })
}

pub fn refusal(directory: &Path) -> OpenError {
    try_open(Options::new(directory)).expect_err("must not open")
}

/// A hundred rows of about 250 bytes that do not compress well, in a partition of their own.
pub fn hundred_rows(partition: usize) -> Transaction {
    let operations = (0..ROWS_PER_TRANSACTION).map(|row| {
        let noise: Vec<u8> = (0..25_u8).flat_map(|_| rand::random::<[u8; 8]>()).collect();
        RowOperation {
            row: Key::parse(format!("r{row:02}")).unwrap(),
            condition: Condition::Absent,
            change: Change::Put(draft(&[("Noise", Value::Binary(noise)), ("N", Value::Int32(row as i32))])),
        }
    });
    Transaction::new(partition_key(partition), operations.collect()).unwrap()
}

pub fn partition_key(partition: usize) -> Key {
    Key::parse(partition_name(partition)).unwrap()
}

pub fn partition_name(partition: usize) -> String {
    format!("p{partition:05}")
}

/// Fills a new table, from several tasks.
pub async fn load(engine: &Arc<EmbeddedEngine>, table: &TableRef, rows: usize) {
    const TASKS: usize = 16;
    engine.create_table(table, None).await.unwrap();
    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (engine, table) = (engine.clone(), table.clone());
            tokio::spawn(async move {
                for partition in (task..rows / ROWS_PER_TRANSACTION).step_by(TASKS) {
                    engine.apply(&table, hundred_rows(partition)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("{rows} rows loaded in {:?}", started.elapsed());
}

/// Ends an engine as a crash of the process would: nothing is flushed.
pub fn crash(engine: Arc<EmbeddedEngine>) {
    drop(Arc::into_inner(engine).expect("the only one left"));
}

/// The database under a closed engine, for tests that look at or forge stored bytes.
pub fn raw(directory: &Path) -> DB {
    DB::open_cf(
        &rocksdb::Options::default(),
        directory.join("db"),
        ["default", "meta", "data", "objects", "files"],
    )
    .unwrap()
}

pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("db")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// The files of large chunks.
pub fn content_files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory.join("content")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

pub fn bytes_of(files: &[PathBuf]) -> u64 {
    // A file may be deleted between listing and asking.
    files.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}

pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = testing::Patience::new(what);
    while !holds() {
        tokio::time::sleep(patience.pause()).await;
    }
}
