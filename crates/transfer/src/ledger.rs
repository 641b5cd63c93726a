//! Which groups are done: in any order they come, but a file is done up to a byte only if all before it are.

use std::collections::BTreeMap;

use crate::group::Rejected;
use crate::writer::Stored;

/// Groups between the first that is not done and the last that is: what they rejected waits in memory.
const WINDOW: u64 = 256;

#[derive(Debug, Default)]
pub struct Ledger {
    /// Everything before this group is done.
    next: u64,
    /// Done after it: where each ends, and what became of it.
    ahead: BTreeMap<u64, (u64, Stored)>,
}

/// A group whose turn it is.
#[derive(Debug)]
pub struct Settled {
    pub end: u64,
    pub written: u64,
    pub rejected: Vec<Rejected>,
}

impl Ledger {
    /// Whether this group may begin.
    pub fn admits(&self, number: u64) -> bool {
        number < self.next + WINDOW
    }

    pub fn done(&mut self, number: u64, end: u64, stored: Stored) {
        self.ahead.insert(number, (end, stored));
    }

    /// The next in the file's order, if it is done.
    pub fn settle(&mut self) -> Option<Settled> {
        let (end, Stored { written, rejected }) = self.ahead.remove(&self.next)?;
        self.next += 1;
        Some(Settled { end, written, rejected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_done_only_as_far_as_everything_is() {
        let mut ledger = Ledger::default();
        let mut done = |number: u64, expected: &[u64]| {
            ledger.done(number, number * 10, Stored::default());
            let ends: Vec<_> = std::iter::from_fn(|| ledger.settle()).map(|settled| settled.end).collect();
            assert_eq!(ends, expected, "{number}");
        };
        done(1, &[]);
        done(3, &[]);
        done(0, &[0, 10]);
        done(2, &[20, 30]);
        assert!(ledger.admits(4 + WINDOW - 1) && !ledger.admits(4 + WINDOW));
    }
}
