//! Properties on their way from stored bytes to an answer, read only as far as the answer needs them.
//!
//! The rows of a page mostly have the same names, and most texts are plain ASCII. Whoever finds that out by comparing bytes
//! need not check them for UTF-8 first.

use crate::ValueRef;
use crate::spelling::Spelling;

/// The name of a property, not checked yet.
pub trait UnreadName<'a>: Copy {
    fn bytes(self) -> &'a [u8];

    /// `None` if it can't be read.
    fn text(self) -> Option<&'a str>;
}

/// The value of a property, not checked yet.
pub trait UnreadValue<'a>: Copy {
    /// The bytes of a String, which need not be UTF-8; `None` for every other type.
    fn text_bytes(self) -> Option<&'a [u8]>;

    /// `None` if it can't be read.
    fn value(self) -> Option<ValueRef<'a>>;

    /// The value in JSON, if it is stored so.
    fn spelling(self) -> Option<Spelling<'a>> {
        None
    }
}

/// The custom properties of an entity in the order of answers.
pub trait UnreadProperties<'a>: Iterator<Item = (Self::Name, Self::Value)> {
    type Name: UnreadName<'a>;
    type Value: UnreadValue<'a>;

    /// All of them in JSON, each with a comma before it, if they are stored so and none has been taken. `has_types` asks for
    /// the types of those whose JSON does not imply them.
    fn text(&self, has_types: bool) -> Option<&'a [u8]>;
}

/// Properties that are not stored in JSON.
#[derive(Clone, Debug)]
pub struct Unspelled<I>(pub I);

impl<I: Iterator> Iterator for Unspelled<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
}

impl<'a, N: UnreadName<'a>, V: UnreadValue<'a>, I: Iterator<Item = (N, V)>> UnreadProperties<'a>
    for Unspelled<I>
{
    type Name = N;
    type Value = V;

    fn text(&self, _: bool) -> Option<&'a [u8]> {
        None
    }
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
