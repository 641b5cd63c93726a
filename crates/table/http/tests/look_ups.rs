//! A request looks up its table once, whatever it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use common::DateTime;
use model::EntityKey;
use store::{Engine, Error, MemoryEngine, Page, Scan, StoredName, StoredRow, TableRef, Transaction};
use store_suite::{EngineDouble, TestEngine};

use crate::ground::{Ground, ask, check, token};

/// Counts the calls about a table and its rows.
struct Counter {
    engine: MemoryEngine,
    asked: AtomicUsize,
}

impl Counter {
    /// Does not count the tables of metrics, which the server reads and writes by itself.
    fn count(&self, table: &TableRef) -> &MemoryEngine {
        self.asked.fetch_add(usize::from(!table.name.as_str().starts_with('$')), Ordering::SeqCst);
        &self.engine
    }
}

#[async_trait]
impl EngineDouble for Counter {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn find_table(&self, table: &TableRef) -> Result<StoredName, Error> {
        self.count(table).find_table(table).await
    }

    async fn get(&self, table: &TableRef, key: &EntityKey) -> Result<Option<StoredRow>, Error> {
        self.count(table).get(table, key).await
    }

    async fn scan(&self, table: &TableRef, scan: Scan) -> Result<Page, Error> {
        self.count(table).scan(table, scan).await
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, Error> {
        self.count(table).apply(table, transaction).await
    }

    async fn table_metadata(&self, table: &TableRef) -> Result<Option<Bytes>, Error> {
        self.count(table).table_metadata(table).await
    }

    async fn replace_table_metadata(
        &self,
        table: &TableRef,
        expected: Option<Bytes>,
        metadata: Bytes,
    ) -> Result<bool, Error> {
        self.count(table).replace_table_metadata(table, expected, metadata).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_asks_the_engine_for_its_table_once() {
    let engine = Arc::new(TestEngine(Counter { engine: MemoryEngine::new(), asked: AtomicUsize::new(0) }));
    let ground = Ground::on(engine.clone()).await;
    let sas = token("t");
    let send = async |method: &str, path: &str, headers: &str, body: &str, status: &str| {
        let before = engine.asked.load(Ordering::SeqCst);
        let target = format!("/devstoreaccount1/{path}?{sas}");
        check(&ask(&ground.tables, &format!("127.0.0.1{headers}"), method, &target, body).await, &[status]);
        engine.asked.load(Ordering::SeqCst) - before
    };
    let json = "\r\nContent-Type: application/json\r\nAccept: application/json";
    send("POST", "Tables", json, "{\"TableName\":\"People\"}", "201").await;
    let entity = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
    let key = "People(PartitionKey='p',RowKey='r')";
    assert_eq!(send("POST", "People", json, entity, "201").await, 1, "insert");
    assert_eq!(send("PUT", key, json, "{}", "204").await, 1, "replace");
    assert_eq!(send("GET", key, json, "", "200").await, 1, "get");
    assert_eq!(send("GET", "People()", json, "", "200").await, 1, "query");
    assert_eq!(send("DELETE", key, &format!("{json}\r\nIf-Match: *"), "", "204").await, 1, "delete");
    let batch = batch(100);
    let multipart = "\r\nContent-Type: multipart/mixed; boundary=batch_b\r\nAccept: application/json";
    // One look-up for all parts, so that the error can name the first part, and one write.
    assert_eq!(send("POST", "$batch", multipart, &batch, "202").await, 2, "batch of 100");
    assert_eq!(send("POST", "Nobody", json, entity, "404").await, 1, "missing");
    ground.end().await;
}

/// A change set of so many inserts.
fn batch(parts: usize) -> String {
    let mut text = String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
    for row in 0..parts {
        text.push_str(&format!(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST http://127.0.0.1/devstoreaccount1/People HTTP/1.1\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nPrefer: return-no-content\r\n\r\n\
             {{\"PartitionKey\":\"p\",\"RowKey\":\"b{row}\"}}\r\n"
        ));
    }
    text.push_str("--changeset_c--\r\n--batch_b--\r\n");
    text
}
