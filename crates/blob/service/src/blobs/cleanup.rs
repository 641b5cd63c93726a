//! What goes after a commit: content that no row names any more, uncommitted blocks, pages.
//!
//! Nothing here can fail an operation: its commit is done. What is not removed now is found by the sweep.

use std::collections::BTreeSet;

use blob_model::BlockId;
use model::limits;
use store::{
    AccountMemory, Change as RowChange, Condition, MemoryShare, ObjectId, RowOperation, Scan, TableRef,
};

use super::state::budget;
use crate::blob_key::{self, UploadId};
use crate::blob_row::{self, StoredBlob, StoredKind};
use crate::content::{BlobKey, Change, Content};
use crate::{BlobRef, BlobService, Result};

/// Rows that one transaction deletes.
const DELETED_AT_ONCE: usize = limits::BATCH_OPERATIONS_MAX;
/// States of a blob whose contents are compared before something is removed. If there are more, the sweep does it.
const COMPARED_MAX: usize = 500;

/// States of a blob whose contents are compared, with the memory that they take: each has up to 128 extents.
pub(crate) struct ComparedStates {
    states: Vec<StoredBlob>,
    bytes: usize,
    held: Option<MemoryShare>,
    is_whole: bool,
}

impl ComparedStates {
    pub(crate) fn charged_to(payer: Option<AccountMemory>) -> Self {
        let held = payer.map(|payer| payer.nothing());
        Self { states: Vec::new(), bytes: 0, held, is_whole: true }
    }

    /// If there are too many, or no memory for one more, none are kept.
    pub(crate) fn add(&mut self, state: &StoredBlob) {
        if !self.is_whole {
            return;
        }
        // A vector that grows has room for as many again.
        self.bytes += 2 * size_of::<StoredBlob>() + state.content.extent_bytes();
        if self.states.len() < COMPARED_MAX && self.held.as_mut().is_none_or(|held| held.resize(self.bytes)) {
            self.states.push(named_by(state));
        } else {
            (self.is_whole, self.states, self.held) = (false, Vec::new(), None);
        }
    }

    /// All that were added; `None` if some could not be kept.
    pub(crate) fn whole(&self) -> Option<&[StoredBlob]> {
        self.is_whole.then_some(&self.states)
    }
}

/// What matters of a state when its content is compared.
fn named_by(state: &StoredBlob) -> StoredBlob {
    let named = StoredBlob::new(state.kind, state.content.without_bytes(), state.length);
    StoredBlob { is_shared: state.is_shared, has_snapshots: state.has_snapshots, ..named }
}

impl BlobService {
    /// Removes the content of states of the blob that are gone, but for what others of its states have. `base` is the blob as
    /// it is now. `change` began before the rows were read. Nothing goes if the blob was shared with another one.
    pub(crate) async fn remove_states(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        gone: &[&StoredBlob],
        base: Option<&StoredBlob>,
        is_shared: bool,
        change: &Change,
    ) {
        let has_objects = |gone: &&StoredBlob| {
            gone.content.extent_count() > 0 || matches!(gone.kind, StoredKind::Page { .. })
        };
        if !is_shared && gone.iter().any(has_objects) {
            // What can't be done is left to the sweep.
            let _ = self.try_remove_states(table, blob, gone, base, change).await;
        }
    }

    async fn try_remove_states(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        gone: &[&StoredBlob],
        base: Option<&StoredBlob>,
        change: &Change,
    ) -> Result<()> {
        let payer = self.contents.memory_of(&blob.container.account);
        let mut snapshots = ComparedStates::charged_to(payer.clone());
        if gone.iter().copied().chain(base).any(|state| state.has_snapshots) {
            let mut from = None;
            loop {
                let page = self.snapshots(table, blob, from).await?;
                page.snapshots.iter().for_each(|snapshot| snapshots.add(&snapshot.blob));
                if page.next.is_none() || snapshots.whole().is_none() {
                    break;
                }
                from = page.next;
            }
        }
        let Some(snapshots) = snapshots.whole() else { return Ok(()) };
        let kept: Vec<&StoredBlob> = base.into_iter().chain(snapshots).collect();
        let contents: Vec<&Content> = kept.iter().map(|kept| &kept.content).collect();
        let mut maps = BTreeSet::new();
        for gone in gone {
            match gone.kind {
                // The map of all its states is one.
                StoredKind::Page { map, .. } if maps.insert(map.id) => {
                    self.remove_pages(table, blob, map, &kept, change).await?;
                }
                StoredKind::Page { .. } => {}
                StoredKind::Block { .. } | StoredKind::Append { .. } => {
                    let key = BlobKey::of(blob);
                    change.remove_content(key, &gone.content, &contents, payer.as_ref()).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes the rows of an upload that is not open any more, and its content but for these objects.
    pub(crate) async fn end_upload(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        upload: UploadId,
        change: &Change,
        kept: &[ObjectId],
    ) {
        let _ = self.try_end_upload(table, blob, upload, change, kept).await;
    }

    async fn try_end_upload(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        upload: UploadId,
        change: &Change,
        kept: &[ObjectId],
    ) -> Result<()> {
        let partition = blob_key::block_partition(&blob.name)?;
        loop {
            let ranges = vec![blob_key::blocks(partition.as_str(), upload, None)];
            let scan = Scan { ranges, budget: budget(DELETED_AT_ONCE), filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            let (mut operations, mut objects) = (Vec::new(), Vec::new());
            for entity in page.entities.iter() {
                let row = entity.key()?.row;
                operations.push(RowOperation {
                    row,
                    condition: Condition::Anything,
                    change: RowChange::Delete,
                });
                let content = blob_row::read_block(entity.row)?;
                objects.extend(content.row_extents().iter().map(|extent| extent.object));
            }
            if operations.is_empty() {
                return Ok(());
            }
            self.apply(table, partition.clone(), operations).await?;
            // In order, as their caller has them.
            objects.retain(|object| kept.binary_search(object).is_err());
            change.remove(BlobKey::of(blob), objects).await?;
        }
    }

    /// Removes one block that came too late for its upload.
    pub(crate) async fn remove_block(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        upload: UploadId,
        id: &BlockId,
        content: &Content,
        change: &Change,
    ) {
        let _ = async {
            let row = blob_key::block_row(upload, id)?;
            let operation = RowOperation { row, condition: Condition::Anything, change: RowChange::Delete };
            self.apply(table, blob_key::block_partition(&blob.name)?, vec![operation]).await?;
            let objects = content.row_extents().iter().map(|extent| extent.object).collect();
            change.remove(BlobKey::of(blob), objects).await
        }
        .await;
    }
}
