//! Which groups are done. They end in any order, but a file is done up to a byte only if every group before it is.

use std::collections::BTreeMap;

use crate::writer::GroupOutcome;

/// How far writers may get ahead of the first group that is not done. Rejected lines of these groups wait in memory.
const WINDOW: u64 = 256;

#[derive(Debug, Default)]
pub struct Ledger {
    /// Everything before this group is done.
    next: u64,
    /// Later groups that are done.
    ahead: BTreeMap<u64, GroupOutcome>,
}

impl Ledger {
    /// Whether this group may begin.
    pub fn admits(&self, number: u64) -> bool {
        number < self.next + WINDOW
    }

    pub fn done(&mut self, number: u64, outcome: GroupOutcome) {
        self.ahead.insert(number, outcome);
    }

    /// The next group in the order of the file, if it is done.
    pub fn settle(&mut self) -> Option<GroupOutcome> {
        let outcome = self.ahead.remove(&self.next)?;
        self.next += 1;
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_settles_once_all_groups_before_it_are_done() {
        let mut ledger = Ledger::default();
        let mut done = |number: u64, expected: &[u64]| {
            ledger.done(number, GroupOutcome { end: number * 10, written: 0, rejections: Vec::new() });
            let ends: Vec<_> = std::iter::from_fn(|| ledger.settle()).map(|outcome| outcome.end).collect();
            assert_eq!(ends, expected, "{number}");
        };
        done(1, &[]);
        done(3, &[]);
        done(0, &[0, 10]);
        done(2, &[20, 30]);
        assert!(ledger.admits(4 + WINDOW - 1) && !ledger.admits(4 + WINDOW));
    }
}
