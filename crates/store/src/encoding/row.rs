//! Rows as bytes: a format byte, the timestamp, and the properties in the order they are shown.
//!
//! The timestamp has a fixed place, so that a row can be encoded before its commit and stamped in it.

use bytes::Bytes;
use model::{DateTime, Guid, Property, Value, ValueRef};

use super::varint;
use crate::Fault;

const FORMAT: u8 = 1;
const FORMAT_AT: usize = 0;
const TIMESTAMP_AT: usize = FORMAT_AT + size_of::<u8>();
const PROPERTIES_AT: usize = TIMESTAMP_AT + size_of::<i64>();

const STRING: u8 = 1;
const BOOLEAN: u8 = 2;
const INT32: u8 = 3;
const INT64: u8 = 4;
const DOUBLE: u8 = 5;
const DATETIME: u8 = 6;
const GUID: u8 = 7;
const BINARY: u8 = 8;

/// A stored row, known to be readable from end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(Bytes);

/// A stored row where it lies.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a>(&'a [u8]);

/// A row that has no timestamp yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDraft(Vec<u8>);

impl RowDraft {
    pub fn new<'a>(properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)>) -> Self {
        let mut out = Vec::with_capacity(256);
        out.push(FORMAT);
        out.extend([0; size_of::<i64>()]);
        varint::put(&mut out, properties.len());
        for (name, value) in properties {
            put_property(&mut out, name, value);
        }
        Self(out)
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
    /// Walks the whole row once, so that every later reading of it can't fail.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Fault> {
        let view = Self(bytes);
        view.check().ok_or_else(|| unreadable(bytes))?;
        Ok(view)
    }

    fn check(self) -> Option<()> {
        let mut rest = self.0;
        take_head(&mut rest)?;
        let count = varint::take(&mut rest)?;
        for _ in 0..count {
            take_property(&mut rest)?;
        }
        rest.is_empty().then_some(())
    }

    pub fn timestamp(self) -> DateTime {
        // `open` and `stamp` are the only ways to a row, and both saw a timestamp in range.
        let mut ticks = [0; size_of::<i64>()];
        ticks.copy_from_slice(&self.0[TIMESTAMP_AT..PROPERTIES_AT]);
        DateTime::from_ticks(i64::from_le_bytes(ticks)).unwrap_or(DateTime::MIN)
    }

    /// The custom properties, in the order they are shown.
    pub fn properties(self) -> RowProperties<'a> {
        let mut rest = &self.0[PROPERTIES_AT..];
        let left = varint::take(&mut rest).unwrap_or(0);
        RowProperties { rest, left }
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
pub struct RowProperties<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for RowProperties<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        take_property(&mut self.rest)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RowProperties<'_> {}

fn put_property(out: &mut Vec<u8>, name: &str, value: ValueRef<'_>) {
    let tag = match value {
        ValueRef::String(_) => STRING,
        ValueRef::Boolean(_) => BOOLEAN,
        ValueRef::Int32(_) => INT32,
        ValueRef::Int64(_) => INT64,
        ValueRef::Double(_) => DOUBLE,
        ValueRef::DateTime(_) => DATETIME,
        ValueRef::Guid(_) => GUID,
        ValueRef::Binary(_) => BINARY,
    };
    out.push(tag);
    varint::put(out, name.len());
    out.extend_from_slice(name.as_bytes());
    match value {
        ValueRef::String(text) => {
            varint::put(out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
        ValueRef::Binary(bytes) => {
            varint::put(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        ValueRef::Boolean(value) => out.push(u8::from(value)),
        ValueRef::Int32(value) => out.extend(value.to_le_bytes()),
        ValueRef::Int64(value) => out.extend(value.to_le_bytes()),
        ValueRef::Double(value) => out.extend(value.to_le_bytes()),
        ValueRef::DateTime(value) => out.extend(value.ticks().to_le_bytes()),
        ValueRef::Guid(value) => out.extend(value.0),
    }
}

pub(super) fn unreadable(bytes: &[u8]) -> Fault {
    Fault::new(format!("unreadable row of {} bytes", bytes.len()))
}

/// Steps over all that stands before the properties, whatever the timestamp.
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

pub(super) fn take_property<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, ValueRef<'a>)> {
    let [tag] = take_array(rest)?;
    let name = take_text(rest)?;
    Some((name, take_value(tag, rest)?))
}

pub(super) fn take_value<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<ValueRef<'a>> {
    Some(match tag {
        STRING => ValueRef::String(take_text(rest)?),
        BINARY => ValueRef::Binary(take_counted(rest)?),
        BOOLEAN => match take_array(rest)? {
            [0] => ValueRef::Boolean(false),
            [1] => ValueRef::Boolean(true),
            _ => return None,
        },
        INT32 => ValueRef::Int32(i32::from_le_bytes(take_array(rest)?)),
        INT64 => ValueRef::Int64(i64::from_le_bytes(take_array(rest)?)),
        DOUBLE => ValueRef::Double(f64::from_le_bytes(take_array(rest)?)),
        DATETIME => ValueRef::DateTime(DateTime::from_ticks(i64::from_le_bytes(take_array(rest)?))?),
        GUID => ValueRef::Guid(Guid(take_array(rest)?)),
        _ => return None,
    })
}

/// Steps over a value without looking at more of it than its length.
#[inline]
pub(super) fn skip_value(tag: u8, rest: &mut &[u8]) -> Option<()> {
    let length = match tag {
        STRING | BINARY => varint::take(rest)?,
        BOOLEAN => size_of::<u8>(),
        INT32 => size_of::<i32>(),
        INT64 | DOUBLE | DATETIME => size_of::<i64>(),
        GUID => size_of::<Guid>(),
        _ => return None,
    };
    *rest = rest.get(length..)?;
    Some(())
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_counted(rest)?).ok()
}

#[inline]
pub(super) fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::take(rest)?;
    let (taken, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(taken)
}

#[inline]
pub(super) fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*taken)
}

/// Two sets of properties laid over each other: of a name in both, the newer value.
pub fn overlay(old: RowView<'_>, new: RowView<'_>) -> Vec<Property> {
    let mut merged: Vec<Property> = old
        .to_properties()
        .into_iter()
        .filter(|p| new.property(&p.name).is_none())
        .chain(new.to_properties())
        .collect();
    merged.sort_by(|a, b| model::ordinal_cmp(&a.name, &b.name));
    merged
}

/// Borrowed view of owned properties, as `RowDraft::new` and the limit checks take them.
pub fn borrowed(properties: &[Property]) -> impl ExactSizeIterator<Item = (&str, ValueRef<'_>)> + Clone {
    properties.iter().map(|Property { name, value }| (name.as_str(), Value::as_ref(value)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
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

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(first) = bytes.first_mut() {
                *first = FORMAT;
            }
            if let Ok(row) = RowView::open(&bytes) {
                prop_assert_eq!(row.properties().count(), row.properties().len());
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
