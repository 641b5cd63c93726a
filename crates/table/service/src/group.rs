//! Entity group transactions: which writes one may combine.

use model::{Key, Refusal, limits};
use store::{RowOperation, TableRef};

use crate::EntityWrite;

/// Writes to distinct entities of one partition of one table, checked as they are added.
#[derive(Debug, Default)]
pub struct WriteGroup {
    place: Option<(TableRef, Key)>,
    operations: Vec<RowOperation>,
    /// The operations in the order of their rows.
    order: Vec<usize>,
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
        let row = key.row.as_str();
        let by_row = |index: &usize| self.operations[*index].row.as_str().cmp(row);
        let Err(place) = self.order.binary_search_by(by_row) else { return Err(Refusal::DuplicateRow) };
        self.order.insert(place, self.operations.len());
        self.operations.push(write.into_operation());
        Ok(())
    }

    /// `None` for an empty group.
    pub(crate) fn into_parts(self) -> Option<(TableRef, Key, Vec<RowOperation>)> {
        let (table, partition) = self.place?;
        Some((table, partition, self.operations))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{AccountName, EntityKey, IfMatch, TableName};

    fn push(group: &mut WriteGroup, row: &str) -> Result<(), Refusal> {
        let account = AccountName::parse("acct").expect("a name");
        let table = TableRef::table(account, TableName::parse("Books").expect("a name"));
        group.push(&table, EntityWrite::delete(EntityKey::parse("p", row).expect("keys"), &IfMatch::Any))
    }

    #[test]
    fn a_row_is_in_a_group_once_whatever_the_order_of_the_rows() {
        let mut group = WriteGroup::new();
        let rows = ["m", "", "z", "a", "mm", "é", "Z", "n"];
        for row in rows {
            assert_eq!(push(&mut group, row), Ok(()), "{row}");
        }
        for row in rows {
            assert_eq!(push(&mut group, row), Err(Refusal::DuplicateRow), "{row}");
        }
        let (_, _, operations) = group.into_parts().expect("it is not empty");
        let kept: Vec<&str> = operations.iter().map(|operation| operation.row.as_str()).collect();
        assert_eq!(kept, rows);
    }
}
