//! A new partition for every test, the engine's statements, and answers as text to compare.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{CqlValue, Row};
use tokio::sync::OnceCell;
use uuid::Uuid;

const KEYSPACE: &str = "partita_lwt_contract";

pub const PUT_ROW: &str =
    "UPDATE entities SET stamp = ?, body = ? WHERE tid = ? AND pk = ? AND rk = ? IF stamp = ?";
pub const DELETE_ROW: &str = "DELETE FROM entities WHERE tid = ? AND pk = ? AND rk = ? IF stamp = ?";
pub const MARK_WRITTEN: &str = "UPDATE entities SET written = ? WHERE tid = ? AND pk = ? IF epoch = ?";
pub const MARK_INSERTED: &str =
    "UPDATE entities SET written = ? WHERE tid = ? AND pk = ? IF epoch = ? AND deleted < ?";
pub const MARK_DELETED: &str =
    "UPDATE entities SET written = ?, deleted = ? WHERE tid = ? AND pk = ? IF epoch = ? AND deleted = null";
pub const MARK_REGISTERED: &str =
    "UPDATE entities SET written = ?, epoch = ?, registered = ? WHERE tid = ? AND pk = ? IF epoch = ?";
pub const CHANGE_EPOCH: &str = "UPDATE entities SET epoch = ?, registered = ?, body = 0x \
     WHERE tid = ? AND pk = ? AND rk = 0x00 IF epoch = ? AND stamp = null";
pub const CLEAR_ROWS: &str = "DELETE FROM entities WHERE tid = ? AND pk = ? AND rk >= 0x01";
pub const PARTITION_STATE: &str =
    "SELECT DISTINCT epoch, registered, written FROM entities WHERE tid = ? AND pk = ?";

/// One statement of a conditional batch. The last value is the one that the condition expects; `None` is null.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    Put(&'a str, i64, Option<i64>),
    Delete(&'a str, Option<i64>),
    /// Sets `written`, if the epoch is as expected.
    Mark(i64, Option<i64>),
    /// The same, if also the last delete is smaller than the last value.
    MarkInserted(i64, Option<i64>, i64),
    /// The same for the first delete.
    MarkDeleted(i64, Option<i64>),
    /// The same, and sets another epoch.
    Register(i64, i64, Option<i64>),
    Epoch(i64, Option<i64>),
    /// Deletes all rows together with `Epoch`, without a condition of its own.
    Clear,
}

/// A partition that no other test uses.
pub struct Partition {
    pub session: Session,
    pub tid: Uuid,
    pub pk: Vec<u8>,
}

/// `None`, with a message, if the environment names no cluster.
pub async fn partition() -> Option<Partition> {
    static PREPARED: OnceCell<()> = OnceCell::const_new();
    let nodes =
        testing::needed("PARTITA_TEST_CASSANDRA", "`./test rust` starts a Cassandra node and sets it")?;
    let policy = DefaultPolicy::builder().token_aware(true).enable_shuffling_replicas(false).build();
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .serial_consistency(Some(SerialConsistency::Serial))
        // Creating the tables takes long on a busy machine.
        .request_timeout(Some(Duration::from_secs(120)))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .load_balancing_policy(policy)
        .build();
    let session = SessionBuilder::new()
        .known_nodes(nodes.split(','))
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await
        .unwrap();
    PREPARED.get_or_init(|| prepare(&session)).await;
    session.use_keyspace(KEYSPACE, false).await.unwrap();
    Some(Partition { session, tid: Uuid::new_v4(), pk: key("p") })
}

async fn prepare(session: &Session) {
    session.query_unpaged(format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"), ()).await.unwrap();
    let replicas = session.get_cluster_state().get_nodes_info().len().min(3);
    let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}");
    engine_cassandra::init(session, KEYSPACE, &replication).await.unwrap();
}

/// As `keys::KeyBytes` stores ASCII.
pub fn key(text: &str) -> Vec<u8> {
    [&[1], text.as_bytes()].concat()
}

impl Partition {
    /// Another partition of the same table, over the same session.
    pub fn keyed(self, text: &str) -> Self {
        Self { pk: key(text), ..self }
    }

    /// The step's statement and values as the engine binds them.
    pub fn bind(&self, step: &Step<'_>) -> (&'static str, Vec<Option<CqlValue>>) {
        let number = |n: &i64| Some(CqlValue::BigInt(*n));
        let (tid, pk) = (Some(CqlValue::Uuid(self.tid)), Some(CqlValue::Blob(self.pk.clone())));
        let row = |text: &str| Some(CqlValue::Blob(key(text)));
        let body = |stamp: &i64| Some(CqlValue::Blob(stamp.to_string().into_bytes()));
        let listed = Some(CqlValue::TinyInt(1));
        match step {
            Step::Put(rk, stamp, old) => {
                (PUT_ROW, vec![number(stamp), body(stamp), tid, pk, row(rk), old.map(CqlValue::BigInt)])
            }
            Step::Delete(rk, old) => (DELETE_ROW, vec![tid, pk, row(rk), old.map(CqlValue::BigInt)]),
            Step::Mark(written, epoch) => {
                (MARK_WRITTEN, vec![number(written), tid, pk, epoch.map(CqlValue::BigInt)])
            }
            Step::MarkInserted(written, epoch, deleted) => {
                (MARK_INSERTED, vec![number(written), tid, pk, epoch.map(CqlValue::BigInt), number(deleted)])
            }
            Step::MarkDeleted(written, epoch) => {
                let epoch = epoch.map(CqlValue::BigInt);
                (MARK_DELETED, vec![number(written), number(written), tid, pk, epoch])
            }
            Step::Register(written, to, from) => (
                MARK_REGISTERED,
                vec![number(written), number(to), listed, tid, pk, from.map(CqlValue::BigInt)],
            ),
            Step::Epoch(to, from) => {
                (CHANGE_EPOCH, vec![number(to), listed, tid, pk, from.map(CqlValue::BigInt)])
            }
            Step::Clear => (CLEAR_ROWS, vec![tid, pk]),
        }
    }

    pub async fn prepare(&self, text: &str) -> PreparedStatement {
        self.session.prepare(text).await.unwrap()
    }

    pub async fn serial(&self, text: &str) -> PreparedStatement {
        let mut statement = self.prepare(text).await;
        statement.set_consistency(Consistency::Serial);
        statement
    }

    pub async fn try_bound(
        &self,
        steps: Vec<(&str, Vec<Option<CqlValue>>)>,
    ) -> Result<QueryResult, ExecutionError> {
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::new();
        for (text, bound) in steps {
            batch.append_statement(self.prepare(text).await);
            values.push(bound);
        }
        self.session.batch(&batch, values).await
    }

    pub async fn try_batch(&self, steps: &[Step<'_>]) -> Result<QueryResult, ExecutionError> {
        self.try_bound(steps.iter().map(|step| self.bind(step)).collect()).await
    }

    /// The answer to a batch of these steps.
    pub async fn batch(&self, steps: &[Step<'_>]) -> Vec<String> {
        self.show(self.try_batch(steps).await.unwrap())
    }

    /// A batch that must be applied, to prepare a test.
    pub async fn given(&self, steps: &[Step<'_>]) {
        assert_eq!(self.batch(steps).await, APPLIED, "{steps:?}");
    }

    /// The answer to one step as a single statement.
    pub async fn single(&self, step: &Step<'_>) -> Vec<String> {
        let (text, values) = self.bind(step);
        self.ask(text, values).await
    }

    pub async fn ask(&self, text: &str, values: impl SerializeRow) -> Vec<String> {
        let statement = self.prepare(text).await;
        self.show(self.session.execute_unpaged(&statement, values).await.unwrap())
    }

    /// A read at SERIAL; the first line has the columns.
    pub async fn read(&self, text: &str, values: impl SerializeRow) -> Vec<String> {
        let statement = self.serial(text).await;
        self.show(self.session.execute_unpaged(&statement, values).await.unwrap())
    }

    /// Epoch, registration and last stamp, as one line; none if the partition does not exist.
    pub async fn state(&self) -> Option<String> {
        self.read(PARTITION_STATE, (self.tid, &self.pk)).await.get(1).cloned()
    }

    /// Every row and its stamp, in order.
    pub async fn rows(&self) -> Vec<String> {
        let text = "SELECT rk, stamp FROM entities WHERE tid = ? AND pk = ? AND rk >= 0x01";
        self.read(text, (self.tid, &self.pk)).await.split_off(1)
    }

    /// The names of the columns, then a line for each row: `T` and `P` are this partition's own keys, `-` is
    /// null.
    pub fn show(&self, result: QueryResult) -> Vec<String> {
        let rows = result.into_rows_result().unwrap();
        let names: Vec<&str> = rows.column_specs().iter().map(|column| column.name()).collect();
        let mut lines = vec![names.join(" ")];
        for row in rows.rows::<Row>().unwrap() {
            let cells: Vec<String> = row.unwrap().columns.into_iter().map(|cell| self.cell(cell)).collect();
            lines.push(cells.join(" "));
        }
        lines
    }

    fn cell(&self, value: Option<CqlValue>) -> String {
        match value {
            None => "-".to_owned(),
            Some(CqlValue::Uuid(id)) if id == self.tid => "T".to_owned(),
            Some(CqlValue::Blob(bytes)) if bytes == self.pk => "P".to_owned(),
            Some(CqlValue::Blob(bytes)) => match bytes.split_first() {
                Some((1, text)) if !text.is_empty() => String::from_utf8_lossy(text).into_owned(),
                _ => bytes.iter().fold("0x".to_owned(), |mut out, byte| {
                    let _ = write!(out, "{byte:02x}");
                    out
                }),
            },
            Some(CqlValue::BigInt(n)) => n.to_string(),
            Some(CqlValue::Boolean(b)) => b.to_string(),
            Some(CqlValue::TinyInt(n)) => n.to_string(),
            Some(CqlValue::Text(text)) => text,
            Some(other) => format!("{other:?}"),
        }
    }
}

/// The answer to every applied write.
pub const APPLIED: [&str; 2] = ["[applied]", "true"];
/// The answer to a refused write where nothing exists.
pub const REFUSED_BY_NOTHING: [&str; 2] = ["[applied]", "false"];

/// The server's own error.
pub fn answered(error: &ExecutionError) -> (&DbError, &str) {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, why)) => (error, why),
        other => panic!("not an answer of the server: {other:?}"),
    }
}
