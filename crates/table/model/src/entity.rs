//! Entities: two keys and up to 252 custom properties.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::value::utf16_units;
use crate::{DateTime, Key, KeyFault, Refusal, Value, ValueCow, ValueRef, limits};

/// The key of an entity in its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    pub partition: Key,
    pub row: Key,
}

impl EntityKey {
    pub fn parse(partition: &str, row: &str) -> Result<Self, KeyFault> {
        Ok(Self { partition: Key::parse(partition)?, row: Key::parse(row)? })
    }

    /// A key of any service: see `Key::parse_stored`.
    pub fn parse_stored(partition: &str, row: &str) -> Result<Self, KeyFault> {
        Ok(Self { partition: Key::parse_stored(partition)?, row: Key::parse_stored(row)? })
    }

    /// Whether an entity can have it.
    pub fn is_entity_key(&self) -> bool {
        self.partition.is_entity_key() && self.row.is_entity_key()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    pub name: String,
    pub value: Value,
}

/// The custom properties of one entity. Each is valid, and so are their number and their size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties<'a> {
    list: Vec<(Cow<'a, str>, ValueCow<'a>)>,
    /// Size by the storage team's formula.
    size: usize,
}

/// What a client wants to store: the key and the custom properties, usually borrowed from its request.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity<'a> {
    pub key: EntityKey,
    pub properties: Properties<'a>,
}

const FEW: usize = 16;

/// Names seen so far. A few are compared one by one, which is faster than hashing them.
#[derive(Default)]
struct NameSet<'a> {
    few: [&'a str; FEW],
    count: usize,
    many: HashSet<&'a str>,
}

impl<'a> NameSet<'a> {
    /// Whether the name is new.
    fn insert(&mut self, name: &'a str) -> bool {
        if self.count < FEW {
            let first = !self.few[..self.count].contains(&name);
            self.few[self.count] = name;
            self.count += 1;
            return first;
        }
        if self.many.is_empty() {
            self.many.extend(self.few);
        }
        self.many.insert(name)
    }
}

/// The names of properties that one entity may have together: each is valid, none occurs twice, there are not too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyNames {
    names: Vec<Box<str>>,
    /// What they add to the size of their entity.
    size: usize,
}

impl PropertyNames {
    /// Checks in the service's order: each name, then their number.
    pub fn check<'n>(names: impl ExactSizeIterator<Item = &'n str> + Clone) -> Result<Self, Refusal> {
        let size = check_names(names.clone())?;
        Ok(Self { names: names.map(Box::from).collect(), size })
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// What the names add to the size of their entity.
fn check_names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Result<usize, Refusal> {
    let count = names.len();
    let mut seen = NameSet::default();
    let mut size = 0;
    for name in names {
        let units = utf16_units(name);
        if units > limits::PROPERTY_NAME_UNITS_MAX {
            return Err(Refusal::PropertyNameTooLong);
        }
        if !is_property_name(name) {
            return Err(Refusal::PropertyNameInvalid);
        }
        if !seen.insert(name) {
            return Err(Refusal::DuplicateProperties);
        }
        size += name_size(units);
    }
    if count > limits::CUSTOM_PROPERTIES_MAX {
        return Err(Refusal::TooManyProperties);
    }
    Ok(size)
}

impl<'a> Properties<'a> {
    /// Checks in the service's order: names, their number, the whole size, each value, times.
    pub fn new(properties: Vec<(Cow<'a, str>, ValueCow<'a>)>) -> Result<Self, Refusal> {
        let names_size = check_names(properties.iter().map(|(name, _)| &**name))?;
        Self::checked(names_size, properties)
    }

    /// The same for properties whose names were checked before. The names must be these, in this order.
    pub fn named(
        names: &PropertyNames,
        properties: Vec<(Cow<'a, str>, ValueCow<'a>)>,
    ) -> Result<Self, Refusal> {
        let given = properties.iter().map(|(name, _)| &**name);
        assert!(given.eq(names.names.iter().map(|name| &**name)), "these names were not checked");
        Self::checked(names.size, properties)
    }

    fn checked(names_size: usize, properties: Vec<(Cow<'a, str>, ValueCow<'a>)>) -> Result<Self, Refusal> {
        let (mut size, mut are_fine) = (names_size, true);
        for (_, value) in &properties {
            let value = value.as_ref();
            let of_value = value.size();
            size += of_value;
            // Strings and Binary values have their payload in their size. All other values are small.
            are_fine &= of_value <= limits::PROPERTY_VALUE_BYTES_MAX && !is_too_early(value);
        }
        // A value of over 1 MiB is refused as a large entity, not as a large value, so the sum is checked first.
        if size > limits::ENTITY_BYTES_MAX {
            return Err(Refusal::EntityTooLarge);
        }
        if !are_fine {
            check_values(&properties)?;
        }
        Ok(Self { list: properties, size })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, ValueRef<'_>)> + Clone {
        self.list.iter().map(|(name, value)| (&**name, value.as_ref()))
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sorts by name in ordinal order: the service shows an entity last written by PUT or MERGE in this order.
    pub fn sort(&mut self) {
        self.list.sort_by(|(a, _), (b, _)| crate::ordinal_cmp(a, b));
    }
}

impl<'a> Entity<'a> {
    pub fn new(key: EntityKey, properties: Properties<'a>) -> Result<Self, Refusal> {
        if key_size(&key) + properties.size > limits::ENTITY_BYTES_MAX {
            return Err(Refusal::EntityTooLarge);
        }
        Ok(Self { key, properties })
    }
}

impl EntityKey {
    /// Whether an entity with this key and these properties is within the limits. For merges, whose result only the store
    /// knows.
    pub fn check_properties<'a>(
        &self,
        properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)>,
    ) -> Result<(), Refusal> {
        if properties.len() > limits::CUSTOM_PROPERTIES_MAX {
            return Err(Refusal::TooManyProperties);
        }
        let size: usize = properties.map(|(name, value)| property_size(name, value)).sum();
        if key_size(self) + size > limits::ENTITY_BYTES_MAX {
            return Err(Refusal::EntityTooLarge);
        }
        Ok(())
    }
}

/// The storage team's formula (spec: 3.5).
fn key_size(key: &EntityKey) -> usize {
    4 + 2 * (utf16_units(key.partition.as_str()) + utf16_units(key.row.as_str()))
}

fn property_size(name: &str, value: ValueRef<'_>) -> usize {
    name_size(utf16_units(name)) + value.size()
}

fn name_size(units: usize) -> usize {
    8 + 2 * units
}

fn is_too_early(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::DateTime(time) if time < DateTime::MIN_STORED)
}

/// The refusal of the first value that is not within the limits, if there is one.
fn check_values(properties: &[(Cow<'_, str>, ValueCow<'_>)]) -> Result<(), Refusal> {
    for (name, value) in properties {
        let value = value.as_ref();
        if value.payload_bytes() > limits::PROPERTY_VALUE_BYTES_MAX {
            return Err(Refusal::PropertyValueTooLarge);
        }
        if let ValueRef::DateTime(time) = value
            && is_too_early(value)
        {
            let value = time.to_invariant_string();
            return Err(Refusal::ParameterOutOfRange { name: name.to_string(), value });
        }
    }
    Ok(())
}

/// The bytes of ASCII that a property's name may have.
static IN_NAME: [bool; 256] = {
    let mut inside = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        inside[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    inside
};

/// A C# identifier, as the service's documentation requires.
pub fn is_property_name(name: &str) -> bool {
    if let [first, rest @ ..] = name.as_bytes()
        && IN_NAME[usize::from(*first)]
        && !first.is_ascii_digit()
        && rest.iter().all(|byte| IN_NAME[usize::from(*byte)])
    {
        return true;
    }
    let mut chars = name.chars();
    let Some(first) = chars.next() else { return false };
    let starts = |c: char| c == '_' || unicode_ident::is_xid_start(c);
    // C# also allows formatting characters inside an identifier.
    let formats =
        |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    starts(first) && chars.all(|c| unicode_ident::is_xid_continue(c) || formats(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(list: Vec<(&str, Value)>) -> Result<Properties<'_>, Refusal> {
        Properties::new(list.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn check(list: Vec<(&str, Value)>, expected: Option<Refusal>) {
        assert_eq!(properties(list).err(), expected);
    }

    #[test]
    fn property_limits_hold_at_their_edges() {
        let text = |units: usize| Value::String("x".repeat(units));
        let name = |units: usize| "é".repeat(units);
        check(vec![("A", text(32 * 1024))], None);
        check(vec![("A", text(32 * 1024 + 1))], Some(Refusal::PropertyValueTooLarge));
        check(vec![("A", Value::Binary(vec![0; 64 * 1024]))], None);
        check(vec![("A", Value::Binary(vec![0; 64 * 1024 + 1]))], Some(Refusal::PropertyValueTooLarge));
        check(vec![("A", Value::Binary(vec![0; 1024 * 1024]))], Some(Refusal::EntityTooLarge));
        check(vec![(&name(255), text(1))], None);
        check(vec![(&name(256), text(1))], Some(Refusal::PropertyNameTooLong));
        check(vec![("A", text(1)), ("A", text(1))], Some(Refusal::DuplicateProperties));
        check(vec![("A", text(1)), ("a", text(1))], None);
        let early = DateTime::from_ticks(DateTime::MIN_STORED.ticks() - 1).unwrap();
        let refused = Refusal::ParameterOutOfRange { name: "D".into(), value: "12/31/1600 23:59:59".into() };
        check(vec![("D", Value::DateTime(early))], Some(refused));
        check(vec![("D", Value::DateTime(DateTime::MIN_STORED))], None);
    }

    #[test]
    fn an_entity_has_252_properties_at_most() {
        let names: Vec<String> = (0..253).map(|i| format!("P{i}")).collect();
        let list = |n: usize| names[..n].iter().map(|name| (name.as_str(), Value::Boolean(true))).collect();
        check(list(252), None);
        check(list(253), Some(Refusal::TooManyProperties));
    }

    #[test]
    fn a_name_given_twice_is_found_wherever_it_stands() {
        let names: Vec<String> = (0..60).map(|i| format!("P{i}")).collect();
        for (first, again) in [(0, 1), (0, 15), (0, 16), (3, 17), (20, 21), (16, 59)] {
            let mut list: Vec<(&str, Value)> =
                names.iter().map(|name| (name.as_str(), Value::Boolean(true))).collect();
            list[again].0 = &names[first];
            check(list, Some(Refusal::DuplicateProperties));
        }
    }

    #[test]
    fn size_is_counted_as_the_service_counts() {
        let key = EntityKey::parse("sf", "1").unwrap();
        let list = properties(vec![
            ("S", Value::String("ab".into())),
            ("B", Value::Boolean(true)),
            ("I", Value::Int32(1)),
            ("L", Value::Int64(1)),
            ("D", Value::Double(1.0)),
            ("T", Value::DateTime(DateTime::MAX)),
            ("G", Value::Guid(Guid([0; 16]))),
            ("X", Value::Binary(vec![0; 3])),
        ])
        .unwrap();
        let expected = 4 + 2 * 3 + 8 * (8 + 2) + (4 + 4) + 1 + 4 + 8 + 8 + 8 + 16 + (3 + 4);
        assert_eq!(key_size(&key) + list.size, expected);
    }

    use crate::Guid;

    #[test]
    fn names_are_identifiers() {
        for name in ["A", "_", "_1", "été", "Ж", "日本", "ETag", "timestamp", "a_b1"] {
            assert!(is_property_name(name), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", "a.b", "a@b", "a:b", "$a", "a\0", "💩"] {
            assert!(!is_property_name(name), "{name}");
        }
    }
}
