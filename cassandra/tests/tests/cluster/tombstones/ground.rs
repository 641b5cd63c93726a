//! Keyspaces with more tombstones, or rows, in one place than a node reads at one time.

use std::time::Duration;

use cluster_tests::fresh_keyspace;
use engine_cassandra::{Options, Schedule, connect};
use futures_util::{StreamExt, TryStreamExt, stream};
use scylla::client::session::Session;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use uuid::Uuid;

/// Tombstones for the long tests.
pub const MANY: usize = 150_000;
const AT_ONCE: usize = 500;

/// Slightly more tombstones than the node allows in one read: 101,000 with its default setting.
pub async fn too_many(session: &Session) -> usize {
    let text = "SELECT value FROM system_views.settings WHERE name = 'tombstone_failure_threshold'";
    let rows = session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap();
    let threshold: usize = rows.single_row::<(String,)>().unwrap().0.parse().unwrap();
    threshold + threshold / 100
}

/// A keyspace whose janitor is idle, and a session that uses it.
pub async fn keyspace(nodes: &[String]) -> (Options, Session) {
    let mut options = fresh_keyspace(nodes).await;
    options.janitor = Schedule {
        look_every: Duration::from_secs(3600),
        walk_every: Duration::from_secs(3600),
        quiet: Duration::ZERO,
        ..Schedule::default()
    };
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    (options, session)
}

/// The same options with a janitor that works all the time.
pub fn eager(options: &Options) -> Options {
    let mut options = options.clone();
    options.janitor.look_every = Duration::from_millis(20);
    options.janitor.walk_every = Duration::from_millis(20);
    options.janitor.purge_after = Duration::ZERO;
    options
}

/// Runs the statement with each of these values, all in one partition.
pub async fn repeat<V>(session: &Session, text: &str, values: impl Iterator<Item = V>)
where
    V: SerializeRow,
{
    let statement = session.prepare(text).await.unwrap();
    let mut values = values.peekable();
    let batches = std::iter::from_fn(|| {
        values.peek()?;
        let mut batch = Batch::new(BatchType::Unlogged);
        let values: Vec<V> = values.by_ref().take(AT_ONCE).collect();
        values.iter().for_each(|_| batch.append_statement(statement.clone()));
        Some(async move { session.batch(&batch, values).await.map(|_| ()) })
    });
    stream::iter(batches).buffer_unordered(8).try_collect::<()>().await.unwrap();
}

/// Whether the node can read this.
pub async fn is_readable(session: &Session, text: &str, values: impl SerializeRow) -> bool {
    match session.query_unpaged(text, values).await {
        Ok(_) => true,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("TOO_MANY_TOMBSTONES"), "{error}");
            false
        }
    }
}

/// The id of the only table.
pub async fn table_id(session: &Session) -> Uuid {
    let rows = session.query_unpaged("SELECT id FROM tables", ()).await.unwrap().into_rows_result().unwrap();
    let ids: Vec<Uuid> = rows.rows::<(Option<Uuid>,)>().unwrap().filter_map(|row| row.unwrap().0).collect();
    let [id] = ids.as_slice() else { panic!("{ids:?}") };
    *id
}

/// The only segment of the only table.
pub async fn segment(session: &Session) -> Uuid {
    let rows = session.query_unpaged("SELECT segment FROM segments", ()).await.unwrap();
    rows.into_rows_result().unwrap().single_row::<(Uuid,)>().unwrap().0
}

pub fn stored(key: &str) -> Vec<u8> {
    [&[1], key.as_bytes()].concat()
}
