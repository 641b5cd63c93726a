//! A stored key with its sequence number, by which RocksDB tells versions apart.

/// The bytes after every key in a table file: its sequence number and kind.
const SUFFIX: usize = 8;

const DELETION: u8 = 0;
const VALUE: u8 = 1;
const SINGLE_DELETION: u8 = 7;
const RANGE_DELETION: u8 = 15;
/// The value is in a blob file; here is only where.
const BLOB_REFERENCE: u8 = 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub key: &'a [u8],
    pub sequence: u64,
    pub is_deletion: bool,
    /// The value is a reference to a blob file.
    pub is_reference: bool,
}

impl<'a> Entry<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (key, suffix) = bytes.split_last_chunk::<SUFFIX>()?;
        let suffix = u64::from_le_bytes(*suffix);
        let (is_deletion, is_reference) = match suffix as u8 {
            VALUE => (false, false),
            BLOB_REFERENCE => (false, true),
            DELETION | SINGLE_DELETION | RANGE_DELETION => (true, false),
            _ => return None,
        };
        Some(Self { key, sequence: suffix >> 8, is_deletion, is_reference })
    }

    /// The key alone, whatever the kind of the entry.
    pub fn key(bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.split_last_chunk::<SUFFIX>().map(|(key, _)| key)
    }
}

/// A range tombstone: hides older rows from `start` up to, but not including, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub sequence: u64,
}

/// Tombstones, to be asked for keys in ascending order.
#[derive(Debug, Default)]
pub struct Tombstones {
    /// By their start, the last one first.
    ahead: Vec<Tombstone>,
    around: Vec<Tombstone>,
}

impl Tombstones {
    pub fn new(mut all: Vec<Tombstone>) -> Self {
        all.sort_by(|a, b| b.start.cmp(&a.start));
        Self { ahead: all, around: Vec::new() }
    }

    pub fn hide(&mut self, key: &[u8], sequence: u64) -> bool {
        while let Some(next) = self.ahead.pop_if(|next| &next.start[..] <= key) {
            self.around.push(next);
        }
        self.around.retain(|tombstone| &tombstone.end[..] > key);
        self.around.iter().any(|tombstone| tombstone.sequence > sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_hides_older_versions_within_its_range_only() {
        let tombstone = |start: &[u8], end: &[u8], sequence| Tombstone {
            start: start.to_vec(),
            end: end.to_vec(),
            sequence,
        };
        let mut all = Tombstones::new(vec![
            tombstone(b"m", b"p", 9),
            tombstone(b"b", b"d", 5),
            tombstone(b"b", b"c", 7),
        ]);
        let cases: [(&[u8], u64, bool); 7] = [
            (b"a", 1, false),
            (b"b", 6, true),
            (b"b", 7, false),
            (b"c", 6, false),
            (b"c", 4, true),
            (b"d", 4, false),
            (b"o", 8, true),
        ];
        for (key, sequence, hidden) in cases {
            assert_eq!(all.hide(key, sequence), hidden, "{key:?} {sequence}");
        }
    }
}
