//! Metadata of a container or a blob: named texts that its owner keeps with it.

use crate::{Refusal, limits};

/// Pairs of names and values in the order they were given. Each name is a C# identifier; no two are equal without case.
#[derive(Clone, Debug, Default)]
pub struct Metadata(Vec<(String, String)>);

impl Metadata {
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, Refusal> {
        for (name, value) in &pairs {
            if name.is_empty() {
                return Err(Refusal::MetadataKeyEmpty { value: value.clone() });
            }
            if !is_identifier(name) || !is_text(value) {
                return Err(Refusal::MetadataInvalid);
            }
        }
        let mut names: Vec<String> = pairs.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refusal::MetadataInvalid);
        }
        let metadata = Self(pairs);
        if metadata.bytes() > limits::METADATA_BYTES_MAX {
            return Err(Refusal::MetadataTooLarge);
        }
        Ok(metadata)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Of names and values together.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The same names, whatever their case and order, with the same values.
impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        // Names of one set are distinct, so that as many pairs, each of them found, are the same pairs.
        let has = |(name, value): &(String, String)| {
            other.0.iter().any(|(theirs, held)| theirs.eq_ignore_ascii_case(name) && held == value)
        };
        self.0.len() == other.0.len() && self.0.iter().all(has)
    }
}

impl Eq for Metadata {}

/// Header names are ASCII, so that the letters of other alphabets, which C# has, can't come.
fn is_identifier(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// What a header can carry and a list of blobs can show.
fn is_text(value: &str) -> bool {
    !value.contains(|c: char| (c.is_control() && c != '\t') || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> Result<Metadata, Refusal> {
        Metadata::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn names_are_identifiers_and_differ() {
        let check = |pairs: &[(&str, &str)], expected: Option<Refusal>| {
            assert_eq!(metadata(pairs).err(), expected, "{pairs:?}");
        };
        check(&[], None);
        check(&[("Color", "red"), ("_a1", ""), ("hdi_isfolder", "true"), ("o", "é\t")], None);
        check(&[("é", "")], Some(Refusal::MetadataInvalid));
        check(&[("invalid-meta", "x")], Some(Refusal::MetadataInvalid));
        check(&[("1234", "x")], Some(Refusal::MetadataInvalid));
        check(&[("a", "1"), ("A", "2")], Some(Refusal::MetadataInvalid));
        check(&[("a", "\u{1}")], Some(Refusal::MetadataInvalid));
        check(&[("", "value")], Some(Refusal::MetadataKeyEmpty { value: "value".to_owned() }));
    }

    #[test]
    fn case_is_kept_and_does_not_tell_names_apart() {
        let kept = metadata(&[("Hello", "world"), ("number", "42")]).unwrap();
        assert_eq!(kept.iter().next(), Some(("Hello", "world")));
        assert_eq!(kept, metadata(&[("NUMBER", "42"), ("hello", "world")]).unwrap());
        assert_ne!(kept, metadata(&[("NUMBER", "42"), ("hello", "World")]).unwrap());
        assert_ne!(kept, metadata(&[("NUMBER", "42")]).unwrap());
    }

    #[test]
    fn names_and_values_together_have_a_limit() {
        let most = "v".repeat(limits::METADATA_BYTES_MAX - 2);
        assert!(metadata(&[("ab", &most)]).is_ok());
        assert_eq!(metadata(&[("abc", &most)]).err(), Some(Refusal::MetadataTooLarge));
    }
}
