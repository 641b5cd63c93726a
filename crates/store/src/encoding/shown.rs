//! Rows that are written to an answer: they are checked as they are read.
//!
//! A writer of answers needs a plain iterator of properties. So damage is not an error of the iterator: it ends the
//! iterator and is noted, and `Entities::show` discards the answer.

use std::cell::Cell;

use model::{DateTime, ValueRef};

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

/// A stored value that is not read yet.
#[derive(Clone, Copy, Debug)]
pub struct UnreadValue<'a> {
    entry: PropertyEntry<'a>,
    damaged: &'a Cell<bool>,
}

impl<'a> From<UnreadValue<'a>> for Option<ValueRef<'a>> {
    /// `None` if it can't be read, which is noted as damage.
    #[inline]
    fn from(unread: UnreadValue<'a>) -> Self {
        let value = unread.entry.value();
        if value.is_none() {
            unread.damaged.set(true);
        }
        value
    }
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
    type Item = (&'a str, UnreadValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.cursor.step();
        if entry.is_none() && self.cursor.is_at_end() {
            return None;
        }
        let named = entry.and_then(|entry| Some((std::str::from_utf8(entry.name).ok()?, entry)));
        let Some((name, entry)) = named else {
            self.damaged.set(true);
            self.cursor = Cursor::default();
            return None;
        };
        Some((name, UnreadValue { entry, damaged: self.damaged }))
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
            let shown = shown.map(|(name, value)| (name, Option::from(value).unwrap()));
            prop_assert!(shown.eq(row.view().properties()));
            prop_assert!(!damaged.get());
        }

        #[test]
        fn a_row_is_noted_as_damaged_exactly_if_it_can_not_be_opened(list in properties(), at in any::<prop::sample::Index>(), flip in 1..=255_u8, cut in any::<bool>()) {
            let row = RowDraft::new(row::borrowed(&list)).stamp(DateTime::MIN_STORED);
            let mut bytes = row.as_bytes().to_vec();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
            let damaged = Cell::new(false);
            for (_, value) in RawRow::new(&bytes).show(&damaged).1 {
                let _: Option<ValueRef<'_>> = value.into();
            }
            prop_assert_eq!(damaged.get(), RawRow::new(&bytes).open().is_err());
        }
    }
}
