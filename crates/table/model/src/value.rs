//! The eight kinds of value a property can hold.

use std::borrow::Cow;
use std::fmt;

use crate::{DateTime, Guid};

/// A property's value, owned.
#[derive(Clone, Debug)]
pub enum Value {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(DateTime),
    Guid(Guid),
    Binary(Vec<u8>),
}

/// A property's value, borrowed from a stored row or from a `Value`.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    String(&'a str),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(DateTime),
    Guid(Guid),
    Binary(&'a [u8]),
}

/// A value of a request: usually borrowed from its bytes, sometimes decoded.
#[derive(Clone, Debug)]
pub enum ValueCow<'a> {
    Borrowed(ValueRef<'a>),
    Owned(Value),
}

impl ValueCow<'_> {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }
}

impl PartialEq for ValueCow<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl From<Value> for ValueCow<'_> {
    fn from(value: Value) -> Self {
        Self::Owned(value)
    }
}

impl<'a> From<Cow<'a, str>> for ValueCow<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Borrowed(ValueRef::String(text)),
            Cow::Owned(text) => Self::Owned(Value::String(text)),
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Self {
                Self::$variant(value.into())
            }
        }
    )+};
}

from! {
    &str => String, String => String, bool => Boolean, i32 => Int32, i64 => Int64, f64 => Double,
    DateTime => DateTime, Guid => Guid, Vec<u8> => Binary, &[u8] => Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdmType {
    String,
    Boolean,
    Int32,
    Int64,
    Double,
    DateTime,
    Guid,
    Binary,
}

impl EdmType {
    pub const ALL: [Self; 8] = [
        Self::String,
        Self::Boolean,
        Self::Int32,
        Self::Int64,
        Self::Double,
        Self::DateTime,
        Self::Guid,
        Self::Binary,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Boolean => "Edm.Boolean",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "Edm.String" => Self::String,
            "Edm.Boolean" => Self::Boolean,
            "Edm.Int32" => Self::Int32,
            "Edm.Int64" => Self::Int64,
            "Edm.Double" => Self::Double,
            "Edm.DateTime" => Self::DateTime,
            "Edm.Guid" => Self::Guid,
            "Edm.Binary" => Self::Binary,
            _ => return None,
        })
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Value {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(text) => ValueRef::String(text),
            Self::Boolean(value) => ValueRef::Boolean(*value),
            Self::Int32(value) => ValueRef::Int32(*value),
            Self::Int64(value) => ValueRef::Int64(*value),
            Self::Double(value) => ValueRef::Double(*value),
            Self::DateTime(value) => ValueRef::DateTime(*value),
            Self::Guid(value) => ValueRef::Guid(*value),
            Self::Binary(bytes) => ValueRef::Binary(bytes),
        }
    }

    pub fn edm_type(&self) -> EdmType {
        self.as_ref().edm_type()
    }
}

impl ValueRef<'_> {
    pub fn edm_type(self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    pub fn to_owned(self) -> Value {
        match self {
            Self::String(text) => Value::String(text.to_owned()),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Int32(value) => Value::Int32(value),
            Self::Int64(value) => Value::Int64(value),
            Self::Double(value) => Value::Double(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Guid(value) => Value::Guid(value),
            Self::Binary(bytes) => Value::Binary(bytes.to_vec()),
        }
    }

    /// The bytes of a String (as UTF-16) or Binary, to which the 64 KiB limit applies.
    pub fn payload_bytes(self) -> usize {
        match self {
            Self::String(text) => 2 * utf16_units(text),
            Self::Binary(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// What this value adds to its entity's size, by the storage team's formula (spec: 3.5).
    pub fn size(self) -> usize {
        match self {
            Self::String(_) | Self::Binary(_) => self.payload_bytes() + 4,
            Self::Boolean(_) => 1,
            Self::Int32(_) => 4,
            Self::Int64(_) | Self::Double(_) | Self::DateTime(_) => 8,
            Self::Guid(_) => 16,
        }
    }
}

pub fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Two values are equal if a reader can't tell them apart: NaN equals NaN.
impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Int32(a), Self::Int32(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) => a == b,
            (Self::Double(a), Self::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::DateTime(a), Self::DateTime(b)) => a == b,
            (Self::Guid(a), Self::Guid(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}
