//! The result of a scan: entities in a few large buffers, and the place to continue from.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::slice;

use model::{DateTime, EntityKey};

use crate::encoding::shown::ShownProperties;
use crate::{Fault, RawRow, Row};

/// An entity in the buffers of a page. Its row is not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredRef<'a> {
    pub partition: &'a str,
    pub row_key: &'a str,
    pub row: RawRow<'a>,
}

/// An entity for writing an answer, within `Entities::show`.
#[derive(Clone, Debug)]
pub struct EntityView<'a> {
    pub partition: &'a str,
    pub row_key: &'a str,
    pub timestamp: DateTime,
    pub properties: ShownProperties<'a>,
}

/// A value that lives as long as a page. An engine's turn to scan can end with it, so that there are never more pages
/// than scans, however long it takes to write answers from them.
#[derive(Default)]
pub struct PageGuard(Option<Box<dyn Any + Send + Sync>>);

impl PageGuard {
    pub fn to(what: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(what)))
    }
}

impl fmt::Debug for PageGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "PageGuard" } else { "Loose" })
    }
}

impl StoredRef<'_> {
    /// For people.
    fn place(self) -> String {
        format!("PartitionKey {:?}, RowKey {:?}", self.partition, self.row_key)
    }

    /// A fault if the stored bytes are not a valid key of any service.
    pub fn key(self) -> Result<EntityKey, Fault> {
        EntityKey::parse_stored(self.partition, self.row_key)
            .map_err(|_| Fault::damaged("the stored key is not a valid key").about(self.place()))
    }
}

#[derive(Debug, Default)]
pub struct Page {
    pub entities: Entities,
    /// The first entity of the ranges that was not read; `None` if all were.
    pub next: Option<EntityKey>,
    /// Rows read, also those that the filter dropped.
    pub examined: u64,
    /// The same in KiB, each row rounded up: the cost of the scan.
    pub kibibytes: u64,
    pub tied: PageGuard,
}

/// The size of a buffer. Allocators get larger ones from the system each time, which would cost more than copying the
/// rows.
const BUFFER_BYTES: usize = 64 * 1024;

/// Entities in the order in which they were added. A thousand of them take about twenty allocations.
#[derive(Debug, Default)]
pub struct Entities {
    buffers: Vec<Buffer>,
    places: Vec<EntityPlace>,
}

/// Keys and rows are in separate buffers, so that keys need not be checked for UTF-8 again.
#[derive(Debug, Default)]
struct Buffer {
    keys: String,
    rows: Vec<u8>,
}

/// The buffer and the offsets of an entity. Each part begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct EntityPlace {
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
        self.add(entity, row.len(), |rows| rows.extend_from_slice(row));
    }

    /// The same with only these properties of the row, at most `RawRow::FEW`. A fault if the row can't be read up to the
    /// last of them.
    pub fn push_part(&mut self, entity: StoredRef<'_>, names: &[Box<[u8]>]) -> Result<(), Fault> {
        let part = entity.row.part(names)?;
        self.add(entity, part.len(), |rows| part.write(rows));
        Ok(())
    }

    /// `write` appends the row, of this length.
    #[inline]
    fn add(&mut self, entity: StoredRef<'_>, row_length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let fits = |buffer: &Buffer| buffer.rows.len() + row_length <= buffer.rows.capacity();
        if !self.buffers.last().is_some_and(fits) {
            // Small at first: most answers are a few entities.
            let usual = if self.buffers.is_empty() { BUFFER_BYTES / 16 } else { BUFFER_BYTES };
            let rows = Vec::with_capacity(usual.max(row_length));
            self.buffers.push(Buffer { keys: String::new(), rows });
        }
        let at = self.buffers.len() - 1;
        let buffer = &mut self.buffers[at];
        let partition = buffer.keys.len();
        buffer.keys.push_str(entity.partition);
        let row_key = buffer.keys.len();
        buffer.keys.push_str(entity.row_key);
        let row_at = buffer.rows.len();
        write(&mut buffer.rows);
        debug_assert_eq!(buffer.rows.len(), row_at + row_length);
        self.places.push(EntityPlace {
            buffer: at,
            partition,
            row_key,
            keys_end: buffer.keys.len(),
            row: row_at,
            row_end: buffer.rows.len(),
        });
    }

    /// Appends the others without copying them.
    pub fn append(&mut self, others: Self) {
        let shift = self.buffers.len();
        self.buffers.extend(others.buffers);
        self.places.extend(
            others.places.into_iter().map(|place| EntityPlace { buffer: place.buffer + shift, ..place }),
        );
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The bytes that they take, with unused capacity.
    pub fn bytes(&self) -> usize {
        let buffer = |buffer: &Buffer| buffer.keys.capacity() + buffer.rows.capacity();
        self.buffers.iter().map(buffer).sum::<usize>() + self.places.capacity() * size_of::<EntityPlace>()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = StoredRef<'_>> + Clone {
        self.places.iter().map(|place| self.at(place))
    }

    pub fn get(&self, index: usize) -> Option<StoredRef<'_>> {
        self.places.get(index).map(|place| self.at(place))
    }

    fn at(&self, place: &EntityPlace) -> StoredRef<'_> {
        // Every place was made from these buffers, which only grow.
        let Buffer { keys, rows } = &self.buffers[place.buffer];
        StoredRef {
            partition: &keys[place.partition..place.row_key],
            row_key: &keys[place.row_key..place.keys_end],
            row: RawRow::new(&rows[place.row..place.row_end]),
        }
    }

    /// Runs `show` over the entities; a fault if a row that it read is damaged. Rows are checked as they are read, so
    /// that parts that nobody reads cost nothing.
    pub fn show<T>(&self, show: impl for<'a> FnOnce(EntityViews<'a>) -> T) -> Result<T, Fault> {
        let damaged = Cell::new(false);
        let made = show(EntityViews { entities: self, places: self.places.iter(), damaged: &damaged });
        if damaged.get() { Err(self.damage()) } else { Ok(made) }
    }

    /// The fault of the first damaged row.
    fn damage(&self) -> Fault {
        let found = self.iter().find_map(|entity| Some(entity.row.open().err()?.about(entity.place())));
        found.unwrap_or_else(|| Fault::bug("a row was found damaged and then was not"))
    }
}

/// The entities of a page, one after the other.
#[derive(Clone, Debug)]
pub struct EntityViews<'a> {
    entities: &'a Entities,
    places: slice::Iter<'a, EntityPlace>,
    damaged: &'a Cell<bool>,
}

impl<'a> Iterator for EntityViews<'a> {
    type Item = EntityView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let StoredRef { partition, row_key, row } = self.entities.at(self.places.next()?);
        let (timestamp, properties) = row.show(self.damaged);
        Some(EntityView { partition, row_key, timestamp, properties })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
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
