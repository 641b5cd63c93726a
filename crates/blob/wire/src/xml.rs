//! The service's two writers of XML. It has an older and a newer front end, and their bytes differ (spec: blob-operations
//! 2.2).

use common::xml_character::{find_forbidden, is_forbidden};

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    Old,
    New,
}

/// A document that is being written.
#[derive(Debug)]
pub(crate) struct Xml {
    out: Vec<u8>,
    writer: Writer,
}

impl Xml {
    /// With the byte order mark and the declaration.
    pub(crate) fn new(writer: Writer, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(b"\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>");
        if writer == Writer::New {
            out.push(b'\n');
        }
        Self { out, writer }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn open(&mut self, name: &str) {
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'>');
    }

    pub(crate) fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        for (name, value) in attributes {
            self.out.push(b' ');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"=\"");
            for (at, part) in value.split('"').enumerate() {
                if at > 0 {
                    self.out.extend_from_slice(b"&quot;");
                }
                self.text(part);
            }
            self.out.push(b'"');
        }
        self.out.push(b'>');
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.out.extend_from_slice(b"</");
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'>');
    }

    pub(crate) fn empty(&mut self, name: &str) {
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(match self.writer {
            Writer::Old => b" />",
            Writer::New => b"/>",
        });
    }

    /// `<name>text</name>`, or an empty element if there is no text.
    pub(crate) fn element(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.empty(name);
            return;
        }
        self.open(name);
        self.text(value);
        self.close(name);
    }

    /// The element only if there is a value.
    pub(crate) fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    /// The text of an element that may hold what XML can't: then all of it is percent-encoded, and the element says so.
    pub(crate) fn encoded(&mut self, name: &str, value: &str) {
        if find_forbidden(value).is_none() {
            self.element(name, value);
            return;
        }
        self.open_with(name, &[("Encoded", "true")]);
        self.text(&percent_encode(value));
        self.close(name);
    }

    /// A text of a client that may hold what XML can't, in an answer that only people read.
    pub(crate) fn shown(&mut self, name: &str, value: &str) {
        match value.contains(is_forbidden) {
            true => self.element(name, &value.replace(is_forbidden, "\u{fffd}")),
            false => self.element(name, value),
        }
    }

    /// Text between tags. Quotes stay as they are, apostrophes only with the older writer; a bare CR would be read as LF.
    pub(crate) fn text(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|byte| self.is_special(*byte)) {
            self.out.extend_from_slice(&rest[..at]);
            self.out.extend_from_slice(match rest[at] {
                b'&' => b"&amp;",
                b'<' => b"&lt;",
                b'>' => b"&gt;",
                b'\'' => b"&apos;",
                _ => b"&#xD;",
            });
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
    }

    fn is_special(&self, byte: u8) -> bool {
        matches!(byte, b'&' | b'<' | b'>' | b'\r') || (byte == b'\'' && self.writer == Writer::New)
    }
}

/// As the service encodes names in lists: everything but letters, digits and `- . _ ~`.
pub(crate) fn percent_encode(text: &str) -> String {
    const KEPT: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, &KEPT).to_string()
}

/// As HTTP and lists show times.
pub(crate) fn http_date(time: common::DateTime) -> String {
    String::from_utf8_lossy(&time.http_date()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 2.2.
    #[test]
    fn the_two_writers_differ() {
        let check = |writer, expected: &str| {
            let mut xml = Xml::new(writer, 64);
            xml.open_with("a", &[("b", "\"<")]);
            xml.element("c", "it's < & > \"\r\n");
            xml.element("d", "");
            xml.encoded("e", "dir1/file\u{ffff}.blob");
            xml.shown("f", "x\u{1}");
            xml.close("a");
            assert_eq!(String::from_utf8(xml.finish()).unwrap(), expected);
        };
        check(
            Writer::Old,
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><a b=\"&quot;&lt;\"><c>it's &lt; &amp; &gt; \"&#xD;\n</c><d /><e Encoded=\"true\">dir1%2Ffile%EF%BF%BF.blob</e><f>x\u{fffd}</f></a>",
        );
        check(
            Writer::New,
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a b=\"&quot;&lt;\"><c>it&apos;s &lt; &amp; &gt; \"&#xD;\n</c><d/><e Encoded=\"true\">dir1%2Ffile%EF%BF%BF.blob</e><f>x\u{fffd}</f></a>",
        );
    }
}
