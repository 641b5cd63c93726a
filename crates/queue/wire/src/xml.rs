//! How every document of the service begins, and how text stands between tags.

use common::xml_character::is_forbidden;

/// With the byte order mark, and nothing behind it.
pub const START: &[u8] = b"\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Text between tags. Quotes stay as they are; a bare CR would be read as LF.
pub fn text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = find_special(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            _ => b"&#xD;",
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

fn find_special(text: &[u8]) -> Option<usize> {
    let first = memchr::memchr3(b'&', b'<', b'>', text);
    memchr::memchr(b'\r', &text[..first.unwrap_or(text.len())]).or(first)
}

/// `<name>text</name>`, or `<name />` if there is no text.
pub fn element(out: &mut Vec<u8>, name: &str, value: &str) {
    if value.is_empty() {
        empty(out, name);
        return;
    }
    open(out, name);
    text(out, value);
    close(out, name);
}

/// The element with a text of a client that may hold what XML can't, in an answer that only people read.
pub fn shown(out: &mut Vec<u8>, name: &str, value: &str) {
    match value.contains(is_forbidden) {
        true => element(out, name, &value.replace(is_forbidden, "\u{fffd}")),
        false => element(out, name, value),
    }
}

pub fn open(out: &mut Vec<u8>, name: &str) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

pub fn close(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b"</");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

pub fn empty(out: &mut Vec<u8>, name: &str) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b" />");
}

/// The value of an attribute in double quotes.
pub fn attribute(out: &mut Vec<u8>, value: &str) {
    for (at, part) in value.split('"').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"&quot;");
        }
        text(out, part);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_is_escaped_as_the_service_escapes_it() {
        let check = |text: &str, expected: &str| {
            let mut out = Vec::new();
            super::text(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check("", "");
        check("<message1>", "&lt;message1&gt;");
        check("a & \"b\" 'c'\r\n\té", "a &amp; \"b\" 'c'&#xD;\n\té");
        check("&amp;", "&amp;amp;");
    }
}
