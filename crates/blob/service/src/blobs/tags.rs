//! Tags of a blob, and the hints by which Find Blobs by Tags finds it.
//!
//! A hint is a row without content, which says that a blob may have a tag. It is written before the commit that makes it
//! true, so that nothing is missed; what it says is checked when it is found.

use blob_model::{Operand, Tags};
use store::{Change, Condition, RowDraft, RowOperation, TableRef};

use super::state::{LeaseUse, Needs};
use crate::blob_key;
use crate::blob_row::Moves;
use crate::{BlobRef, BlobService, Request, Result, Which};

impl BlobService {
    pub async fn blob_tags(&self, blob: &BlobRef, which: Which, request: &Request) -> Result<Tags> {
        self.admit(blob)?;
        let stored = self.selected(&blob.container.table()?, blob, which).await?;
        Needs::READ.check(&stored, request, self.clock.now())?;
        Ok(stored.tags)
    }

    /// Replaces all of them. The ETag stays as it is.
    pub async fn set_blob_tags(
        &self,
        blob: &BlobRef,
        which: Which,
        tags: Tags,
        request: &Request,
    ) -> Result<()> {
        self.admit(blob)?;
        let needs = Needs { of: None, lease: LeaseUse::Write, operand: Operand::Write };
        if which == Which::Current {
            // Hints of what is refused below are removed when they are found.
            let table = blob.container.table()?;
            let stored = self.selected(&table, blob, which).await?;
            needs.check(&stored, request, self.clock.now())?;
            let _pass = self.gate.pass().await?;
            self.hint(&table, blob, &tags).await?;
        }
        let changed = self.change_state(blob, which, request, needs, Moves::Nothing, |stored, _| {
            stored.tags = tags.clone();
            Ok(())
        });
        changed.await.map(drop)
    }

    /// Says that the blob may have these tags. Whoever is about to commit them has permission to write.
    pub(crate) async fn hint(&self, table: &TableRef, blob: &BlobRef, tags: &Tags) -> Result<()> {
        for (key, value) in tags.iter() {
            let row = blob_key::tag_row(value, blob.name.as_str())?;
            let change = Change::Put(RowDraft::new([].into_iter()));
            // Also if it is there: it is young again, and nobody removes it before the commit.
            let operation = RowOperation { row, condition: Condition::Anything, change };
            self.apply(table, blob_key::tag_partition(key)?, vec![operation]).await?;
        }
        Ok(())
    }
}
