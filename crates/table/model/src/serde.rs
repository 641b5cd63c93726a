//! Values in serde's formats.
//!
//! A DateTime and a Guid are text in a newtype struct with a name of its own. A format that looks at names can tell them
//! from text; JSON shows the text. A [`Value`] is serialized as what it holds, without its type.
//!
//! A format that knows the types keeps them even where serde buffers values (`flatten`, tagged and untagged enums). Serde's
//! buffer has few shapes, so two of them have a meaning for a [`Value`]:
//!
//! - text inside of an option is a DateTime or a Guid;
//! - a number given as `i32` is an Int64 that would fit into an Int32. Given in another way, it is an Int32 if it fits:
//!   so JSON's numbers are read, which are given as `u64`, or as `i64` if negative.

use std::fmt;

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{DateTime, Guid, Value};

pub use common::serde::{DATE_TIME, GUID};

/// Serialized as what it holds: text, a boolean, a number, bytes.
///
/// JSON keeps String, Boolean, Double, Int32 and Binary (as an array of numbers). It does not keep the others: a DateTime
/// and a Guid come back as String, an Int64 that fits into an Int32 comes back as Int32, and NaN and the infinities become
/// `null`, which is not a value.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(text) => serializer.serialize_str(text),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Int32(value) => serializer.serialize_i32(*value),
            Self::Int64(value) => serializer.serialize_i64(*value),
            Self::Double(value) => serializer.serialize_f64(*value),
            Self::DateTime(value) => value.serialize(serializer),
            Self::Guid(value) => value.serialize(serializer),
            Self::Binary(bytes) => serializer.serialize_bytes(bytes),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property's value: text, a boolean, a number or bytes")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i32<E: Error>(self, number: i32) -> Result<Value, E> {
        Ok(Value::Int64(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(i32::try_from(number).map_or(Value::Int64(number), Value::Int32))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => {
                Err(E::invalid_value(Unexpected::Unsigned(number), &"a number that fits into an Edm.Int64"))
            }
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Binary(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Binary(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(Value::Binary(bytes))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(InOption)
    }
}

/// Reads the value in an option.
struct InOption;

impl<'de> Visitor<'de> for InOption {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a DateTime or a Guid")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let guid = Guid::parse(text).map(Value::Guid);
        guid.or_else(|| DateTime::parse(text).map(Value::DateTime))
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: impl Into<Value>, json: &str, back: impl Into<Value>) {
        let value = value.into();
        assert_eq!(serde_json::to_string(&value).unwrap(), json, "{value:?}");
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), back.into(), "{json}");
    }

    #[test]
    fn json_shows_what_a_value_holds() {
        check("a", "\"a\"", "a");
        check(true, "true", true);
        check(5, "5", 5);
        check(-5, "-5", -5);
        check(5_i64, "5", 5);
        check(-5_i64, "-5", -5);
        check(5_000_000_000_i64, "5000000000", 5_000_000_000_i64);
        check(-5_000_000_000_i64, "-5000000000", -5_000_000_000_i64);
        check(5.0, "5.0", 5.0);
        check(vec![0_u8, 255], "[0,255]", vec![0_u8, 255]);
        let time = DateTime::parse("2021-05-06T07:08:09.5Z").unwrap();
        check(time, "\"2021-05-06T07:08:09.5Z\"", "2021-05-06T07:08:09.5Z");
        let guid = Guid::parse("0f8fad5b-d9cb-469f-a165-70867728950e").unwrap();
        check(guid, "\"0f8fad5b-d9cb-469f-a165-70867728950e\"", "0f8fad5b-d9cb-469f-a165-70867728950e");
    }

    #[test]
    fn json_that_is_no_value_is_refused() {
        for json in ["null", "{}", "[256]", "[\"a\"]", "9223372036854775808"] {
            assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
        }
    }
}
