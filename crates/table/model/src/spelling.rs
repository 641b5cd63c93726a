//! How JSON answers spell values. Rows keep most values in this spelling, so that an answer is a copy of them.

use crate::{EdmType, ValueRef, is_plain_text, write_double};

/// Whether the JSON implies the type. Other values have their type beside them, unless the client wants no metadata.
pub fn is_implied(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int64(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Binary(_) => false,
        ValueRef::Double(number) => number.is_finite(),
        ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => true,
    }
}

/// Whether the spelling stands in quotes.
pub fn is_quoted(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(_) | ValueRef::Int32(_) => false,
        ValueRef::Double(number) => !number.is_finite(),
        ValueRef::String(_)
        | ValueRef::Int64(_)
        | ValueRef::DateTime(_)
        | ValueRef::Guid(_)
        | ValueRef::Binary(_) => true,
    }
}

/// Appends the spelling without quotes. False, and nothing is written, for text that needs escapes and for Binary.
pub fn write_spelling(out: &mut Vec<u8>, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(text) if is_plain_text(text.as_bytes()) => out.extend_from_slice(text.as_bytes()),
        ValueRef::String(_) | ValueRef::Binary(_) => return false,
        ValueRef::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Int32(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Int64(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"NaN"),
        ValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"Infinity"),
        ValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"-Infinity"),
        ValueRef::Double(value) => write_double(out, value),
        ValueRef::DateTime(value) => value.write(out),
        ValueRef::Guid(value) => value.write(out),
    }
    true
}

/// A value as it is stored for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling<'a> {
    /// With its quotes.
    pub text: &'a [u8],
    pub kind: EdmType,
    pub is_implied: bool,
}
