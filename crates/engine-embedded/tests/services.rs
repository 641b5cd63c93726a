//! Tables of other services than Table: a queue with a table's name is checked, salvaged and found again as what it is.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use bytes::Bytes;
use engine_embedded::{check, salvage};
use model::ServiceKind;
use store::{Engine, NoObjects, TableRef};
use store_suite::{account, insert, key, of_service, table};
use tempfile::TempDir;

use crate::support::open;

/// The names of the account's tables, of each service, and their metadata.
async fn listed(engine: &dyn Engine) -> Vec<String> {
    let account = account("devstoreaccount1");
    let mut found = Vec::new();
    for service in ServiceKind::ALL {
        for name in engine.list_tables(&account, service, "", 10).await.unwrap().names {
            let table = TableRef { account: account.clone(), service, name };
            let metadata = engine.table_metadata(&table).await.unwrap();
            found.push(format!("{}: {:?}", table.place(), metadata.as_deref()));
        }
    }
    found
}

#[tokio::test]
async fn a_queue_stays_a_queue_through_reopening_checking_and_salvaging() {
    let directory = TempDir::new().unwrap();
    let queue = of_service(ServiceKind::Queue, "books");
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.create_table(&queue, Some(Bytes::from_static(b"document"))).await.unwrap();
    engine.apply(&queue, insert("m", "1", 1)).await.unwrap();
    engine.apply(&queue, insert("m", "2", 2)).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 3)).await.unwrap();
    let expected = listed(&*engine).await;
    let document = Some(&b"document"[..]);
    let shown = [
        format!("devstoreaccount1/queue/books: {document:?}"),
        format!("devstoreaccount1/Books: {:?}", None::<&[u8]>),
    ];
    assert_eq!(expected, shown);
    engine.close().await;
    drop(engine);

    let report = check(directory.path(), &NoObjects, &mut |_| {}).unwrap();
    assert!(report.is_sound());
    let counts: Vec<(String, u64)> =
        report.tables.iter().map(|table| (table.place(), table.entities)).collect();
    assert_eq!(
        counts,
        [("devstoreaccount1/Books".to_owned(), 1), ("devstoreaccount1/queue/books".to_owned(), 2)]
    );
    let target = directory.path().join("salvaged");
    salvage(directory.path(), &target, &NoObjects, &mut |_| {}).unwrap();
    for store in [directory.path(), &target] {
        let engine = open(store);
        assert_eq!(listed(&*engine).await, expected);
        assert!(engine.get(&queue, &key("m", "2")).await.unwrap().is_some());
        assert!(engine.get(&table("Books"), &key("m", "2")).await.unwrap().is_none());
        engine.close().await;
    }
}
