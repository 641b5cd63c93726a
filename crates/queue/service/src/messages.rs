//! Put, get, peek, update and delete messages.

use std::iter;
use std::mem;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use model::{Cut, Key, KeyRange, limits};
use queue_model::{
    DateTime, Guid, Message, MessageId, MessageText, NewMessage, PopReceipt, Refusal, TakenMessage,
};
use store::{Budget, Fault, RawRow, RowOperation, Scan, Transaction};

use crate::clock::earlier;
use crate::head::{Head, ReadAhead};
use crate::live::{LiveQueue, Taken, Writing};
use crate::message_row::{self, FoundMessage, MESSAGES, RowKey, StoredMessage};
use crate::{QueueRef, QueueService, Result};

/// Rows read ahead at one time, and bytes.
const AHEAD_ROWS: usize = 128;
const AHEAD_BYTES: usize = 256 * 1024;
const READ_TIME: Duration = Duration::from_secs(5);
/// A reading for a Get ends after so many expired messages, so that they can be removed.
const EXPIRED_MAX: usize = 1000;
/// How often a Get chooses other messages because somebody else was faster.
const ATTEMPTS_MAX: usize = 32;

/// Clocks of several servers differ by less than this, if they are kept. A message that a slower clock puts below the hint
/// waits for a sweep.
pub const CLOCK_MARGIN: Duration = Duration::from_secs(5);
/// What was read ahead this long ago has probably been taken by other servers.
const SHARED_AGE_MAX: Duration = Duration::from_millis(200);

impl QueueService {
    /// `visibility` is whole seconds and less than `ttl`; without `ttl`, the message never expires.
    pub async fn put(
        &self,
        queue: &QueueRef,
        text: MessageText,
        visibility: Duration,
        ttl: Option<Duration>,
    ) -> Result<NewMessage> {
        self.admit(queue)?;
        self.spend(queue, iter::once(&text));
        let _pass = self.gate.pass().await?;
        let live = self.live(queue).await?;
        let now = self.clock.tick();
        let expires = ttl.map_or(DateTime::MAX, |ttl| now.plus(ttl));
        let message = StoredMessage::new(new_id(), now, visibility, expires, text);
        let operations = vec![message.insertion()?];
        let writing = Writing::begin(&live, Vec::new(), vec![message.key]);
        let applied = self.apply(&live, operations).await;
        writing.end(&applied, ttl.is_some().then_some(expires));
        self.answered(&live, applied)?;
        Ok(NewMessage { id: message.key.id, inserted: now, expires, receipt: message.receipt() })
    }

    /// Hides up to so many visible messages for `visibility`, whole seconds from one on, and gives them out.
    pub async fn get(&self, queue: &QueueRef, count: u32, visibility: Duration) -> Result<Vec<TakenMessage>> {
        self.admit(queue)?;
        let got = self.take(queue, count, visibility).await;
        self.spend(queue, got.iter().flatten().map(|taken| &taken.message.text));
        got
    }

    async fn take(&self, queue: &QueueRef, count: u32, visibility: Duration) -> Result<Vec<TakenMessage>> {
        let _pass = self.gate.pass().await?;
        let live = self.live(queue).await?;
        for attempt in 0..ATTEMPTS_MAX {
            let Chosen { found, expired, mut taken } =
                self.choose(&live, count as usize, attempt > 0).await?;
            self.remove(&live, expired.iter().map(FoundMessage::place).collect()).await?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            if let Some(messages) = self.hide(&live, found, visibility).await? {
                // They are not chosen any more, but gone.
                taken.keys.clear();
                return Ok(messages.into_iter().map(StoredMessage::into_taken).collect());
            }
        }
        Err(Refusal::Shared(common::Refusal::Busy).into())
    }

    /// The first visible messages, up to so many.
    pub async fn peek(&self, queue: &QueueRef, count: u32) -> Result<Vec<Message>> {
        self.admit(queue)?;
        let shown = self.show(queue, count).await;
        self.spend(queue, shown.iter().flatten().map(|message| &message.text));
        shown
    }

    async fn show(&self, queue: &QueueRef, count: u32) -> Result<Vec<Message>> {
        let live = self.live(queue).await?;
        let count = count as usize;
        let shown =
            |found: Vec<FoundMessage>| found.into_iter().map(|found| found.message.into_message()).collect();
        if !self.is_shared {
            let found = live.head().peek(count, self.clock.tick());
            if found.len() == count {
                return Ok(shown(found));
            }
        }
        let _turn = live.reading.lock().await;
        let now = self.clock.tick();
        let (found, _, _) = self.read_ahead(&live, now, count, false, |head| head.peek(count, now)).await?;
        Ok(shown(found))
    }

    /// Hides the message for `visibility` from now on, whole seconds, with another text if there is one.
    pub async fn update(
        &self,
        queue: &QueueRef,
        id: MessageId,
        receipt: &PopReceipt,
        visibility: Duration,
        text: Option<MessageText>,
    ) -> Result<PopReceipt> {
        self.admit(queue)?;
        self.spend(queue, text.iter());
        let _pass = self.gate.pass().await?;
        let live = self.live(queue).await?;
        let (message, version) = self.find(&live, id, receipt, StoredMessage::read).await?;
        let now = self.clock.tick();
        if now.plus(visibility) > message.expires {
            return Err(Refusal::visible_after_expiry(visibility.as_secs()).into());
        }
        let old = message.key;
        let moved = message.updated(now, visibility, text);
        let operations = vec![message_row::deletion(old, version)?, moved.insertion()?];
        let writing = Writing::begin(&live, vec![old], vec![moved.key]);
        let applied = self.apply(&live, operations).await;
        writing.end(&applied, None);
        self.answered(&live, not_found_if_rejected(applied)?)?;
        Ok(moved.receipt())
    }

    pub async fn delete_message(&self, queue: &QueueRef, id: MessageId, receipt: &PopReceipt) -> Result<()> {
        self.admit(queue)?;
        self.spend(queue, iter::empty());
        let _pass = self.gate.pass().await?;
        let live = self.live(queue).await?;
        let (key, version) = self.find(&live, id, receipt, |key, _| Ok(key)).await?;
        let operations = vec![message_row::deletion(key, version)?];
        let writing = Writing::begin(&live, vec![key], Vec::new());
        let applied = self.apply(&live, operations).await;
        writing.end(&applied, None);
        self.answered(&live, not_found_if_rejected(applied)?)?;
        Ok(())
    }

    /// What is read of the message that this is the receipt of, and the version of its row. `MessageNotFound` if there is
    /// none: it was deleted, has expired, or has another receipt by now.
    async fn find<T>(
        &self,
        live: &LiveQueue,
        id: MessageId,
        receipt: &PopReceipt,
        read: impl FnOnce(RowKey, RawRow<'_>) -> std::result::Result<T, Fault>,
    ) -> Result<(T, DateTime)> {
        let key = RowKey { due: receipt.next_visible(), id };
        let row = self.engine.get(&live.table, &key.entity()?).await;
        let row = self.answered(live, row)?.ok_or(Refusal::MessageNotFound)?;
        let about = |fault: Fault| fault.about(&live.queue);
        let (current, expires) = message_row::read_standing(key, row.raw()).map_err(about)?;
        if current != *receipt || expires <= self.clock.tick() {
            return Err(Refusal::MessageNotFound.into());
        }
        Ok((read(key, row.raw()).map_err(about)?, row.raw().timestamp().map_err(about)?))
    }

    /// Messages for a Get, taken by nobody else of this server.
    async fn choose<'a>(&self, live: &'a LiveQueue, count: usize, is_retry: bool) -> Result<Chosen<'a>> {
        let mut chosen = Chosen { found: Vec::new(), expired: Vec::new(), taken: Taken::none(live) };
        if self.is_shared {
            live.head().forget_older(SHARED_AGE_MAX);
        }
        loop {
            if chosen.take(&mut live.head(), count, self.clock.tick(), false) {
                return Ok(chosen);
            }
            let _turn = live.reading.lock().await;
            // Another Get may have read ahead while this one waited for its turn.
            if chosen.take(&mut live.head(), count, self.clock.tick(), false) {
                return Ok(chosen);
            }
            // Now that nothing is left that others could take before this one has read: else somebody could take the last message
            // that is visible at this time and leave one that was put after it, and this Get would find nothing.
            let now = self.clock.tick();
            // Several servers that choose the same messages again and again would all wait for one of them.
            let is_spread = is_retry && self.is_shared;
            let wanted = count - chosen.found.len();
            let take = |head: &mut Head| chosen.take(head, count, now, is_spread);
            let (is_enough, is_exhausted, expired) = self.read_ahead(live, now, wanted, true, take).await?;
            chosen.expired.extend(expired);
            if is_enough || is_exhausted {
                return Ok(chosen);
            }
            let expired = mem::take(&mut chosen.expired);
            self.remove(live, expired.iter().map(FoundMessage::place).collect()).await?;
        }
    }

    /// Reads messages from the hint on until there are so many that nobody is taking, and has them used. Also says whether
    /// that were all, and which have expired. It ends early for a caller who removes those.
    async fn read_ahead<T>(
        &self,
        live: &LiveQueue,
        now: DateTime,
        wanted: usize,
        removes: bool,
        take: impl FnOnce(&mut Head) -> T,
    ) -> Result<(T, bool, Vec<FoundMessage>)> {
        let (start, taken) = {
            let mut head = live.head();
            (head.begin_reading(now), head.taken_len())
        };
        let mut range = message_row::range(start, now);
        let mut read = ReadAhead::default();
        loop {
            let rows = AHEAD_ROWS.max(wanted) + taken;
            let budget = Budget { rows, bytes: AHEAD_BYTES, time: READ_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = self.engine.scan(&live.table, scan).await;
            let page = self.answered(live, page)?;
            for stored in page.entities.iter() {
                let found = FoundMessage::read(stored).map_err(|fault| fault.about(&live.queue))?;
                read.first.get_or_insert(found.message.key);
                read.last = Some(found.message.key);
                if found.message.is_expired(now) { read.expired.push(found) } else { read.found.push(found) }
            }
            read.is_exhausted = page.next.is_none();
            if let Some(next) = page.next {
                range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
            }
            let is_enough = live.head().count_free(&read.found) >= wanted;
            if read.is_exhausted || is_enough || (removes && read.expired.len() >= EXPIRED_MAX) {
                break;
            }
            if !removes {
                read.expired.clear();
            }
        }
        let (is_exhausted, mut expired) = (read.is_exhausted, mem::take(&mut read.expired));
        let hint_max = if self.is_shared { earlier(now, CLOCK_MARGIN) } else { DateTime::MAX };
        let mut head = live.head();
        expired.retain(|found| !head.is_taken(found.message.key));
        let is_good = head.end_reading(read, hint_max);
        let taken = take(&mut head);
        if !is_good {
            head.forget();
        }
        Ok((taken, is_exhausted, expired))
    }

    /// Moves the messages to where they become visible again, all of them or, if somebody else was faster with one, none.
    async fn hide(
        &self,
        live: &LiveQueue,
        found: Vec<FoundMessage>,
        visibility: Duration,
    ) -> Result<Option<Vec<StoredMessage>>> {
        let now = self.clock.tick();
        let keys = found.iter().map(|found| found.message.key).collect();
        let mut operations = Vec::with_capacity(2 * found.len());
        let mut moved = Vec::with_capacity(found.len());
        for old in found {
            operations.push(old.deletion()?);
            let new = old.message.taken(now, visibility);
            operations.push(new.insertion()?);
            moved.push(new);
        }
        let writing = Writing::begin(live, keys, moved.iter().map(|moved| moved.key).collect());
        let applied = self.apply(live, operations).await;
        writing.end(&applied, None);
        match applied {
            Err(store::Error::Rejected { .. }) => Ok(None),
            other => self.answered(live, other).map(|()| Some(moved)),
        }
    }

    /// Removes rows, each if it is still the version that was read. The transactions are committed together.
    pub(crate) async fn remove(&self, live: &LiveQueue, rows: Vec<(RowKey, DateTime)>) -> Result<Removed> {
        let chunks =
            rows.chunks(limits::BATCH_OPERATIONS_MAX).map(|rows| self.remove_chunk(live, rows.to_vec()));
        let mut removed = Removed::default();
        for chunk in join(chunks).await {
            let chunk = chunk?;
            removed.rows += chunk.rows;
            removed.transactions += chunk.transactions;
            removed.rejected += chunk.rejected;
        }
        Ok(removed)
    }

    /// The same with at most as many as a transaction may have.
    async fn remove_chunk(&self, live: &LiveQueue, mut rows: Vec<(RowKey, DateTime)>) -> Result<Removed> {
        let mut removed = Removed::default();
        while !rows.is_empty() {
            let operations = rows.iter().map(|(key, version)| message_row::deletion(*key, *version));
            let operations = operations.collect::<std::result::Result<Vec<_>, Fault>>()?;
            let writing = Writing::begin(live, rows.iter().map(|(key, _)| *key).collect(), Vec::new());
            let applied = self.apply(live, operations).await;
            writing.end(&applied, None);
            match applied {
                Err(store::Error::Rejected { index, .. }) => {
                    rows.remove(index);
                    removed.rejected += 1;
                }
                other => {
                    self.answered(live, other)?;
                    removed.rows = rows.len() as u64;
                    removed.transactions = 1;
                    rows.clear();
                }
            }
        }
        Ok(removed)
    }

    async fn apply(
        &self,
        live: &LiveQueue,
        operations: Vec<RowOperation>,
    ) -> std::result::Result<(), store::Error> {
        let partition =
            Key::parse(MESSAGES).map_err(|_| Fault::bug("the messages' partition is not a key"))?;
        let transaction = Transaction::new(partition, operations)
            .ok_or_else(|| Fault::bug("a change of a queue names a row twice or none"))?;
        self.engine.apply(&live.table, transaction).await.map(drop)
    }
}

/// Somebody else has changed the message since it was read, so its receipt is no longer good.
fn not_found_if_rejected(
    applied: std::result::Result<(), store::Error>,
) -> Result<std::result::Result<(), store::Error>> {
    match applied {
        Err(store::Error::Rejected { .. }) => Err(Refusal::MessageNotFound.into()),
        other => Ok(other),
    }
}

/// What became of rows that nobody needs any more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removed {
    pub rows: u64,
    pub transactions: u64,
    /// Somebody else has removed or moved them meanwhile.
    pub rejected: u64,
}

/// What a Get has chosen.
#[derive(Debug)]
struct Chosen<'a> {
    found: Vec<FoundMessage>,
    expired: Vec<FoundMessage>,
    taken: Taken<'a>,
}

impl Chosen<'_> {
    /// Takes what is missing from the front, or from somewhere behind it if it is to be spread. Whether there is enough now.
    fn take(&mut self, head: &mut Head, count: usize, now: DateTime, is_spread: bool) -> bool {
        let wanted = count - self.found.len();
        let behind = head.ahead_len().saturating_sub(wanted);
        let skip = if is_spread { rand::random_range(0..=behind) } else { 0 };
        let (found, expired) = head.take(wanted, skip, now);
        self.taken.keys.extend(found.iter().chain(&expired).map(|found| found.message.key));
        self.found.extend(found);
        self.expired.extend(expired);
        self.found.len() == count
    }
}

/// Runs them side by side, to the end of each.
async fn join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut outcomes = Vec::with_capacity(running.len());
    std::future::poll_fn(|context| {
        running.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(outcome) => {
                outcomes.push(outcome);
                false
            }
        });
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outcomes
}

/// Random, as version 4 has it.
fn new_id() -> MessageId {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    MessageId(Guid(bytes))
}
