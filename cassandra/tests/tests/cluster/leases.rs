//! Servers with different table leases, and the freeze that all of them obey.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraEngine, Options, connect};
use store::{Engine, Error};
use store_suite::{insert, table};
use testing::Patience;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_drop_waits_for_the_server_with_the_longest_lease() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let brief = open(&options).await;
    let patient = open(&Options { table_lease: Duration::from_secs(3), ..options.clone() }).await;
    let table = table("Books");
    brief.create_table(&table, None).await.unwrap();
    for row in 0..3 {
        // From here on it uses its cached table for the length of its own lease.
        patient.apply(&table, insert("p", &format!("{row}"), 1)).await.unwrap();
    }
    brief.drop_table(&table).await.unwrap();
    let late = patient.apply(&table, insert("p", "late", 1)).await;
    assert!(matches!(late, Err(Error::TableNotFound)), "{late:?}");
    for engine in [brief, patient] {
        engine.close().await;
    }
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_is_answered_once_every_server_is_quiet() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    // With its long lease, the second one could continue to write for a minute if the freeze relied on leases.
    let first = open(&options).await;
    let second = open(&Options { table_lease: Duration::from_secs(60), ..options.clone() }).await;
    let table = table("Books");
    first.create_table(&table, None).await.unwrap();
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writer = {
        let (engine, table, stop, written) = (second.clone(), table.clone(), stop.clone(), written.clone());
        tokio::spawn(async move {
            for row in 0.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                match engine.apply(&table, insert("p", &format!("{row:06}"), 1)).await {
                    Ok(_) => drop(written.fetch_add(1, Ordering::SeqCst)),
                    Err(Error::Busy) => tokio::time::sleep(Duration::from_millis(5)).await,
                    Err(other) => panic!("{other}"),
                }
            }
        })
    };
    let patience = Patience::new("three rows are written");
    while written.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(patience.pause()).await;
    }
    first.freeze().await.unwrap();
    let frozen = written.load(Ordering::SeqCst);
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    let rows = session.query_unpaged("SELECT owner, frozen FROM slots", ()).await.unwrap();
    let rows = rows.into_rows_result().unwrap();
    let rows = rows.rows::<(Option<Uuid>, Option<Uuid>)>().unwrap().map(Result::unwrap);
    let held: Vec<Option<Uuid>> = rows.filter(|row| row.0.is_some()).map(|row| row.1).collect();
    assert!(held.len() == 2 && held[0].is_some() && held[0] == held[1], "{held:?}");
    assert_eq!(frozen_servers(&first).await, [true, true]);
    for engine in [&first, &second] {
        let refused = engine.apply(&table, insert("p", "after", 1)).await;
        assert!(matches!(refused, Err(Error::Busy)), "{refused:?}");
    }
    assert_eq!(written.load(Ordering::SeqCst), frozen, "nothing was written after the answer");
    first.thaw().await.unwrap();
    let patience = Patience::new("a row is written after the thaw");
    while written.load(Ordering::SeqCst) == frozen {
        tokio::time::sleep(patience.pause()).await;
    }
    stop.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    assert_eq!(frozen_servers(&first).await, [false, false], "the slots still name the freeze that is over");
    for engine in [first, second] {
        engine.close().await;
    }
    drop_keyspace(&options).await;
}

/// Of each server, whether its view calls it frozen.
async fn frozen_servers(engine: &CassandraEngine) -> Vec<bool> {
    engine.view().await.unwrap().servers.iter().map(|server| server.is_frozen).collect()
}
