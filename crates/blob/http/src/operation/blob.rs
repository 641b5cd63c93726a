//! Put Blob, and what changes a blob of any type: properties, metadata, tier, tags, snapshots, deletion (spec: blob-operations
//! 6).

use blob_model::{BlobType, Refusal, SequenceNumber, SequenceNumberAction, limits, page_blob_length};
use blob_service::{BlobRef, DeleteBlob, DeleteSnapshots, NewBlob, NewPageBlob, SetProperties, Which};
use blob_wire::{names, tag_document};
use front::RequestBody;

use super::{Context, changed, encrypted};
use crate::answer::{Answer, AnswerBody, Failure};
use crate::asked::Asked;
use crate::upload::BodyUpload;

const CONTENT_LENGTH: &str = "x-ms-blob-content-length";

pub async fn put(context: &Context<'_>, blob: &BlobRef, body: &mut RequestBody) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let of = BlobType::of_header(asked.required(names::BLOB_TYPE)?)?;
    let stated = context.stated_for_creation()?;
    let new = NewBlob {
        content: asked.content_headers()?,
        metadata: asked.metadata().await?,
        tags: asked.tags()?,
        tier: asked.tier(of)?,
    };
    match of {
        BlobType::Block => {
            let bytes_max = limits::put_blob_bytes_max(context.version());
            asked.check_length(bytes_max)?;
            let mut checks = asked.checks(bytes_max)?;
            // What is said of the blob is said of its body.
            checks.md5 = checks.md5.or(new.content.md5);
            let mut upload = BodyUpload::new(body, context.memory(), context.deadline);
            let stored = context.service().put_block_blob(blob, new, checks, &stated, &mut upload).await;
            let stored = context.created(stored)?;
            let mut answer = changed(201, stored.etag);
            if let Some(md5) = stored.sums.md5 {
                answer = answer.with("Content-MD5", md5.to_string());
            }
            Ok(encrypted(answer.with("x-ms-content-crc64", stored.sums.crc64.to_string())))
        }
        BlobType::Page => {
            check_no_body(asked)?;
            let length = page_blob_length(asked.required(CONTENT_LENGTH)?)?;
            let number = asked.text(names::BLOB_SEQUENCE_NUMBER)?.map(SequenceNumber::of_header);
            let sequence_number = number.transpose()?.unwrap_or_default();
            let new = NewPageBlob { new, length, sequence_number };
            let etag = context.service().put_page_blob(blob, new, &stated).await;
            Ok(encrypted(changed(201, context.created(etag)?)))
        }
        BlobType::Append => {
            check_no_body(asked)?;
            let etag = context.service().put_append_blob(blob, new, &stated).await;
            Ok(encrypted(changed(201, context.created(etag)?)))
        }
    }
}

/// Only a block blob comes with its content.
fn check_no_body(asked: &Asked<'_>) -> Result<(), Refusal> {
    match RequestBody::announced(asked.headers) {
        Some(0) | None => Ok(()),
        Some(length) => Err(Refusal::HeaderInvalid { name: "Content-Length", value: length.to_string() }),
    }
}

pub async fn set_metadata(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    context.asked.check_current()?;
    let stated = context.asked.stated()?;
    let metadata = context.asked.metadata().await?;
    let etag = context.service().set_blob_metadata(blob, metadata, &stated).await?;
    Ok(encrypted(changed(200, etag)))
}

/// All six content headers are replaced by those that are sent. If none is, and only the length or the sequence number is to
/// change, they stay.
pub async fn set_properties(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let stated = asked.stated()?;
    let own = [
        "x-ms-blob-content-type",
        "x-ms-blob-content-encoding",
        "x-ms-blob-content-language",
        names::BLOB_CONTENT_MD5,
        "x-ms-blob-cache-control",
        "x-ms-blob-content-disposition",
    ];
    let content = own.iter().any(|name| asked.headers.contains_key(*name));
    let length = asked.text(CONTENT_LENGTH)?.map(page_blob_length).transpose()?;
    let number = asked.text(names::BLOB_SEQUENCE_NUMBER)?;
    let sequence_number = match (asked.text("x-ms-sequence-number-action")?, number) {
        (Some(action), number) => Some(SequenceNumberAction::of_headers(action, number)?),
        (None, Some(_)) => {
            return Err(Refusal::HeaderMissing { name: "x-ms-sequence-number-action" }.into());
        }
        (None, None) => None,
    };
    let content = content || (length.is_none() && sequence_number.is_none());
    let content = content.then(|| asked.blob_headers()).transpose()?;
    let set = SetProperties { content, length, sequence_number };
    let done = context.service().set_blob_properties(blob, set, &stated).await?;
    let mut answer = changed(200, done.etag);
    if let Some(number) = done.sequence_number {
        answer = answer.with(names::BLOB_SEQUENCE_NUMBER, number.get().to_string());
    }
    Ok(answer)
}

pub async fn set_tier(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let (which, stated) = (asked.which()?, asked.stated()?);
    // Whether the blob is of this type, the service says.
    let tier = asked.tier(BlobType::Block)?.ok_or(Refusal::HeaderMissing { name: names::ACCESS_TIER })?;
    let is_pending = context.service().set_blob_tier(blob, which, tier, asked.priority()?, &stated).await?;
    Ok(Answer::empty(if is_pending { 202 } else { 200 }))
}

pub async fn delete(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let (which, stated) = (asked.which()?, asked.stated()?);
    let name = "x-ms-delete-snapshots";
    let snapshots = match asked.text(name)? {
        None => None,
        Some(text) if text.eq_ignore_ascii_case("include") => Some(DeleteSnapshots::Include),
        Some(text) if text.eq_ignore_ascii_case("only") => Some(DeleteSnapshots::Only),
        Some(text) => return Err(Refusal::HeaderInvalid { name, value: text.to_owned() }.into()),
    };
    match (snapshots, which) {
        (Some(_), Which::Version(time)) => {
            let reason =
                "This operation is only allowed on the root blob. Version id should not be provided.";
            return Err(not_with("versionid", time.to_string(), reason).into());
        }
        (Some(_), Which::Snapshot(time)) => {
            let reason = "This operation is only allowed on the root blob. Snapshot should not be provided.";
            return Err(not_with("snapshot", time.to_string(), reason).into());
        }
        _ => {}
    }
    let is_permanent = match asked.option("deletetype") {
        None => false,
        Some(kind) if kind.eq_ignore_ascii_case("permanent") => true,
        Some(kind) => return Err(not_with("deletetype", kind.to_owned(), "").into()),
    };
    let deleted =
        context.service().delete_blob(blob, DeleteBlob { which, snapshots, is_permanent }, &stated).await?;
    Ok(Answer::empty(202).with("x-ms-delete-type-permanent", deleted.is_permanent.to_string()))
}

fn not_with(name: &'static str, value: String, reason: &'static str) -> Refusal {
    Refusal::ParameterInvalid { name, value, reason: Some(reason) }
}

pub async fn undelete(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    context.asked.check_current()?;
    context.service().undelete_blob(blob).await?;
    Ok(Answer::empty(200))
}

pub async fn snapshot(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    context.asked.check_current()?;
    let stated = context.asked.stated()?;
    let metadata = context.asked.metadata().await?;
    let (time, etag) = context.service().snapshot_blob(blob, metadata, &stated).await?;
    // The service says `false` here: it has encrypted nothing new.
    Ok(changed(201, etag)
        .with("x-ms-snapshot", time.to_string())
        .with("x-ms-request-server-encrypted", "false"))
}

pub async fn get_tags(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let (which, stated) = (context.asked.which()?, context.asked.stated()?);
    let tags = context.service().blob_tags(blob, which, &stated).await?;
    let body = AnswerBody::SizedDocument(tag_document::write(&tags).into());
    Ok(Answer { body, ..Answer::empty(200) })
}

pub async fn set_tags(
    context: &Context<'_>,
    blob: &BlobRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let (which, stated) = (asked.which()?, asked.stated()?);
    // A version has tags of its own; those of a snapshot stay as they are.
    if matches!(which, Which::Snapshot(_)) {
        asked.check_current()?;
    }
    let checks = asked.checks(limits::TAGS_BODY_BYTES_MAX as u64)?;
    let body = context.document(body, limits::TAGS_BODY_BYTES_MAX).await?;
    super::check_sums(&body, &checks)?;
    let tags = tag_document::read(&body)?;
    context.service().set_blob_tags(blob, which, tags, &stated).await?;
    Ok(Answer::empty(204))
}
