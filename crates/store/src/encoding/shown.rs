//! Rows on their way to an answer: read once, and checked in the same reading.
//!
//! Whoever writes an answer wants a plain iterator of properties. So damage does not come out of it as an error
//! but ends it and is noted, and the answer is thrown away afterwards (`Entities::show`).

use std::cell::Cell;

use model::{DateTime, ValueRef};

use super::property::Cursor;
use super::raw::RawRow;
use super::row;

/// The custom properties of a row, in the order they are shown.
#[derive(Clone, Debug)]
pub struct ShownProperties<'a> {
    cursor: Cursor<'a>,
    damaged: &'a Cell<bool>,
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
    type Item = (&'a str, ValueRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let property = self.cursor.take();
        if property.is_none() && !self.cursor.is_at_end() {
            self.damaged.set(true);
            self.cursor = Cursor::default();
        }
        property
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
            RawRow::new(&bytes).show(&damaged).1.for_each(drop);
            prop_assert_eq!(damaged.get(), RawRow::new(&bytes).open().is_err());
        }
    }
}
