//! Snapshot Blob: a row of its own with the same content.

use blob_model::{Etag, Metadata, Operand, Refusal, SnapshotTime};

use super::put::snapshot_row;
use super::state::{self, Attempts, LeaseUse, Needs, NewRow};
use crate::blob_row::{Moves, StoredBlob};
use crate::{BlobRef, BlobService, Request, Result};

impl BlobService {
    /// With metadata of its own, or with the blob's, which stays as it is. With metadata of its own the snapshot has an ETag of
    /// its own too, which is returned; otherwise the blob's.
    pub async fn snapshot_blob(
        &self,
        blob: &BlobRef,
        metadata: Metadata,
        request: &Request,
    ) -> Result<(SnapshotTime, Etag)> {
        self.admit(blob)?;
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let needs = Needs { of: None, lease: LeaseUse::Read, operand: Operand::Write };
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let change = self.contents.begin_change();
            let found = self.base(&table, blob).await?.ok_or(Refusal::BlobNotFound)?;
            let stored = found.row.live().ok_or(Refusal::BlobNotFound)?;
            needs.check(stored, request, self.clock.now())?;
            state::check_online(stored)?;
            if !change.hold(&stored.content).await? {
                continue;
            }
            self.record_move(&blob.container.account, &stored.content).await?;
            let time = SnapshotTime(self.clock.tick_above(stored.snapshot_after()));
            let mut snapshot = StoredBlob { lease: Default::default(), ..stored.clone() };
            if !metadata.is_empty() {
                snapshot.metadata = metadata.clone();
                snapshot.modified = time.0;
            }
            let etag = snapshot.etag();
            let inherits = self.inherits(&table, blob, stored).await?;
            let mut row = found.row.clone();
            if let Some(base) = &mut row.blob {
                base.is_shared |= inherits;
                (base.has_snapshots, base.last_snapshot) = (true, Some(time.0));
                Self::after_snapshot(&mut base.kind);
            }
            let also = vec![snapshot_row(time, snapshot)?];
            let new = NewRow { row: &row, moves: Moves::Nothing, also };
            if self.replace(&table, blob, Some(&found), new, &change).await?.is_some() {
                return Ok((time, etag));
            }
        }
    }
}
