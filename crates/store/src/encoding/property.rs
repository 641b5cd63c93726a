//! Properties as bytes: first what each is called, its type and length, then what they all hold.
//!
//! Whoever looks for one property of a large row, a filter or `$select`, reads the few bytes of the directory and
//! the value itself, and leaves the rest of the row where it is, which is mostly not in the processor's cache.

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

/// All of them behind a head: their number, the directory's length, the directory, the values.
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
            ValueRef::Int32(value) => out.extend(value.to_le_bytes()),
            ValueRef::Int64(value) => out.extend(value.to_le_bytes()),
            ValueRef::Double(value) => out.extend(value.to_le_bytes()),
            ValueRef::DateTime(value) => out.extend(value.ticks().to_le_bytes()),
            ValueRef::Guid(value) => out.extend(value.0),
        }
    }
    out
}

/// Its tag, its length, and whether the length has to be told.
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

/// Properties being read, one after the other. Nothing is known of the bytes beforehand.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor<'a> {
    left: usize,
    directory: &'a [u8],
    values: &'a [u8],
}

/// One of them: its name and its value, neither looked at yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub name: &'a [u8],
    tag: u8,
    value: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Over what `encode` wrote behind the head.
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

    /// Whether all that was there has been read, and nothing stands behind it.
    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0 && self.directory.is_empty() && self.values.is_empty()
    }

    /// The next one; `None` after the last, and where the bytes can't be read.
    #[inline]
    pub(super) fn step(&mut self) -> Option<Entry<'a>> {
        let left = self.left.checked_sub(1)?;
        let (tag, rest) = self.directory.split_first()?;
        self.directory = rest;
        let name = varint::take(&mut self.directory)?;
        let (name, rest) = self.directory.split_at_checked(name)?;
        self.directory = rest;
        let length = match *tag {
            STRING | BINARY => varint::take(&mut self.directory)?,
            BOOLEAN => size_of::<u8>(),
            INT32 => size_of::<i32>(),
            INT64 | DOUBLE | DATETIME => size_of::<i64>(),
            GUID => size_of::<Guid>(),
            _ => return None,
        };
        let (value, rest) = self.values.split_at_checked(length)?;
        self.values = rest;
        self.left = left;
        Some(Entry { name, tag: *tag, value })
    }

    /// The next one, read. Behind one that can't be read there is none, nor an end: the last one's damage is damage too.
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

impl<'a> Entry<'a> {
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
