//! All extents of content, one manifest in memory at a time.

use std::collections::VecDeque;

use store::Fault;

use super::{Content, Contents, Extent, Manifest};

#[derive(Debug)]
pub struct ExtentWalk {
    contents: Contents,
    manifests: VecDeque<Manifest>,
    /// Of the manifest that was read last.
    listed: VecDeque<Extent>,
    rest: VecDeque<Extent>,
}

impl Contents {
    /// The extents of this content in order, those of manifests too. Bytes in the row are no extent.
    pub fn extents(&self, content: &Content) -> ExtentWalk {
        ExtentWalk {
            contents: self.clone(),
            manifests: content.manifests.clone().into(),
            listed: VecDeque::new(),
            rest: content.extents.clone().into(),
        }
    }
}

impl ExtentWalk {
    pub async fn next(&mut self) -> Result<Option<Extent>, Fault> {
        if let Some(extent) = self.listed.pop_front() {
            return Ok(Some(extent));
        }
        if let Some(manifest) = self.manifests.pop_front() {
            // A manifest is never empty.
            self.listed = self.contents.extents_of(&manifest).await?.into();
            return Ok(self.listed.pop_front());
        }
        Ok(self.rest.pop_front())
    }
}
