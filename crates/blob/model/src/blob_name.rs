//! Names of blobs.

use std::fmt;
use std::sync::Arc;

use crate::{Refusal, limits};

/// A blob's name: 1 to 1,024 units of any characters, in at most 254 parts between slashes. Case tells names apart, and they
/// are ordered by their bytes in UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName(Arc<str>);

impl BlobName {
    /// Of a decoded address. A backslash is a slash, as the service has it.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let units = text.encode_utf16().take(limits::BLOB_NAME_UNITS_MAX + 1).count();
        if !(1..=limits::BLOB_NAME_UNITS_MAX).contains(&units) {
            return Err(common::Refusal::InputOutOfRange.into());
        }
        let name: Arc<str> = match text.contains('\\') {
            true => text.replace('\\', "/").into(),
            false => text.into(),
        };
        if name.split('/').count() > limits::BLOB_NAME_SEGMENTS_MAX {
            return Err(common::Refusal::InputOutOfRange.into());
        }
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_characters_make_a_name_of_limited_length() {
        let check = |text: &str, expected: Option<&str>| {
            let parsed = BlobName::parse(text);
            assert_eq!(parsed.as_ref().ok().map(BlobName::as_str), expected, "{text:.40}");
            if let Err(refusal) = parsed {
                assert_eq!(refusal, common::Refusal::InputOutOfRange.into());
            }
        };
        for name in ["a", "a/", "//a", "a//b", "a b+c%", "ä", "\u{ffff}", "\u{1}", "📦", "A", "name."] {
            check(name, Some(name));
        }
        check("dir\\file", Some("dir/file"));
        check("", None);
        let (most, more) = ("é".repeat(1024), "é".repeat(1025));
        check(&most, Some(&most));
        check(&more, None);
        // Two units each.
        check(&"📦".repeat(513), None);
        let (parts, too_many) = ("a/".repeat(253), "a/".repeat(254));
        check(&parts, Some(&parts));
        check(&too_many, None);
    }

    #[test]
    fn names_are_ordered_by_their_bytes() {
        let order = ["A", "a", "a-b", "a/", "a/b", "ab", "ä", "\u{e000}", "\u{ffff}", "\u{10000}", "📦"];
        let names: Vec<BlobName> = order.iter().map(|name| BlobName::parse(name).unwrap()).collect();
        assert!(names.is_sorted());
    }
}
