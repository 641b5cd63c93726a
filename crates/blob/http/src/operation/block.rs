//! Put Block, Put Block List, Get Block List (spec: blob-operations 7.1).

use blob_model::{BlockId, Refusal, limits};
use blob_service::{BlobRef, BlockListQuery, NewBlob};
use blob_wire::block_list::{self, BlockListType};
use front::RequestBody;

use super::{Context, changed, check_sums, encrypted, with_sum};
use crate::answer::{Answer, Failure};
use crate::asked::no_content;
use crate::copy_source;
use crate::upload::BodyUpload;

/// A block in the answer of Get Block List as XML, which is written into a buffer that doubles.
const BLOCK_BYTES_MAX: usize = 384;
/// A block that Put Block List names, with all that is known of it.
const CHOSEN_BYTES: usize = 256;

fn block_id(context: &Context<'_>) -> Result<BlockId, Refusal> {
    let name = "blockid";
    let text = context.asked.option(name).ok_or(Refusal::ParameterMissing { name })?;
    // A `+` that was not encoded has become a space on its way here; Base64 has no spaces.
    BlockId::of_parameter(&text.replace(' ', "+"))
}

pub async fn put(context: &Context<'_>, blob: &BlobRef, body: &mut RequestBody) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let id = block_id(context)?;
    let lease = asked.lease()?;
    let bytes_max = limits::block_bytes_max(context.version());
    asked.check_content(bytes_max)?;
    let checks = asked.checks(bytes_max)?;
    let mut upload = BodyUpload::new(body, context.memory(), context.deadline);
    if RequestBody::announced(asked.headers).is_none() && !upload.has_content().await? {
        return Err(no_content().into());
    }
    let sums = context.service().put_block(blob, id, checks, lease, &mut upload).await?;
    Ok(encrypted(with_sum(Answer::empty(201), &sums, checks.md5.is_some())))
}

pub async fn put_from_url(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let id = block_id(context)?;
    let lease = asked.lease()?;
    let part = copy_source::part(context, limits::block_bytes_max(context.version())).await?;
    let gave_md5 = part.checks.md5.is_some();
    let sums = context.service().put_block_from_url(blob, id, part, lease).await?;
    Ok(encrypted(with_sum(Answer::empty(201), &sums, gave_md5)))
}

pub async fn put_list(
    context: &Context<'_>,
    blob: &BlobRef,
    body: &mut RequestBody,
) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let stated = context.stated_for_creation()?;
    let new = NewBlob {
        content: asked.blob_headers()?,
        metadata: asked.metadata().await?,
        tags: asked.tags()?,
        tier: asked.tier(blob_model::BlobType::Block)?,
    };
    let checks = asked.checks(limits::BLOCK_LIST_BYTES_MAX as u64)?;
    let body = context.document(body, limits::BLOCK_LIST_BYTES_MAX).await?;
    let sums = check_sums(&body, &checks)?;
    let blocks = block_list::read_chosen(&body)?;
    let _held = context.hold(blocks.len() * CHOSEN_BYTES)?;
    drop(body);
    let etag = context.created(context.service().put_block_list(blob, &blocks, new, &stated).await)?;
    Ok(encrypted(with_sum(changed(201, etag), &sums, checks.md5.is_some())))
}

pub async fn get_list(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let kind: BlockListType = asked.option("blocklisttype").unwrap_or_default().parse()?;
    let committed = kind != BlockListType::Uncommitted;
    let uncommitted = kind != BlockListType::Committed;
    let query = BlockListQuery { which: asked.which()?, committed, uncommitted };
    let lists = context.service().block_list(blob, query, &asked.stated()?).await?;
    let blocks = lists.committed.len() + lists.uncommitted.len();
    let held = context.hold(blocks * BLOCK_BYTES_MAX)?;
    let document = block_list::write(
        committed.then_some(lists.committed.as_slice()),
        uncommitted.then_some(lists.uncommitted.as_slice()),
    );
    let answer = Answer::document(200, front::held_bytes(document.into(), held));
    Ok(match lists.blob {
        Some((etag, length)) => {
            let headers = changed(200, etag).with("x-ms-blob-content-length", length.to_string()).headers;
            answer.with_all(headers)
        }
        None => answer,
    })
}
