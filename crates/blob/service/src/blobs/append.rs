//! Append Block, and Seal.

use blob_model::{BlobType, DateTime, Etag, Refusal, limits};

use super::state::{self, Attempts, Needs, NewRow};
use crate::blob_row::{Moves, StoredBlob, StoredKind};
use crate::content::{BlobKey, Keep, Written};
use crate::{AppendCondition, Appended, BlobRef, BlobService, BodyChecks, Request, Result, Upload};

/// A blob with more content behind it.
#[derive(Debug)]
pub(crate) struct Extended<T> {
    pub told: T,
    pub etag: Etag,
    /// Where the new content begins.
    pub offset: u64,
}

impl AppendCondition {
    /// For so many bytes more.
    fn check(&self, length: u64, bytes: u64) -> std::result::Result<(), Refusal> {
        if self.position.is_some_and(|position| position != length) {
            return Err(Refusal::AppendPositionNotMet);
        }
        match self.max_size {
            Some(max) if length + bytes > max => Err(Refusal::MaxBlobSizeNotMet),
            _ => Ok(()),
        }
    }
}

impl BlobService {
    pub async fn append_block(
        &self,
        blob: &BlobRef,
        checks: BodyChecks,
        condition: AppendCondition,
        request: &Request,
        body: &mut dyn Upload,
    ) -> Result<Appended> {
        self.admit(blob)?;
        let needs = Needs::WRITE.of(BlobType::Append);
        self.check_append_target(blob, condition, request, needs).await?;
        let written = self.receive(&blob.container.account, body, checks, Keep::SmallInRow, false).await?;
        let appended = self.append_written(blob, &written, condition, request, needs).await;
        self.keep_or_discard(appended, written.fresh).await
    }

    /// What would be refused anyway is refused before its body is read.
    pub(crate) async fn check_append_target(
        &self,
        blob: &BlobRef,
        condition: AppendCondition,
        request: &Request,
        needs: Needs,
    ) -> Result<()> {
        drop(self.gate.pass().await?);
        let stored = self.selected(&blob.container.table()?, blob, crate::Which::Current).await?;
        needs.check(&stored, request, self.clock.now())?;
        condition.check(stored.length, 0)?;
        check_unsealed(&stored)?;
        Ok(())
    }

    pub(crate) async fn append_written(
        &self,
        blob: &BlobRef,
        written: &Written,
        condition: AppendCondition,
        request: &Request,
        needs: Needs,
    ) -> Result<Appended> {
        if written.length == 0 {
            return Err(Refusal::HeaderInvalid { name: "Content-Length", value: "0".to_owned() }.into());
        }
        let judge = |stored: &mut StoredBlob, now| {
            needs.check(stored, request, now)?;
            condition.check(stored.length, written.length)?;
            let blocks = check_unsealed(stored)?;
            if blocks >= limits::APPENDED_BLOCKS_MAX {
                return Err(Refusal::TooManyCommittedBlocks);
            }
            stored.kind = StoredKind::Append { blocks: blocks + 1, is_sealed: false };
            stored.lease = stored.lease.after_write(now);
            stored.copy = None;
            Ok(blocks + 1)
        };
        let Extended { told: blocks, etag, offset } = self.extend_blob(blob, written, judge).await?;
        Ok(Appended { etag, offset, blocks, sums: written.sums })
    }

    /// Puts what was written behind the content of a blob. `judge` sees the blob as it is, changes what else of it changes, or
    /// refuses.
    pub(crate) async fn extend_blob<T>(
        &self,
        blob: &BlobRef,
        written: &Written,
        judge: impl Fn(&mut StoredBlob, DateTime) -> std::result::Result<T, Refusal> + Send,
    ) -> Result<Extended<T>> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let change = self.contents.begin_change();
            // The last manifest is read below.
            let pin = self.contents.pin(BlobKey::of(blob));
            let mut found = self.base(&table, blob).await?.ok_or(Refusal::BlobNotFound)?;
            let mut row = std::mem::take(&mut found.row);
            let stored = row.live_mut().ok_or(Refusal::BlobNotFound)?;
            let told = judge(stored, self.clock.now())?;
            let offset = stored.length;
            let may_remove = !stored.is_shared && !stored.has_snapshots;
            let appended = self.contents.append(&stored.content, written).await?;
            drop(pin);
            stored.content = appended.content;
            stored.length = offset + written.length;
            change.keep(appended.fresh);
            let outcome =
                self.replace(&table, blob, Some(&found), NewRow::alone(&row, Moves::Etag), &change).await;
            match outcome {
                Ok(Some(stamp)) => {
                    if may_remove {
                        // What can't be removed is left to the sweep.
                        let _ = change.remove(BlobKey::of(blob), appended.replaced).await;
                    }
                    return Ok(Extended { told, etag: Etag(stamp), offset });
                }
                Ok(None) => change.discard().await,
                Err(error) => return Err(state::given_up(error, change).await),
            }
        }
    }

    pub async fn seal_blob(
        &self,
        blob: &BlobRef,
        condition: AppendCondition,
        request: &Request,
    ) -> Result<Etag> {
        self.admit(blob)?;
        let needs = Needs::WRITE.of(BlobType::Append);
        let changed = self.change_blob(blob, request, needs, Moves::Etag, |stored, _| {
            condition.check(stored.length, 0)?;
            if let StoredKind::Append { is_sealed, .. } = &mut stored.kind {
                *is_sealed = true;
            }
            Ok(())
        });
        Ok(changed.await?.1.etag())
    }
}

/// The blocks of an append blob that can be appended to.
fn check_unsealed(stored: &StoredBlob) -> std::result::Result<u32, Refusal> {
    match stored.kind {
        StoredKind::Append { is_sealed: true, .. } => Err(Refusal::BlobSealed),
        StoredKind::Append { blocks, .. } => Ok(blocks),
        StoredKind::Block { .. } | StoredKind::Page { .. } => Err(Refusal::BlobTypeInvalid),
    }
}
