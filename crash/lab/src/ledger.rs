//! What one client knows of the rows that only it writes: what is certain, and what is in doubt.
//!
//! An operation without an answer leaves its rows in doubt. They are never written again, so each doubt can be judged
//! by itself, however many there are: done completely or not at all, now or later. Everything else is always known
//! exactly.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::operation::{Operation, Outcome, Place, Stamp};
use crate::world::{Row, Table, World};

/// What was read: tables, and their rows in the order of the answer.
pub type Found = BTreeMap<String, Vec<(Place, Value)>>;

#[derive(Debug)]
pub struct Ledger {
    pub writer: usize,
    world: World,
    doubts: Vec<Doubt>,
    /// Rows in doubt: which doubt, and which change of it.
    doubtful: BTreeMap<(String, Place), (usize, usize)>,
    /// The latest stamp of each row, also of deleted ones.
    stamps: BTreeMap<(String, Place), String>,
    operations: usize,
}

/// An operation that may have been done, with its rows before it and, unless it must be refused, after it.
#[derive(Debug)]
struct Doubt {
    number: usize,
    operation: Operation,
    before: Vec<Option<Row>>,
    after: Option<Vec<Option<Row>>>,
    /// For the drop of a table: the rows that the table certainly had.
    dropped: Table,
    /// The table was dropped since, so nothing is left to judge.
    moot: bool,
}

impl Ledger {
    pub fn new(writer: usize) -> Self {
        Self {
            writer,
            world: World::default(),
            doubts: Vec::new(),
            doubtful: BTreeMap::new(),
            stamps: BTreeMap::new(),
            operations: 0,
        }
    }

    /// The number that the next operation writes into its rows.
    pub fn next_number(&self) -> usize {
        self.operations
    }

    pub fn doubts(&self) -> usize {
        self.doubts.len()
    }

    /// The rows that are certain; `None` if it is not certain that the table exists.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.world.0.get(name)
    }

    /// The table with this prefix that certainly exists.
    pub fn table_named(&self, beginning: &str) -> Option<String> {
        self.world.0.keys().find(|name| name.starts_with(beginning)).cloned()
    }

    /// Adds a table that another client has created.
    pub fn share_table(&mut self, name: &str) {
        self.world.0.insert(name.to_owned(), Table::new());
    }

    /// One row of each operation in doubt. A read of it makes the store decide.
    pub fn places_in_doubt(&self) -> impl Iterator<Item = (&str, Place)> {
        self.doubts.iter().filter(|doubt| !doubt.moot).filter_map(|doubt| {
            let change = doubt.operation.changes().first()?;
            Some((doubt.operation.table(), change.place()))
        })
    }

    /// Whether a row belongs to this client; in shared tables others have theirs.
    pub fn owns(&self, place: &Place) -> bool {
        place
            .1
            .strip_prefix('w')
            .and_then(|row| row.split_once('-'))
            .is_some_and(|(writer, _)| writer.parse() == Ok(self.writer))
    }

    /// Records the outcome of an operation; an error is an outcome that can't be right.
    pub fn answered(&mut self, operation: Operation, outcome: &Outcome) -> Result<(), String> {
        let number = self.operations;
        self.operations += 1;
        match outcome {
            Outcome::Done(stamps) => self.done(number, &operation, stamps),
            Outcome::Refused(status) => {
                let expected = self.world.clone_for(&operation).apply(number, &operation, &[]);
                if expected == Err(*status) {
                    return Ok(());
                }
                Err(format!("{operation:?} was refused with {status}, but {expected:?} was due"))
            }
            Outcome::TurnedAway(_) | Outcome::NotTaken => Ok(()),
            Outcome::Unknown(_) => {
                self.doubt(number, operation);
                Ok(())
            }
        }
    }

    fn done(&mut self, number: usize, operation: &Operation, stamps: &[Option<Stamp>]) -> Result<(), String> {
        if let Err(status) = self.world.apply(number, operation, stamps) {
            return Err(format!("{operation:?} was done, but had to be refused with {status}"));
        }
        for (change, stamp) in operation.changes().iter().zip(stamps) {
            let Some(order) = stamp.as_ref().map(Stamp::order) else { continue };
            let place = (operation.table().to_owned(), change.place());
            if let Some(before) = self.stamps.get(&place).filter(|before| **before >= order) {
                return Err(format!("{place:?} got the timestamp {order} after {before}"));
            }
            self.stamps.insert(place, order);
        }
        if let Operation::Drop { table } = operation {
            self.stamps.retain(|(name, _), _| name != table);
            self.doubtful.retain(|(name, _), _| name != table);
            for doubt in self.doubts.iter_mut().filter(|doubt| doubt.operation.table() == table) {
                doubt.moot = true;
            }
        }
        Ok(())
    }

    fn doubt(&mut self, number: usize, operation: Operation) {
        let mut after = self.world.clone_for(&operation);
        let possible = after.apply(number, &operation, &[]).is_ok();
        let (table, places) = (operation.table().to_owned(), places(&operation));
        let take = |world: &mut World, place: &Place| world.0.get_mut(&table)?.remove(place);
        let after = possible.then(|| places.iter().map(|place| take(&mut after, place)).collect());
        let before = places.iter().map(|place| take(&mut self.world, place)).collect();
        for (at, place) in places.into_iter().enumerate() {
            self.doubtful.insert((table.clone(), place), (self.doubts.len(), at));
        }
        let dropped = match &operation {
            Operation::Drop { table } => self.world.0.remove(table).unwrap_or_default(),
            Operation::Create { .. } | Operation::Write { .. } => Table::new(),
        };
        self.doubts.push(Doubt { number, operation, before, after, dropped, moot: false });
    }

    /// Compares the rows of a table, or of one partition, with what must be there.
    pub fn check(
        &self,
        table: &str,
        partition: Option<&str>,
        rows: &[(Place, Value)],
        shared: bool,
    ) -> Result<(), String> {
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("{table} shows {:?} before {:?}", pair[0].0, pair[1].0));
        }
        let asked = |place: &Place| partition.is_none_or(|partition| place.0 == partition);
        if let Some((place, _)) = rows.iter().find(|(place, _)| !asked(place)) {
            return Err(format!("{table} shows {place:?}, but only {partition:?} was asked for"));
        }
        let mine = rows.iter().filter(|(place, _)| !shared || self.owns(place));
        let found: BTreeMap<&Place, &Value> = mine.map(|(place, entity)| (place, entity)).collect();
        for (place, row) in self.table(table).into_iter().flatten().filter(|(place, _)| asked(place)) {
            if !shows(self.writer, Some(row), found.get(place).copied()) {
                return Err(self.mismatch(table, place, Some(row), found.get(place).copied()));
            }
        }
        let certain = self.table(table);
        for (place, entity) in found {
            if certain.is_none_or(|rows| !rows.contains_key(place)) {
                self.check_doubtful(table, place, Some(entity))?;
            }
        }
        Ok(())
    }

    /// The same for one row.
    pub fn check_row(&self, table: &str, place: &Place, entity: Option<&Value>) -> Result<(), String> {
        if self.doubtful.contains_key(&(table.to_owned(), place.clone())) {
            return self.check_doubtful(table, place, entity);
        }
        let row = self.table(table).and_then(|rows| rows.get(place));
        if shows(self.writer, row, entity) { Ok(()) } else { Err(self.mismatch(table, place, row, entity)) }
    }

    /// A row in doubt may be as before or as after. Whether all rows of its operation agree is checked at the end.
    fn check_doubtful(&self, table: &str, place: &Place, entity: Option<&Value>) -> Result<(), String> {
        let Some((doubt, at)) = self.doubtful.get(&(table.to_owned(), place.clone())) else {
            return Err(self.mismatch(table, place, None, entity));
        };
        match self.doubts[*doubt].side(self.writer, *at, entity) {
            Some(_) => Ok(()),
            None => Err(format!(
                "{table} {place:?} is neither as before nor as after {}: {entity:?}",
                self.doubts[*doubt].told()
            )),
        }
    }

    fn mismatch(&self, table: &str, place: &Place, row: Option<&Row>, entity: Option<&Value>) -> String {
        format!("writer {}: {table} {place:?}: expected {row:?}, found {entity:?}", self.writer)
    }

    /// Compares everything that was read with everything that is known. Returns how many of the doubts were done.
    /// Tables with one of the prefixes in `mine` belong to this client alone.
    pub fn judge(&self, mine: &[String], shared: &str, found: &Found) -> Result<usize, String> {
        for table in self.world.0.keys() {
            let rows = found.get(table).ok_or_else(|| format!("the table {table} is missing"))?;
            self.check(table, None, rows, table == shared)?;
        }
        let in_doubt = |table: &str| {
            self.doubts
                .iter()
                .any(|doubt| doubt.operation.changes().is_empty() && doubt.operation.table() == table)
        };
        let is_mine = |table: &&String| mine.iter().any(|beginning| table.starts_with(beginning));
        let extra = found.keys().filter(is_mine);
        for table in extra.filter(|table| !self.world.0.contains_key(*table)) {
            if !in_doubt(table) {
                return Err(format!("the table {table} should not be there"));
            }
        }
        let open = self.doubts.iter().filter(|doubt| !doubt.moot);
        let taken = open.map(|doubt| self.settle(doubt, found));
        Ok(taken.collect::<Result<Vec<bool>, String>>()?.into_iter().filter(|taken| *taken).count())
    }

    /// Whether an operation in doubt was done; an error if it was done only in part.
    fn settle(&self, doubt: &Doubt, found: &Found) -> Result<bool, String> {
        let table = doubt.operation.table();
        let Some(rows) = found.get(table) else {
            // Writes to a table that no longer exists can't be judged.
            return Ok(matches!(doubt.operation, Operation::Drop { .. }));
        };
        let mut there: BTreeMap<&Place, &Value> = rows.iter().map(|(place, row)| (place, row)).collect();
        match &doubt.operation {
            Operation::Create { .. } if there.is_empty() => Ok(true),
            Operation::Create { .. } => Err(format!("{}: it is not empty", doubt.told())),
            Operation::Drop { .. } => {
                there.retain(|place, _| !self.doubtful.contains_key(&(table.to_owned(), (*place).clone())));
                let as_before =
                    |(place, row): (&Place, &Row)| shows(self.writer, Some(row), there.get(place).copied());
                if there.len() == doubt.dropped.len() && doubt.dropped.iter().all(as_before) {
                    return Ok(false);
                }
                Err(format!("{}: it was dropped in part", doubt.told()))
            }
            Operation::Write { .. } => {
                let places = places(&doubt.operation);
                let mut taken = 0;
                for (at, place) in places.iter().enumerate() {
                    let entity = there.get(place).copied();
                    let side = doubt.side(self.writer, at, entity).ok_or_else(|| {
                        format!("{}: {place:?} is neither as before nor as after: {entity:?}", doubt.told())
                    })?;
                    taken += usize::from(side);
                }
                if taken != 0 && taken != places.len() {
                    return Err(format!("{} was done in part: {taken} of {}", doubt.told(), places.len()));
                }
                Ok(taken > 0)
            }
        }
    }
}

impl Doubt {
    fn told(&self) -> String {
        let changes = self.operation.changes().len();
        format!("operation {} ({} changes) on {}", self.number, changes, self.operation.table())
    }

    /// Whether a row is as after the operation; `None` if it is neither as before nor as after.
    fn side(&self, writer: usize, at: usize, entity: Option<&Value>) -> Option<bool> {
        if shows(writer, self.before[at].as_ref(), entity) {
            return Some(false);
        }
        let after = self.after.as_ref()?;
        shows(writer, after[at].as_ref(), entity).then_some(true)
    }
}

fn places(operation: &Operation) -> Vec<Place> {
    operation.changes().iter().map(|change| change.place()).collect()
}

fn shows(writer: usize, row: Option<&Row>, entity: Option<&Value>) -> bool {
    match (row, entity) {
        (None, None) => true,
        (Some(row), Some(entity)) => row.is(writer, entity),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
