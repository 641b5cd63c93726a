//! Delete Blob with its choices of snapshots, and Undelete Blob.

use blob_model::{Leased, Operand, Refusal, SnapshotTime};
use store::{Change as RowChange, Condition, RowOperation, TableRef};

use super::cleanup::ComparedStates;
use super::state::{self, Attempts, Found, FoundSnapshot, LeaseUse, Needs, SnapshotPage};
use crate::blob_key;
use crate::blob_row::{BlobRow, Deletion, Moves, StoredBlob};
use crate::content::Change;
use crate::{BlobRef, BlobService, DeleteBlob, DeleteSnapshots, Deleted, Request, Result, Which};

/// A row that goes, or that is kept as deleted.
struct Doomed {
    time: SnapshotTime,
    condition: Condition,
    blob: StoredBlob,
}

impl Doomed {
    fn of(FoundSnapshot { time, blob, version }: FoundSnapshot) -> Self {
        Self { time, condition: Condition::Version(version), blob }
    }
}

impl BlobService {
    pub async fn delete_blob(
        &self,
        blob: &BlobRef,
        delete: DeleteBlob,
        request: &Request,
    ) -> Result<Deleted> {
        self.admit(blob)?;
        self.delete_unmetered(blob, delete, request).await
    }

    /// The same, of nobody's target.
    pub(crate) async fn delete_unmetered(
        &self,
        blob: &BlobRef,
        delete: DeleteBlob,
        request: &Request,
    ) -> Result<Deleted> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let deleted = match delete.which {
                Which::Current => self.delete_base(&table, blob, &delete, request).await?,
                Which::Snapshot(_) | Which::Version(_) => {
                    self.delete_one(&table, blob, &delete, request).await?
                }
            };
            if let Some(deleted) = deleted {
                return Ok(deleted);
            }
        }
    }

    /// One attempt to delete a snapshot.
    async fn delete_one(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        delete: &DeleteBlob,
        request: &Request,
    ) -> Result<Option<Deleted>> {
        let change = self.contents.begin_change();
        let (time, found) = match delete.is_permanent {
            true => self.selected_or_deleted_row(table, blob, delete.which).await?,
            false => self.selected_row(table, blob, delete.which).await?,
        };
        let stored = found.row.blob.as_ref().ok_or(Refusal::BlobNotFound)?;
        Needs::WRITE.check(stored, request, self.clock.now())?;
        let deletion = match delete.is_permanent {
            true => {
                self.check_removal(blob, stored).await?;
                None
            }
            false => self.retained(blob, stored, self.clock.now()).await?,
        };
        let doomed = Doomed { time, condition: state::held_to(Some(&found)), blob: stored.clone() };
        let operation = doom(&doomed, deletion)?;
        if self.apply(table, blob_key::partition(&blob.name)?, vec![operation]).await?.is_none() {
            return Ok(None);
        }
        if deletion.is_none() {
            let base = self.base(table, blob).await?.and_then(|found| found.row.blob);
            // The mark is that of the blob which had the snapshot. It may be gone, or another one by now.
            let is_shared = base.as_ref().is_none_or(|base| base.is_shared || !base.has_snapshots);
            let gone = StoredBlob { has_snapshots: true, ..stored.clone() };
            self.remove_states(table, blob, &[&gone], base.as_ref(), is_shared, &change).await;
        }
        Ok(Some(Deleted { is_permanent: deletion.is_none() }))
    }

    /// Only what was deleted and is still kept can be removed, and only if the account permits it.
    async fn check_removal(&self, blob: &BlobRef, stored: &StoredBlob) -> Result<()> {
        if !self.retention.permits_removal(&blob.container.account).await? {
            return Err(Refusal::PermanentDeleteOff.into());
        }
        match stored.deleted {
            Some(_) => Ok(()),
            None => Err(Refusal::OperationNotSupported.into()),
        }
    }

    /// One attempt to delete a blob, its snapshots, or both.
    async fn delete_base(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        delete: &DeleteBlob,
        request: &Request,
    ) -> Result<Option<Deleted>> {
        let change = self.contents.begin_change();
        let found = self.base(table, blob).await?.ok_or(Refusal::BlobNotFound)?;
        let Some(stored) = found.row.live() else {
            // Uncommitted blocks are neither snapshots nor what was deleted and is kept.
            if delete.snapshots == Some(DeleteSnapshots::Only) || delete.is_permanent {
                return Err(Refusal::BlobNotFound.into());
            }
            return self.delete_uncommitted(table, blob, &found, request, &change).await;
        };
        let now = self.clock.now();
        let is_only = delete.snapshots == Some(DeleteSnapshots::Only);
        let lease = if is_only { LeaseUse::Read } else { LeaseUse::Write };
        Needs { of: None, lease, operand: Operand::Write }.check(stored, request, now)?;
        if delete.is_permanent {
            self.check_removal(blob, stored).await?;
        }
        let is_live = |state: &StoredBlob| state.deleted.is_none();
        if delete.snapshots.is_none()
            && stored.has_snapshots
            && self.has_snapshot(table, blob, is_live).await?
        {
            return Err(Refusal::SnapshotsPresent.into());
        }
        let deletion = self.retained(blob, stored, now).await?;
        let payer = self.contents.memory_of(&blob.container.account);
        let mut gone = ComparedStates::charged_to(payer);
        let mut from = Some(None).filter(|_| delete.snapshots.is_some() && stored.has_snapshots);
        loop {
            let page = match from {
                Some(from) => self.snapshots(table, blob, from).await?,
                None => SnapshotPage { snapshots: Vec::new(), next: None },
            };
            let live = page.snapshots.into_iter().filter(|snapshot| is_live(&snapshot.blob));
            let mut doomed: Vec<Doomed> = live.map(Doomed::of).collect();
            let is_last = page.next.is_none();
            // With the last snapshots, so that a blob never goes before them.
            if is_last && !is_only {
                let condition = state::held_to(Some(&found));
                doomed.push(Doomed { time: SnapshotTime::BASE, condition, blob: stored.clone() });
            }
            if !doomed.is_empty() {
                let operations = doomed.iter().map(|row| doom(row, deletion));
                let operations = operations.collect::<std::result::Result<_, _>>()?;
                if self.apply(table, blob_key::partition(&blob.name)?, operations).await?.is_none() {
                    return Ok(None);
                }
            }
            doomed.iter().for_each(|row| gone.add(&row.blob));
            if is_last {
                break;
            }
            from = Some(page.next);
        }
        if let Some(upload) = found.row.upload.filter(|_| !is_only) {
            self.end_upload(table, blob, upload.id, &change, &[]).await;
        }
        if let (None, Some(gone)) = (deletion, gone.whole()) {
            let gone: Vec<&StoredBlob> = gone.iter().collect();
            let base = Some(stored).filter(|_| is_only);
            self.remove_states(table, blob, &gone, base, stored.is_shared, &change).await;
        }
        Ok(Some(Deleted { is_permanent: deletion.is_none() }))
    }

    /// A blob that has nothing but uncommitted blocks can be deleted too.
    async fn delete_uncommitted(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        found: &Found,
        request: &Request,
        change: &Change,
    ) -> Result<Option<Deleted>> {
        let upload = found.row.upload.ok_or(Refusal::BlobNotFound)?;
        if request.lease.is_some() {
            return Err(Refusal::LeaseNotPresent(Leased::Blob).into());
        }
        request.conditions.check(None, Operand::Write, false)?;
        let mut row = found.row.clone();
        row.upload = None;
        // What was deleted before stays.
        let change_row = match row.blob {
            Some(_) => RowChange::Put(row.draft(Moves::Nothing)),
            None => RowChange::Delete,
        };
        let condition = state::held_to(Some(found));
        let operation =
            RowOperation { row: blob_key::row(SnapshotTime::BASE)?, condition, change: change_row };
        if self.apply(table, blob_key::partition(&blob.name)?, vec![operation]).await?.is_none() {
            return Ok(None);
        }
        self.end_upload(table, blob, upload.id, change, &[]).await;
        Ok(Some(Deleted { is_permanent: true }))
    }

    /// Restores a blob and its snapshots that were deleted and are still kept.
    pub async fn undelete_blob(&self, blob: &BlobRef) -> Result<()> {
        self.admit(blob)?;
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        while !self.try_undelete(&table, blob).await? {
            attempts.next()?;
        }
        Ok(())
    }

    async fn try_undelete(&self, table: &TableRef, blob: &BlobRef) -> Result<bool> {
        let now = self.clock.now();
        let found = self.base(table, blob).await?.ok_or(Refusal::BlobNotFound)?;
        let base = found.row.blob.as_ref().filter(|base| is_there(base, now)).ok_or(Refusal::BlobNotFound)?;
        // The blob first, so that there are never snapshots of none. Snapshots may be there although it says that it has
        // none: those of a blob that was deleted for good before this one was put.
        let can_be_restored = |state: &StoredBlob| state.deleted.is_some() && is_there(state, now);
        if base.deleted.is_some()
            || !base.has_snapshots && self.has_snapshot(table, blob, can_be_restored).await?
        {
            self.hint(table, blob, &base.tags).await?;
            let is_shared = base.is_shared || self.inherits(table, blob, base).await?;
            let mut row = found.row.clone();
            row.blob = Some(StoredBlob { deleted: None, has_snapshots: true, is_shared, ..base.clone() });
            let change = RowChange::Put(row.draft(Moves::Nothing));
            let condition = state::held_to(Some(&found));
            let operation = RowOperation { row: blob_key::row(SnapshotTime::BASE)?, condition, change };
            if self.apply(table, blob_key::partition(&blob.name)?, vec![operation]).await?.is_none() {
                return Ok(false);
            }
        }
        let mut from = None;
        loop {
            let page = self.snapshots(table, blob, from).await?;
            let mut operations = Vec::new();
            for FoundSnapshot { time, blob, version } in page.snapshots {
                if can_be_restored(&blob) {
                    let row = BlobRow::of(StoredBlob { deleted: None, ..blob });
                    let change = RowChange::Put(row.draft(Moves::Nothing));
                    let condition = Condition::Version(version);
                    operations.push(RowOperation { row: blob_key::row(time)?, condition, change });
                }
            }
            if !operations.is_empty()
                && self.apply(table, blob_key::partition(&blob.name)?, operations).await?.is_none()
            {
                return Ok(false);
            }
            if page.next.is_none() {
                return Ok(true);
            }
            from = page.next;
        }
    }
}

/// Whether it was not deleted, or can still be restored.
pub(crate) fn is_there(blob: &StoredBlob, now: blob_model::DateTime) -> bool {
    blob.deleted.is_none_or(|deletion| now < deletion.until)
}

/// The row goes, or is kept for so long. A deleted blob has no lease, and its ETag stays.
fn doom(doomed: &Doomed, deletion: Option<Deletion>) -> std::result::Result<RowOperation, store::Fault> {
    let change = match deletion {
        None => RowChange::Delete,
        Some(_) => {
            let kept = StoredBlob { deleted: deletion, lease: Default::default(), ..doomed.blob.clone() };
            RowChange::Put(BlobRow::of(kept).draft(Moves::Nothing))
        }
    };
    Ok(RowOperation { row: blob_key::row(doomed.time)?, condition: doomed.condition, change })
}
