//! Stored rows whose bytes are not checked yet.
//!
//! A filter drops most rows, so checking each from end to end (`RowView::open`) would be most of the work of a scan,
//! and for a row that is kept nearly as much as writing it to an answer. RocksDB's checksums protect the bytes on
//! disk. What is read here is checked as it is read; what is skipped is checked only as far as skipping needs.
//! Reading never panics, and unreadable bytes are always a fault.

use std::cell::Cell;

use bytes::Bytes;
use model::{DateTime, ValueRef};

use super::property::{self, Cursor, PropertyEntry};
use super::row::{self, Row, RowView};
use super::shown::ShownProperties;
use crate::Fault;

/// A stored row that is not checked yet. Reading it returns a value or a fault, whatever its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RawRow<'a>(&'a [u8]);

impl<'a> RawRow<'a> {
    /// Up to this many names are compared one by one, which is faster than a binary search.
    pub const FEW: usize = 8;

    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Checks the whole row, so that reading it later can't fail.
    pub fn open(self) -> Result<RowView<'a>, Fault> {
        RowView::open(self.0)
    }

    pub fn timestamp(self) -> Result<DateTime, Fault> {
        row::take_head(&mut &self.0[..]).ok_or_else(|| row::unreadable(self.0))
    }

    /// The value of this property, if the row has it. The same as `find` for one name, and faster.
    #[inline]
    pub fn value_of(self, name: &[u8]) -> Result<Option<ValueRef<'a>>, Fault> {
        self.search_one(name).ok_or_else(|| row::unreadable(self.0))
    }

    #[inline]
    fn search_one(self, name: &[u8]) -> Option<Option<ValueRef<'a>>> {
        let mut rest = self.0;
        row::take_format(&mut rest)?;
        let mut cursor = Cursor::new(rest)?;
        while let Some(entry) = cursor.step() {
            if entry.name == name {
                return entry.value().map(Some);
            }
        }
        cursor.is_at_end().then_some(None)
    }

    /// Stores the values of these properties in `found`, at the index of their name in `names`. Reads the row once,
    /// up to the last of them. More than `FEW` names must be sorted.
    pub fn find<N: AsRef<[u8]>>(self, names: &[N], found: &mut [Option<ValueRef<'a>>]) -> Result<(), Fault> {
        self.search(names, found).ok_or_else(|| row::unreadable(self.0))
    }

    fn search<N: AsRef<[u8]>>(self, names: &[N], found: &mut [Option<ValueRef<'a>>]) -> Option<()> {
        let mut rest = self.0;
        row::take_format(&mut rest)?;
        let mut cursor = Cursor::new(rest)?;
        let mut missing = names.len();
        while missing > 0
            && let Some(entry) = cursor.step()
        {
            let wanted = if names.len() <= Self::FEW {
                names.iter().position(|name| name.as_ref() == entry.name)
            } else {
                names.binary_search_by(|name| name.as_ref().cmp(entry.name)).ok()
            };
            // If a row has a name twice, the first counts, as in `RowView::property`.
            if let Some(place) = wanted.map(|at| &mut found[at]).filter(|place| place.is_none()) {
                *place = Some(entry.value()?);
                missing -= 1;
            }
        }
        (missing == 0 || cursor.is_at_end()).then_some(())
    }
}

/// Some of the properties of a row.
pub(crate) struct RowPart<'a> {
    row: RawRow<'a>,
    entries: [Option<PropertyEntry<'a>>; RawRow::FEW],
    length: usize,
}

impl<'a> RawRow<'a> {
    /// The properties with these names, at most `FEW`, in their order in the row. Reads up to the last of them.
    pub(crate) fn part(self, names: &[Box<[u8]>]) -> Result<RowPart<'a>, Fault> {
        self.try_part(names).ok_or_else(|| row::unreadable(self.0))
    }

    fn try_part(self, names: &[Box<[u8]>]) -> Option<RowPart<'a>> {
        let mut rest = self.0;
        row::take_format(&mut rest)?;
        let mut cursor = Cursor::new(rest)?;
        let mut entries = [None; Self::FEW];
        let mut found = 0;
        while found < names.len()
            && let Some(entry) = cursor.step()
        {
            // If a row has a name twice, the first counts.
            let is_new = |entry: &PropertyEntry<'_>| {
                entries[..found].iter().flatten().all(|known: &PropertyEntry<'_>| known.name != entry.name)
            };
            if names.iter().any(|name| **name == *entry.name) && is_new(&entry) {
                *entries.get_mut(found)? = Some(entry);
                found += 1;
            }
        }
        if found < names.len() && !cursor.is_at_end() {
            return None;
        }
        let length = row::HEAD_BYTES + property::encoded_length(entries.iter().flatten());
        Some(RowPart { row: self, entries, length })
    }
}

impl RowPart<'_> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Appends a row that has only these properties.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // It was read, so it has a head.
        out.extend_from_slice(&self.row.bytes()[..row::HEAD_BYTES]);
        property::encode_entries(out, self.entries.iter().flatten());
    }
}

/// A stored row with its own copy of the bytes, not checked yet.
#[derive(Clone, Debug)]
pub struct StoredRow(Bytes);

impl StoredRow {
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    pub fn raw(&self) -> RawRow<'_> {
        RawRow(&self.0)
    }

    /// Checks the bytes from end to end.
    pub fn open(self) -> Result<Row, Fault> {
        Row::open(self.0)
    }

    /// Runs `show` on the row; a fault if what it read is damaged (see `Entities::show`).
    pub fn show<T>(&self, show: impl for<'a> FnOnce(DateTime, ShownProperties<'a>) -> T) -> Result<T, Fault> {
        let damaged = Cell::new(false);
        let (timestamp, properties) = self.raw().show(&damaged);
        let made = show(timestamp, properties);
        if damaged.get() { Err(row::unreadable(&self.0)) } else { Ok(made) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowDraft;
    use crate::encoding::row::tests::properties;
    use model::{UnreadName as _, UnreadValue as _};
    use proptest::prelude::*;

    fn names() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::btree_set("[A-Zé]{1,2}|Missing", 0..4).prop_map(|set| set.into_iter().collect())
    }

    /// How many there are, once all of them are read.
    fn read(shown: ShownProperties<'_>) -> usize {
        shown.filter_map(|(name, value)| name.text().zip(value.value())).count()
    }

    #[test]
    fn damage_to_the_last_property_is_a_fault_as_well() {
        let row = |value| RowDraft::new([("A", value)].into_iter()).stamp(DateTime::MIN_STORED);
        let check = |value, last: u8| {
            let mut bytes = row(value).as_bytes().to_vec();
            *bytes.last_mut().unwrap() = last;
            assert!(RawRow::new(&bytes).open().is_err(), "{value:?}");
            assert!(StoredRow::new(bytes).show(|_, shown| read(shown)).is_err(), "{value:?}");
        };
        check(ValueRef::Boolean(true), 2);
        check(ValueRef::String("text"), 0xff);
        check(ValueRef::DateTime(DateTime::MIN_STORED), 0xff);
    }

    proptest! {
        #[test]
        fn finds_what_an_opened_row_has(list in properties(), mut wanted in names(), picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..3)) {
            if !list.is_empty() {
                wanted.extend(picks.iter().map(|pick| pick.get(&list).name.clone()));
                wanted.sort();
                wanted.dedup();
            }
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let mut found = vec![None; wanted.len()];
            let raw = RawRow::new(row.as_bytes());
            raw.find(&wanted, &mut found).unwrap();
            prop_assert_eq!(raw.timestamp().unwrap(), DateTime::MIN_STORED);
            for (name, value) in wanted.iter().zip(found) {
                prop_assert_eq!(value, row.view().property(name));
                prop_assert_eq!(raw.value_of(name.as_bytes()).unwrap(), value);
            }
        }

        #[test]
        fn a_part_of_a_row_is_a_row_with_those_properties(list in properties(), wanted in names(), picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..3), cut in any::<prop::sample::Index>()) {
            let mut wanted = wanted;
            if !list.is_empty() {
                wanted.extend(picks.iter().map(|pick| pick.get(&list).name.clone()));
                wanted.sort();
                wanted.dedup();
            }
            let wanted: Vec<Box<[u8]>> = wanted.iter().map(|name| name.as_bytes().into()).collect();
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let part = RawRow::new(row.as_bytes()).part(&wanted).unwrap();
            let mut bytes = Vec::new();
            part.write(&mut bytes);
            prop_assert_eq!(bytes.len(), part.len());
            let left: Vec<_> = list.iter().filter(|p| wanted.iter().any(|name| **name == *p.name.as_bytes())).cloned().collect();
            let view = RowView::open(&bytes).unwrap();
            prop_assert_eq!((view.timestamp(), view.to_properties()), (DateTime::MIN_STORED, left));
            // Damage before the last of them is a fault, as it is to `find`.
            let cut = RawRow::new(&row.as_bytes()[..cut.index(row.as_bytes().len())]);
            prop_assert_eq!(cut.part(&wanted).is_err(), cut.find(&wanted, &mut vec![None; wanted.len()]).is_err());
        }

        #[test]
        fn a_row_cut_short_is_a_fault_to_whoever_reads_that_far(list in properties(), cut in 0.0..1.0_f64) {
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let length = (row.as_bytes().len() as f64 * cut) as usize;
            let cut = RawRow::new(&row.as_bytes()[..length]);
            prop_assert!(cut.find(&["Missing"], &mut [None]).is_err());
            prop_assert!(cut.value_of(b"Missing").is_err());
        }

        #[test]
        fn a_row_is_shown_whole_or_is_a_fault(list in properties(), cut in any::<prop::sample::Index>()) {
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let shown = |bytes: &[u8]| StoredRow::new(bytes.to_vec()).show(|stamp, shown| (stamp, read(shown)));
            prop_assert_eq!(shown(row.as_bytes()).unwrap(), (DateTime::MIN_STORED, list.len()));
            prop_assert!(shown(&row.as_bytes()[..cut.index(row.as_bytes().len())]).is_err());
        }
    }
}
