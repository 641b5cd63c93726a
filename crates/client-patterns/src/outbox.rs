//! Changes across partitions and tables that are all made in the end, even if a process dies.
//!
//! A service changes only one partition atomically. An outbox uses this: one transaction changes a partition and inserts a
//! message, a row of the same partition, which says what else to change. Then the process makes those changes. If it dies
//! before, another worker finds the message and makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::DateTime;

use super::clock::Clock;
use super::collect;
use super::long_text;
use super::queue::{self, Message, MessageLease, PoisonedMessage, Queue};
use super::steps::OutboxStep;
use super::worker::{Worker, WorkerCounts};
use partita_client::{ETag, Entity, Error, Result, Table, TableService, Transaction, row_key};

/// Sorts after almost every row key, and is unlikely to be one of the user's.
const PREFIX: &str = "~outbox~";

/// Eventually consistent transactions of one table with any others of its account.
///
/// [`commit`](Self::commit) changes a partition of the outbox's table and, in the same transaction, records the
/// [`OutboxStep`]s that must follow. Then it makes the steps. If that fails, or if the process dies, the next call of
/// [`heal`](Self::heal) or [`run`](Self::run), in any process, makes them. So if `commit` succeeds, everything is or will be
/// done. If it fails, nothing is or will be done, unless the error is [`OutcomeUnknown`](Error::OutcomeUnknown): then it is
/// all or nothing; read the changed entity to find out.
///
/// Steps may be repeated and late; see [`OutboxStep`]. A message whose steps keep failing is poisoned in the end;
/// [`poisoned`](Self::poisoned) lists such messages. Messages are rows of the changed partition whose row keys begin with
/// `~outbox~`. They contain the entities of their steps unencrypted.
///
/// To find messages of dead processes, the whole table is read. Do it rarely, or [name the
/// partitions](Self::heal_partition).
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client_patterns::{outbox::Outbox, steps::OutboxStep};
/// use partita_client::{Entity, Match, Transaction};
///
/// let outbox = Outbox::new(&service, "Current")?;
/// let mut leave = Transaction::new();
/// leave.delete("Sales", "000223", Match::Any);
/// let farewell = Entity::new("Sales", "000223").with("Left", true);
/// outbox.commit(leave, &[OutboxStep::insert("Former", &farewell)?]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Outbox {
    service: TableService,
    table: Table,
    /// The same table without encryption, for messages.
    messages: Table,
    /// Tables given by [`with_table`](Self::with_table).
    tables: BTreeMap<String, Table>,
    lease_time: Duration,
    attempts_max: u32,
    pauses: (Duration, Duration),
    sweep_pause: Duration,
    clock: Clock,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// The versions of the changed entities, as [`Table::submit`] returns them.
    pub etags: Vec<Option<ETag>>,
    /// Whether the steps are done. If not, they will be.
    pub settled: bool,
}

impl Outbox {
    /// The outbox of this table.
    pub fn new(service: &TableService, table: &str) -> Result<Self> {
        let table = service.table(table)?;
        Ok(Self {
            service: service.clone(),
            messages: table.clone(),
            table,
            tables: BTreeMap::new(),
            lease_time: Duration::from_secs(30),
            attempts_max: 20,
            pauses: (Duration::from_secs(1), Duration::from_secs(300)),
            sweep_pause: Duration::from_secs(60),
            clock: Clock::of_this_machine(),
        })
    }

    /// Uses this handle for the table of its name, for example one with encryption. Messages are not encrypted.
    pub fn with_table(mut self, table: Table) -> Self {
        if table.name() == self.table.name() {
            self.table = table.clone();
        }
        self.tables.insert(table.name().to_owned(), table);
        self
    }

    /// How long `commit` may take for the steps before others repeat them; by default 30 s.
    pub fn lease_time(self, time: Duration) -> Self {
        Self { lease_time: time, ..self }
    }

    /// How often the steps of a message are tried before it is poisoned; by default 20 times.
    pub fn attempts_max(self, attempts: u32) -> Self {
        Self { attempts_max: attempts, ..self }
    }

    /// The first and the longest pause before failed steps are retried; by default 1 s and 5 min.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { pauses: (first, longest), ..self }
    }

    /// The pause of [`run`](Self::run) between two reads of the table; by default a minute.
    pub fn sweep_pause(self, pause: Duration) -> Self {
        Self { sweep_pause: pause, ..self }
    }

    /// Sets the clock; by default this machine's.
    pub fn clock(self, now: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        Self { clock: Clock::of(now), ..self }
    }

    /// The table whose partitions it changes.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Makes the changes of the transaction, all or none, and the steps after them. The transaction can have 99 operations.
    pub async fn commit(&self, transaction: Transaction, steps: &[OutboxStep]) -> Result<Committed> {
        self.commit_as(&queue::oldest_first_id(self.clock.now()), transaction, steps).await
    }

    /// As [`commit`](Self::commit), with a given id. Fails while a message with this id exists (409).
    pub(crate) async fn commit_as(
        &self,
        id: &str,
        mut transaction: Transaction,
        steps: &[OutboxStep],
    ) -> Result<Committed> {
        let Some(first) = transaction.operations().first() else {
            return Err(Error::Invalid(
                "a commit without changes; its partition holds the message, so name one".to_owned(),
            ));
        };
        let queue = self.queue(&first.entity.partition_key);
        if steps.is_empty() {
            return Ok(Committed { etags: self.table.submit(transaction).await?, settled: true });
        }
        let message = OutboxStep::write(steps)?;
        if !long_text::fits(&message) {
            return Err(Error::Invalid(format!(
                "{} steps of {} bytes, more than a message holds; make several changes of this one, or of less",
                steps.len(),
                message.len()
            )));
        }
        let (row, until) = queue.leased_row(id, &message, self.lease_time)?;
        transaction.insert(&row)?;
        let mut etags = self.table.submit(transaction).await?;
        // From here on everything will be done in the end, so a failure is not returned to the caller.
        let etag = etags.pop().flatten().unwrap_or_else(|| ETag::new(""));
        let settled = match self.settle(&queue, queue.lease(row, until, etag), steps).await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::warn!(id, %error, "steps are left to a worker");
                false
            }
        };
        Ok(Committed { etags, settled })
    }

    async fn settle(&self, queue: &Queue, lease: Result<MessageLease>, steps: &[OutboxStep]) -> Result<bool> {
        let lease = lease?;
        match self.carry_out(steps).await {
            Ok(()) => {
                // The steps are done, even if the lease was lost.
                queue.complete(&lease).await?;
                Ok(true)
            }
            Err(error) => {
                queue.release(lease, self.pauses.0, Some(&error.to_string())).await?;
                Err(error)
            }
        }
    }

    /// Makes steps without a message.
    pub(crate) async fn carry_out(&self, steps: &[OutboxStep]) -> Result<()> {
        for step in steps {
            step.carry_out(&self.table_of(step.table())?).await?;
        }
        Ok(())
    }

    pub(crate) fn table_of(&self, name: &str) -> Result<Table> {
        match self.tables.get(name) {
            Some(table) => Ok(table.clone()),
            None => self.service.table(name),
        }
    }

    /// Reads the whole table once, and makes the steps of messages that are not leased.
    pub async fn heal(&self) -> Result<WorkerCounts> {
        let mut tally = WorkerCounts::default();
        for partition in self.partitions(&queue::messages_prefix(PREFIX)).await? {
            tally.add(self.heal_partition(&partition).await?);
        }
        Ok(tally)
    }

    /// The same for one partition, without reading the others.
    pub async fn heal_partition(&self, partition_key: &str) -> Result<WorkerCounts> {
        self.worker(partition_key).run_until_idle(|message| self.handle(message)).await
    }

    /// Heals repeatedly until `shutdown` is ready. If the service does not answer, it keeps trying.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> WorkerCounts {
        let mut shutdown = pin!(shutdown);
        let mut tally = WorkerCounts::default();
        loop {
            match self.heal().await {
                Ok(sweep) => tally.add(sweep),
                Err(error) => tracing::warn!(%error, "the outbox could not be looked through; trying again"),
            }
            tokio::select! {
                () = &mut shutdown => return tally,
                () = tokio::time::sleep(self.sweep_pause) => {}
            }
        }
    }

    /// Heals until no message is left. Waits for messages that others have leased or that wait for their next attempt.
    pub async fn run_until_empty(&self) -> Result<WorkerCounts> {
        let mut tally = WorkerCounts::default();
        loop {
            let partitions = self.partitions(&queue::messages_prefix(PREFIX)).await?;
            if partitions.is_empty() {
                return Ok(tally);
            }
            for partition in partitions {
                let worker = self.worker(&partition);
                tally.add(worker.run_until_empty(|message| self.handle(message)).await?);
            }
        }
    }

    /// The number of messages. Reads the whole table.
    pub async fn waiting(&self) -> Result<u64> {
        self.messages.query().filter(row_key().starts_with(&queue::messages_prefix(PREFIX))).count().await
    }

    /// Messages whose steps keep failing, with their partitions. Reads the whole table.
    pub async fn poisoned(&self) -> Result<Vec<(String, PoisonedMessage)>> {
        let mut all = Vec::new();
        for partition in self.partitions(&queue::poisoned_prefix(PREFIX)).await? {
            let poisoned = self.queue(&partition).poisoned().await?;
            all.extend(poisoned.into_iter().map(|poisoned| (partition.clone(), poisoned)));
        }
        Ok(all)
    }

    /// Deletes marks of [`OutboxStep::insert`] in a table that are older than this. Choose a time that is longer than any
    /// step can be late; a week is safe. Returns their number. Reads the whole table.
    pub async fn collect_marks(&self, table: &str, older_than: Duration) -> Result<u64> {
        collect::collect_marks(&self.table_of(table)?, older_than).await
    }

    /// The messages of one partition as a queue, to requeue or discard poisoned ones.
    pub fn queue(&self, partition_key: &str) -> Queue {
        Queue::new(&self.messages, partition_key)
            .prefix(PREFIX)
            .dequeues_max(self.attempts_max)
            .with_clock(self.clock.clone())
    }

    fn worker(&self, partition_key: &str) -> Worker {
        Worker::new(self.queue(partition_key))
            .lease_time(self.lease_time)
            .pauses(self.pauses.0, self.pauses.1)
            .idle_pause(self.pauses.0)
    }

    async fn handle(&self, message: Message) -> Result<()> {
        self.carry_out(&OutboxStep::read(&message.body)?).await
    }

    /// Partitions that have rows with this prefix.
    async fn partitions(&self, prefix: &str) -> Result<BTreeSet<String>> {
        let query =
            self.messages.query().filter(row_key().starts_with(prefix)).select(["PartitionKey", "RowKey"]);
        query.stream::<Entity>().map_ok(|row| row.into_inner().partition_key).try_collect().await
    }
}
