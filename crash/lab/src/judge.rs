//! Reads everything back and compares it with what was acknowledged.
//!
//! A writer's tables must match one of its possible worlds exactly: every acknowledged operation was done, each unknown
//! one completely or not at all, and nothing else. In the shared table, timestamps show the order of commits.

use std::collections::BTreeMap;

use connection::Client;
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::operation::{Entry, Outcome, Place, SHARED, Stamp};
use crate::request;
use crate::world::{Row, World};
use crate::writer::Writer;

/// Rows of each table that are read one by one, besides those of unknown operations.
const GETS: usize = 40;

pub type Rows = BTreeMap<Place, Value>;

/// Everything that a server has.
#[derive(Debug, Default)]
pub struct Found {
    pub tables: BTreeMap<String, Rows>,
    pub gets: u64,
}

impl Found {
    pub fn rows(&self) -> u64 {
        self.tables.values().map(|rows| rows.len() as u64).sum()
    }

    fn latest(&self) -> String {
        let stamps = self.tables.values().flat_map(BTreeMap::values).filter_map(stamp_of);
        stamps.map(|stamp| stamp.order()).max().unwrap_or_default()
    }
}

/// The outcomes of the unknown operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    pub unknown: u64,
    pub taken: u64,
}

/// Scans every table, and gets single rows, which must agree with the scan.
pub async fn read_back(
    client: &mut Client,
    writers: &[Writer],
    random: &mut StdRng,
) -> Result<Found, String> {
    let mut found = Found::default();
    let names = request::table_names(client).await?;
    if let Some(pair) = names.windows(2).find(|pair| pair[0].to_lowercase() >= pair[1].to_lowercase()) {
        return Err(format!("the list of tables has {} before {}", pair[0], pair[1]));
    }
    for table in names {
        let rows = request::scan(client, &table).await?;
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("a scan of {table} gives {:?} before {:?}", pair[0].0, pair[1].0));
        }
        found.tables.insert(table, rows.into_iter().collect());
    }
    for (table, rows) in &found.tables {
        for place in places_to_get(table, rows, writers, random) {
            found.gets += 1;
            let got = request::get(client, table, &place).await?;
            if got.as_ref() != rows.get(&place) {
                return Err(format!(
                    "a get of {table} {place:?} gives {got:?}, a scan {:?}\n{}",
                    rows.get(&place),
                    histories(writers, table, &place)
                ));
            }
        }
    }
    Ok(found)
}

fn places_to_get(table: &str, rows: &Rows, writers: &[Writer], random: &mut StdRng) -> Vec<Place> {
    let recent = writers.iter().flat_map(|writer| &writer.entries[writer.settled.saturating_sub(3)..]);
    let recent = recent.filter(|entry| entry.operation.table() == table);
    let mut places: Vec<Place> = recent
        .flat_map(|entry| entry.operation.changes())
        .map(|change| change.place())
        .take(4 * GETS)
        .collect();
    let count = GETS.min(rows.len());
    let some = (0..count).filter_map(|_| rows.keys().nth(random.random_range(0..rows.len())).cloned());
    places.extend(some);
    places
}

/// Judges what was found, and settles the unknown operations by it.
pub fn judge(writers: &mut [Writer], found: &Found) -> Result<Settled, String> {
    let mut settled = Settled::default();
    let mut tables: Vec<&String> = Vec::new();
    // Before the writers are settled: their unknown operations may include some on the shared table.
    judge_shared(writers, found, &mut settled)?;
    for writer in writers.iter_mut() {
        judge_writer(writer, found, &mut settled)?;
    }
    for writer in writers.iter() {
        tables.extend(writer.world.0.keys());
    }
    if let Some(name) = found.tables.keys().find(|name| !tables.contains(name)) {
        return Err(format!("the table {name} is there, but nobody created it or it was dropped"));
    }
    let latest = found.latest();
    for writer in writers {
        if latest > writer.latest {
            writer.latest.clone_from(&latest);
        }
    }
    Ok(settled)
}

fn judge_writer(writer: &mut Writer, found: &Found, settled: &mut Settled) -> Result<(), String> {
    let first = writer.settled;
    let worlds = writer.world.possible(first, &writer.entries[first..]);
    let mut differences = Vec::new();
    for (world, taken) in worlds {
        match difference(writer.number, &world, found) {
            None => {
                settle(writer, world, &taken, found, settled);
                return Ok(());
            }
            Some(difference) => differences.push((taken, difference)),
        }
    }
    let mut report =
        format!("writer {}: no possible outcome of its operations explains what was found", writer.number);
    for (taken, Difference { what, place }) in differences.iter().take(4) {
        report.push_str(&format!("\n  with {taken:?} of the unknown operations done: {what}"));
        if let Some((table, place)) = place {
            report.push_str(&format!("\n{}", writer.history(table, &place.0, &place.1)));
        }
    }
    if differences.is_empty() {
        report.push_str("\n  the acknowledged operations contradict each other");
    }
    Err(report)
}

struct Difference {
    what: String,
    place: Option<(String, Place)>,
}

fn difference(writer: usize, world: &World, found: &Found) -> Option<Difference> {
    for (table, expected) in &world.0 {
        let Some(rows) = found.tables.get(table) else {
            return Some(Difference { what: format!("the table {table} is missing"), place: None });
        };
        if table == SHARED {
            continue;
        }
        for (place, row) in expected {
            if !rows.get(place).is_some_and(|entity| row.is(writer, entity)) {
                let what =
                    format!("{table} {place:?}: expected {row:?}, found {:?}", rows.get(place).map(short));
                return Some(Difference { what, place: Some((table.clone(), place.clone())) });
            }
        }
        if let Some((place, entity)) = rows.iter().find(|(place, _)| !expected.contains_key(*place)) {
            let what = format!("{table} {place:?}: expected nothing, found {}", short(entity));
            return Some(Difference { what, place: Some((table.clone(), place.clone())) });
        }
    }
    let mut names = vec![format!("Own{writer}"), format!("Brief{writer}")];
    if writer == 0 {
        names.push(SHARED.to_owned());
    }
    let extra = names.into_iter().find(|name| found.tables.contains_key(name) && !world.0.contains_key(name));
    extra.map(|table| Difference { what: format!("the table {table} should not be there"), place: None })
}

fn settle(writer: &mut Writer, mut world: World, taken: &[usize], found: &Found, settled: &mut Settled) {
    for (table, rows) in &mut world.0 {
        for (place, row) in rows {
            if row.stamp.is_none() {
                row.stamp = found.tables.get(table).and_then(|rows| rows.get(place)).and_then(stamp_of);
            }
        }
    }
    for number in writer.settled..writer.entries.len() {
        let Entry { operation, outcome } = &mut writer.entries[number];
        if !matches!(outcome, Outcome::Unknown(_)) || operation.is_shared_write() {
            continue;
        }
        settled.unknown += 1;
        *outcome = if taken.contains(&number) {
            settled.taken += 1;
            let rows = found.tables.get(operation.table());
            let stamp = |place: &Place| rows.and_then(|rows| rows.get(place)).and_then(stamp_of);
            Outcome::Done(operation.changes().iter().map(|change| stamp(&change.place())).collect())
        } else {
            Outcome::NotTaken
        };
    }
    writer.world = world;
    writer.settled = writer.entries.len();
}

/// A row of the shared table as it was last acknowledged.
struct Latest {
    order: String,
    writer: usize,
    number: usize,
}

fn judge_shared(writers: &mut [Writer], found: &Found, settled: &mut Settled) -> Result<(), String> {
    let nothing = Rows::new();
    let rows = found.tables.get(SHARED).unwrap_or(&nothing);
    let latest = latest_acknowledged(writers);
    for (place, last) in &latest {
        if !rows.contains_key(place) {
            return Err(format!(
                "{SHARED} {place:?}: writer {} was told that operation {} is done, but it is missing\n{}",
                last.writer,
                last.number,
                histories(writers, SHARED, place)
            ));
        }
    }
    // Unknown operations that wrote a row, with its timestamp.
    let mut seen: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for (place, entity) in rows {
        let violation = |what: &str| {
            let entity = short(entity);
            Err(format!("{SHARED} {place:?}: {what}: {entity}\n{}", histories(writers, SHARED, place)))
        };
        let number = |name: &str| entity[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let author = number("Writer").and_then(|writer| Some((writer, number("Operation")?)));
        let entry = author.and_then(|(writer, number)| writers.get(writer)?.entries.get(number));
        let (Some((writer, number)), Some(entry), Some(stamp)) = (author, entry, stamp_of(entity)) else {
            return violation("nobody wrote this");
        };
        let changes = entry.operation.changes();
        let at = changes.iter().position(|change| change.place() == *place);
        let Some(at) = at.filter(|_| entry.operation.is_shared_write()) else {
            return violation("the operation it names did not write it");
        };
        if !Row::written(number, &changes[at], Some(stamp.clone())).is(writer, entity) {
            return violation("it is not what was written");
        }
        let last = latest.get(place);
        match &entry.outcome {
            Outcome::Done(stamps) => {
                if stamps.get(at).cloned().flatten().is_some_and(|told| told != stamp) {
                    return violation("its timestamp is not the one that was acknowledged");
                }
                if last.is_some_and(|last| (last.writer, last.number) != (writer, number)) {
                    return violation("a later write was acknowledged");
                }
            }
            Outcome::Unknown(_) => {
                if last.is_some_and(|last| last.order >= stamp.order()) {
                    return violation("an unknown write stands where a later one was acknowledged");
                }
                seen.insert((writer, number), stamp.order());
            }
            Outcome::Refused(_) | Outcome::TurnedAway(_) | Outcome::NotTaken => {
                return violation("this write was refused");
            }
        }
    }
    for ((writer, number), order) in &seen {
        for change in writers[*writer].entries[*number].operation.changes() {
            let entity = rows.get(&change.place());
            let same =
                entity.is_some_and(|entity| entity["Writer"] == *writer && entity["Operation"] == *number);
            let later = entity.and_then(stamp_of).is_some_and(|stamp| stamp.order() > *order);
            if !same && !later {
                let place = change.place();
                return Err(format!(
                    "{SHARED} {place:?}: operation {number} of writer {writer} was done in part: not here\n{}",
                    histories(writers, SHARED, &place)
                ));
            }
        }
    }
    for writer in writers.iter_mut() {
        settle_shared(writer, rows, &seen, settled);
    }
    Ok(())
}

fn settle_shared(
    writer: &mut Writer,
    rows: &Rows,
    seen: &BTreeMap<(usize, usize), String>,
    settled: &mut Settled,
) {
    for number in writer.settled..writer.entries.len() {
        let Entry { operation, outcome } = &mut writer.entries[number];
        if !matches!(outcome, Outcome::Unknown(_)) || !operation.is_shared_write() {
            continue;
        }
        settled.unknown += 1;
        *outcome = if seen.contains_key(&(writer.number, number)) {
            settled.taken += 1;
            let stamp = |place: &Place| {
                let entity = rows.get(place)?;
                let same = entity["Writer"] == writer.number && entity["Operation"] == number;
                same.then(|| stamp_of(entity))?
            };
            Outcome::Done(operation.changes().iter().map(|change| stamp(&change.place())).collect())
        } else {
            Outcome::NotTaken
        };
    }
}

fn latest_acknowledged(writers: &[Writer]) -> BTreeMap<Place, Latest> {
    let mut latest: BTreeMap<Place, Latest> = BTreeMap::new();
    for writer in writers {
        for (number, entry) in writer.entries.iter().enumerate() {
            let Outcome::Done(stamps) = &entry.outcome else { continue };
            if !entry.operation.is_shared_write() {
                continue;
            }
            for (change, stamp) in entry.operation.changes().iter().zip(stamps) {
                let Some(order) = stamp.as_ref().map(Stamp::order) else { continue };
                let place = change.place();
                if latest.get(&place).is_none_or(|last| last.order < order) {
                    latest.insert(place, Latest { order, writer: writer.number, number });
                }
            }
        }
    }
    latest
}

fn histories(writers: &[Writer], table: &str, place: &Place) -> String {
    let each = writers.iter().map(|writer| writer.history(table, &place.0, &place.1));
    each.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn stamp_of(entity: &Value) -> Option<Stamp> {
    entity["Timestamp"].as_str().map(|text| Stamp(text.to_owned()))
}

/// An entity without its long texts.
fn short(entity: &Value) -> String {
    let mut entity = entity.clone();
    for slot in 0..3 {
        if let Some(text) = entity.get_mut(crate::world::name(slot)) {
            let length = text.as_str().map_or(0, str::len);
            *text = Value::String(format!("({length} letters)"));
        }
    }
    entity.to_string()
}

#[cfg(test)]
mod tests;
