//! The list of an account's containers, page by page.

use std::collections::BTreeMap;

use blob_model::limits;
use futures_util::stream::{self, Stream, TryStreamExt as _};
use http::Method;
use model::DateTime;
use protocol::xml_tree::Element;
use wire::names;

use super::container::PublicAccess;
use super::properties::{self, LeaseState};
use crate::error::{Error, Result};
use crate::etag::ETag;
use crate::transport::{ServiceRequest, Transport};

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerEntry {
    pub name: String,
    pub etag: ETag,
    pub last_modified: DateTime,
    pub public_access: PublicAccess,
    pub lease: Option<LeaseState>,
    /// Names are as they were sent.
    pub metadata: BTreeMap<String, String>,
}

pub fn stream(
    transport: Transport,
    prefix: &str,
) -> impl Stream<Item = Result<ContainerEntry>> + Send + use<> {
    let start = Some((transport, prefix.to_owned(), String::new()));
    let pages = stream::try_unfold(start, |at| async move {
        let Some((transport, prefix, marker)) = at else { return Ok::<_, Error>(None) };
        let mut request = ServiceRequest::new("list_containers", Method::GET, "/")
            .query(names::COMP, "list")
            .query("include", "metadata");
        for (name, value) in [("prefix", &prefix), ("marker", &marker)] {
            if !value.is_empty() {
                request = request.query(name, value.as_str());
            }
        }
        let answer = transport.send(request).await?;
        let (entries, next) = read(&answer.body)
            .ok_or_else(|| Error::Unreadable("the list of containers can't be read".to_owned()))?;
        let next = Some(next).filter(|marker| !marker.is_empty());
        Ok(Some((entries, next.map(|marker| (transport, prefix, marker)))))
    });
    pages.map_ok(|entries| stream::iter(entries.into_iter().map(Ok))).try_flatten()
}

/// The entries, and the marker of the next page; `None` if it is no such list.
fn read(document: &[u8]) -> Option<(Vec<ContainerEntry>, String)> {
    // A container has up to 8 KiB of metadata, of which no pair is shorter than a letter.
    let tags_max = 16 + limits::LIST_MAX * 64;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let containers = properties::child(&root, "Containers")?;
    let entries = containers.children.iter().map(entry).collect::<Option<_>>()?;
    Some((entries, properties::text(&root, "NextMarker").unwrap_or_default().to_owned()))
}

fn entry(element: &Element) -> Option<ContainerEntry> {
    let of = properties::child(element, "Properties")?;
    Some(ContainerEntry {
        name: properties::text(element, "Name")?.to_owned(),
        etag: properties::listed_etag(of)?,
        last_modified: properties::listed_time(of, "Last-Modified")?,
        public_access: PublicAccess::of(properties::text(of, "PublicAccess")),
        lease: properties::text(of, "LeaseState").map(LeaseState::of),
        metadata: properties::listed_metadata(element),
    })
}
