//! Put Blob: a new blob, over the one that was there or where none was.

use blob_model::{
    AccessTier, AccountName, BlobType, ContentHeaders, DateTime, Etag, Operand, Refusal, SnapshotTime,
    TierState,
};
use store::{Change as RowChange, Condition, RowOperation, TableRef};

use super::state::{self, Attempts, Found, NewRow};
use crate::blob_key;
use crate::blob_row::{BlobRow, Deletion, Moves, StoredBlob, StoredKind};
use crate::content::{Change, Content, Fresh, Keep, Written};
use crate::{BlobRef, BlobService, BodyChecks, NewBlob, NewPageBlob, Request, Result, Stored, Upload};

/// Of a blob that is put without one.
const DEFAULT_TYPE: &str = "application/octet-stream";

impl BlobService {
    /// Put Blob of a block blob.
    pub async fn put_block_blob(
        &self,
        blob: &BlobRef,
        new: NewBlob,
        checks: BodyChecks,
        request: &Request,
        body: &mut dyn Upload,
    ) -> Result<Stored> {
        self.admit(blob)?;
        let tier = new_tier(new.tier, BlobType::Block, self.clock.now())?;
        let look = self.check_writable(blob, request, Operand::Create, new.tier.is_some()).await?;
        let written = self.receive(&blob.container.account, body, checks, Keep::SmallInRow, true).await?;
        let Written { content, length, sums, fresh } = written;
        let stored = match sums.check(new.content.md5, None) {
            Ok(()) => {
                let mut stored = new_blob(new, StoredKind::Block { tier }, content, length);
                stored.headers.md5 = sums.md5;
                // What takes longer to be read is not held to what was there before.
                let look = Some(look).filter(|_| fresh.objects().is_empty());
                self.put_new(blob, stored, request, Operand::Create, look).await
            }
            Err(refusal) => Err(refusal.into()),
        };
        let etag = self.keep_or_discard(stored, fresh).await?;
        Ok(Stored { etag, sums })
    }

    /// Put Blob of an append blob, which is empty.
    pub async fn put_append_blob(&self, blob: &BlobRef, new: NewBlob, request: &Request) -> Result<Etag> {
        self.admit(blob)?;
        no_tier(new.tier, BlobType::Append)?;
        let kind = StoredKind::Append { blocks: 0, is_sealed: false };
        self.put_new(blob, new_blob(new, kind, Content::default(), 0), request, Operand::Create, None).await
    }

    /// Put Blob of a page blob, all of whose pages are empty.
    pub async fn put_page_blob(&self, blob: &BlobRef, page: NewPageBlob, request: &Request) -> Result<Etag> {
        self.admit(blob)?;
        let NewPageBlob { new, length, sequence_number } = page;
        no_tier(new.tier, BlobType::Page)?;
        let (map, changed) = (Self::new_page_map(), DateTime::MIN_STORED);
        let kind = StoredKind::Page { sequence_number, map, changed };
        self.put_new(blob, new_blob(new, kind, Content::default(), length), request, Operand::Create, None)
            .await
    }

    /// What would be refused anyway is refused before its body is read.
    pub(crate) async fn check_writable(
        &self,
        blob: &BlobRef,
        request: &Request,
        operand: Operand,
        names_tier: bool,
    ) -> Result<FirstLook> {
        drop(self.gate.pass().await?);
        let look = self.look_at(blob).await?;
        look.check(request, operand, names_tier, self.clock.now())?;
        Ok(look)
    }

    async fn look_at(&self, blob: &BlobRef) -> Result<FirstLook> {
        let change = self.contents.begin_change();
        let found = self.base(&blob.container.table()?, blob).await?;
        Ok(FirstLook { change, found })
    }

    /// Reads a body to its end into content that no row names yet.
    pub(crate) async fn receive(
        &self,
        account: &AccountName,
        body: &mut dyn Upload,
        checks: BodyChecks,
        keep: Keep,
        with_md5: bool,
    ) -> Result<Written> {
        let writer = self.contents.writer(keep, with_md5 || checks.md5.is_some());
        let mut writer = writer.charged_to(account);
        while let Some(piece) = body.next().await? {
            if writer.length() + piece.len() as u64 > checks.bytes_max {
                return Err(Refusal::BodyTooLarge { max: checks.bytes_max }.into());
            }
            writer.push(piece).await?;
        }
        let written = writer.finish().await?;
        match written.sums.check(checks.md5, checks.crc64) {
            Ok(()) => Ok(written),
            Err(refusal) => {
                written.fresh.discard().await;
                Err(refusal.into())
            }
        }
    }

    /// Content goes if its commit was refused for certain.
    pub(crate) async fn keep_or_discard<T>(&self, outcome: Result<T>, fresh: Fresh) -> Result<T> {
        if let Err(error) = &outcome
            && state::is_certain(error)
        {
            fresh.discard().await;
        }
        outcome
    }

    /// Puts a new blob, after its checks; first over what was seen there before.
    pub(crate) async fn put_new(
        &self,
        blob: &BlobRef,
        new: StoredBlob,
        request: &Request,
        operand: Operand,
        mut seen: Option<FirstLook>,
    ) -> Result<Etag> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let names_tier = state::tier_of(&new).is_some_and(|tier| tier.changed.is_some());
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let look = match seen.take() {
                Some(look) => look,
                None => self.look_at(blob).await?,
            };
            look.check(request, operand, names_tier, self.clock.now())?;
            let FirstLook { change, found } = look;
            if let Some(stamp) =
                self.put_over(&table, blob, found.as_ref(), new.clone(), &change, &[]).await?
            {
                return Ok(Etag(stamp));
            }
        }
    }

    /// Puts a new blob over what was found there, in one attempt. Keeps the snapshots and the lease, and drops uncommitted
    /// blocks. What was there is kept as a deleted snapshot if the account keeps what is deleted; else it goes.
    pub(crate) async fn put_over(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        found: Option<&Found>,
        mut new: StoredBlob,
        change: &Change,
        kept_blocks: &[store::ObjectId],
    ) -> Result<Option<DateTime>> {
        let now = self.clock.now();
        let old = found.and_then(|found| found.row.blob.as_ref());
        let mut also = Vec::new();
        let mut is_retained = false;
        if let Some(old) = old {
            (new.has_snapshots, new.last_snapshot) = (old.has_snapshots, old.last_snapshot);
            if old.deleted.is_none() {
                new.lease = old.lease.after_write(now);
            }
            if let Some(deletion) = self.retained(blob, old, now).await? {
                self.record_move(&blob.container.account, &old.content).await?;
                let snapshot =
                    StoredBlob { deleted: Some(deletion), lease: Default::default(), ..old.clone() };
                let time = self.clock.tick_above(old.snapshot_after());
                also.push(snapshot_row(SnapshotTime(time), snapshot)?);
                new.is_shared |= self.inherits(table, blob, old).await?;
                new.last_snapshot = Some(time);
                (new.has_snapshots, is_retained) = (true, true);
            }
            // The mark is the blob's, and its snapshots may have what was shared.
            new.is_shared |= old.is_shared && new.has_snapshots;
        }
        self.hint(table, blob, &new.tags).await?;
        let row = BlobRow::of(new);
        let new = NewRow { row: &row, moves: Moves::All, also };
        let Some(stamp) = self.replace(table, blob, found, new, change).await? else {
            return Ok(None);
        };
        if let Some(upload) = found.and_then(|found| found.row.upload) {
            self.end_upload(table, blob, upload.id, change, kept_blocks).await;
        }
        if let (Some(old), false) = (old, is_retained) {
            self.remove_states(table, blob, &[old], row.blob.as_ref(), old.is_shared, change).await;
        }
        Ok(Some(stamp))
    }

    /// How long this state of a blob is kept when it is replaced or deleted now.
    pub(crate) async fn retained(
        &self,
        blob: &BlobRef,
        old: &StoredBlob,
        now: DateTime,
    ) -> Result<Option<Deletion>> {
        if let Some(deletion) = old.deleted {
            return Ok(Some(deletion).filter(|deletion| now < deletion.until));
        }
        // Logs go when their own time is over.
        if blob.container.name.is_logs() {
            return Ok(None);
        }
        let days = self.retention.days(&blob.container.account).await?;
        Ok(days.map(|days| Deletion { time: now, until: now.plus(DAY * u32::from(days)) }))
    }
}

/// What is there before something is put; and the change that goes by it.
#[derive(Debug)]
pub(crate) struct FirstLook {
    change: Change,
    found: Option<Found>,
}

impl FirstLook {
    fn check(
        &self,
        request: &Request,
        operand: Operand,
        names_tier: bool,
        now: DateTime,
    ) -> std::result::Result<(), Refusal> {
        let there = self.found.as_ref().and_then(|found| found.row.live());
        state::check_new(there, request, operand, now)?;
        state::check_overwrite(there, names_tier)
    }
}

const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// The row of a new snapshot.
pub(crate) fn snapshot_row(
    time: SnapshotTime,
    blob: StoredBlob,
) -> std::result::Result<RowOperation, store::Fault> {
    let change = RowChange::Put(BlobRow::of(blob).draft(Moves::Nothing));
    Ok(RowOperation { row: blob_key::row(time)?, condition: Condition::Absent, change })
}

/// A blob that is not stored yet, as its request has it.
pub(crate) fn new_blob(new: NewBlob, kind: StoredKind, content: Content, length: u64) -> StoredBlob {
    let NewBlob { content: headers, metadata, tags, tier: _ } = new;
    let content_type = Some(headers.content_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()));
    let headers = ContentHeaders { content_type, ..headers };
    StoredBlob { headers, metadata, tags, ..StoredBlob::new(kind, content, length) }
}

/// The tier of a new blob.
pub(crate) fn new_tier(
    asked: Option<AccessTier>,
    of: BlobType,
    now: DateTime,
) -> std::result::Result<TierState, Refusal> {
    match asked {
        None => Ok(TierState::INFERRED),
        Some(tier) => Ok(TierState::set(AccessTier::asked(tier.name(), of)?, now)),
    }
}

/// Only block blobs have a tier.
pub(crate) fn no_tier(asked: Option<AccessTier>, of: BlobType) -> std::result::Result<(), Refusal> {
    asked.map_or(Ok(()), |tier| AccessTier::asked(tier.name(), of).map(drop))
}
