//! Copy Blob, Copy Blob From URL, Put Blob From URL, Abort Copy (spec: blob-operations 6.7).

use blob_model::{BlobType, Guid, Refusal, limits};
use blob_service::{BlobRef, CopyBlob, CopyTags, NewBlob, PutFromUrl};
use blob_wire::names;

use super::{Context, changed, encrypted, with_sum};
use crate::answer::{Answer, Failure};
use crate::copy_source::{self, SourceIsRead, TAG_OPTION};

/// Whether the tags of the source are copied.
fn takes_tags(context: &Context<'_>) -> Result<bool, Refusal> {
    match context.asked.text(TAG_OPTION)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("replace") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("copy") => Ok(true),
        Some(text) => Err(Refusal::HeaderInvalid { name: TAG_OPTION, value: text.to_owned() }),
    }
}

pub async fn copy(context: &Context<'_>, blob: &BlobRef, is_sync: bool) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let stated = context.stated_for_creation()?;
    let tags = match takes_tags(context)? {
        true => CopyTags::Copy,
        false => CopyTags::Replace(asked.tags()?),
    };
    let copy = CopyBlob {
        metadata: asked.metadata().await?,
        tags,
        tier: asked.tier(BlobType::Block)?,
        priority: asked.priority()?,
        seal: asked.flag("x-ms-seal-blob")?,
        is_sync,
        // Copy Blob has no such header.
        source_md5: if is_sync { asked.source_checks(limits::SYNC_COPY_BYTES_MAX)?.md5 } else { None },
        source: copy_source::find(
            context,
            if is_sync { SourceIsRead::ByAnybody } else { SourceIsRead::ByCaller },
        )
        .await?,
    };
    // What the source was compared with is what was copied.
    let source_md5 = copy.source_md5;
    let copied = context.created(context.service().copy_blob(blob, copy, &stated).await)?;
    let mut answer = changed(202, copied.etag)
        .with(names::COPY_ID, copied.id.to_string())
        .with(names::COPY_STATUS, copied.status.name());
    match (source_md5, copied.crc64) {
        (Some(md5), _) => answer = answer.with("Content-MD5", md5.to_string()),
        (None, Some(crc64)) => answer = answer.with("x-ms-content-crc64", crc64.to_string()),
        (None, None) => {}
    }
    // Recorded of copies from a URL alone.
    Ok(if is_sync { encrypted(answer) } else { answer })
}

pub async fn put_from_url(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let of = BlobType::of_header(asked.required(names::BLOB_TYPE)?)?;
    if of != BlobType::Block {
        return Err(Refusal::HeaderInvalid { name: names::BLOB_TYPE, value: of.name().to_owned() }.into());
    }
    let stated = context.stated_for_creation()?;
    let checks = asked.source_checks(limits::put_blob_bytes_max(context.version()))?;
    let put = PutFromUrl {
        new: NewBlob {
            content: asked.blob_headers()?,
            metadata: asked.metadata().await?,
            tags: asked.tags()?,
            tier: asked.tier(of)?,
        },
        takes_headers: asked.flag("x-ms-copy-source-blob-properties")?.unwrap_or(true),
        takes_tags: takes_tags(context)?,
        checks,
        source: copy_source::find(context, SourceIsRead::ByAnybody).await?,
    };
    let stored = context.created(context.service().put_blob_from_url(blob, put, &stated).await)?;
    Ok(encrypted(with_sum(changed(201, stored.etag), &stored.sums, checks.md5.is_some())))
}

pub async fn abort(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let action = "x-ms-copy-action";
    let value = asked.required(action)?;
    if !value.eq_ignore_ascii_case("abort") {
        return Err(Refusal::HeaderInvalid { name: action, value: value.to_owned() }.into());
    }
    let name = "copyid";
    let text = asked.option(name).ok_or(Refusal::ParameterMissing { name })?;
    let id = Guid::parse(text).ok_or_else(|| Refusal::ParameterInvalid {
        name,
        value: text.to_owned(),
        reason: Some("copyid needs to be valid Guid."),
    })?;
    context.service().abort_copy(blob, id, asked.lease()?).await?;
    Ok(Answer::empty(204))
}
