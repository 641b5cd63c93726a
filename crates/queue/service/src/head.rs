//! The head of a queue in memory: where to begin reading, the messages read ahead, and those that somebody is changing.
//!
//! A queue is the worst case of a log-structured store: where its first message was, there are now the tombstones of all
//! that were before it. So readings begin at the *hint*, below which there is no message. It is exact as long as this server
//! is the only one that changes the queue, because every change says beforehand where its row will be.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use queue_model::DateTime;

use crate::ahead_memory::{AheadMemory, AheadShare};
use crate::message_row::{FoundMessage, RowKey};

#[derive(Debug)]
pub struct Head {
    /// No message lies below it. What another server, or a change that was cut short, puts there is found by a sweep.
    hint: DateTime,
    /// Visible messages that nobody is taking, in order.
    ahead: BTreeMap<RowKey, FoundMessage>,
    /// The memory of `ahead`.
    ahead_share: AheadShare,
    /// Up to here `ahead` has all of them.
    covered: Option<RowKey>,
    read_at: Instant,
    /// Messages that a Get has chosen and is about to hide.
    taken: HashSet<RowKey>,
    /// When the rows become visible that are being written, and how many of them.
    in_flight: BTreeMap<DateTime, usize>,
    reading: Option<Reading>,
    /// Changes that ended without an answer since the last sweep: a message may lie below the hint, now or in a moment.
    doubts: u64,
    /// The hint when the last sweep began. Before the first sweep, nothing is known of what lies below the hint.
    swept_from: Option<DateTime>,
    /// Rows that came or went since the hint and the count were stored.
    unstored: u64,
    counted: Counted,
}

/// What changes while rows are read.
#[derive(Debug)]
struct Reading {
    /// The last time that is read.
    bound: DateTime,
    /// The earliest row that was being written meanwhile.
    floor: DateTime,
    removed: HashSet<RowKey>,
    /// The first row that was written meanwhile. The reading may have missed it, if it gets as far as that.
    inserted: Option<RowKey>,
    /// What was read may not be there any more.
    is_stale: bool,
}

/// Removals noted during one reading. A reading that was given up may stay for long.
const REMOVED_MAX: usize = 10_000;

impl Reading {
    fn remove(&mut self, key: RowKey) {
        if self.removed.len() < REMOVED_MAX {
            self.removed.insert(key);
        } else {
            self.is_stale = true;
        }
    }

    fn insert(&mut self, keys: &[RowKey]) {
        self.inserted = self.inserted.iter().chain(keys).min().copied();
    }
}

/// How many messages there are, as far as is known.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// `None` if they were never counted.
    messages: Option<i64>,
    /// The number was stored by an earlier server, and the messages have not been counted since.
    is_remembered: bool,
    /// Goes up with every change.
    changes: u64,
    /// Nothing changed while they were counted, and every change since was made here.
    is_exact: bool,
    /// No message expires before this.
    next_expiry: Option<DateTime>,
}

/// Rows from the hint on.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// Those that have not expired, in order.
    pub found: Vec<FoundMessage>,
    pub expired: Vec<FoundMessage>,
    /// Of all rows.
    pub first: Option<RowKey>,
    pub last: Option<RowKey>,
    /// No row is left up to the bound of the reading.
    pub is_exhausted: bool,
}

/// What a sweep has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Census {
    pub messages: i64,
    pub first: Option<DateTime>,
    /// The earliest expiry of all that are left.
    pub next_expiry: Option<DateTime>,
    /// Transactions by which the sweep itself has removed messages.
    pub own_changes: u64,
}

/// What a sweep has to know before it begins.
#[derive(Clone, Copy, Debug)]
pub struct CensusStart {
    /// Where it begins; `None` for the very start.
    pub from: Option<DateTime>,
    changes: u64,
    /// The doubts that it settles, and the hint; `None` if it only counts.
    settles: Option<(u64, DateTime)>,
}

/// What is stored of a head, for the next server that uses the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHead {
    pub hint: DateTime,
    /// About how many messages there are, if they were ever counted.
    pub messages: Option<i64>,
}

/// How many messages there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Unknown,
    /// As an earlier server has stored it. What changed before that server was killed may be missing.
    Remembered(u64),
    Known(u64),
}

impl Head {
    /// Of a queue of which nothing is known but what is stored.
    pub fn unknown(stored: StoredHead, memory: &Arc<AheadMemory>) -> Self {
        let StoredHead { hint, messages } = stored;
        Self {
            hint,
            ahead: BTreeMap::new(),
            ahead_share: AheadShare::none(memory),
            covered: None,
            read_at: Instant::now(),
            taken: HashSet::new(),
            in_flight: BTreeMap::new(),
            reading: None,
            doubts: 1,
            swept_from: None,
            unstored: 0,
            counted: Counted { messages, is_remembered: messages.is_some(), ..Counted::default() },
        }
    }

    /// Of a queue that was just created. `is_alone`: only this server changes it.
    pub fn empty(now: DateTime, is_alone: bool, memory: &Arc<AheadMemory>) -> Self {
        let counted = Counted { messages: Some(0), is_exact: is_alone, ..Counted::default() };
        let stored = StoredHead { hint: now, messages: None };
        Self { doubts: 0, swept_from: Some(now), counted, ..Self::unknown(stored, memory) }
    }

    pub fn hint(&self) -> DateTime {
        self.hint
    }

    pub fn is_doubtful(&self) -> bool {
        self.doubts > 0
    }

    pub fn count(&self) -> Count {
        let Some(messages) = self.counted.messages else { return Count::Unknown };
        let messages = u64::try_from(messages).unwrap_or(0);
        if self.counted.is_remembered { Count::Remembered(messages) } else { Count::Known(messages) }
    }

    /// Whether a sweep would find something to do.
    pub fn wants_sweep(&self, now: DateTime) -> bool {
        let has_expired = self.counted.next_expiry.is_some_and(|expiry| expiry <= now);
        self.is_doubtful() || !self.counted.is_exact || has_expired
    }

    // Taking.

    /// Moves messages from the front, after so many that are left where they are, to those being taken, until there are
    /// so many that have not expired. The expired ones on the way are taken too.
    pub fn take(
        &mut self,
        count: usize,
        skip: usize,
        now: DateTime,
    ) -> (Vec<FoundMessage>, Vec<FoundMessage>) {
        let (mut live, mut expired) = (Vec::new(), Vec::new());
        while live.len() < count
            && let Some(key) = self.ahead.keys().nth(skip).copied()
            && let Some(found) = self.ahead.remove(&key)
        {
            self.taken.insert(key);
            if found.message.is_expired(now) { expired.push(found) } else { live.push(found) }
        }
        (live, expired)
    }

    /// The first messages that have not expired, if so many are known.
    pub fn peek(&self, count: usize, now: DateTime) -> Vec<FoundMessage> {
        self.ahead.values().filter(|found| !found.message.is_expired(now)).take(count).cloned().collect()
    }

    pub fn ahead_len(&self) -> usize {
        self.ahead.len()
    }

    #[cfg(test)]
    pub fn ahead_bytes(&self) -> usize {
        self.ahead.values().map(FoundMessage::memory).sum()
    }

    /// Forgets what was read ahead.
    pub fn forget(&mut self) {
        self.ahead.clear();
        self.ahead_share.resize(0);
        self.covered = None;
    }

    /// The same, if it was read longer ago than this.
    pub fn forget_older(&mut self, age: Duration) {
        if self.read_at.elapsed() > age {
            self.forget();
        }
    }

    // Reading.

    /// From where on to read. `bound` is the last time that will be read.
    pub fn begin_reading(&mut self, bound: DateTime) -> DateTime {
        let floor = self.in_flight.keys().next().copied().unwrap_or(DateTime::MAX);
        self.reading =
            Some(Reading { bound, floor, removed: HashSet::new(), inserted: None, is_stale: false });
        self.hint
    }

    /// Rows that lie at the front and are about to be hidden; a reading has to look behind them.
    pub fn taken_len(&self) -> usize {
        self.taken.len()
    }

    pub fn is_taken(&self, key: RowKey) -> bool {
        self.taken.contains(&key)
    }

    /// How many of these messages somebody can be given.
    pub fn count_free(&self, found: &[FoundMessage]) -> usize {
        found.iter().filter(|found| !self.taken.contains(&found.message.key)).count()
    }

    /// Takes over what was read from the hint on. The hint rises to the first row, but not above `hint_max`. False if the
    /// messages are good for one use only.
    pub fn end_reading(&mut self, read: ReadAhead, hint_max: DateTime) -> bool {
        let Some(Reading { bound, floor, removed, inserted, is_stale }) = self.reading.take() else {
            return false;
        };
        let ReadAhead { found, first, last, is_exhausted, .. } = read;
        // A reading that is cut off before its first row has found nothing out.
        let rise = first.map(|first| first.due).or(is_exhausted.then_some(bound)).unwrap_or(self.hint);
        self.hint = self.hint.max(rise.min(floor).min(hint_max));
        self.covered = if is_exhausted { Some(RowKey::last_at(bound)) } else { last };
        self.read_at = Instant::now();
        self.ahead = found
            .into_iter()
            .map(|found| (found.message.key, found))
            .filter(|(key, _)| !self.taken.contains(key) && !removed.contains(key))
            .collect();
        let has_room = self.ahead_share.resize(self.ahead.values().map(FoundMessage::memory).sum());
        // Where many messages wait, a reading ends far before what is put meanwhile.
        let has_missed =
            self.covered.is_some_and(|covered| inserted.is_some_and(|inserted| inserted <= covered));
        has_room && !is_stale && !has_missed
    }

    // Changing.

    /// Rows will be written that become visible then.
    pub fn begin_writing(&mut self, dues: &[DateTime]) {
        for due in dues {
            *self.in_flight.entry(*due).or_default() += 1;
            self.hint = self.hint.min(*due);
            if let Some(reading) = &mut self.reading {
                reading.floor = reading.floor.min(*due);
            }
        }
    }

    /// They are written, or never will be.
    pub fn end_writing(&mut self, dues: &[DateTime]) {
        for due in dues {
            if let Some(count) = self.in_flight.get_mut(due) {
                *count -= 1;
                if *count == 0 {
                    self.in_flight.remove(due);
                }
            }
        }
    }

    /// Rows that are no longer there, and those that came. A message that only moved is among both.
    pub fn changed(&mut self, removed: &[RowKey], inserted: &[RowKey], expires: Option<DateTime>) {
        for key in removed {
            self.ahead.remove(key);
            self.taken.remove(key);
            if let Some(reading) = &mut self.reading {
                reading.remove(*key);
            }
        }
        if self.covered.is_some_and(|covered| inserted.iter().any(|key| *key <= covered)) {
            self.forget();
        }
        if let Some(reading) = &mut self.reading {
            reading.insert(inserted);
        }
        self.unstored += (removed.len() + inserted.len()) as u64;
        self.counted.changes += 1;
        if let Some(messages) = &mut self.counted.messages {
            // A transaction has at most 100 operations.
            *messages += inserted.len() as i64 - removed.len() as i64;
        }
        if let Some(expires) = expires {
            let earliest = self.counted.next_expiry.map_or(expires, |earliest| earliest.min(expires));
            self.counted.next_expiry = Some(earliest);
        }
    }

    /// These are not being taken after all, and are where they were or not.
    pub fn release(&mut self, keys: &[RowKey]) {
        for key in keys {
            self.taken.remove(key);
        }
        self.forget();
        if let Some(reading) = &mut self.reading {
            reading.is_stale = true;
        }
    }

    /// A change ended without an answer.
    pub fn doubt(&mut self) {
        self.doubts += 1;
        self.counted.is_exact = false;
        self.forget();
        if let Some(reading) = &mut self.reading {
            reading.is_stale = true;
        }
    }

    // Sweeping and storing the hint.

    /// If only this server changes the queue, a sweep finds all from the hint on unless that is doubtful. If others do, it
    /// begins where the hint was at the last sweep: what they have put below the hint since is above that, less a margin.
    pub fn begin_census(&self, is_alone: bool) -> CensusStart {
        let from = if is_alone { Some(self.hint).filter(|_| !self.is_doubtful()) } else { self.swept_from };
        CensusStart { from, changes: self.counted.changes, settles: Some((self.doubts, self.hint)) }
    }

    /// The same for one that only counts and leaves the rest to the next.
    pub fn begin_count(&self) -> CensusStart {
        CensusStart { from: Some(self.hint), changes: self.counted.changes, settles: None }
    }

    /// `is_alone`: only this server changes the queue.
    pub fn end_census(&mut self, start: CensusStart, census: Census, is_alone: bool) {
        let is_exact = is_alone && self.counted.changes == start.changes + census.own_changes;
        self.counted.is_remembered = false;
        // What changed meanwhile may have been counted or not. An exact number stays exact by counting changes.
        if !self.counted.is_exact || is_exact {
            self.counted.messages = Some(census.messages);
            self.counted.is_exact = is_exact;
        }
        if let Some((doubts, hint)) = start.settles {
            self.doubts -= doubts;
            self.swept_from = Some(hint);
        }
        let earliest = [census.next_expiry, self.counted.next_expiry.filter(|_| !is_exact)];
        self.counted.next_expiry = earliest.into_iter().flatten().min();
        if let Some(first) = census.first
            && first < self.hint
        {
            self.hint = first;
            self.forget();
        }
    }

    /// There are too many messages to count them while somebody waits: the number that is known stays, unless more than
    /// that were found.
    pub fn end_glance(&mut self, found: i64) -> u64 {
        let messages = self.counted.messages.map_or(found, |messages| messages.max(found));
        (self.counted.messages, self.counted.is_remembered) = (Some(messages), false);
        u64::try_from(messages).unwrap_or(0)
    }

    /// What the next server should know, and how many rows came or went since that was stored last.
    pub fn to_store(&self) -> (StoredHead, u64) {
        let hint = self.hint.max(DateTime::MIN_STORED);
        (StoredHead { hint, messages: self.counted.messages }, self.unstored)
    }

    /// It is stored, with so many changes.
    pub fn stored(&mut self, changes: u64) {
        self.unstored -= changes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_row::StoredMessage;
    use queue_model::{Guid, MessageId, MessageText};

    fn time(ticks: i64) -> DateTime {
        DateTime::from_ticks(DateTime::MIN_STORED.ticks() + ticks).unwrap()
    }

    fn found(ticks: i64) -> FoundMessage {
        let id = MessageId(Guid([0; 16]));
        let text = MessageText::default();
        let message = StoredMessage::new(id, time(ticks), Duration::ZERO, DateTime::MAX, text);
        FoundMessage { message, version: time(0) }
    }

    #[test]
    fn what_was_read_stays_good_unless_the_reading_may_have_missed_a_row() {
        // Messages 10 and 20 are read up to now, which is 100, while a row is written.
        let check = |written: &[i64], is_exhausted: bool, expected: bool| {
            let mut head = Head::empty(time(0), true, &Arc::default());
            head.begin_reading(time(100));
            for ticks in written {
                head.changed(&[], &[found(*ticks).message.key], None);
            }
            let messages = vec![found(10), found(20)];
            let (first, last) = (Some(messages[0].message.key), Some(messages[1].message.key));
            let read = ReadAhead { found: messages, expired: Vec::new(), first, last, is_exhausted };
            let shown = format!("{written:?} {is_exhausted}");
            assert_eq!(head.end_reading(read, DateTime::MAX), expected, "{shown}");
            assert_eq!(head.ahead_len(), 2, "good for one use at least: {shown}");
        };
        check(&[], true, true);
        check(&[15], false, false);
        check(&[50], false, true);
        check(&[50], true, false);
        check(&[150], true, true);
        check(&[50, 15, 60], false, false);
    }
}
