//! Times and GUIDs in serde: text inside a newtype struct with a name of its own. A format that reads names can tell them
//! from other text; in JSON they are plain text.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{DateTime, Guid};

/// The name of the newtype struct around a DateTime.
pub const DATE_TIME: &str = "$Edm.DateTime";
/// The name of the newtype struct around a Guid.
pub const GUID: &str = "$Edm.Guid";

/// Text such as `2021-05-06T07:08:09Z`.
impl Serialize for DateTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(DATE_TIME, &format_args!("{self}"))
    }
}

impl<'de> Deserialize<'de> for DateTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = TextVisitor { as_what: "a time such as 2021-05-06T07:08:09Z", kind: PhantomData };
        deserializer.deserialize_newtype_struct(DATE_TIME, written)
    }
}

/// Text such as `0f8fad5b-d9cb-469f-a165-70867728950e`.
impl Serialize for Guid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(GUID, &format_args!("{self}"))
    }
}

impl<'de> Deserialize<'de> for Guid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let as_what = "a Guid such as 0f8fad5b-d9cb-469f-a165-70867728950e";
        deserializer.deserialize_newtype_struct(GUID, TextVisitor { as_what, kind: PhantomData })
    }
}

/// Parses text.
struct TextVisitor<T> {
    as_what: &'static str,
    kind: PhantomData<T>,
}

impl<'de, T> Visitor<'de> for TextVisitor<T>
where
    T: FromStr<Err: fmt::Display>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<T, D::Error> {
        // Values that serde has buffered count as human-readable. A format may have buffered a time or a GUID as an option,
        // to mark it, so any type is accepted here. A binary format can't say which type comes next.
        if inner.is_human_readable() { inner.deserialize_any(self) } else { inner.deserialize_str(self) }
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<T, D::Error> {
        inner.deserialize_any(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_that_is_no_time_and_no_guid_is_refused() {
        for json in ["5", "null", "\"soon\"", "{}"] {
            assert!(serde_json::from_str::<DateTime>(json).is_err(), "{json}");
            assert!(serde_json::from_str::<Guid>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn times_and_guids_survive_json(ticks in 0..=DateTime::MAX.ticks(), bytes: [u8; 16]) {
            let both = (DateTime::from_ticks(ticks).unwrap(), Guid(bytes));
            let json = serde_json::to_string(&both).unwrap();
            prop_assert_eq!(serde_json::from_str::<(DateTime, Guid)>(&json).unwrap(), both);
        }
    }
}
