//! The value by which an index finds an entity.

use std::fmt;
use std::sync::Arc;

use model::Value;

use partita_client::Entity;

/// The key of an index: the value of a property, or the result of a function.
///
/// ```
/// use partita_client::Entity;
/// use partita_client_patterns::index_key::IndexKey;
///
/// let email = IndexKey::from("Email");
/// let year = IndexKey::of(|entity| Some(entity.text("Hired")?.get(..4)?.to_owned()));
/// let jones = Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com").with("Hired", "2009-10-01");
/// assert_eq!(email.value(&jones).as_deref(), Some("jonesj@contoso.com"));
/// assert_eq!(year.value(&jones).as_deref(), Some("2009"));
/// ```
#[derive(Clone)]
pub struct IndexKey(Key);

#[derive(Clone)]
enum Key {
    Property(String),
    Function(Arc<Function>),
}

type Function = dyn Fn(&Entity) -> Option<String> + Send + Sync;

impl IndexKey {
    /// A function. If it returns `None`, the entity is not in the index. It must always return the same value for the same
    /// entity, or old index entries are not found again.
    pub fn of(function: impl Fn(&Entity) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Key::Function(Arc::new(function)))
    }

    /// The value of an entity.
    pub fn value(&self, entity: &Entity) -> Option<String> {
        match &self.0 {
            Key::Property(name) => entity.get(name).map(text),
            Key::Function(function) => function(entity),
        }
    }
}

impl From<&str> for IndexKey {
    /// A property's value as text. An entity without the property is not in the index.
    fn from(property: &str) -> Self {
        Self(Key::Property(property.to_owned()))
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Key::Property(name) => write!(f, "IndexKey({name})"),
            Key::Function(_) => f.write_str("IndexKey(…)"),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Double(value) => model::format_double(*value),
        Value::DateTime(value) => value.to_string(),
        Value::Guid(value) => value.to_string(),
        Value::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
