//! What a blob says of itself, in headers and in lists.
//!
//! ETags and times of snapshots are kept as the service writes them: they are its own, and only it knows what they mean.

use std::collections::BTreeMap;

use blob_model::Metadata;
use blob_wire::names as blob_names;
use model::DateTime;
use percent_encoding::percent_decode_str;
use protocol::xml_tree::Element;

use crate::error::{Error, Result};
use crate::etag::ETag;
use crate::transport::{ServiceAnswer, ServiceRequest};

pub const LEASE_ID: &str = "x-ms-lease-id";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobType {
    /// Content that is put as a whole or in blocks.
    Block,
    /// Pages of 512 bytes that are written in place.
    Page,
    /// Content that only grows.
    Append,
}

/// The state of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

/// The headers of a blob's content, which a download answers with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders {
    /// `application/octet-stream` if it is not set.
    pub content_type: Option<String>,
    pub encoding: Option<String>,
    pub language: Option<String>,
    pub cache_control: Option<String>,
    pub disposition: Option<String>,
    /// In Base64. A service computes it for a blob that is put as a whole.
    pub md5: Option<String>,
}

/// The copy that a blob was last written by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyState {
    pub id: String,
    /// `success`, `pending`, `failed` or `aborted`.
    pub status: String,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobProperties {
    pub blob_type: BlobType,
    /// In bytes.
    pub length: u64,
    pub etag: ETag,
    pub last_modified: DateTime,
    pub created: Option<DateTime>,
    pub headers: ContentHeaders,
    /// In lists, names are as they were sent; elsewhere in lower case, as HTTP libraries send them. Empty in a list that was
    /// not asked for it.
    pub metadata: BTreeMap<String, String>,
    /// None for snapshots.
    pub lease: Option<LeaseState>,
    /// Of block blobs; a download does not tell it.
    pub tier: Option<String>,
    /// The tier was set, and is not just the account's.
    pub is_tier_set: bool,
    pub tag_count: usize,
    /// Of page blobs.
    pub sequence_number: Option<u64>,
    /// An append blob that takes no more.
    pub is_sealed: bool,
    pub copy: Option<CopyState>,
}

impl BlobType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Page => "PageBlob",
            Self::Append => "AppendBlob",
        }
    }

    fn of(text: &str) -> Option<Self> {
        [Self::Block, Self::Page, Self::Append].into_iter().find(|of| of.name() == text)
    }
}

impl LeaseState {
    pub(super) fn of(text: &str) -> Self {
        match text {
            "leased" => Self::Leased,
            "expired" => Self::Expired,
            "breaking" => Self::Breaking,
            "broken" => Self::Broken,
            _ => Self::Available,
        }
    }
}

impl ContentHeaders {
    /// Only a type, such as `text/plain`.
    pub fn of_type(content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..Self::default() }
    }

    pub(super) fn add(&self, mut request: ServiceRequest) -> ServiceRequest {
        for (name, value) in [
            ("x-ms-blob-content-type", &self.content_type),
            ("x-ms-blob-content-encoding", &self.encoding),
            ("x-ms-blob-content-language", &self.language),
            ("x-ms-blob-cache-control", &self.cache_control),
            ("x-ms-blob-content-disposition", &self.disposition),
            (blob_names::BLOB_CONTENT_MD5, &self.md5),
        ] {
            if let Some(value) = value {
                request = request.header(name, value.as_str());
            }
        }
        request
    }
}

/// Of the headers of Get Blob and Get Blob Properties. `length` is that of the whole blob.
pub fn of_answer(answer: &ServiceAnswer, length: u64) -> Result<BlobProperties> {
    let text = |name| answer.header(name).map(str::to_owned);
    let unreadable = |name: &str| Error::Unreadable(format!("the answer has no readable header {name}"));
    let blob_type = answer.header(blob_names::BLOB_TYPE).and_then(BlobType::of);
    // The checksum of the whole blob; in the answer to a range, the other header has that of the range.
    let is_part = answer.header("content-range").is_some();
    let md5 = if is_part { text(blob_names::BLOB_CONTENT_MD5) } else { text("content-md5") };
    let copy = || {
        Some(CopyState {
            id: text(blob_names::COPY_ID)?,
            status: text(blob_names::COPY_STATUS)?,
            source: text(blob_names::COPY_SOURCE).unwrap_or_default(),
        })
    };
    Ok(BlobProperties {
        blob_type: blob_type.ok_or_else(|| unreadable(blob_names::BLOB_TYPE))?,
        length,
        etag: etag(answer)?,
        last_modified: last_modified(answer)?,
        created: answer.header(blob_names::CREATION_TIME).and_then(http_time),
        headers: ContentHeaders {
            content_type: text("content-type"),
            encoding: text("content-encoding"),
            language: text("content-language"),
            cache_control: text("cache-control"),
            disposition: text("content-disposition"),
            md5,
        },
        metadata: metadata(answer),
        lease: answer.header(blob_names::LEASE_STATE).map(LeaseState::of),
        tier: text(blob_names::ACCESS_TIER),
        is_tier_set: is_tier_set(
            answer.header(blob_names::ACCESS_TIER),
            answer.header(blob_names::ACCESS_TIER_INFERRED),
        ),
        tag_count: answer.header(blob_names::TAG_COUNT).and_then(|n| n.parse().ok()).unwrap_or_default(),
        sequence_number: answer.header(blob_names::BLOB_SEQUENCE_NUMBER).and_then(|n| n.parse().ok()),
        is_sealed: answer.header(blob_names::BLOB_SEALED) == Some("true"),
        copy: copy(),
    })
}

/// Of an element `Blob` of a list.
pub fn of_listed(blob: &Element) -> Option<BlobProperties> {
    let of = child(blob, "Properties")?;
    let owned = |name| text(of, name).map(str::to_owned);
    let number = |name| text(of, name).and_then(|text| text.parse().ok());
    let copy = || {
        Some(CopyState {
            id: owned("CopyId")?,
            status: owned("CopyStatus")?,
            source: owned("CopySource").unwrap_or_default(),
        })
    };
    Some(BlobProperties {
        blob_type: BlobType::of(text(of, "BlobType")?)?,
        length: text(of, "Content-Length")?.parse().ok()?,
        etag: listed_etag(of)?,
        last_modified: listed_time(of, "Last-Modified")?,
        created: listed_time(of, "Creation-Time"),
        headers: ContentHeaders {
            content_type: owned("Content-Type"),
            encoding: owned("Content-Encoding"),
            language: owned("Content-Language"),
            cache_control: owned("Cache-Control"),
            disposition: owned("Content-Disposition"),
            md5: owned("Content-MD5"),
        },
        metadata: listed_metadata(blob),
        lease: text(of, "LeaseState").map(LeaseState::of),
        tier: owned("AccessTier"),
        is_tier_set: is_tier_set(text(of, "AccessTier"), text(of, "AccessTierInferred")),
        tag_count: number("TagCount").unwrap_or_default() as usize,
        sequence_number: number("x-ms-blob-sequence-number"),
        is_sealed: text(of, "Sealed") == Some("true"),
        copy: copy(),
    })
}

fn is_tier_set(tier: Option<&str>, inferred: Option<&str>) -> bool {
    tier.is_some() && inferred != Some("true")
}

pub fn etag(answer: &ServiceAnswer) -> Result<ETag> {
    let etag = answer.header("etag").map(ETag::new);
    etag.ok_or_else(|| Error::Unreadable("the answer has no ETag".to_owned()))
}

pub fn last_modified(answer: &ServiceAnswer) -> Result<DateTime> {
    let time = answer.header("last-modified").and_then(http_time);
    time.ok_or_else(|| Error::Unreadable("the answer has no readable Last-Modified".to_owned()))
}

pub fn metadata(answer: &ServiceAnswer) -> BTreeMap<String, String> {
    let pairs = answer.headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(blob_names::META_PREFIX)?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    pairs.collect()
}

pub fn with_metadata(request: ServiceRequest, metadata: &BTreeMap<String, String>) -> Result<ServiceRequest> {
    let pairs = metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let checked = Metadata::new(pairs).map_err(|refusal| {
        Error::invalid(format!(
            "this can't be metadata ({}); names take letters, digits and _, no digit first, and all of it 8 KiB",
            refusal.code()
        ))
    })?;
    let add = |request: ServiceRequest, (name, value): (&str, &str)| {
        request.header(format!("{}{name}", blob_names::META_PREFIX), value)
    };
    Ok(checked.iter().fold(request, add))
}

pub fn http_time(text: &str) -> Option<DateTime> {
    httpdate::parse_http_date(text).ok().and_then(DateTime::from_system_time)
}

/// An element that is there at most once.
pub fn child<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.child(name).ok().flatten()
}

/// Its text, if it has any.
pub fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    child(element, name).map(Element::whole_text).filter(|text| !text.is_empty())
}

/// A name, which is percent-encoded if XML can't have its characters.
pub fn listed_name(element: &Element) -> Option<String> {
    let name = child(element, "Name")?;
    match name.attribute("Encoded") {
        Some("true") => {
            percent_decode_str(name.whole_text()).decode_utf8().ok().map(|name| name.into_owned())
        }
        _ => Some(name.whole_text().to_owned()),
    }
}

/// Lists of blobs show it without quotes, headers with them.
pub fn listed_etag(properties: &Element) -> Option<ETag> {
    let text = text(properties, "Etag")?;
    Some(ETag::new(if text.starts_with('"') { text.to_owned() } else { format!("\"{text}\"") }))
}

pub fn listed_time(properties: &Element, name: &str) -> Option<DateTime> {
    text(properties, name).and_then(http_time)
}

pub fn listed_metadata(element: &Element) -> BTreeMap<String, String> {
    let pairs = child(element, "Metadata").into_iter().flat_map(|metadata| &metadata.children);
    pairs.map(|pair| (pair.name.clone(), pair.whole_text().to_owned())).collect()
}
