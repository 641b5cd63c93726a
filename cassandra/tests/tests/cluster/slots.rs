//! A server that loses its slot while it is suspended.

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraEngine, connect};
use model::{DateTime, Key, Value};
use scylla::client::session::Session;
use store::{Engine, Error, StoredRow, TableRef};
use store_suite::{draft, insert, table};
use testing::Patience;
use uuid::Uuid;

type Slot = (i32, Option<Uuid>, Option<i64>);

async fn held_slots(session: &Session) -> Vec<Slot> {
    let rows = session.query_unpaged("SELECT id, owner, high FROM slots", ()).await.unwrap();
    let rows = rows.into_rows_result().unwrap();
    rows.rows::<Slot>().unwrap().map(Result::unwrap).filter(|slot| slot.1.is_some()).collect()
}

/// Frees the only slot that is held, as another server does after it has seen a lease unchanged for too long. Returns it.
async fn free(session: &Session) -> Slot {
    let text = "UPDATE slots SET owner = null, high = ? WHERE id = ? IF owner = ? AND high = ?";
    let patience = Patience::new("a slot is freed");
    loop {
        let [(id, owner, high)] = held_slots(session).await.try_into().unwrap();
        let answer = session.query_unpaged(text, (high, id, owner, high)).await.unwrap();
        let (applied,) = answer.into_rows_result().unwrap().first_row::<(bool,)>().unwrap();
        if applied {
            return (id, owner, high);
        }
        // The server has renewed its lease just then.
        tokio::time::sleep(patience.pause()).await;
    }
}

/// Makes the server read a row from the future, so that it renews its lease at once.
async fn hurry(engine: &CassandraEngine, table: &TableRef, row: &str) {
    let ahead = DateTime::from_ticks(DateTime::now().ticks() + 45 * 10_000_000).unwrap();
    let stored = draft(&[("N", Value::Int32(1))]).stamp(ahead);
    let rows = vec![(Key::parse(row).unwrap(), Some(StoredRow::new(stored.as_bytes().to_vec())))];
    match engine.load(table, &Key::parse("ahead").unwrap(), rows).await {
        // It has renewed its lease meanwhile, and knows that it has lost its slot.
        Err(Error::Busy) => return,
        loaded => loaded.unwrap(),
    }
    let refused = engine.apply(table, insert("ahead", row, 2)).await;
    assert!(matches!(refused, Err(Error::Rejected { .. } | Error::Busy)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_its_slot_takes_another_and_continues_to_write() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    let engine = open(&options).await;
    let table = table("Books");
    engine.create_table(&table, None).await.unwrap();
    let mut last = engine.apply(&table, insert("p", "before", 1)).await.unwrap()[0];
    for loss in 0..2 {
        let lost = free(&session).await;
        hurry(&engine, &table, &format!("r{loss}")).await;
        let patience = Patience::new("the server has taken another slot");
        let taken = loop {
            if let [taken] = held_slots(&session).await[..] {
                break taken;
            }
            tokio::time::sleep(patience.pause()).await;
        };
        assert_ne!(taken.1, lost.1, "another owner, so that late requests of the first one are refused");
        let patience = Patience::new("the server writes again");
        for row in 0.. {
            match engine.apply(&table, insert("p", &format!("{loss}-{row}"), 1)).await {
                Ok(stamps) => {
                    assert!(stamps[0] > last, "stamps continue from the last");
                    last = stamps[0];
                    break;
                }
                Err(Error::Busy) => tokio::time::sleep(patience.pause()).await,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(engine.check_health().is_ok());
    }
    engine.close().await;
    assert_eq!(held_slots(&session).await, [], "a closed server releases its slot");
    drop_keyspace(&options).await;
}
