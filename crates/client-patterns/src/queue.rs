//! A queue in one partition of a table: messages are leased, not taken, so that a worker that dies loses none.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::{DateTime, Value};

use super::clock::Clock;
use super::{long_text, parts};
use partita_client::{
    ETag, Entity, Error, Filter, Result, Stored, Table, Transaction, partition_key, property, row_key,
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
/// - A message is there from [`enqueue`](Self::enqueue) to [`complete`](Self::complete), and is handed out *at least once*:
///   handlers must be such that a repetition does no harm.
/// - [`receive`](Self::receive) leases messages for a time. The lease is the version of the message's row, so of several
///   workers one gets it, and who lost his lease is told so when he completes, extends or releases it.
/// - A message that was handed out too often is moved away as poisoned, with the reason, and stays until somebody
///   [requeues](Self::requeue) or [discards](Self::discard) it.
/// - Messages are handed out in the order of their ids: [`oldest_first_id`] and [`newest_first_id`] make them of the time.
///
/// Times are those of the workers' clocks. One that is ahead by some seconds sees leases end so much too early, and a
/// message may then be in two hands: lease for much longer than clocks differ, or give the queue a better
/// [clock](Self::clock). The later of the two `complete`s tells its caller that the lease was lost in any case.
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

/// What was enqueued, and what became of it so far.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// As it was enqueued.
    pub id: String,
    /// As it was enqueued.
    pub body: String,
    /// How often it was handed out, this time included.
    pub dequeue_count: u32,
    /// When it was enqueued, by the clock of whoever did.
    pub enqueued_at: DateTime,
    /// Why it was released the last time.
    pub last_error: Option<String>,
}

/// A message in somebody's hands, up to a time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lease {
    /// What was received.
    pub message: Message,
    /// When others may have it.
    pub until: DateTime,
    etag: ETag,
}

/// A message that nobody could handle.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Poisoned {
    /// As it was received the last time.
    pub message: Message,
    /// What the last to have it said.
    pub reason: String,
    /// Since when it is poisoned.
    pub at: DateTime,
}

/// What is in a queue, leased or not; poisoned messages are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// How many there are.
    pub messages: u64,
    /// When the next of them can be received; in the past if one can be now.
    pub next_at: Option<DateTime>,
}

/// An id that no other message has, and by which older messages come first.
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

/// An id that no other message has, and by which newer messages come first.
pub fn newest_first_id(time: DateTime) -> String {
    format!("{:019}-{}", DateTime::MAX.ticks() - time.ticks(), crate::ids::random())
}

impl Queue {
    /// The queue of this partition. Its rows begin with `queue~`, so that others can be in the partition too.
    pub fn new(table: &Table, partition_key: impl Into<String>) -> Self {
        Self {
            table: table.clone(),
            partition_key: partition_key.into(),
            prefix: "queue~".to_owned(),
            dequeues_max: 5,
            clock: Clock::of_this_machine(),
        }
    }

    /// With what the queue's row keys begin: for several queues in one partition.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// How often a message is handed out before it counts as poisoned: five times unless told, at least once.
    pub fn dequeues_max(self, dequeues: u32) -> Self {
        Self { dequeues_max: dequeues.max(1), ..self }
    }

    /// What the time is: that of this machine unless told.
    pub fn clock(self, now: impl Fn() -> DateTime + Send + Sync + 'static) -> Self {
        self.with_clock(Clock::of(now))
    }

    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn now(&self) -> DateTime {
        self.clock.now()
    }

    /// Whether a message was handed out as often as it may be.
    pub(crate) fn is_exhausted(&self, message: &Message) -> bool {
        message.dequeue_count >= self.dequeues_max
    }

    /// Adds a message. Whether it is new: a message with this id that is still there stays as it is.
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

    /// The row of a message, to be inserted by a transaction of the caller's: the message is there if and only if what
    /// else the transaction does is done.
    pub fn row(&self, id: &str, body: &str) -> Result<Entity> {
        let now = self.now();
        let mut row = Entity::new(&self.partition_key, self.key(MESSAGES, id))
            .with(DEQUEUE_COUNT, 0)
            .with(ENQUEUED_AT, now)
            .with(VISIBLE_AT, now);
        long_text::write(&mut row, BODY, body).ok_or_else(|| {
            Error::Invalid(format!(
                "the message {id:?} of {} bytes is too long for an entity; put it elsewhere and enqueue where",
                body.len()
            ))
        })?;
        parts::check_keys(&row)?;
        Ok(row)
    }

    /// The same, leased from the start: whoever enqueues it handles it, unless he dies.
    pub(crate) fn leased_row(&self, id: &str, body: &str, time: Duration) -> Result<(Entity, DateTime)> {
        let until = self.now().plus(time);
        Ok((self.row(id, body)?.with(DEQUEUE_COUNT, 1).with(VISIBLE_AT, until), until))
    }

    /// The lease of a row that was inserted, with the version that it has.
    pub(crate) fn lease(&self, row: Entity, until: DateTime, etag: ETag) -> Result<Lease> {
        Ok(Lease { message: self.message(&row, MESSAGES)?, until, etag })
    }

    /// Up to `count` messages that nobody else has, for a time. None, if there are none: that is no error.
    ///
    /// Messages that were handed out too often, whatever became of those who had them, are moved to the poisoned.
    pub async fn receive(&self, count: usize, time: Duration) -> Result<Vec<Lease>> {
        let now = self.now();
        let query = self.table.query().filter(self.range(MESSAGES).and(property(VISIBLE_AT).le(now)));
        // Others may be faster with the first of them.
        let query = query.page_size(count.saturating_mul(4).clamp(16, 1000));
        let mut rows = pin!(query.stream::<Entity>());
        let mut leases = Vec::new();
        while leases.len() < count {
            let Some(row) = rows.try_next().await? else { break };
            let message = self.message(&row, MESSAGES)?;
            let mut lease = Lease { message, until: now, etag: row.etag };
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

    /// Done with it: the message is gone. `false` if the lease was lost: then somebody else has or had the message.
    pub async fn complete(&self, lease: &Lease) -> Result<bool> {
        let key = self.key(MESSAGES, &lease.message.id);
        match self.table.delete(&self.partition_key, &key, &lease.etag).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_changed() || error.code() == Some("ResourceNotFound") => Ok(false),
            // One attempt may have deleted it; whoever did, it is done.
            Err(error) if error.is_outcome_unknown() => {
                match self.find_row(MESSAGES, &lease.message.id).await? {
                    None => Ok(true),
                    Some(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a message back, to be handed out again after a pause. `false` if the lease was lost.
    pub async fn release(&self, mut lease: Lease, pause: Duration, reason: Option<&str>) -> Result<bool> {
        let from = self.now().plus(pause);
        self.change(&mut lease, from, reason).await
    }

    /// Keeps a message for a time from now on. `false` if the lease was lost.
    pub async fn extend(&self, lease: &mut Lease, time: Duration) -> Result<bool> {
        let until = self.now().plus(time);
        self.change(lease, until, None).await
    }

    /// Moves a message to the poisoned. `false` if the lease was lost.
    pub async fn poison(&self, lease: &Lease, reason: &str) -> Result<bool> {
        let Lease { message, etag, .. } = lease;
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
    pub async fn poisoned(&self) -> Result<Vec<Poisoned>> {
        let rows: Vec<Stored<Entity>> = self.table.query().filter(self.range(POISONED)).all().await?;
        rows.iter()
            .map(|row| {
                let message = self.message(row, POISONED)?;
                let reason = message.last_error.clone().unwrap_or_default();
                Ok(Poisoned { message, reason, at: time(row, POISONED_AT)? })
            })
            .collect()
    }

    /// Enqueues a poisoned message again, as if it had never been handed out. `false` if there is none with this id.
    pub async fn requeue(&self, id: &str) -> Result<bool> {
        let Some(poisoned) = self.find_row(POISONED, id).await? else { return Ok(false) };
        let message = self.message(&poisoned, POISONED)?;
        let row = self.row(id, &message.body)?.with(ENQUEUED_AT, message.enqueued_at);
        let mut transaction = Transaction::new();
        transaction.delete(&self.partition_key, &poisoned.row_key, &poisoned.etag).upsert_replace(&row)?;
        self.submit(transaction).await
    }

    /// Forgets a poisoned message. `false` if there is none with this id.
    pub async fn discard(&self, id: &str) -> Result<bool> {
        self.table.delete_if_there(&self.partition_key, &self.key(POISONED, id)).await
    }

    /// How many messages there are, and when the next can be received.
    pub async fn waiting(&self) -> Result<Waiting> {
        let query = self.table.query().filter(self.range(MESSAGES)).select([VISIBLE_AT]);
        let mut rows = pin!(query.stream::<Entity>());
        let mut waiting = Waiting { messages: 0, next_at: None };
        while let Some(row) = rows.try_next().await? {
            let at = time(&row, VISIBLE_AT)?;
            waiting.messages += 1;
            waiting.next_at = Some(waiting.next_at.map_or(at, |earliest| earliest.min(at)));
        }
        Ok(waiting)
    }

    /// The message with this id, whether it is leased or not.
    pub async fn find(&self, id: &str) -> Result<Option<Message>> {
        self.find_row(MESSAGES, id).await?.map(|row| self.message(&row, MESSAGES)).transpose()
    }

    /// Sets when the message is visible. A version that is not the lease's says that the lease was lost.
    async fn change(&self, lease: &mut Lease, visible_at: DateTime, reason: Option<&str>) -> Result<bool> {
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
            // If it was done, the message is hidden for this time; to count as its holder nobody may.
            Err(error) if error.is_outcome_unknown() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the version that the first operation names was there.
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

    async fn find_row(&self, part: &str, id: &str) -> Result<Option<Stored<Entity>>> {
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

/// The row key prefix of a queue's messages: for those who look for queues, not in one.
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

/// Reasons are for people; a page of one is enough.
fn short(reason: &str) -> String {
    reason.chars().take(2000).collect()
}
