//! Get Blob, Get Blob Properties and Get Blob Metadata.

use blob_model::{BlobProperties, Checksums, Refusal, Span, Sums, limits};

use super::state::{self, Needs, Selected};
use crate::blob_row::StoredKind;
use crate::content::{BlobKey, ContentReader, ReadPin};
use crate::{BlobRef, BlobService, Download, GetBlob, RangeChecksum, Request, Result, Which};

impl BlobService {
    pub async fn get_blob(
        &self,
        blob: &BlobRef,
        which: Which,
        get: GetBlob,
        request: &Request,
    ) -> Result<Download> {
        self.admit(blob)?;
        let (selected, pin) = self.readable(blob, which, request, Needs::READ).await?;
        let stored = &selected.stored;
        state::check_online(stored)?;
        let part = get.range.map(|range| range.of(stored.length)).transpose()?;
        let whole = Span { start: 0, bytes: stored.length };
        let sums = match get.checksum {
            Some(checksum) => {
                let part = part.unwrap_or(whole);
                if part.bytes > limits::RANGE_CHECKSUM_BYTES_MAX {
                    return Err(Refusal::Shared(common::Refusal::InputOutOfRange).into());
                }
                // Read twice, so that it need not be held until its first byte is sent.
                Some(self.sums(blob, &selected, part, checksum).await?)
            }
            None => None,
        };
        let part_or_whole = part.unwrap_or(whole);
        let mut content = self.content(blob, &selected, part_or_whole, pin).await?;
        content.reserve(part_or_whole.bytes)?;
        let properties = selected.stored.into_properties(self.shows_lease(which));
        Ok(Download { properties, part, sums, content: Box::pin(content.into_stream()) })
    }

    /// Get Blob Properties, and Get Blob Metadata.
    pub async fn blob_properties(
        &self,
        blob: &BlobRef,
        which: Which,
        request: &Request,
    ) -> Result<BlobProperties> {
        self.admit(blob)?;
        let stored = self.selected(&blob.container.table()?, blob, which).await?;
        Needs::READ.check(&stored, request, self.clock.now())?;
        Ok(stored.into_properties(self.shows_lease(which)))
    }

    /// A blob whose content is to be read, after its checks; and what keeps the content there.
    pub(crate) async fn readable(
        &self,
        blob: &BlobRef,
        which: Which,
        request: &Request,
        needs: Needs,
    ) -> Result<(Selected, ReadPin)> {
        let pin = self.contents.pin(BlobKey::of(blob));
        let selected = self.selected_state(&blob.container.table()?, blob, which).await?;
        needs.check(&selected.stored, request, self.clock.now())?;
        Ok((selected, pin))
    }

    /// These bytes of it.
    pub(crate) async fn content(
        &self,
        blob: &BlobRef,
        selected: &Selected,
        part: Span,
        pin: ReadPin,
    ) -> Result<ContentReader> {
        let range = part.start..part.start + part.bytes;
        let stored = &selected.stored;
        let reader = match stored.kind {
            StoredKind::Page { .. } => self.page_reader(blob, selected, range, pin).await?,
            StoredKind::Block { .. } | StoredKind::Append { .. } => {
                self.contents.reader(&stored.content, range, pin).map_err(|fault| fault.about(blob))?
            }
        };
        Ok(reader.charged_to(&blob.container.account))
    }

    pub(crate) async fn sums(
        &self,
        blob: &BlobRef,
        selected: &Selected,
        part: Span,
        checksum: RangeChecksum,
    ) -> Result<Sums> {
        let pin = self.contents.pin(BlobKey::of(blob));
        let mut reader = self.content(blob, selected, part, pin).await?;
        let mut checksums = Checksums::new(checksum == RangeChecksum::Md5);
        while let Some(piece) = reader.next().await {
            checksums.update(&piece.map_err(|fault| fault.about(blob))?);
        }
        Ok(checksums.finish())
    }

    /// When the lease of what was read is judged, if it is shown.
    fn shows_lease(&self, which: Which) -> Option<blob_model::DateTime> {
        (which == Which::Current).then(|| self.clock.now())
    }
}
