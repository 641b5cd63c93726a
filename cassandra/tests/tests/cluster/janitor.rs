//! What the janitor removes by itself, as it is stored in the cluster.

use std::time::Duration;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{Options, Schedule, connect};
use scylla::client::session::Session;
use store::{Change, Condition, Engine, Transaction};
use store_suite::{insert, key, table};
use testing::Patience;

async fn eager(nodes: &[String]) -> (Options, Session) {
    let mut options = fresh_keyspace(nodes).await;
    options.janitor = Schedule {
        quiet: Duration::ZERO,
        look_every: Duration::from_millis(20),
        walk_every: Duration::from_millis(20),
        purge_after: Duration::ZERO,
        ..Schedule::default()
    };
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    (options, session)
}

async fn rows(session: &Session, of: &str) -> usize {
    let rows = session.query_unpaged(format!("SELECT * FROM {of}"), ()).await.unwrap();
    rows.into_rows_result().unwrap().rows_num()
}

/// All rows, for the message of a test that fails.
async fn shown(session: &Session, of: &str) -> String {
    let rows = session.query_unpaged(format!("SELECT JSON * FROM {of}"), ()).await.unwrap();
    let rows = rows.into_rows_result().unwrap();
    rows.rows::<(String,)>().unwrap().map(|row| row.unwrap().0 + "\n").collect()
}

/// Partitions in the directory that are not struck off.
async fn listed(session: &Session) -> usize {
    let rows = session.query_unpaged("SELECT epoch FROM directory", ()).await.unwrap();
    let rows = rows.into_rows_result().unwrap();
    rows.rows::<(i64,)>().unwrap().filter(|row| row.as_ref().unwrap().0 % 2 == 0).count()
}

async fn wait_until_empty(session: &Session, of: &str) {
    let patience = Patience::new(format!("there are no rows in {of}"));
    while rows(session, of).await > 0 {
        tokio::time::sleep(patience.pause()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_dropped_table_stays() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = eager(&nodes).await;
    let engine = open(&options).await;
    let (dropped, kept) = (table("Dropped"), table("Kept"));
    for table in [&dropped, &kept] {
        engine.create_table(table, None).await.unwrap();
        for partition in ["a", "b", "c"] {
            engine.apply(table, insert(partition, "r", 1)).await.unwrap();
        }
    }
    engine.drop_table(&dropped).await.unwrap();
    wait_until_empty(&session, "purges").await;
    for of in ["entities", "directory"] {
        assert_eq!(rows(&session, of).await, 3, "{of} of the other table: {}", shown(&session, of).await);
    }
    assert_eq!(rows(&session, "segments").await, 1);
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drop_that_its_server_did_not_finish_is_finished() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = eager(&nodes).await;
    let engine = open(&options).await;
    let table = table("Doomed");
    engine.create_table(&table, None).await.unwrap();
    engine.apply(&table, insert("a", "r", 1)).await.unwrap();
    let doom = "UPDATE tables SET state = 2 WHERE account = ? AND name = ? IF state = 1";
    session.query_unpaged(doom, (table.account.as_str(), table.name.folded())).await.unwrap();
    let tables = format!("tables WHERE account = '{}' AND name > '!'", table.account.as_str());
    for of in [tables.as_str(), "entities", "segments", "purges"] {
        wait_until_empty(&session, of).await;
    }
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_whose_last_row_is_deleted_is_struck_off() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = eager(&nodes).await;
    let engine = open(&options).await;
    let table = table("Emptied");
    engine.create_table(&table, None).await.unwrap();
    engine.apply(&table, insert("a", "r", 1)).await.unwrap();
    assert_eq!(listed(&session).await, 1);
    let delete = Transaction::of_one(key("a", "r"), Condition::Exists, Change::Delete);
    engine.apply(&table, delete).await.unwrap();
    let patience = Patience::new("the partition is struck off");
    while listed(&session).await > 0 {
        tokio::time::sleep(patience.pause()).await;
    }
    engine.apply(&table, insert("a", "r", 2)).await.unwrap();
    assert_eq!(listed(&session).await, 1, "the next row lists it again");
    engine.close().await;
    drop_keyspace(&options).await;
}
