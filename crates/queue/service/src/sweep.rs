//! What is done for queues in the background: expired messages are removed, messages are counted, the hint is corrected
//! and stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{Cut, EntityKey, KeyRange, ValueRef};
use queue_model::DateTime;
use store::{Budget, Candidate, Change, Condition, Fault, RowDraft, RowFilter, Scan, TableRef, Transaction};

use crate::clock::earlier;
use crate::head::Census;
use crate::live::LiveQueue;
use crate::message_row::{self, EXPIRES};
use crate::{QueueRef, QueueService, Result};

/// The hint is the one row of a partition of its own, beside the messages.
const HINT_PARTITION: &str = "h";
const HINT_ROW: &str = "head";
const HINT: &str = "H";

/// Between two looks at the queues in use.
const ROUND: Duration = Duration::from_secs(1);
/// A hint is stored after so many removals, or so long after some. A restart steps over no more tombstones than that.
const REMOVALS_PER_HINT: u64 = 1000;
const TIME_PER_HINT: Duration = Duration::from_secs(10);
/// Between two sweeps of a queue; more if they take long: then sweeps take a twentieth of the time.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEEP_REST: u32 = 20;
/// What was read ahead of a queue that nobody has used for so long is forgotten.
const AHEAD_TIME: Duration = Duration::from_secs(10);
/// Queues that other servers may use too are swept only while this one uses them.
const USE_TIME: Duration = Duration::from_secs(600);
/// How far below the hint a sweep begins where other servers put messages too.
const SWEEP_MARGIN: Duration = Duration::from_secs(60);

/// Expired messages that a sweep removes before it reads on.
const EXPIRED_ROWS: usize = 1000;
const EXPIRED_BYTES: usize = 4 * 1024 * 1024;

/// What a sweep is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody waits for the number of messages.
    Count,
    /// Somebody waits for the end of it.
    Errand,
    /// Nobody waits, and others come first.
    Upkeep,
}

impl Purpose {
    /// Of one page.
    fn time(self) -> Duration {
        match self {
            Self::Count | Self::Errand => Duration::from_millis(200),
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
            if let Err(error) = self.store_hint(&live, 1).await {
                tracing::debug!(%error, queue = %live.queue, "could not store where a queue begins");
            }
        }
    }

    async fn look_after(&self, live: &LiveQueue) -> Result<()> {
        let times = *live.times();
        if times.used.elapsed() >= AHEAD_TIME {
            live.head().forget();
        }
        let is_time = times.hint_stored.elapsed() >= TIME_PER_HINT;
        self.store_hint(live, if is_time { 1 } else { REMOVALS_PER_HINT }).await?;
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
        let _turn = match purpose {
            Purpose::Count => None,
            Purpose::Errand | Purpose::Upkeep => Some(live.sweeping.lock().await),
        };
        let began = Instant::now();
        let start = match purpose {
            Purpose::Count => live.head().begin_count(),
            Purpose::Errand | Purpose::Upkeep => live.head().begin_census(!self.is_shared),
        };
        let swept = self.survey(live, self.row_at(start.from), purpose).await;
        let mut times = live.times();
        match purpose {
            Purpose::Count => (times.counted, times.count_took) = (Some(Instant::now()), began.elapsed()),
            Purpose::Errand | Purpose::Upkeep => {
                (times.swept, times.sweep_took) = (Some(Instant::now()), began.elapsed());
            }
        }
        drop(times);
        let (census, removed) = swept?;
        live.head().end_census(start, census, !self.is_shared);
        Ok(Swept { messages: u64::try_from(census.messages).unwrap_or(0), removed })
    }

    /// The first row key to read, for what begins at this time or at the very start.
    pub(crate) fn row_at(&self, from: Option<DateTime>) -> String {
        let margin = if self.is_shared { SWEEP_MARGIN } else { Duration::ZERO };
        from.map_or_else(String::new, |from| format!("{:016x}", earlier(from, margin).ticks()))
    }

    async fn survey(&self, live: &LiveQueue, start: String, purpose: Purpose) -> Result<(Census, u64)> {
        let (mut census, mut removed) = (Census::default(), 0);
        let mut range = message_row::range_from(&start);
        loop {
            let began = Instant::now();
            let surveyor = Arc::new(Surveyor { now: self.clock.tick(), findings: Mutex::default() });
            let budget =
                Budget { rows: EXPIRED_ROWS, bytes: EXPIRED_BYTES, time: purpose.time(), examined: u64::MAX };
            let filter = Some(surveyor.clone() as Arc<dyn RowFilter>);
            let scan = Scan { ranges: vec![range.clone()], budget, filter, lasts: false };
            let page = self.engine.scan(&live.table, scan).await;
            let page = self.answered(live, page)?;
            let findings = *surveyor.findings();
            // In a page, each row is counted once.
            census.messages += i64::try_from(page.examined).unwrap_or(i64::MAX) - page.entities.len() as i64;
            census.first = [census.first, findings.first].into_iter().flatten().min();
            census.next_expiry = [census.next_expiry, findings.next_expiry].into_iter().flatten().min();
            let mut expired = Vec::with_capacity(page.entities.len());
            for stored in page.entities.iter() {
                expired.push((message_row::read_key(stored.row_key)?, stored.row.timestamp()?));
            }
            if !expired.is_empty() {
                let _pass = self.gate.pass().await?;
                let done = self.remove(live, expired).await?;
                removed += done.rows;
                census.own_changes += done.transactions;
            }
            let Some(next) = page.next else { return Ok((census, removed)) };
            range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
            if purpose == Purpose::Upkeep {
                tokio::time::sleep(began.elapsed() * 4).await;
            }
        }
    }

    /// Where the queue began when that was stored last.
    pub(crate) async fn stored_hint(&self, table: &TableRef) -> Result<DateTime> {
        let Some(row) = self.engine.get(table, &hint_key()?).await? else { return Ok(DateTime::MIN) };
        let mut found = [None];
        row.raw().find(&[HINT], &mut found)?;
        match found {
            [Some(ValueRef::DateTime(hint))] => Ok(hint),
            _ => Err(Fault::damaged("the hint of a queue is not as this program writes it")
                .about(table)
                .into()),
        }
    }

    /// If so many rows were removed since it was stored last.
    async fn store_hint(&self, live: &LiveQueue, removals_min: u64) -> Result<()> {
        let (hint, removals) = {
            let head = live.head();
            (head.hint().max(DateTime::MIN_STORED), head.removals())
        };
        if removals < removals_min {
            return Ok(());
        }
        let _pass = self.gate.pass().await?;
        let draft = RowDraft::new([(HINT, ValueRef::DateTime(hint))].into_iter());
        let transaction = Transaction::of_one(hint_key()?, Condition::Anything, Change::Put(draft));
        let applied = self.engine.apply(&live.table, transaction).await;
        self.answered(live, applied)?;
        live.head().stored(removals);
        live.times().hint_stored = Instant::now();
        Ok(())
    }
}

fn hint_key() -> std::result::Result<EntityKey, Fault> {
    EntityKey::parse(HINT_PARTITION, HINT_ROW).map_err(|_| Fault::bug("the place of the hint is not a key"))
}

/// Looks at every row where it lies and keeps those that have expired.
struct Surveyor {
    now: DateTime,
    findings: Mutex<Findings>,
}

/// Of the other rows. An engine may show a row more than once, so nothing is counted here.
#[derive(Clone, Copy, Debug, Default)]
struct Findings {
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
        let mut found = [None];
        candidate.row.find(&[EXPIRES], &mut found)?;
        let [Some(ValueRef::DateTime(expires))] = found else {
            return Err(Fault::damaged("a message's row does not say when it expires"));
        };
        if expires <= self.now {
            return Ok(true);
        }
        let mut findings = self.findings();
        findings.first = Some(findings.first.map_or(due, |first| first.min(due)));
        if expires < DateTime::MAX {
            findings.next_expiry =
                Some(findings.next_expiry.map_or(expires, |earliest| earliest.min(expires)));
        }
        Ok(false)
    }
}
