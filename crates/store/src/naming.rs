//! Which objects rows need: known to the service whose rows they are, and asked by whoever checks or copies a whole store.

use bytes::Bytes;

use crate::{Fault, ObjectId, RowView};

/// What a row, or a list that a row names, needs of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub object: ObjectId,
    /// Bytes of content that must be there, from its start on.
    pub bytes: u64,
    /// Its content names more objects. Such an object has one chunk.
    pub is_list: bool,
    /// The row is perhaps left over, and what it names removed already. If it is there, it must be whole.
    pub may_be_gone: bool,
}

/// Reads the names of objects out of stored bytes. A fault if these are damaged.
pub trait ObjectNaming: Send + Sync {
    /// What a row of a service with objects needs. The partition says what kind of row it is.
    fn in_row(&self, partition: &str, row: RowView<'_>) -> Result<Vec<Need>, Fault>;

    /// What an object needs that is a list. `chunk` is its only one, as it is stored.
    fn in_list(&self, list: ObjectId, chunk: Bytes) -> Result<Vec<Need>, Fault>;

    /// How many bytes of content a stored chunk has.
    fn content_of(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<u64, Fault>;
}

/// For stores without objects: rows name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObjects;

impl ObjectNaming for NoObjects {
    fn in_row(&self, _: &str, _: RowView<'_>) -> Result<Vec<Need>, Fault> {
        Ok(Vec::new())
    }

    fn in_list(&self, _: ObjectId, _: Bytes) -> Result<Vec<Need>, Fault> {
        Ok(Vec::new())
    }

    fn content_of(&self, _: ObjectId, _: u32, chunk: Bytes) -> Result<u64, Fault> {
        Ok(chunk.len() as u64)
    }
}
