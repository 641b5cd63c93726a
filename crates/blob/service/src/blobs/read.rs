//! Get Blob, Get Blob Properties and Get Blob Metadata.

use blob_model::{BlobProperties, Checksums, Refusal, Span, Sums, limits};

use super::state::{self, Attempts, Needs, Selected};
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
        let mut attempts = Attempts::of_read();
        loop {
            attempts.next()?;
            if let Some(download) = self.try_get_blob(blob, which, get, request).await? {
                return Ok(download);
            }
        }
    }

    /// `None` if the blob has changed before all was known that the answer begins with.
    async fn try_get_blob(
        &self,
        blob: &BlobRef,
        which: Which,
        get: GetBlob,
        request: &Request,
    ) -> Result<Option<Download>> {
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
                let Some(sums) = self.sums(blob, &selected, part, checksum).await? else { return Ok(None) };
                Some(sums)
            }
            None => None,
        };
        let part_or_whole = part.unwrap_or(whole);
        let Some(mut content) = self.content(blob, &selected, part_or_whole, pin).await? else {
            return Ok(None);
        };
        content.reserve(part_or_whole.bytes)?;
        let properties = selected.stored.into_properties(self.shows_lease(which));
        Ok(Some(Download { properties, part, sums, content: Box::pin(content.into_stream()) }))
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

    /// These bytes of it. `None` if the blob has changed since its row was read.
    pub(crate) async fn content(
        &self,
        blob: &BlobRef,
        selected: &Selected,
        part: Span,
        pin: ReadPin,
    ) -> Result<Option<ContentReader>> {
        let range = part.start..part.start + part.bytes;
        let stored = &selected.stored;
        let reader = match stored.kind {
            StoredKind::Page { .. } => match self.page_reader(blob, selected, range, pin).await? {
                Some(reader) => reader,
                None => return Ok(None),
            },
            StoredKind::Block { .. } | StoredKind::Append { .. } => {
                self.contents.reader(&stored.content, range, pin).map_err(|fault| fault.about(blob))?
            }
        };
        Ok(Some(reader.charged_to(&blob.container.account)))
    }

    /// The checksums of these bytes; `None` as of `content`.
    pub(crate) async fn sums(
        &self,
        blob: &BlobRef,
        selected: &Selected,
        part: Span,
        checksum: RangeChecksum,
    ) -> Result<Option<Sums>> {
        let pin = self.contents.pin(BlobKey::of(blob));
        let Some(mut reader) = self.content(blob, selected, part, pin).await? else { return Ok(None) };
        let mut checksums = Checksums::new(checksum == RangeChecksum::Md5);
        while let Some(piece) = reader.next().await {
            match piece {
                Ok(piece) => checksums.update(&piece),
                Err(fault) => {
                    let now = self.state(&blob.container.table()?, blob, selected.time).await?;
                    let has_changed = now.is_none_or(|now| now.version != selected.version);
                    return if has_changed { Ok(None) } else { Err(fault.about(blob).into()) };
                }
            }
        }
        Ok(Some(checksums.finish()))
    }

    /// When the lease of what was read is judged, if it is shown.
    fn shows_lease(&self, which: Which) -> Option<blob_model::DateTime> {
        (which == Which::Current).then(|| self.clock.now())
    }
}
