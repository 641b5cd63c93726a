//! What is stored with a queue: its metadata and its stored access policies, as one document that can grow.
//!
//! The first byte is the format, 01. Fields follow, each a tag, the length of its value as a varint, and the value; in
//! ascending order of their tags. Fields of later versions are kept as they are.

use std::collections::BTreeMap;

use bytes::Bytes;
use queue_model::Metadata;
use store::Fault;
use store::encoding::varint;

const FORMAT: u8 = 1;
/// Names and values, each after its length.
const METADATA: u8 = 1;
/// The policies as the protocol writes them.
const POLICIES: u8 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    pub metadata: Metadata,
    pub policies: Option<Bytes>,
    /// Fields of later versions.
    unknown: BTreeMap<u8, Bytes>,
}

impl Document {
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata, ..Self::default() }
    }

    pub fn write(&self) -> Bytes {
        let mut fields = self.unknown.clone();
        if !self.metadata.is_empty() {
            fields.insert(METADATA, write_metadata(&self.metadata).into());
        }
        if let Some(policies) = &self.policies {
            fields.insert(POLICIES, policies.clone());
        }
        let mut document = vec![FORMAT];
        for (tag, value) in fields {
            document.push(tag);
            put(&mut document, &value);
        }
        document.into()
    }

    /// A queue that was created without a document has an empty one.
    pub fn read(stored: Option<&Bytes>) -> Result<Self, Fault> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        parse(stored).ok_or_else(|| Fault::damaged("the stored metadata of a queue can't be read"))
    }
}

fn parse(stored: &Bytes) -> Option<Document> {
    let mut rest = stored.strip_prefix(&[FORMAT])?;
    let mut document = Document::default();
    while let Some((tag, behind)) = rest.split_first() {
        rest = behind;
        let value = take(&mut rest)?;
        match *tag {
            METADATA => document.metadata = read_metadata(value)?,
            POLICIES => document.policies = Some(Bytes::copy_from_slice(value)),
            other => {
                document.unknown.insert(other, Bytes::copy_from_slice(value));
            }
        }
    }
    Some(document)
}

fn write_metadata(metadata: &Metadata) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in metadata.iter() {
        put(&mut out, name.as_bytes());
        put(&mut out, value.as_bytes());
    }
    out
}

fn read_metadata(mut rest: &[u8]) -> Option<Metadata> {
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        pairs.push((text(take(&mut rest)?)?, text(take(&mut rest)?)?));
    }
    Metadata::new(pairs).ok()
}

fn put(out: &mut Vec<u8>, value: &[u8]) {
    varint::put(out, value.len());
    out.extend_from_slice(value);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::take(rest)?;
    let (value, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> Metadata {
        Metadata::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
            .unwrap()
    }

    #[test]
    fn documents_read_back() {
        let policies = Some(Bytes::from_static(b"<SignedIdentifiers />"));
        let full = Document { policies, ..Document::new(metadata(&[("color", "red"), ("Empty", "")])) };
        for document in [Document::default(), Document::new(metadata(&[("a", "é")])), full] {
            assert_eq!(Document::read(Some(&document.write())).unwrap(), document);
        }
        assert_eq!(Document::read(None).unwrap(), Document::default());
    }

    #[test]
    fn the_bytes_are_those_of_the_page_on_the_storage_format() {
        let policies = Some(Bytes::from_static(b"acl"));
        let document = Document { policies, ..Document::new(metadata(&[("color", "red")])) };
        assert_eq!(&document.write()[..], b"\x01\x01\x0a\x05color\x03red\x02\x03acl");
    }

    #[test]
    fn fields_of_later_versions_are_kept() {
        let stored = Bytes::from_static(b"\x01\x01\x04\x01a\x011\x07\x05later");
        let mut document = Document::read(Some(&stored)).unwrap();
        document.metadata = metadata(&[("a", "2")]);
        assert_eq!(&document.write()[..], b"\x01\x01\x04\x01a\x012\x07\x05later");
    }

    #[test]
    fn damage_is_seen() {
        let whole = Document::new(metadata(&[("color", "red")])).write();
        for length in [0, 2, 3, whole.len() - 1] {
            assert!(Document::read(Some(&whole.slice(..length))).is_err(), "{length} bytes");
        }
        for damaged in [&b"\x02"[..], b"\x01\x01\x04\x011\x011", b"\x01\x01\x02\x01a"] {
            assert!(Document::read(Some(&Bytes::from_static(damaged))).is_err(), "{damaged:?}");
        }
    }
}
