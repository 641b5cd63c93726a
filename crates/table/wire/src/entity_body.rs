//! An entity as a request body gives it, before it is known to be valid.

use std::borrow::Cow;
use std::collections::HashSet;

use model::{Entity, EntityKey, Key, KeyFault, KeyName, Properties, Refusal, Value, ValueCow, ValueRef};

use crate::format::BodyFormat;
use crate::{atom, entity_json, names};

/// The content of a body in either format, without nulls. Keys may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityBody<'a> {
    pub partition_key: Option<String>,
    pub row_key: Option<String>,
    pub properties: Vec<(Cow<'a, str>, ValueCow<'a>)>,
    /// The names of times that the JSON has with an offset. The answer to an insert shows them in the same way.
    pub offset_times: Vec<Cow<'a, str>>,
}

impl<'a> EntityBody<'a> {
    pub fn read(format: BodyFormat, body: &'a [u8]) -> Result<Self, Refusal> {
        match format {
            BodyFormat::Json => entity_json::read_entity(body),
            BodyFormat::Atom => Self::of_atom(atom::read_properties(body)?),
        }
    }

    /// For an update, merge or upsert: keys in the body are ignored, whatever their values.
    pub fn read_without_keys(format: BodyFormat, body: &'a [u8]) -> Result<Self, Refusal> {
        match format {
            BodyFormat::Json => entity_json::read_entity_without_keys(body),
            BodyFormat::Atom => Self::of_atom(atom::read_properties_without_keys(body)?),
        }
    }

    fn of_atom(members: Vec<(String, Option<Value>)>) -> Result<Self, Refusal> {
        let mut body = BodyBuilder::new(members.len());
        for (name, value) in members {
            body.add(name.into(), value.map(ValueCow::Owned));
        }
        body.finish()
    }

    /// For an insert: the keys are in the body.
    pub fn into_entity(self) -> Result<Entity<'a>, Refusal> {
        let properties = Properties::new(self.properties)?;
        let (Some(partition), Some(row)) = (self.partition_key, self.row_key) else {
            return Err(Refusal::PropertiesNeedValue);
        };
        let key =
            EntityKey { partition: key(KeyName::PartitionKey, partition)?, row: key(KeyName::RowKey, row)? };
        Entity::new(key, properties)
    }

    /// For an update, merge or upsert: the URL names the entity, and keys in the body are ignored.
    pub fn into_entity_at(self, key: EntityKey) -> Result<Entity<'a>, Refusal> {
        Entity::new(key, Properties::new(self.properties)?)
    }
}

/// Separates keys from properties. A null counts as an occurrence: a name that occurs twice is refused, but only if every member
/// can be read.
pub(crate) struct BodyBuilder<'a> {
    body: EntityBody<'a>,
    has_partition: bool,
    has_row: bool,
    nulls: HashSet<Cow<'a, str>>,
    refused: Option<Refusal>,
}

impl<'a> BodyBuilder<'a> {
    /// For so many members.
    pub(crate) fn new(count: usize) -> Self {
        let body = EntityBody { properties: Vec::with_capacity(count), ..EntityBody::default() };
        Self { body, has_partition: false, has_row: false, nulls: HashSet::new(), refused: None }
    }

    /// `None` is null.
    #[inline]
    pub(crate) fn add(&mut self, name: Cow<'a, str>, value: Option<ValueCow<'a>>) {
        match &*name {
            names::TIMESTAMP => {}
            names::PARTITION_KEY => {
                let is_second = std::mem::replace(&mut self.has_partition, true);
                let key = self.key(is_second, value);
                self.body.partition_key = key.or(self.body.partition_key.take());
            }
            names::ROW_KEY => {
                let is_second = std::mem::replace(&mut self.has_row, true);
                let key = self.key(is_second, value);
                self.body.row_key = key.or(self.body.row_key.take());
            }
            _ => match value {
                Some(value) => self.body.properties.push((name, value)),
                None if self.nulls.insert(name) => {}
                None => self.refuse(Refusal::DuplicateProperties),
            },
        }
    }

    fn key(&mut self, is_second: bool, value: Option<ValueCow<'a>>) -> Option<String> {
        if is_second {
            self.refuse(Refusal::DuplicateProperties);
            return None;
        }
        match value? {
            ValueCow::Owned(Value::String(text)) => Some(text),
            ValueCow::Borrowed(ValueRef::String(text)) | ValueCow::Spelled(ValueRef::String(text), _) => {
                Some(text.to_owned())
            }
            _ => {
                self.refuse(Refusal::BodyNotReadable);
                None
            }
        }
    }

    /// The first refusal counts.
    fn refuse(&mut self, refusal: Refusal) {
        self.refused.get_or_insert(refusal);
    }

    pub(crate) fn finish(self) -> Result<EntityBody<'a>, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        // The model refuses two values of one name, but it does not see nulls.
        let nulls = &self.nulls;
        if !nulls.is_empty() && self.body.properties.iter().any(|(name, _)| nulls.contains(name)) {
            return Err(Refusal::DuplicateProperties);
        }
        Ok(self.body)
    }
}

fn key(name: KeyName, text: String) -> Result<Key, Refusal> {
    Key::parse(text.as_str()).map_err(|fault| match fault {
        KeyFault::Forbidden => Refusal::ParameterOutOfRange { name: name.to_string(), value: text },
        KeyFault::TooLong => Refusal::PropertyValueTooLarge,
    })
}

/// The table's name in a Create Table body of either format.
pub fn read_table_name(format: BodyFormat, body: &[u8]) -> Result<String, Refusal> {
    match format {
        BodyFormat::Json => entity_json::read_table_name(body),
        BodyFormat::Atom => {
            let mut properties = atom::read_properties(body)?.into_iter();
            match properties.find(|(name, _)| name == names::TABLE_NAME) {
                Some((_, Some(Value::String(name)))) => Ok(name),
                Some((_, None)) | None => Err(Refusal::PropertiesNeedValue),
                Some(_) => Err(Refusal::BodyNotReadable),
            }
        }
    }
}
