//! Text between tags of an XML document.
//!
//! quick-xml makes an event of every reference (`&lt;`), and the largest body can have a million of them. So text is taken
//! from its reader and decoded here, in one pass.

use std::borrow::Cow;

/// Takes the text up to the next tag or the end, undecoded; empty if a tag comes next. `rest` is the unread input of a
/// reader that is not inside a tag.
pub fn take<'i>(rest: &mut &'i [u8]) -> Option<&'i str> {
    let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    *rest = after;
    std::str::from_utf8(text).ok()
}

/// Decodes text. `None` if it has an unknown or malformed reference.
pub fn decode(written: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr2(b'&', b'\r', written.as_bytes()).is_none() {
        return Some(Cow::Borrowed(written));
    }
    // Decoded text is never longer: a reference is longer than its character, and CR LF becomes LF.
    let mut text = String::with_capacity(written.len());
    let mut pieces = written.split('&');
    push_lines(&mut text, pieces.next().unwrap_or_default());
    for piece in pieces {
        let (reference, rest) = piece.split_once(';')?;
        text.push(character(reference)?);
        push_lines(&mut text, rest);
    }
    Some(Cow::Owned(text))
}

/// Adds text without references. Every line end becomes a line feed (XML 1.0, 2.11).
fn push_lines(text: &mut String, written: &str) {
    let mut lines = written.split('\r');
    text.push_str(lines.next().unwrap_or_default());
    for line in lines {
        text.push('\n');
        text.push_str(line.strip_prefix('\n').unwrap_or(line));
    }
}

/// The character of a reference. Control characters are allowed, as in .NET, so that we can read what we write. Other
/// names would need a DTD.
fn character(reference: &str) -> Option<char> {
    if let Some(number) = reference.strip_prefix('#') {
        let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
        // `from_str_radix` alone would accept a sign.
        let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit());
        return char::from_u32(u32::from_str_radix(digits, radix).ok().filter(|_| is_number)?);
    }
    Some(match reference {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    #[test]
    fn text_ends_at_a_tag_or_with_the_document() {
        let mut rest: &[u8] = "aé&lt;<b>c".as_bytes();
        assert_eq!(take(&mut rest), Some("aé&lt;"));
        assert_eq!(rest, b"<b>c");
        assert_eq!(take(&mut rest), Some(""));
        rest = b"c";
        assert_eq!(take(&mut rest), Some("c"));
        assert_eq!(rest, b"");
        rest = b"\xff<";
        assert_eq!(take(&mut rest), None);
    }

    #[test]
    fn references_are_whole_and_known() {
        assert_eq!(decode("a&#x1F600;&#65;&quot;b").as_deref(), Some("a😀A\"b"));
        for text in
            ["&", "&amp", "&amp&lt;", "&;", "&#;", "&#x;", "&#+1;", "&#xD800;", "&#99999999999;", "&no;"]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    /// The same text, read as a document by quick-xml alone.
    fn decode_by_events(written: &str) -> Option<String> {
        let mut reader = Reader::from_str(written);
        let mut text = String::new();
        loop {
            match reader.read_event().ok()? {
                Event::Text(piece) => text.push_str(&piece.xml10_content().ok()?),
                Event::GeneralRef(reference) => match reference.resolve_char_ref().ok()? {
                    Some(character) => text.push(character),
                    None => {
                        let name = reference.decode().ok()?.into_owned();
                        text.push_str(quick_xml::escape::resolve_predefined_entity(&name)?);
                    }
                },
                Event::Eof => return Some(text),
                _ => unreachable!("text without tags"),
            }
        }
    }

    proptest! {
        #[test]
        fn text_is_read_as_by_events(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("a"), Just("é"), Just("\r"), Just("\n"), Just("&"), Just(";"), Just("#"), Just("x"), Just("1"),
                    Just("amp"), Just("&lt;"), Just("&#13;"), Just("&#x1;"), Just("+"), Just(" "), Just("&apos;"),
                ],
                0..12,
            ),
        ) {
            let written = pieces.concat();
            prop_assert_eq!(decode(&written).map(Cow::into_owned), decode_by_events(&written), "{}", written);
        }
    }
}
