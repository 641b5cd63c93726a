//! The answer of Find Blobs by Tags (spec: blob-operations 4.5).

use blob_model::{BlobName, ContainerName, Tags, limits};
use protocol::xml_tree::Element;

use crate::xml::{Writer, Xml};
use crate::{listed, tag_document};

/// A page of blobs that were found.
#[derive(Clone, Copy, Debug)]
pub struct FoundBlobs<'a> {
    /// The address of the account, with its slash.
    pub endpoint: &'a str,
    pub marker: &'a str,
    /// The expression, as it was asked for.
    pub expression: &'a str,
    pub max_results: Option<&'a str>,
    pub blobs: &'a [FoundBlob],
    pub next_marker: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    pub name: BlobName,
    pub container: ContainerName,
    /// Only those that the expression names.
    pub tags: Tags,
}

impl FoundBlobs<'_> {
    pub fn write(&self) -> Vec<u8> {
        let mut xml = Xml::new(Writer::New, 512 + self.blobs.len() * 256);
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", self.endpoint)]);
        if !self.marker.is_empty() {
            xml.shown("Marker", self.marker);
        }
        xml.shown("Where", self.expression);
        xml.optional("MaxResults", self.max_results);
        if self.blobs.is_empty() {
            xml.empty("Blobs");
        } else {
            xml.open("Blobs");
            for blob in self.blobs {
                xml.open("Blob");
                xml.encoded("Name", blob.name.as_str());
                xml.element("ContainerName", blob.container.as_str());
                xml.open("Tags");
                tag_document::write_set(&mut xml, blob.tags.iter());
                xml.close("Tags");
                xml.close("Blob");
            }
            xml.close("Blobs");
        }
        xml.element("NextMarker", self.next_marker);
        xml.close("EnumerationResults");
        xml.finish()
    }
}

/// What was found, as a client reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPage {
    pub blobs: Vec<FoundBlob>,
    pub next_marker: String,
}

/// `None` if it is no such list.
pub fn read(document: &[u8]) -> Option<FoundPage> {
    let tags_max = 16 + limits::LIST_MAX * (8 + 3 * limits::TAGS_MAX);
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let blobs = listed::child(&root, "Blobs")?.children.iter().map(|blob| {
        Some(FoundBlob {
            name: BlobName::parse(&listed::name(listed::child(blob, "Name")?)?).ok()?,
            container: ContainerName::parse(listed::text(blob, "ContainerName")?).ok()?,
            tags: tag_document::of(listed::child(blob, "Tags")?).ok()?,
        })
    });
    let blobs = blobs.collect::<Option<_>>()?;
    Some(FoundPage { blobs, next_marker: listed::text(&root, "NextMarker").unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_services_to_the_byte() {
        let blob = FoundBlob {
            name: BlobName::parse("it's").unwrap(),
            container: ContainerName::parse("container1cc9626ad").unwrap(),
            tags: Tags::parse("tag1=v").unwrap(),
        };
        let found = FoundBlobs {
            endpoint: "https://acct.blob.core.windows.net/",
            marker: "",
            expression: "tag1='v'",
            max_results: Some("2"),
            blobs: std::slice::from_ref(&blob),
            next_marker: "",
        };
        let start = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\">";
        let check = |found: &FoundBlobs<'_>, expected: &str| {
            let document = String::from_utf8(found.write()).unwrap();
            assert_eq!(document.strip_prefix(start), Some(expected));
            let page = read(document.as_bytes()).unwrap();
            assert_eq!((page.blobs.as_slice(), page.next_marker.as_str()), (found.blobs, found.next_marker));
        };
        check(
            &found,
            "<Where>tag1=&apos;v&apos;</Where><MaxResults>2</MaxResults><Blobs><Blob><Name>it&apos;s</Name><ContainerName>container1cc9626ad</ContainerName><Tags><TagSet><Tag><Key>tag1</Key><Value>v</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker/></EnumerationResults>",
        );
        check(
            &FoundBlobs { marker: "m", max_results: None, blobs: &[], next_marker: "n", ..found },
            "<Marker>m</Marker><Where>tag1=&apos;v&apos;</Where><Blobs/><NextMarker>n</NextMarker></EnumerationResults>",
        );
    }
}
