//! What a scan gives back: entities side by side in a few large buffers, and a place to go on from.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::slice;

use model::{DateTime, EntityKey};

use crate::encoding::shown::ShownProperties;
use crate::{Fault, RawRow, Row};

/// An entity where it lies. Its row has not been checked yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredRef<'a> {
    pub partition: &'a str,
    pub row_key: &'a str,
    pub row: RawRow<'a>,
}

/// An entity to write an answer from, inside of `Entities::show`.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    pub partition: &'a str,
    pub row_key: &'a str,
    pub timestamp: DateTime,
    pub properties: ShownProperties<'a>,
}

/// Something that lasts as long as a page does. An engine's scan ends with it, so that there are never more pages than
/// scans at once, however long it takes to write answers from them.
#[derive(Default)]
pub struct Tied(Option<Box<dyn Any + Send + Sync>>);

impl Tied {
    pub fn to(what: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(what)))
    }
}

impl fmt::Debug for Tied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tied" } else { "Loose" })
    }
}

impl StoredRef<'_> {
    /// For people.
    fn place(self) -> String {
        format!("PartitionKey {:?}, RowKey {:?}", self.partition, self.row_key)
    }

    /// A fault if what is stored is not a key.
    pub fn key(self) -> Result<EntityKey, Fault> {
        EntityKey::parse(self.partition, self.row_key)
            .map_err(|_| Fault::damaged("the stored key is not a valid key").about(self.place()))
    }
}

#[derive(Debug, Default)]
pub struct Page {
    pub entities: Entities,
    /// The first entity in the ranges that was not looked at. `None`: the ranges are exhausted.
    pub next: Option<EntityKey>,
    /// Rows looked at, kept or not.
    pub examined: u64,
    /// The same in KiB, each row rounded up: what a scan costs.
    pub kibibytes: u64,
    pub tied: Tied,
}

/// Below the size from which allocators go to the system for each buffer and give it back after, which would
/// cost a page more than the copying of its rows.
const BUFFER_BYTES: usize = 64 * 1024;

/// Entities in the order they were added. A thousand of them are some twenty allocations, not thousands.
#[derive(Debug, Default)]
pub struct Entities {
    buffers: Vec<Buffer>,
    places: Vec<Place>,
}

/// Text and rows lie apart, so that reading a key back needs no second look at whether it is text.
#[derive(Debug, Default)]
struct Buffer {
    keys: String,
    rows: Vec<u8>,
}

/// Where in which buffer an entity lies; each part begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Place {
    buffer: usize,
    partition: usize,
    row_key: usize,
    keys_end: usize,
    row: usize,
    row_end: usize,
}

impl Entities {
    pub fn of_one(key: &EntityKey, row: &Row) -> Self {
        let mut one = Self::default();
        let row = RawRow::new(row.as_bytes());
        one.push(StoredRef { partition: key.partition.as_str(), row_key: key.row.as_str(), row });
        one
    }

    pub fn push(&mut self, entity: StoredRef<'_>) {
        let row = entity.row.bytes();
        let fits = |buffer: &Buffer| buffer.rows.len() + row.len() <= buffer.rows.capacity();
        if !self.buffers.last().is_some_and(fits) {
            // Small at first: most answers are a few entities.
            let usual = if self.buffers.is_empty() { BUFFER_BYTES / 16 } else { BUFFER_BYTES };
            let rows = Vec::with_capacity(usual.max(row.len()));
            self.buffers.push(Buffer { keys: String::new(), rows });
        }
        let at = self.buffers.len() - 1;
        let buffer = &mut self.buffers[at];
        let partition = buffer.keys.len();
        buffer.keys.push_str(entity.partition);
        let row_key = buffer.keys.len();
        buffer.keys.push_str(entity.row_key);
        let row_at = buffer.rows.len();
        buffer.rows.extend_from_slice(row);
        self.places.push(Place {
            buffer: at,
            partition,
            row_key,
            keys_end: buffer.keys.len(),
            row: row_at,
            row_end: buffer.rows.len(),
        });
    }

    /// Adds all of the others after these, without copying them.
    pub fn append(&mut self, others: Self) {
        let shift = self.buffers.len();
        self.buffers.extend(others.buffers);
        self.places
            .extend(others.places.into_iter().map(|place| Place { buffer: place.buffer + shift, ..place }));
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes they take, unused room included.
    pub fn bytes(&self) -> usize {
        let buffer = |buffer: &Buffer| buffer.keys.capacity() + buffer.rows.capacity();
        self.buffers.iter().map(buffer).sum::<usize>() + self.places.capacity() * size_of::<Place>()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = StoredRef<'_>> + Clone {
        self.places.iter().map(|place| self.at(place))
    }

    pub fn get(&self, index: usize) -> Option<StoredRef<'_>> {
        self.places.get(index).map(|place| self.at(place))
    }

    fn at(&self, place: &Place) -> StoredRef<'_> {
        // Each place was made from these very buffers, which only grow.
        let Buffer { keys, rows } = &self.buffers[place.buffer];
        StoredRef {
            partition: &keys[place.partition..place.row_key],
            row_key: &keys[place.row_key..place.keys_end],
            row: RawRow::new(&rows[place.row..place.row_end]),
        }
    }

    /// What is made of the entities, or a fault if a row that was read for it is damaged. Rows are checked by
    /// being read, so that what nobody asks to see costs nothing.
    pub fn show<T>(&self, show: impl for<'a> FnOnce(Showing<'a>) -> T) -> Result<T, Fault> {
        let damaged = Cell::new(false);
        let made = show(Showing { entities: self, places: self.places.iter(), damaged: &damaged });
        if damaged.get() { Err(self.damage()) } else { Ok(made) }
    }

    /// The first row that is damaged.
    fn damage(&self) -> Fault {
        let found = self.iter().find_map(|entity| Some(entity.row.open().err()?.about(entity.place())));
        found.unwrap_or_else(|| Fault::bug("a row was found damaged and then was not"))
    }
}

/// The entities of a page, one after the other.
#[derive(Clone, Debug)]
pub struct Showing<'a> {
    entities: &'a Entities,
    places: slice::Iter<'a, Place>,
    damaged: &'a Cell<bool>,
}

impl<'a> Iterator for Showing<'a> {
    type Item = Shown<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let StoredRef { partition, row_key, row } = self.entities.at(self.places.next()?);
        let (timestamp, properties) = row.show(self.damaged);
        Some(Shown { partition, row_key, timestamp, properties })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultKind;
    use model::{DateTime, EntityKey, Value};
    use proptest::prelude::*;

    fn row(length: usize) -> Row {
        let value = Value::Binary(vec![7; length]);
        crate::RowDraft::new([("B", value.as_ref())].into_iter()).stamp(DateTime::MIN_STORED)
    }

    fn key() -> EntityKey {
        EntityKey::parse("p", "r").unwrap()
    }

    proptest! {
        #[test]
        fn entities_read_back_in_their_order(list in proptest::collection::vec(("[a𝄞é]{0,3}", "[a𝄞é]{0,3}", 0..40_000_usize), 0..20), cut in any::<prop::sample::Index>()) {
            let cut = cut.index(list.len() + 1);
            let (mut all, mut tail) = (Entities::default(), Entities::default());
            for (i, (partition, row_key, length)) in list.iter().enumerate() {
                let row = row(*length);
                let entity = StoredRef { partition, row_key, row: RawRow::new(row.as_bytes()) };
                if i < cut { all.push(entity) } else { tail.push(entity) }
            }
            all.append(tail);
            prop_assert_eq!(all.len(), list.len());
            prop_assert!(all.get(list.len()).is_none());
            for (index, (found, (partition, row_key, length))) in all.iter().zip(&list).enumerate() {
                prop_assert_eq!(all.get(index).unwrap().row_key, row_key);
                prop_assert_eq!((found.partition, found.row_key), (partition.as_str(), row_key.as_str()));
                let expected = row(*length);
                prop_assert_eq!(found.row.bytes(), expected.as_bytes());
            }
        }
    }

    #[test]
    fn damage_is_a_fault_once_it_is_read() {
        let mut page = Entities::of_one(&key(), &row(5));
        let damaged = &row(5).as_bytes()[..18].to_vec();
        page.push(StoredRef { partition: "p", row_key: "s", row: RawRow::new(damaged) });
        let read = |rows| page.show(|shown| shown.take(rows).map(|e| e.properties.count()).sum::<usize>());
        assert_eq!(read(1).unwrap(), 1);
        let fault = read(2).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Damaged);
        assert!(fault.to_string().contains("PartitionKey \"p\", RowKey \"s\""), "{fault}");
        assert_eq!(page.show(|shown| shown.map(|e| e.row_key.to_owned()).collect::<String>()).unwrap(), "rs");
    }

    #[test]
    fn a_row_larger_than_a_buffer_has_one_to_itself() {
        let large = Entities::of_one(&key(), &row(1_000_000));
        assert_eq!(large.iter().next().unwrap().row.bytes().len(), row(1_000_000).as_bytes().len());
    }
}
