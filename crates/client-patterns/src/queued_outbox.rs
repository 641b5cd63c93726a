//! Changes across partitions and tables that are all made in the end, with their messages in a queue of the Queue service.
//!
//! It promises what an [`Outbox`](crate::outbox::Outbox) promises. There the message is a row of the changed partition, and a
//! worker reads tables to find the messages of dead processes. Here it asks the queue.
//!
//! No transaction spans a table and a queue, so the order of the requests matters:
//!
//! 1. Put the message, hidden for a while.
//! 2. Change the partition, and insert a mark in the same transaction: the change was made.
//! 3. Make the steps, delete the mark, delete the message.
//!
//! A process may die anywhere. Then a worker gets the message. If there is a mark, it makes the steps and goes on as above. If
//! there is none, the change was not made, or all is done. To make sure that it will not be made either, the worker inserts a
//! mark of its own, with which the transaction of step 2 collides. Then it deletes the message.
//!
//! A change that need not be seen at once can be a message alone: its steps are made by a worker, and there is no mark.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use partita_client::{
    Entity, Error, MessageHandle, PutOptions, Queue, Result, Table, TableService, TakenMessage, TimeToLive,
    Transaction, property, row_key,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::collect;
use crate::ids;
use crate::outbox::Committed;
use crate::steps::OutboxStep;
use crate::worker::WorkerCounts;

/// Sorts after almost every row key, and is unlikely to be one of the user's.
const MARK_PREFIX: &str = "~queued~";
/// A mark has it if the change was not made and never will be.
const CANCELLED: &str = "Cancelled";
/// Messages that a worker works on at the same time.
const AT_ONCE: u32 = 8;
/// The shortest time for which a message can be hidden.
const VISIBILITY_MIN: Duration = Duration::from_secs(1);

/// Eventually consistent transactions of one table with any others of its account, by way of a queue.
///
/// [`commit`](Self::commit) changes a partition of the table and makes the [`OutboxStep`]s that must follow. If that fails, or
/// if the process dies, the next call of [`heal`](Self::heal) or [`run`](Self::run), in any process, makes them. So if `commit`
/// succeeds, everything is or will be done. If it fails, nothing is or will be done, unless the error is
/// [`OutcomeUnknown`](Error::OutcomeUnknown): then it is all or nothing; read the changed entity to find out.
///
/// Steps may be repeated and late; see [`OutboxStep`]. Marks are rows of the changed partition whose row keys begin with
/// `~queued~`. Those of changes that were not made stay until [`collect_marks`](Self::collect_marks) deletes them.
///
/// ```no_run
/// # async fn run(tables: partita_client::TableService, queues: partita_client::QueueService) -> partita_client::Result<()> {
/// use partita_client_patterns::{queued_outbox::QueuedOutbox, steps::OutboxStep};
/// use partita_client::{Entity, Match, Transaction};
///
/// let queue = queues.queue("moves")?;
/// queue.create_if_missing().await?;
/// let outbox = QueuedOutbox::new(&tables, "Current", &queue)?;
/// let employee = Entity::new("Sales", "000223").with("Leaving", true);
/// let mut leave = Transaction::new();
/// leave.upsert_merge(&employee)?;
/// let steps =
///     [OutboxStep::insert("Former", &employee)?, OutboxStep::delete("Current", "Sales", "000223")?];
/// outbox.commit(leave, &steps).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct QueuedOutbox {
    service: TableService,
    table: Table,
    /// The same table without encryption, for marks.
    marks: Table,
    tables: BTreeMap<String, Table>,
    queue: Queue,
    visibility: Duration,
    pauses: (Duration, Duration),
    poison: Option<(Queue, u32)>,
    idle_pause: Duration,
}

/// The text of a message, in JSON.
#[derive(Serialize, Deserialize)]
struct Intent {
    id: String,
    table: String,
    /// The partition that was to be changed; `None` if the steps are all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    steps: Box<RawValue>,
}

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The change was made.
    Committed,
    /// The change was not made, or all its steps are done.
    Cancelled,
}

impl QueuedOutbox {
    /// For changes of this table, with the messages in this queue, which must exist. Outboxes of several tables can share it.
    pub fn new(service: &TableService, table: &str, queue: &Queue) -> Result<Self> {
        let table = service.table(table)?;
        Ok(Self {
            service: service.clone(),
            marks: table.clone(),
            table,
            tables: BTreeMap::new(),
            queue: queue.clone(),
            visibility: Duration::from_secs(30),
            pauses: (Duration::from_secs(1), Duration::from_secs(300)),
            poison: None,
            idle_pause: Duration::from_secs(1),
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

    /// How long `commit`, or a worker, may take before others make the steps too; by default 30 s, and at least one.
    ///
    /// A `commit` that takes longer before its change is made fails (409), and nothing is done.
    pub fn visibility(self, time: Duration) -> Self {
        Self { visibility: time.max(VISIBILITY_MIN), ..self }
    }

    /// The first and the longest pause before failed steps are retried; by default 1 s and 5 min.
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { pauses: (first, longest), ..self }
    }

    /// Moves a message to another queue if its steps failed this often. Without it they are retried for ever. To retry those
    /// of a moved message, put its text into the first queue again.
    pub fn poison(self, queue: &Queue, attempts: u32) -> Self {
        Self { poison: Some((queue.clone(), attempts)), ..self }
    }

    /// The longest pause of [`run`](Self::run) before an empty queue is asked again; by default a second.
    pub fn idle_pause(self, pause: Duration) -> Self {
        Self { idle_pause: pause, ..self }
    }

    /// The table whose partitions it changes.
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Makes the changes of the transaction, all or none, and the steps after them. The transaction can have 99 operations.
    pub async fn commit(&self, mut transaction: Transaction, steps: &[OutboxStep]) -> Result<Committed> {
        let Some(first) = transaction.operations().first() else {
            return Err(Error::Invalid(
                "a commit without changes; its partition holds the mark, so name one".to_owned(),
            ));
        };
        if steps.is_empty() {
            return Ok(Committed { etags: self.table.submit(transaction).await?, settled: true });
        }
        let (id, partition) = (ids::random(), first.entity.partition_key.clone());
        let text = Intent::write(&id, self.table.name(), Some(&partition), steps)?;
        let message = self.put(&text, self.visibility).await?;
        transaction.insert(&mark(&partition, &id, Mark::Committed))?;
        let mut etags = match self.table.submit(transaction).await {
            Ok(etags) => etags,
            Err(error) => {
                if error.refusal().is_some() {
                    // Nothing was changed. If this fails, a worker will find that out.
                    self.forget(&message, &id).await;
                }
                return Err(error);
            }
        };
        etags.pop();
        // From here on everything will be done in the end, so a failure is not returned to the caller.
        let settled = match self.settle(&partition, &id, steps).await {
            Ok(()) => self.forget(&message, &id).await,
            Err(error) => {
                tracing::warn!(id, %error, "steps are left to a worker");
                false
            }
        };
        Ok(Committed { etags, settled })
    }

    /// Leaves everything to a worker: all changes are steps, and none is made at once. If it succeeds, they will be made. If
    /// the outcome is unknown, all or none of them will be.
    pub async fn send(&self, steps: &[OutboxStep]) -> Result<()> {
        let text = Intent::write(&ids::random(), self.table.name(), None, steps)?;
        self.put(&text, Duration::ZERO).await.map(drop)
    }

    async fn put(&self, text: &str, visible_after: Duration) -> Result<MessageHandle> {
        let options = PutOptions::new().visible_after(visible_after).time_to_live(TimeToLive::Forever);
        Ok(self.queue.put_with(text, options).await?.handle)
    }

    /// Makes the steps. The mark goes before the message, so that a mark without a message is always one of nothing.
    async fn settle(&self, partition: &str, id: &str, steps: &[OutboxStep]) -> Result<()> {
        self.make(steps).await?;
        self.marks.delete_if_there(partition, &mark_row(id)).await.map(drop)
    }

    async fn make(&self, steps: &[OutboxStep]) -> Result<()> {
        for step in steps {
            step.carry_out(&self.table_of(step.table())?).await?;
        }
        Ok(())
    }

    /// Deletes a message of which nothing is left to do. If it is not deleted, it is delivered again, and found to be done.
    async fn forget(&self, message: &MessageHandle, id: &str) -> bool {
        match self.queue.delete(message).await {
            Ok(()) => true,
            // Somebody else has it, and will delete it.
            Err(error) if error.is_not_found() => true,
            Err(error) => {
                tracing::warn!(id, %error, "a message is left to a worker");
                false
            }
        }
    }

    fn table_of(&self, name: &str) -> Result<Table> {
        match self.tables.get(name) {
            Some(table) => Ok(table.clone()),
            None => self.service.table(name),
        }
    }

    /// Makes the steps of all messages that are visible now.
    pub async fn heal(&self) -> Result<WorkerCounts> {
        let mut counts = WorkerCounts::default();
        loop {
            let taken = self.queue.get(AT_ONCE, self.visibility).await?;
            if taken.is_empty() {
                return Ok(counts);
            }
            let ends =
                stream::iter(taken).map(|message| self.handle(message)).buffer_unordered(AT_ONCE as usize);
            let ends: Vec<WorkerCounts> = ends.try_collect().await?;
            ends.into_iter().for_each(|end| counts.add(end));
        }
    }

    /// Heals repeatedly until `shutdown` is ready. If a service does not answer, it keeps trying.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> WorkerCounts {
        let mut shutdown = pin!(shutdown);
        let mut counts = WorkerCounts::default();
        loop {
            match self.heal().await {
                Ok(round) => counts.add(round),
                Err(error) => tracing::warn!(%error, "a worker could not work; trying again"),
            }
            tokio::select! {
                () = &mut shutdown => return counts,
                () = tokio::time::sleep(self.idle_pause) => {}
            }
        }
    }

    /// Heals until the queue has no message. Waits for messages that others have, or that wait for their next attempt.
    pub async fn run_until_empty(&self) -> Result<WorkerCounts> {
        let mut counts = WorkerCounts::default();
        loop {
            counts.add(self.heal().await?);
            if self.queue.properties().await?.approximate_count == 0 {
                return Ok(counts);
            }
            tokio::time::sleep(self.idle_pause).await;
        }
    }

    /// Deletes marks of changes that were not made, and that are older than this. Choose a time that is longer than a process
    /// can be suspended in the middle of a commit; a day is safe. Returns their number. Reads the whole table.
    pub async fn collect_marks(&self, older_than: Duration) -> Result<u64> {
        let cancelled = row_key().starts_with(MARK_PREFIX).and(property(CANCELLED).eq(true));
        collect::collect(&self.marks, cancelled, older_than).await
    }

    async fn handle(&self, mut message: TakenMessage) -> Result<WorkerCounts> {
        let counts = WorkerCounts::default();
        let error = match self.carry_out(&message.text).await {
            Ok(id) => {
                self.forget(&message.handle, &id).await;
                return Ok(WorkerCounts { handled: 1, ..counts });
            }
            Err(error) => error,
        };
        let id = &message.handle.id;
        if let Some((poison, _)) = self.poison.as_ref().filter(|(_, max)| message.dequeue_count >= *max) {
            tracing::warn!(message = id, %error, "a message whose steps keep failing is poisoned");
            // First there, then not here: it may be in both queues, and is never in none.
            let options = PutOptions::new().time_to_live(TimeToLive::Forever);
            poison.put_with(&message.text, options).await?;
            self.forget(&message.handle, "").await;
            return Ok(WorkerCounts { poisoned: 1, ..counts });
        }
        tracing::debug!(message = id, %error, "steps failed; they are tried again");
        match self.queue.renew(&mut message.handle, self.pause(message.dequeue_count)).await {
            Err(error) if error.is_not_found() => Ok(WorkerCounts { lost: 1, ..counts }),
            renewed => renewed.map(|()| WorkerCounts { failed: 1, ..counts }),
        }
    }

    /// Makes the steps of a message, if its change was made. Returns its id.
    async fn carry_out(&self, text: &str) -> Result<String> {
        let intent: Intent = serde_json::from_str(text)
            .map_err(|error| Error::Unreadable(format!("the message is not one of an outbox: {error}")))?;
        let steps = OutboxStep::read(intent.steps.get())?;
        let Some(partition) = &intent.partition else {
            self.make(&steps).await?;
            return Ok(intent.id);
        };
        // Outboxes of several tables can share a queue.
        let of = if intent.table == self.table.name() { self.clone() } else { self.of(&intent.table)? };
        if of.judge(partition, &intent.id).await? == Mark::Committed {
            of.settle(partition, &intent.id, &steps).await?;
        }
        Ok(intent.id)
    }

    /// The outbox of another table.
    fn of(&self, table: &str) -> Result<Self> {
        let marks = self.service.table(table)?;
        Ok(Self { table: self.table_of(table)?, marks, ..self.clone() })
    }

    /// Whether the change was made. If it was not, it never will be.
    async fn judge(&self, partition: &str, id: &str) -> Result<Mark> {
        let row = mark_row(id);
        if let Some(found) = self.marks.find::<Entity>(partition, &row).await? {
            return Ok(said(&found));
        }
        match self.marks.insert(&mark(partition, id, Mark::Cancelled)).await {
            Ok(_) => Ok(Mark::Cancelled),
            // Somebody was faster: the change, or another worker. If that mark is gone already, all is done.
            Err(error) if error.is_conflict() => {
                let found = self.marks.find::<Entity>(partition, &row).await?;
                Ok(found.map_or(Mark::Cancelled, |found| said(&found)))
            }
            // If it is not known whether there is a mark now, the next attempt finds out.
            Err(error) => Err(error),
        }
    }

    fn pause(&self, attempts: u32) -> Duration {
        let (first, longest) = self.pauses;
        first.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(longest)
    }
}

impl Intent {
    fn write(id: &str, table: &str, partition: Option<&str>, steps: &[OutboxStep]) -> Result<String> {
        let unwritable =
            |error: serde_json::Error| Error::Invalid(format!("the steps can't be written: {error}"));
        let written = RawValue::from_string(OutboxStep::write(steps)?).map_err(unwritable)?;
        let (id, table, partition) = (id.to_owned(), table.to_owned(), partition.map(str::to_owned));
        let text =
            serde_json::to_string(&Self { id, table, partition, steps: written }).map_err(unwritable)?;
        // JSON may have them as they are, and XML, in which a message is sent, may not.
        let text = text.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff");
        match text.len() {
            0..=MESSAGE_BYTES_MAX => Ok(text),
            length => Err(Error::Invalid(format!(
                "{} steps of {length} bytes, more than the {MESSAGE_BYTES_MAX} of a message; make several changes of this \
                 one, or keep its message in the table, with an Outbox",
                steps.len()
            ))),
        }
    }
}

/// What a queue takes as the text of a message.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

fn mark_row(id: &str) -> String {
    format!("{MARK_PREFIX}{id}")
}

fn mark(partition: &str, id: &str, mark: Mark) -> Entity {
    Entity::new(partition, mark_row(id)).with(CANCELLED, mark == Mark::Cancelled)
}

fn said(mark: &Entity) -> Mark {
    match mark.get(CANCELLED) {
        Some(partita_client::Value::Boolean(false)) => Mark::Committed,
        _ => Mark::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<OutboxStep> {
        vec![OutboxStep::upsert("Books", &Entity::new("p", "r").with("Text", text)).unwrap()]
    }

    #[test]
    fn a_message_is_read_back_and_is_text_that_a_queue_takes() {
        for text in ["plain", "\u{1}\t\n", "\u{fffe}\u{ffff}", "\"\\😀"] {
            let written = Intent::write("7", "Current", Some("p"), &steps(text)).unwrap();
            assert!(!written.chars().any(|c| c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}')), "{written:?}");
            let read: Intent = serde_json::from_str(&written).unwrap();
            assert_eq!(
                (read.id.as_str(), read.table.as_str(), read.partition.as_deref()),
                ("7", "Current", Some("p"))
            );
            assert_eq!(OutboxStep::read(read.steps.get()).unwrap(), steps(text));
        }
    }

    #[test]
    fn steps_that_no_message_holds_are_refused_with_a_way_out() {
        let error =
            Intent::write("7", "Current", Some("p"), &steps(&"a".repeat(70_000))).unwrap_err().to_string();
        assert!(
            error.contains("more than the 65536 of a message") && error.contains("with an Outbox"),
            "{error}"
        );
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let text = "UseDevelopmentStorage=true";
        let tables = TableService::from_connection_string(text).unwrap();
        let queues = partita_client::QueueService::from_connection_string(text).unwrap();
        let second = Duration::from_secs(1);
        let outbox = QueuedOutbox::new(&tables, "Current", &queues.queue("jobs").unwrap()).unwrap();
        let outbox = outbox.pauses(second, 10 * second).visibility(Duration::ZERO);
        let pauses = [0, 1, 2, 3, 4, 5, u32::MAX].map(|attempts| outbox.pause(attempts).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 8, 10, 10]);
        assert_eq!(outbox.visibility, second, "no message can be hidden for less");
    }

    #[test]
    fn a_mark_says_whether_the_change_was_made() {
        for says in [Mark::Committed, Mark::Cancelled] {
            assert_eq!(said(&mark("p", "7", says)), says);
        }
    }
}
