//! Get Blob, Get Blob Properties, Get Blob Metadata (spec: blob-operations 6.2).

use std::borrow::Cow;

use blob_model::{Refusal, limits};
use blob_service::{BlobRef, Download, GetBlob, RangeChecksum};
use blob_wire::blob_headers::{self, Headers};
use common::Refusal as Shared;

use super::Context;
use crate::answer::{Answer, AnswerBody, Failure};
use crate::download::Outgoing;

const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const RANGE_CRC64: &str = "x-ms-range-get-content-crc64";

pub async fn get(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let which = asked.which()?;
    let stated = asked.stated()?;
    let range = asked.range()?;
    let checksum = match (asked.flag(RANGE_MD5)?, asked.flag(RANGE_CRC64)?) {
        (Some(true), Some(true)) => return Err(Refusal::BothRangeChecksums.into()),
        (Some(true), _) => Some((RangeChecksum::Md5, RANGE_MD5)),
        (_, Some(true)) => Some((RangeChecksum::Crc64, RANGE_CRC64)),
        _ => None,
    };
    if let Some((_, name)) = checksum {
        let Some(range) = range else {
            return Err(Refusal::HeaderInvalid { name, value: "true".to_owned() }.into());
        };
        let is_short =
            range.last().is_some_and(|last| last - range.first() < limits::RANGE_CHECKSUM_BYTES_MAX);
        if !is_short {
            return Err(Shared::InputOutOfRange.into());
        }
    }
    let get = GetBlob { range, checksum: checksum.map(|(checksum, _)| checksum) };
    let download = context.service().get_blob(blob, which, get, &stated).await?;
    let Download { properties, part, sums, content } = download;
    let mut headers = blob_headers::of_blob(&properties, blob_headers::Answer::Get(part), None);
    if let Some(sums) = sums {
        match (checksum, sums.md5) {
            (Some((RangeChecksum::Md5, _)), Some(md5)) => {
                headers.push(("Content-MD5".into(), md5.to_string()));
            }
            _ => headers.push(("x-ms-content-crc64".into(), sums.crc64.to_string())),
        }
    }
    let length = part.map_or(properties.length, |part| part.bytes);
    let content = Box::pin(Outgoing::new(content, context.memory(), &context.request.id));
    Ok(Answer {
        status: if part.is_some() { 206 } else { 200 },
        headers: overridden(context, headers),
        body: AnswerBody::Content { length, content },
    })
}

pub async fn properties(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let (which, stated) = (context.asked.which()?, context.asked.stated()?);
    let properties = context.service().blob_properties(blob, which, &stated).await?;
    let headers = blob_headers::of_blob(&properties, blob_headers::Answer::Head, None);
    Ok(Answer::empty(200).with_all(overridden(context, headers)))
}

pub async fn metadata(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let (which, stated) = (context.asked.which()?, context.asked.stated()?);
    let properties = context.service().blob_properties(blob, which, &stated).await?;
    Ok(Answer::empty(200).with_all(blob_headers::of_metadata(properties.etag, &properties.metadata)))
}

/// With the headers that the token sets.
fn overridden(context: &Context<'_>, mut headers: Headers) -> Headers {
    let Some(overrides) = &context.admitted.overrides else { return headers };
    for (name, value) in [
        ("Cache-Control", &overrides.cache_control),
        ("Content-Disposition", &overrides.content_disposition),
        ("Content-Encoding", &overrides.content_encoding),
        ("Content-Language", &overrides.content_language),
        ("Content-Type", &overrides.content_type),
    ] {
        if !value.is_empty() {
            headers.retain(|(known, _)| known != name);
            headers.push((Cow::Borrowed(name), value.clone()));
        }
    }
    headers
}
