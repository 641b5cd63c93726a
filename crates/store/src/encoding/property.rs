//! The bytes of properties: first a directory with the name, type and length of each, then all values.
//!
//! A filter or `$select` that needs one property of a large row reads only the short directory and that value. The
//! other values, which are mostly not in the processor's cache, are not touched.

use model::{DateTime, Guid, ValueRef};

use super::varint;

const STRING: u8 = 1;
const BOOLEAN: u8 = 2;
const INT32: u8 = 3;
const INT64: u8 = 4;
const DOUBLE: u8 = 5;
const DATETIME: u8 = 6;
const GUID: u8 = 7;
const BINARY: u8 = 8;

/// Encodes properties after `head`: their number, the length of the directory, the directory, the values.
pub(super) fn encode<'a>(
    head: &[u8],
    properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + Clone,
) -> Vec<u8> {
    let (mut directory, mut values) = (0, 0);
    for (name, value) in properties.clone() {
        let (_, length, told) = kind(value);
        let told = if told { varint::length(length) } else { 0 };
        directory += size_of::<u8>() + varint::length(name.len()) + name.len() + told;
        values += length;
    }
    let count = properties.len();
    let lengths = varint::length(count) + varint::length(directory);
    let mut out = Vec::with_capacity(head.len() + lengths + directory + values);
    out.extend_from_slice(head);
    varint::put(&mut out, count);
    varint::put(&mut out, directory);
    for (name, value) in properties.clone() {
        let (tag, length, told) = kind(value);
        out.push(tag);
        varint::put(&mut out, name.len());
        out.extend_from_slice(name.as_bytes());
        if told {
            varint::put(&mut out, length);
        }
    }
    for (_, value) in properties {
        match value {
            ValueRef::String(text) => out.extend_from_slice(text.as_bytes()),
            ValueRef::Binary(bytes) => out.extend_from_slice(bytes),
            ValueRef::Boolean(value) => out.push(u8::from(value)),
            ValueRef::Int32(value) => out.extend_from_slice(&value.to_le_bytes()),
            ValueRef::Int64(value) => out.extend_from_slice(&value.to_le_bytes()),
            ValueRef::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            ValueRef::DateTime(value) => out.extend_from_slice(&value.ticks().to_le_bytes()),
            ValueRef::Guid(value) => out.extend_from_slice(&value.0),
        }
    }
    out
}

/// The tag, the length, and whether the length is stored.
#[inline]
fn kind(value: ValueRef<'_>) -> (u8, usize, bool) {
    match value {
        ValueRef::String(text) => (STRING, text.len(), true),
        ValueRef::Binary(bytes) => (BINARY, bytes.len(), true),
        ValueRef::Boolean(_) => (BOOLEAN, size_of::<u8>(), false),
        ValueRef::Int32(_) => (INT32, size_of::<i32>(), false),
        ValueRef::Int64(_) => (INT64, size_of::<i64>(), false),
        ValueRef::Double(_) => (DOUBLE, size_of::<f64>(), false),
        ValueRef::DateTime(_) => (DATETIME, size_of::<i64>(), false),
        ValueRef::Guid(_) => (GUID, size_of::<Guid>(), false),
    }
}

/// The directory and the values of stored properties, in bytes.
fn entry_lengths<'e, 'a: 'e>(entries: impl Iterator<Item = &'e PropertyEntry<'a>>) -> (usize, usize, usize) {
    entries.fold((0, 0, 0), |(count, directory, values), entry| {
        let told = if entry.is_told() { varint::length(entry.value.len()) } else { 0 };
        (count + 1, directory + entry.spelled.len() + told, values + entry.value.len())
    })
}

/// The bytes that `encode_entries` writes.
pub(super) fn encoded_length<'e, 'a: 'e>(entries: impl Iterator<Item = &'e PropertyEntry<'a>>) -> usize {
    let (count, directory, values) = entry_lengths(entries);
    varint::length(count) + varint::length(directory) + directory + values
}

/// Writes stored properties as `encode` does.
pub(super) fn encode_entries<'e, 'a: 'e>(
    out: &mut Vec<u8>,
    entries: impl Iterator<Item = &'e PropertyEntry<'a>> + Clone,
) {
    let (count, directory, _) = entry_lengths(entries.clone());
    varint::put(out, count);
    varint::put(out, directory);
    for entry in entries.clone() {
        out.extend_from_slice(entry.spelled);
        if entry.is_told() {
            varint::put(out, entry.value.len());
        }
    }
    for entry in entries {
        out.extend_from_slice(entry.value);
    }
}

/// Reads properties one after the other. The bytes need not be valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor<'a> {
    left: usize,
    directory: &'a [u8],
    values: &'a [u8],
}

/// The name and the value of a property, not checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PropertyEntry<'a> {
    /// The bytes of the directory with the tag and the name.
    pub spelled: &'a [u8],
    pub name: &'a [u8],
    tag: u8,
    value: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Reads what `encode` wrote after the head.
    #[inline]
    pub(super) fn new(mut bytes: &'a [u8]) -> Option<Self> {
        let left = varint::take(&mut bytes)?;
        let directory = varint::take(&mut bytes)?;
        let (directory, values) = bytes.split_at_checked(directory)?;
        Some(Self { left, directory, values })
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Whether all properties were read and no bytes are left.
    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0 && self.directory.is_empty() && self.values.is_empty()
    }

    /// The next property, not checked; `None` after the last one and where the bytes can't be read.
    #[inline]
    pub(super) fn step(&mut self) -> Option<PropertyEntry<'a>> {
        let left = self.left.checked_sub(1)?;
        let entry = self.directory;
        let (tag, rest) = entry.split_first()?;
        self.directory = rest;
        let name = varint::take(&mut self.directory)?;
        let (name, rest) = self.directory.split_at_checked(name)?;
        self.directory = rest;
        let spelled = &entry[..entry.len() - rest.len()];
        let value = self.take_value(*tag)?;
        self.left = left;
        Some(PropertyEntry { spelled, name, tag: *tag, value })
    }

    /// The value of the next property, if its tag and name are spelled like this; else `None`, and nothing is read.
    #[inline]
    pub(super) fn step_like(&mut self, spelled: &[u8]) -> Option<PropertyEntry<'a>> {
        let left = self.left.checked_sub(1)?;
        let tag = *spelled.first()?;
        let rest = self.directory.strip_prefix(spelled)?;
        let before = (self.directory, self.values);
        self.directory = rest;
        let Some(value) = self.take_value(tag) else {
            (self.directory, self.values) = before;
            return None;
        };
        self.left = left;
        Some(PropertyEntry { spelled: &[], name: &[], tag, value })
    }

    #[inline]
    fn take_value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let length = match tag {
            STRING | BINARY => varint::take(&mut self.directory)?,
            BOOLEAN => size_of::<u8>(),
            INT32 => size_of::<i32>(),
            INT64 | DOUBLE | DATETIME => size_of::<i64>(),
            GUID => size_of::<Guid>(),
            _ => return None,
        };
        let (value, rest) = self.values.split_at_checked(length)?;
        self.values = rest;
        Some(value)
    }

    /// The next property, checked. After one that can't be read it returns `None`, and `is_at_end` stays false, so
    /// that damage in the last property is noticed too.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(&'a str, ValueRef<'a>)> {
        let entry = self.step()?;
        let read = std::str::from_utf8(entry.name).ok().zip(entry.value());
        if read.is_none() {
            *self = Self { left: 1, directory: &[], values: &[] };
        }
        read
    }
}

impl<'a> PropertyEntry<'a> {
    /// Whether the directory has the length of the value.
    fn is_told(&self) -> bool {
        matches!(self.tag, STRING | BINARY)
    }

    /// The bytes of a String, not checked for UTF-8.
    #[inline]
    pub(super) fn text_bytes(self) -> Option<&'a [u8]> {
        (self.tag == STRING).then_some(self.value)
    }

    #[inline]
    pub(super) fn value(self) -> Option<ValueRef<'a>> {
        let bytes = self.value;
        Some(match self.tag {
            STRING => ValueRef::String(std::str::from_utf8(bytes).ok()?),
            BINARY => ValueRef::Binary(bytes),
            BOOLEAN => match bytes {
                [0] => ValueRef::Boolean(false),
                [1] => ValueRef::Boolean(true),
                _ => return None,
            },
            INT32 => ValueRef::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            INT64 => ValueRef::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            DOUBLE => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            DATETIME => ValueRef::DateTime(DateTime::from_ticks(i64::from_le_bytes(bytes.try_into().ok()?))?),
            GUID => ValueRef::Guid(Guid(bytes.try_into().ok()?)),
            _ => return None,
        })
    }
}
