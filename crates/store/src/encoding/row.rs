//! The bytes of a row: a format byte, the timestamp, and the properties in the order of answers.
//!
//! There are two layouts. Entities are stored in the JSON of answers (`spelled`). What nobody is shown in JSON, and entities of
//! earlier versions until they are written again, are stored as plain values (`property`).
//!
//! The timestamp has a fixed place, so that a row can be encoded before its commit and get its timestamp then.

use bytes::Bytes;
use model::{DateTime, Property, UnreadProperties, Value, ValueRef};

use super::property::{self, Cursor};
use super::spelled::{self, ALL_IMPLIED, ALL_SPELLED};
use crate::Fault;

const PLAIN: u8 = 1;
const SPELLED: u8 = 4;
const FORMAT_AT: usize = 0;
const TIMESTAMP_AT: usize = FORMAT_AT + size_of::<u8>();
const PROPERTIES_AT: usize = TIMESTAMP_AT + size_of::<i64>();

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
        Self(property::encode(&head(PLAIN), properties))
    }

    /// A row for answers in JSON. With a value can come what `model::spelling` writes for it, so that it need not be written.
    pub fn spelled<'a>(
        properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>, Option<&'a str>)> + Clone,
    ) -> Self {
        Self(spelled::encode(&head(SPELLED), properties))
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

fn head(format: u8) -> [u8; PROPERTIES_AT] {
    let mut head = [0; PROPERTIES_AT];
    head[FORMAT_AT] = format;
    head
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
        take_head(&mut &self.0[..])?;
        let mut cursor = cursor(self.0)?;
        let flags = cursor.flags();
        let (mut found, mut scratch) = (ALL_SPELLED | ALL_IMPLIED, Vec::with_capacity(self.0.len()));
        loop {
            let before = cursor.values();
            let Some(entry) = cursor.step() else { break };
            if flags.is_some() {
                let member = &before[..before.len() - cursor.values().len()];
                found &= spelled::check(entry, member, &mut scratch)?;
            } else {
                std::str::from_utf8(entry.name).ok().zip(entry.value())?;
            }
        }
        (cursor.is_at_end() && flags.is_none_or(|flags| flags == found)).then_some(())
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
        RowProperties(cursor(self.0).expect("a row's properties were checked"))
    }

    /// With the spelling of those that are stored in JSON.
    pub fn spelled_properties(
        self,
    ) -> impl Iterator<Item = (&'a str, ValueRef<'a>, Option<&'a str>)> + Clone {
        let RowProperties(mut cursor) = self.properties();
        std::iter::from_fn(move || {
            let entry = cursor.step()?;
            // The row was checked, so both can be read.
            let value = entry.value()?;
            Some((std::str::from_utf8(entry.name).ok()?, value, spelled::checked_spelling(entry, value)))
        })
    }

    /// Whether it is stored in the JSON of answers.
    pub fn is_spelled(self) -> bool {
        self.0[FORMAT_AT] == SPELLED
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

impl<'a> UnreadProperties<'a> for RowProperties<'a> {
    type Name = &'a str;
    type Value = ValueRef<'a>;

    fn text(&self, has_types: bool) -> Option<&'a [u8]> {
        text_of(&self.0, has_types)
    }
}

/// All properties in JSON, if the row has them so; not checked.
#[inline]
pub(super) fn text_of<'a>(cursor: &Cursor<'a>, has_types: bool) -> Option<&'a [u8]> {
    let needed = if has_types { ALL_SPELLED | ALL_IMPLIED } else { ALL_SPELLED };
    cursor.flags().filter(|flags| flags & needed == needed).map(|_| cursor.values())
}

pub(super) fn unreadable(bytes: &[u8]) -> Fault {
    Fault::damaged(format!("a stored row of {} bytes can't be read", bytes.len()))
}

/// The properties of a row, whose timestamp is not checked.
#[inline]
pub(super) fn cursor(bytes: &[u8]) -> Option<Cursor<'_>> {
    let properties = bytes.get(PROPERTIES_AT..)?;
    match bytes[FORMAT_AT] {
        PLAIN => Cursor::new(properties),
        SPELLED => Cursor::spelled(properties),
        _ => None,
    }
}

/// Takes the format byte and the timestamp.
pub(super) fn take_head(rest: &mut &[u8]) -> Option<DateTime> {
    let [PLAIN | SPELLED] = take_array(rest)? else { return None };
    DateTime::from_ticks(i64::from_le_bytes(take_array(rest)?))
}

#[inline]
fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*taken)
}

/// For `RowDraft::spelled`, without a spelling.
pub fn unspelled<'a>(
    properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + Clone,
) -> impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>, Option<&'a str>)> + Clone {
    properties.map(|(name, value)| (name, value, None))
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
            "[ -~]{0,20}".prop_map(Value::String),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            (0..=DateTime::MAX.ticks()).prop_map(|t| Value::DateTime(DateTime::from_ticks(t).unwrap())),
            any::<[u8; 16]>().prop_map(|b| Value::Guid(Guid(b))),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
        ]
    }

    /// The same properties in each layout.
    pub fn drafts(list: &[Property]) -> [RowDraft; 2] {
        [RowDraft::new(borrowed(list)), RowDraft::spelled(unspelled(borrowed(list)))]
    }

    pub fn properties() -> impl Strategy<Value = Vec<Property>> {
        proptest::collection::btree_map("[A-Zé]{1,6}", value(), 0..8)
            .prop_map(|map| map.into_iter().map(|(name, value)| Property { name, value }).collect())
    }

    proptest! {
        #[test]
        fn rows_read_back(list in properties(), ticks in 0..=DateTime::MAX.ticks()) {
            let timestamp = DateTime::from_ticks(ticks).unwrap();
            for draft in drafts(&list) {
                prop_assert_eq!(draft.view().to_properties(), list.clone());
                let row = draft.stamp(timestamp);
                let row = Row::open(Bytes::copy_from_slice(row.as_bytes())).unwrap();
                prop_assert_eq!(row.timestamp(), timestamp);
                for property in &list {
                    prop_assert_eq!(row.view().property(&property.name), Some(property.value.as_ref()));
                }
                prop_assert_eq!(row.view().to_properties(), list.clone());
                // A row is the same again if it is made of what it says of its spelling.
                let spelled: Vec<_> = row.view().spelled_properties().collect();
                let again = RowDraft::spelled(spelled.iter().copied()).stamp(timestamp);
                let expected = drafts(&list)[1].clone().stamp(timestamp);
                prop_assert_eq!(again.as_bytes(), expected.as_bytes());
            }
        }

        #[test]
        fn a_row_cut_short_is_refused(list in properties(), cut in 0.0..1.0_f64) {
            for draft in drafts(&list) {
                let row = draft.stamp(DateTime::MIN_STORED);
                let length = (row.as_bytes().len() as f64 * cut) as usize;
                prop_assert!(RowView::open(&row.as_bytes()[..length]).is_err());
            }
        }

        #[test]
        fn a_row_in_json_is_opened_only_as_it_was_written(list in properties(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let row = drafts(&list)[1].clone().stamp(DateTime::MIN_STORED);
            let mut bytes = row.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(opened) = RowView::open(&bytes) && opened.is_spelled() {
                let spelled: Vec<_> = opened.spelled_properties().map(|(name, value, _)| (name, value, None)).collect();
                let again = RowDraft::spelled(spelled.into_iter()).stamp(opened.timestamp());
                prop_assert_eq!(again.as_bytes(), bytes.as_slice());
            }
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
