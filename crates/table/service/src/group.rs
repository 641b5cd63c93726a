//! Entity group transactions: which writes one may combine.

use std::collections::HashSet;

use model::{Key, Refusal, limits};
use store::{RowOperation, TableRef};

use crate::EntityWrite;

/// Writes to distinct entities of one partition of one table, checked as they are added.
#[derive(Debug, Default)]
pub struct WriteGroup {
    place: Option<(TableRef, Key)>,
    rows: HashSet<String>,
    operations: Vec<RowOperation>,
}

impl WriteGroup {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The table of the writes so far.
    pub fn table(&self) -> Option<&TableRef> {
        self.place.as_ref().map(|(table, _)| table)
    }

    /// Whether the group has as many writes as it may have.
    pub fn is_full(&self) -> bool {
        self.operations.len() >= limits::BATCH_OPERATIONS_MAX
    }

    pub fn push(&mut self, table: &TableRef, write: EntityWrite) -> Result<(), Refusal> {
        let key = write.key();
        match &self.place {
            None => self.place = Some((table.clone(), key.partition.clone())),
            Some((of_group, partition)) => {
                if of_group != table || *partition != key.partition {
                    return Err(Refusal::DifferentPartitions);
                }
            }
        }
        if !self.rows.insert(key.row.as_str().to_owned()) {
            return Err(Refusal::DuplicateRow);
        }
        self.operations.push(write.into_operation());
        Ok(())
    }

    /// `None` for an empty group.
    pub(crate) fn into_parts(self) -> Option<(TableRef, Key, Vec<RowOperation>)> {
        let (table, partition) = self.place?;
        Some((table, partition, self.operations))
    }
}
