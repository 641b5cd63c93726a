//! Copy Blob, and Copy Blob From URL: a blob with the objects of another one. Copies are done when they are answered.
//!
//! Before its commit a copy marks the source's blob as shared, under the version of its row. From then on nobody removes the
//! source's content at once, whatever becomes of its rows; the sweep looks at all rows. The copy is marked too.

use blob_model::{
    AccessTier, BlobType, CopyState, CopyStatus, Crc64, DateTime, Etag, Guid, LeaseId, Operand, Refusal,
    RehydratePriority, SnapshotTime, Span, TierState, limits,
};

use super::put::no_tier;
use super::source;
use super::state::{self, Attempts, LeaseUse, Needs, NewRow, Selected};
use crate::blob_row::{Moves, StoredBlob, StoredKind};
use crate::content::{BlobKey, Change, Content};
use crate::{
    BlobRef, BlobService, Copied, CopyBlob, CopySource, CopyTags, Error, RangeChecksum, Request, Result,
};

impl BlobService {
    pub async fn copy_blob(&self, blob: &BlobRef, copy: CopyBlob, request: &Request) -> Result<Copied> {
        self.admit(blob)?;
        let _pass = self.gate.pass().await?;
        self.engine.find_table(&blob.container.table()?).await?;
        // Of the source with this ETag.
        let mut checked = match copy.source_md5 {
            Some(md5) => Some(self.check_source_md5(&copy.source, md5).await?),
            None => None,
        };
        let mut crc64: Option<(Etag, Crc64)> = None;
        let _turn = self.turns.take(blob).await;
        let id = Guid(rand::random());
        let mut attempts = Attempts::of_copy();
        loop {
            attempts.next()?;
            let change = self.contents.begin_change();
            let source = self.share(blob, &copy, &change).await?;
            let etag = source.stored.etag();
            if let Some(md5) = copy.source_md5
                && checked != Some(etag)
            {
                checked = Some(self.check_source_md5(&copy.source, md5).await?);
                continue;
            }
            if copy.is_sync && crc64.is_none_or(|(of, _)| of != etag) {
                let Some(read) = self.content_crc64(&copy.source.blob, &source).await? else { continue };
                crc64 = Some((etag, read));
            }
            match self.try_copy(blob, &copy, source, id, request, &change).await {
                Ok(Some(stamp)) => {
                    let status = CopyStatus::Success;
                    let crc64 = crc64.map(|(_, crc64)| crc64);
                    return Ok(Copied { etag: Etag(stamp), id, status, crc64 });
                }
                Ok(None) => {
                    self.remove_new_maps(blob, &change).await;
                    change.discard().await;
                }
                Err(error) => {
                    if state::is_certain(&error) {
                        self.remove_new_maps(blob, &change).await;
                    }
                    return Err(state::given_up(error, change).await);
                }
            }
        }
    }

    /// One attempt, over what is there now.
    async fn try_copy(
        &self,
        blob: &BlobRef,
        copy: &CopyBlob,
        selected: Selected,
        id: Guid,
        request: &Request,
        change: &Change,
    ) -> Result<Option<DateTime>> {
        let source = selected.stored.clone();
        let table = blob.container.table()?;
        let found = self.base(&table, blob).await?;
        let there = found.as_ref().and_then(|found| found.row.live());
        let now = self.clock.now();
        if there.is_some_and(|there| there.blob_type() != source.blob_type()) {
            return Err(Refusal::BlobTypeInvalid.into());
        }
        let operand = if copy.is_sync { Operand::FromUrlTarget } else { Operand::CopyTarget };
        state::check_new(there, request, operand, now)?;
        state::check_overwrite(there, copy.tier.is_some())?;
        if !change.hold(&source.content).await? {
            return Ok(None);
        }
        self.record_move(&blob.container.account, &source.content).await?;
        if self.contents.is_shared() && !self.has_content(&copy.source, &source.content).await? {
            return Ok(None);
        }
        let kind = match source.kind {
            StoredKind::Block { tier } => {
                StoredKind::Block { tier: copied_tier(tier, copy.tier, copy.priority, now)? }
            }
            StoredKind::Append { blocks, is_sealed } => {
                no_tier(copy.tier, BlobType::Append)?;
                StoredKind::Append { blocks, is_sealed: copy.seal.unwrap_or(is_sealed) }
            }
            StoredKind::Page { sequence_number, map, changed } => {
                no_tier(copy.tier, BlobType::Page)?;
                let Some(map) = self.copy_pages(&copy.source.blob, &selected, map, blob, change).await?
                else {
                    return Ok(None);
                };
                StoredKind::Page { sequence_number, map, changed }
            }
        };
        let has_objects = source.content.extent_count() > 0 || matches!(kind, StoredKind::Page { .. });
        let new = StoredBlob {
            headers: source.headers,
            metadata: if copy.metadata.is_empty() { source.metadata } else { copy.metadata.clone() },
            tags: match &copy.tags {
                CopyTags::Replace(tags) => tags.clone(),
                CopyTags::Copy => source.tags,
            },
            copy: Some(CopyState {
                id,
                source: copy.source.shown.clone(),
                status: CopyStatus::Success,
                copied: source.length,
                total: source.length,
                completed: Some(now),
                description: None,
            }),
            is_shared: has_objects,
            ..StoredBlob::new(kind, source.content, source.length)
        };
        change.check_maps()?;
        self.put_over(&table, blob, found.as_ref(), new, change, &[]).await
    }

    /// The source of a copy to this blob, after its checks; its blob is marked as shared. `change` began before.
    async fn share(&self, target: &BlobRef, copy: &CopyBlob, change: &Change) -> Result<Selected> {
        let CopyBlob { source, is_sync, .. } = copy;
        let is_foreign = source.blob.container.account != target.container.account;
        let table = source.blob.container.table()?;
        // Its manifests are read later, under what the change holds.
        let _pin = self.contents.pin(BlobKey::of(&source.blob));
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let selected = self.selected_row(&table, &source.blob, source.which).await;
            // Of another account the service only tells that the source can't be read.
            let (time, found) =
                if *is_sync || is_foreign { selected.map_err(source::unverified)? } else { selected? };
            let stored = found.row.live().ok_or(Refusal::BlobNotFound)?;
            let operand = if *is_sync { Operand::FromUrlSource } else { Operand::CopySource };
            source::check(stored, source, operand)?;
            if *is_sync && stored.length > limits::SYNC_COPY_BYTES_MAX {
                return Err(Refusal::BodyTooLarge { max: limits::SYNC_COPY_BYTES_MAX }.into());
            }
            let base = match time == SnapshotTime::BASE {
                true => Some(found.clone()),
                false => self.base(&table, &source.blob).await?,
            };
            let Some(mut base) = base else { continue };
            let Some(blob) = base.row.blob.as_mut() else { continue };
            if blob.is_shared || stored.content.extent_count() == 0 && stored.blob_type() != BlobType::Page {
                return Ok(Selected { time, stored: stored.clone(), version: found.version });
            }
            blob.is_shared = true;
            let row = base.row.clone();
            // Marked or not, it is read again.
            let marked = NewRow::alone(&row, Moves::Nothing);
            self.replace(&table, &source.blob, Some(&base), marked, change).await?;
        }
    }

    /// Whether the source names this content.
    async fn has_content(&self, source: &CopySource, content: &Content) -> Result<bool> {
        match self.selected(&source.blob.container.table()?, &source.blob, source.which).await {
            Ok(stored) => Ok(stored.content == *content),
            Err(Error::Refused(Refusal::BlobNotFound | Refusal::ContainerNotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `None` if the source has changed meanwhile.
    async fn content_crc64(&self, blob: &BlobRef, selected: &Selected) -> Result<Option<Crc64>> {
        let stored = &selected.stored;
        if stored.blob_type() == BlobType::Page {
            let whole = Span { start: 0, bytes: stored.length };
            let sums = self.sums(blob, selected, whole, RangeChecksum::Crc64).await?;
            return Ok(sums.map(|sums| sums.crc64));
        }
        let content: &Content = &stored.content;
        let mut crc64 = Crc64::of(b"");
        let mut walk = self.contents.extents(content);
        while let Some(extent) = walk.next().await.map_err(|fault| fault.about(blob))? {
            crc64 = crc64.join(extent.crc64, extent.length);
        }
        let inline = content.inline_bytes();
        Ok(Some(crc64.join(Crc64::of(inline), inline.len() as u64)))
    }

    /// Copies are done when they are answered, so that there is never one to abort.
    pub async fn abort_copy(&self, blob: &BlobRef, id: Guid, lease: Option<LeaseId>) -> Result<()> {
        self.admit(blob)?;
        let request = Request { lease, ..Request::default() };
        let needs = Needs { of: None, lease: LeaseUse::Read, operand: Operand::Write };
        let changed = self.change_blob(blob, &request, needs, Moves::Etag, |stored, now| {
            stored.copy = Some(CopyState::abort(stored.copy.as_ref(), id, now)?);
            Ok(())
        });
        changed.await.map(drop)
    }
}

/// The tier of a copy. What is archived can only be copied to another tier, which it will have when it has left Archive.
fn copied_tier(
    source: TierState,
    asked: Option<AccessTier>,
    priority: Option<RehydratePriority>,
    now: DateTime,
) -> std::result::Result<TierState, Refusal> {
    let Some(asked) = asked else {
        source.check_online()?;
        return Ok(TierState::INFERRED);
    };
    let asked = AccessTier::asked(asked.name(), BlobType::Block)?;
    let set = TierState::set(asked, now);
    Ok(match source.check_online() {
        Err(_) if asked != AccessTier::Archive => {
            let priority = priority.unwrap_or(RehydratePriority::Standard);
            TierState { tier: AccessTier::Archive, rehydrating: Some((asked, priority)), ..set }
        }
        _ => set,
    })
}
