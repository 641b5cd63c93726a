//! The connection to the cluster: one session, the statements, and the meaning of their answers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};
use store::Fault;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::counters::Counts;
use crate::keys::KeyBytes;
use crate::statements::Statements;
use crate::trouble::{Trouble, undecodable};

/// Longer than Cassandra's own timeouts for a conditional write, so that its answer arrives first.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(12);

/// The session and its statements.
#[derive(Debug)]
pub struct Link {
    pub session: Session,
    pub statements: Statements,
    pub counts: Arc<Counts>,
    /// Limits the reads in flight. More would only wait in the cluster, instead of being answered `Busy`.
    reads: Semaphore,
}

const READS_UNDER_WAY: usize = 512;
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// The link, and the clock of a server that may write. Dereferences to the link.
#[derive(Debug)]
pub struct Cluster {
    pub link: Arc<Link>,
    pub clock: Arc<Clock>,
}

/// How long to wait until the slot lease covers stamps or epochs from the future.
pub const CLOCK_PATIENCE: Duration = Duration::from_secs(3);
pub const CLOCK_PAUSE: Duration = Duration::from_millis(50);

impl Cluster {
    /// A new epoch above `current`.
    pub async fn epoch_above(&self, current: i64) -> Result<i64, Trouble> {
        let until = Instant::now() + CLOCK_PATIENCE;
        loop {
            if let Some(epoch) = self.clock.epoch_above(current) {
                return Ok(epoch);
            }
            if Instant::now() > until {
                return Err(Trouble::refused("the slot lease has expired"));
            }
            tokio::time::sleep(CLOCK_PAUSE).await;
        }
    }
}

impl Deref for Cluster {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

/// One statement with an `IF`, and its values.
#[derive(Debug)]
pub struct Conditional<'a> {
    pub statement: &'a PreparedStatement,
    pub values: Vec<Option<CqlValue>>,
}

/// The outcome of a conditional batch. Both answers show one moment of the partition's consensus.
#[derive(Debug)]
pub enum Outcome {
    Applied,
    /// Nothing was changed. The rows of the conditions at that moment: missing rows did not exist, and missing
    /// columns had no value.
    Refused(Vec<RefusalRow>),
}

/// A row of a refused batch: its columns by name. They differ from answer to answer.
#[derive(Debug, Default)]
pub struct RefusalRow(Vec<(String, CqlValue)>);

impl Outcome {
    pub fn is_applied(&self) -> bool {
        matches!(self, Self::Applied)
    }
}

impl RefusalRow {
    pub fn value(&self, column: &str) -> Option<&CqlValue> {
        self.0.iter().find(|(name, _)| name == column).map(|(_, value)| value)
    }

    pub fn number(&self, column: &str) -> Option<i64> {
        self.value(column).and_then(CqlValue::as_bigint)
    }

    /// The row key; `None` if there are only the columns of the partition.
    pub fn row_key(&self) -> Option<KeyBytes> {
        match self.value("rk") {
            Some(CqlValue::Blob(bytes)) => Some(KeyBytes::stored(bytes.clone())),
            _ => None,
        }
    }
}

impl Link {
    /// With the counts that the statements were prepared with.
    pub fn new(session: Session, statements: Statements, counts: Arc<Counts>) -> Self {
        Self { session, statements, counts, reads: Semaphore::new(READS_UNDER_WAY) }
    }

    /// Reads rows.
    pub async fn read(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Sync,
    ) -> Result<QueryRowsResult, Trouble> {
        let busy = |_| Trouble::refused(format!("{READS_UNDER_WAY} reads are under way"));
        let _permit = timeout(READ_PATIENCE, self.reads.acquire()).await.map_err(busy)?;
        self.counts.reads.add(1);
        let result = self.counted(driver::execute(&self.session, statement, &values).await)?;
        result.into_rows_result().map_err(undecodable("an answer as rows"))
    }

    /// Writes without a condition, to the directory: there the latest timestamp should win.
    pub async fn write(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Sync,
    ) -> Result<(), Trouble> {
        self.counts.writes.add(1);
        self.counted(driver::execute(&self.session, statement, &values).await)?;
        Ok(())
    }

    /// An answer, with its trouble counted.
    fn counted<T>(&self, answer: Result<T, ExecutionError>) -> Result<T, Trouble> {
        answer.map_err(Trouble::from).inspect_err(|trouble| self.counts.trouble(trouble))
    }

    /// Runs a batch on one partition, all or nothing.
    pub async fn compare_and_set(&self, steps: Vec<Conditional<'_>>) -> Result<Outcome, Trouble> {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(false);
        let mut values = Vec::with_capacity(steps.len());
        for step in steps {
            batch.append_statement(step.statement.clone());
            values.push(step.values);
        }
        self.counts.conditional_writes.add(1);
        match self.counted(driver::batch(&self.session, &batch, values).await) {
            Ok(answer) => read_outcome(answer),
            // The node fails this before it writes, but for a write we must not rely on that.
            Err(Trouble::Tombstones(why)) => Err(Trouble::Unknown(why)),
            Err(other) => Err(other),
        }
    }
}

/// The columns of an answer depend on what was found, so they are read by name.
fn read_outcome(result: QueryResult) -> Result<Outcome, Trouble> {
    let unreadable = || Fault::cluster("the answer to a conditional write can't be read");
    let rows = result.into_rows_result().map_err(|error| Trouble::unknown(unreadable().because(error)))?;
    let names: Vec<String> = rows.column_specs().iter().map(|column| column.name().to_owned()).collect();
    let mut found = Vec::new();
    for row in rows.rows::<Row>().map_err(|error| Trouble::unknown(unreadable().because(error)))? {
        let row = row.map_err(|error| Trouble::unknown(unreadable().because(error)))?;
        let columns = names.iter().cloned().zip(row.columns);
        let row = RefusalRow(columns.filter_map(|(name, value)| Some((name, value?))).collect());
        match row.value("[applied]") {
            Some(CqlValue::Boolean(true)) => return Ok(Outcome::Applied),
            Some(CqlValue::Boolean(false)) => found.push(row),
            other => {
                return Err(Trouble::unknown(unreadable().because(format!("[applied] is {other:?}"))));
            }
        }
    }
    Ok(Outcome::Refused(found))
}
