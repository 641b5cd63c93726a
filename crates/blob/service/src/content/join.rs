//! Content that is put together of extents, such as those of a list of blocks.

use blob_model::limits::COMMITTED_BLOCKS_MAX;
use store::Fault;

use super::{Content, Contents, Extent, Fresh, MANIFEST_EXTENTS_MAX, Manifest, ROW_EXTENTS_MAX, stored};
use crate::Result;

/// Holds no more extents than one manifest has. If it is dropped before it is finished, the manifests that it has written are
/// removed.
#[derive(Debug)]
pub struct ContentJoiner {
    contents: Contents,
    content: Content,
    fresh: Fresh,
}

/// Content made of other content; no row names it yet.
#[derive(Debug)]
pub struct Joined {
    pub content: Content,
    /// To be kept until the commit has answered, and to be discarded if that was refused.
    pub fresh: Fresh,
}

impl Contents {
    pub fn joiner(&self) -> ContentJoiner {
        ContentJoiner { contents: self.clone(), content: Content::default(), fresh: Fresh::new(self) }
    }

    /// Writes a manifest, which is durable after `sync`.
    pub(super) async fn put_manifest(&self, fresh: &mut Fresh, extents: &[Extent]) -> Result<Manifest> {
        let object = self.put_object(fresh, &stored::write_manifest(extents)).await?;
        let length = extents.iter().map(|extent| extent.length).sum();
        let count =
            u32::try_from(extents.len()).map_err(|_| Fault::bug("a manifest has too many extents"))?;
        Ok(Manifest { object, length, extents: count })
    }
}

impl ContentJoiner {
    pub async fn push(&mut self, extent: Extent) -> Result<()> {
        if self.content.extent_count() >= COMMITTED_BLOCKS_MAX as u64 {
            return Err(Fault::bug("content of more extents than a list of blocks may have").into());
        }
        if self.content.extents.len() == MANIFEST_EXTENTS_MAX {
            self.put_manifest().await?;
        }
        self.content.extents.push(extent);
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Joined> {
        if self.content.extents.len() > ROW_EXTENTS_MAX {
            self.put_manifest().await?;
        }
        if !self.fresh.objects().is_empty() {
            self.contents.0.objects.sync(self.fresh.objects()).await?;
        }
        Ok(Joined { content: std::mem::take(&mut self.content), fresh: self.fresh.take() })
    }

    async fn put_manifest(&mut self) -> Result<()> {
        let manifest = self.contents.put_manifest(&mut self.fresh, &self.content.extents).await?;
        self.content.manifests.push(manifest);
        self.content.extents.clear();
        Ok(())
    }
}

impl Drop for ContentJoiner {
    fn drop(&mut self) {
        self.fresh.discard_later();
    }
}
