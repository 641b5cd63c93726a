//! An entity as a request body gives it, before it is known to be valid.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use model::{
    Entity, EntityKey, Key, KeyFault, KeyName, Properties, PropertyNames, Refusal, Value, ValueCow, ValueRef,
};

use crate::format::BodyFormat;
use crate::{atom, entity_json, names};

/// The content of a body in either format, without nulls. Keys may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityBody<'a> {
    pub partition_key: Option<String>,
    pub row_key: Option<String>,
    pub properties: Vec<(Cow<'a, str>, ValueCow<'a>)>,
    /// The names of these properties, if they are known to be valid.
    pub(crate) names: Option<Arc<PropertyNames>>,
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
        let count = members.len();
        let members = members.into_iter();
        Self::from_members(count, members.map(|(name, value)| Ok((name.into(), value.map(ValueCow::Owned)))))
    }

    /// Separates keys from properties; `None` is null. A null counts as an occurrence: a name that occurs twice is refused,
    /// but only if every member can be read.
    pub(crate) fn from_members(
        count: usize,
        members: impl Iterator<Item = Result<(Cow<'a, str>, Option<ValueCow<'a>>), Refusal>>,
    ) -> Result<Self, Refusal> {
        let mut entity = Self { properties: Vec::with_capacity(count), ..Self::default() };
        let mut seen_keys = (false, false);
        let mut nulls = HashSet::new();
        let mut refused = None;
        for member in members {
            let (name, value) = member?;
            let (slot, seen) = match &*name {
                names::TIMESTAMP => continue,
                names::PARTITION_KEY => (&mut entity.partition_key, &mut seen_keys.0),
                names::ROW_KEY => (&mut entity.row_key, &mut seen_keys.1),
                _ => {
                    match value {
                        Some(value) => entity.properties.push((name, value)),
                        None if nulls.insert(name) => {}
                        None => refused = refused.or(Some(Refusal::DuplicateProperties)),
                    }
                    continue;
                }
            };
            if std::mem::replace(seen, true) {
                refused = refused.or(Some(Refusal::DuplicateProperties));
                continue;
            }
            *slot = match value {
                None => None,
                Some(ValueCow::Owned(Value::String(text))) => Some(text),
                Some(ValueCow::Borrowed(ValueRef::String(text))) => Some(text.to_owned()),
                Some(_) => {
                    refused = refused.or(Some(Refusal::BodyNotReadable));
                    None
                }
            };
        }
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        // The model refuses two values of one name, but it does not see nulls.
        if !nulls.is_empty() && entity.properties.iter().any(|(name, _)| nulls.contains(name)) {
            return Err(Refusal::DuplicateProperties);
        }
        Ok(entity)
    }

    /// For an insert: the keys are in the body.
    pub fn into_entity(self) -> Result<Entity<'a>, Refusal> {
        let properties = checked(self.names, self.properties)?;
        let (Some(partition), Some(row)) = (self.partition_key, self.row_key) else {
            return Err(Refusal::PropertiesNeedValue);
        };
        let key =
            EntityKey { partition: key(KeyName::PartitionKey, partition)?, row: key(KeyName::RowKey, row)? };
        Entity::new(key, properties)
    }

    /// For an update, merge or upsert: the URL names the entity, and keys in the body are ignored.
    pub fn into_entity_at(self, key: EntityKey) -> Result<Entity<'a>, Refusal> {
        Entity::new(key, checked(self.names, self.properties)?)
    }
}

fn checked<'a>(
    names: Option<Arc<PropertyNames>>,
    properties: Vec<(Cow<'a, str>, ValueCow<'a>)>,
) -> Result<Properties<'a>, Refusal> {
    match names {
        Some(names) => Properties::named(&names, properties),
        None => Properties::new(properties),
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
