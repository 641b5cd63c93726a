//! How long deleted blobs are kept, and whether they can be removed before: settings of an account, which its service properties
//! have.

use async_trait::async_trait;
use blob_model::AccountName;

use crate::Result;

#[async_trait]
pub trait Retention: Send + Sync {
    /// Days that deleted blobs are kept, if they are.
    async fn days(&self, account: &AccountName) -> Result<Option<u16>>;

    /// Whether a deleted snapshot that is still kept can be removed.
    async fn permits_removal(&self, _account: &AccountName) -> Result<bool> {
        Ok(false)
    }
}

/// Whatever is deleted is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRetention;

#[async_trait]
impl Retention for NoRetention {
    async fn days(&self, _: &AccountName) -> Result<Option<u16>> {
        Ok(None)
    }
}
