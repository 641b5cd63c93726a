//! What is done for queues in the background: expired messages are removed, messages are counted, the hint is corrected,
//! and both are stored for the next server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{Cut, EntityKey, KeyRange, ValueRef};
use queue_model::DateTime;
use store::{
    Budget, Candidate, Change, Condition, Fault, RawRow, RowDraft, RowFilter, Scan, TableRef, Transaction,
};

use crate::clock::earlier;
use crate::head::{Census, StoredHead};
use crate::live::LiveQueue;
use crate::message_row::{self, EXPIRES};
use crate::{QueueRef, QueueService, Result};

/// What is stored of a queue's head is the one row of a partition of its own, beside the messages.
const HEAD_PARTITION: &str = "h";
const HEAD_ROW: &str = "head";
const HINT: &str = "H";
const MESSAGES: &str = "M";

/// Between two looks at the queues in use.
const ROUND: Duration = Duration::from_secs(1);
/// The head is stored after so many rows came or went, or so long after some. A server that follows one that was killed
/// steps over no more tombstones than that, and what it remembers of the count is wrong by no more; or by what changes in
/// one round, if that is more.
const CHANGES_PER_STORING: u64 = 1000;
const TIME_PER_STORING: Duration = Duration::from_secs(10);
/// Between two sweeps of a queue; more if they take long: then sweeps take a twentieth of the time.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEEP_REST: u32 = 20;
/// What was read ahead of a queue that nobody has used for so long is forgotten.
const AHEAD_TIME: Duration = Duration::from_secs(10);
/// Queues that other servers may use too are swept only while this one uses them.
const USE_TIME: Duration = Duration::from_secs(600);
/// How far below the hint a sweep begins where other servers put messages too.
const SWEEP_MARGIN: Duration = Duration::from_secs(60);

/// A glance reads about so many rows, for so long at most.
const GLANCE_ROWS: usize = 10_000;
const GLANCE_TIME: Duration = Duration::from_secs(2);

/// Expired messages that a sweep removes before it reads on.
const EXPIRED_ROWS: usize = 1000;
const EXPIRED_BYTES: usize = 4 * 1024 * 1024;

/// What a sweep is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody waits for the number of messages.
    Count,
    /// Somebody waits for the number of messages, which is known roughly if there are too many to count now.
    Glance,
    /// Somebody waits for the end of it.
    Errand,
    /// Nobody waits, and others come first.
    Upkeep,
}

impl Purpose {
    /// Of one page.
    fn time(self) -> Duration {
        match self {
            Self::Count | Self::Glance | Self::Errand => Duration::from_millis(200),
            Self::Upkeep => Duration::from_millis(20),
        }
    }
}

/// What a sweep came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Messages that are left.
    pub messages: u64,
    /// Expired messages that were removed.
    pub removed: u64,
}

impl QueueService {
    /// Looks after the queues in use, until it is dropped.
    pub async fn keep_up(&self) {
        loop {
            tokio::time::sleep(ROUND).await;
            for live in self.live.all() {
                if let Err(error) = self.look_after(&live).await {
                    // What is not done now is done in the next round, or by the next server that uses the queue.
                    tracing::debug!(%error, queue = %live.queue, "could not look after a queue");
                }
            }
        }
    }

    /// Stores what the next server would have to find out by reading.
    pub async fn close(&self) {
        for live in self.live.all() {
            if let Err(error) = self.store_head(&live, 1).await {
                tracing::debug!(%error, queue = %live.queue, "could not store what is known of a queue");
            }
        }
    }

    async fn look_after(&self, live: &LiveQueue) -> Result<()> {
        let times = *live.times();
        if times.used.elapsed() >= AHEAD_TIME {
            live.head().forget();
        }
        let is_time = times.head_stored.elapsed() >= TIME_PER_STORING;
        self.store_head(live, if is_time { 1 } else { CHANGES_PER_STORING }).await?;
        let rest = SWEEP_EVERY.max(times.sweep_took * SWEEP_REST);
        let is_wanted = match self.is_shared {
            // Another server's changes can't be seen otherwise.
            true => times.used.elapsed() < USE_TIME,
            false => live.head().wants_sweep(self.clock.tick()),
        };
        if is_wanted && times.swept.is_none_or(|swept| swept.elapsed() >= rest) {
            self.sweep_live(live, Purpose::Upkeep).await?;
        }
        Ok(())
    }

    /// Whether to count again before the number is told. Where other servers change the queue too, what they did since the
    /// last count is missing. Counting takes at most a twentieth of the time. A sweep in the background is no count: it takes
    /// its time, and what changes meanwhile is counted or not.
    pub(crate) fn is_count_due(&self, live: &LiveQueue) -> bool {
        let times = *live.times();
        self.is_shared
            && times.counted.is_none_or(|counted| counted.elapsed() >= times.count_took * SWEEP_REST)
    }

    /// Removes expired messages and counts the others.
    pub async fn sweep(&self, queue: &QueueRef) -> Result<Swept> {
        self.sweep_live(&*self.live(queue).await?, Purpose::Errand).await
    }

    pub(crate) async fn sweep_live(&self, live: &LiveQueue, purpose: Purpose) -> Result<Swept> {
        // Whoever only counts does not wait for a sweep that takes its time.
        let is_count = matches!(purpose, Purpose::Count | Purpose::Glance);
        let _turn = if is_count { None } else { Some(live.sweeping.lock().await) };
        let began = Instant::now();
        let start = {
            let head = live.head();
            if is_count { head.begin_count() } else { head.begin_census(!self.is_shared) }
        };
        let surveyed = self.survey(live, self.row_at(start.from), purpose).await;
        let mut times = live.times();
        if is_count {
            (times.counted, times.count_took) = (Some(Instant::now()), began.elapsed());
        } else {
            (times.swept, times.sweep_took) = (Some(Instant::now()), began.elapsed());
        }
        drop(times);
        let Surveyed { census, removed, is_complete } = surveyed?;
        let mut head = live.head();
        if !is_complete {
            return Ok(Swept { messages: head.end_glance(census.messages), removed });
        }
        head.end_census(start, census, !self.is_shared);
        Ok(Swept { messages: u64::try_from(census.messages).unwrap_or(0), removed })
    }

    /// The first row key to read, for what begins at this time or at the very start.
    pub(crate) fn row_at(&self, from: Option<DateTime>) -> String {
        let margin = if self.is_shared { SWEEP_MARGIN } else { Duration::ZERO };
        from.map_or_else(String::new, |from| format!("{:016x}", earlier(from, margin).ticks()))
    }

    async fn survey(&self, live: &LiveQueue, start: String, purpose: Purpose) -> Result<Surveyed> {
        let (mut census, mut removed) = (Census::default(), 0);
        let mut range = message_row::range_from(&start);
        let end = (purpose == Purpose::Glance).then(|| Instant::now() + GLANCE_TIME);
        let mut rows_left = if purpose == Purpose::Glance { GLANCE_ROWS } else { usize::MAX };
        loop {
            let began = Instant::now();
            let findings = Mutex::new(Findings { rows_left, ..Findings::default() });
            let surveyor = Arc::new(Surveyor { now: self.clock.tick(), findings });
            let budget =
                Budget { rows: EXPIRED_ROWS, bytes: EXPIRED_BYTES, time: purpose.time(), examined: u64::MAX };
            let filter = Some(surveyor.clone() as Arc<dyn RowFilter>);
            let scan = Scan { ranges: vec![range.clone()], budget, filter, lasts: false };
            let page = self.engine.scan(&live.table, scan).await;
            let page = self.answered(live, page)?;
            let findings = *surveyor.findings();
            rows_left = findings.rows_left;
            census.first = [census.first, findings.first].into_iter().flatten().min();
            census.next_expiry = [census.next_expiry, findings.next_expiry].into_iter().flatten().min();
            let mut expired = Vec::with_capacity(page.entities.len());
            for stored in page.entities.iter() {
                // The others end the page of a glance.
                if expires(stored.row)? <= surveyor.now {
                    expired.push((message_row::read_key(stored.row_key)?, stored.row.timestamp()?));
                }
            }
            // In a page, each row is counted once.
            census.messages += i64::try_from(page.examined).unwrap_or(i64::MAX) - expired.len() as i64;
            if !expired.is_empty() {
                let _pass = self.gate.pass().await?;
                let done = self.remove(live, expired).await?;
                removed += done.rows;
                census.own_changes += done.transactions;
            }
            let Some(next) = page.next else { return Ok(Surveyed { census, removed, is_complete: true }) };
            if rows_left == 0 || end.is_some_and(|end| Instant::now() >= end) {
                return Ok(Surveyed { census, removed, is_complete: false });
            }
            range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
            if purpose == Purpose::Upkeep {
                tokio::time::sleep(began.elapsed() * 4).await;
            }
        }
    }

    /// What a server has stored of the queue's head.
    pub(crate) async fn stored_head(&self, table: &TableRef) -> Result<StoredHead> {
        let Some(row) = self.engine.get(table, &head_key()?).await? else {
            return Ok(StoredHead { hint: DateTime::MIN, messages: None });
        };
        let mut found = [None; 2];
        row.raw().find(&[HINT, MESSAGES], &mut found)?;
        match found {
            [Some(ValueRef::DateTime(hint)), None] => Ok(StoredHead { hint, messages: None }),
            [Some(ValueRef::DateTime(hint)), Some(ValueRef::Int64(messages))] => {
                Ok(StoredHead { hint, messages: Some(messages) })
            }
            _ => Err(Fault::damaged("the head of a queue is not as this program writes it")
                .about(table)
                .into()),
        }
    }

    /// If so many rows came or went since it was stored last.
    async fn store_head(&self, live: &LiveQueue, changes_min: u64) -> Result<()> {
        let (StoredHead { hint, messages }, changes) = live.head().to_store();
        if changes < changes_min {
            return Ok(());
        }
        let _pass = self.gate.pass().await?;
        let mut properties = vec![(HINT, ValueRef::DateTime(hint))];
        properties.extend(messages.map(|messages| (MESSAGES, ValueRef::Int64(messages))));
        let draft = RowDraft::new(properties.into_iter());
        let transaction = Transaction::of_one(head_key()?, Condition::Anything, Change::Put(draft));
        let applied = self.engine.apply(&live.table, transaction).await;
        self.answered(live, applied)?;
        live.head().stored(changes);
        live.times().head_stored = Instant::now();
        Ok(())
    }
}

fn head_key() -> std::result::Result<EntityKey, Fault> {
    EntityKey::parse(HEAD_PARTITION, HEAD_ROW)
        .map_err(|_| Fault::bug("the place of a queue's head is not a key"))
}

/// What a survey has found.
#[derive(Clone, Copy, Debug)]
struct Surveyed {
    census: Census,
    /// Expired messages that it has removed.
    removed: u64,
    /// A glance at a long queue does not reach its end.
    is_complete: bool,
}

/// Looks at every row where it lies and keeps those that have expired. A glance also keeps what comes after its last row, so
/// that the page ends there.
struct Surveyor {
    now: DateTime,
    findings: Mutex<Findings>,
}

/// Of the other rows. An engine may show a row more than once, so the messages are not counted here.
#[derive(Clone, Copy, Debug, Default)]
struct Findings {
    rows_left: usize,
    first: Option<DateTime>,
    next_expiry: Option<DateTime>,
}

impl Surveyor {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowFilter for Surveyor {
    fn keep(&self, candidate: Candidate<'_>) -> std::result::Result<bool, Fault> {
        let (_, row_key) = candidate.keys()?;
        let due = message_row::read_key(&row_key)?.due;
        let expires = expires(candidate.row)?;
        if expires <= self.now {
            return Ok(true);
        }
        let mut findings = self.findings();
        findings.first = Some(findings.first.map_or(due, |first| first.min(due)));
        if expires < DateTime::MAX {
            findings.next_expiry =
                Some(findings.next_expiry.map_or(expires, |earliest| earliest.min(expires)));
        }
        let is_past_the_end = findings.rows_left == 0;
        findings.rows_left = findings.rows_left.saturating_sub(1);
        Ok(is_past_the_end)
    }
}

fn expires(row: RawRow<'_>) -> std::result::Result<DateTime, Fault> {
    let mut found = [None];
    row.find(&[EXPIRES], &mut found)?;
    match found {
        [Some(ValueRef::DateTime(expires))] => Ok(expires),
        _ => Err(Fault::damaged("a message's row does not say when it expires")),
    }
}
