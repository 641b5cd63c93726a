//! What became of many rows.

use super::apply::Outcome;
use partita_client::Error;

/// What became of every row that was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Rows that were written or deleted.
    pub done: u64,
    /// Rows that were as they should be already: there, or gone.
    pub skipped: u64,
    /// Rows that were refused; nothing was changed by them.
    pub refused: Vec<FailedRow>,
    /// Rows that may have been written or deleted, or not; they were looked for and that did not tell.
    pub unknown: Vec<FailedRow>,
    /// It ended before its end, for a reason that is not one row's.
    pub stopped: Option<Stop>,
}

/// Why the rest was not tried: no such table, no permission, no server, or an input that can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stop {
    /// The first, if there were several.
    pub error: Error,
    /// Rows that were read and not written; more may not have been read.
    pub untried: u64,
}

/// A row that was not written, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedRow {
    /// Which of the rows it is, counted from 0.
    pub at: u64,
    /// Empty if no entity can be made of it.
    pub partition_key: String,
    /// Empty likewise.
    pub row_key: String,
    /// The service's refusal of this row alone, or why its outcome is not known.
    pub error: Error,
}

impl FailedRow {
    /// Of something that is no entity.
    pub(super) fn unwritten(at: u64, error: Error) -> Self {
        Self { at, partition_key: String::new(), row_key: String::new(), error }
    }
}

/// How far it is: so many rows of each outcome until now. [`Report`] says what they mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Written or deleted.
    pub done: u64,
    /// As they should be already.
    pub skipped: u64,
    /// Not written.
    pub refused: u64,
    /// Written, or not.
    pub unknown: u64,
}

impl Report {
    /// All rows are as they should be.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.unknown.is_empty() && self.stopped.is_none()
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            done: self.done,
            skipped: self.skipped,
            refused: self.refused.len() as u64,
            unknown: self.unknown.len() as u64,
        }
    }

    /// The first reason is kept: others follow from it.
    pub(super) fn stop(&mut self, error: Error) {
        self.stopped.get_or_insert(Stop { error, untried: 0 });
    }

    /// These rows were not tried, because it was stopped.
    pub(super) fn leave(&mut self, rows: usize) {
        if let Some(stop) = &mut self.stopped {
            stop.untried += rows as u64;
        }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        self.done += outcome.done;
        self.skipped += outcome.skipped;
        self.refused.extend(outcome.refused);
        self.unknown.extend(outcome.unknown);
        if let Some((error, untried)) = outcome.stopped {
            self.stop(error);
            self.leave(untried);
        }
    }
}
