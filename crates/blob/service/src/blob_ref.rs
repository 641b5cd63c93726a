//! A blob of a container, and which of its states a request is about.

use std::fmt;

use blob_model::{BlobName, SnapshotTime};

use crate::ContainerRef;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlobRef {
    pub container: ContainerRef,
    pub name: BlobName,
}

impl BlobRef {
    pub fn new(container: ContainerRef, name: BlobName) -> Self {
        Self { container, name }
    }
}

impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob {} of {}", self.name, self.container)
    }
}

/// The parameters `snapshot` and `versionid`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    Current,
    Snapshot(SnapshotTime),
    /// No account keeps versions, so that none is ever found.
    Version(SnapshotTime),
}
