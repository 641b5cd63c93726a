//! Which partitions, queues and blobs of an account are asked for most: two sketches an account, of this minute and of the last.
//!
//! Keys are data, so they are no labels of metrics. Only the account's owner may see them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::keyed_hash::{AlreadyHashed, KeyedHash};
use crate::space_saving::{Room, SpaceSaving};
use crate::{AccountName, ServiceKind};

/// Slots of one sketch: a partition with more than 1/256 of a minute's requests is in it.
pub const PARTITIONS_MAX: usize = 256;
/// Slots of all accounts together, beside those that every account has. With the longest keys they take about 6 MiB.
const SLOTS_MAX: usize = 16 * 1024;
/// Slots that a sketch has however many other accounts there are.
const OWN_SLOTS: usize = 4;
/// A longer key is cut here: it is shown, not used.
const KEY_BYTES_MAX: usize = 256;
/// Above this rate, one request of `SAMPLE` is counted, for all of them.
const COUNTED_PER_SECOND: u32 = 20_000;
const SAMPLE: u32 = 8;
/// Each account is behind one of these locks.
const SHARDS: usize = 16;
const MINUTE: u64 = 60;

/// A partition of a table, all of a table, a queue, a blob, or all of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub service: ServiceKind,
    /// The table, the queue or the container.
    pub resource: &'a str,
    /// The partition key or the blob's name; `None` for a request to several of them, and for a queue.
    pub partition: Option<&'a str>,
}

/// What requests cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub requests: u64,
    /// Entities or messages written or deleted.
    pub writes: u64,
    /// Entities or messages read, examined or written.
    pub entities: u64,
    /// The same in KiB, each rounded up.
    pub kibibytes: u64,
    /// Requests that a throttle turned away.
    pub refusals: u64,
}

/// The sketches of all accounts. Services that share accounts share one of these.
#[derive(Debug)]
pub struct HotPartitions {
    started: Instant,
    hash: KeyedHash,
    shards: [Mutex<Shard>; SHARDS],
    /// Of `SLOTS_MAX`.
    slots_left: AtomicUsize,
    /// The minute in which the sketches of idle accounts were last dropped.
    swept: AtomicU64,
}

/// Some of the accounts, by the hashes of their names.
type Shard = HashMap<u64, (AccountName, Minutes), BuildHasherDefault<AlreadyHashed>>;

/// What is known of one account.
#[derive(Debug, Default)]
pub struct HotReport {
    pub this_minute: HotMinute,
    pub last_minute: HotMinute,
}

#[derive(Debug, Default)]
pub struct HotMinute {
    /// How much of the minute is over.
    pub elapsed: Duration,
    /// Not every request was counted: the numbers are estimates.
    pub is_sampled: bool,
    /// Those with most requests first.
    pub partitions: Vec<HotPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotPartition {
    pub service: ServiceKind,
    pub resource: String,
    pub partition: Option<String>,
    /// The end of the partition key is left out.
    pub is_cut: bool,
    /// `requests` is not below the true number; the others are not above.
    pub load: Load,
    /// By how much `requests` can be above the true number.
    pub error: u64,
}

/// The sketches of one account.
#[derive(Debug)]
struct Minutes {
    minute: u64,
    this: Sketch,
    last: Sketch,
    second: u64,
    in_second: u32,
}

#[derive(Debug)]
struct Sketch {
    partitions: SpaceSaving<KeptPlace, Load>,
    is_sampled: bool,
}

/// A place in one text, so that a slot can be reused without another allocation.
#[derive(Debug)]
struct KeptPlace {
    service: ServiceKind,
    /// The resource, then the partition key.
    text: String,
    resource_bytes: usize,
    has_partition: bool,
    is_cut: bool,
}

impl HotPartitions {
    pub fn new() -> Self {
        Self::started_at(Instant::now())
    }

    fn started_at(started: Instant) -> Self {
        Self {
            started,
            hash: KeyedHash::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
            slots_left: AtomicUsize::new(SLOTS_MAX),
            swept: AtomicU64::new(0),
        }
    }

    /// Counts a request.
    pub fn record(&self, account: &AccountName, place: Place<'_>, load: Load, now: Instant) {
        let second = now.saturating_duration_since(self.started).as_secs();
        if self.slots_left.load(Ordering::Relaxed) == 0 {
            self.sweep(second / MINUTE);
        }
        let account_hash = self.hash.of(0, &[account.as_str()]);
        let mut shard = self.shard(account_hash);
        let minutes = match shard.get_mut(&account_hash) {
            Some((known, minutes)) if known == account => minutes,
            // Two accounts with one hash: only the first is counted.
            Some(_) => return,
            None => &mut shard.entry(account_hash).or_insert_with(|| (account.clone(), Minutes::default())).1,
        };
        minutes.turn(second / MINUTE, &self.slots_left);
        let Some(times) = minutes.sample(second) else { return };
        let hash = match place.partition {
            Some(partition) => self.hash.of(place.service.letter() as u8, &[place.resource, partition]),
            None => self.hash.of(place.service.letter() as u8, &[place.resource]),
        };
        let load = if times == 1 { load } else { load.times(times) };
        let sketch = &mut minutes.this;
        sketch.is_sampled |= times > 1;
        let is_own = sketch.partitions.len() < OWN_SLOTS;
        let room = || if is_own || take(&self.slots_left) { Room::Free } else { Room::Full };
        let counted = sketch.partitions.add(
            hash,
            load.requests,
            // A keyed hash stands for its place: among the few that are kept, no two will ever share one.
            |_| true,
            |kept| kept.set(place),
            room,
        );
        if let Some(counted) = counted {
            counted.add(load);
        }
    }

    /// What is known of an account, its `top` most requested places of each minute.
    pub fn report(&self, account: &AccountName, top: usize, order: HotOrder, now: Instant) -> HotReport {
        let since = now.saturating_duration_since(self.started);
        let minute = since.as_secs() / MINUTE;
        let elapsed = since.saturating_sub(Duration::from_secs(minute * MINUTE));
        let account_hash = self.hash.of(0, &[account.as_str()]);
        let mut shard = self.shard(account_hash);
        let known = shard.get_mut(&account_hash).filter(|(known, _)| known == account);
        let Some((_, minutes)) = known else {
            return HotReport {
                this_minute: HotMinute { elapsed, ..HotMinute::default() },
                ..HotReport::default()
            };
        };
        minutes.turn(minute, &self.slots_left);
        HotReport {
            this_minute: minutes.this.report(top, order, elapsed),
            last_minute: minutes.last.report(top, order, Duration::from_secs(MINUTE)),
        }
    }

    fn shard(&self, account_hash: u64) -> MutexGuard<'_, Shard> {
        // Other bits than those that a map uses.
        let index = (account_hash >> 32) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the sketches of accounts without requests in the last two minutes; once a minute.
    #[cold]
    fn sweep(&self, minute: u64) {
        if self.swept.swap(minute, Ordering::Relaxed) == minute {
            return;
        }
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, minutes) in shard.values_mut() {
                minutes.turn(minute, &self.slots_left);
            }
            shard.retain(|_, (_, minutes)| {
                !minutes.this.partitions.is_empty() || !minutes.last.partitions.is_empty()
            });
        }
    }
}

impl Default for HotPartitions {
    fn default() -> Self {
        Self::new()
    }
}

/// By which number a report is sorted and cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HotOrder {
    #[default]
    Requests,
    Entities,
    Kibibytes,
    Refusals,
}

impl Minutes {
    /// Makes this minute the current one.
    fn turn(&mut self, minute: u64, slots_left: &AtomicUsize) {
        if minute <= self.minute {
            return;
        }
        let this = std::mem::replace(&mut self.this, Sketch::new());
        let old = std::mem::replace(&mut self.last, this);
        give_back(slots_left, &old);
        if minute > self.minute + 1 {
            give_back(slots_left, &std::mem::replace(&mut self.last, Sketch::new()));
        }
        self.minute = minute;
    }

    /// For how many requests this one counts; `None` if it is not counted.
    fn sample(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second = self.in_second.saturating_add(1);
        match self.in_second.checked_sub(COUNTED_PER_SECOND) {
            None | Some(0) => Some(1),
            Some(above) if above.is_multiple_of(SAMPLE) => Some(u64::from(SAMPLE)),
            Some(_) => None,
        }
    }
}

impl Default for Minutes {
    fn default() -> Self {
        Self { minute: 0, this: Sketch::new(), last: Sketch::new(), second: 0, in_second: 0 }
    }
}

fn take(slots_left: &AtomicUsize) -> bool {
    slots_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

fn give_back(slots_left: &AtomicUsize, sketch: &Sketch) {
    slots_left.fetch_add(sketch.partitions.len().saturating_sub(OWN_SLOTS), Ordering::Relaxed);
}

impl Sketch {
    fn new() -> Self {
        Self { partitions: SpaceSaving::new(PARTITIONS_MAX), is_sampled: false }
    }

    fn report(&self, top: usize, order: HotOrder, elapsed: Duration) -> HotMinute {
        let shown = self.partitions.heaviest().map(|heavy| HotPartition {
            service: heavy.key.service,
            resource: heavy.key.resource().to_owned(),
            partition: heavy.key.partition().map(str::to_owned),
            is_cut: heavy.key.is_cut,
            load: Load { requests: heavy.weight, ..*heavy.tally },
            error: heavy.error,
        });
        let mut partitions: Vec<HotPartition> = shown.collect();
        partitions.sort_by_key(|partition| std::cmp::Reverse(order.of(&partition.load)));
        partitions.truncate(top);
        HotMinute { elapsed, is_sampled: self.is_sampled, partitions }
    }
}

impl HotOrder {
    fn of(self, load: &Load) -> u64 {
        match self {
            Self::Requests => load.requests,
            Self::Entities => load.entities,
            Self::Kibibytes => load.kibibytes,
            Self::Refusals => load.refusals,
        }
    }
}

impl Load {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.writes += other.writes;
        self.entities += other.entities;
        self.kibibytes += other.kibibytes;
        self.refusals += other.refusals;
    }

    fn times(self, times: u64) -> Self {
        Self {
            requests: self.requests * times,
            writes: self.writes * times,
            entities: self.entities * times,
            kibibytes: self.kibibytes * times,
            refusals: self.refusals * times,
        }
    }
}

impl KeptPlace {
    fn set(&mut self, place: Place<'_>) {
        let Place { service, resource, partition } = place;
        let key = partition.unwrap_or_default();
        let kept = cut(key);
        self.text.clear();
        self.text.push_str(resource);
        self.text.push_str(kept);
        (self.service, self.resource_bytes) = (service, resource.len());
        (self.has_partition, self.is_cut) = (partition.is_some(), kept.len() < key.len());
    }

    fn resource(&self) -> &str {
        &self.text[..self.resource_bytes]
    }

    fn partition(&self) -> Option<&str> {
        self.has_partition.then(|| &self.text[self.resource_bytes..])
    }
}

impl Default for KeptPlace {
    fn default() -> Self {
        Self {
            service: ServiceKind::Table,
            text: String::new(),
            resource_bytes: 0,
            has_partition: false,
            is_cut: false,
        }
    }
}

fn cut(key: &str) -> &str {
    if key.len() <= KEY_BYTES_MAX {
        return key;
    }
    let mut end = KEY_BYTES_MAX;
    while !key.is_char_boundary(end) {
        end -= 1;
    }
    &key[..end]
}

#[cfg(test)]
mod tests;
