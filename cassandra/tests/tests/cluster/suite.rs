//! The engine keeps the promises of every engine on a cluster.

use std::sync::Arc;

use bytes::Bytes;
use cluster_tests::{change_schema, drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraObjects, connect};
use model::{DateTime, ServiceKind};
use scylla::client::session::Session;
use store::{Engine, ObjectId, Objects};

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    store_suite::run(|| async {
        let engine = open(&options).await;
        empty(&*engine, &session).await;
        engine as Arc<dyn Engine>
    })
    .await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_keep_every_promise() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    store_suite::objects::run(|| async {
        // Names are used again here, which no program does.
        for table in ["chunks", "objects", "object_hours"] {
            change_schema(&session, format!("TRUNCATE {table}")).await;
        }
        Arc::new(CassandraObjects::new(open(&options).await)) as Arc<dyn Objects>
    })
    .await;
    drop_keyspace(&options).await;
}

/// An old hour in which everything is removed is deleted, and objects of other hours stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_removed_objects_is_deleted_when_it_is_old() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    let objects = CassandraObjects::new(open(&options).await);
    let named = |hours: i64, number: u8| {
        let ticks = DateTime::now().ticks() - hours * 3600 * 10_000_000;
        ObjectId::new(DateTime::from_ticks(ticks).unwrap(), [number; 8])
    };
    let (old, other, young) = (named(1000, 1), named(900, 2), named(1, 3));
    for object in [old, other, young] {
        for number in [0, 15, 16, 40] {
            objects.put(object, number, Bytes::from_static(b"content")).await.unwrap();
        }
    }
    let hours = async || {
        let text = "SELECT hour FROM object_hours WHERE shard = 0";
        session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap().rows_num()
    };
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [old, other, young]);
    assert_eq!(hours().await, 3);
    objects.remove(&[old, young]).await.unwrap();
    for number in [0, 15, 16, 40] {
        assert_eq!(objects.get(old, number).await.unwrap(), None);
    }
    for _ in 0..2 {
        assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [other]);
        assert_eq!(hours().await, 2, "the young hour stays: more may be named in it");
    }
    objects.close().await;
    drop_keyspace(&options).await;
}

/// A write that arrives after the removal, from a server whose clock is ahead or whose answer was lost, changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_arrives_late_does_not_bring_a_removed_object_back() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let (one, two) =
        (CassandraObjects::new(open(&options).await), CassandraObjects::new(open(&options).await));
    let object = ObjectId::new(DateTime::now(), [7; 8]);
    one.put(object, 0, Bytes::from_static(b"content")).await.unwrap();
    two.remove(&[object]).await.unwrap();
    one.put(object, 0, Bytes::from_static(b"content")).await.unwrap();
    assert_eq!(two.get(object, 0).await.unwrap(), None);
    assert_eq!(two.list(ObjectId::FIRST, 10).await.unwrap().objects, []);
    one.close().await;
    two.close().await;
    drop_keyspace(&options).await;
}

/// Empties the keyspace for the next promise: creating a new one would take seconds.
async fn empty(engine: &dyn Engine, session: &Session) {
    for account in ["devstoreaccount1", "another"] {
        // The engine itself never removes the documents of an account.
        session.query_unpaged("DELETE FROM services WHERE account = ?", (account,)).await.unwrap();
        let account = store_suite::account(account);
        for service in ServiceKind::ALL {
            for name in engine.list_tables(&account, service, "", 1000).await.unwrap().names {
                let table = store::TableRef { account: account.clone(), service, name };
                engine.drop_table(&table).await.unwrap();
            }
        }
    }
}
