//! The state of the cluster, and how each request changes it.

/// For one partition key: the partition's own state, its entries in the segments, and the map.
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

/// The later timestamp wins. If two are equal, the one that is not listed wins, as a tombstone does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Entry {
    timestamp: u8,
    listed: bool,
}

/// The current segment of the partition, and whether it is moving to the next. For one key, splits, merges and rewrites
/// are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Map {
    pub version: u8,
    pub at: u8,
    pub moving: bool,
    /// The previous segment may still exist.
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
    /// Conditional on the epoch, unless `anyway`.
    Change {
        from: u8,
        to: u8,
        registration: Registration,
        row: Option<bool>,
        anyway: bool,
    },
    /// Conditional on the previous version.
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

    /// A writer listed it in an epoch ahead of the partition's, and never continued.
    pub fn emptied() -> Self {
        let mut cluster = Self::untouched();
        (cluster.epoch, cluster.registration) = (1, Registration::None);
        cluster.entries[0] = Entry { timestamp: listed_at(2), listed: true };
        cluster
    }

    pub fn is_listed(&self) -> bool {
        self.entry(self.map.at).is_some()
    }

    /// The epoch in which it is listed in a segment, if it is.
    pub fn entry(&self, segment: u8) -> Option<u8> {
        let entry = self.entries[usize::from(segment)];
        entry.listed.then_some(entry.timestamp / 2)
    }

    pub fn was_struck_off(&self) -> bool {
        let entry = self.entries[usize::from(self.map.at)];
        !entry.listed && entry.timestamp > listed_at(1)
    }

    /// Applies a request. False if its condition failed.
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
        // Without epochs as timestamps, the last one to arrive wins.
        let timestamp = if by_timestamp { timestamp } else { entry.timestamp.saturating_add(2) };
        if timestamp > entry.timestamp {
            *entry = Entry { timestamp, listed };
        } else if timestamp == entry.timestamp && !listed {
            entry.listed = false;
        }
    }
}
