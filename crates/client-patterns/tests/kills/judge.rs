//! Checks the rows of tables without knowledge of their history, and returns their state.

use std::collections::{BTreeMap, BTreeSet};

use partita_client::{Entity, Value};

use crate::world::{PARTITION, State, entity};

/// Entities by row, and live index entries: exactly one copy and one list member for each, of its version.
pub fn indexed(table: &[Entity], other: &[Entity]) -> State {
    let mut copies = BTreeSet::new();
    let mut members = BTreeSet::new();
    for row in other {
        if row.partition_key.starts_with("email~") {
            if row.get("IndexLive") == Some(&Value::Boolean(true)) {
                let version = row.text("IndexVersion").unwrap();
                let numbered = entity(row.text("IndexedRow").unwrap(), number(row));
                assert_eq!(
                    row.text("Email"),
                    numbered.text("Email"),
                    "a copy with a property of another: {row:?}"
                );
                let copy =
                    (row.partition_key.clone(), numbered.row_key.clone(), version.to_owned(), number(row));
                assert!(copies.insert(copy), "twice: {row:?}");
            }
        } else {
            let team = row.partition_key.strip_prefix("team~").unwrap();
            for line in row.properties.values().flat_map(|value| text(value).lines()) {
                if let Some(member) = line.strip_prefix('+') {
                    assert!(members.insert((team.to_owned(), member.to_owned())), "twice: {member}");
                }
            }
        }
    }
    let mut state = State::new();
    for row in table {
        let number = number(row);
        let version = row.text("IndexVersion").unwrap();
        let email = format!("email~{}", row.text("Email").unwrap().replace('/', "!2f"));
        let copy = (email, row.row_key.clone(), version.to_owned(), number);
        assert!(copies.remove(&copy), "no copy of {row:?}; there are {copies:?}");
        let member = (row.text("Team").unwrap().to_owned(), format!("{PARTITION}~{}~{version}", row.row_key));
        assert!(members.remove(&member), "not in its list: {row:?}; there are {members:?}");
        state.insert(row.row_key.clone(), number);
    }
    assert_eq!(copies, BTreeSet::new(), "copies of nothing");
    assert_eq!(members, BTreeSet::new(), "members that are nothing");
    state
}

/// Each entity has its own row and one for each index, all equal.
pub fn intra(table: &[Entity]) -> State {
    let mut rows: BTreeMap<_, _> = table.iter().map(|row| (row.row_key.clone(), row)).collect();
    let mut state = State::new();
    for row in table.iter().filter(|row| row.row_key.starts_with("id_")) {
        let name = row.text("PrimaryRow").unwrap();
        let email = row.text("Email").unwrap().replace('/', "!2f");
        let team = row.text("Team").unwrap();
        for key in [row.row_key.clone(), format!("email_{email}"), format!("team_{team}~{name}")] {
            let copy = rows.remove(&key).unwrap_or_else(|| panic!("no row {key:?} of {row:?}"));
            assert_eq!(copy.properties, row.properties, "{key}");
        }
        state.insert(name.to_owned(), number(row));
    }
    assert!(rows.is_empty(), "rows of nothing: {rows:?}");
    state
}

/// The lists agree with the entities.
pub fn lists(table: &[Entity]) -> State {
    let (lists, entities): (Vec<_>, Vec<_>) = table.iter().partition(|row| row.row_key.starts_with("index~"));
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut state = State::new();
    for row in entities {
        let email = row.text("Email").unwrap().replace('/', "!2f");
        for list in [format!("index~email~{email}"), format!("index~team~{}", row.text("Team").unwrap())] {
            expected.entry(list).or_default().insert(format!("+{}", row.row_key));
        }
        state.insert(row.row_key.clone(), number(row));
    }
    let found: BTreeMap<String, BTreeSet<String>> = lists
        .into_iter()
        .map(|row| {
            let lines = row.properties.values().flat_map(|value| text(value).lines()).map(str::to_owned);
            (row.row_key.clone(), lines.collect())
        })
        .collect();
    assert_eq!(found, expected);
    state
}

/// No entity is in both tables, and other rows are marks. 0 is the first table, 1 the second.
pub fn archive(table: &[Entity], other: &[Entity]) -> State {
    let mut state = State::new();
    for (rows, number) in [(table, 0), (other, 1)] {
        for row in rows.iter().filter(|row| !row.row_key.starts_with("~done~")) {
            assert_eq!(row, &entity(&row.row_key, 0), "changed on its way");
            assert_eq!(state.insert(row.row_key.clone(), number), None, "in both: {row:?}");
        }
    }
    state
}

/// The queue is empty, and messages were handled.
pub fn queue(table: &[Entity], other: &[Entity]) -> State {
    assert_eq!(table, [], "messages that nobody handled");
    other.iter().map(|row| (row.row_key.clone(), 1)).collect()
}

fn number(row: &Entity) -> u32 {
    match row.get("Number") {
        Some(Value::Int32(number)) => u32::try_from(*number).unwrap(),
        _ => panic!("neither an entity nor a part of an index: {row:?}"),
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::String(text) => text,
        _ => panic!("a list of {value:?}"),
    }
}

/// Each row has a copy with the same number, and a copy without a row has none. No mark says that steps are to be made.
pub fn queued(table: &[Entity], other: &[Entity]) -> State {
    let (marks, rows): (Vec<_>, Vec<_>) = table.iter().partition(|row| row.row_key.starts_with("~queued~"));
    for mark in marks {
        assert_eq!(mark.get("Cancelled"), Some(&Value::Boolean(true)), "it has no message: {mark:?}");
    }
    let mut copies: State = State::new();
    for copy in other.iter().filter(|copy| copy.get("Number").is_some()) {
        assert_eq!(copies.insert(copy.row_key.clone(), number(copy)), None);
    }
    let state: State = rows.into_iter().map(|row| (row.row_key.clone(), number(row))).collect();
    assert_eq!(copies, state, "copies, and what they are of");
    state
}
