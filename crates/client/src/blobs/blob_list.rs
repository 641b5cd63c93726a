//! The blobs of a container, page by page: flat, or by hierarchy.

use std::collections::BTreeMap;

use blob_model::limits;
use futures_util::stream::{self, Stream, TryStreamExt as _};
use http::Method;
use protocol::xml_tree::Element;
use wire::names;

use super::container::Container;
use super::properties::{self, BlobProperties};
use crate::error::{Error, Result};

/// Which blobs to list, made by [`Container::blobs`].
///
/// ```no_run
/// # async fn run(photos: partita_client::Container) -> partita_client::Result<()> {
/// use futures_util::TryStreamExt as _;
/// use partita_client::BlobItem;
///
/// // What a person would see in the folder 2026.
/// let mut folder = std::pin::pin!(photos.blobs().prefix("2026/").hierarchy("/"));
/// while let Some(item) = folder.try_next().await? {
///     match item {
///         BlobItem::Prefix(prefix) => println!("{prefix}"),
///         BlobItem::Blob(blob) => println!("{} {}", blob.name, blob.properties.length),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct BlobList {
    container: Container,
    prefix: String,
    include: Vec<&'static str>,
    page_size: Option<u32>,
}

/// A blob or a snapshot in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobEntry {
    pub name: String,
    /// None for the blob itself.
    pub snapshot: Option<String>,
    /// It can still be restored.
    pub is_deleted: bool,
    pub properties: BlobProperties,
    /// Empty if the list was not asked for them.
    pub tags: BTreeMap<String, String>,
}

/// What a list by hierarchy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobItem {
    Blob(Box<BlobEntry>),
    /// The beginning that some blobs share, up to the delimiter and with it.
    Prefix(String),
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobPage {
    pub items: Vec<BlobItem>,
    /// With which the list goes on behind this page; none at the end.
    pub next: Option<String>,
}

impl BlobList {
    pub(super) fn new(container: Container) -> Self {
        Self { container, prefix: String::new(), include: Vec::new(), page_size: None }
    }

    /// Only blobs whose names begin with this.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    pub fn with_metadata(self) -> Self {
        self.include("metadata")
    }

    pub fn with_tags(self) -> Self {
        self.include("tags")
    }

    /// Snapshots too, each before its blob, the oldest first.
    pub fn with_snapshots(self) -> Self {
        self.include("snapshots")
    }

    /// With how a blob was copied.
    pub fn with_copies(self) -> Self {
        self.include("copy")
    }

    /// What was deleted and can still be restored too.
    pub fn with_deleted(self) -> Self {
        self.include("deleted")
    }

    /// The most that a page has: up to 5,000, which is also the default.
    pub fn page_size(self, items: u32) -> Self {
        Self { page_size: Some(items), ..self }
    }

    fn include(mut self, what: &'static str) -> Self {
        if !self.include.contains(&what) {
            self.include.push(what);
        }
        self
    }

    /// The blobs, in the order of their names.
    pub fn stream(self) -> impl Stream<Item = Result<BlobEntry>> + Send + use<> {
        self.items(None).try_filter_map(|item| async {
            Ok(match item {
                BlobItem::Blob(blob) => Some(*blob),
                // Nobody asked for them.
                BlobItem::Prefix(_) => None,
            })
        })
    }

    /// The blobs whose names have no delimiter behind the prefix, and for the others the beginnings up to the delimiter, each
    /// once, in one order.
    pub fn hierarchy(self, delimiter: &str) -> impl Stream<Item = Result<BlobItem>> + Send + use<> {
        self.items(Some(delimiter.to_owned()))
    }

    fn items(self, delimiter: Option<String>) -> impl Stream<Item = Result<BlobItem>> + Send + use<> {
        let pages = stream::try_unfold(Some((self, delimiter, None)), |at| async move {
            let Some((list, delimiter, next)) = at else { return Ok::<_, Error>(None) };
            let page = list.page(delimiter.as_deref(), next.as_deref()).await?;
            let rest = page.next.map(|next| (list, delimiter, Some(next)));
            Ok(Some((page.items, rest)))
        });
        pages.map_ok(|items| stream::iter(items.into_iter().map(Ok))).try_flatten()
    }

    /// One page: the first, or the one behind a page that was read.
    pub async fn page(&self, delimiter: Option<&str>, next: Option<&str>) -> Result<BlobPage> {
        let mut request = self.container.request("list_blobs", Method::GET).query(names::COMP, "list");
        let page_size = self.page_size.map(|items| items.to_string());
        for (name, value) in [
            ("prefix", Some(self.prefix.as_str())),
            ("delimiter", delimiter),
            ("marker", next),
            ("maxresults", page_size.as_deref()),
            ("include", Some(self.include.join(",").as_str())),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                request = request.query(name, value);
            }
        }
        let answer = self.container.send(request).await?;
        read(&answer.body).ok_or_else(|| Error::Unreadable("the list of blobs can't be read".to_owned()))
    }
}

/// `None` if it is no such list.
fn read(document: &[u8]) -> Option<BlobPage> {
    // Some thirty properties, ten tags of three elements each, and metadata.
    let tags_max = 16 + limits::LIST_MAX * 128;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let items = properties::child(&root, "Blobs")?.children.iter().map(|item| match item.name.as_str() {
        "Blob" => Some(BlobItem::Blob(Box::new(entry(item)?))),
        "BlobPrefix" => Some(BlobItem::Prefix(properties::listed_name(item)?)),
        _ => None,
    });
    let items = items.collect::<Option<_>>()?;
    let next = properties::text(&root, "NextMarker").map(str::to_owned);
    Some(BlobPage { items, next })
}

fn entry(blob: &Element) -> Option<BlobEntry> {
    let tags = properties::child(blob, "Tags").and_then(|tags| properties::child(tags, "TagSet"));
    let tags = tags.into_iter().flat_map(|set| &set.children).map(|tag| {
        let value = properties::text(tag, "Value").unwrap_or_default();
        Some((properties::text(tag, "Key")?.to_owned(), value.to_owned()))
    });
    Some(BlobEntry {
        name: properties::listed_name(blob)?,
        snapshot: properties::text(blob, "Snapshot").map(str::to_owned),
        is_deleted: properties::text(blob, "Deleted") == Some("true"),
        properties: properties::of_listed(blob)?,
        tags: tags.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::{BlobType, LeaseState};

    /// As the service and as Azurite write it: empty elements or none, ETags with and without quotes.
    #[test]
    fn both_ways_of_writing_a_list_are_read() {
        let head = r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>"#;
        let blob = |name: &str, etag: &str, more: &str| {
            format!(
                "<Blob><Name{name}</Name><Properties><Last-Modified>Mon, 01 Aug 2022 23:12:39 GMT</Last-Modified>\
                 <Etag>{etag}</Etag><Content-Length>7</Content-Length><BlobType>BlockBlob</BlobType>\
                 <LeaseState>leased</LeaseState>{more}</Properties><OrMetadata /></Blob>"
            )
        };
        let document = format!(
            "\u{feff}{head}{}{}<BlobPrefix><Name>c/</Name></BlobPrefix></Blobs><NextMarker>n</NextMarker></EnumerationResults>",
            blob(">a", "0x8DA741354A70EB8", "<Content-MD5 /><AccessTier>Hot</AccessTier>"),
            blob(" Encoded=\"true\">b%2F%EF%BF%BF", "\"0x1\"", "<Sealed>false</Sealed>"),
        );
        let page = read(document.as_bytes()).unwrap();
        assert_eq!(page.next.as_deref(), Some("n"));
        let [BlobItem::Blob(a), BlobItem::Blob(b), BlobItem::Prefix(prefix)] = &page.items[..] else {
            panic!("{page:?}")
        };
        assert_eq!((a.name.as_str(), b.name.as_str(), prefix.as_str()), ("a", "b/\u{ffff}", "c/"));
        assert_eq!(a.properties.etag.as_str(), "\"0x8DA741354A70EB8\"");
        assert_eq!(b.properties.etag.as_str(), "\"0x1\"");
        let of = &a.properties;
        assert_eq!((of.length, of.blob_type, of.lease), (7, BlobType::Block, Some(LeaseState::Leased)));
        assert_eq!(
            (of.headers.md5.as_deref(), of.tier.as_deref(), of.is_tier_set),
            (None, Some("Hot"), true)
        );
        assert!(read(b"<Error/>").is_none() && read(b"").is_none());
    }
}
