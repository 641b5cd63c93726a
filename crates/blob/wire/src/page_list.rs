//! Page ranges: the answer of Get Page Ranges, whole or as a difference (spec: blob-operations 7.3).

use blob_model::{PageRange, limits};
use common::Version;
use protocol::xml_tree::Element;

use crate::listed;
use crate::xml::{Writer, Xml};

/// Pages that hold something, or that were cleared since an earlier snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedPages {
    Written(PageRange),
    Cleared(PageRange),
}

impl ListedPages {
    fn parts(self) -> (&'static str, PageRange) {
        match self {
            Self::Written(range) => ("PageRange", range),
            Self::Cleared(range) => ("ClearRange", range),
        }
    }
}

/// The writer of the list, and of the errors in its place.
pub fn writer(version: Version) -> Writer {
    const FIRST_NEW: &str = "2020-10-02";
    if version.as_str() >= FIRST_NEW { Writer::New } else { Writer::Old }
}

/// The ranges in the order of their offsets. `next_marker` is empty on the last page; on the only one
/// it is none, unless pages were asked for.
pub fn write(writer: Writer, ranges: &[ListedPages], next_marker: Option<&str>) -> Vec<u8> {
    let mut xml = Xml::new(writer, 256 + ranges.len() * 96);
    if ranges.is_empty() && next_marker.is_none() {
        xml.empty("PageList");
        return xml.finish();
    }
    xml.open("PageList");
    for (name, range) in ranges.iter().map(|pages| pages.parts()) {
        xml.open(name);
        xml.element("Start", &range.start().to_string());
        xml.element("End", &range.last().to_string());
        xml.close(name);
    }
    xml.optional("NextMarker", next_marker);
    xml.close("PageList");
    xml.finish()
}

/// The ranges as a client reads them, and its next marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRangePage {
    pub ranges: Vec<ListedPages>,
    pub next_marker: Option<String>,
}

/// `None` if it is no such list.
pub fn read(document: &[u8]) -> Option<PageRangePage> {
    // More than a page of the service has. Other servers may tell more at once.
    let tags_max = 16 + 3 * 100 * limits::PAGE_RANGES_MAX;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == "PageList")?;
    let mut page = PageRangePage::default();
    for element in &root.children {
        match element.name.as_str() {
            "PageRange" => page.ranges.push(ListedPages::Written(range(element)?)),
            "ClearRange" => page.ranges.push(ListedPages::Cleared(range(element)?)),
            "NextMarker" => page.next_marker = Some(element.text().to_owned()),
            _ => return None,
        }
    }
    Some(page)
}

fn range(element: &Element) -> Option<PageRange> {
    let last: u64 = listed::number(element, "End")?;
    PageRange::new(listed::number(element, "Start")?, last.checked_add(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_services_to_the_byte() {
        let check = |writer, ranges: &[ListedPages], marker: Option<&str>, expected: &str| {
            let document = write(writer, ranges, marker);
            let shown = String::from_utf8(document.clone()).unwrap();
            assert_eq!(
                shown.strip_prefix("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>"),
                Some(expected)
            );
            let expected = PageRangePage { ranges: ranges.to_vec(), next_marker: marker.map(str::to_owned) };
            assert_eq!(read(&document), Some(expected));
        };
        let range = |start, end| PageRange::new(start, end).unwrap();
        check(Writer::New, &[], None, "\n<PageList/>");
        check(Writer::Old, &[], None, "<PageList />");
        let ranges = [ListedPages::Written(range(0, 512)), ListedPages::Cleared(range(512, 1024))];
        check(
            Writer::New,
            &ranges,
            Some("2!16!MDAwMDA0ITEwMjQh"),
            "\n<PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange><Start>512</Start><End>1023</End></ClearRange><NextMarker>2!16!MDAwMDA0ITEwMjQh</NextMarker></PageList>",
        );
        check(
            Writer::New,
            &ranges[..1],
            Some(""),
            "\n<PageList><PageRange><Start>0</Start><End>511</End></PageRange><NextMarker/></PageList>",
        );
        assert_eq!(read(b"<PageList><PageRange><Start>0</Start><End>510</End></PageRange></PageList>"), None);
    }
}
