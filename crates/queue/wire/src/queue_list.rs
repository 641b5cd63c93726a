//! Lists of queues (spec: queue-operations 3.1).

use common::Version;
use protocol::xml_tree::Element;
use queue_model::{Metadata, QueueName, limits};

use crate::QueueVersion as _;
use crate::xml;

/// List Queues' answer. What the request did not say is not repeated.
#[derive(Debug)]
pub struct QueueList<'a> {
    /// The account's address, with a slash at its end.
    pub endpoint: &'a str,
    pub account: &'a str,
    pub prefix: &'a str,
    pub marker: &'a str,
    pub max_results: Option<&'a str>,
    pub shows_metadata: bool,
    pub queues: &'a [(QueueName, Metadata)],
    /// The first queue of the next page.
    pub next: Option<&'a QueueName>,
}

impl QueueList<'_> {
    pub fn write(&self, version: Version) -> Vec<u8> {
        let mut out = Vec::with_capacity(512 + self.queues.len() * 64);
        out.extend_from_slice(xml::START);
        let is_new = version.lists_service_endpoint();
        out.extend_from_slice(match is_new {
            true => b"<EnumerationResults ServiceEndpoint=\"",
            false => b"<EnumerationResults AccountName=\"",
        });
        xml::attribute(&mut out, self.endpoint);
        out.extend_from_slice(b"\">");
        for (name, value) in [("Prefix", self.prefix), ("Marker", self.marker)] {
            if !value.is_empty() {
                xml::shown(&mut out, name, value);
            }
        }
        if let Some(max_results) = self.max_results {
            xml::element(&mut out, "MaxResults", max_results);
        }
        if self.queues.is_empty() {
            xml::empty(&mut out, "Queues");
        } else {
            xml::open(&mut out, "Queues");
            self.queues.iter().for_each(|(name, metadata)| self.queue(&mut out, name, metadata, is_new));
            xml::close(&mut out, "Queues");
        }
        let next = self.next.map_or(String::new(), |next| marker(self.account, next));
        xml::element(&mut out, "NextMarker", &next);
        xml::close(&mut out, "EnumerationResults");
        out
    }

    fn queue(&self, out: &mut Vec<u8>, name: &QueueName, metadata: &Metadata, is_new: bool) {
        xml::open(out, "Queue");
        xml::element(out, "Name", name.as_str());
        if !is_new {
            xml::element(out, "Url", &format!("{}{name}", self.endpoint));
        }
        match self.shows_metadata {
            true if metadata.is_empty() => xml::empty(out, "Metadata"),
            true => {
                xml::open(out, "Metadata");
                // Each name is an identifier, which every XML name may be.
                metadata.iter().for_each(|(name, value)| xml::element(out, name, value));
                xml::close(out, "Metadata");
            }
            false => {}
        }
        xml::close(out, "Queue");
    }
}

/// Where the next page begins, as a client is to send it back.
pub fn marker(account: &str, next: &QueueName) -> String {
    format!("/{account}/{next}")
}

/// The name in a marker, from which on a list goes; `None` if it is none of this account's.
pub fn read_marker<'m>(account: &str, marker: &'m str) -> Option<&'m str> {
    let name = marker.strip_prefix('/')?.strip_prefix(account)?.strip_prefix('/')?;
    // The queue may be gone by now, and its name is all that counts.
    QueueName::parse(name).is_ok().then_some(name)
}

/// A page of queues as a client reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePage {
    pub queues: Vec<QueueEntry>,
    /// What to ask for the next page with; empty at the end.
    pub next_marker: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub name: String,
    /// Empty unless it was asked for.
    pub metadata: Vec<(String, String)>,
}

/// The queues of a list; `None` if it is none.
pub fn read(document: &[u8]) -> Option<QueuePage> {
    // A queue has up to 8 KiB of metadata, of which no pair is shorter than a letter.
    let tags_max = 16 + limits::LIST_MAX * 64;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "EnumerationResults")?;
    let queues = root.child("Queues").ok()??.children.iter().map(entry).collect::<Option<_>>()?;
    let next_marker = root.child("NextMarker").ok()?.map_or("", Element::text).to_owned();
    Some(QueuePage { queues, next_marker })
}

fn entry(element: &Element) -> Option<QueueEntry> {
    let name = element.child("Name").ok()??.text().to_owned();
    let pairs = element.child("Metadata").ok()?.map_or(&[][..], |metadata| &metadata.children);
    let metadata = pairs.iter().map(|pair| (pair.name.clone(), pair.whole_text().to_owned())).collect();
    Some(QueueEntry { name, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::parse(text).unwrap()
    }

    fn metadata(pairs: &[(&str, &str)]) -> Metadata {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Metadata::new(pairs.collect()).unwrap()
    }

    fn check(list: &QueueList<'_>, version: &str, expected: &str) {
        let document = list.write(Version::parse(version).unwrap());
        let shown = String::from_utf8(document).unwrap();
        let declared = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        assert_eq!(shown.strip_prefix(declared), Some(expected));
        let page = read(shown.as_bytes()).unwrap();
        let names: Vec<&str> = page.queues.iter().map(|queue| queue.name.as_str()).collect();
        let listed: Vec<&str> = list.queues.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, listed);
        assert_eq!(page.next_marker, list.next.map_or(String::new(), |next| marker(list.account, next)));
    }

    #[test]
    fn lists_are_the_services_to_the_byte() {
        let none = QueueList {
            endpoint: "https://acc.queue.core.windows.net/",
            account: "acc",
            prefix: "",
            marker: "",
            max_results: None,
            shows_metadata: false,
            queues: &[],
            next: None,
        };
        check(
            &none,
            "2021-02-12",
            "<EnumerationResults ServiceEndpoint=\"https://acc.queue.core.windows.net/\"><Queues /><NextMarker /></EnumerationResults>",
        );
        let queues = [(name("qq3"), metadata(&[("color", "red & blue")])), (name("qq4"), metadata(&[]))];
        let two = QueueList {
            prefix: "q",
            marker: "/acc/qq3",
            max_results: Some("2"),
            shows_metadata: true,
            queues: &queues,
            next: Some(&name("qq5")),
            ..none
        };
        check(
            &two,
            "2021-02-12",
            "<EnumerationResults ServiceEndpoint=\"https://acc.queue.core.windows.net/\"><Prefix>q</Prefix><Marker>/acc/qq3</Marker><MaxResults>2</MaxResults><Queues><Queue><Name>qq3</Name><Metadata><color>red &amp; blue</color></Metadata></Queue><Queue><Name>qq4</Name><Metadata /></Queue></Queues><NextMarker>/acc/qq5</NextMarker></EnumerationResults>",
        );
        let old = QueueList { shows_metadata: false, prefix: "", marker: "", max_results: None, ..two };
        check(
            &old,
            "2012-02-12",
            "<EnumerationResults AccountName=\"https://acc.queue.core.windows.net/\"><Queues><Queue><Name>qq3</Name><Url>https://acc.queue.core.windows.net/qq3</Url></Queue><Queue><Name>qq4</Name><Url>https://acc.queue.core.windows.net/qq4</Url></Queue></Queues><NextMarker>/acc/qq5</NextMarker></EnumerationResults>",
        );
    }

    #[test]
    fn a_prefix_that_xml_forbids_is_shown_as_what_it_can_hold() {
        let list = QueueList {
            endpoint: "http://127.0.0.1:10001/acc/",
            account: "acc",
            prefix: "j\u{ffff}",
            marker: "\u{1}<",
            max_results: None,
            shows_metadata: false,
            queues: &[],
            next: None,
        };
        check(
            &list,
            "2021-02-12",
            "<EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10001/acc/\"><Prefix>j\u{fffd}</Prefix><Marker>\u{fffd}&lt;</Marker><Queues /><NextMarker /></EnumerationResults>",
        );
    }

    #[test]
    fn a_marker_names_the_account_and_a_queue() {
        assert_eq!(read_marker("acc", &marker("acc", &name("qq5"))), Some("qq5"));
        for marker in ["garbage", "/acc", "/acc/", "/other/qq5", "/acc/Q", "/acc/qq5/x", "qq5"] {
            assert_eq!(read_marker("acc", marker), None, "{marker}");
        }
    }

    #[test]
    fn a_client_reads_metadata() {
        let queues = [(name("qq3"), metadata(&[("color", " red"), ("_b", "")]))];
        let list = QueueList {
            endpoint: "http://127.0.0.1:10001/acc/",
            account: "acc",
            prefix: "",
            marker: "",
            max_results: None,
            shows_metadata: true,
            queues: &queues,
            next: None,
        };
        let page = read(&list.write(Version::DEFAULT)).unwrap();
        let expected = [("color".to_owned(), " red".to_owned()), ("_b".to_owned(), String::new())];
        assert_eq!(page.queues[0].metadata, expected);
        assert_eq!(read(b"<Error/>"), None);
    }
}
