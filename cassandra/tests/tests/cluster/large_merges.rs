//! Small merges into large rows: the requests are small, but the writes are large.

use std::sync::Arc;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::CassandraEngine;
use model::{Key, Refusal, Value};
use store::{Change, Condition, Engine, Error, Reason, RowOperation, TableRef, Transaction};
use store_suite::{draft, key, number, table};

/// About 900 KiB of properties, none larger than one may be.
fn large() -> Vec<(String, Value)> {
    (0..15).map(|n| (format!("P{n:02}"), Value::Binary(vec![n; 60 * 1024]))).collect()
}

async fn fill(engine: &CassandraEngine, table: &TableRef, rows: usize) {
    let properties = large();
    let properties: Vec<(&str, Value)> =
        properties.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    for row in 0..rows {
        let put = Change::Put(draft(&properties));
        let write = Transaction::of_one(key("p", &format!("{row:03}")), Condition::Absent, put);
        engine.apply(table, write).await.unwrap();
    }
}

fn merges(rows: usize) -> Transaction {
    let operations = (0..rows).map(|row| RowOperation {
        row: Key::parse(format!("{row:03}")).unwrap(),
        condition: Condition::Exists,
        change: Change::Merge(number(2)),
    });
    Transaction::new(Key::parse("p").unwrap(), operations.collect()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_into_large_rows_are_written_in_parts_or_refused() {
    const ROWS: usize = 24;
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let engine = open(&options).await;
    let table = table("Large");
    engine.create_table(&table, None).await.unwrap();
    fill(&engine, &table, ROWS).await;

    // Each is small; all that wait together would be 21 MiB.
    let singles: Vec<_> = (0..ROWS)
        .map(|row| {
            let (engine, table): (Arc<CassandraEngine>, _) = (engine.clone(), table.clone());
            let merge = Change::Merge(number(1));
            let merge = Transaction::of_one(key("p", &format!("{row:03}")), Condition::Exists, merge);
            tokio::spawn(async move { engine.apply(&table, merge).await })
        })
        .collect();
    for single in singles {
        let answer = single.await.unwrap();
        assert!(answer.is_ok(), "{answer:?}");
    }

    // As many as fit into one write are written together.
    engine.apply(&table, merges(12)).await.unwrap();
    // More never fit: the transaction is rejected, and nothing is changed.
    let refused = engine.apply(&table, merges(20)).await;
    let Err(Error::Rejected {
        reason: Reason::OverLimit(Refusal::Shared(common::Refusal::RequestBodyTooLarge)),
        ..
    }) = refused
    else {
        panic!("{refused:?}")
    };
    let untouched = engine.get(&table, &key("p", "019")).await.unwrap().unwrap().open().unwrap();
    assert_eq!(untouched.view().property("N"), Some(model::ValueRef::Int32(1)));

    // Deletes do not read the rows, so all of them fit.
    let deletes = (0..ROWS).map(|row| RowOperation {
        row: Key::parse(format!("{row:03}")).unwrap(),
        condition: Condition::Exists,
        change: Change::Delete,
    });
    let deletes = Transaction::new(Key::parse("p").unwrap(), deletes.collect()).unwrap();
    engine.apply(&table, deletes).await.unwrap();
    engine.close().await;
    drop_keyspace(&options).await;
}
