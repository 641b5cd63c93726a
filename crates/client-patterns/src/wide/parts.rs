//! An entity divided into rows and joined again. Knows nothing of tables.

use model::{Value, limits};

use partita_client::{Entity, Error, Result};

/// Between the row key and the number of a row.
pub const MARK: char = '~';
/// Which write a row is of.
const GENERATION: &str = "WideGeneration";
/// How many rows that write made.
const PARTS: &str = "WideParts";
/// Besides those two, and two that encryption may add.
const PROPERTIES_MAX: usize = limits::CUSTOM_PROPERTIES_MAX - 4;
/// Less than the service's, for the keys and those four.
const BYTES_MAX: usize = limits::ENTITY_BYTES_MAX - 16 * 1024;
/// What a row adds to a request besides its entity, and what a request holds besides its rows.
const OVERHEAD_BYTES: usize = 4096;

/// The rows of an entity. Fails if no transaction holds them.
pub fn split(entity: Entity, generation: &str) -> Result<Vec<Entity>> {
    let Entity { partition_key, row_key, properties } = entity;
    if let Some((_, number)) = row_key.rsplit_once(MARK)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(Error::Invalid(format!(
            "the row key {row_key:?} can't be a wide entity's: its end marks the further rows of such"
        )));
    }
    if let Some(name) = [GENERATION, PARTS].into_iter().find(|name| properties.contains_key(*name)) {
        return Err(Error::Invalid(format!(
            "a wide entity can't have a property {name}: it is the mark of such"
        )));
    }
    let mut rows = vec![Entity::new(partition_key.as_str(), row_key.as_str())];
    let mut bytes = 0;
    for (name, value) in properties {
        let size = property_bytes(&name, &value);
        let last = rows.len() - 1;
        if rows[last].properties.len() == PROPERTIES_MAX || bytes + size > BYTES_MAX && bytes > 0 {
            rows.push(Entity::new(partition_key.as_str(), format!("{row_key}{MARK}{}", rows.len())));
            bytes = 0;
        }
        bytes += size;
        if let Some(row) = rows.last_mut() {
            row.properties.insert(name, value);
        }
    }
    let count = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    for row in &mut rows {
        row.set(GENERATION, generation);
        row.set(PARTS, count);
    }
    check(&rows)?;
    Ok(rows)
}

/// All rows travel together.
fn check(rows: &[Entity]) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut bytes = OVERHEAD_BYTES;
    for row in rows {
        bytes += OVERHEAD_BYTES + row.to_json().len();
    }
    if bytes <= limits::REQUEST_BODY_BYTES_MAX && rows.len() <= limits::BATCH_OPERATIONS_MAX {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the entity with RowKey '{}' takes {} rows and {bytes} bytes; a transaction takes {} and {}, \
         so keep long values apart (`partita_client_patterns::large`)",
        first.row_key,
        rows.len(),
        limits::BATCH_OPERATIONS_MAX,
        limits::REQUEST_BODY_BYTES_MAX,
    )))
}

/// How many rows the entity has whose first row this is.
pub fn count(first: &Entity) -> Result<usize> {
    match first.get(PARTS) {
        Some(Value::Int32(count @ 1..)) => Ok(count.unsigned_abs() as usize),
        _ => Err(Error::Unreadable(format!(
            "the entity with PartitionKey '{}' and RowKey '{}' has no {PARTS}: it was not written as a wide one",
            first.partition_key, first.row_key
        ))),
    }
}

/// The entity of these rows; nothing unless they are all those of one write, and no other's.
pub fn join(first: Entity, others: Vec<Entity>) -> Option<Entity> {
    let marks = |row: &Entity| (row.get(GENERATION).cloned(), row.get(PARTS).cloned());
    let expected = marks(&first);
    let count = count(&first).ok()?;
    let mut numbers: Vec<usize> = Vec::new();
    let mut entity = first;
    for row in others {
        let number = row.row_key.strip_prefix(&entity.row_key)?.strip_prefix(MARK)?.parse().ok()?;
        if marks(&row) != expected {
            return None;
        }
        numbers.push(number);
        entity.properties.extend(row.properties);
    }
    numbers.sort_unstable();
    entity.remove(GENERATION);
    entity.remove(PARTS);
    (numbers == (1..count).collect::<Vec<_>>()).then_some(entity)
}

/// By the storage team's formula, or as it travels if that is more: Azurite measures that.
fn property_bytes(name: &str, value: &Value) -> usize {
    let mut sent = Vec::new();
    wire::entity_json::write_body(&mut sent, "", "", std::iter::once((name, value.as_ref())));
    let stored = 8 + 2 * name.encode_utf16().count() + value.as_ref().size();
    stored.max(sent.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wide(properties: usize, bytes_each: usize) -> Entity {
        let mut entity = Entity::new("p", "r");
        for n in 0..properties {
            entity.set(format!("P{n:04}"), vec![7_u8; bytes_each]);
        }
        entity
    }

    fn rows(entity: Entity) -> Vec<Entity> {
        split(entity, "g").unwrap()
    }

    #[test]
    fn rows_are_within_what_an_entity_takes() {
        let check = |properties, bytes_each, expected: &[usize]| {
            let rows = rows(wide(properties, bytes_each));
            let sizes: Vec<_> = rows.iter().map(|row| row.properties.len() - 2).collect();
            assert_eq!(sizes, expected);
        };
        check(0, 0, &[0]);
        check(248, 1, &[248]);
        check(249, 1, &[248, 1]);
        check(600, 1, &[248, 248, 104]);
        check(12, 64 * 1024, &[11, 1]);
        check(45, 64 * 1024, &[11, 11, 11, 11, 1]);
        let names: Vec<_> = rows(wide(600, 1)).into_iter().map(|row| row.row_key).collect();
        assert_eq!(names, ["r", "r~1", "r~2"]);
    }

    #[test]
    fn what_no_transaction_holds_is_refused() {
        let fault = split(wide(48, 64 * 1024), "g").unwrap_err().to_string();
        assert!(fault.contains("takes 5 rows and 4") && fault.contains("patterns::large"), "{fault}");
        assert!(split(wide(25_000, 1), "g").is_err());
    }

    #[test]
    fn what_would_be_taken_for_a_mark_is_refused() {
        for row in ["r~1", "~0", "a~b~12"] {
            assert!(split(Entity::new("p", row), "g").is_err(), "{row}");
        }
        for row in ["r~", "r~1a", "r1", "~"] {
            assert!(split(Entity::new("p", row), "g").is_ok(), "{row}");
        }
        for name in [GENERATION, PARTS] {
            assert!(split(Entity::new("p", "r").with(name, 1), "g").is_err(), "{name}");
        }
    }

    #[test]
    fn rows_of_different_writes_are_not_joined() {
        let joined = |change: &dyn Fn(&mut Vec<Entity>)| {
            let mut all = rows(wide(600, 1));
            change(&mut all);
            let first = all.remove(0);
            join(first, all)
        };
        assert_eq!(joined(&|_| ()), Some(wide(600, 1)));
        assert_eq!(joined(&|all| all.swap(1, 2)), Some(wide(600, 1)));
        assert_eq!(joined(&|all| drop(all.pop())), None);
        assert_eq!(joined(&|all| drop(all.remove(1))), None);
        assert_eq!(joined(&|all| all[2].set(GENERATION, "h")), None);
        assert_eq!(joined(&|all| all[2].set(PARTS, 4)), None);
        assert_eq!(joined(&|all| all[0].set(GENERATION, "h")), None);
        assert_eq!(joined(&|all| all[2].row_key = "r~1".to_owned()), None);
        assert_eq!(joined(&|all| all[2].row_key = "q~2".to_owned()), None);
        // A row of an earlier, longer write.
        assert_eq!(joined(&|all| all.push(split(Entity::new("p", "x"), "old").unwrap().remove(0))), None);
        assert_eq!(joined(&|all| drop(all[0].remove(PARTS))), None);
    }

    proptest! {
        #[test]
        fn what_is_divided_is_joined_again(properties in 0..700_usize, bytes in 0..200_usize) {
            let entity = wide(properties, bytes);
            let mut rows = rows(entity.clone());
            let first = rows.remove(0);
            prop_assert_eq!(count(&first).unwrap(), rows.len() + 1);
            prop_assert_eq!(join(first, rows), Some(entity));
        }
    }
}
