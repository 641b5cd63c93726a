//! Changes across partitions and tables that are all made in the end, whoever dies in between.
//!
//! A service changes one partition atomically and no more. An outbox makes of that: a change of one partition, together
//! with the *intent* to make others, is one transaction, because the intent is a row of the same partition. What was
//! intended is then carried out, by whoever committed it or, if he died, by any worker that finds the row.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::DateTime;

use super::clock::Clock;
use super::collect;
use super::long_text;
use super::queue::{self, Lease, Message, Poisoned, Queue};
use super::steps::Step;
use super::worker::{Tally, Worker};
use partita_client::{ETag, Entity, Error, Result, Table, TableService, Transaction, row_key};

/// Sorts behind almost every row key, and looks like none of a user's.
const PREFIX: &str = "~outbox~";

/// Eventually consistent transactions of one table with any others of its account.
///
/// [`commit`](Self::commit) changes a partition of the outbox's table and notes, in the same transaction, the [`Step`]s that
/// must follow. It carries them out at once; if that fails, or if the process dies, they are carried out later by whoever
/// calls [`heal`](Self::heal) or [`run`](Self::run), in any process. So once `commit` has returned, all of it will be done;
/// if it fails, nothing of it was or will be, unless the error is
/// [`OutcomeUnknown`](Error::OutcomeUnknown): then it is all or nothing, and a look at the changed entity tells.
///
/// Steps are repeated, and come late; see [`Step`]. A message that can't be carried out is poisoned in the end:
/// [`poisoned`](Self::poisoned) lists those. Messages are rows of the table, beginning with `~outbox~`, in the partition
/// that was changed; they hold the entities of their steps as plain text.
///
/// To find messages that were left behind, the whole table is looked through. Do it rarely, or
/// [tell which partitions](Self::heal_partition).
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client_patterns::{outbox::Outbox, steps::Step};
/// use partita_client::{Entity, Match, Transaction};
///
/// let outbox = Outbox::new(&service, "Current")?;
/// let mut leave = Transaction::new();
/// leave.delete("Sales", "000223", Match::Any);
/// let farewell = Entity::new("Sales", "000223").with("Left", true);
/// outbox.commit(leave, &[Step::insert("Former", &farewell)?]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Outbox {
    service: TableService,
    table: Table,
    /// The same as the service gives it: messages are not encrypted.
    messages: Table,
    /// Those that are not used as the service gives them.
    tables: BTreeMap<String, Table>,
    lease_time: Duration,
    attempts_max: u32,
    pauses: (Duration, Duration),
    sweep_pause: Duration,
    clock: Clock,
}

/// What a commit did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// The versions of the changed entities, as [`Table::submit`] gives them.
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

    /// Uses this handle for the table of its name, one with encryption for instance. The outbox's messages are not encrypted.
    pub fn with_table(mut self, table: Table) -> Self {
        if table.name() == self.table.name() {
            self.table = table.clone();
        }
        self.tables.insert(table.name().to_owned(), table);
        self
    }

    /// How long whoever commits has for the steps before others take them up. 30 s unless told.
    pub fn lease_time(self, time: Duration) -> Self {
        Self { lease_time: time, ..self }
    }

    /// How often the steps of a message are tried before it is poisoned. 20 times unless told.
    pub fn attempts_max(self, attempts: u32) -> Self {
        Self { attempts_max: attempts, ..self }
    }

    /// After how long failed steps are tried again: the first time, and at most. 1 s and 5 min unless told.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { pauses: (first, longest), ..self }
    }

    /// How long [`run`](Self::run) waits between two looks. A minute unless told.
    pub fn sweep_pause(self, pause: Duration) -> Self {
        Self { sweep_pause: pause, ..self }
    }

    /// What the time is: that of this machine unless told.
    pub fn clock(self, now: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        Self { clock: Clock::of(now), ..self }
    }

    /// The table whose partitions it changes.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Makes the changes of the transaction, all or none, and the steps after them. The transaction can have 99 operations.
    pub async fn commit(&self, transaction: Transaction, steps: &[Step]) -> Result<Committed> {
        self.commit_as(&queue::oldest_first_id(self.clock.now()), transaction, steps).await
    }

    /// The same with an id that is known beforehand. Fails (409) while a message with this id is there.
    pub(crate) async fn commit_as(
        &self,
        id: &str,
        mut transaction: Transaction,
        steps: &[Step],
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
        let message = Step::write(steps)?;
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
        // From here on all of it will be done, and a failure is none of the caller's.
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

    async fn settle(&self, queue: &Queue, lease: Result<Lease>, steps: &[Step]) -> Result<bool> {
        let lease = lease?;
        match self.carry_out(steps).await {
            Ok(()) => {
                // Whether the message was still ours or not: its steps are done.
                queue.complete(&lease).await?;
                Ok(true)
            }
            Err(error) => {
                queue.release(lease, self.pauses.0, Some(&error.to_string())).await?;
                Err(error)
            }
        }
    }

    /// Carries out steps without a message.
    pub(crate) async fn carry_out(&self, steps: &[Step]) -> Result<()> {
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

    /// Looks through the table once, and carries out what was left behind and is not leased.
    pub async fn heal(&self) -> Result<Tally> {
        let mut tally = Tally::default();
        for partition in self.partitions(&queue::messages_prefix(PREFIX)).await? {
            tally.add(self.heal_partition(&partition).await?);
        }
        Ok(tally)
    }

    /// The same for one partition, without looking through the others.
    pub async fn heal_partition(&self, partition_key: &str) -> Result<Tally> {
        self.worker(partition_key).run_until_idle(|message| self.handle(message)).await
    }

    /// Heals again and again until `shutdown` is ready. A service that does not answer is waited for.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Tally {
        let mut shutdown = pin!(shutdown);
        let mut tally = Tally::default();
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

    /// Heals until no message is left; those that others have, or that wait for their next try, are waited for.
    pub async fn run_until_empty(&self) -> Result<Tally> {
        let mut tally = Tally::default();
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

    /// How many messages there are. Looks through the table.
    pub async fn waiting(&self) -> Result<u64> {
        self.messages.query().filter(row_key().starts_with(&queue::messages_prefix(PREFIX))).count().await
    }

    /// Messages that could not be carried out, with their partitions. Looks through the table.
    pub async fn poisoned(&self) -> Result<Vec<(String, Poisoned)>> {
        let mut all = Vec::new();
        for partition in self.partitions(&queue::poisoned_prefix(PREFIX)).await? {
            let poisoned = self.queue(&partition).poisoned().await?;
            all.extend(poisoned.into_iter().map(|poisoned| (partition.clone(), poisoned)));
        }
        Ok(all)
    }

    /// Deletes marks that [`Step::insert`] left in a table and that are older than this: longer than any step can be late. A
    /// week is on the safe side. How many there were. Looks through the table.
    pub async fn collect_marks(&self, table: &str, older_than: Duration) -> Result<u64> {
        collect::collect_marks(&self.table_of(table)?, older_than).await
    }

    /// The messages of one partition as what they are, a queue: to requeue and discard poisoned ones.
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
        self.carry_out(&Step::read(&message.body)?).await
    }

    /// Partitions that have such rows.
    async fn partitions(&self, prefix: &str) -> Result<BTreeSet<String>> {
        let query =
            self.messages.query().filter(row_key().starts_with(prefix)).select(["PartitionKey", "RowKey"]);
        query.stream::<Entity>().map_ok(|row| row.into_inner().partition_key).try_collect().await
    }
}
