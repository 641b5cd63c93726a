//! Put Page, clear, Get Page Ranges (spec: blob-operations 7.3).

use blob_model::{PageRange, Refusal, SequenceCondition, SequenceNumber, SnapshotTime, limits};
use blob_service::{BlobRef, FoundPages, PageQuery, PageWrite, PagesWritten};
use blob_wire::page_list::{self, ListedPages};
use blob_wire::{marker, names};
use common::Refusal as Shared;
use front::RequestBody;

use super::{Context, changed, encrypted, with_sum};
use crate::answer::{Answer, Failure};
use crate::copy_source;
use crate::upload::BodyUpload;

const PAGE_WRITE: &str = "x-ms-page-write";
/// A range in the answer, as it is read and as XML.
const RANGE_BYTES_MAX: usize = 192;

/// What a write names, and what it asks of the sequence number. Put Page refuses a bad number as an input, from a URL as a
/// header.
fn write(context: &Context<'_>, is_from_url: bool) -> Result<PageWrite, Refusal> {
    let asked = &context.asked;
    let number = |name: &'static str| match asked.text(name)? {
        None => Ok(None),
        Some(text) => match text.parse().ok().and_then(SequenceNumber::new) {
            Some(number) => Ok(Some(number)),
            None if is_from_url => Err(Refusal::HeaderInvalid { name, value: text.to_owned() }),
            None => Err(Shared::InputNotValid.into()),
        },
    };
    Ok(PageWrite {
        range: PageRange::of_write(asked.range_text()?)?,
        sequence: SequenceCondition {
            at_most: number("x-ms-if-sequence-number-le")?,
            below: number("x-ms-if-sequence-number-lt")?,
            equal: number("x-ms-if-sequence-number-eq")?,
        },
    })
}

pub async fn put(context: &Context<'_>, blob: &BlobRef, body: &mut RequestBody) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let action = asked.required(PAGE_WRITE)?;
    if !action.eq_ignore_ascii_case("update") {
        return Err(Refusal::HeaderInvalid { name: PAGE_WRITE, value: action.to_owned() }.into());
    }
    let (stated, write) = (asked.stated()?, write(context, false)?);
    asked.check_length(limits::PAGE_WRITE_BYTES_MAX)?;
    let bytes = write.range.bytes();
    if bytes > limits::PAGE_WRITE_BYTES_MAX {
        return Err(Refusal::BodyTooLarge { max: limits::PAGE_WRITE_BYTES_MAX }.into());
    }
    if let Some(length) = RequestBody::announced(asked.headers)
        && length != bytes
    {
        return Err(Refusal::HeaderInvalid { name: "Content-Length", value: length.to_string() }.into());
    }
    let checks = asked.checks(bytes)?;
    let mut upload = BodyUpload::new(body, context.memory(), context.deadline);
    let written = context.service().put_pages(blob, write, checks, &stated, &mut upload).await?;
    Ok(answer(&written, checks.md5.is_some()))
}

pub async fn put_from_url(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    let (stated, write) = (asked.stated()?, write(context, true)?);
    let part = copy_source::part(context, limits::PAGE_WRITE_BYTES_MAX).await?;
    let gave_md5 = part.checks.md5.is_some();
    let written = context.service().put_pages_from_url(blob, part, write, &stated).await?;
    Ok(answer(&written, gave_md5))
}

pub async fn clear(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    asked.check_current()?;
    if let Some(length) = RequestBody::announced(asked.headers).filter(|length| *length > 0) {
        return Err(Refusal::HeaderInvalid { name: "Content-Length", value: length.to_string() }.into());
    }
    let (stated, write) = (asked.stated()?, write(context, false)?);
    let written = context.service().clear_pages(blob, write, &stated).await?;
    Ok(answer(&written, false))
}

fn answer(written: &PagesWritten, gave_md5: bool) -> Answer {
    let answer = changed(201, written.etag)
        .with(names::BLOB_SEQUENCE_NUMBER, written.sequence_number.get().to_string());
    match &written.sums {
        Some(sums) => encrypted(with_sum(answer, sums, gave_md5)),
        None => answer,
    }
}

pub async fn ranges(context: &Context<'_>, blob: &BlobRef) -> Result<Answer, Failure> {
    let asked = &context.asked;
    let (_, limit) = asked.max_results(limits::PAGE_RANGES_MAX)?;
    let from = match asked.option("marker") {
        None => 0,
        Some(marker) => marker::read_page(marker).ok_or(Shared::InputOutOfRange)?,
    };
    let query =
        PageQuery { which: asked.which()?, range: asked.range()?, previous: previous(context)?, from, limit };
    let found = context.service().page_ranges(blob, query, &asked.stated()?).await?;
    let held = context.hold(found.ranges.len() * RANGE_BYTES_MAX)?;
    let ranges: Vec<ListedPages> = found
        .ranges
        .iter()
        .map(|pages| match pages {
            FoundPages::Written(range) => ListedPages::Written(*range),
            FoundPages::Cleared(range) => ListedPages::Cleared(*range),
        })
        .collect();
    let next = next_marker(limit.is_some(), found.next);
    let writer = page_list::writer(context.version());
    let document = page_list::write(writer, &ranges, next.as_deref());
    let answer = Answer::document(200, front::held_bytes(document.into(), held));
    let length = found.length.to_string();
    Ok(answer.with_all(changed(200, found.etag).with("x-ms-blob-content-length", length).headers))
}

/// Told if pages were asked for; and always if there is more, which nobody must miss.
fn next_marker(is_paged: bool, next: Option<u64>) -> Option<String> {
    next.map(marker::of_page).or_else(|| is_paged.then(String::new))
}

/// The earlier snapshot, by its time or, for managed disks, by its address.
fn previous(context: &Context<'_>) -> Result<Option<SnapshotTime>, Refusal> {
    let name = "prevsnapshot";
    let header = "x-ms-previous-snapshot-url";
    if let Some(text) = context.asked.option(name) {
        let reason = Some("Must be in the specific snapshot date time format.");
        let invalid = || Refusal::ParameterInvalid { name, value: text.to_owned(), reason };
        return SnapshotTime::parse(text).map(Some).ok_or_else(invalid);
    }
    let Some(url) = context.asked.text(header)? else { return Ok(None) };
    let query = url.split_once('?').and_then(|(_, query)| protocol::QueryString::parse(query));
    let time = query.as_ref().and_then(|query| query.get_ignoring_case("snapshot"));
    let time = time.and_then(SnapshotTime::parse);
    time.map(Some).ok_or_else(|| Refusal::HeaderInvalid { name: header, value: url.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_always_told() {
        assert_eq!(next_marker(false, None), None);
        assert_eq!(next_marker(true, None).as_deref(), Some(""));
        for is_paged in [false, true] {
            assert_eq!(next_marker(is_paged, Some(1024)).as_deref(), Some("2!16!MDAwMDA0ITEwMjQh"));
        }
    }
}
