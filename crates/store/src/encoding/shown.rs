//! Rows that are written to an answer: they are checked as they are read.
//!
//! A writer of answers needs a plain iterator of properties. So damage is not an error of the iterator: it ends the
//! iterator and is noted, and `Entities::show` discards the answer.

use std::cell::Cell;

use model::{DateTime, UnreadName, UnreadProperties, UnreadValue, ValueRef};

use super::property::{Cursor, PropertyEntry};
use super::raw::RawRow;
use super::row;

/// The custom properties of a row, in the order of answers. Values are read only when they are needed, because
/// `$select` often needs few of a large row.
#[derive(Clone, Debug)]
pub struct ShownProperties<'a> {
    cursor: Cursor<'a>,
    damaged: &'a Cell<bool>,
}

/// The name of a stored property.
#[derive(Clone, Copy, Debug)]
pub struct ShownName<'a> {
    bytes: &'a [u8],
    spelled: &'a [u8],
    damaged: &'a Cell<bool>,
}

/// The value of a stored property.
#[derive(Clone, Copy, Debug)]
pub struct ShownValue<'a> {
    entry: PropertyEntry<'a>,
    damaged: &'a Cell<bool>,
}

impl<'a> UnreadName<'a> for ShownName<'a> {
    #[inline]
    fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn spelled(self) -> &'a [u8] {
        self.spelled
    }

    /// A name that can't be read is noted as damage.
    #[inline]
    fn text(self) -> Option<&'a str> {
        noted(self.damaged, std::str::from_utf8(self.bytes).ok())
    }
}

impl<'a> UnreadValue<'a> for ShownValue<'a> {
    #[inline]
    fn text_bytes(self) -> Option<&'a [u8]> {
        self.entry.text_bytes()
    }

    /// A value that can't be read is noted as damage.
    #[inline]
    fn value(self) -> Option<ValueRef<'a>> {
        noted(self.damaged, self.entry.value())
    }
}

#[inline]
fn noted<T>(damaged: &Cell<bool>, read: Option<T>) -> Option<T> {
    if read.is_none() {
        damaged.set(true);
    }
    read
}

impl<'a> RawRow<'a> {
    pub(crate) fn show(self, damaged: &'a Cell<bool>) -> (DateTime, ShownProperties<'a>) {
        let mut rest = self.bytes();
        let head = row::take_head(&mut rest).and_then(|head| Some((head, Cursor::new(rest)?)));
        let (timestamp, cursor) = head.unwrap_or_else(|| {
            damaged.set(true);
            (DateTime::MIN, Cursor::default())
        });
        (timestamp, ShownProperties { cursor, damaged })
    }
}

impl<'a> Iterator for ShownProperties<'a> {
    type Item = (ShownName<'a>, ShownValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let damaged = self.damaged;
        let Some(entry) = self.cursor.step() else {
            if !self.cursor.is_at_end() {
                damaged.set(true);
                self.cursor = Cursor::default();
            }
            return None;
        };
        let name = ShownName { bytes: entry.name, spelled: entry.spelled, damaged };
        Some((name, ShownValue { entry, damaged }))
    }
}

impl<'a> UnreadProperties<'a> for ShownProperties<'a> {
    type Name = ShownName<'a>;
    type Value = ShownValue<'a>;

    #[inline]
    fn next_like(&mut self, spelled: &[u8]) -> Option<ShownValue<'a>> {
        let entry = self.cursor.step_like(spelled)?;
        Some(ShownValue { entry, damaged: self.damaged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowDraft;
    use crate::encoding::row::tests::properties;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_whole_row_is_shown_as_it_was_written(list in properties()) {
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let damaged = Cell::new(false);
            let (timestamp, shown) = RawRow::new(row.as_bytes()).show(&damaged);
            prop_assert_eq!(timestamp, DateTime::MIN_STORED);
            let shown = shown.map(|(name, value)| (name.text().unwrap(), value.value().unwrap()));
            prop_assert!(shown.eq(row.view().properties()));
            prop_assert!(!damaged.get());
        }

        #[test]
        fn what_is_spelled_alike_is_read_alike(list in properties(), others in properties(), at in any::<prop::sample::Index>(), flip in any::<u8>()) {
            let row = |list| RowDraft::new(row::borrowed(list)).stamp(DateTime::MIN_STORED).as_bytes().to_vec();
            let (before, mut bytes) = (row(&others), row(&list));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let damaged = [Cell::new(false), Cell::new(false), Cell::new(false)];
            let mut spelled = RawRow::new(&before).show(&damaged[0]).1.map(|(name, _)| name.spelled());
            let (mut plain, mut like) = (RawRow::new(&bytes).show(&damaged[1]).1, RawRow::new(&bytes).show(&damaged[2]).1);
            loop {
                let known = spelled.next().and_then(|spelled| like.next_like(spelled));
                let is_known = known.is_some();
                let found = known.or_else(|| like.next().map(|(_, value)| value));
                let expected = plain.next();
                prop_assert_eq!(found.map(|value| value.value()), expected.map(|(_, value)| value.value()));
                prop_assert!(!is_known || expected.is_some());
                if expected.is_none() {
                    break;
                }
            }
            prop_assert_eq!(damaged[1].get(), damaged[2].get());
        }

        #[test]
        fn a_row_is_noted_as_damaged_exactly_if_it_can_not_be_opened(list in properties(), at in any::<prop::sample::Index>(), flip in 1..=255_u8, cut in any::<bool>()) {
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let mut bytes = row.as_bytes().to_vec();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
            let damaged = Cell::new(false);
            for (name, value) in RawRow::new(&bytes).show(&damaged).1 {
                let _ = (name.text(), value.value());
            }
            prop_assert_eq!(damaged.get(), RawRow::new(&bytes).open().is_err());
        }
    }
}
