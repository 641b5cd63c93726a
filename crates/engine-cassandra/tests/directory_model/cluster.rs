//! What the cluster holds, and what each request makes of it.

/// Of one partition key: what the partition says of itself, its entries in the segments, and the map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Zero: nothing was ever written.
    pub epoch: u8,
    pub registration: Registration,
    pub row: bool,
    entries: [Entry; SEGMENTS],
    pub map: Map,
}

pub const SEGMENTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Registration {
    None,
    Listed,
    Closing,
}

/// The later timestamp wins, and the grave of two that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Entry {
    timestamp: u8,
    listed: bool,
}

/// Where the partition's entry counts, and where it is on its way to. Splits, merges and rewrites look the same
/// to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Map {
    pub version: u8,
    pub at: u8,
    pub moving: bool,
    /// The segment before may still be there.
    pub retired: bool,
}

impl Map {
    pub const FIRST: Self = Self { version: 1, at: 0, moving: false, retired: false };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    List {
        segment: u8,
        epoch: u8,
    },
    Strike {
        segment: u8,
        epoch: u8,
    },
    /// On condition of the epoch, unless `anyway`.
    Change {
        from: u8,
        to: u8,
        registration: Registration,
        row: Option<bool>,
        anyway: bool,
    },
    /// On condition of the version before.
    ChangeMap {
        to: Map,
    },
    DropSegment {
        segment: u8,
    },
}

const DROPPED: u8 = u8::MAX;

fn listed_at(epoch: u8) -> u8 {
    2 * epoch
}

fn struck_at(epoch: u8) -> u8 {
    2 * epoch + 1
}

impl Cluster {
    pub fn untouched() -> Self {
        let (epoch, registration) = (0, Registration::None);
        Self { epoch, registration, row: false, entries: Default::default(), map: Map::FIRST }
    }

    pub fn with_a_row() -> Self {
        let mut cluster = Self::untouched();
        (cluster.epoch, cluster.registration, cluster.row) = (1, Registration::Listed, true);
        cluster.entries[0] = Entry { timestamp: listed_at(1), listed: true };
        cluster
    }

    /// A writer listed it, at an epoch ahead of the partition's, and never came back.
    pub fn emptied() -> Self {
        let mut cluster = Self::untouched();
        (cluster.epoch, cluster.registration) = (1, Registration::None);
        cluster.entries[0] = Entry { timestamp: listed_at(2), listed: true };
        cluster
    }

    pub fn is_listed(&self) -> bool {
        self.entry(self.map.at).is_some()
    }

    /// The epoch it is listed at in a segment, if it is.
    pub fn entry(&self, segment: u8) -> Option<u8> {
        let entry = self.entries[usize::from(segment)];
        entry.listed.then_some(entry.timestamp / 2)
    }

    pub fn was_struck_off(&self) -> bool {
        let entry = self.entries[usize::from(self.map.at)];
        !entry.listed && entry.timestamp > listed_at(1)
    }

    /// Whether it did what it was to do.
    pub fn take(&mut self, request: Request, epoch_timestamps: bool) -> bool {
        match request {
            Request::List { segment, epoch } => self.put(segment, listed_at(epoch), true, epoch_timestamps),
            Request::Strike { segment, epoch } => {
                self.put(segment, struck_at(epoch), false, epoch_timestamps);
            }
            Request::DropSegment { segment } => self.put(segment, DROPPED, false, true),
            Request::Change { from, to, registration, row, anyway } => {
                if self.epoch != from && !anyway {
                    return false;
                }
                if self.epoch == from {
                    (self.epoch, self.registration) = (to, registration);
                }
                self.row = row.unwrap_or(self.row);
            }
            Request::ChangeMap { to } => {
                if to.version != self.map.version + 1 {
                    return false;
                }
                self.map = to;
            }
        }
        true
    }

    fn put(&mut self, segment: u8, timestamp: u8, listed: bool, by_timestamp: bool) {
        let entry = &mut self.entries[usize::from(segment)];
        // What arrives last wins, were it not for the epochs.
        let timestamp = if by_timestamp { timestamp } else { entry.timestamp.saturating_add(2) };
        if timestamp > entry.timestamp {
            *entry = Entry { timestamp, listed };
        } else if timestamp == entry.timestamp && !listed {
            entry.listed = false;
        }
    }
}
