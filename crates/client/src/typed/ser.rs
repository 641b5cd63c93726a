//! Serializes a struct or a map into an entity.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use model::serde::{DATE_TIME, GUID};
use serde::ser::{Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};

use super::conversion_error::ConversionError;
use super::{ETAG, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::{Encrypted, Entity, Value};

/// An entity, and the properties that its type marks for encryption.
#[derive(Debug)]
pub(crate) struct Marked {
    pub entity: Entity,
    pub encrypted: BTreeSet<String>,
}

/// Writes the entity itself.
pub(super) struct EntitySerializer;

impl EntitySerializer {
    fn refuse<T>(what: &str) -> Result<T, ConversionError> {
        Err(ConversionError::new(format!("an entity is a struct or a map, not {what}")))
    }

    fn refuse_variant<T>(variant: &str) -> Result<T, ConversionError> {
        Err(ConversionError::new(format!(
            "an entity is a struct or a map; for the variant {variant} to be one, name the property that tells which \
             variant it is: #[serde(tag = \"Kind\")]"
        )))
    }
}

macro_rules! refuse {
    ($($method:ident($kind:ty) => $what:literal),+ $(,)?) => {$(
        fn $method(self, _: $kind) -> Result<Marked, ConversionError> {
            Self::refuse($what)
        }
    )+};
}

impl Serializer for EntitySerializer {
    type Ok = Marked;
    type Error = ConversionError;
    type SerializeSeq = Impossible<Marked, ConversionError>;
    type SerializeTuple = Impossible<Marked, ConversionError>;
    type SerializeTupleStruct = Impossible<Marked, ConversionError>;
    type SerializeTupleVariant = Impossible<Marked, ConversionError>;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Impossible<Marked, ConversionError>;

    refuse! {
        serialize_bool(bool) => "a boolean",
        serialize_i8(i8) => "a number", serialize_i16(i16) => "a number", serialize_i32(i32) => "a number",
        serialize_i64(i64) => "a number", serialize_i128(i128) => "a number",
        serialize_u8(u8) => "a number", serialize_u16(u16) => "a number", serialize_u32(u32) => "a number",
        serialize_u64(u64) => "a number", serialize_u128(u128) => "a number",
        serialize_f32(f32) => "a number", serialize_f64(f64) => "a number",
        serialize_char(char) => "text", serialize_str(&str) => "text", serialize_bytes(&[u8]) => "bytes",
        serialize_unit_struct(&'static str) => "a struct without fields",
    }

    fn serialize_none(self) -> Result<Marked, ConversionError> {
        Self::refuse("nothing")
    }

    fn serialize_unit(self) -> Result<Marked, ConversionError> {
        Self::refuse("nothing")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Marked, ConversionError> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Marked, ConversionError> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Marked, ConversionError> {
        Self::refuse_variant(variant)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<Marked, ConversionError> {
        Self::refuse_variant(variant)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, ConversionError> {
        Self::refuse("a sequence")
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, ConversionError> {
        Self::refuse("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, ConversionError> {
        Self::refuse("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ConversionError> {
        Self::refuse_variant(variant)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, ConversionError> {
        Ok(Fields::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, ConversionError> {
        Ok(Fields::default())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, ConversionError> {
        Self::refuse_variant(variant)
    }
}

/// The fields written so far.
#[derive(Default)]
pub(super) struct Fields {
    values: BTreeMap<String, Value>,
    encrypted: BTreeSet<String>,
    /// The name of the map entry whose value comes next.
    name: String,
}

impl Fields {
    fn write<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), ConversionError> {
        // Skipped before it is serialized: its type need not be one that a property can have.
        if name == TIMESTAMP || name == ETAG {
            return Ok(());
        }
        let encrypted = Cell::new(false);
        let property = PropertySerializer { encrypted: &encrypted };
        let Some(value) = value.serialize(property).map_err(|error| error.at(name))? else {
            return Ok(());
        };
        if encrypted.get() {
            self.encrypted.insert(name.to_owned());
        }
        match self.values.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => {
                Err(ConversionError::new("is there twice; a flattened field may have it as well").at(name))
            }
        }
    }

    fn into_entity(mut self) -> Result<Marked, ConversionError> {
        let partition_key = self.take_key(PARTITION_KEY)?;
        let row_key = self.take_key(ROW_KEY)?;
        let entity = Entity { partition_key, row_key, properties: self.values };
        Ok(Marked { entity, encrypted: self.encrypted })
    }

    fn take_key(&mut self, name: &str) -> Result<String, ConversionError> {
        match self.values.remove(name) {
            Some(Value::String(key)) => Ok(key),
            Some(other) => Err(ConversionError::new(format!(
                "a key is an Edm.String, not an {}; #[serde(with = \"partita_client::edm::string\")] writes it as one",
                other.edm_type()
            ))
            .at(name)),
            None => Err(ConversionError::new(format!(
                "there is no {name}; name the field that holds it so: #[serde(rename = \"{name}\")]"
            ))),
        }
    }
}

impl SerializeStruct for Fields {
    type Ok = Marked;
    type Error = ConversionError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), ConversionError> {
        self.write(name, value)
    }

    fn end(self) -> Result<Marked, ConversionError> {
        self.into_entity()
    }
}

impl SerializeMap for Fields {
    type Ok = Marked;
    type Error = ConversionError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ConversionError> {
        match key.serialize(PropertySerializer { encrypted: &Cell::new(false) })? {
            Some(Value::String(name)) => self.name = name,
            Some(other) => {
                return Err(ConversionError::new(format!(
                    "a property's name is text, not an {}",
                    other.edm_type()
                )));
            }
            None => return Err(ConversionError::new("a property's name is text, not nothing")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConversionError> {
        let name = std::mem::take(&mut self.name);
        self.write(&name, value)
    }

    fn end(self) -> Result<Marked, ConversionError> {
        self.into_entity()
    }
}

/// Writes one value; `None` if it becomes no property.
#[derive(Clone, Copy)]
struct PropertySerializer<'a> {
    /// Set if the type is marked for encryption.
    encrypted: &'a Cell<bool>,
}

type Written = Result<Option<Value>, ConversionError>;

impl PropertySerializer<'_> {
    fn refuse<T>(what: &str) -> Result<T, ConversionError> {
        Err(ConversionError::new(format!(
            "{what} is no property's value; #[serde(with = \"partita_client::edm::json\")] writes it as JSON text"
        )))
    }

    fn refuse_list<T>(what: &str) -> Result<T, ConversionError> {
        Err(ConversionError::new(format!(
            "{what} is no property's value; #[serde(with = \"partita_client::edm::json\")] writes it as JSON text, \
             #[serde(with = \"partita_client::edm::binary\")] writes bytes"
        )))
    }

    fn refuse_variant<T>(variant: &str) -> Result<T, ConversionError> {
        Self::refuse(&format!("the variant {variant}, which has fields,"))
    }
}

macro_rules! write {
    ($($method:ident($kind:ty) => $variant:ident),+ $(,)?) => {$(
        fn $method(self, value: $kind) -> Written {
            Ok(Some(Value::$variant(value.into())))
        }
    )+};
}

macro_rules! write_if_it_fits {
    ($($method:ident($kind:ty)),+ $(,)?) => {$(
        fn $method(self, value: $kind) -> Written {
            match i64::try_from(value) {
                Ok(number) => Ok(Some(Value::Int64(number))),
                Err(_) => Err(ConversionError::new(format!(
                    "{value} does not fit into an Edm.Int64; \
                     #[serde(with = \"partita_client::edm::string\")] writes it as text"
                ))),
            }
        }
    )+};
}

impl Serializer for PropertySerializer<'_> {
    type Ok = Option<Value>;
    type Error = ConversionError;
    type SerializeSeq = Impossible<Option<Value>, ConversionError>;
    type SerializeTuple = Impossible<Option<Value>, ConversionError>;
    type SerializeTupleStruct = Impossible<Option<Value>, ConversionError>;
    type SerializeTupleVariant = Impossible<Option<Value>, ConversionError>;
    type SerializeMap = Impossible<Option<Value>, ConversionError>;
    type SerializeStruct = Impossible<Option<Value>, ConversionError>;
    type SerializeStructVariant = Impossible<Option<Value>, ConversionError>;

    write! {
        serialize_bool(bool) => Boolean,
        serialize_i8(i8) => Int32, serialize_i16(i16) => Int32, serialize_i32(i32) => Int32,
        serialize_u8(u8) => Int32, serialize_u16(u16) => Int32,
        serialize_i64(i64) => Int64, serialize_u32(u32) => Int64,
        serialize_f32(f32) => Double, serialize_f64(f64) => Double,
        serialize_char(char) => String, serialize_str(&str) => String,
        serialize_bytes(&[u8]) => Binary,
    }

    write_if_it_fits! { serialize_u64(u64), serialize_i128(i128), serialize_u128(u128) }

    fn serialize_none(self) -> Written {
        Ok(None)
    }

    fn serialize_unit(self) -> Written {
        Ok(None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Written {
        let written = value.serialize(self)?;
        if name == Encrypted::<()>::NAME {
            self.encrypted.set(true);
        }
        match (name, written) {
            (DATE_TIME, Some(Value::String(text))) => parsed(&text).map(Value::DateTime).map(Some),
            (GUID, Some(Value::String(text))) => parsed(&text).map(Value::Guid).map(Some),
            (_, written) => Ok(written),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Written {
        Self::refuse_variant(variant)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, ConversionError> {
        Self::refuse_list("a sequence")
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, ConversionError> {
        Self::refuse_list("an array or a tuple")
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, ConversionError> {
        Self::refuse(&format!("the struct {name}"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ConversionError> {
        Self::refuse_variant(variant)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, ConversionError> {
        Self::refuse("a map")
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, ConversionError> {
        Self::refuse(&format!("the struct {name}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, ConversionError> {
        Self::refuse_variant(variant)
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, ConversionError> {
    text.parse().map_err(|error: T::Err| ConversionError::new(error.to_string()))
}
