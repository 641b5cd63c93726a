//! ETags: the time of the last change in other letters.

use std::fmt;

use common::DateTime;

/// A container's or a blob's ETag: `0x` and 15 upper-case hexadecimal digits, the ticks of its last change. Headers and lists
/// of containers show it in quotes, lists of blobs without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Etag(pub DateTime);

impl Etag {
    /// With or without quotes. `None` for a text that is no ETag of this server, as a weak one is.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let digits = text.strip_prefix("0x")?;
        let is_written_so =
            digits.len() == 15 && digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
        let ticks = i64::from_str_radix(digits, 16).ok().filter(|_| is_written_so)?;
        DateTime::from_ticks(ticks).map(Self)
    }

    /// As in headers.
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }

    /// The time as HTTP shows it: whole seconds.
    pub fn last_modified(self) -> DateTime {
        // Cutting off what is left of a second stays in the range of times.
        DateTime::from_ticks(self.0.ticks() / TICKS_PER_SECOND * TICKS_PER_SECOND).unwrap_or(self.0)
    }
}

const TICKS_PER_SECOND: i64 = 10_000_000;

/// Without quotes.
impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:015X}", self.0.ticks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_etag_is_the_time_in_ticks() {
        let time = DateTime::parse("2022-08-01T23:14:26.1890797Z").unwrap();
        assert_eq!(Etag(time).to_string(), "0x8DA741393F58EED");
        assert_eq!(Etag(time).quoted(), "\"0x8DA741393F58EED\"");
        assert_eq!(Etag(time).last_modified().to_fixed_string(), "2022-08-01T23:14:26.0000000Z");
        for text in [
            "",
            "*",
            "0x111",
            "W/\"0x8DA741393F58EED\"",
            "0x8da741393f58eed",
            "8DA741393F58EED",
            "0x-DA741393F58EED",
        ] {
            assert_eq!(Etag::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn etags_read_back_in_both_forms(ticks in DateTime::MIN_STORED.ticks()..=DateTime::MAX.ticks()) {
            let etag = Etag(DateTime::from_ticks(ticks).unwrap());
            // 15 digits hold until the year 3654.
            prop_assume!(ticks < 1 << 60);
            prop_assert_eq!(Etag::parse(&etag.to_string()), Some(etag));
            prop_assert_eq!(Etag::parse(&etag.quoted()), Some(etag));
        }
    }
}
