//! The bytes of a row: a format byte, the timestamp, and the properties in the order of answers.
//!
//! The timestamp has a fixed place, so that a row can be encoded before its commit and get its timestamp then.

use bytes::Bytes;
use model::{DateTime, Property, Value, ValueRef};

use super::property::{self, Cursor};
use crate::Fault;

const FORMAT: u8 = 1;
const FORMAT_AT: usize = 0;
const TIMESTAMP_AT: usize = FORMAT_AT + size_of::<u8>();
const PROPERTIES_AT: usize = TIMESTAMP_AT + size_of::<i64>();
/// The bytes before the properties.
pub(super) const HEAD_BYTES: usize = PROPERTIES_AT;

/// A stored row that was checked from end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(Bytes);

/// A borrowed row that was checked.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a>(&'a [u8]);

/// A row that has no timestamp yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDraft(Vec<u8>);

impl RowDraft {
    pub fn new<'a>(properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + Clone) -> Self {
        let mut head = [0; PROPERTIES_AT];
        head[FORMAT_AT] = FORMAT;
        Self(property::encode(&head, properties))
    }

    pub fn stamp(mut self, timestamp: DateTime) -> Row {
        self.0[TIMESTAMP_AT..PROPERTIES_AT].copy_from_slice(&timestamp.ticks().to_le_bytes());
        Row(self.0.into())
    }

    pub fn view(&self) -> RowView<'_> {
        RowView(&self.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Row {
    pub fn open(bytes: Bytes) -> Result<Self, Fault> {
        RowView::open(&bytes)?;
        Ok(Self(bytes))
    }

    pub fn view(&self) -> RowView<'_> {
        RowView(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn timestamp(&self) -> DateTime {
        self.view().timestamp()
    }
}

impl<'a> RowView<'a> {
    /// Checks the whole row, so that reading it later can't fail.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Fault> {
        let view = Self(bytes);
        view.check().ok_or_else(|| unreadable(bytes))?;
        Ok(view)
    }

    fn check(self) -> Option<()> {
        let mut rest = self.0;
        take_head(&mut rest)?;
        let mut cursor = Cursor::new(rest)?;
        while cursor.take().is_some() {}
        cursor.is_at_end().then_some(())
    }

    pub fn timestamp(self) -> DateTime {
        // Only `open` and `stamp` make rows, and both have a timestamp in range.
        let mut ticks = [0; size_of::<i64>()];
        ticks.copy_from_slice(&self.0[TIMESTAMP_AT..PROPERTIES_AT]);
        DateTime::from_ticks(i64::from_le_bytes(ticks)).expect("a row's timestamp was checked")
    }

    /// The custom properties, in the order they are shown.
    pub fn properties(self) -> RowProperties<'a> {
        // Only `open` and `RowDraft::new` make rows, and both are readable.
        RowProperties(Cursor::new(&self.0[PROPERTIES_AT..]).expect("a row's properties were checked"))
    }

    pub fn property(self, name: &str) -> Option<ValueRef<'a>> {
        self.properties().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn to_properties(self) -> Vec<Property> {
        self.properties()
            .map(|(name, value)| Property { name: name.to_owned(), value: value.to_owned() })
            .collect()
    }
}

#[derive(Clone, Debug)]
pub struct RowProperties<'a>(Cursor<'a>);

impl<'a> Iterator for RowProperties<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left(), Some(self.0.left()))
    }
}

impl ExactSizeIterator for RowProperties<'_> {}

pub(super) fn unreadable(bytes: &[u8]) -> Fault {
    Fault::damaged(format!("a stored row of {} bytes can't be read", bytes.len()))
}

/// Takes the format byte and the timestamp's bytes, without checking the timestamp.
#[inline]
pub(super) fn take_format(rest: &mut &[u8]) -> Option<[u8; size_of::<i64>()]> {
    match take_array(rest)? {
        [FORMAT] => take_array(rest),
        _ => None,
    }
}

pub(super) fn take_head(rest: &mut &[u8]) -> Option<DateTime> {
    DateTime::from_ticks(i64::from_le_bytes(take_format(rest)?))
}

#[inline]
fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*taken)
}

/// Borrows properties for `RowDraft::new` and for the checks of limits.
pub fn borrowed(properties: &[Property]) -> impl ExactSizeIterator<Item = (&str, ValueRef<'_>)> + Clone {
    properties.iter().map(|Property { name, value }| (name.as_str(), Value::as_ref(value)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use model::Guid;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            ".{0,20}".prop_map(Value::String),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            (0..=DateTime::MAX.ticks()).prop_map(|t| Value::DateTime(DateTime::from_ticks(t).unwrap())),
            any::<[u8; 16]>().prop_map(|b| Value::Guid(Guid(b))),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
        ]
    }

    pub fn properties() -> impl Strategy<Value = Vec<Property>> {
        proptest::collection::btree_map("[A-Zé]{1,6}", value(), 0..8)
            .prop_map(|map| map.into_iter().map(|(name, value)| Property { name, value }).collect())
    }

    proptest! {
        #[test]
        fn rows_read_back(list in properties(), ticks in 0..=DateTime::MAX.ticks()) {
            let timestamp = DateTime::from_ticks(ticks).unwrap();
            let row = RowDraft::new(borrowed(&list)).stamp(timestamp);
            let row = Row::open(Bytes::copy_from_slice(row.as_bytes())).unwrap();
            prop_assert_eq!(row.timestamp(), timestamp);
            for property in &list {
                prop_assert_eq!(row.view().property(&property.name), Some(property.value.as_ref()));
            }
            prop_assert_eq!(row.view().to_properties(), list);
        }

        #[test]
        fn a_row_cut_short_is_refused(list in properties(), cut in 0.0..1.0_f64) {
            let row = RowDraft::new(borrowed(&list)).stamp(DateTime::MIN_STORED);
            let length = (row.as_bytes().len() as f64 * cut) as usize;
            prop_assert!(RowView::open(&row.as_bytes()[..length]).is_err());
        }
    }

    #[test]
    fn another_format_is_refused() {
        let mut bytes = RowDraft::new([].into_iter()).stamp(DateTime::MIN).as_bytes().to_vec();
        assert!(RowView::open(&bytes).is_ok());
        bytes[FORMAT_AT] = 2;
        assert!(RowView::open(&bytes).is_err());
    }
}
