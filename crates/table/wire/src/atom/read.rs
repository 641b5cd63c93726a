//! Reads the properties out of an Atom entry.
//!
//! Elements are recognized by namespace, whatever their prefix. Everything but `m:properties` is skipped (spec:
//! table-operations 8.5). A DTD is refused, so there are no XML entities to expand. Depth, attributes and tags are bounded,
//! because every element searches the namespaces in scope.

use std::borrow::Cow;

use model::{DateTime, EdmType, Guid, Refusal, Value, limits};
use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};

use super::{ATOM, DATA, METADATA};
use crate::{binary, names};
use protocol::xml_text;

// A property is four levels deep in an entry, and an entry declares about six namespaces.
const DEPTH_MAX: usize = 8;
const ATTRIBUTES_MAX: usize = 16;
/// Elements, comments and processing instructions. Beside its properties an entry has about ten.
const TAGS_MAX: usize = 2 * limits::BODY_MEMBERS_MAX;

/// The properties in the order of the text, with the system properties; `None` is null.
///
/// An entry without properties is well formed. The model checks names and duplicates.
pub fn read_properties(body: &[u8]) -> Result<Vec<(String, Option<Value>)>, Refusal> {
    // The service has one answer for every malformed body, so all errors are the same here.
    of_entity(properties_of_entry(body, &|_| false))
}

/// The same without the keys, which are ignored and may have any type.
pub fn read_properties_without_keys(body: &[u8]) -> Result<Vec<(String, Option<Value>)>, Refusal> {
    let is_key = |name: &str| matches!(name, names::PARTITION_KEY | names::ROW_KEY);
    of_entity(properties_of_entry(body, &is_key))
}

fn of_entity(
    properties: Option<Vec<(String, Option<Value>)>>,
) -> Result<Vec<(String, Option<Value>)>, Refusal> {
    let properties = properties.ok_or(Refusal::BodyNotReadable)?;
    if properties.len() > limits::BODY_MEMBERS_MAX { Err(Refusal::TooManyProperties) } else { Ok(properties) }
}

/// Keeps nothing of skipped properties.
fn properties_of_entry(body: &[u8], passes: &dyn Fn(&str) -> bool) -> Option<Vec<(String, Option<Value>)>> {
    let mut xml = Xml::new(std::str::from_utf8(body).ok()?);
    let mut properties = Vec::new();
    let mut seen_entry = false;
    let mut in_content = false;
    loop {
        match xml.next()? {
            Node::Open(element) if xml.depth == 1 => {
                if seen_entry || !element.is(Space::Atom, "entry") {
                    return None;
                }
                seen_entry = true;
            }
            Node::Open(element) if xml.depth == 2 => in_content = element.is(Space::Atom, "content"),
            Node::Open(element) if in_content && element.is(Space::Metadata, "properties") => {
                read_children(&mut xml, &mut properties, passes)?;
                // Too many are refused whatever follows, so the rest is not read.
                if properties.len() > limits::BODY_MEMBERS_MAX {
                    return Some(properties);
                }
            }
            Node::Text(text) if xml.depth == 0 && !text.trim_ascii().is_empty() => return None,
            Node::End => return (seen_entry && xml.depth == 0).then_some(properties),
            Node::Open(_) | Node::Close | Node::Text(_) => {}
        }
    }
}

/// The content of `m:properties`, up to its end tag or to the first property above the limit.
fn read_children(
    xml: &mut Xml<'_>,
    properties: &mut Vec<(String, Option<Value>)>,
    passes: &dyn Fn(&str) -> bool,
) -> Option<()> {
    let depth = xml.depth;
    while xml.depth >= depth && properties.len() <= limits::BODY_MEMBERS_MAX {
        match xml.next()? {
            Node::Open(element) if xml.depth == depth + 1 && element.space == Space::Data => {
                let text = read_text(xml)?;
                if passes(&element.name) {
                    continue;
                }
                let value = if element.null { None } else { Some(value(element.kind, text)?) };
                properties.push((element.name, value));
            }
            Node::End => return None,
            // An element of an unknown namespace is an extension; ODataLib skips it too.
            Node::Open(_) | Node::Close | Node::Text(_) => {}
        }
    }
    Some(())
}

/// The text of an element, up to its end tag. An element inside would be a complex value, which a property can't hold.
fn read_text<'i>(xml: &mut Xml<'i>) -> Option<Cow<'i, str>> {
    let mut text = Cow::Borrowed("");
    loop {
        match xml.next()? {
            Node::Text(piece) => text += piece,
            Node::Close => return Some(text),
            Node::Open(_) | Node::End => return None,
        }
    }
}

fn value(kind: EdmType, text: Cow<'_, str>) -> Option<Value> {
    let word = text.trim_ascii();
    Some(match kind {
        EdmType::String => Value::String(text.into_owned()),
        EdmType::Boolean => Value::Boolean(boolean(word)?),
        EdmType::Int32 => Value::Int32(word.parse().ok()?),
        EdmType::Int64 => Value::Int64(word.parse().ok()?),
        EdmType::Double => Value::Double(double(word)?),
        EdmType::DateTime => Value::DateTime(DateTime::parse(word)?),
        EdmType::Guid => Value::Guid(Guid::parse(word)?),
        EdmType::Binary => Value::Binary(binary::read(word)?),
    })
}

/// The four spellings of XML Schema.
fn boolean(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn double(word: &str) -> Option<f64> {
    match word {
        "NaN" => Some(f64::NAN),
        "INF" | "Infinity" => Some(f64::INFINITY),
        "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
        // Rust accepts more spellings of these three, and reads a number that is too large as infinity.
        _ if word.bytes().any(|b| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E')) => None,
        _ => word.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// An entry as events: tags and text. Everything else is skipped or refused.
enum Node<'i> {
    Open(Element),
    Close,
    Text(Cow<'i, str>),
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Atom,
    Data,
    Metadata,
    Other,
}

struct Element {
    space: Space,
    name: String,
    /// `m:type`
    kind: EdmType,
    /// `m:null`
    null: bool,
}

impl Element {
    fn is(&self, space: Space, name: &str) -> bool {
        self.space == space && self.name == name
    }
}

struct Xml<'i> {
    reader: NsReader<&'i [u8]>,
    /// Elements that are open, including the one just opened.
    depth: usize,
    /// The element just opened is empty; its end comes next.
    is_empty: bool,
    tags: usize,
}

impl<'i> Xml<'i> {
    fn new(text: &'i str) -> Self {
        // In a batch, blank lines may come before the declaration, where XML does not allow them.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_ascii_start();
        Self { reader: NsReader::from_str(text), depth: 0, is_empty: false, tags: 0 }
    }

    fn next(&mut self) -> Option<Node<'i>> {
        if std::mem::take(&mut self.is_empty) {
            self.depth -= 1;
            return Some(Node::Close);
        }
        loop {
            let text = xml_text::take(self.reader.get_mut())?;
            if !text.is_empty() {
                return Some(Node::Text(xml_text::decode(text)?));
            }
            return Some(match self.reader.read_event().ok()? {
                Event::Start(tag) => Node::Open(self.open(&tag)?),
                Event::Empty(tag) => {
                    self.is_empty = true;
                    Node::Open(self.open(&tag)?)
                }
                Event::End(_) => {
                    self.depth = self.depth.checked_sub(1)?;
                    Node::Close
                }
                Event::CData(text) => Node::Text(text.xml10_content().ok()?),
                Event::Eof => Node::End,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {
                    self.count_tag()?;
                    continue;
                }
                // Text was read before, so none can come here.
                Event::DocType(_) | Event::Text(_) | Event::GeneralRef(_) => return None,
            });
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Option<Element> {
        self.count_tag()?;
        self.depth += 1;
        if self.depth > DEPTH_MAX { None } else { self.element(tag) }
    }

    fn count_tag(&mut self) -> Option<()> {
        self.tags += 1;
        (self.tags <= TAGS_MAX).then_some(())
    }

    fn element(&self, tag: &BytesStart<'_>) -> Option<Element> {
        if tag.attributes().with_checks(false).nth(ATTRIBUTES_MAX).is_some() {
            return None;
        }
        let (space, name) = self.reader.resolve_element(tag.name());
        let mut element = Element {
            space: known(&space)?,
            name: std::str::from_utf8(name.into_inner()).ok()?.to_owned(),
            kind: EdmType::String,
            null: false,
        };
        for attribute in tag.attributes() {
            let attribute = attribute.ok()?;
            let (space, name) = self.reader.resolve_attribute(attribute.key);
            if known(&space)? != Space::Metadata || element.space != Space::Data {
                continue;
            }
            let value = attribute.unescape_value().ok()?;
            match name.into_inner() {
                b"type" => element.kind = EdmType::parse(&value)?,
                b"null" => element.null = boolean(value.trim_ascii())?,
                _ => {}
            }
        }
        Some(element)
    }
}

/// `None` for a prefix that was not declared.
fn known(space: &ResolveResult<'_>) -> Option<Space> {
    Some(match space {
        ResolveResult::Bound(Namespace(uri)) if *uri == ATOM.as_bytes() => Space::Atom,
        ResolveResult::Bound(Namespace(uri)) if *uri == DATA.as_bytes() => Space::Data,
        ResolveResult::Bound(Namespace(uri)) if *uri == METADATA.as_bytes() => Space::Metadata,
        ResolveResult::Bound(_) | ResolveResult::Unbound => Space::Other,
        ResolveResult::Unknown(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atom::{AtomContext, AtomDialect, AtomEntry, AtomValue, write_entry};
    use proptest::prelude::*;

    fn show(body: &str) -> String {
        match read_properties(body.as_bytes()) {
            Ok(properties) => {
                let shown = |(name, value): &(String, Option<Value>)| match value {
                    Some(value) => format!("{name}={value:?}"),
                    None => format!("{name}=null"),
                };
                properties.iter().map(shown).collect::<Vec<_>>().join(" ")
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    /// Reads an entry whose `m:properties` holds this.
    fn check(properties: &str, expected: &str) {
        let body = format!(
            r#"<entry xmlns="{ATOM}" xmlns:d="{DATA}" xmlns:m="{METADATA}"><content><m:properties>{properties}</m:properties></content></entry>"#
        );
        assert_eq!(show(&body), expected, "{properties}");
    }

    fn check_document(body: &str, expected: &str) {
        assert_eq!(show(body), expected, "{body}");
    }

    #[test]
    fn reads_every_type() {
        check("<d:A>x</d:A><d:B m:type='Edm.String'>y</d:B>", r#"A=String("x") B=String("y")"#);
        check("<d:A></d:A><d:B/>", r#"A=String("") B=String("")"#);
        check(r#"<d:A m:type="Edm.Boolean"> true </d:A>"#, "A=Boolean(true)");
        check(r#"<d:A m:type="Edm.Boolean">0</d:A>"#, "A=Boolean(false)");
        check(r#"<d:A m:type="Edm.Int32">-7</d:A>"#, "A=Int32(-7)");
        check(r#"<d:A m:type="Edm.Int64">9223372036854775807</d:A>"#, "A=Int64(9223372036854775807)");
        check(r#"<d:A m:type="Edm.Double">1.5E+3</d:A>"#, "A=Double(1500.0)");
        check(r#"<d:A m:type="Edm.Double">3</d:A>"#, "A=Double(3.0)");
        check(r#"<d:A m:type="Edm.Double">-INF</d:A>"#, "A=Double(-inf)");
        check(r#"<d:A m:type="Edm.Double">NaN</d:A>"#, "A=Double(NaN)");
        check(
            r#"<d:A m:type="Edm.DateTime">1970-01-01T00:00:00Z</d:A>"#,
            "A=DateTime(DateTime(621355968000000000))",
        );
        check(r#"<d:A m:type="Edm.Binary">AQ ID&#10;BA==</d:A>"#, "A=Binary([1, 2, 3, 4])");
        check(r#"<d:A m:type="Edm.Binary"/>"#, "A=Binary([])");
        check(r#"<d:A m:null="true"/><d:B m:type="Edm.Int32" m:null="1"></d:B>"#, "A=null B=null");
        check(r#"<d:A m:null="false">x</d:A>"#, r#"A=String("x")"#);
        let guid = format!("A={:?}", Value::Guid(Guid([0xAB; 16])));
        check(r#"<d:A m:type="Edm.Guid">ABABABAB-abab-ABAB-abab-abababababab</d:A>"#, &guid);
    }

    #[test]
    fn text_is_kept_as_it_was_meant() {
        check("\r\n  <d:A> a  b\t</d:A>\r\n  <!-- x --> ", r#"A=String(" a  b\t")"#);
        check("<d:A>   </d:A>", r#"A=String("   ")"#);
        check("<d:A>a\r\nb\rc&#xD;&#13;</d:A>", r#"A=String("a\nb\nc\r\r")"#);
        check("<d:A>&lt;&amp;&gt;&quot;&apos;&#233;&#x1;&#x1F600;</d:A>", "A=String(\"<&>\\\"'é\\u{1}😀\")");
        check("<d:A>a<!-- b -->c<![CDATA[<&]]><?d e?></d:A>", r#"A=String("ac<&")"#);
    }

    #[test]
    fn refuses_values_that_do_not_fit() {
        for properties in [
            r#"<d:A m:type="Edm.Boolean">True</d:A>"#,
            r#"<d:A m:type="Edm.Int32">2147483648</d:A>"#,
            r#"<d:A m:type="Edm.Int32">1.0</d:A>"#,
            r#"<d:A m:type="Edm.Int32"></d:A>"#,
            r#"<d:A m:type="Edm.Int64">x</d:A>"#,
            r#"<d:A m:type="Edm.Double">1e400</d:A>"#,
            r#"<d:A m:type="Edm.Double">inf</d:A>"#,
            r#"<d:A m:type="Edm.DateTime">yesterday</d:A>"#,
            r#"<d:A m:type="Edm.Guid">0f8fad5b</d:A>"#,
            r#"<d:A m:type="Edm.Binary">AQIDB</d:A>"#,
            r#"<d:A m:type="Edm.Single">1</d:A>"#,
            r#"<d:A m:type="">1</d:A>"#,
            r#"<d:A m:type="Edm.Foo" m:null="true"/>"#,
            r#"<d:A m:null="yes"/>"#,
            "<d:A><d:B>1</d:B></d:A>",
            "<d:A>&nbsp;</d:A>",
            "<d:A>&#xD800;</d:A>",
            "<d:A>&#x110000;</d:A>",
            "<d:A>&#x;</d:A>",
            "<d:A>&#+65;</d:A>",
            "<d:A>&amp</d:A>",
            "<d:A>",
            "<d:A></d:B>",
            "<q:A/>",
            "<d:A q:b='1'/>",
            "<d:A m:null='true' m:null='true'/>",
        ] {
            check(properties, "BodyNotReadable");
        }
    }

    #[test]
    fn namespaces_count_and_prefixes_do_not() {
        check_document(
            &format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\n<a:entry xmlns:a=\"{ATOM}\"><a:title/><a:updated>2015</a:updated><a:author><a:name/></a:author><a:id/><a:content type=\"application/xml\"><properties xmlns=\"{METADATA}\" xmlns:n=\"{METADATA}\" xml:space=\"preserve\"><Year xmlns=\"{DATA}\" n:type=\"Edm.Int32\" type=\"x\">5</Year></properties></a:content></a:entry>\n"
            ),
            "Year=Int32(5)",
        );
        // Extensions beside the properties, and properties that are not in the content.
        check("<x xmlns='urn:x'><y/>z</x><d:A>1</d:A><m:x><d:B>2</d:B></m:x>", r#"A=String("1")"#);
        check_document(
            &format!("<entry xmlns='{ATOM}'><m:properties xmlns:m='{METADATA}'/><id>x</id></entry>"),
            "",
        );
        // Line breaks before the declaration, as in a batch.
        check_document(&format!("\r\n<?xml version='1.0'?><entry xmlns='{ATOM}'/><!-- end -->"), "");
    }

    #[test]
    fn no_more_properties_are_read_than_an_entity_could_have() {
        let properties = |count| "<d:A m:null='true'/>".repeat(count);
        let all: Vec<&str> = vec!["A=null"; limits::BODY_MEMBERS_MAX];
        check(&properties(limits::BODY_MEMBERS_MAX), &all.join(" "));
        check(&properties(100 * limits::BODY_MEMBERS_MAX), "TooManyProperties");
        // What follows the first property above the limit is not read.
        check(&format!("{}<&", properties(limits::BODY_MEMBERS_MAX + 1)), "TooManyProperties");
        check(&format!("{}<&", properties(limits::BODY_MEMBERS_MAX)), "BodyNotReadable");
    }

    #[test]
    fn an_entry_has_no_more_tags_than_properties_and_their_like_could_need() {
        for tag in ["<x/>", "<m:x></m:x>", "<!-- x -->", "<?x?>"] {
            // The others are `entry`, `content`, `m:properties` and the property.
            let tags = |count| format!("{}<d:A/>", tag.repeat(count));
            check(&tags(TAGS_MAX - 4), r#"A=String("")"#);
            check(&tags(TAGS_MAX - 3), "BodyNotReadable");
        }
        let keys = "<d:PartitionKey/>".repeat(TAGS_MAX);
        let body = format!(
            "<entry xmlns='{ATOM}'><content><m:properties xmlns:d='{DATA}' xmlns:m='{METADATA}'>{keys}</m:properties></content></entry>"
        );
        assert_eq!(read_properties_without_keys(body.as_bytes()), Err(Refusal::BodyNotReadable));
    }

    #[test]
    fn text_is_read_up_to_the_element_it_stands_in() {
        check("<d:A/>x<d:B>y</d:B>", r#"A=String("") B=String("y")"#);
        check(&format!("<d:A>{}</d:A>", "&#1;".repeat(3)), r#"A=String("\u{1}\u{1}\u{1}")"#);
        check("<x>&nope;</x><d:A/>", "BodyNotReadable");
    }

    #[test]
    fn refuses_what_is_no_entry() {
        let deep = format!("<entry xmlns='{ATOM}'>{}{}</entry>", "<a>".repeat(99_999), "</a>".repeat(99_999));
        let wide: String = (0..99_999).map(|n| format!(" xmlns:n{n}='urn:n'")).collect();
        for body in [
            "",
            " ",
            "{}",
            "<entry/>",
            "text",
            &format!("<feed xmlns='{ATOM}'/>"),
            &format!("<entry xmlns='{ATOM}'>"),
            &format!("<entry xmlns='{ATOM}'/>x"),
            &format!("<entry xmlns='{ATOM}'/><entry xmlns='{ATOM}'/>"),
            &format!("<entry xmlns='{ATOM}'></entry></entry>"),
            &format!("<!DOCTYPE entry><entry xmlns='{ATOM}'/>"),
            &format!("<!DOCTYPE entry [<!ENTITY a \"aa\">]><entry xmlns='{ATOM}'>&a;</entry>"),
            &format!("<entry xmlns='{ATOM}'{wide}/>"),
            &deep,
        ] {
            assert_eq!(show(body), "BodyNotReadable", "{}", body.get(..200).unwrap_or(body));
        }
        assert_eq!(
            read_properties(b"<entry xmlns='http://www.w3.org/2005/Atom'>\xff</entry>"),
            Err(Refusal::BodyNotReadable)
        );
        assert_eq!(read_properties(b"\xff\xfe<\0e\0"), Err(Refusal::BodyNotReadable));
    }

    fn any_value() -> impl Strategy<Value = Option<Value>> {
        let text = prop::collection::vec(any::<char>(), 0..12).prop_map(|text| text.into_iter().collect());
        prop_oneof![
            Just(None),
            text.prop_map(|text: String| Some(Value::String(text))),
            "[ \t\r\n&<>\"\u{0}\u{1}]{0,6}".prop_map(|text| Some(Value::String(text))),
            any::<bool>().prop_map(|value| Some(Value::Boolean(value))),
            any::<i32>().prop_map(|value| Some(Value::Int32(value))),
            any::<i64>().prop_map(|value| Some(Value::Int64(value))),
            prop::num::f64::ANY.prop_map(|value| Some(Value::Double(value))),
            (0..=DateTime::MAX.ticks()).prop_map(|ticks| DateTime::from_ticks(ticks).map(Value::DateTime)),
            any::<[u8; 16]>().prop_map(|bytes| Some(Value::Guid(Guid(bytes)))),
            prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| Some(Value::Binary(bytes))),
        ]
    }

    proptest! {
        #[test]
        fn reads_back_what_is_written(
            properties in prop::collection::vec(("[A-Za-z_é][A-Za-z0-9_é]{0,8}", any_value()), 0..6),
            indented in any::<bool>(),
            spatial_namespaces in any::<bool>(),
        ) {
            let context = AtomContext {
                dialect: if indented { AtomDialect::V2011 } else { AtomDialect::V2014 },
                spatial_namespaces,
                base: "http://127.0.0.1:10002/acct1/",
                account: "acct1",
                set: "Books",
                now: DateTime::MAX,
            };
            let entry = AtomEntry {
                relative_url: "Books(PartitionKey='&amp;',RowKey='%3C')",
                etag: Some("W/\"<&>\"".to_owned()),
                properties: properties.iter().map(|(name, value)| {
                    let value = value.as_ref().map_or(AtomValue::Null, |value| AtomValue::Value(value.as_ref()));
                    (name.as_str(), value)
                }),
            };
            let mut out = Vec::new();
            write_entry(&mut out, &context, entry);
            prop_assert_eq!(read_properties(&out), Ok(properties), "{}", String::from_utf8_lossy(&out));
        }
    }
}
