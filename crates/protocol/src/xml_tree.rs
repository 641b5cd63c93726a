//! Small XML documents as trees: names, texts, children. Namespaces are ignored, and attributes too, except in the lists that
//! a client has asked for: what clients send needs none.
//!
//! A DTD is refused, so there are no entities to expand. Depth and number of tags are bounded.

use common::xml_character::find_forbidden;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::xml_fault::XmlFault;
use crate::xml_text;

// The deepest document, service properties, has five levels and some hundred elements.
const DEPTH_MAX: usize = 8;
/// Elements, comments and processing instructions.
const TAGS_MAX: usize = 2000;

#[derive(Clone, Debug, Default)]
pub struct Element {
    pub name: String,
    text: String,
    pub children: Vec<Element>,
    /// Kept by `parse_list` alone.
    attributes: Vec<(String, String)>,
    /// Where it ends in its document, in bytes behind the byte order mark.
    pub(crate) end: usize,
}

impl Element {
    /// The root of a document; `None` if the document is not well-formed.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        Self::of(text.strip_prefix('\u{feff}').unwrap_or(text), TAGS_MAX, false, &mut 0)
    }

    /// The same of a long list, which a client has asked for, with attributes.
    pub fn parse_list(body: &[u8], tags_max: usize) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        Self::of(text.strip_prefix('\u{feff}').unwrap_or(text), tags_max, true, &mut 0)
    }

    /// The same, and where the document is not well-formed.
    pub fn read(body: &[u8]) -> Result<Self, XmlFault> {
        let (text, ends_early) = match std::str::from_utf8(body) {
            Ok(text) => (text, false),
            // What comes before is UTF-8.
            Err(error) => (std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default(), true),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut at = 0;
        let root = Self::of(text, TAGS_MAX, false, &mut at);
        if ends_early {
            return Err(XmlFault::not_well_formed(text, text.len()));
        }
        root.ok_or_else(|| XmlFault::not_well_formed(text, at))
    }

    /// `at` is how far the document was read.
    fn of(document: &str, tags_max: usize, with_attributes: bool, at: &mut usize) -> Option<Self> {
        let mut reader = Reader::from_str(document.trim_ascii_start());
        // The first element stands for the document.
        let mut open = vec![Self::default()];
        let mut tags = 0;
        loop {
            *at = document.len() - reader.get_ref().len();
            let written = xml_text::take(reader.get_mut())?;
            let text = xml_text::decode(written)?;
            if let Some(forbidden) = find_forbidden(written) {
                *at += forbidden;
                return None;
            }
            open.last_mut()?.add_text(&text)?;
            *at = document.len() - reader.get_ref().len();
            let event = reader.read_event().ok()?;
            let end = document.len() - reader.get_ref().len();
            if !matches!(event, Event::End(_) | Event::CData(_) | Event::Eof) {
                tags += 1;
            }
            match event {
                _ if tags > tags_max => return None,
                Event::Start(_) | Event::Empty(_) if open.len() > DEPTH_MAX => return None,
                Event::Start(tag) => open.push(Self::named(&tag, with_attributes)?),
                Event::Empty(tag) => {
                    open.last_mut()?.children.push(Self { end, ..Self::named(&tag, with_attributes)? });
                }
                Event::End(_) => {
                    let closed = open.pop()?;
                    open.last_mut()?.children.push(Self { end, ..closed });
                }
                Event::CData(text) => open.last_mut()?.add_text(&text.xml10_content().ok()?)?,
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                // Text and references have been taken above, so they never come here.
                Event::DocType(_) | Event::Text(_) | Event::GeneralRef(_) => return None,
            }
        }
        let document = open.pop().filter(|_| open.is_empty())?;
        let only_blanks = document.text.trim_ascii().is_empty();
        let mut roots = document.children.into_iter();
        roots.next().filter(|_| only_blanks && roots.len() == 0)
    }

    fn named(tag: &BytesStart<'_>, with_attributes: bool) -> Option<Self> {
        let name = text_of(tag.local_name().into_inner())?;
        let mut attributes = Vec::new();
        if with_attributes {
            // The check for repeated names takes longer with every attribute.
            for attribute in tag.attributes().with_checks(false) {
                let attribute = attribute.ok()?;
                let value = xml_text::decode(&text_of(&attribute.value)?)?.into_owned();
                attributes.push((text_of(attribute.key.local_name().into_inner())?, value));
            }
        }
        Some(Self { name, attributes, ..Self::default() })
    }

    fn add_text(&mut self, text: &str) -> Option<()> {
        if find_forbidden(text).is_some() {
            return None;
        }
        self.text.push_str(text);
        Some(())
    }

    /// The text, trimmed.
    pub fn text(&self) -> &str {
        self.text.trim_ascii()
    }

    /// All of its text, as a message may begin and end with blanks.
    pub fn whole_text(&self) -> &str {
        &self.text
    }

    /// The attribute of this name, of an element of a list.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The child of this name; an error if it is repeated.
    pub fn child(&self, name: &str) -> Result<Option<&Self>, RepeatedChild> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        match (found.next(), found.next()) {
            (first, None) => Ok(first),
            _ => Err(RepeatedChild),
        }
    }

    /// Whether no child has another name than these.
    pub fn has_only(&self, names: &[&str]) -> bool {
        self.children.iter().all(|child| names.contains(&child.name.as_str()))
    }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Where an element stands does not tell it from another.
impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.text, &self.children) == (&other.name, &other.text, &other.children)
    }
}

impl Eq for Element {}

/// An element has more than one child of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedChild;

/// Escapes text between tags. CR is escaped too, or it would be read as LF.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#xD;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(body: &str, expected: &str) {
        fn show(element: &Element) -> String {
            let children: Vec<String> = element.children.iter().map(show).collect();
            format!("{}[{}{}]", element.name, element.text(), children.join(""))
        }
        let shown = Element::parse(body.as_bytes()).as_ref().map_or("refused".to_owned(), show);
        assert_eq!(shown, expected, "{body}");
    }

    #[test]
    fn documents_are_read() {
        check("<a/>", "a[]");
        check(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a>\n <b> x&amp;&#x41; </b><c/>\n</a>\n",
            "a[b[x&A]c[]]",
        );
        check("<x:a xmlns:x='y'><![CDATA[<]]></x:a>", "a[<]");
        check("<!-- hello --><a/>", "a[]");
        check("<a><b/>x<c></c></a>", "a[xb[]c[]]");
    }

    #[test]
    fn a_list_has_attributes() {
        let body = "<a b=\"1 &amp; 2\" x:c='\"'><d e=''/></a>".as_bytes();
        let list = Element::parse_list(body, 10).unwrap();
        assert_eq!(
            (list.attribute("b"), list.attribute("c"), list.attribute("e")),
            (Some("1 & 2"), Some("\""), None)
        );
        assert_eq!(list.children[0].attribute("e"), Some(""));
        assert_eq!(Element::parse(body).unwrap().attribute("b"), None);
        assert_eq!(Element::parse_list(b"<a b='&nope;'/>", 10), None);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let deep = format!("{}{}", "<a>".repeat(20), "</a>".repeat(20));
        let wide = format!("<a>{}</a>", "<b/>".repeat(TAGS_MAX));
        let commented = format!("<a>{}</a>", "<!---->".repeat(TAGS_MAX));
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;\">]><a>&c;</a>";
        for body in
            ["", "x", "<a>", "<a></b>", "<a/><b/>", "<a/>x", "<a>&nope;</a>", bomb, &deep, &wide, &commented]
        {
            check(body, "refused");
        }
        for body in [
            "<a>\0</a>",
            "<a>\u{1f}</a>",
            "<a>&#0;</a>",
            "<a>&#x1;</a>",
            "<a>\u{ffff}</a>",
            "<a>&#xFFFE;</a>",
        ] {
            check(body, "refused");
        }
        assert_eq!(Element::parse(b"<a>\xff</a>"), None);
    }

    /// Most of them are whole, so that about half of what is made of them is a document.
    const PIECES: [&str; 15] = [
        "<b/>",
        "<b>x</b>",
        "<c> y </c>",
        "<x:b xmlns:x='y'/>",
        "text",
        "&amp;",
        "&#x41;",
        "<![CDATA[<&]]>",
        "<!-- no -->",
        "<?pi?>",
        "<b><c/>",
        "</b>",
        "&nope;",
        "<!DOCTYPE b>",
        "\u{1}",
    ];

    fn write(element: &Element) -> String {
        let children: String = element.children.iter().map(write).collect();
        format!("<{0}>{1}{children}</{0}>", element.name, escape(&element.text))
    }

    proptest! {
        #[test]
        fn escaped_text_reads_back(text in "[a<>&\"'\r\n\t \u{7f}\u{85}\u{2028}\u{fffd}𝄞]{0,12}") {
            let element = Element::parse(format!("<a>{}</a>", escape(&text)).as_bytes()).unwrap();
            prop_assert_eq!(element.text, text);
        }

        #[test]
        fn a_tree_reads_back_from_its_markup(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..6),
        ) {
            let body = format!("<a>{}</a>", pieces.concat());
            if let Some(element) = Element::parse(body.as_bytes()) {
                let written = write(&element);
                prop_assert_eq!(Element::parse(written.as_bytes()), Some(element), "{} of {}", written, body);
            }
        }
    }
}
