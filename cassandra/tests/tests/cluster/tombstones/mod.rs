//! More tombstones in one place than a node reads at a time: such a read fails, and the engine continues with smaller
//! ones.
//!
//! The tests make slightly more tombstones than the node's limit. `--ignored` makes 150,000, which is above
//! Cassandra's default limit.

pub mod ground;

use std::time::Duration;

use cluster_tests::{change_schema, drop_keyspace, nodes, open};
use engine_cassandra::CassandraEngine;
use model::{AccountName, KeyRange, ServiceKind};
use scylla::client::session::Session;
use store::{Change, Condition, Engine, Error, TableRef, Transaction};
use store_suite::{insert, key, scan, table};
use testing::Patience;

use ground::{MANY, eager, is_readable, keyspace, repeat, segment, stored, table_id, too_many};

/// Keys with a common prefix, as real keys often have.
fn name(n: usize) -> String {
    format!("order{n:07}")
}

async fn seen(engine: &CassandraEngine, table: &TableRef, range: KeyRange) -> Vec<String> {
    let page = engine.scan(table, scan(vec![range], 1000)).await.unwrap();
    assert_eq!(page.next, None);
    page.entities.iter().map(|entity| format!("{}|{}", entity.partition, entity.row_key)).collect()
}

/// Reading past hundreds of thousands of tombstones takes minutes.
const JANITOR_TIME_MAX: Duration = Duration::from_secs(1200);

/// Waits for something that the janitor does.
async fn until<T>(mut done: impl AsyncFnMut() -> Option<T>) -> T {
    let patience = Patience::lasting(JANITOR_TIME_MAX, "the janitor has done its work");
    loop {
        if let Some(done) = done().await {
            return done;
        }
        tokio::time::sleep(patience.pause()).await;
    }
}

fn delete(partition: &str, row: &str) -> Transaction {
    Transaction::of_one(key(partition, row), Condition::Exists, Change::Delete)
}

/// A partition with this many deleted rows and a few live ones between them.
async fn rows_are_read_and_written_past_tombstones(count: Option<usize>) {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let count = count.unwrap_or(too_many(&session).await);
    let engine = open(&options).await;
    let table = table("Queue");
    engine.create_table(&table, None).await.unwrap();
    let rows = [name(count / 3), name(count + 1)];
    for row in &rows {
        engine.apply(&table, insert("q", row, 1)).await.unwrap();
    }
    engine.apply(&table, insert("r", "r", 1)).await.unwrap();
    let id = table_id(&session).await;
    let bury = "DELETE FROM entities WHERE tid = ? AND pk = ? AND rk = ?";
    let keys = (0..count).filter(|n| *n != count / 3).map(|n| (id, stored("q"), stored(&name(n))));
    repeat(&session, bury, keys).await;
    let all = "SELECT rk FROM entities WHERE tid = ? AND pk = ? AND rk >= 0x01";
    assert!(!is_readable(&session, all, (id, stored("q"))).await, "this is about tombstones");

    let expected: Vec<String> = rows.iter().map(|row| format!("q|{row}")).collect();
    assert_eq!(seen(&engine, &table, KeyRange::partition("q")).await, expected);
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, [&expected[..], &["r|r".to_owned()]].concat());
    // After this there are only tombstones. The next server does not know the partition yet.
    for row in &rows {
        engine.apply(&table, delete("q", row)).await.unwrap();
    }
    engine.close().await;
    let engine = open(&eager(&options)).await;
    assert_eq!(seen(&engine, &table, KeyRange::partition("q")).await, Vec::<String>::new());
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, ["r|r"]);
    engine.apply(&table, insert("q", "zero", 1)).await.unwrap();
    engine.apply(&table, delete("q", "zero")).await.unwrap();
    // Striking off deletes all rows with one range tombstone, so later reads do not meet the others.
    let state = "SELECT registered, rk FROM entities WHERE tid = ? AND pk = ? AND rk = 0x00";
    until(async || {
        let rows = session.query_unpaged(state, (id, stored("q"))).await.unwrap().into_rows_result().unwrap();
        let row = rows.maybe_first_row::<(Option<i8>, Vec<u8>)>().unwrap();
        row.filter(|(registered, _)| *registered == Some(0))
    })
    .await;
    assert!(is_readable(&session, all, (id, stored("q"))).await);
    engine.apply(&table, insert("q", "one", 1)).await.unwrap();
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, ["q|one", "r|r"]);
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_read_and_written_past_more_tombstones_than_a_node_reads() {
    rows_are_read_and_written_past_tombstones(None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes 150,000 tombstones, which takes some twenty seconds; CONTRIBUTING has the command"]
async fn rows_are_read_and_written_past_150_000_tombstones() {
    rows_are_read_and_written_past_tombstones(Some(MANY)).await;
}

/// A segment from which an earlier release deleted this many entries.
async fn a_segment_full_of_tombstones_is_read_and_rewritten(count: Option<usize>) {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let count = count.unwrap_or(too_many(&session).await);
    let engine = open(&options).await;
    let table = table("Churn");
    engine.create_table(&table, None).await.unwrap();
    let partitions = [name(count / 2), name(count + 1)];
    for partition in &partitions {
        engine.apply(&table, insert(partition, "r", 1)).await.unwrap();
    }
    let worn = segment(&session).await;
    let bury = "DELETE FROM directory WHERE segment = ? AND pk = ?";
    let keys = (0..count).filter(|n| *n != count / 2).map(|n| (worn, stored(&name(n))));
    repeat(&session, bury, keys).await;
    let all = "SELECT pk FROM directory WHERE segment = ?";
    assert!(!is_readable(&session, all, (worn,)).await, "this is about tombstones");

    let expected: Vec<String> = partitions.iter().map(|partition| format!("{partition}|r")).collect();
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    engine.close().await;
    // This janitor does not walk; it only examines segments that a scan has reported.
    let mut looking = eager(&options);
    looking.janitor.walk_every = Duration::from_secs(3600);
    let engine = open(&looking).await;
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    let rewritten = until(async || Some(segment(&session).await).filter(|segment| *segment != worn)).await;
    assert!(is_readable(&session, all, (rewritten,)).await);
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_with_more_tombstones_than_a_node_reads_is_rewritten() {
    a_segment_full_of_tombstones_is_read_and_rewritten(None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes 150,000 tombstones, which takes some twenty seconds; CONTRIBUTING has the command"]
async fn a_segment_with_150_000_tombstones_is_rewritten() {
    a_segment_full_of_tombstones_is_read_and_rewritten(Some(MANY)).await;
}

/// Struck-off entries stay as rows, and a node can read any number of rows.
async fn struck_off_partitions_are_skipped_and_not_copied(count: Option<usize>) {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let count = count.unwrap_or(too_many(&session).await);
    let engine = open(&options).await;
    let table = table("Struck");
    engine.create_table(&table, None).await.unwrap();
    for partition in [name(count / 2), name(count + 1)] {
        engine.apply(&table, insert(&partition, "r", 1)).await.unwrap();
    }
    let worn = segment(&session).await;
    // As a server strikes off a partition, in an old epoch.
    let strike = "INSERT INTO directory (segment, pk, epoch) VALUES (?, ?, 513) USING TIMESTAMP 513";
    repeat(&session, strike, (0..count).map(|n| (worn, stored(&name(n))))).await;
    let expected = [format!("{}|r", name(count / 2)), format!("{}|r", name(count + 1))];
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    engine.close().await;
    let engine = open(&eager(&options)).await;
    let rewritten = until(async || Some(segment(&session).await).filter(|segment| *segment != worn)).await;
    let left =
        session.query_unpaged("SELECT pk FROM directory WHERE segment = ?", (rewritten,)).await.unwrap();
    assert_eq!(left.into_rows_result().unwrap().rows_num(), 2);
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn struck_off_partitions_are_not_copied_when_their_segment_is_rewritten() {
    struck_off_partitions_are_skipped_and_not_copied(Some(11_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes 150,000 tombstones, which takes some twenty seconds; CONTRIBUTING has the command"]
async fn a_segment_with_150_000_struck_off_partitions_is_rewritten() {
    struck_off_partitions_are_skipped_and_not_copied(Some(MANY)).await;
}

/// An account that has created and dropped this many tables.
async fn tables_are_listed_past_dropped_ones(count: Option<usize>) {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let count = count.unwrap_or(too_many(&session).await);
    let engine = open(&options).await;
    let names = [name(count / 2), name(count + 1)];
    for name in &names {
        engine.create_table(&table(name), None).await.unwrap();
    }
    let account = table("any").account;
    let bury = "DELETE FROM tables WHERE account = ? AND name = ?";
    let keys = (0..count).filter(|n| *n != count / 2).map(|n| (account.as_str().to_owned(), name(n)));
    repeat(&session, bury, keys).await;
    let all = "SELECT name FROM tables WHERE account = ? AND name > '!'";
    assert!(!is_readable(&session, all, (account.as_str(),)).await, "this is about tombstones");

    let listed = async |from: &str, limit| {
        let page = engine.list_tables(&account, ServiceKind::Table, from, limit).await.unwrap();
        (page.names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(listed("", 10).await, (names.to_vec(), None));
    assert_eq!(listed("", 1).await, (names[..1].to_vec(), Some(names[1].clone())));
    assert_eq!(listed(&names[1], 1).await, (names[1..].to_vec(), None));
    assert_eq!(engine.list_accounts().await.unwrap(), [AccountName::parse(account.as_str()).unwrap()]);
    engine.create_table(&table(&name(0)), None).await.unwrap();
    let refused = engine.create_table(&table(&name(0)), None).await;
    assert!(matches!(refused, Err(Error::TableAlreadyExists)), "{refused:?}");
    engine.drop_table(&table(&name(0))).await.unwrap();
    // A drop that its server did not finish is found, and finished.
    let doom = "UPDATE tables SET state = 2 WHERE account = ? AND name = ? IF state = 1";
    session.query_unpaged(doom, (account.as_str(), &names[0])).await.unwrap();
    engine.close().await;
    let engine = open(&eager(&options)).await;
    let row = "SELECT name FROM tables WHERE account = ? AND name = ?";
    until(async || {
        let rows = session.query_unpaged(row, (account.as_str(), &names[0])).await.unwrap();
        (rows.into_rows_result().unwrap().rows_num() == 0).then_some(())
    })
    .await;
    engine.drop_table(&table(&names[1])).await.unwrap();
    assert_eq!(engine.list_accounts().await.unwrap(), []);
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_listed_past_more_dropped_ones_than_a_node_reads() {
    tables_are_listed_past_dropped_ones(None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes 150,000 tombstones, which takes some twenty seconds; CONTRIBUTING has the command"]
async fn tables_are_listed_past_150_000_dropped_ones() {
    tables_are_listed_past_dropped_ones(Some(MANY)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_read_and_changed_past_its_former_segments() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    let count = too_many(&session).await;
    let mut splitting = eager(&options);
    (splitting.janitor.split_above, splitting.janitor.merge_below) = (4, 0);
    let engine = open(&options).await;
    let table = table("Merged");
    engine.create_table(&table, None).await.unwrap();
    let id = table_id(&session).await;
    let bury = "DELETE FROM segments WHERE tid = ? AND start = ?";
    repeat(&session, bury, (0..count).map(|n| (id, stored(&name(n))))).await;
    let all = "SELECT start FROM segments WHERE tid = ?";
    assert!(!is_readable(&session, all, (id,)).await, "this is about tombstones");
    let partitions: Vec<String> = (0..8).map(|n| name(n * count / 7)).collect();
    for partition in &partitions {
        engine.apply(&table, insert(partition, "r", 1)).await.unwrap();
    }
    engine.close().await;
    let expected: Vec<String> = partitions.iter().map(|partition| format!("{partition}|r")).collect();
    let engine = open(&splitting).await;
    let version = "SELECT DISTINCT version FROM segments WHERE tid = ?";
    until(async || {
        let rows = session.query_unpaged(version, (id,)).await.unwrap().into_rows_result().unwrap();
        // A split changes the version three times: begun, moved, and the old segment removed.
        (rows.single_row::<(i64,)>().unwrap().0 >= 4).then_some(())
    })
    .await;
    assert_eq!(seen(&engine, &table, KeyRange::all()).await, expected);
    engine.close().await;
    drop_keyspace(&options).await;
}

/// How long a node keeps the table's tombstones.
async fn grace(session: &Session, keyspace: &str, of: &str) -> i32 {
    let text = "SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    let rows = session.query_unpaged(text, (keyspace, of)).await.unwrap().into_rows_result().unwrap();
    rows.single_row::<(i32,)>().unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_are_found_once_the_tombstones_of_the_last_minute_are_few_enough() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = keyspace(&nodes).await;
    assert_eq!(grace(&session, &options.keyspace, "purges").await, 60);
    // A shorter time for the test.
    change_schema(&session, "ALTER TABLE purges WITH gc_grace_seconds = 2").await;
    let bury = "DELETE FROM purges WHERE shard = 0 AND tid = ?";
    let count = too_many(&session).await;
    repeat(&session, bury, (0..count).map(|_| (uuid::Uuid::new_v4(),))).await;
    let all = "SELECT tid FROM purges WHERE shard = 0";
    until(async || is_readable(&session, all, ()).await.then_some(())).await;
    let engine = open(&eager(&options)).await;
    let table = table("Dropped");
    engine.create_table(&table, None).await.unwrap();
    engine.apply(&table, insert("p", "r", 1)).await.unwrap();
    engine.drop_table(&table).await.unwrap();
    until(async || {
        let rows = session.query_unpaged("SELECT tid FROM segments", ()).await.unwrap();
        (rows.into_rows_result().unwrap().rows_num() == 0).then_some(())
    })
    .await;
    engine.close().await;
    drop_keyspace(&options).await;
}
