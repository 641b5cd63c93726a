//! Stores that count what is asked of them, or do not do it at once.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use migrate::Shared;
use model::{AccountName, DateTime, EntityKey, Key, ServiceKind};
use store::{Engine, Error, Fault, Page, Scan, StoredName, StoredRow, TableRef, TablesPage, Transaction};

/// Passes on what a store is asked, save for what stands in the braces.
macro_rules! passing_on {
    ($name:ident { $($own:item)* } $($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Engine for $name {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                self.engine.$method($($argument),*).await
            })*
            $($own)*
            fn check_health(&self) -> Result<(), Fault> {
                self.engine.check_health()
            }
            async fn close(&self) {
                self.engine.close().await;
            }
        }
    };
}

/// Counts scans and loaded rows; with a bound, refuses every change after so many.
pub struct Counting {
    engine: Shared,
    scans: AtomicUsize,
    loaded: AtomicUsize,
    changes_left: AtomicUsize,
}

impl Counting {
    pub fn new(engine: Shared) -> Self {
        Self::stopping(engine, usize::MAX)
    }

    pub fn stopping(engine: Shared, changes: usize) -> Self {
        let changes_left = AtomicUsize::new(changes);
        Self { engine, scans: AtomicUsize::new(0), loaded: AtomicUsize::new(0), changes_left }
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

passing_on!(Counting {
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
    drop_table(table: &TableRef) -> ();
    find_table(table: &TableRef) -> StoredName;
    list_tables(account: &AccountName, service: ServiceKind, from: &str, limit: usize) -> TablesPage;
    get(table: &TableRef, key: &EntityKey) -> Option<StoredRow>;
    apply(table: &TableRef, transaction: Transaction) -> Vec<DateTime>;
    table_metadata(table: &TableRef) -> Option<Bytes>;
    replace_table_metadata(table: &TableRef, expected: Option<Bytes>, metadata: Bytes) -> bool;
    service_metadata(account: &AccountName, service: ServiceKind) -> Option<Bytes>;
    replace_service_metadata(account: &AccountName, service: ServiceKind, expected: Option<Bytes>, metadata: Bytes) -> bool;
    list_accounts() -> Vec<AccountName>;
);

/// Is busy when asked for the first time; the second time does it, and says that it does not know.
pub struct Balky {
    engine: Shared,
    asked: Mutex<(HashSet<String>, HashSet<String>)>,
}

impl Balky {
    pub fn new(engine: Shared) -> Self {
        Self { engine, asked: Mutex::default() }
    }

    /// What becomes of an answer to this question.
    async fn unwillingly<T>(
        &self,
        question: String,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.asked.lock().unwrap().0.insert(question.clone()) {
            return Err(Error::Busy);
        }
        let answer = answer.await;
        if self.asked.lock().unwrap().1.insert(question) {
            return Err(Error::OutcomeUnknown);
        }
        answer
    }
}

passing_on!(Balky {
    async fn create_table(&self, table: &TableRef, metadata: Option<Bytes>) -> Result<(), Error> {
        self.unwillingly(format!("create {table:?}"), self.engine.create_table(table, metadata)).await
    }
    async fn load(
        &self,
        table: &TableRef,
        partition: &Key,
        rows: Vec<(Key, Option<StoredRow>)>,
    ) -> Result<(), Error> {
        self.unwillingly(format!("load {partition}"), self.engine.load(table, partition, rows)).await
    }
    async fn list_tables(
        &self,
        account: &AccountName,
        service: ServiceKind,
        from: &str,
        limit: usize,
    ) -> Result<TablesPage, Error> {
        let question = format!("list {service}");
        self.unwillingly(question, self.engine.list_tables(account, service, from, limit)).await
    }
}
    drop_table(table: &TableRef) -> ();
    find_table(table: &TableRef) -> StoredName;
    scan(table: &TableRef, scan: Scan) -> Page;
    get(table: &TableRef, key: &EntityKey) -> Option<StoredRow>;
    apply(table: &TableRef, transaction: Transaction) -> Vec<DateTime>;
    table_metadata(table: &TableRef) -> Option<Bytes>;
    replace_table_metadata(table: &TableRef, expected: Option<Bytes>, metadata: Bytes) -> bool;
    service_metadata(account: &AccountName, service: ServiceKind) -> Option<Bytes>;
    replace_service_metadata(account: &AccountName, service: ServiceKind, expected: Option<Bytes>, metadata: Bytes) -> bool;
    list_accounts() -> Vec<AccountName>;
);
