//! Engines that count calls, or do not answer them at once.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use migrate::Shared;
use model::{AccountName, Key, ServiceKind};
use store::{Engine, Error, Fault, Page, Scan, StoredRow, TableRef, TablesPage};
use store_suite::{EngineDouble, TestEngine};

/// Counts scans and loaded rows. With a limit, fails every change after so many.
pub struct Counter {
    engine: Shared,
    scans: AtomicUsize,
    loaded: AtomicUsize,
    changes_left: AtomicUsize,
}

impl Counter {
    pub fn in_front_of(engine: Shared) -> TestEngine<Self> {
        Self::stopping(engine, usize::MAX)
    }

    pub fn stopping(engine: Shared, changes: usize) -> TestEngine<Self> {
        let changes_left = AtomicUsize::new(changes);
        TestEngine(Self { engine, scans: AtomicUsize::new(0), loaded: AtomicUsize::new(0), changes_left })
    }

    pub fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }

    pub fn loaded_rows(&self) -> usize {
        self.loaded.load(Ordering::SeqCst)
    }

    fn change(&self) -> Result<(), Error> {
        let left =
            self.changes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Fault::disk("no more changes").into())
    }
}

#[async_trait]
impl EngineDouble for Counter {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        self.engine.scan(table, scan).await
    }

    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        self.change()?;
        self.loaded.fetch_add(rows.len(), Ordering::SeqCst);
        self.engine.load(table, partition, rows).await
    }

    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        self.change()?;
        self.engine.create_table(table, metadata).await
    }
}

/// Answers `Busy` to the first call; does what the second asks, but answers that the outcome is unknown.
pub struct Unreliable {
    engine: Shared,
    asked: Mutex<(HashSet<String>, HashSet<String>)>,
}

impl Unreliable {
    pub fn in_front_of(engine: Shared) -> TestEngine<Self> {
        TestEngine(Self { engine, asked: Mutex::default() })
    }

    async fn unreliably<T>(
        &self,
        call: String,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.asked.lock().unwrap().0.insert(call.clone()) {
            return Err(Error::Busy);
        }
        let answer = answer.await;
        if self.asked.lock().unwrap().1.insert(call) {
            return Err(Error::OutcomeUnknown);
        }
        answer
    }
}

#[async_trait]
impl EngineDouble for Unreliable {
    fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        self.unreliably(format!("create {table:?}"), self.engine.create_table(table, metadata)).await
    }

    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        self.unreliably(format!("load {partition}"), self.engine.load(table, partition, rows)).await
    }

    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        self.unreliably(format!("list {service}"), self.engine.list_tables(account, service, from, limit))
            .await
    }
}
