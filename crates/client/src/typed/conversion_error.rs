//! Why a value can't be converted to or from an entity, and at which property.

use std::fmt;

use serde::{de, ser};

#[derive(Debug)]
pub(super) struct ConversionError {
    property: Option<String>,
    text: String,
}

impl ConversionError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { property: None, text: text.into() }
    }

    pub(super) fn at(self, property: &str) -> Self {
        Self { property: Some(self.property.unwrap_or_else(|| property.to_owned())), ..self }
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.property {
            Some(property) => write!(f, "property {property}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for ConversionError {}

impl ser::Error for ConversionError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }
}

impl de::Error for ConversionError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is not there; if that can be, let the field be an Option or mark it #[serde(default)]")
            .at(field)
    }
}
