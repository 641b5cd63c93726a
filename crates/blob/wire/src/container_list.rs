//! List Containers (spec: blob-operations 4.1).

use blob_model::{ContainerName, DateTime, Etag, LeaseView, Metadata, PublicAccess, limits};
use common::Version;
use protocol::xml_tree::Element;

use crate::blob_headers::tells_of_immutable_versions;
use crate::xml::{Writer, Xml, http_date};
use crate::{listed, names};

/// A page of containers, as it was asked for and found.
#[derive(Clone, Copy, Debug)]
pub struct ContainerList<'a> {
    /// The address of the account, with its slash.
    pub endpoint: &'a str,
    pub prefix: &'a str,
    pub marker: &'a str,
    /// As it was asked for.
    pub max_results: Option<&'a str>,
    pub shows_metadata: bool,
    pub containers: &'a [ListedContainer],
    /// What to ask for the next page with; empty at the end.
    pub next_marker: &'a str,
    pub version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedContainer {
    pub name: ContainerName,
    pub deleted: Option<DeletedContainer>,
    pub etag: Etag,
    pub lease: LeaseView,
    pub public_access: PublicAccess,
    pub metadata: Metadata,
}

/// A container that can still be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedContainer {
    /// 16 hexadecimal digits.
    pub version: String,
    pub time: DateTime,
    pub remaining_days: u16,
}

impl ContainerList<'_> {
    pub fn write(&self) -> Vec<u8> {
        let mut xml = Xml::new(Writer::Old, 512 + self.containers.len() * 768);
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", self.endpoint)]);
        for (name, value) in [("Prefix", self.prefix), ("Marker", self.marker)] {
            if !value.is_empty() {
                xml.shown(name, value);
            }
        }
        xml.optional("MaxResults", self.max_results);
        if self.containers.is_empty() {
            xml.empty("Containers");
        } else {
            xml.open("Containers");
            self.containers.iter().for_each(|container| self.container(&mut xml, container));
            xml.close("Containers");
        }
        xml.element("NextMarker", self.next_marker);
        xml.close("EnumerationResults");
        xml.finish()
    }

    fn container(&self, xml: &mut Xml, container: &ListedContainer) {
        xml.open("Container");
        xml.element("Name", container.name.as_str());
        if let Some(deleted) = &container.deleted {
            xml.element("Deleted", "true");
            xml.element("Version", &deleted.version);
        }
        xml.open("Properties");
        xml.element("Last-Modified", &http_date(container.etag.0));
        xml.element("Etag", &container.etag.quoted());
        xml.element("LeaseStatus", container.lease.status);
        xml.element("LeaseState", container.lease.state);
        xml.optional("LeaseDuration", container.lease.duration);
        xml.optional("PublicAccess", container.public_access.name());
        xml.element("DefaultEncryptionScope", names::ACCOUNT_ENCRYPTION_SCOPE);
        xml.element("DenyEncryptionScopeOverride", "false");
        xml.element("HasImmutabilityPolicy", "false");
        xml.element("HasLegalHold", "false");
        if tells_of_immutable_versions(self.version) {
            xml.element("ImmutableStorageWithVersioningEnabled", "false");
        }
        if let Some(deleted) = &container.deleted {
            xml.element("DeletedTime", &http_date(deleted.time));
            xml.element("RemainingRetentionDays", &deleted.remaining_days.to_string());
        }
        xml.close("Properties");
        if self.shows_metadata && !container.metadata.is_empty() {
            xml.open("Metadata");
            // Each name is an identifier, which every XML name may be.
            container.metadata.iter().for_each(|(name, value)| xml.element(name, value));
            xml.close("Metadata");
        }
        xml.close("Container");
    }
}

/// A page of containers as a client reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerPage {
    pub containers: Vec<ListedContainer>,
    /// Empty at the end.
    pub next_marker: String,
}

/// `None` if it is no such list.
pub fn read(document: &[u8]) -> Option<ContainerPage> {
    // A container has up to 8 KiB of metadata, of which no pair is shorter than a letter.
    let tags_max = 16 + limits::LIST_MAX * 64;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let containers =
        listed::child(&root, "Containers")?.children.iter().map(container).collect::<Option<_>>()?;
    let next_marker = listed::text(&root, "NextMarker").unwrap_or_default().to_owned();
    Some(ContainerPage { containers, next_marker })
}

fn container(element: &Element) -> Option<ListedContainer> {
    let properties = listed::child(element, "Properties")?;
    let deleted = match listed::is_true(element, "Deleted") {
        true => Some(DeletedContainer {
            version: listed::text(element, "Version")?.to_owned(),
            time: listed::time(properties, "DeletedTime")?,
            remaining_days: listed::number(properties, "RemainingRetentionDays")?,
        }),
        false => None,
    };
    Some(ListedContainer {
        name: ContainerName::parse(listed::text(element, "Name")?).ok()?,
        deleted,
        etag: listed::etag(properties)?,
        lease: listed::lease(properties)?,
        public_access: PublicAccess::of_header(listed::text(properties, "PublicAccess")).ok()?,
        metadata: listed::metadata(element)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> ListedContainer {
        ListedContainer {
            name: ContainerName::parse("container752931b0").unwrap(),
            deleted: None,
            etag: Etag::parse("0x8DA741354A70EB8").unwrap(),
            lease: LeaseView { status: "unlocked", state: "available", duration: None },
            public_access: PublicAccess::None,
            metadata: Metadata::new(vec![("hello".to_owned(), "w & d".to_owned())]).unwrap(),
        }
    }

    fn none() -> ContainerList<'static> {
        ContainerList {
            endpoint: "https://acct.blob.core.windows.net/",
            prefix: "",
            marker: "",
            max_results: None,
            shows_metadata: false,
            containers: &[],
            next_marker: "",
            version: Version::parse("2020-10-02").unwrap(),
        }
    }

    fn check(list: &ContainerList<'_>, expected: &str) {
        let document = String::from_utf8(list.write()).unwrap();
        let start = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\">";
        assert_eq!(document.strip_prefix(start), Some(expected));
    }

    #[test]
    fn lists_are_the_services_to_the_byte() {
        check(&none(), "<Containers /><NextMarker /></EnumerationResults>");
        let scopes = "<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold><ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>";
        let changed =
            "<Last-Modified>Mon, 01 Aug 2022 23:12:39 GMT</Last-Modified><Etag>\"0x8DA741354A70EB8\"</Etag>";
        let list = ContainerList {
            prefix: "c",
            marker: "/acct/container",
            max_results: Some("2"),
            shows_metadata: true,
            containers: &[one()],
            next_marker: "/acct/next",
            ..none()
        };
        check(
            &list,
            &format!(
                "<Prefix>c</Prefix><Marker>/acct/container</Marker><MaxResults>2</MaxResults><Containers><Container><Name>container752931b0</Name><Properties>{changed}<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>{scopes}</Properties><Metadata><hello>w &amp; d</hello></Metadata></Container></Containers><NextMarker>/acct/next</NextMarker></EnumerationResults>"
            ),
        );
        let deleted = ListedContainer {
            deleted: Some(DeletedContainer {
                version: "01D8A862349E0130".to_owned(),
                time: DateTime::parse("2022-08-05T00:27:55Z").unwrap(),
                remaining_days: 1,
            }),
            lease: LeaseView { status: "locked", state: "leased", duration: Some("infinite") },
            public_access: PublicAccess::Blob,
            ..one()
        };
        check(
            &ContainerList { containers: &[deleted], ..none() },
            &format!(
                "<Containers><Container><Name>container752931b0</Name><Deleted>true</Deleted><Version>01D8A862349E0130</Version><Properties>{changed}<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>infinite</LeaseDuration><PublicAccess>blob</PublicAccess>{scopes}<DeletedTime>Fri, 05 Aug 2022 00:27:55 GMT</DeletedTime><RemainingRetentionDays>1</RemainingRetentionDays></Properties></Container></Containers><NextMarker /></EnumerationResults>"
            ),
        );
    }

    #[test]
    fn older_versions_do_not_tell_of_immutable_versions() {
        let containers = [one()];
        let list = |version| {
            let version = Version::parse(version).unwrap();
            String::from_utf8(ContainerList { containers: &containers, version, ..none() }.write()).unwrap()
        };
        let element = "<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>";
        assert!(!list("2020-08-04").contains(element));
        assert_eq!(list("2020-10-02").replace(element, ""), list("2020-08-04"));
    }

    #[test]
    fn a_client_reads_what_the_server_writes() {
        let containers = [one(), ListedContainer { public_access: PublicAccess::Container, ..one() }];
        let list =
            ContainerList { containers: &containers, shows_metadata: true, next_marker: "m", ..none() };
        let page = read(&list.write()).unwrap();
        assert_eq!((page.containers.as_slice(), page.next_marker.as_str()), (&containers[..], "m"));
        assert_eq!(read(b"<Error/>"), None);
    }
}
