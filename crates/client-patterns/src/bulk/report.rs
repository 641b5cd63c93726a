//! The outcome of a bulk call.

use super::apply::BulkOutcome;
use partita_client::Error;

/// The outcome of every row that was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Rows that were written or deleted.
    pub done: u64,
    /// Rows that were already as requested: present, or gone.
    pub skipped: u64,
    /// Rows that were refused. They changed nothing.
    pub refused: Vec<FailedRow>,
    /// Rows that may or may not have been written or deleted. Reading them did not show it.
    pub unknown: Vec<FailedRow>,
    /// Set if the call stopped early, for a reason that concerns all rows.
    pub stopped: Option<Stop>,
}

/// Why the call stopped early: no table, no permission, no server, or an input that can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stop {
    /// The first error.
    pub error: Error,
    /// Rows that were read and not sent. The input may have more.
    pub untried: u64,
}

/// A row that was not written, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedRow {
    /// Its position in the input, counted from 0.
    pub at: u64,
    /// Empty if the value is not an entity.
    pub partition_key: String,
    /// Empty if the value is not an entity.
    pub row_key: String,
    /// The service's refusal of this row, or why its outcome is unknown.
    pub error: Error,
}

impl FailedRow {
    /// For a value that is not an entity.
    pub(super) fn unwritten(at: u64, error: Error) -> Self {
        Self { at, partition_key: String::new(), row_key: String::new(), error }
    }
}

/// The number of rows of each outcome so far. [`Report`] explains the outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkProgress {
    /// Written or deleted.
    pub done: u64,
    /// Already as requested.
    pub skipped: u64,
    /// Not written.
    pub refused: u64,
    /// With an unknown outcome.
    pub unknown: u64,
}

impl Report {
    /// Whether all rows are as requested.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.unknown.is_empty() && self.stopped.is_none()
    }

    pub(super) fn progress(&self) -> BulkProgress {
        BulkProgress {
            done: self.done,
            skipped: self.skipped,
            refused: self.refused.len() as u64,
            unknown: self.unknown.len() as u64,
        }
    }

    /// Keeps the first error; others follow from it.
    pub(super) fn stop(&mut self, error: Error) {
        self.stopped.get_or_insert(Stop { error, untried: 0 });
    }

    /// Counts rows that were not sent.
    pub(super) fn leave(&mut self, rows: usize) {
        if let Some(stop) = &mut self.stopped {
            stop.untried += rows as u64;
        }
    }

    pub(super) fn add(&mut self, outcome: BulkOutcome) {
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
