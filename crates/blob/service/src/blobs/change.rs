//! Changes of what a blob says of itself: properties, metadata, tier, lease.

use blob_model::{
    AccessTier, BlobType, Conditions, Etag, LeaseAction, LeaseOutcome, Leased, Metadata, Operand, Refusal,
    RehydratePriority,
};

use super::state::{self, LeaseUse, Needs};
use crate::blob_row::{Moves, StoredBlob, StoredKind};
use crate::{BlobRef, BlobService, PropertiesSet, Request, Result, SetProperties, Which};

impl BlobService {
    /// Replaces all of it.
    pub async fn set_blob_metadata(
        &self,
        blob: &BlobRef,
        metadata: Metadata,
        request: &Request,
    ) -> Result<Etag> {
        self.admit(blob)?;
        let changed = self.change_blob(blob, request, Needs::WRITE, Moves::Etag, |stored, _| {
            state::check_online(stored)?;
            stored.metadata = metadata.clone();
            stored.copy = None;
            Ok(())
        });
        Ok(changed.await?.1.etag())
    }

    pub async fn set_blob_properties(
        &self,
        blob: &BlobRef,
        set: SetProperties,
        request: &Request,
    ) -> Result<PropertiesSet> {
        self.admit(blob)?;
        let needs_pages = set.length.is_some() || set.sequence_number.is_some();
        let needs = Needs { of: needs_pages.then_some(BlobType::Page), ..Needs::WRITE };
        let change = |stored: &mut StoredBlob, _, is_trimmed: bool| {
            state::check_online(stored)?;
            // Pages that a longer blob must not show.
            if set.length.is_some_and(|length| length > stored.length) && !is_trimmed {
                return Ok(None);
            }
            if let Some(content) = &set.content {
                stored.headers = content.clone();
            }
            stored.copy = None;
            if let Some(length) = set.length {
                stored.length = length;
            }
            match &mut stored.kind {
                StoredKind::Page { sequence_number, .. } => {
                    if let Some(action) = set.sequence_number {
                        *sequence_number = sequence_number.change(action)?;
                    }
                    Ok(Some(Some(*sequence_number)))
                }
                StoredKind::Block { .. } | StoredKind::Append { .. } => Ok(Some(None)),
            }
        };
        let changed = self.change_trimmed(blob, Which::Current, request, needs, Moves::Etag, change);
        let (sequence_number, stored) = changed.await?;
        if set.length.is_some() {
            // What can't be done now is done before the blob gets longer.
            let _ = self.trim_pages(blob).await;
        }
        Ok(PropertiesSet { etag: stored.etag(), sequence_number })
    }

    /// The ETag stays as it is.
    pub async fn lease_blob(
        &self,
        blob: &BlobRef,
        action: LeaseAction,
        conditions: Conditions,
    ) -> Result<(LeaseOutcome, Etag)> {
        self.admit(blob)?;
        // An action names its lease itself, and judges it.
        let request = Request { conditions, lease: None };
        let needs = Needs { of: None, lease: LeaseUse::Read, operand: Operand::Write };
        let changed = self.change_blob(blob, &request, needs, Moves::Nothing, |stored, now| {
            let outcome = stored.lease.act(action, Leased::Blob, now)?;
            stored.lease = outcome.lease;
            Ok(outcome)
        });
        let (outcome, stored) = changed.await?;
        Ok((outcome, stored.etag()))
    }

    /// Whether the change is pending (202) or done (200). The ETag stays as it is.
    pub async fn set_blob_tier(
        &self,
        blob: &BlobRef,
        which: Which,
        tier: AccessTier,
        priority: Option<RehydratePriority>,
        request: &Request,
    ) -> Result<bool> {
        self.admit(blob)?;
        let needs = Needs { of: None, lease: LeaseUse::Read, operand: Operand::Write };
        let priority = priority.unwrap_or(RehydratePriority::Standard);
        let changed = self.change_state(blob, which, request, needs, Moves::Nothing, |stored, now| {
            let tier = AccessTier::asked(tier.name(), stored.blob_type())?;
            let StoredKind::Block { tier: state } = &mut stored.kind else {
                return Err(Refusal::TierNotSupported);
            };
            let leaves_archive = state.tier == AccessTier::Archive && tier != AccessTier::Archive;
            if leaves_archive && which != Which::Current {
                return Err(Refusal::OperationNotSupported);
            }
            let (changed, is_pending) = state.change(tier, priority, now)?;
            *state = changed;
            Ok(is_pending)
        });
        Ok(changed.await?.0)
    }
}
