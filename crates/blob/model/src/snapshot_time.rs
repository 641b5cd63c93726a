//! The time that names a snapshot or a version of a blob.

use std::fmt;

use common::DateTime;

/// `yyyy-MM-ddTHH:mm:ss.fffffffZ`, with all seven digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotTime(pub DateTime);

impl SnapshotTime {
    /// Above every snapshot: the blob itself, in markers.
    pub const BASE: Self = Self(DateTime::MAX);

    pub fn parse(text: &str) -> Option<Self> {
        let has_form = text.len() == 28 && text.as_bytes()[19] == b'.' && text.ends_with('Z');
        DateTime::parse(text).filter(|_| has_form).map(Self)
    }
}

impl fmt::Display for SnapshotTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_fixed_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 1.4.
    #[test]
    fn a_snapshot_is_named_with_seven_digits() {
        let recorded = "2022-07-13T23:46:14.4048519Z";
        assert_eq!(SnapshotTime::parse(recorded).map(|time| time.to_string()).as_deref(), Some(recorded));
        assert_eq!(SnapshotTime::BASE.to_string(), "9999-12-31T23:59:59.9999999Z");
        for text in
            ["1", "", "2022-07-13", "2022-07-13T23:46:14Z", "2022-07-13T23:46:14.404851Z", "invalidSnapshot"]
        {
            assert_eq!(SnapshotTime::parse(text), None, "{text}");
        }
        assert_eq!(SnapshotTime::parse("2022-07-13T23:46:14.40485190Z"), None);
        assert_eq!(SnapshotTime::parse("2022-07-13T23:46+01.4048519Z"), None);
        assert_eq!(SnapshotTime::parse("ééééééééé.7é13T23:46:14.44Z"), None);
    }
}
