//! What a blob says of itself, in headers and in lists.

use common::DateTime;

use crate::{CopyState, Etag, LeaseView, Md5, Metadata, Refusal, SequenceNumber, Tags, TierState, limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobType {
    Block,
    Page,
    Append,
}

impl BlobType {
    pub const ALL: [Self; 3] = [Self::Block, Self::Page, Self::Append];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Page => "PageBlob",
            Self::Append => "AppendBlob",
        }
    }

    /// The header `x-ms-blob-type`.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(value));
        found.ok_or_else(|| Refusal::HeaderInvalid { name: "x-ms-blob-type", value: value.to_owned() })
    }
}

/// Who may read a container without credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublicAccess {
    #[default]
    None,
    /// Its blobs, but not their list.
    Blob,
    Container,
}

impl PublicAccess {
    /// The header `x-ms-blob-public-access`; without it a container is private.
    pub fn of_header(value: Option<&str>) -> Result<Self, Refusal> {
        match value.map(str::to_ascii_lowercase).as_deref() {
            None => Ok(Self::None),
            Some("blob") => Ok(Self::Blob),
            // `true` is how the first versions said it.
            Some("container" | "true") => Ok(Self::Container),
            Some(_) => Err(Refusal::HeaderInvalid {
                name: "x-ms-blob-public-access",
                value: value.unwrap_or_default().to_owned(),
            }),
        }
    }

    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Blob => Some("blob"),
            Self::Container => Some("container"),
        }
    }
}

/// The headers of its content that a client may set. Set Blob Properties replaces all of them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders {
    pub content_type: Option<String>,
    pub encoding: Option<String>,
    pub language: Option<String>,
    /// Of the whole blob, as it was computed or as a client says.
    pub md5: Option<Md5>,
    pub cache_control: Option<String>,
    pub disposition: Option<String>,
}

/// What only one type of blobs has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    Block { tier: TierState },
    Page { sequence_number: SequenceNumber },
    Append { blocks: u32, is_sealed: bool },
}

impl BlobKind {
    pub const fn blob_type(&self) -> BlobType {
        match self {
            Self::Block { .. } => BlobType::Block,
            Self::Page { .. } => BlobType::Page,
            Self::Append { .. } => BlobType::Append,
        }
    }

    /// An operation of this type alone.
    pub fn check_type(&self, needed: BlobType) -> Result<(), Refusal> {
        if self.blob_type() == needed { Ok(()) } else { Err(Refusal::BlobTypeInvalid) }
    }
}

/// A blob, a snapshot or a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobProperties {
    pub created: DateTime,
    pub etag: Etag,
    pub length: u64,
    pub content: ContentHeaders,
    pub kind: BlobKind,
    /// None on snapshots, versions and what was deleted.
    pub lease: Option<LeaseView>,
    pub copy: Option<CopyState>,
    pub metadata: Metadata,
    pub tags: Tags,
}

/// The header `x-ms-blob-content-length` of a page blob: whole pages, up to 8 TiB.
pub fn page_blob_length(value: &str) -> Result<u64, Refusal> {
    let is_whole =
        |length: &u64| length.is_multiple_of(limits::PAGE_BYTES) && *length <= limits::PAGE_BLOB_BYTES_MAX;
    let invalid = || Refusal::HeaderInvalid { name: "x-ms-blob-content-length", value: value.to_owned() };
    value.parse().ok().filter(is_whole).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 6.1, 5.
    #[test]
    fn headers_name_types_access_and_lengths() {
        for kind in BlobType::ALL {
            assert_eq!(BlobType::of_header(kind.name()), Ok(kind));
        }
        assert_eq!(BlobType::of_header("Blob").unwrap_err().code(), "InvalidHeaderValue");
        let check = |value, expected: Result<PublicAccess, &str>| {
            let read = PublicAccess::of_header(value);
            assert_eq!(
                read.as_ref().map(|access| *access).map_err(|refusal| refusal.code()),
                expected,
                "{value:?}"
            );
        };
        check(None, Ok(PublicAccess::None));
        check(Some("blob"), Ok(PublicAccess::Blob));
        check(Some("Container"), Ok(PublicAccess::Container));
        check(Some("nobody"), Err("InvalidHeaderValue"));
        for (value, expected) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("8796093022208", Some(8 << 40)),
            ("8796093022209", None),
            ("8796093022720", None),
            ("1", None),
            ("12", None),
            ("-4", None),
            ("-512", None),
        ] {
            let read = page_blob_length(value);
            assert_eq!(read.as_ref().ok().copied(), expected, "{value}");
            assert!(read.is_ok() || read.unwrap_err().code() == "InvalidHeaderValue");
        }
    }

    #[test]
    fn an_operation_of_one_type_refuses_the_others() {
        let kinds = [
            BlobKind::Block { tier: TierState::INFERRED },
            BlobKind::Page { sequence_number: SequenceNumber::default() },
            BlobKind::Append { blocks: 0, is_sealed: false },
        ];
        for kind in kinds {
            for needed in BlobType::ALL {
                let expected = (kind.blob_type() != needed).then_some(Refusal::BlobTypeInvalid);
                assert_eq!(kind.check_type(needed).err(), expected);
            }
        }
    }
}
