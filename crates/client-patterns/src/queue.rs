//! A queue in one partition of a table. Messages are leased, so that none is lost if a worker dies.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::{DateTime, Value};

use super::clock::Clock;
use super::{long_text, parts};
use partita_client::{
    ETag, Entity, Error, Filter, Result, StoredEntity, Table, Transaction, partition_key, property, row_key,
};

const BODY: &str = "Body";
const DEQUEUE_COUNT: &str = "DequeueCount";
const ENQUEUED_AT: &str = "EnqueuedAt";
const VISIBLE_AT: &str = "VisibleAt";
const LAST_ERROR: &str = "LastError";
const POISONED_AT: &str = "PoisonedAt";

/// Parts of the row keys, after the queue's prefix.
const MESSAGES: &str = "m~";
const POISONED: &str = "x~";

/// A queue of texts in one partition.
///
/// - A message stays in the queue from [`enqueue`](Self::enqueue) to [`complete`](Self::complete), and is received *at least
///   once*: handlers must be idempotent.
/// - [`receive`](Self::receive) leases messages for a time. The lease is the version of the message's row, so only one of
///   several workers gets it. A worker that has lost its lease learns this when it completes, extends or releases it.
/// - A message that was received too often is moved to the poisoned messages, with the reason. It stays there until
///   somebody [requeues](Self::requeue) or [discards](Self::discard) it.
/// - Messages are received in the order of their ids: [`oldest_first_id`] and [`newest_first_id`] make ids from the time.
///
/// Times are those of the workers' clocks. To a clock that is fast by some seconds, leases seem to end that much earlier, and
/// two workers may have the same message. Use leases that are much longer than the clocks differ, or give the queue a better
/// [clock](Self::clock). In any case, the second `complete` returns that the lease was lost.
///
/// ```no_run
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use std::time::Duration;
/// use partita_client_patterns::queue::Queue;
///
/// let mails = Queue::new(&table, "mails");
/// mails.enqueue("welcome-000223", "Dear Jones, …").await?;
/// for lease in mails.receive(10, Duration::from_secs(30)).await? {
///     println!("{}", lease.message.body);
///     mails.complete(&lease).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Queue {
    table: Table,
    partition_key: String,
    prefix: String,
    dequeues_max: u32,
    clock: Clock,
}

/// A message of a queue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// As it was enqueued.
    pub id: String,
    /// As it was enqueued.
    pub body: String,
    /// How often it was received, including this time.
    pub dequeue_count: u32,
    /// When it was enqueued, by the sender's clock.
    pub enqueued_at: DateTime,
    /// Why it was released the last time.
    pub last_error: Option<String>,
}

/// A message that this worker has until a certain time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MessageLease {
    /// The message.
    pub message: Message,
    /// When the lease ends.
    pub until: DateTime,
    etag: ETag,
}

/// A message that nobody could handle.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoisonedMessage {
    /// As it was received the last time.
    pub message: Message,
    /// The error of the last handler.
    pub reason: String,
    /// When it was poisoned.
    pub at: DateTime,
}

/// The messages in a queue, leased or not, without poisoned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// Their number.
    pub messages: u64,
    /// When the next of them can be received; in the past if one can be now.
    pub next_at: Option<DateTime>,
}

/// A unique id that puts older messages first.
///
/// ```
/// use partita_client::DateTime;
/// use partita_client_patterns::queue::oldest_first_id;
///
/// let noon = DateTime::parse("2024-01-31T12:00:00Z").unwrap();
/// assert!(oldest_first_id(noon) < oldest_first_id(noon.plus(std::time::Duration::from_secs(1))));
/// ```
pub fn oldest_first_id(time: DateTime) -> String {
    format!("{:019}-{}", time.ticks(), crate::ids::random())
}

/// A unique id that puts newer messages first.
pub fn newest_first_id(time: DateTime) -> String {
    format!("{:019}-{}", DateTime::MAX.ticks() - time.ticks(), crate::ids::random())
}

impl Queue {
    /// The queue of this partition. Its row keys begin with `queue~`, so the partition can have other entities, too.
    pub fn new(table: &Table, partition_key: impl Into<String>) -> Self {
        Self {
            table: table.clone(),
            partition_key: partition_key.into(),
            prefix: "queue~".to_owned(),
            dequeues_max: 5,
            clock: Clock::of_this_machine(),
        }
    }

    /// Sets the prefix of the queue's row keys, for several queues in one partition.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// How often a message is received before it is poisoned; by default 5, at least 1.
    pub fn dequeues_max(self, dequeues: u32) -> Self {
        Self { dequeues_max: dequeues.max(1), ..self }
    }

    /// Sets the clock; by default this machine's.
    pub fn clock(self, now: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        self.with_clock(Clock::of(now))
    }

    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn now(&self) -> DateTime {
        self.clock.now()
    }

    /// Whether a message was received as often as it may be.
    pub(crate) fn is_exhausted(&self, message: &Message) -> bool {
        message.dequeue_count >= self.dequeues_max
    }

    /// Adds a message, and returns true. If the queue has a message with this id, changes nothing and returns false.
    pub async fn enqueue(&self, id: &str, body: &str) -> Result<bool> {
        let row = self.row(id, body)?;
        match self.table.insert(&row).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("EntityAlreadyExists") => Ok(false),
            Err(error) if error.is_outcome_unknown() => match self.find_row(MESSAGES, id).await? {
                Some(_) => Ok(true),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The row of a message, to insert it in your own transaction together with other changes.
    pub fn row(&self, id: &str, body: &str) -> Result<Entity> {
        let now = self.now();
        let mut row = Entity::new(&self.partition_key, self.key(MESSAGES, id))
            .with(DEQUEUE_COUNT, 0)
            .with(ENQUEUED_AT, now)
            .with(VISIBLE_AT, now);
        long_text::write(&mut row, BODY, body).ok_or_else(|| {
            Error::Invalid(format!(
                "the message {id:?} of {} bytes is too long for an entity; store it elsewhere and enqueue its address",
                body.len()
            ))
        })?;
        parts::check_keys(&row)?;
        Ok(row)
    }

    /// The row of a message that the sender leases at once, to handle it himself unless he dies.
    pub(crate) fn leased_row(&self, id: &str, body: &str, time: Duration) -> Result<(Entity, DateTime)> {
        let until = self.now().plus(time);
        Ok((self.row(id, body)?.with(DEQUEUE_COUNT, 1).with(VISIBLE_AT, until), until))
    }

    /// The lease of an inserted row with its version.
    pub(crate) fn lease(&self, row: Entity, until: DateTime, etag: ETag) -> Result<MessageLease> {
        Ok(MessageLease { message: self.message(&row, MESSAGES)?, until, etag })
    }

    /// Leases up to `count` messages for a time. Returns an empty list if there are none.
    ///
    /// Moves messages that were received too often to the poisoned messages.
    pub async fn receive(&self, count: usize, time: Duration) -> Result<Vec<MessageLease>> {
        let now = self.now();
        let query = self.table.query().filter(self.range(MESSAGES).and(property(VISIBLE_AT).le(now)));
        // Reads more than `count`, because other workers may lease the first ones at the same time.
        let query = query.page_size(count.saturating_mul(4).clamp(16, 1000));
        let mut rows = pin!(query.stream::<Entity>());
        let mut leases = Vec::new();
        while leases.len() < count {
            let Some(row) = rows.try_next().await? else { break };
            let message = self.message(&row, MESSAGES)?;
            let mut lease = MessageLease { message, until: now, etag: row.etag };
            if self.is_exhausted(&lease.message) {
                let why =
                    lease.message.last_error.clone().unwrap_or_else(|| "it was never released".to_owned());
                let reason = format!("received {} times; the last time: {why}", lease.message.dequeue_count);
                self.poison(&lease, &reason).await?;
                continue;
            }
            lease.message.dequeue_count += 1;
            if self.change(&mut lease, now.plus(time), None).await? {
                leases.push(lease);
            }
        }
        Ok(leases)
    }

    /// Deletes a handled message. `false` if the lease was lost: then another worker has or had the message.
    pub async fn complete(&self, lease: &MessageLease) -> Result<bool> {
        let key = self.key(MESSAGES, &lease.message.id);
        match self.table.delete(&self.partition_key, &key, &lease.etag).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_changed() || error.code() == Some("ResourceNotFound") => Ok(false),
            // An attempt may have deleted it. If it is gone, it is done, no matter by whom.
            Err(error) if error.is_outcome_unknown() => {
                match self.find_row(MESSAGES, &lease.message.id).await? {
                    None => Ok(true),
                    Some(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a message to the queue; it can be received again after a pause. `false` if the lease was lost.
    pub async fn release(
        &self,
        mut lease: MessageLease,
        pause: Duration,
        reason: Option<&str>,
    ) -> Result<bool> {
        let from = self.now().plus(pause);
        self.change(&mut lease, from, reason).await
    }

    /// Extends the lease to this time from now. `false` if the lease was lost.
    pub async fn extend(&self, lease: &mut MessageLease, time: Duration) -> Result<bool> {
        let until = self.now().plus(time);
        self.change(lease, until, None).await
    }

    /// Moves a message to the poisoned messages. `false` if the lease was lost.
    pub async fn poison(&self, lease: &MessageLease, reason: &str) -> Result<bool> {
        let MessageLease { message, etag, .. } = lease;
        let mut row = self.row(&message.id, &message.body)?;
        let key = std::mem::replace(&mut row.row_key, self.key(POISONED, &message.id));
        row.remove(VISIBLE_AT);
        row.set(ENQUEUED_AT, message.enqueued_at);
        row.set(DEQUEUE_COUNT, as_int32(message.dequeue_count));
        row.set(LAST_ERROR, short(reason));
        row.set(POISONED_AT, self.now());
        let mut transaction = Transaction::new();
        transaction.delete(&self.partition_key, key, etag).upsert_replace(&row)?;
        tracing::warn!(id = message.id, reason, "a message is poisoned");
        self.submit(transaction).await
    }

    /// The poisoned messages.
    pub async fn poisoned(&self) -> Result<Vec<PoisonedMessage>> {
        let rows: Vec<StoredEntity<Entity>> = self.table.query().filter(self.range(POISONED)).all().await?;
        rows.iter()
            .map(|row| {
                let message = self.message(row, POISONED)?;
                let reason = message.last_error.clone().unwrap_or_default();
                Ok(PoisonedMessage { message, reason, at: time(row, POISONED_AT)? })
            })
            .collect()
    }

    /// Enqueues a poisoned message again, as if it had never been received. `false` if there is none with this id.
    pub async fn requeue(&self, id: &str) -> Result<bool> {
        let Some(poisoned) = self.find_row(POISONED, id).await? else { return Ok(false) };
        let message = self.message(&poisoned, POISONED)?;
        let row = self.row(id, &message.body)?.with(ENQUEUED_AT, message.enqueued_at);
        let mut transaction = Transaction::new();
        transaction.delete(&self.partition_key, &poisoned.row_key, &poisoned.etag).upsert_replace(&row)?;
        self.submit(transaction).await
    }

    /// Deletes a poisoned message. `false` if there is none with this id.
    pub async fn discard(&self, id: &str) -> Result<bool> {
        self.table.delete_if_there(&self.partition_key, &self.key(POISONED, id)).await
    }

    /// The number of messages, and when the next can be received.
    pub async fn waiting(&self) -> Result<Backlog> {
        let query = self.table.query().filter(self.range(MESSAGES)).select([VISIBLE_AT]);
        let mut rows = pin!(query.stream::<Entity>());
        let mut waiting = Backlog { messages: 0, next_at: None };
        while let Some(row) = rows.try_next().await? {
            let at = time(&row, VISIBLE_AT)?;
            waiting.messages += 1;
            waiting.next_at = Some(waiting.next_at.map_or(at, |earliest| earliest.min(at)));
        }
        Ok(waiting)
    }

    /// The message with this id, leased or not.
    pub async fn find(&self, id: &str) -> Result<Option<Message>> {
        self.find_row(MESSAGES, id).await?.map(|row| self.message(&row, MESSAGES)).transpose()
    }

    /// Sets when the message can be received. If its version is not the lease's, the lease was lost.
    async fn change(
        &self,
        lease: &mut MessageLease,
        visible_at: DateTime,
        reason: Option<&str>,
    ) -> Result<bool> {
        let mut row = Entity::new(&self.partition_key, self.key(MESSAGES, &lease.message.id))
            .with(VISIBLE_AT, visible_at)
            .with(DEQUEUE_COUNT, as_int32(lease.message.dequeue_count));
        if let Some(reason) = reason {
            row.set(LAST_ERROR, short(reason));
        }
        match self.table.merge(&row, &lease.etag).await {
            Ok(etag) => {
                (lease.etag, lease.until) = (etag, visible_at);
                Ok(true)
            }
            Err(error) if error.is_changed() || error.code() == Some("ResourceNotFound") => Ok(false),
            // The lease counts as lost. If the change was done, nobody has the message until its time is over.
            Err(error) if error.is_outcome_unknown() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns false if the first operation found another version.
    async fn submit(&self, transaction: Transaction) -> Result<bool> {
        match self.table.submit(transaction).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_changed() || error.code() == Some("ResourceNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn key(&self, part: &str, id: &str) -> String {
        format!("{}{part}{}", self.prefix, parts::escape(id))
    }

    fn range(&self, part: &str) -> Filter {
        let prefix = format!("{}{part}", self.prefix);
        partition_key().eq(self.partition_key.as_str()).and(row_key().starts_with(&prefix))
    }

    async fn find_row(&self, part: &str, id: &str) -> Result<Option<StoredEntity<Entity>>> {
        self.table.find(&self.partition_key, &self.key(part, id)).await
    }

    fn message(&self, row: &Entity, part: &str) -> Result<Message> {
        let id = row.row_key.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix(part));
        let id = id.and_then(parts::split).and_then(|mut id| id.pop());
        let unreadable =
            |what: &str| Error::Unreadable(format!("the row {:?} is no message: {what}", row.row_key));
        let Some(Value::Int32(count)) = row.get(DEQUEUE_COUNT) else {
            return Err(unreadable("no DequeueCount"));
        };
        Ok(Message {
            id: id.ok_or_else(|| unreadable("its key is no id"))?,
            body: long_text::read(row, BODY)?,
            dequeue_count: u32::try_from(*count).map_err(|_| unreadable("DequeueCount is negative"))?,
            enqueued_at: time(row, ENQUEUED_AT)?,
            last_error: row.text(LAST_ERROR).map(str::to_owned),
        })
    }
}

/// The row key prefix of a queue's messages, to find queues.
pub(crate) fn messages_prefix(prefix: &str) -> String {
    format!("{prefix}{MESSAGES}")
}

/// The row key prefix of a queue's poisoned messages.
pub(crate) fn poisoned_prefix(prefix: &str) -> String {
    format!("{prefix}{POISONED}")
}

fn time(row: &Entity, name: &str) -> Result<DateTime> {
    match row.get(name) {
        Some(Value::DateTime(time)) => Ok(*time),
        _ => Err(Error::Unreadable(format!("the row {:?} is no message: no {name}", row.row_key))),
    }
}

fn as_int32(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Cuts a long text: a reason is for people, and a page is enough.
fn short(reason: &str) -> String {
    reason.chars().take(2000).collect()
}
