//! `x-ms-version`: any well-formed date is accepted. What a version changes for all services is asked here; what it changes
//! for one service is asked in that service's crates.

use std::fmt;

/// A protocol version, `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u8; 10]);

const FIRST: Version = Version(*b"2009-04-14");
const ALL_PROPERTIES: Version = Version(*b"2013-08-15");
const LOGGED_ERROR_CODES: Version = Version(*b"2017-04-17");

impl Version {
    /// The version of a request that names none. The current SDKs for tables send this version.
    pub const DEFAULT: Self = Self(*b"2019-02-02");

    /// The first version with a challenge for anonymous requests, and the first in which tables have it.
    pub(crate) const FIRST_CHALLENGE: Self = Self(*b"2019-12-12");
    pub(crate) const FIRST_TABLE_CHALLENGE: Self = Self(*b"2020-12-06");

    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 10] = text.as_bytes().try_into().ok()?;
        let shaped = bytes
            .iter()
            .enumerate()
            .all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
        let two = |at: usize| (bytes[at] - b'0') * 10 + (bytes[at + 1] - b'0');
        let version = Self(bytes);
        (shaped && (1..=12).contains(&two(5)) && (1..=31).contains(&two(8)) && version >= FIRST)
            .then_some(version)
    }

    pub fn as_str(&self) -> &str {
        // `parse` accepts only ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// CORS, minute metrics, and the name `HourMetrics`.
    pub fn has_all_properties(self) -> bool {
        self >= ALL_PROPERTIES
    }

    /// The request log names errors of the client by their code.
    pub fn logs_error_codes(self) -> bool {
        self >= LOGGED_ERROR_CODES
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn any_well_formed_date_is_a_version() {
        for text in ["2009-04-14", "2019-02-02", "2026-06-06", "2099-12-31"] {
            assert_eq!(Version::parse(text).map(|v| v.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "12.0.0b1",
            "2019-2-2",
            "2019-13-01",
            "2019-01-32",
            "2008-01-01",
            "2019-02-02 ",
            "２019-02-0",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
