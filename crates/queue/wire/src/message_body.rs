//! The body of Put and Update: a message's text in XML (spec: queue-operations 6.6).

use common::Refusal as Shared;
use common::xml_character::find_forbidden;
use protocol::xml_fault::XmlFault;
use protocol::xml_text;
use queue_model::{MessageText, Refusal, TextFault, limits};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::xml;

const ROOT: &str = "QueueMessage";
const TEXT: &str = "MessageText";

/// The longest body that can carry a message: each byte of its text as `&quot;`, and a kilobyte of tags around it.
pub const BODY_BYTES_MAX: usize = 6 * limits::TEXT_BYTES_MAX + 1024;

/// The body that carries a text.
pub fn write(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 128);
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>");
    xml::open(&mut out, ROOT);
    xml::element(&mut out, TEXT, text);
    xml::close(&mut out, ROOT);
    out
}

/// The text of a message. Markup inside of it is dropped and its text kept; line ends become LF, as XML has it.
pub fn read(body: &[u8]) -> Result<MessageText, Refusal> {
    let (document, is_whole) = match std::str::from_utf8(body) {
        Ok(document) => (document, true),
        // What comes before is UTF-8.
        Err(error) => (std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    if !is_whole {
        return Err(not_xml(document, document.len()));
    }
    if document.trim_ascii().is_empty() {
        let fault = XmlFault { line: 0, position: 0, ..XmlFault::not_well_formed(document, 0) };
        return Err(refusal(fault));
    }
    let text = Walk::new(document).run()?;
    MessageText::new(text).map_err(|fault| match fault {
        TextFault::TooLong => Shared::RequestBodyTooLarge.into(),
        TextFault::Forbidden(_) => not_xml(document, 0),
    })
}

fn not_xml(document: &str, at: usize) -> Refusal {
    refusal(XmlFault::not_well_formed(document, at))
}

fn refusal(XmlFault { line, position, reason }: XmlFault) -> Refusal {
    Refusal::XmlNotValid { line, position, reason: reason.into() }
}

/// A walk over a document, from tag to tag. It keeps no tree, so that deep and wide documents cost what their bytes cost.
struct Walk<'d> {
    document: &'d str,
    reader: Reader<&'d [u8]>,
    /// Open elements: the root, `MessageText`, and what is in it.
    depth: usize,
    has_root: bool,
    text: Option<String>,
}

impl<'d> Walk<'d> {
    fn new(document: &'d str) -> Self {
        let reader = Reader::from_str(document.trim_ascii_start());
        Self { document, reader, depth: 0, has_root: false, text: None }
    }

    fn run(mut self) -> Result<String, Refusal> {
        loop {
            self.take_text()?;
            let at = self.at();
            let fault = || not_xml(self.document, at);
            match self.reader.read_event().map_err(|_| fault())? {
                Event::Start(tag) => {
                    self.enter(&tag, at)?;
                    self.depth += 1;
                }
                Event::Empty(tag) => self.enter(&tag, at)?,
                // The reader has seen a start for every end.
                Event::End(_) => self.depth = self.depth.saturating_sub(1),
                Event::CData(data) => {
                    let data = data.xml10_content().map_err(|_| fault())?;
                    if find_forbidden(&data).is_some() {
                        return Err(fault());
                    }
                    self.add(&data, at)?;
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                // Text was taken before. A document type could define entities without end.
                Event::DocType(_) | Event::Text(_) | Event::GeneralRef(_) => return Err(fault()),
            }
        }
        let at = self.at();
        self.text.filter(|_| self.depth == 0).ok_or_else(|| not_xml(self.document, at))
    }

    /// How far the document was read.
    fn at(&self) -> usize {
        self.document.len() - self.reader.get_ref().len()
    }

    /// The text up to the next tag.
    fn take_text(&mut self) -> Result<(), Refusal> {
        let at = self.at();
        let document = self.document;
        let fault = |at| not_xml(document, at);
        let written = xml_text::take(self.reader.get_mut()).ok_or_else(|| fault(at))?;
        if written.is_empty() {
            return Ok(());
        }
        if let Some(forbidden) = find_forbidden(written) {
            return Err(fault(at + forbidden));
        }
        let text = xml_text::decode(written).ok_or_else(|| fault(at))?;
        if matches!(&text, std::borrow::Cow::Owned(text) if find_forbidden(text).is_some()) {
            return Err(fault(at));
        }
        self.add(&text, at)
    }

    fn add(&mut self, piece: &str, at: usize) -> Result<(), Refusal> {
        match &mut self.text {
            Some(text) if self.depth > 1 => {
                if text.len() + piece.len() > limits::TEXT_BYTES_MAX {
                    return Err(Shared::RequestBodyTooLarge.into());
                }
                text.push_str(piece);
                Ok(())
            }
            _ if piece.trim_ascii().is_empty() => Ok(()),
            _ => Err(not_xml(self.document, at)),
        }
    }

    /// One root, and in it one text.
    fn enter(&mut self, tag: &BytesStart<'_>, at: usize) -> Result<(), Refusal> {
        let name = tag.local_name();
        let is_expected = match self.depth {
            0 => !std::mem::replace(&mut self.has_root, true) && name.as_ref() == ROOT.as_bytes(),
            1 => self.text.replace(String::new()).is_none() && name.as_ref() == TEXT.as_bytes(),
            _ => true,
        };
        if is_expected { Ok(()) } else { Err(not_xml(self.document, at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(body: &str, expected: &str) {
        let shown = match read(body.as_bytes()) {
            Ok(text) => text.into_string(),
            Err(Refusal::XmlNotValid { line, position, reason }) => format!("{line}/{position} {reason}"),
            Err(refusal) => refusal.code().to_owned(),
        };
        assert_eq!(shown, expected, "{body:.200}");
    }

    fn with(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[test]
    fn every_clients_body_is_read() {
        check(&with("message1"), "message1");
        check(&format!("<?xml version='1.0' encoding='utf-8'?>\n{}", with("message1")), "message1");
        check(
            &format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\r\n{}\n",
                with("a")
            ),
            "a",
        );
        check("<QueueMessage>\n  <MessageText>a</MessageText>\n</QueueMessage>", "a");
        check("<QueueMessage><MessageText /></QueueMessage>", "");
        check("<QueueMessage xmlns='x'><MessageText></MessageText></QueueMessage>", "");
    }

    #[test]
    fn text_is_what_xml_says_it_is() {
        check(&with("&lt;message1&gt;&amp;&quot;&apos;&#65;&#x1F600;"), "<message1>&\"'A😀");
        check(&with("  mess\t age1\n"), "  mess\t age1\n");
        check(&with("a\r\nb\rc&#xD;d"), "a\nb\nc\rd");
        check(&with("a<![CDATA[<b>&]]>c"), "a<b>&c");
        check(&with("a<b x='1'>c<d/></b><!-- no --><?no?>e"), "ace");
    }

    #[test]
    fn a_character_that_xml_has_not_is_found() {
        let python = "<?xml version='1.0' encoding='utf-8'?>\n";
        let reason = "Error parsing Xml content";
        check(&format!("{python}{}", with("\u{1}")), &format!("2/28 {reason}"));
        check(&with("ab\u{ffff}"), &format!("1/30 {reason}"));
        check(&with("\u{fffe}"), &format!("1/28 {reason}"));
        check(&with("&#x1;"), &format!("1/28 {reason}"));
        check(&with("&#0;"), &format!("1/28 {reason}"));
        check(&with("&#xD800;"), &format!("1/28 {reason}"));
        check(&with("<![CDATA[\u{2}]]>"), &format!("1/28 {reason}"));
        let mut body = with("ab").into_bytes();
        body[28] = 0xff;
        assert_eq!(read(&body), Err(Refusal::XmlNotValid { line: 1, position: 29, reason: reason.into() }));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let reason = "Error parsing Xml content";
        check("", &format!("0/0 {reason}"));
        check(" \n", &format!("0/0 {reason}"));
        check("x", &format!("1/1 {reason}"));
        check("<QueueMessage/>", &format!("1/16 {reason}"));
        check("<Message><MessageText>a</MessageText></Message>", &format!("1/1 {reason}"));
        check("<QueueMessage><Text>a</Text></QueueMessage>", &format!("1/15 {reason}"));
        check("<QueueMessage>x<MessageText/></QueueMessage>", &format!("1/15 {reason}"));
        check("<QueueMessage><MessageText/><MessageText/></QueueMessage>", &format!("1/29 {reason}"));
        check(&with("&nope;"), &format!("1/28 {reason}"));
        check(&with("a</b>"), &format!("1/29 {reason}"));
        check("<QueueMessage><MessageText>a", &format!("1/29 {reason}"));
        check(&format!("{}{}", with("a"), with("b")), &format!("1/58 {reason}"));
        check(&format!("<!DOCTYPE a [<!ENTITY b \"bbb\">]>{}", with("&b;")), &format!("1/1 {reason}"));
    }

    #[test]
    fn the_limit_counts_the_text_alone() {
        let most = "a".repeat(limits::TEXT_BYTES_MAX);
        check(&with(&most), &most);
        check(&with(&format!("{most}b")), "RequestBodyTooLarge");
        let escaped = "&quot;".repeat(limits::TEXT_BYTES_MAX);
        assert!(with(&escaped).len() <= BODY_BYTES_MAX);
        check(&with(&escaped), &"\"".repeat(limits::TEXT_BYTES_MAX));
        check(&with(&format!("{escaped}&quot;")), "RequestBodyTooLarge");
        check(&with(&"é".repeat(limits::TEXT_BYTES_MAX / 2)), &"é".repeat(limits::TEXT_BYTES_MAX / 2));
        check(&with(&format!("{}<b/>b", most)), "RequestBodyTooLarge");
    }

    #[test]
    fn deep_and_wide_bodies_cost_what_their_bytes_cost() {
        let deep = format!("{}x{}", "<a>".repeat(50_000), "</a>".repeat(50_000));
        check(&with(&deep), "x");
        check(&with(&"<a/>".repeat(90_000)), "");
    }

    proptest! {
        #[test]
        fn what_a_client_writes_a_server_reads(text in "[a<>&\"'\r\n\t \u{7f}\u{85}\u{2028}\u{fffd}𝄞]{0,12}") {
            let read = read(&write(&text)).map(MessageText::into_string);
            prop_assert_eq!(read, Ok(text));
        }
    }
}
