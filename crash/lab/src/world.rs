//! What a writer's tables contain after exactly these operations: the model that a server is judged against.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::operation::{
    Change, Condition, Entry, Operation, Outcome, Place, SHARED, Stamp, TRACES, Trace, Verb,
};

pub type Table = BTreeMap<Place, Row>;

/// The tables of one writer, without the rows of the shared table, which are judged elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World(pub BTreeMap<String, Table>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the writer's operation that wrote it last.
    pub operation: usize,
    pub sequence: u32,
    pub traces: [Option<Trace>; TRACES],
    /// `None` if the operation that wrote it was never answered.
    pub stamp: Option<Stamp>,
}

impl Row {
    /// The row after its first write.
    pub fn written(number: usize, change: &Change, stamp: Option<Stamp>) -> Self {
        let mut traces = [None; TRACES];
        traces[usize::from(change.trace.slot)] = Some(change.trace);
        Self { operation: number, sequence: change.trace.sequence, traces, stamp }
    }

    /// Whether an entity, as the service returns it without metadata, is this row.
    pub fn is(&self, writer: usize, entity: &Value) -> bool {
        let Some(properties) = entity.as_object() else { return false };
        let traces = self.traces.iter().flatten();
        let count = 6 + traces.clone().count();
        properties.len() == count
            && entity["Writer"] == writer
            && entity["Operation"] == self.operation
            && entity["Sequence"] == self.sequence
            && self.stamp.as_ref().is_none_or(|stamp| entity["Timestamp"] == stamp.0.as_str())
            && traces.clone().all(|trace| {
                let shown = entity[name(trace.slot)].as_str();
                shown.is_some_and(|text| text.len() == trace.length as usize && text == trace.text(writer))
            })
    }
}

/// The property a trace is kept in.
pub fn name(slot: u8) -> &'static str {
    ["Trace0", "Trace1", "Trace2"][usize::from(slot) % TRACES]
}

impl World {
    /// Applies the whole operation, or nothing: then the error is the status with which the server must refuse it.
    pub fn apply(
        &mut self,
        number: usize,
        operation: &Operation,
        stamps: &[Option<Stamp>],
    ) -> Result<(), u16> {
        if operation.is_shared_write() {
            return Ok(());
        }
        match operation {
            Operation::Create { table } => {
                if self.0.contains_key(table) {
                    return Err(409);
                }
                self.0.insert(table.clone(), Table::new());
            }
            Operation::Drop { table } => {
                self.0.remove(table).ok_or(404_u16)?;
            }
            Operation::Write { table, changes } => {
                let rows = self.0.get_mut(table).ok_or(404_u16)?;
                changes.iter().try_for_each(|change| check(rows.get(&change.place()), change))?;
                for (index, change) in changes.iter().enumerate() {
                    change_row(rows, number, change, stamps.get(index).cloned().flatten());
                }
            }
        }
        Ok(())
    }

    /// Every state that these operations can have led to, with the unknown operations that were done in it.
    /// Acknowledged operations are done in all of them.
    pub fn possible(&self, first: usize, entries: &[Entry]) -> Vec<(Self, Vec<usize>)> {
        let mut worlds = vec![(self.clone(), Vec::new())];
        for (index, entry) in entries.iter().enumerate() {
            let number = first + index;
            match &entry.outcome {
                Outcome::Refused(_) | Outcome::TurnedAway(_) | Outcome::NotTaken => {}
                Outcome::Done(stamps) => {
                    worlds.retain_mut(|(world, _)| world.apply(number, &entry.operation, stamps).is_ok());
                }
                Outcome::Unknown(_) => {
                    let taken = worlds.iter().filter_map(|(world, taken)| {
                        let (mut world, mut taken) = (world.clone(), taken.clone());
                        world.apply(number, &entry.operation, &[]).ok()?;
                        taken.push(number);
                        Some((world, taken))
                    });
                    let taken: Vec<_> = taken.collect();
                    worlds.extend(taken);
                }
            }
        }
        worlds
    }

    /// A copy of only what an operation touches, to try it out.
    pub fn clone_for(&self, operation: &Operation) -> Self {
        let table = operation.table();
        Self(
            self.0
                .get_key_value(table)
                .map(|(name, rows)| (name.clone(), rows.clone()))
                .into_iter()
                .collect(),
        )
    }

    pub fn has_shared_table(&self) -> bool {
        self.0.contains_key(SHARED)
    }
}

fn check(row: Option<&Row>, change: &Change) -> Result<(), u16> {
    if change.verb == Verb::Insert {
        return if row.is_some() { Err(409) } else { Ok(()) };
    }
    match (&change.condition, row) {
        (Condition::None, _) | (Condition::Exists, Some(_)) => Ok(()),
        (Condition::Exists | Condition::Version(_), None) => Err(404),
        (Condition::Version(stamp), Some(row)) => {
            if row.stamp.as_ref() == Some(stamp) {
                Ok(())
            } else {
                Err(412)
            }
        }
    }
}

fn change_row(rows: &mut Table, number: usize, change: &Change, stamp: Option<Stamp>) {
    let place = change.place();
    let written = Row::written(number, change, stamp);
    match (change.verb, rows.get_mut(&place)) {
        (Verb::Delete, _) => {
            rows.remove(&place);
        }
        (Verb::Merge, Some(row)) => {
            let traces = std::mem::take(&mut row.traces);
            *row = written;
            for (kept, before) in row.traces.iter_mut().zip(traces) {
                *kept = kept.or(before);
            }
        }
        (Verb::Insert | Verb::Replace | Verb::Merge, _) => {
            rows.insert(place, written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(verb: Verb, row: &str, sequence: u32) -> Change {
        let condition = if verb == Verb::Delete { Condition::Exists } else { Condition::None };
        let trace = Trace { slot: (sequence % 3) as u8, sequence, length: 5 };
        Change { verb, partition: "p".to_owned(), row: row.to_owned(), condition, trace }
    }

    fn write(changes: Vec<Change>) -> Operation {
        Operation::Write { table: "Own".to_owned(), changes }
    }

    fn world() -> World {
        let mut world = World::default();
        world.apply(0, &Operation::Create { table: "Own".to_owned() }, &[]).unwrap();
        world
    }

    #[test]
    fn a_batch_is_applied_completely_or_not_at_all() {
        let mut world = world();
        world.apply(1, &write(vec![change(Verb::Insert, "a", 1)]), &[]).unwrap();
        let before = world.clone();
        let batch = write(vec![change(Verb::Replace, "b", 2), change(Verb::Insert, "a", 3)]);
        assert_eq!(world.apply(2, &batch, &[]), Err(409));
        assert_eq!(world, before);
    }

    #[test]
    fn a_merge_keeps_the_other_properties() {
        let mut world = world();
        world.apply(1, &write(vec![change(Verb::Replace, "a", 1)]), &[]).unwrap();
        world.apply(2, &write(vec![change(Verb::Merge, "a", 2)]), &[]).unwrap();
        let row = &world.0["Own"][&("p".to_owned(), "a".to_owned())];
        assert_eq!(row.traces.map(|trace| trace.map(|trace| trace.sequence)), [None, Some(1), Some(2)]);
        assert_eq!((row.operation, row.sequence), (2, 2));
        world.apply(3, &write(vec![change(Verb::Replace, "a", 3)]), &[]).unwrap();
        let row = &world.0["Own"][&("p".to_owned(), "a".to_owned())];
        assert_eq!(row.traces.map(|trace| trace.map(|trace| trace.sequence)), [Some(3), None, None]);
    }

    #[test]
    fn unknown_operations_may_be_done_and_acknowledged_ones_are_done() {
        let unknown = |operation| Entry { operation, outcome: Outcome::Unknown(String::new()) };
        let done = |operation| Entry { operation, outcome: Outcome::Done(Vec::new()) };
        let insert = |row, sequence| write(vec![change(Verb::Insert, row, sequence)]);
        let entries = [unknown(insert("a", 1)), unknown(insert("b", 2)), done(insert("c", 3))];
        let worlds = world().possible(1, &entries);
        let mut taken: Vec<Vec<usize>> = worlds.iter().map(|(_, taken)| taken.clone()).collect();
        taken.sort();
        assert_eq!(taken, [vec![], vec![1], vec![1, 2], vec![2]]);
        assert!(
            worlds.iter().all(|(world, _)| world.0["Own"].contains_key(&("p".to_owned(), "c".to_owned())))
        );
        // An insert that was acknowledged later proves that the unknown one was not done.
        let entries = [unknown(insert("a", 1)), done(insert("a", 2))];
        let worlds = world().possible(1, &entries);
        assert_eq!(worlds.len(), 1);
        assert!(worlds[0].1.is_empty());
    }

    #[test]
    fn an_entity_is_compared_completely() {
        let row =
            Row::written(7, &change(Verb::Insert, "a", 9), Some(Stamp("2026-01-01T00:00:00Z".to_owned())));
        let text = row.traces[0].unwrap().text(2);
        let entity = serde_json::json!({
            "PartitionKey": "p", "RowKey": "a", "Timestamp": "2026-01-01T00:00:00Z",
            "Writer": 2, "Operation": 7, "Sequence": 9, "Trace0": text,
        });
        assert!(row.is(2, &entity));
        for (name, value) in [
            ("Writer", serde_json::json!(1)),
            ("Operation", serde_json::json!(6)),
            ("Sequence", serde_json::json!(8)),
            ("Timestamp", serde_json::json!("2026-01-01T00:00:00.1Z")),
            ("Trace0", serde_json::json!("AAAAA")),
            ("Trace1", serde_json::json!("more")),
        ] {
            let mut other = entity.clone();
            other[name] = value;
            assert!(!row.is(2, &other), "{name}");
        }
    }
}
