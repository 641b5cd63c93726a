//! Groups rows by partition, within the limits of a transaction.

use std::collections::{HashMap, HashSet};

use model::limits;

use partita_client::{Entity, Operation};

/// The limit of rows in memory, over all partitions, so that the number of partitions is unlimited.
const HELD_ROWS_MAX: usize = 20_000;
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The bytes of a transaction's request without its operations.
const REQUEST_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub struct BulkRow {
    /// Its position in the input, counted from 0.
    pub at: u64,
    pub operation: Operation,
}

impl BulkRow {
    pub fn keys(&self) -> (String, String) {
        let Entity { partition_key, row_key, .. } = &self.operation.entity;
        (partition_key.clone(), row_key.clone())
    }

    /// An estimate of the bytes that it adds to a request. A transaction that is too large is refused and divided.
    fn bytes(&self) -> usize {
        self.operation.request_bytes()
    }
}

#[derive(Debug, Default)]
struct Group {
    rows: Vec<BulkRow>,
    /// A transaction can't contain a row twice.
    names: HashSet<String>,
    bytes: usize,
}

#[derive(Debug, Default)]
pub struct Groups {
    by_partition: HashMap<String, Group>,
    rows: usize,
    bytes: usize,
}

impl Groups {
    /// Adds a row. Returns the groups that must be sent now: a full one, or all if too many rows are in memory.
    pub fn add(&mut self, row: BulkRow) -> Vec<Vec<BulkRow>> {
        let bytes = row.bytes();
        let (partition, name) = row.keys();
        let group = self.by_partition.entry(partition.clone()).or_default();
        let fits = group.bytes + bytes + REQUEST_BYTES <= limits::REQUEST_BODY_BYTES_MAX;
        let takes = group.rows.is_empty() || fits && !group.names.contains(&name);
        let before = if takes { Group::default() } else { std::mem::take(group) };
        group.names.insert(name);
        group.rows.push(row);
        group.bytes += bytes;
        let is_full = group.rows.len() == limits::BATCH_OPERATIONS_MAX;
        self.rows += 1;
        self.bytes += bytes;
        let mut sent = vec![self.forget(before)];
        if is_full && let Some(group) = self.by_partition.remove(&partition) {
            sent.push(self.forget(group));
        }
        if self.rows > HELD_ROWS_MAX || self.bytes > HELD_BYTES_MAX {
            sent.append(&mut self.drain());
        }
        sent.retain(|rows| !rows.is_empty());
        sent
    }

    /// Returns all remaining groups.
    pub fn drain(&mut self) -> Vec<Vec<BulkRow>> {
        std::mem::take(self).by_partition.into_values().map(|group| group.rows).collect()
    }

    fn forget(&mut self, group: Group) -> Vec<BulkRow> {
        self.rows -= group.rows.len();
        self.bytes -= group.bytes;
        group.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partita_client::OperationKind;

    fn row(at: u64, entity: Entity) -> BulkRow {
        BulkRow { at, operation: Operation::new(OperationKind::Insert, &entity).unwrap() }
    }

    /// The numbers of the rows of every group, in the order in which they have to be sent.
    fn grouped(entities: impl IntoIterator<Item = Entity>) -> Vec<Vec<u64>> {
        let mut groups = Groups::default();
        let mut sent: Vec<_> =
            (0..).zip(entities).flat_map(|(at, entity)| groups.add(row(at, entity))).collect();
        let mut rest = groups.drain();
        assert_eq!((groups.rows, groups.bytes), (0, 0));
        rest.sort_by_key(|rows| rows[0].at);
        sent.extend(rest);
        sent.into_iter().map(|rows| rows.into_iter().map(|row| row.at).collect()).collect()
    }

    #[test]
    fn a_group_has_one_partition_and_a_hundred_rows() {
        let groups = grouped((0..250).map(|n| Entity::new("p", n.to_string())));
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(groups.concat(), (0..250).collect::<Vec<_>>());
        let groups = grouped((0..6).map(|n| Entity::new((n % 2).to_string(), n.to_string())));
        assert_eq!(groups, [[0, 2, 4], [1, 3, 5]]);
    }

    #[test]
    fn a_repeated_row_starts_a_second_group() {
        let groups = grouped(["a", "b", "a", "a"].map(|row| Entity::new("p", row)));
        assert_eq!(groups, [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn a_group_fits_into_a_request() {
        let large = Entity::new("p", "").with("A", vec![0; 64 * 1024]).with("B", vec![0; 64 * 1024]);
        let groups = grouped((0..60).map(|n| Entity { row_key: n.to_string(), ..large.clone() }));
        // 4 MiB of 171 KiB each in Base64.
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [23, 23, 14]);
    }

    #[test]
    fn a_row_larger_than_any_request_is_sent_alone() {
        let huge = |n: u32| Entity::new("p", n.to_string()).with("A", "x".repeat(5 << 20));
        assert_eq!(grouped((0..3).map(huge)), [[0], [1], [2]]);
    }

    #[test]
    fn the_number_of_rows_in_memory_is_bounded() {
        let mut groups = Groups::default();
        let mut sent = 0;
        for n in 0..30_000 {
            sent += groups.add(row(n, Entity::new(n.to_string(), ""))).concat().len();
            assert!(groups.rows <= HELD_ROWS_MAX);
        }
        let left: usize = groups.drain().iter().map(Vec::len).sum();
        assert_eq!(sent + left, 30_000);
    }
}
