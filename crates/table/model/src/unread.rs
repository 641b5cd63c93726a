//! Properties on their way from stored bytes to an answer, read only as far as the answer needs them.
//!
//! The rows of a page mostly have the same names, and most texts are plain ASCII. Whoever finds that out by comparing bytes
//! need not check them for UTF-8 first.

use crate::ValueRef;

/// The properties of an entity, one after the other.
pub trait UnreadProperties<'a>: Iterator<Item = (Self::Name, Self::Value)> {
    type Name: UnreadName<'a>;
    type Value: UnreadValue<'a>;

    /// The value of the next property, if its name and type are stored in exactly these bytes, which are not empty. Else
    /// `None`, and `next` has to be called.
    #[inline]
    fn next_like(&mut self, spelled: &[u8]) -> Option<Self::Value> {
        let _ = spelled;
        None
    }
}

/// Values in memory are not spelled.
impl<'a, I: Iterator<Item = (&'a str, ValueRef<'a>)>> UnreadProperties<'a> for I {
    type Name = &'a str;
    type Value = ValueRef<'a>;
}

/// The name of a property, not checked yet.
pub trait UnreadName<'a>: Copy {
    fn bytes(self) -> &'a [u8];

    /// The stored bytes of the name and of its value's type; none if it is not stored.
    #[inline]
    fn spelled(self) -> &'a [u8] {
        &[]
    }

    /// `None` if it can't be read.
    fn text(self) -> Option<&'a str>;
}

/// The value of a property, not checked yet.
pub trait UnreadValue<'a>: Copy {
    /// The bytes of a String, which need not be UTF-8; `None` for every other type.
    fn text_bytes(self) -> Option<&'a [u8]>;

    /// `None` if it can't be read.
    fn value(self) -> Option<ValueRef<'a>>;
}

impl<'a> UnreadName<'a> for &'a str {
    fn bytes(self) -> &'a [u8] {
        self.as_bytes()
    }

    fn text(self) -> Option<&'a str> {
        Some(self)
    }
}

impl<'a> UnreadValue<'a> for ValueRef<'a> {
    fn text_bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::String(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    fn value(self) -> Option<Self> {
        Some(self)
    }
}
