//! The source of operations *From URL*: a blob of this server, read like any other.

use async_trait::async_trait;
use blob_model::limits::SYNC_COPY_BYTES_MAX;
use blob_model::{AccountName, BlobType, CopySourceFault, Etag, Md5, Operand, Refusal, Seen, Span, Sums};
use bytes::Bytes;

use super::put::{new_blob, new_tier};
use super::state::{self, Attempts, LeaseUse, Needs};
use crate::blob_row::{StoredBlob, StoredKind};
use crate::content::{BlobKey, ContentReader, Keep, Written};
use crate::{
    AppendCondition, Appended, BlobRef, BlobService, BodyChecks, CopySource, Error, PageWrite, PagesWritten,
    PartFromUrl, PutFromUrl, Request, Result, Stored, Upload,
};
use blob_model::{BlockId, ByteRange, ContentHeaders, LeaseId};

/// A blob, or a part of it, as a body.
struct SourceBody {
    reader: ContentReader,
    blob: BlobRef,
}

#[async_trait]
impl Upload for SourceBody {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let piece = self.reader.next().await.transpose();
        Ok(piece.map_err(|fault| fault.about(&self.blob))?)
    }
}

/// What a missing source is for an operation From URL.
pub fn unverified(error: Error) -> Error {
    match error {
        Error::Refused(Refusal::BlobNotFound | Refusal::ContainerNotFound) => {
            Refusal::CopySource(CopySourceFault::NotFound).into()
        }
        other => other,
    }
}

pub fn check(stored: &StoredBlob, source: &CopySource, operand: Operand) -> std::result::Result<(), Refusal> {
    let seen = Seen { etag: stored.etag(), tags: &stored.tags };
    source.conditions.check(Some(seen), operand, false)
}

impl BlobService {
    /// A source after its checks, and its bytes, which are at most so many.
    async fn open_source(
        &self,
        source: &CopySource,
        range: Option<ByteRange>,
        max: u64,
        operand: Operand,
    ) -> Result<(StoredBlob, SourceBody)> {
        let mut attempts = Attempts::of_read();
        loop {
            attempts.next()?;
            if let Some(opened) = self.try_open_source(source, range, max, operand).await? {
                return Ok(opened);
            }
        }
    }

    /// `None` if the source has changed meanwhile.
    async fn try_open_source(
        &self,
        source: &CopySource,
        range: Option<ByteRange>,
        max: u64,
        operand: Operand,
    ) -> Result<Option<(StoredBlob, SourceBody)>> {
        let pin = self.contents.pin(BlobKey::of(&source.blob));
        let table = source.blob.container.table()?;
        let selected = self.selected_state(&table, &source.blob, source.which).await.map_err(unverified)?;
        let stored = &selected.stored;
        check(stored, source, operand)?;
        state::check_online(stored)?;
        let part = match range {
            Some(range) => range.of(stored.length)?,
            None => Span { start: 0, bytes: stored.length },
        };
        // Before it is read: what is too large may take hours.
        if part.bytes > max {
            return Err(Refusal::BodyTooLarge { max }.into());
        }
        let reader = self.content(&source.blob, &selected, part, pin).await?;
        Ok(reader.map(|reader| (selected.stored, SourceBody { reader, blob: source.blob.clone() })))
    }

    /// Reads a source into content that no row names yet.
    async fn receive_source(
        &self,
        account: &AccountName,
        body: &mut SourceBody,
        checks: BodyChecks,
        keep: Keep,
        operand: Operand,
        with_md5: bool,
    ) -> Result<Written> {
        self.receive(account, body, checks, keep, with_md5).await.map_err(|error| match error {
            // The service does not tell what it computed of pages and append blocks.
            Error::Refused(Refusal::Md5Mismatch { given, .. }) if operand == Operand::RangeFromUrlSource => {
                Refusal::Md5Mismatch { given, computed: None }.into()
            }
            other => other,
        })
    }

    /// Whether the whole source has this MD5. The ETag with which it has it.
    pub(crate) async fn check_source_md5(&self, source: &CopySource, md5: Md5) -> Result<Etag> {
        let max = SYNC_COPY_BYTES_MAX;
        let (stored, mut body) = self.open_source(source, None, max, Operand::FromUrlSource).await?;
        let mut checksums = blob_model::Checksums::new(true);
        while let Some(piece) = body.next().await? {
            checksums.update(&piece);
        }
        checksums.finish().check(Some(md5), None)?;
        Ok(stored.etag())
    }

    pub async fn put_blob_from_url(
        &self,
        blob: &BlobRef,
        put: PutFromUrl,
        request: &Request,
    ) -> Result<Stored> {
        self.admit(blob)?;
        let PutFromUrl { source, mut new, takes_headers, takes_tags, checks } = put;
        let tier = new_tier(new.tier, BlobType::Block, self.clock.now())?;
        drop(self.gate.pass().await?);
        self.engine.find_table(&blob.container.table()?).await?;
        let operand = Operand::FromUrlSource;
        let (stored, mut body) = self.open_source(&source, None, checks.bytes_max, operand).await?;
        if takes_headers {
            new.content = overridden(stored.headers, new.content);
        }
        if takes_tags {
            new.tags = stored.tags;
        }
        if new.metadata.is_empty() {
            new.metadata = stored.metadata;
        }
        let written = self
            .receive_source(&blob.container.account, &mut body, checks, Keep::SmallInRow, operand, true)
            .await?;
        let Written { content, length, sums, fresh } = written;
        let mut made = new_blob(new, StoredKind::Block { tier }, content, length);
        made.headers.md5 = sums.md5;
        let etag = self.put_new(blob, made, request, Operand::FromUrlTarget, None).await;
        let etag = self.keep_or_discard(etag, fresh).await?;
        Ok(Stored { etag, sums })
    }

    pub async fn put_block_from_url(
        &self,
        blob: &BlobRef,
        id: BlockId,
        part: PartFromUrl,
        lease: Option<LeaseId>,
    ) -> Result<Sums> {
        self.admit(blob)?;
        drop(self.gate.pass().await?);
        self.engine.find_table(&blob.container.table()?).await?;
        let operand = Operand::FromUrlSource;
        let max = part.checks.bytes_max;
        let (_, mut body) = self.open_source(&part.source, part.range, max, operand).await?;
        let written = self
            .receive_source(&blob.container.account, &mut body, part.checks, Keep::InObject, operand, false)
            .await?;
        let put = self.put_written_block(blob, &id, &written, lease).await;
        self.keep_or_discard(put, written.fresh).await?;
        Ok(written.sums)
    }

    pub async fn append_block_from_url(
        &self,
        blob: &BlobRef,
        part: PartFromUrl,
        condition: AppendCondition,
        request: &Request,
    ) -> Result<Appended> {
        self.admit(blob)?;
        let of = Some(BlobType::Append);
        let needs = Needs { of, lease: LeaseUse::Write, operand: Operand::AppendFromUrlTarget };
        self.check_append_target(blob, condition, request, needs).await?;
        let operand = Operand::RangeFromUrlSource;
        let max = part.checks.bytes_max;
        let (_, mut body) = self.open_source(&part.source, part.range, max, operand).await?;
        let written = self
            .receive_source(&blob.container.account, &mut body, part.checks, Keep::SmallInRow, operand, false)
            .await?;
        let appended = self.append_written(blob, &written, condition, request, needs).await;
        self.keep_or_discard(appended, written.fresh).await
    }

    pub async fn put_pages_from_url(
        &self,
        blob: &BlobRef,
        part: PartFromUrl,
        write: PageWrite,
        request: &Request,
    ) -> Result<PagesWritten> {
        self.admit(blob)?;
        let of = Some(BlobType::Page);
        let needs = Needs { of, lease: LeaseUse::Write, operand: Operand::PageFromUrlTarget };
        self.check_page_target(blob, write, request, needs).await?;
        let operand = Operand::RangeFromUrlSource;
        let max = part.checks.bytes_max;
        let (_, mut body) = self.open_source(&part.source, part.range, max, operand).await?;
        let written = self
            .receive_source(&blob.container.account, &mut body, part.checks, Keep::InObject, operand, false)
            .await?;
        self.write_pages(blob, write, written, request, needs).await
    }
}

/// The headers of a source, but for those that a request has itself.
fn overridden(source: ContentHeaders, own: ContentHeaders) -> ContentHeaders {
    ContentHeaders {
        content_type: own.content_type.or(source.content_type),
        encoding: own.encoding.or(source.encoding),
        language: own.language.or(source.language),
        md5: own.md5.or(source.md5),
        cache_control: own.cache_control.or(source.cache_control),
        disposition: own.disposition.or(source.disposition),
    }
}
