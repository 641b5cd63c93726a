//! Divides an entity into rows and joins them. Knows nothing of tables.

use model::{Value, limits};

use partita_client::{Entity, Error, Result};

/// Between the row key and the number of a row.
pub const MARK: char = '~';
/// The id of the write that made a row.
const GENERATION: &str = "WideGeneration";
/// The number of rows of that write.
const PARTS: &str = "WideParts";
/// Leaves room for these two, and for two that encryption may add.
const PROPERTIES_MAX: usize = limits::CUSTOM_PROPERTIES_MAX - 4;
/// Leaves room for the keys and those four properties.
const BYTES_MAX: usize = limits::ENTITY_BYTES_MAX - 16 * 1024;
/// The bytes of a request for each row without its entity, and for the request without its rows.
const OVERHEAD_BYTES: usize = 4096;

/// Divides an entity. Fails if the rows do not fit into a transaction.
pub fn split(entity: Entity, generation: &str) -> Result<Vec<Entity>> {
    let Entity { partition_key, row_key, properties } = entity;
    if let Some((_, number)) = row_key.rsplit_once(MARK)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(Error::Invalid(format!(
            "the row key {row_key:?} can't be a wide entity's: its end is reserved for further rows"
        )));
    }
    if let Some(name) = [GENERATION, PARTS].into_iter().find(|name| properties.contains_key(*name)) {
        return Err(Error::Invalid(format!(
            "a wide entity can't have a property {name}: wide entities use it themselves"
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

/// Whether all rows fit into one transaction.
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

/// The number of rows of an entity, from its first row.
pub fn count(first: &Entity) -> Result<usize> {
    match first.get(PARTS) {
        Some(Value::Int32(count @ 1..)) => Ok(count.unsigned_abs() as usize),
        _ => Err(Error::Unreadable(format!(
            "the entity with PartitionKey '{}' and RowKey '{}' has no {PARTS}: it was not written as a wide one",
            first.partition_key, first.row_key
        ))),
    }
}

/// Joins rows; `None` unless they are exactly the rows of one write.
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

/// By the service's formula, or the size in JSON if that is larger, because Azurite measures that.
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
    fn rows_keep_the_limits_of_an_entity() {
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
    fn an_entity_that_does_not_fit_into_a_transaction_is_refused() {
        let fault = split(wide(48, 64 * 1024), "g").unwrap_err().to_string();
        assert!(fault.contains("takes 5 rows and 4") && fault.contains("patterns::large"), "{fault}");
        assert!(split(wide(25_000, 1), "g").is_err());
    }

    #[test]
    fn reserved_names_are_refused() {
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
        fn a_divided_entity_is_joined_again(properties in 0..700_usize, bytes in 0..200_usize) {
            let entity = wide(properties, bytes);
            let mut rows = rows(entity.clone());
            let first = rows.remove(0);
            prop_assert_eq!(count(&first).unwrap(), rows.len() + 1);
            prop_assert_eq!(join(first, rows), Some(entity));
        }
    }
}
