//! The range of a blob that a read asks for.

use crate::Refusal;

/// What `Range` or `x-ms-range` says: from a byte on, or from one byte to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: Option<u64>,
}

/// Bytes of a blob that are there: from the first, as many as this, never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub bytes: u64,
}

impl Span {
    /// The last of its bytes.
    pub fn last(self) -> u64 {
        self.start + (self.bytes - 1)
    }
}

impl ByteRange {
    /// `None` for what the service passes over, as if no range had been asked for: other units, several ranges, the last
    /// bytes, an end before the start, and what is no range at all.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.trim_ascii().strip_prefix("bytes=")?.split_once('-')?;
        let first = number(first)?;
        let last = match last.trim_ascii() {
            "" => None,
            last => Some(number(last)?),
        };
        last.is_none_or(|last| first <= last).then_some(Self { first, last })
    }

    pub fn first(self) -> u64 {
        self.first
    }

    pub fn last(self) -> Option<u64> {
        self.last
    }

    /// The bytes that a blob of this length has of the range.
    pub fn of(self, length: u64) -> Result<Span, Refusal> {
        if self.first >= length {
            return Err(Refusal::RangeInvalid { length });
        }
        let last = self.last.map_or(length - 1, |last| last.min(length - 1));
        Ok(Span { start: self.first, bytes: last - self.first + 1 })
    }
}

/// `parse` alone would accept a sign.
fn number(digits: &str) -> Option<u64> {
    let digits = digits.trim_ascii();
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 6.2, 0.3 facts 12 and 13.
    #[test]
    fn ranges_are_read_or_passed_over() {
        let check = |text: &str, expected: Option<(u64, Option<u64>)>| {
            assert_eq!(ByteRange::parse(text).map(|range| (range.first, range.last)), expected, "{text}");
        };
        check("bytes=0-", Some((0, None)));
        check("bytes=0-511", Some((0, Some(511))));
        check("bytes=5-5", Some((5, Some(5))));
        check(" bytes= 3 - 4 ", Some((3, Some(4))));
        for passed_over in [
            "bytes=-1-",
            "bytes=-5",
            "bytes=0-1,3-4",
            "bytes=7-3",
            "items=0-1",
            "bytes=",
            "0-5",
            "bytes=a-b",
            "bytes=+1-2",
        ] {
            check(passed_over, None);
        }
        check("bytes=0-99999999999999999999", None);
        check("bytes=18446744073709551615-", Some((u64::MAX, None)));
    }

    #[test]
    fn a_range_is_cut_to_the_blob() {
        let check = |text: &str, length: u64, expected: Option<(u64, u64)>| {
            let span = ByteRange::parse(text).unwrap().of(length);
            assert_eq!(
                span.as_ref().ok().map(|span| (span.start, span.bytes)),
                expected,
                "{text} of {length}"
            );
            if expected.is_none() {
                assert_eq!(span, Err(Refusal::RangeInvalid { length }));
            }
        };
        check("bytes=0-", 11, Some((0, 11)));
        check("bytes=3-5", 11, Some((3, 3)));
        check("bytes=3-500", 11, Some((3, 8)));
        check("bytes=10-10", 11, Some((10, 1)));
        check("bytes=0-18446744073709551615", u64::MAX, Some((0, u64::MAX)));
        check("bytes=11-", 11, None);
        check("bytes=0-", 0, None);
        check("bytes=0-33554431", 0, None);
    }
}
