//! Deserializes an entity into a struct or a map.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::vec;

use model::serde::{DATE_TIME, GUID};
use serde::Deserializer;
use serde::de::value::SeqDeserializer;
use serde::de::{DeserializeSeed, Error, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::conversion_error::ConversionError;
use crate::{EdmType, Value};

/// Reads the entity itself.
pub(super) struct EntityDeserializer {
    /// Keys and what the service adds.
    own: Vec<(&'static str, Value)>,
    properties: BTreeMap<String, Value>,
}

impl EntityDeserializer {
    pub(super) fn new(own: Vec<(&'static str, Value)>, properties: BTreeMap<String, Value>) -> Self {
        Self { own, properties }
    }
}

impl<'de> Deserializer<'de> for EntityDeserializer {
    type Error = ConversionError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        let Self { own, properties } = self;
        visitor.visit_map(Properties {
            own: own.into_iter(),
            properties: properties.into_iter(),
            value: None,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        // The service adds these, so a type with `deny_unknown_fields` must not fail because of them.
        self.own.retain(|(name, _)| fields.contains(name));
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ConversionError> {
        Err(ConversionError::new(format!(
            "name the property that tells which variant of {name} it is: #[serde(tag = \"Kind\")]"
        )))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Properties {
    own: vec::IntoIter<(&'static str, Value)>,
    properties: btree_map::IntoIter<String, Value>,
    /// The property whose name was read last.
    value: Option<(Cow<'static, str>, Value)>,
}

impl<'de> MapAccess<'de> for Properties {
    type Error = ConversionError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ConversionError> {
        let own = self.own.next().map(|(name, value)| (Cow::from(name), value));
        let Some((name, value)) = own.or_else(|| self.properties.next().map(|(n, v)| (n.into(), v))) else {
            return Ok(None);
        };
        let key = seed.deserialize(NameDeserializer(&name))?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConversionError> {
        let Some((name, value)) = self.value.take() else {
            return Err(ConversionError::new("a value was asked for before its property's name"));
        };
        seed.deserialize(PropertyDeserializer(value)).map_err(|error| error.at(&name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.own.len() + self.properties.len())
    }
}

/// Reads a property's name.
struct NameDeserializer<'a>(&'a str);

impl<'de> Deserializer<'de> for NameDeserializer<'_> {
    type Error = ConversionError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// Reads one value.
struct PropertyDeserializer(Value);

impl PropertyDeserializer {
    fn wrong<T>(&self, expected: &dyn Expected) -> Result<T, ConversionError> {
        Err(ConversionError::invalid_type(Unexpected::Other(self.0.edm_type().name()), expected))
    }

    fn refuse<T>(&self, what: &str) -> Result<T, ConversionError> {
        Err(ConversionError::new(format!(
            "an {} can't be read as {what}; #[serde(with = \"partita_client::edm::json\")] reads and writes JSON text",
            self.0.edm_type()
        )))
    }

    fn whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::Int32(number) => visitor.visit_i32(number),
            Value::Int64(number) => visitor.visit_i64(number),
            _ => self.wrong(&visitor),
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::DateTime(time) => visitor.visit_string(time.to_string()),
            Value::Guid(guid) => visitor.visit_string(guid.to_string()),
            _ => self.wrong(&visitor),
        }
    }
}

macro_rules! read {
    ($as_what:ident: $($method:ident),+ $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
            self.$as_what(visitor)
        }
    )+};
}

impl<'de> Deserializer<'de> for PropertyDeserializer {
    type Error = ConversionError;

    /// In shapes that serde can buffer without losing the type: see `model::serde`.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Int32(number) => visitor.visit_i64(number.into()),
            Value::Int64(number) => match i32::try_from(number) {
                Ok(small) => visitor.visit_i32(small),
                Err(_) => visitor.visit_i64(number),
            },
            Value::Double(number) => visitor.visit_f64(number),
            Value::DateTime(time) => visitor.visit_some(InOption(time.to_string())),
            Value::Guid(guid) => visitor.visit_some(InOption(guid.to_string())),
            // As numbers, because types that take any value often don't take bytes.
            Value::Binary(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.into_iter())),
        }
    }

    read! { whole: deserialize_i8, deserialize_i16, deserialize_i32, deserialize_i64, deserialize_i128,
    deserialize_u8, deserialize_u16, deserialize_u32, deserialize_u64, deserialize_u128 }

    read! { text: deserialize_str, deserialize_string, deserialize_char, deserialize_identifier }

    read! { deserialize_f64: deserialize_f32 }

    read! { deserialize_byte_buf: deserialize_bytes }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::Boolean(value) => visitor.visit_bool(value),
            _ => self.wrong(&visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::Double(_) | Value::Int32(_) | Value::Int64(_) => {
                visitor.visit_f64(f64::try_from(self.0).map_err(ConversionError::custom)?)
            }
            _ => self.wrong(&visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::Binary(bytes) => visitor.visit_byte_buf(bytes),
            _ => self.wrong(&visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        match (name, self.0.edm_type()) {
            (DATE_TIME, EdmType::DateTime | EdmType::String) => self.text(visitor),
            (GUID, EdmType::Guid | EdmType::String) => self.text(visitor),
            (DATE_TIME | GUID, _) => self.wrong(&visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            _ => self.wrong(&visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        match self.0 {
            Value::Binary(_) => self.deserialize_any(visitor),
            _ => self.refuse("a sequence"),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ConversionError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, ConversionError> {
        self.refuse(&format!("the struct {name}"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ConversionError> {
        self.refuse("a map")
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ConversionError> {
        self.refuse(&format!("the struct {name}"))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        self.wrong(&visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConversionError> {
        self.wrong(&visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        visitor.visit_unit()
    }
}

/// The inner one of the two `Option`s around a DateTime or Guid. There are two, because a field of type `Option` consumes
/// the outer one.
struct InOption(String);

impl<'de> Deserializer<'de> for InOption {
    type Error = ConversionError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConversionError> {
        visitor.visit_some(PropertyDeserializer(Value::String(self.0)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
