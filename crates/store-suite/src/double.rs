//! Engines for tests. They pass every call to another engine, except those that the test counts, records or fails.

use std::ops::Deref;

use async_trait::async_trait;
use bytes::Bytes;
use model::{AccountName, DateTime, EntityKey, Key, KeyRange, ServiceKind};
use store::{
    Engine, EngineCounters, Error, Fault, Page, Scan, StoredName, StoredRow, TableEstimate, TableRef,
    TablesPage, Transaction,
};

/// The engine that a test sees through an [`EngineDouble`].
#[derive(Debug)]
pub struct TestEngine<D>(pub D);

impl<D> Deref for TestEngine<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

/// Writes the methods of an engine twice: in the trait, where each calls the real engine, and in the engine, where each
/// calls the double.
macro_rules! double {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        /// What a test puts in front of an engine. Implement the methods that the test is about.
        #[async_trait]
        pub trait EngineDouble: Send + Sync + 'static {
            fn engine(&self) -> &dyn Engine;
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                self.engine().$method($($argument),*).await
            })*
        }

        #[async_trait]
        impl<D: EngineDouble> Engine for TestEngine<D> {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                self.0.$method($($argument),*).await
            })*

            fn check_health(&self) -> Result<(), Fault> {
                self.0.engine().check_health()
            }

            fn counters(&self) -> EngineCounters {
                self.0.engine().counters()
            }

            async fn close(&self) {
                self.0.engine().close().await;
            }
        }
    };
}

double!(
    create_table(table: &TableRef, metadata: Option<Bytes>) -> ();
    drop_table(table: &TableRef) -> ();
    drop_table_if(table: &TableRef, expected: Option<Bytes>) -> bool;
    find_table(table: &TableRef) -> StoredName;
    list_tables(account: &AccountName, service: ServiceKind, from: &str, limit: usize) -> TablesPage;
    get(table: &TableRef, key: &EntityKey) -> Option<StoredRow>;
    scan(table: &TableRef, scan: Scan) -> Page;
    apply(table: &TableRef, transaction: Transaction) -> Vec<DateTime>;
    table_metadata(table: &TableRef) -> Option<Bytes>;
    replace_table_metadata(table: &TableRef, expected: Option<Bytes>, metadata: Bytes) -> bool;
    service_metadata(account: &AccountName, service: ServiceKind) -> Option<Bytes>;
    replace_service_metadata(
        account: &AccountName, service: ServiceKind, expected: Option<Bytes>, metadata: Bytes
    ) -> bool;
    list_accounts() -> Vec<AccountName>;
    load(table: &TableRef, partition: &Key, rows: Vec<(Key, Option<StoredRow>)>) -> ();
    estimate_table(table: &TableRef, within: &KeyRange, rows_max: u64) -> Option<TableEstimate>;
);
