//! The body of an upload, as the service reads it: piece by piece, and never more than it can keep.

use async_trait::async_trait;
use bytes::Bytes;

use crate::Result;

/// Content that comes in pieces of any size.
#[async_trait]
pub trait Upload: Send {
    /// The next piece, or `None` at the end. An error ends the upload, and is the answer.
    async fn next(&mut self) -> Result<Option<Bytes>>;
}

/// A body that is in memory.
#[async_trait]
impl Upload for Option<Bytes> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        Ok(self.take())
    }
}
