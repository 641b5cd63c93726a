//! Operations as the lab remembers them: small, because whole histories are kept, and exact, because the resulting
//! entities are computed from nothing else.

use serde::{Deserialize, Serialize};

/// The table that all writers write to. They only upsert, so the latest timestamp shows which write was last.
pub const SHARED: &str = "Shared";

/// A row's place: partition key and row key.
pub type Place = (String, String);

/// A Timestamp in the service's notation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(pub String);

impl Stamp {
    pub fn of_etag(etag: &str) -> Option<Self> {
        let inner = etag.strip_prefix("W/\"datetime'")?.strip_suffix("'\"")?;
        Some(Self(inner.replace("%3A", ":")))
    }

    pub fn etag(&self) -> String {
        format!("W/\"datetime'{}'\"", self.0.replace(':', "%3A"))
    }

    /// With all its digits, so that the order of texts is the order of times.
    pub fn order(&self) -> String {
        let text = self.0.trim_end_matches('Z');
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{seconds}.{fraction:0<7}")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    Create {
        table: String,
    },
    Drop {
        table: String,
    },
    /// One change is sent alone, several as a batch.
    Write {
        table: String,
        changes: Vec<Change>,
    },
}

impl Operation {
    pub fn table(&self) -> &str {
        match self {
            Self::Create { table } | Self::Drop { table } | Self::Write { table, .. } => table,
        }
    }

    pub fn changes(&self) -> &[Change] {
        match self {
            Self::Create { .. } | Self::Drop { .. } => &[],
            Self::Write { changes, .. } => changes,
        }
    }

    pub fn is_shared_write(&self) -> bool {
        matches!(self, Self::Write { table, .. } if table == SHARED)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    Insert,
    /// Without a condition, this and `Merge` insert a missing row.
    Replace,
    Merge,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    None,
    /// `If-Match: *`
    Exists,
    /// `If-Match` with the ETag of this time.
    Version(Stamp),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub verb: Verb,
    pub partition: String,
    pub row: String,
    pub condition: Condition,
    pub trace: Trace,
}

impl Change {
    pub fn place(&self) -> Place {
        (self.partition.clone(), self.row.clone())
    }
}

pub const TRACES: usize = 3;

/// A property that one write sets. A merge keeps those of other writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Which of the properties `Trace0`, `Trace1`, `Trace2`.
    pub slot: u8,
    /// The writer's own count of the rows it wrote.
    pub sequence: u32,
    pub length: u32,
}

impl Trace {
    /// Letters that are different for every write and do not compress well.
    pub fn text(self, writer: usize) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut state = (u64::from(self.sequence) << 8 | writer as u64) ^ 0x9E37_79B9_7F4A_7C15;
        let mut out = String::with_capacity(self.length as usize);
        for _ in 0..self.length {
            // xorshift64*: any generator whose output depends on the seed is good enough.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let letter = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 58;
            out.push(char::from(LETTERS[letter as usize]));
        }
        out
    }
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Acknowledged, with the timestamps of its changes where the answer names them.
    Done(Vec<Option<Stamp>>),
    /// Refused with this status: nothing was done.
    Refused(u16),
    /// No answer, or an answer that does not tell the outcome.
    Unknown(String),
    /// 503: by its answer, the server was too busy and did nothing.
    TurnedAway(String),
    /// It was unknown; a read after the restart showed that it was not done.
    NotTaken,
}

/// One operation of a writer, in the order in which they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub operation: Operation,
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_ordered_however_many_digits_they_have() {
        let stamp = |text: &str| Stamp(text.to_owned());
        let (whole, tenth, later) = (
            stamp("2026-01-01T00:00:00Z"),
            stamp("2026-01-01T00:00:00.1Z"),
            stamp("2026-01-01T00:00:00.12Z"),
        );
        assert!(whole.order() < tenth.order() && tenth.order() < later.order());
        assert_eq!(Stamp::of_etag(&later.etag()), Some(later));
        assert_eq!(Stamp::of_etag("*"), None);
    }

    #[test]
    fn texts_of_different_writes_differ() {
        let trace = |sequence| Trace { slot: 0, sequence, length: 40 };
        assert_ne!(trace(1).text(0), trace(2).text(0));
        assert_ne!(trace(1).text(0), trace(1).text(1));
        assert_eq!(trace(1).text(3), trace(1).text(3));
        assert_eq!(trace(1).text(0).len(), 40);
    }
}
