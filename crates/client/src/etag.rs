use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of an entity: an opaque text from the service.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct ETag(String);

impl ETag {
    /// From text that was saved earlier.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The condition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// The entity must exist, in any version.
    Any,
    /// The entity must have this version; otherwise the write fails with 412 ([`Error::is_changed`](crate::Error::is_changed)).
    Version(ETag),
}

impl Match {
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::Version(etag) => etag.as_str(),
        }
    }

    /// Saved text may be damaged. In a transaction, a line break in it would start another header.
    pub(crate) fn check(&self) -> Result<()> {
        let text = self.header();
        if !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{text:?} can't be an ETag; use it as the service gave it, or Match::Any"
        )))
    }
}

impl From<ETag> for Match {
    fn from(etag: ETag) -> Self {
        Self::Version(etag)
    }
}

impl From<&ETag> for Match {
    fn from(etag: &ETag) -> Self {
        Self::Version(etag.clone())
    }
}
