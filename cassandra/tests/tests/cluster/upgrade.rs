//! A keyspace of an earlier release, with the data that its servers left.

use bytes::Bytes;
use cluster_tests::{change_schema, drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraEngine, ConnectError, InitError, Options, connect, init};
use model::{KeyRange, ServiceKind};
use scylla::client::session::Session;
use store::Engine;
use store_suite::{insert, key, scan, table};
use uuid::Uuid;

/// Schema 1.
const TABLES: [&str; 9] = [
    "schema_version (id int PRIMARY KEY, version int)",
    "services (account text PRIMARY KEY, metadata blob)",
    "tables (account text, name text, id uuid, shown text, state tinyint, metadata blob, \
     PRIMARY KEY ((account), name))",
    "entities (tid uuid, pk blob, rk blob, epoch bigint static, registered tinyint static, \
     written bigint static, stamp bigint, body blob, PRIMARY KEY ((tid, pk), rk)) \
     WITH read_repair = 'BLOCKING' AND gc_grace_seconds = 345600 \
     AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    "directory (segment uuid, pk blob, epoch bigint, PRIMARY KEY ((segment), pk)) \
     WITH gc_grace_seconds = 10800 AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    "segments (tid uuid, start blob, segment uuid, state tinyint, low uuid, high uuid, cut blob, \
     retired frozen<set<uuid>>, version bigint static, PRIMARY KEY ((tid), start))",
    "purges (shard int, tid uuid, PRIMARY KEY ((shard), tid))",
    "slots (id int PRIMARY KEY, owner uuid, high bigint)",
    "switches (id int PRIMARY KEY, frozen boolean)",
];
/// What schema 2 adds.
const SCHEMA_2: [&str; 6] = [
    "slots ADD lease int",
    "slots ADD frozen uuid",
    "switches ADD freeze uuid",
    "tables WITH gc_grace_seconds = 345600",
    "segments WITH gc_grace_seconds = 345600",
    "purges WITH gc_grace_seconds = 60",
];
const REPLICATION: &str = "{'class': 'SimpleStrategy', 'replication_factor': 1}";

async fn make_schema_1(nodes: &[String]) -> (Options, Session) {
    let mut options = Options::new(nodes.to_vec(), format!("test_{}", Uuid::new_v4().simple()));
    options.accept_unsafe = true;
    let session = connect(&options).await.unwrap();
    let keyspace = &options.keyspace;
    change_schema(&session, format!("CREATE KEYSPACE {keyspace} WITH replication = {REPLICATION}")).await;
    for columns in TABLES {
        change_schema(&session, format!("CREATE TABLE {keyspace}.{columns}")).await;
    }
    let text = format!("INSERT INTO {keyspace}.schema_version (id, version) VALUES (0, 1)");
    session.query_unpaged(text, ()).await.unwrap();
    session.use_keyspace(keyspace, true).await.unwrap();
    (options, session)
}

async fn make_schema_2(nodes: &[String]) -> (Options, Session) {
    let (options, session) = make_schema_1(nodes).await;
    for change in SCHEMA_2 {
        change_schema(&session, format!("ALTER TABLE {}.{change}", options.keyspace)).await;
    }
    set_version(&session, &options, 2).await;
    (options, session)
}

async fn set_version(session: &Session, options: &Options, version: i32) {
    let text = format!("UPDATE {}.schema_version SET version = ? WHERE id = 0 IF EXISTS", options.keyspace);
    session.query_unpaged(text, (version,)).await.unwrap();
}

/// A row as some release stored it: its stamp and body.
async fn stored_row(nodes: &[String]) -> (i64, Vec<u8>) {
    let options = fresh_keyspace(nodes).await;
    let engine = open(&options).await;
    engine.create_table(&table("Any"), None).await.unwrap();
    engine.apply(&table("Any"), insert("p", "r", 7)).await.unwrap();
    engine.close().await;
    let session = connect(&options).await.unwrap();
    let text = format!("SELECT stamp, body FROM {}.entities", options.keyspace);
    let rows = session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap();
    let row = rows.single_row::<(i64, Vec<u8>)>().unwrap();
    drop_keyspace(&options).await;
    row
}

/// A table with one partition that has a row, and another that was emptied and struck off, as a server of schema 1
/// leaves them.
async fn fill(session: &Session, nodes: &[String]) {
    let (stamp, body) = stored_row(nodes).await;
    let (tid, segment) = (Uuid::new_v4(), Uuid::new_v4());
    let books = table("Books");
    let text = "INSERT INTO tables (account, name, id, shown, state) VALUES (?, 'books', ?, 'Books', 1) IF NOT EXISTS";
    session.query_unpaged(text, (books.account.as_str(), tid)).await.unwrap();
    let text = "UPDATE segments SET version = 1, segment = ?, state = 1, low = null, high = null, cut = null, \
                retired = {} WHERE tid = ? AND start = 0x01 IF version = null";
    session.query_unpaged(text, (segment, tid)).await.unwrap();
    let text = "UPDATE entities SET epoch = 1024, registered = 1, written = ?, stamp = ?, body = ? \
                WHERE tid = ? AND pk = 0x0170 AND rk = 0x0172 IF epoch = null";
    session.query_unpaged(text, (stamp, stamp, body, tid)).await.unwrap();
    let text = "UPDATE entities SET epoch = 2048, registered = 0, written = ? WHERE tid = ? AND pk = 0x0171 IF epoch = null";
    session.query_unpaged(text, (stamp, tid)).await.unwrap();
    let text = "INSERT INTO directory (segment, pk, epoch) VALUES (?, 0x0170, 1024) USING TIMESTAMP 1024";
    session.query_unpaged(text, (segment,)).await.unwrap();
    let text = "DELETE FROM directory USING TIMESTAMP 2049 WHERE segment = ? AND pk = 0x0171";
    session.query_unpaged(text, (segment,)).await.unwrap();
    let text = "UPDATE slots SET owner = null, high = ? WHERE id = 0 IF owner = null";
    session.query_unpaged(text, (stamp,)).await.unwrap();
}

async fn seen(engine: &CassandraEngine) -> Vec<String> {
    let page = engine.scan(&table("Books"), scan(vec![KeyRange::all()], 100)).await.unwrap();
    page.entities.iter().map(|entity| format!("{}|{}", entity.partition, entity.row_key)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_of_schema_1_is_upgraded_and_keeps_its_data() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = make_schema_1(&nodes).await;
    fill(&session, &nodes).await;
    let refused = CassandraEngine::connect(options.clone()).await;
    let Err(ConnectError::Wrong(findings)) = refused else { panic!("{refused:?}") };
    assert!(findings.to_string().contains("has schema 1"), "{findings}");

    let made = init(&session, &options.keyspace, REPLICATION).await.unwrap();
    assert_eq!((made.upgraded_from, made.keyspace, made.tables.len()), (Some(1), false, 3));
    let again = init(&session, &options.keyspace, REPLICATION).await.unwrap();
    assert_eq!(again, engine_cassandra::SchemaChanges::default());
    let text = "SELECT table_name, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ?";
    let rows = session.query_unpaged(text, (&options.keyspace,)).await.unwrap().into_rows_result().unwrap();
    for (name, seconds) in rows.rows::<(String, i32)>().unwrap().map(Result::unwrap) {
        let expected = match name.as_str() {
            "tables" | "segments" | "entities" => Some(345_600),
            "directory" => Some(10_800),
            "purges" => Some(60),
            _ => None,
        };
        assert!(expected.is_none_or(|expected| seconds == expected), "{name}: {seconds}");
    }

    let engine = CassandraEngine::connect(options.clone()).await.unwrap();
    let books = table("Books");
    assert_eq!(engine.list_accounts().await.unwrap(), std::slice::from_ref(&books.account));
    assert!(engine.get(&books, &key("p", "r")).await.unwrap().is_some());
    assert_eq!(seen(&engine).await, ["p|r"]);
    // An existing partition, one that was struck off, and a new one.
    for partition in ["p", "q", "s"] {
        engine.apply(&books, insert(partition, "new", 1)).await.unwrap();
    }
    assert_eq!(seen(&engine).await, ["p|new", "p|r", "q|new", "s|new"]);
    engine.create_table(&table("Authors"), None).await.unwrap();
    let names = engine.list_tables(&books.account, ServiceKind::Table, "", 10).await.unwrap().names;
    assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["Authors", "Books"]);
    engine.drop_table(&books).await.unwrap();
    engine.close().await;
    drop_keyspace(&options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_of_schema_2_is_upgraded_and_keeps_its_service_properties() {
    let Some(nodes) = nodes() else { return };
    let (options, session) = make_schema_2(&nodes).await;
    fill(&session, &nodes).await;
    let mine = table("Books").account;
    let text = "UPDATE services SET metadata = ? WHERE account = ? IF metadata = null";
    session.query_unpaged(text, (b"cors".to_vec(), mine.as_str())).await.unwrap();
    let refused = CassandraEngine::connect(options.clone()).await;
    let Err(ConnectError::Wrong(findings)) = refused else { panic!("{refused:?}") };
    assert!(findings.to_string().contains("has schema 2"), "{findings}");

    let made = init(&session, &options.keyspace, REPLICATION).await.unwrap();
    assert_eq!((made.upgraded_from, made.keyspace, made.tables.len()), (Some(2), false, 3));
    // The state after an upgrade that was interrupted before its last statement.
    set_version(&session, &options, 2).await;
    assert_eq!(init(&session, &options.keyspace, REPLICATION).await.unwrap().upgraded_from, Some(2));

    let engine = CassandraEngine::connect(options.clone()).await.unwrap();
    assert_eq!(seen(&engine).await, ["p|r"]);
    let cors = Some(Bytes::from_static(b"cors"));
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), cors);
    for service in [ServiceKind::Queue, ServiceKind::Blob] {
        assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), None);
        let document = Bytes::from(format!("{service:?}"));
        assert!(engine.replace_service_metadata(&mine, service, None, document.clone()).await.unwrap());
        assert_eq!(engine.service_metadata(&mine, service).await.unwrap(), Some(document));
    }
    assert_eq!(engine.service_metadata(&mine, ServiceKind::Table).await.unwrap(), cors);
    engine.close().await;

    set_version(&session, &options, 99).await;
    let refused = CassandraEngine::connect(options.clone()).await;
    let Err(ConnectError::Wrong(findings)) = refused else { panic!("{refused:?}") };
    assert!(findings.to_string().contains("run the release that made it"), "{findings}");
    let refused = init(&session, &options.keyspace, REPLICATION).await;
    assert!(matches!(refused, Err(InitError::Version { version: 99, .. })), "{refused:?}");
    drop_keyspace(&options).await;
}
