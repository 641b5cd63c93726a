//! Ranges of pages: what a write to a page blob names, and what Get Page Ranges tells.

use crate::{ByteRange, Refusal, limits};

const PAGE: u64 = limits::PAGE_BYTES;

/// Whole pages of a page blob: from `start` up to `end`, without it. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRange {
    start: u64,
    end: u64,
}

impl PageRange {
    /// `None` unless both are ends of pages of the largest blob, one before the other.
    pub fn new(start: u64, end: u64) -> Option<Self> {
        let is_whole = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        (is_whole && start < end && end <= limits::PAGE_BLOB_BYTES_MAX).then_some(Self { start, end })
    }

    /// The range of Put Page. `text` is what the request says; its header is told as `Range` whichever it was.
    pub fn of_write(text: Option<&str>) -> Result<Self, Refusal> {
        let text = text.ok_or(Refusal::HeaderMissing { name: "Range" })?;
        let invalid = || Refusal::HeaderInvalid { name: "Range", value: text.to_owned() };
        let range = ByteRange::parse(text).ok_or_else(invalid)?;
        let end = range.last().and_then(|last| last.checked_add(1)).ok_or_else(invalid)?;
        let is_whole = range.first().is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        match Self::new(range.first(), end) {
            Some(pages) => Ok(pages),
            None if is_whole => Err(Refusal::PageRangeInvalid),
            None => Err(invalid()),
        }
    }

    /// The pages that Get Page Ranges looks at: those of a range, widened to whole pages, in a blob of this length.
    pub fn of_read(range: Option<ByteRange>, length: u64) -> Result<Option<Self>, Refusal> {
        let Some(range) = range else { return Ok(Self::new(0, length)) };
        let span = range.of(length)?;
        let end = (span.last() / PAGE + 1) * PAGE;
        Ok(Self::new(span.start / PAGE * PAGE, end.min(length)))
    }

    /// Within a page blob of this length.
    pub fn within(self, length: u64) -> Result<Self, Refusal> {
        if self.end <= length { Ok(self) } else { Err(Refusal::PageRangeInvalid) }
    }

    pub fn start(self) -> u64 {
        self.start
    }

    pub fn end(self) -> u64 {
        self.end
    }

    /// The last of its bytes.
    pub fn last(self) -> u64 {
        self.end - 1
    }

    pub fn bytes(self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 7.3.
    #[test]
    fn a_write_names_whole_pages() {
        let check = |text: Option<&str>, expected: Result<(u64, u64), &str>| {
            let range = PageRange::of_write(text).and_then(|range| range.within(4096));
            let range =
                range.as_ref().map(|range| (range.start, range.end)).map_err(|refusal| refusal.code());
            assert_eq!(range, expected, "{text:?}");
        };
        check(Some("bytes=0-511"), Ok((0, 512)));
        check(Some("bytes=512-4095"), Ok((512, 4096)));
        check(None, Err("MissingRequiredHeader"));
        check(Some("bytes=0-512"), Err("InvalidHeaderValue"));
        check(Some("bytes=1-511"), Err("InvalidHeaderValue"));
        check(Some("bytes=0-"), Err("InvalidHeaderValue"));
        check(Some("nonsense"), Err("InvalidHeaderValue"));
        check(Some("bytes=0-18446744073709551615"), Err("InvalidHeaderValue"));
        check(Some("bytes=4096-4607"), Err("InvalidPageRange"));
        check(Some("bytes=8796093022208-8796093022719"), Err("InvalidPageRange"));
        let unaligned = PageRange::of_write(Some("bytes=0-512")).unwrap_err();
        assert_eq!(
            unaligned.details(),
            [("HeaderName", "Range".into()), ("HeaderValue", "bytes=0-512".into())]
        );
    }

    #[test]
    fn a_read_is_widened_to_pages_and_cut_to_the_blob() {
        let check = |text: Option<&str>, length, expected: Result<Option<(u64, u64)>, &str>| {
            let range = text.map(|text| ByteRange::parse(text).unwrap());
            let pages = PageRange::of_read(range, length);
            let pages =
                pages.as_ref().map(|pages| pages.map(|range| (range.start, range.end))).map_err(|r| r.code());
            assert_eq!(pages, expected, "{text:?} of {length}");
        };
        check(None, 2048, Ok(Some((0, 2048))));
        check(None, 0, Ok(None));
        check(Some("bytes=0-"), 2048, Ok(Some((0, 2048))));
        check(Some("bytes=513-514"), 2048, Ok(Some((512, 1024))));
        check(Some("bytes=511-512"), 2048, Ok(Some((0, 1024))));
        check(Some("bytes=2047-9999"), 2048, Ok(Some((1536, 2048))));
        check(Some("bytes=2048-"), 2048, Err("InvalidRange"));
    }
}
