//! What serde and the types that use it object to, and at which property.

use std::fmt;

use serde::{de, ser};

#[derive(Debug)]
pub(super) struct Fault {
    property: Option<String>,
    text: String,
}

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { property: None, text: text.into() }
    }

    pub(super) fn at(self, property: &str) -> Self {
        Self { property: Some(self.property.unwrap_or_else(|| property.to_owned())), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.property {
            Some(property) => write!(f, "property {property}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is not there; if that can be, let the field be an Option or mark it #[serde(default)]")
            .at(field)
    }
}
