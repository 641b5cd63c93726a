//! The bytes of properties in the JSON of answers: a directory with the type and the lengths of each, then all names and values as
//! an answer shows them.
//!
//! Escapes, numbers, times and GUIDs are then spelled once, when a row is written, and an answer is a copy. A name and a text
//! are stored once: what an answer shows is also what a filter compares. Doubles and times are in the directory as numbers
//! too, because reading them from text takes long. Text that needs escapes, and Binary, are stored as they are, so that
//! they are not longer than in any other row; such a property is spelled when it is shown.

use model::spelling::{Spelling, is_implied, is_quoted, write_spelling};
use model::{DateTime, EdmType, Guid, ValueRef, is_plain_text};

use super::property::{self, BINARY, BOOLEAN, DATETIME, DOUBLE, GUID, INT32, INT64, PropertyEntry, STRING};
use super::varint;

/// The flags of a row: every property is spelled; the JSON implies every type.
pub(super) const ALL_SPELLED: u8 = 1;
pub(super) const ALL_IMPLIED: u8 = 2;

/// The flags of a property beside its type.
const TYPE: u8 = 0x0f;
const SPELLED: u8 = 0x80;
const QUOTED: u8 = 0x40;
/// The directory has the value as a number too.
const NUMBERED: u8 = 0x20;

const BEFORE_NAME: &[u8; 2] = b",\"";
const AFTER_NAME: &[u8; 2] = b"\":";
const AROUND_NAME: usize = BEFORE_NAME.len() + AFTER_NAME.len();
const QUOTES: usize = 2;
const NUMBER: usize = size_of::<u64>();

/// Encodes properties after `head`: flags, their number, the lengths of directory and text, directory, text. A spelling, if
/// there is one, is what `write_spelling` writes.
pub(super) fn encode<'a>(
    head: &[u8],
    properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>, Option<&'a str>)> + Clone,
) -> Vec<u8> {
    let count = properties.len();
    let expected = |(name, value, _): (&str, ValueRef<'_>, Option<&str>)| match value {
        ValueRef::String(text) => name.len() + text.len() + 8,
        ValueRef::Binary(bytes) => name.len() + bytes.len() + 8,
        // As long as a GUID.
        _ => name.len() + 44,
    };
    let mut text = Vec::with_capacity(properties.clone().map(expected).sum());
    let mut directory = Vec::with_capacity(count * (NUMBER + 4));
    let mut flags = ALL_SPELLED | ALL_IMPLIED;
    for (name, value, spelling) in properties {
        let start = text.len();
        let tag = put_member(&mut text, name, value, spelling);
        let length = text.len() - start - member_length(tag, name.len(), 0);
        if !is_spelled(tag) {
            flags &= !ALL_SPELLED;
        }
        if !is_implied(value) {
            flags &= !ALL_IMPLIED;
        }
        // Nearly every length is one byte.
        if let (name @ ..0x80, length @ ..0x80) = (name.len(), length) {
            directory.extend_from_slice(&[tag, name as u8, length as u8]);
        } else {
            directory.push(tag);
            varint::put(&mut directory, name.len());
            varint::put(&mut directory, length);
        }
        match value {
            ValueRef::Double(number) if is_spelled(tag) => directory.extend_from_slice(&number.to_le_bytes()),
            ValueRef::DateTime(time) if is_spelled(tag) => {
                directory.extend_from_slice(&time.ticks().to_le_bytes());
            }
            _ => {}
        }
    }
    let lengths = varint::length(count)
        + varint::length(directory.len())
        + varint::length(text.len())
        + size_of::<u8>();
    let mut out = Vec::with_capacity(head.len() + lengths + directory.len() + text.len());
    out.extend_from_slice(head);
    out.push(flags);
    varint::put(&mut out, count);
    varint::put(&mut out, directory.len());
    varint::put(&mut out, text.len());
    out.extend_from_slice(&directory);
    out.extend_from_slice(&text);
    out
}

/// Appends a property with what stands around its name. Returns its type with its flags.
#[inline]
fn put_member(out: &mut Vec<u8>, name: &str, value: ValueRef<'_>, spelling: Option<&str>) -> u8 {
    let tag = property::tag(value);
    out.extend_from_slice(BEFORE_NAME);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(AFTER_NAME);
    let start = out.len();
    let quoted = if is_quoted(value) { QUOTED } else { 0 };
    if is_plain_text(name.as_bytes()) {
        if quoted != 0 {
            out.push(b'"');
        }
        let is_spelled = match spelling {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                true
            }
            None => write_spelling(out, value),
        };
        if is_spelled {
            if quoted != 0 {
                out.push(b'"');
            }
            let numbered =
                if matches!(value, ValueRef::Double(_) | ValueRef::DateTime(_)) { NUMBERED } else { 0 };
            return tag | SPELLED | quoted | numbered;
        }
        out.truncate(start);
    }
    property::put_value(out, value);
    tag
}

/// What stands before the directory.
pub(super) struct Lengths<'a> {
    pub flags: u8,
    pub count: usize,
    pub directory: &'a [u8],
    pub text: &'a [u8],
}

impl<'a> Lengths<'a> {
    /// Reads what `encode` wrote after the head. The text ends where the row ends.
    #[inline]
    pub(super) fn take(bytes: &'a [u8]) -> Option<Self> {
        let (flags, mut rest) = bytes.split_first()?;
        let count = varint::take(&mut rest)?;
        let directory = varint::take(&mut rest)?;
        let length = varint::take(&mut rest)?;
        let (directory, text) = rest.split_at_checked(directory)?;
        (text.len() == length).then_some(Self { flags: *flags, count, directory, text })
    }
}

/// Takes the type and the lengths of name and value of the next property from a directory.
#[inline]
fn take_entry(directory: &mut &[u8]) -> Option<(u8, usize, usize)> {
    if let [tag, name @ ..0x80, length @ ..0x80, rest @ ..] = *directory {
        *directory = rest;
        return Some((*tag, usize::from(*name), usize::from(*length)));
    }
    let (tag, rest) = directory.split_first()?;
    *directory = rest;
    Some((*tag, varint::take(directory)?, varint::take(directory)?))
}

/// Takes the number of a property that has one.
#[inline]
fn take_number(directory: &mut &[u8], tag: u8) -> Option<u64> {
    if tag & NUMBERED == 0 {
        return Some(0);
    }
    let (bytes, rest) = directory.split_first_chunk::<NUMBER>()?;
    *directory = rest;
    Some(u64::from_le_bytes(*bytes))
}

#[inline]
fn member_length(tag: u8, name: usize, value: usize) -> usize {
    // None of them is above 32 bits.
    AROUND_NAME + name + value + usize::from(tag & QUOTED) / usize::from(QUOTED) * QUOTES
}

/// Takes the next property from a directory and its text.
#[inline]
pub(super) fn take<'a>(directory: &mut &'a [u8], text: &mut &'a [u8]) -> Option<PropertyEntry<'a>> {
    let (tag, name, length) = take_entry(directory)?;
    let number = take_number(directory, tag)?;
    let (member, rest) = text.split_at_checked(member_length(tag, name, length))?;
    *text = rest;
    let (before, value) = member.split_at_checked(AROUND_NAME + name)?;
    Some(PropertyEntry { name: before.get(BEFORE_NAME.len()..BEFORE_NAME.len() + name)?, tag, value, number })
}

/// The property of this name among so many; `None` where the bytes can't be read.
#[inline]
pub(super) fn find<'a>(
    count: usize,
    mut directory: &'a [u8],
    mut text: &'a [u8],
    name: &[u8],
) -> Option<Option<PropertyEntry<'a>>> {
    for _ in 0..count {
        let (tag, name_length, length, rest) = match *directory {
            [tag, name @ ..0x80, length @ ..0x80, ref rest @ ..] => {
                (tag, usize::from(name), usize::from(length), rest)
            }
            _ => {
                let mut rest = directory;
                let (tag, name, length) = take_entry(&mut rest)?;
                (tag, name, length, rest)
            }
        };
        // Names are compared only if they are equally long, so that the text of most properties is not touched.
        if name_length == name.len() && text.get(BEFORE_NAME.len()..BEFORE_NAME.len() + name_length)? == name
        {
            let number = take_number(&mut &*rest, tag)?;
            let value = text.get(AROUND_NAME + name_length..member_length(tag, name_length, length))?;
            return Some(Some(PropertyEntry { name: &text[..0], tag, value, number }));
        }
        directory = rest.get(usize::from(tag & NUMBERED) / usize::from(NUMBERED) * NUMBER..)?;
        text = text.get(member_length(tag, name_length, length)..)?;
    }
    (directory.is_empty() && text.is_empty()).then_some(None)
}

#[inline]
pub(super) fn kind(tag: u8) -> u8 {
    tag & TYPE
}

#[inline]
pub(super) fn is_spelled(tag: u8) -> bool {
    tag & SPELLED != 0
}

/// The value without quotes.
#[inline]
pub(super) fn bare(entry: PropertyEntry<'_>) -> &[u8] {
    match entry.value {
        [_, bare @ .., _] if entry.tag & QUOTED != 0 => bare,
        value => value,
    }
}

/// What an answer shows, if the value is spelled. It is not checked but for being ASCII.
#[inline]
pub(super) fn spelling(entry: PropertyEntry<'_>) -> Option<Spelling<'_>> {
    if !is_spelled(entry.tag) || !entry.value.is_ascii() {
        return None;
    }
    let (kind, is_implied) = match kind(entry.tag) {
        STRING => (EdmType::String, true),
        BOOLEAN => (EdmType::Boolean, true),
        INT32 => (EdmType::Int32, true),
        INT64 => (EdmType::Int64, false),
        DOUBLE => (EdmType::Double, entry.tag & QUOTED == 0),
        DATETIME => (EdmType::DateTime, false),
        GUID => (EdmType::Guid, false),
        _ => return None,
    };
    Some(Spelling { text: entry.value, kind, is_implied })
}

/// The value of a property that is spelled.
#[inline]
pub(super) fn value(entry: PropertyEntry<'_>) -> Option<ValueRef<'_>> {
    let bare = bare(entry);
    Some(match kind(entry.tag) {
        STRING => ValueRef::String(std::str::from_utf8(bare).ok()?),
        BOOLEAN => match bare {
            b"false" => ValueRef::Boolean(false),
            b"true" => ValueRef::Boolean(true),
            _ => return None,
        },
        INT32 => ValueRef::Int32(i32::try_from(whole(bare)?).ok()?),
        INT64 => ValueRef::Int64(whole(bare)?),
        DOUBLE => ValueRef::Double(f64::from_bits(entry.number)),
        DATETIME => ValueRef::DateTime(DateTime::from_ticks(entry.number.cast_signed())?),
        GUID => ValueRef::Guid(Guid::parse(std::str::from_utf8(bare).ok()?)?),
        _ => return None,
    })
}

/// The spelling of a property with this value, if it has one. Only of a row that was checked.
pub(super) fn checked_spelling<'a>(entry: PropertyEntry<'a>, value: ValueRef<'a>) -> Option<&'a str> {
    match value {
        _ if !is_spelled(entry.tag) => None,
        ValueRef::String(text) => Some(text),
        _ => std::str::from_utf8(bare(entry)).ok(),
    }
}

/// The flags that a row with this property can have. `None` if `member`, the property with what stands around its name, is
/// not what `encode` writes for its name and value.
pub(super) fn check(entry: PropertyEntry<'_>, member: &[u8], scratch: &mut Vec<u8>) -> Option<u8> {
    let value = entry.value()?;
    scratch.clear();
    let tag = put_member(scratch, std::str::from_utf8(entry.name).ok()?, value, None);
    if tag != entry.tag || member != scratch.as_slice() {
        return None;
    }
    let spelled = if is_spelled(tag) { ALL_SPELLED } else { 0 };
    Some(spelled | if is_implied(value) { ALL_IMPLIED } else { 0 })
}

const _: () = assert!(BINARY <= TYPE);

/// So many digits are below the largest number.
const SHORT_DIGITS: usize = 18;

/// A whole number as `write_spelling` writes it.
#[inline]
fn whole(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Nearly every number is short, and can't overflow.
    if digits.len() <= SHORT_DIGITS {
        let mut value = 0;
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        return Some(if is_negative { -value } else { value });
    }
    // Below zero, because the least number has no counterpart above.
    let mut value = 0_i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if is_negative { Some(value) } else { value.checked_neg() }
}
