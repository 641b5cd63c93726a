//! What one blob of an archivist must be: its content, its snapshots, its uncommitted blocks and its lease.
//!
//! Content is made of pieces, each of which says in its first bytes which write it is of. So what was read tells which version
//! it is, and a mix of two versions is none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number and length, at the start of each piece.
const HEAD_BYTES: usize = 8;
pub const PIECE_BYTES_MIN: u32 = HEAD_BYTES as u32;
/// Pages are written in slots of this size.
pub const SLOT_BYTES: u32 = 64 * 1024;
/// Of each page blob: more than the 4 MiB that one request writes.
pub const SLOTS: u32 = 96;

/// The bytes of one write, or of one block; number 0 is a slot of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Piece {
    pub number: u32,
    pub length: u32,
    pub block: Option<u8>,
}

/// What a blob or a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// In its metadata.
    pub number: u32,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Unknown if nobody was told.
    pub time: Option<String>,
    pub version: Version,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    pub blob: Option<Version>,
    pub lease: Option<u32>,
    pub blocks: BTreeMap<u8, Piece>,
    pub snapshots: Vec<Snapshot>,
}

/// A blob as a server shows it.
#[derive(Debug, Default)]
pub struct Observed {
    pub is_listed: bool,
    pub blob: Option<ObservedVersion>,
    pub is_leased: bool,
    /// Lengths.
    pub blocks: BTreeMap<u8, u32>,
    /// By time.
    pub snapshots: BTreeMap<String, ObservedVersion>,
}

#[derive(Debug)]
pub struct ObservedVersion {
    pub number: u32,
    pub content: Vec<u8>,
}

impl Piece {
    fn write(&self, owner: usize, content: &mut Vec<u8>) {
        let end = content.len() + self.length as usize;
        if self.number > 0 {
            content.extend(self.number.to_le_bytes());
            content.extend(self.length.to_le_bytes());
            let mut state =
                ((owner as u64) << 32 | u64::from(self.number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            while content.len() < end {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                content.extend(state.to_le_bytes());
            }
        }
        content.resize(end, 0);
    }

    pub fn bytes(&self, owner: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length as usize + HEAD_BYTES);
        self.write(owner, &mut bytes);
        bytes
    }

    /// What a piece is known by.
    fn name(&self) -> (u32, u32) {
        (self.number, self.length)
    }
}

impl Version {
    pub fn content(&self, owner: usize) -> Vec<u8> {
        let length: usize = self.pieces.iter().map(|piece| piece.length as usize).sum();
        let mut content = Vec::with_capacity(length + HEAD_BYTES);
        self.pieces.iter().for_each(|piece| piece.write(owner, &mut content));
        content
    }

    /// Number and pieces, whatever block each of them was.
    pub fn name(&self) -> (u32, Vec<(u32, u32)>) {
        (self.number, self.pieces.iter().map(Piece::name).collect())
    }
}

impl ObservedVersion {
    /// Which version this is, by what it says of itself.
    pub fn name(&self) -> Result<(u32, Vec<(u32, u32)>), String> {
        Ok((self.number, pieces(&self.content)?))
    }
}

/// Number and length of each piece.
fn pieces(content: &[u8]) -> Result<Vec<(u32, u32)>, String> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < content.len() {
        let number = |from: usize| {
            let bytes = content.get(at + from..at + from + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (number, length) = match (number(0), number(4)) {
            (Some(0), Some(0)) => (0, SLOT_BYTES),
            (Some(number), Some(length)) if number > 0 && length >= PIECE_BYTES_MIN => (number, length),
            other => return Err(format!("no piece begins at byte {at} of {}: {other:?}", content.len())),
        };
        pieces.push((number, length));
        at += length as usize;
    }
    match at == content.len() {
        true => Ok(pieces),
        false => Err(format!("its last piece {:?} ends {} bytes early", pieces.last(), at - content.len())),
    }
}

/// Whether what was read is this version, byte for byte.
pub fn compare(owner: usize, expected: &Version, found: &ObservedVersion) -> Result<(), String> {
    if found.number != expected.number {
        return Err(format!("has number {} and must have {}", found.number, expected.number));
    }
    let content = expected.content(owner);
    if content == found.content {
        return Ok(());
    }
    let at = content.iter().zip(&found.content).position(|(one, other)| one != other);
    Err(format!(
        "number {} has other content: {} bytes and must have {}, first different at {at:?}; it is {:?} and must be {:?}",
        expected.number,
        found.content.len(),
        content.len(),
        pieces(&found.content),
        expected.name().1
    ))
}

impl Shelf {
    /// Whether a server shows this.
    pub fn compare(&self, owner: usize, seen: &Observed) -> Result<(), String> {
        match (&self.blob, &seen.blob) {
            (None, None) => {}
            (Some(expected), None) => {
                return Err(format!("number {} is not there: {:?}", expected.number, expected.name().1));
            }
            (None, Some(found)) => return Err(format!("is there with number {}", found.number)),
            (Some(expected), Some(found)) => compare(owner, expected, found)?,
        }
        let is_something = self.blob.is_some() || !self.blocks.is_empty();
        if seen.is_listed != is_something {
            return Err(format!("is in the list: {}", seen.is_listed));
        }
        if seen.is_leased != self.lease.is_some() {
            return Err(format!("is leased: {}, and must be: {:?}", seen.is_leased, self.lease));
        }
        let blocks: BTreeMap<u8, u32> = self.blocks.iter().map(|(id, piece)| (*id, piece.length)).collect();
        if blocks != seen.blocks {
            return Err(format!("has the uncommitted blocks {:?} and must have {blocks:?}", seen.blocks));
        }
        if seen.snapshots.len() != self.snapshots.len() {
            let times: Vec<&String> = seen.snapshots.keys().collect();
            return Err(format!("has the snapshots {times:?} and must have {:?}", self.snapshot_times()));
        }
        for snapshot in &self.snapshots {
            let time = self.time_of(snapshot, seen)?;
            let found = seen.snapshots.get(&time);
            let found = found.ok_or_else(|| format!("the snapshot {time} is not there"))?;
            compare(owner, &snapshot.version, found)
                .map_err(|what| format!("the snapshot {time}: {what}"))?;
        }
        Ok(())
    }

    fn snapshot_times(&self) -> Vec<&Option<String>> {
        self.snapshots.iter().map(|snapshot| &snapshot.time).collect()
    }

    /// There is at most one whose time is unknown: it is the one that no other has.
    fn time_of(&self, snapshot: &Snapshot, seen: &Observed) -> Result<String, String> {
        if let Some(time) = &snapshot.time {
            return Ok(time.clone());
        }
        let known = self.snapshot_times();
        let mut others = seen.snapshots.keys().filter(|time| !known.contains(&&Some((*time).clone())));
        others.next().cloned().ok_or_else(|| "a snapshot is missing".to_owned())
    }

    /// Takes the time of a snapshot that nobody was told.
    pub fn learn(&mut self, seen: &Observed) {
        let known = self.clone();
        for snapshot in &mut self.snapshots {
            if let Ok(time) = known.time_of(snapshot, seen) {
                snapshot.time = Some(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u32, pieces: &[(u32, u32)]) -> Version {
        let piece = |(number, length): &(u32, u32)| Piece { number: *number, length: *length, block: None };
        Version { number, pieces: pieces.iter().map(piece).collect() }
    }

    fn observed(version: &Version) -> ObservedVersion {
        ObservedVersion { number: version.number, content: version.content(1) }
    }

    #[test]
    fn content_tells_which_version_it_is() {
        let one = version(7, &[(7, 8), (0, SLOT_BYTES), (9, 5000)]);
        assert_eq!(observed(&one).name(), Ok(one.name()));
        assert_eq!(compare(1, &one, &observed(&one)), Ok(()));
        assert!(compare(2, &one, &observed(&one)).unwrap_err().contains("other content"), "another owner's");
    }

    #[test]
    fn what_is_not_as_it_must_be_is_told() {
        let check = |shelf: &Shelf, seen: &Observed, expected: &str| {
            let told = shelf.compare(1, seen).err().unwrap_or_default();
            assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{told}");
        };
        let (old, new) = (version(1, &[(1, 3000)]), version(2, &[(2, 3000)]));
        let there = |version: &Version| Observed {
            is_listed: true,
            blob: Some(observed(version)),
            ..Observed::default()
        };
        let shelf = Shelf { blob: Some(new.clone()), ..Shelf::default() };
        check(&shelf, &there(&new), "");
        check(&shelf, &there(&old), "has number 1 and must have 2");
        check(&shelf, &Observed::default(), "number 2 is not there");
        check(&Shelf::default(), &there(&new), "is there with number 2");
        check(
            &Shelf::default(),
            &Observed { is_listed: true, ..Observed::default() },
            "is in the list: true",
        );
        check(&shelf, &Observed { is_leased: true, ..there(&new) }, "is leased: true");
        check(&shelf, &Observed { blocks: [(3, 9)].into(), ..there(&new) }, "uncommitted blocks {3: 9}");
        let mut mixed = there(&new);
        if let Some(blob) = &mut mixed.blob {
            blob.content[2000..].copy_from_slice(&old.content(1)[2000..]);
        }
        check(&shelf, &mixed, "first different at Some(2000)");
        let snapshot = |time: Option<&str>| Snapshot { time: time.map(str::to_owned), version: old.clone() };
        let two = Shelf { snapshots: vec![snapshot(Some("t1")), snapshot(None)], ..shelf };
        let times = |times: &[&str], version: &Version| Observed {
            snapshots: times.iter().map(|time| ((*time).to_owned(), observed(version))).collect(),
            ..there(&new)
        };
        check(&two, &times(&["t1", "t2"], &old), "");
        check(&two, &times(&["t1"], &old), "has the snapshots");
        check(&two, &times(&["t2", "t3"], &old), "the snapshot t1 is not there");
        check(&two, &times(&["t1", "t2"], &new), "the snapshot t1: has number 2");
        let mut learnt = two;
        learnt.learn(&times(&["t1", "t2"], &old));
        assert_eq!(learnt.snapshots[1].time.as_deref(), Some("t2"));
    }
}
