//! The keyspace and its Cassandra tables, created by `partita store init`. The tables of accounts are rows here.

use std::time::Duration;

use futures_util::future::BoxFuture;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::statement::unprepared::Statement;
use thiserror::Error;

use crate::replication::ReplicationError;
use crate::safety::schema_version;
use crate::session::ConnectError;
use crate::trouble::{Trouble, undecodable};

/// The version of the schema. It is stored in the keyspace, so that a newer program recognizes an older schema.
pub const VERSION: i32 = 5;

/// What the schema of each earlier version lacks. New tables have it.
const UPGRADES: &[(i32, &[&str])] = &[
    (
        1,
        &[
            "slots ADD IF NOT EXISTS lease int",
            "slots ADD IF NOT EXISTS frozen uuid",
            "switches ADD IF NOT EXISTS freeze uuid",
            "tables WITH gc_grace_seconds = 345600",
            "segments WITH gc_grace_seconds = 345600",
            "purges WITH gc_grace_seconds = 60",
        ],
    ),
    (2, &["services ADD IF NOT EXISTS queue_metadata blob", "services ADD IF NOT EXISTS blob_metadata blob"]),
    (3, &["entities ADD IF NOT EXISTS deleted bigint static"]),
    // Only new tables.
    (4, &[]),
];

#[derive(Debug, Error)]
pub enum InitError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    #[error("keyspace {keyspace} holds tables that are not ours ({tables}); name another keyspace")]
    Foreign { keyspace: String, tables: String },
    #[error(
        "keyspace {keyspace} has schema {version} and this program makes {VERSION}; name another keyspace"
    )]
    Version { keyspace: String, version: i32 },
    #[error(
        "the cluster did not run {statement:?}: {source}; run the command again once the cluster can do it"
    )]
    Statement { statement: String, source: Box<ExecutionError> },
}

impl From<Trouble> for InitError {
    fn from(trouble: Trouble) -> Self {
        Self::Connect(trouble.into())
    }
}

/// A tombstone stays for `gc_grace_seconds`. Where a row that came back from the dead would do harm, that is as long
/// as a node may be away: four days. What keeps reads from meeting too many of them is said in docs/scaling.md.
///
/// - `services`: a document for each service of an account. `metadata` is the table service's, the only one of schema
///   1 and 2. Each service has a column, because a column can be added to a table with data in it and a key can't.
/// - `tables`: an account's tables by stored name, those of all services. `state` 1 lives, 2 is being dropped; 0 is no table (`roster`).
/// - `entities`: one Cassandra partition per account's partition. `epoch`, `registered`, `written` and `deleted` belong to the
///   partition (`PartitionState`); `stamp` is the row's Timestamp, `body` its stored bytes. A row at 00 is none.
/// - `directory`: partition keys of one segment, in order. Written with the partition's epoch as timestamp.
/// - `segments`: which segment holds which part of a table's partition keys (`directory::map`).
/// - `purges`: dropped tables whose rows are still to be removed.
/// - `chunks`: content, 16 chunks of an object in a partition (`objects`).
/// - `objects`: the parts of all objects by the hour of their names; `object_hours`: these hours.
/// - `slots`: servers' leases (`slot`).
/// - `switches`: what all servers are told: whether writes are refused (`freeze`).
const TABLES: &[(&str, &str)] = &[
    ("schema_version", "(id int PRIMARY KEY, version int)"),
    ("services", "(account text PRIMARY KEY, metadata blob, queue_metadata blob, blob_metadata blob)"),
    (
        "tables",
        "(account text, name text, id uuid, shown text, state tinyint, metadata blob, \
         PRIMARY KEY ((account), name)) WITH gc_grace_seconds = 345600",
    ),
    (
        "entities",
        "(tid uuid, pk blob, rk blob, epoch bigint static, registered tinyint static, written bigint static, \
         deleted bigint static, stamp bigint, body blob, PRIMARY KEY ((tid, pk), rk)) \
         WITH read_repair = 'BLOCKING' AND gc_grace_seconds = 345600 \
         AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    ),
    (
        "directory",
        // An entry that reappears lists an empty partition, which is harmless. So its tombstone need not be kept long.
        "(segment uuid, pk blob, epoch bigint, PRIMARY KEY ((segment), pk)) \
         WITH gc_grace_seconds = 10800 AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    ),
    (
        "segments",
        "(tid uuid, start blob, segment uuid, state tinyint, low uuid, high uuid, cut blob, \
         retired frozen<set<uuid>>, version bigint static, PRIMARY KEY ((tid), start)) \
         WITH gc_grace_seconds = 345600",
    ),
    (
        "purges",
        // A table that reappears here is purged once more.
        "(shard int, tid uuid, PRIMARY KEY ((shard), tid)) WITH gc_grace_seconds = 60",
    ),
    (
        "chunks",
        // A partition is never read as a whole, and its rows never change.
        "(object blob, part bigint, number bigint, body blob, PRIMARY KEY ((object, part), number)) \
         WITH gc_grace_seconds = 345600 AND compression = {'enabled': 'false'} \
         AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    ),
    (
        "objects",
        "(hour bigint, object blob, part bigint, removed boolean, PRIMARY KEY ((hour), object, part)) \
         WITH gc_grace_seconds = 345600 AND compaction = {'class': 'UnifiedCompactionStrategy'}",
    ),
    ("object_hours", "(shard int, hour bigint, PRIMARY KEY ((shard), hour)) WITH gc_grace_seconds = 345600"),
    ("slots", "(id int PRIMARY KEY, owner uuid, high bigint, lease int, frozen uuid)"),
    ("switches", "(id int PRIMARY KEY, frozen boolean, freeze uuid)"),
];

/// All nodes have to agree on a new table, which takes a while on a busy cluster.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(60);
const SCHEMA_ATTEMPTS: u32 = 3;

/// What `init` created.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SchemaChanges {
    pub keyspace: bool,
    pub tables: Vec<&'static str>,
    /// The version of the schema before, if it was an earlier one.
    pub upgraded_from: Option<i32>,
}

/// Creates what is missing of the keyspace and changes nothing else. `replication` is a map in Cassandra's notation.
pub fn init<'a>(
    session: &'a Session,
    keyspace: &'a str,
    replication: &'a str,
) -> BoxFuture<'a, Result<SchemaChanges, InitError>> {
    Box::pin(make(session, keyspace, replication))
}

async fn make(session: &Session, keyspace: &str, replication: &str) -> Result<SchemaChanges, InitError> {
    let run = async |text: String| run(session, text).await;
    let there = tables_of(session, keyspace).await?;
    let foreign: Vec<&str> = there
        .iter()
        .flatten()
        .map(String::as_str)
        .filter(|name| TABLES.iter().all(|(ours, _)| ours != name))
        .collect();
    if !foreign.is_empty() {
        return Err(InitError::Foreign { keyspace: keyspace.to_owned(), tables: foreign.join(", ") });
    }
    // Checked first: a keyspace of a newer release must not get tables of this one.
    let before = schema_version(session, keyspace).await?;
    match before {
        None | Some(1..=VERSION) => {}
        Some(version) => return Err(InitError::Version { keyspace: keyspace.to_owned(), version }),
    }
    run(format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")).await?;
    let mut made = SchemaChanges { keyspace: there.is_none(), ..SchemaChanges::default() };
    for (name, columns) in TABLES {
        if there.iter().flatten().any(|table| table == name) {
            continue;
        }
        run(format!("CREATE TABLE IF NOT EXISTS {keyspace}.{name} {columns}")).await?;
        made.tables.push(name);
    }
    if let Some(before) = before.filter(|before| *before < VERSION) {
        let lacking = UPGRADES.iter().filter(|(version, _)| *version >= before);
        for change in lacking.flat_map(|(_, changes)| *changes) {
            run(format!("ALTER TABLE {keyspace}.{change}")).await?;
        }
        let noted = format!(
            "UPDATE {keyspace}.schema_version SET version = {VERSION} WHERE id = 0 IF version = {before}"
        );
        run(noted).await?;
        made.upgraded_from = Some(before);
    }
    // Last: it marks the keyspace as complete.
    run(format!("INSERT INTO {keyspace}.schema_version (id, version) VALUES (0, {VERSION}) IF NOT EXISTS"))
        .await?;
    Ok(made)
}

/// Runs a statement that does nothing if it was done before, so it can be sent again when no answer came.
async fn run(session: &Session, text: String) -> Result<(), InitError> {
    let mut statement = Statement::new(text.as_str());
    statement.set_request_timeout(Some(SCHEMA_TIMEOUT));
    for attempt in 1.. {
        match driver::query(session, statement.clone(), &()).await {
            Ok(_) => break,
            Err(ExecutionError::RequestTimeout(_)) if attempt < SCHEMA_ATTEMPTS => {}
            Err(source) => return Err(InitError::Statement { statement: text, source: Box::new(source) }),
        }
    }
    Ok(())
}

/// The names of all tables of the keyspace; `None` if there is no keyspace.
async fn tables_of(session: &Session, keyspace: &str) -> Result<Option<Vec<String>>, Trouble> {
    let names = async |table: &str, column: &str| {
        let text = format!("SELECT {column} FROM system_schema.{table} WHERE keyspace_name = ?");
        let rows = driver::query(session, text.into(), &(keyspace,)).await?.into_rows_result();
        let rows = rows.map_err(undecodable("the cluster's tables"))?;
        let rows = rows.rows::<(String,)>().map_err(undecodable("the cluster's tables"))?;
        let names: Result<Vec<String>, _> = rows.map(|row| row.map(|(name,)| name)).collect();
        names.map_err(undecodable("the cluster's tables"))
    };
    if names("keyspaces", "keyspace_name").await?.is_empty() {
        return Ok(None);
    }
    Ok(Some(names("tables", "table_name").await?))
}
