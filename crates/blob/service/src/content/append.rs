//! Content with more content behind it, at a cost that does not grow with the blob.
//!
//! Small appends gather in the row, up to 4 KiB, and become one extent then; extents gather in the row, up to 128, and go into
//! the last manifest then, which is written again with them until it is full.

use blob_model::Crc64;
use store::ObjectId;

use super::{
    Content, Contents, Extent, Fresh, INLINE_BYTES_MAX, MANIFEST_EXTENTS_MAX, ROW_EXTENTS_MAX, Written,
};
use crate::Result;

/// What became of content by an append; no row names it yet.
#[derive(Debug)]
pub struct Appended {
    pub content: Content,
    /// What was written for it besides the append itself. To be kept until the commit has answered, and to be discarded if
    /// that was refused.
    pub fresh: Fresh,
    /// Objects that the content before needed and this one does not, to be removed after the commit unless they are shared or
    /// a snapshot has them.
    pub replaced: Vec<ObjectId>,
}

impl Contents {
    pub async fn append(&self, content: &Content, written: &Written) -> Result<Appended> {
        let (content, replaced) = (content.clone(), Vec::new());
        let mut appended = Appended { content, fresh: Fresh::new(self), replaced };
        match self.extend(&mut appended, &written.content).await {
            Ok(()) => Ok(appended),
            Err(error) => {
                appended.fresh.discard().await;
                Err(error)
            }
        }
    }

    async fn extend(&self, appended: &mut Appended, behind: &Content) -> Result<()> {
        let gathered = [&appended.content.inline[..], &behind.inline].concat();
        if behind.extents.is_empty() && gathered.len() <= INLINE_BYTES_MAX {
            appended.content.inline = gathered.into();
            return Ok(());
        }
        if !gathered.is_empty() {
            let object = self.put_object(&mut appended.fresh, &gathered).await?;
            let length = gathered.len() as u64;
            let extent = Extent { object, start: 0, length, crc64: Crc64::of(&gathered), block: None };
            appended.content.extents.push(extent);
            appended.content.inline.clear();
        }
        appended.content.extents.extend_from_slice(&behind.extents);
        if appended.content.extents.len() >= ROW_EXTENTS_MAX {
            self.spill(appended).await?;
        }
        if !appended.fresh.objects().is_empty() {
            self.0.objects.sync(appended.fresh.objects()).await?;
        }
        Ok(())
    }

    /// Moves the row's extents into manifests.
    async fn spill(&self, appended: &mut Appended) -> Result<()> {
        let content = &mut appended.content;
        let mut extents = std::mem::take(&mut content.extents);
        if let Some(last) = content.manifests.pop_if(|last| (last.extents as usize) < MANIFEST_EXTENTS_MAX) {
            appended.replaced.push(last.object);
            let mut listed = self.extents_of(&last).await?;
            listed.append(&mut extents);
            extents = listed;
        }
        for some in extents.chunks(MANIFEST_EXTENTS_MAX) {
            let manifest = self.put_manifest(&mut appended.fresh, some).await?;
            appended.content.manifests.push(manifest);
        }
        Ok(())
    }
}
