//! How many blocks the uploads have that blocks are put to: so that nobody counts rows for every block.
//!
//! Only in memory. An upload that is not known is counted once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::blob_key::UploadId;

/// Uploads that are known at one time. If there are more, some are counted again.
const UPLOADS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Uploads(Mutex<HashMap<UploadId, usize>>);

impl Uploads {
    fn blocks(&self) -> MutexGuard<'_, HashMap<UploadId, usize>> {
        // Each method changes it in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn learn(&self, upload: UploadId, blocks: usize) {
        let mut known = self.blocks();
        if known.len() >= UPLOADS_MAX {
            known.clear();
        }
        known.insert(upload, blocks);
    }

    pub fn known(&self, upload: UploadId) -> Option<usize> {
        self.blocks().get(&upload).copied()
    }

    pub fn add(&self, upload: UploadId) {
        if let Some(blocks) = self.blocks().get_mut(&upload) {
            *blocks += 1;
        }
    }

    pub fn forget(&self, upload: UploadId) {
        self.blocks().remove(&upload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_of_uploads_that_are_known() {
        let uploads = Uploads::default();
        let upload = UploadId([1; 16]);
        uploads.add(upload);
        assert_eq!(uploads.known(upload), None);
        uploads.learn(upload, 0);
        uploads.add(upload);
        assert_eq!(uploads.known(upload), Some(1));
        uploads.forget(upload);
        assert_eq!(uploads.known(upload), None);
        for n in 0..=UPLOADS_MAX as u128 {
            uploads.learn(UploadId(n.to_be_bytes()), 5);
        }
        assert!(uploads.blocks().len() <= UPLOADS_MAX);
    }
}
