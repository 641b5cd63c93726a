//! Rows that are written to an answer: they are checked as they are read.
//!
//! A writer of answers needs a plain iterator of properties. So damage is not an error of the iterator: it ends the
//! iterator and is noted, and `Entities::show` discards the answer.

use std::cell::Cell;

use model::spelling::Spelling;
use model::{DateTime, UnreadName, UnreadProperties, UnreadValue, ValueRef};

use super::property::{Cursor, PropertyEntry};
use super::raw::RawRow;
use super::{row, spelled};

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

    #[inline]
    fn spelling(self) -> Option<Spelling<'a>> {
        spelled::spelling(self.entry)
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
        let head =
            row::take_head(&mut self.bytes()).and_then(|head| Some((head, row::cursor(self.bytes())?)));
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
        Some((ShownName { bytes: entry.name, damaged }, ShownValue { entry, damaged }))
    }
}

impl<'a> UnreadProperties<'a> for ShownProperties<'a> {
    type Name = ShownName<'a>;
    type Value = ShownValue<'a>;

    /// It is checked for its length and for being ASCII, which makes it UTF-8.
    #[inline]
    fn text(&self, has_types: bool) -> Option<&'a [u8]> {
        let text = row::text_of(&self.cursor, has_types)?;
        if is_ascii(text) {
            return Some(text);
        }
        self.damaged.set(true);
        None
    }
}

/// As `<[u8]>::is_ascii`, but in fewer steps for text that is: it is not left at the first byte that is not.
fn is_ascii(text: &[u8]) -> bool {
    const BLOCK: usize = 64;
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let mut all = [0_u8; BLOCK];
    for block in blocks {
        for (all, byte) in all.iter_mut().zip(block) {
            *all |= byte;
        }
    }
    all.is_ascii() && rest.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowDraft;
    use crate::encoding::row::tests::{drafts, properties};
    use model::spelling::{is_implied, is_quoted, write_spelling};
    use model::{Property, Value};
    use proptest::prelude::*;

    /// As an answer shows it, if it is stored so.
    fn member(Property { name, value }: &Property) -> Option<Vec<u8>> {
        let mut out = format!(",\"{name}\":").into_bytes();
        let quote: &[u8] = if is_quoted(value.as_ref()) { b"\"" } else { b"" };
        out.extend_from_slice(quote);
        let is_spelled = name.is_ascii() && write_spelling(&mut out, value.as_ref());
        out.extend_from_slice(quote);
        is_spelled.then_some(out)
    }

    #[test]
    fn text_that_is_not_ascii_is_noted() {
        let list = [Property { name: "A".into(), value: Value::String("text".into()) }];
        let mut bytes = drafts(&list)[1].clone().stamp(DateTime::MIN_STORED).as_bytes().to_vec();
        *bytes.iter_mut().rev().nth(1).unwrap() = 0xff;
        let damaged = Cell::new(false);
        assert_eq!(RawRow::new(&bytes).show(&damaged).1.text(false), None);
        assert!(damaged.get());
    }

    #[test]
    fn a_byte_beyond_ascii_is_found_at_every_place() {
        for length in 0..200 {
            let text = vec![b'a'; length];
            assert!(is_ascii(&text));
            for at in 0..length {
                let mut text = text.clone();
                text[at] = 0x80;
                assert!(!is_ascii(&text), "at {at} of {length}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_whole_row_is_shown_as_it_was_written(list in properties()) {
            for draft in drafts(&list) {
                let row = draft.stamp(DateTime::MIN_STORED);
                let damaged = Cell::new(false);
                let (timestamp, shown) = RawRow::new(row.as_bytes()).show(&damaged);
                prop_assert_eq!(timestamp, DateTime::MIN_STORED);
                let shown = shown.map(|(name, value)| (name.text().unwrap(), value.value().unwrap()));
                prop_assert!(shown.eq(row.view().properties()));
                prop_assert!(!damaged.get());
            }
        }

        #[test]
        fn the_text_of_a_row_is_there_exactly_if_all_of_it_is_spelled(list in properties()) {
            let [plain, spelled] = drafts(&list);
            let damaged = Cell::new(false);
            let of = |draft: RowDraft, has_types| {
                let row = draft.stamp(DateTime::MIN_STORED);
                RawRow::new(row.as_bytes()).show(&damaged).1.text(has_types).map(<[u8]>::to_vec)
            };
            prop_assert_eq!(of(plain, false), None);
            let expected = list.iter().map(member).collect::<Option<Vec<_>>>().map(|members| members.concat());
            prop_assert_eq!(&of(spelled.clone(), false), &expected);
            let implied = list.iter().all(|property| is_implied(property.value.as_ref()));
            prop_assert_eq!(of(spelled, true), expected.filter(|_| implied));
            prop_assert!(!damaged.get());
        }

        #[test]
        fn a_damaged_row_in_json_is_read_or_noted_and_its_text_is_ascii(list in properties(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let row = drafts(&list)[1].clone().stamp(DateTime::MIN_STORED);
            let mut bytes = row.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let damaged = Cell::new(false);
            let shown = RawRow::new(&bytes).show(&damaged).1;
            prop_assert!(shown.text(false).is_none_or(<[u8]>::is_ascii));
            for (name, value) in shown {
                prop_assert!(value.spelling().is_none_or(|spelling| spelling.text.is_ascii()));
                let _ = (name.text(), value.value());
            }
            if damaged.get() {
                prop_assert!(RawRow::new(&bytes).open().is_err());
            }
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
