//! Puts consecutive entities of one partition into groups that can be stored as one transaction.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use model::limits::{BATCH_OPERATIONS_MAX, REQUEST_BODY_BYTES_MAX};
use partita_client::Error;

use crate::entity::EntityKeys;
use crate::input::{Input, InputError, Record, RecordError};

/// Entities with their headers; well below the limit of a request.
const GROUP_BYTES_MAX: usize = REQUEST_BODY_BYTES_MAX - 256 * 1024;
/// Headers of one operation, its boundary, and its address without the keys.
const OPERATION_BYTES: usize = 512;

#[derive(Debug)]
pub struct Item {
    pub line: u64,
    pub keys: EntityKeys,
    pub body: Vec<u8>,
    pub raw: Vec<u8>,
}

/// A line that is not stored, and why.
#[derive(Debug)]
pub struct Rejection {
    pub line: u64,
    pub reason: RejectionReason,
    pub raw: Vec<u8>,
}

#[derive(Debug)]
pub enum RejectionReason {
    /// The line is not an entity.
    Unreadable(RecordError),
    /// The service refused the entity.
    Refused { keys: EntityKeys, error: Box<Error> },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.reason {
            RejectionReason::Unreadable(error) => write!(f, "{error}"),
            RejectionReason::Refused { keys, error } => write!(f, "{keys}: {error}"),
        }
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            RejectionReason::Unreadable(error) => Some(error),
            RejectionReason::Refused { error, .. } => Some(error),
        }
    }
}

/// Entities of one partition that are stored as one transaction, or one line that can't be read.
#[derive(Debug)]
pub struct EntityGroup {
    /// Counted in the order of the file.
    pub number: u64,
    /// The offset of its end in the file.
    pub end: u64,
    pub items: Vec<Item>,
    pub unreadable: Option<Rejection>,
}

impl EntityGroup {
    pub fn partition(&self) -> Option<&str> {
        self.items.first().map(|item| item.keys.partition.as_str())
    }
}

/// Reads the groups of a file.
#[derive(Debug)]
pub struct EntityGroups {
    input: Input,
    /// Whether to keep the bytes of each line, for the file of rejected lines.
    keeps_raw: bool,
    next: u64,
    /// The record that was read last, if it belongs to the next group.
    ahead: Option<Record>,
}

impl EntityGroups {
    pub fn new(input: Input, keeps_raw: bool) -> Self {
        Self { input, keeps_raw, next: 0, ahead: None }
    }

    pub fn next(&mut self) -> Result<Option<EntityGroup>, InputError> {
        let mut group = EntityGroup { number: self.next, end: 0, items: Vec::new(), unreadable: None };
        let (mut bytes, mut rows) = (0, HashSet::new());
        loop {
            let record = match self.ahead.take() {
                Some(record) => record,
                None => match self.input.next()? {
                    Some(record) => record,
                    None => break,
                },
            };
            let (keys, body) = match &record.entity {
                Ok(entity) => entity,
                Err(_) if group.items.is_empty() => {
                    group.end = record.end;
                    group.unreadable = self.unreadable(record);
                    break;
                }
                Err(_) => {
                    self.ahead = Some(record);
                    break;
                }
            };
            // Percent-encoding can make a key three times as long.
            let size = body.len() + OPERATION_BYTES + 3 * (keys.partition.len() + keys.row.len());
            let fits = group.items.is_empty()
                || group.partition() == Some(&keys.partition)
                    && group.items.len() < BATCH_OPERATIONS_MAX
                    && bytes + size <= GROUP_BYTES_MAX
                    && !rows.contains(&keys.row);
            if !fits {
                self.ahead = Some(record);
                break;
            }
            bytes += size;
            rows.insert(keys.row.clone());
            group.end = record.end;
            if let Ok((keys, body)) = record.entity {
                let raw = if self.keeps_raw { record.raw } else { Vec::new() };
                group.items.push(Item { line: record.line, keys, body, raw });
            }
        }
        if group.items.is_empty() && group.unreadable.is_none() {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(group))
    }

    fn unreadable(&self, record: Record) -> Option<Rejection> {
        let reason = RejectionReason::Unreadable(record.entity.err()?);
        let raw = if self.keeps_raw { record.raw } else { Vec::new() };
        Some(Rejection { line: record.line, reason, raw })
    }
}

/// The first group that may be sent now: no group of its partition is in flight or waits before it.
pub fn ready(waiting: &VecDeque<EntityGroup>, busy: &HashSet<String>) -> Option<usize> {
    let mut before = HashSet::new();
    waiting.iter().position(|group| match group.partition() {
        None => true,
        Some(partition) => before.insert(partition) && !busy.contains(partition),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FileFormat;

    fn groups(lines: &[String]) -> Vec<EntityGroup> {
        let text = lines.join("\n").into_bytes();
        let input = Input::new(std::io::Cursor::new(text), FileFormat::Jsonl).unwrap();
        let mut groups = EntityGroups::new(input, false);
        std::iter::from_fn(|| groups.next().unwrap()).collect()
    }

    fn entity(partition: &str, row: &str, text_bytes: usize) -> String {
        format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}","A":"{}"}}"#, "x".repeat(text_bytes))
    }

    /// As `a:1,2 b:3`, an unreadable line as `-`.
    fn check(lines: &[String], expected: &str) {
        let shown: Vec<_> = groups(lines)
            .iter()
            .map(|group| match group.partition() {
                None => "-".to_owned(),
                Some(partition) => {
                    let rows: Vec<_> = group.items.iter().map(|item| item.keys.row.as_str()).collect();
                    format!("{partition}:{}", rows.join(","))
                }
            })
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn consecutive_entities_of_a_partition_are_one_group() {
        let small = |partition: &str, row: &str| entity(partition, row, 1);
        check(&[], "");
        check(&[small("a", "1"), small("a", "2"), small("b", "1"), small("a", "3")], "a:1,2 b:1 a:3");
        check(&[small("a", "1"), small("a", "1"), small("a", "2")], "a:1 a:1,2");
        check(&["x".to_owned(), small("a", "1"), "x".to_owned(), small("a", "2")], "- a:1 - a:2");
    }

    #[test]
    fn a_group_keeps_the_limits_of_a_transaction_and_ends_with_its_last_entity() {
        let rows: Vec<_> = (0..250).map(|row| entity("a", &row.to_string(), 1)).collect();
        assert_eq!(groups(&rows).iter().map(|group| group.items.len()).collect::<Vec<_>>(), [100, 100, 50]);
        let large: Vec<_> = (0..9).map(|row| entity("a", &row.to_string(), 1_000_000)).collect();
        let found = groups(&large);
        assert_eq!(found.iter().map(|group| group.items.len()).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!(found[0].end as usize, large[..3].iter().map(|line| line.len() + 1).sum::<usize>());
        let huge = [entity("a", "1", 5_000_000), entity("a", "2", 1)];
        check(&huge, "a:1 a:2");
    }

    #[test]
    fn groups_of_one_partition_are_sent_in_order() {
        let lines: Vec<_> =
            "a a b b c".split(' ').enumerate().map(|(row, p)| entity(p, &(row % 2).to_string(), 1)).collect();
        let lines =
            [lines[0].clone(), lines[0].clone(), lines[2].clone(), lines[2].clone(), lines[4].clone()];
        let waiting: VecDeque<EntityGroup> = groups(&lines).into();
        let partitions: Vec<_> = waiting.iter().filter_map(EntityGroup::partition).collect();
        assert_eq!(partitions, ["a", "a", "b", "b", "c"]);
        let busy = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(ready(&waiting, &busy(&[])), Some(0));
        assert_eq!(ready(&waiting, &busy(&["a"])), Some(2));
        assert_eq!(ready(&waiting, &busy(&["a", "b"])), Some(4));
        assert_eq!(ready(&waiting, &busy(&["a", "b", "c"])), None);
    }
}
