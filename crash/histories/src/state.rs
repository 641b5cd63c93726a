//! The state of a partition between two operations, and how a write changes it.

use crate::history::{EXTRAS, Refusal, Version};

/// The number in `Writer` and in each of the `EXTRAS`; 0 for a missing property.
pub type Values = [u32; 1 + EXTRAS.len()];

/// The version of a write that was not acknowledged and was never read. No ETag equals it.
pub const UNSEEN: Version = 0;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    pub entity: Option<(Version, Values)>,
    /// The greatest version that the row has had, also if it is deleted.
    pub latest: Version,
}

pub type State = Vec<Row>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Absent,
    Exists,
    Version(Version),
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Put(Values),
    Merge(Values),
    Delete,
}

/// One write, of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub row: usize,
    pub condition: Condition,
    pub change: Change,
    /// The version that it gave the row; `UNSEEN` if it is not known.
    pub version: Version,
}

impl Row {
    /// Why a write with this condition is refused now.
    pub fn refuses(&self, condition: Condition) -> Option<Refusal> {
        match (condition, &self.entity) {
            (Condition::Anything, _) | (Condition::Absent, None) | (Condition::Exists, Some(_)) => None,
            (Condition::Absent, Some(_)) => Some(Refusal::EntityAlreadyExists),
            (Condition::Exists | Condition::Version(_), None) => Some(Refusal::ResourceNotFound),
            (Condition::Version(wanted), Some((version, _))) if wanted == *version => None,
            (Condition::Version(_), Some(_)) => Some(Refusal::UpdateConditionNotSatisfied),
        }
    }

    pub fn apply(&mut self, part: &Part) {
        let values = match (part.change, &self.entity) {
            (Change::Delete, _) => {
                self.entity = None;
                return;
            }
            (Change::Put(values), _) | (Change::Merge(values), None) => values,
            (Change::Merge(new), Some((_, old))) => {
                let mut merged = *old;
                merged.iter_mut().zip(new).filter(|(_, new)| *new != 0).for_each(|(value, new)| *value = new);
                merged
            }
        };
        self.latest = self.latest.max(part.version);
        self.entity = Some((part.version, values));
    }

    /// Whether the row has this version or can still get it, if versions only grow.
    pub fn may_become(&self, version: Version) -> bool {
        version > self.latest || self.entity.is_some_and(|(current, _)| current == version)
    }
}
