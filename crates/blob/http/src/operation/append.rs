//! Append Block and Seal (spec: blob-operations 7.2).

use blob_model::{Refusal, limits};
use blob_service::{AppendCondition, Appended, BlobRef};
use blob_wire::names;
use front::RequestBody;

use super::{Context, changed, encrypted, with_sum};
use crate::answer::{Answer, Failure};
use crate::asked::no_content;
use crate::copy_source;
use crate::upload::BodyUpload;

fn condition(context: &Context<'_>) -> Result<AppendCondition, Refusal> {
    Ok(AppendCondition {
        position: context.asked.number("x-ms-blob-condition-appendpos")?,
        max_size: context.asked.number("x-ms-blob-condition-maxsize")?,
    })
}

pub async fn append(
    context: &Context<'_>,
    blob: &BlobRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let (stated, condition) = (asked.stated()?, condition(context)?);
    let bytes_max = limits::append_bytes_max(context.version());
    asked.check_content(bytes_max)?;
    let checks = asked.checks(bytes_max)?;
    let mut upload = BodyUpload::new(body, context.memory(), context.deadline);
    if RequestBody::announced(asked.headers).is_none() && !upload.has_content().await? {
        return Err(no_content().into());
    }
    let appended = context.service().append_block(blob, checks, condition, &stated, &mut upload).await?;
    Ok(answer(&appended, checks.md5.is_some()))
}

pub async fn append_from_url(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let (stated, condition) = (asked.stated()?, condition(context)?);
    let part = copy_source::part(context, limits::append_bytes_max(context.version())).await?;
    let gave_md5 = part.checks.md5.is_some();
    let appended = context.service().append_block_from_url(blob, part, condition, &stated).await?;
    Ok(answer(&appended, gave_md5))
}

fn answer(appended: &Appended, gave_md5: bool) -> Answer {
    let answer = with_sum(changed(201, appended.etag), &appended.sums, gave_md5)
        .with("x-ms-blob-append-offset", appended.offset.to_string())
        .with(names::BLOB_COMMITTED_BLOCK_COUNT, appended.blocks.to_string());
    encrypted(answer)
}

pub async fn seal(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    context.asked.check_current()?;
    let (stated, condition) = (context.asked.stated()?, condition(context)?);
    let etag = context.service().seal_blob(blob, condition, &stated).await?;
    Ok(changed(200, etag).with(names::BLOB_SEALED, "true"))
}
