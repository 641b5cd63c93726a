//! Writes entries and feeds as .NET's XML writer does: the order of elements and attributes, the blank in
//! ` />` and the kinds of escapes are those of recorded answers (spec: table-operations 8.4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{DateTime, ValueRef, format_double};

use super::markup::Xml;
use super::{ATOM, DATA, GEORSS, GML, METADATA, SCHEME};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomDialect {
    /// Up to version 2011-08-18: indented, and in the order of the first server library.
    V2011,
    /// Since then: compact, in ODataLib's order.
    V2014,
}

/// What all entries of an answer share.
#[derive(Clone, Copy, Debug)]
pub struct AtomContext<'a> {
    pub dialect: AtomDialect,
    /// Declare the namespaces of spatial types, as answers in OData 3.0 do. Unknown to `V2011`.
    pub spatial_namespaces: bool,
    /// `https://acct1.table.core.windows.net/`
    pub base: &'a str,
    pub account: &'a str,
    /// The table's name, or `Tables`.
    pub set: &'a str,
    /// The time of the answer, shown as `updated`.
    pub now: DateTime,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtomValue<'a> {
    Value(ValueRef<'a>),
    /// Selected, but the entity has no such property.
    Null,
}

/// One entity or table.
#[derive(Clone, Debug)]
pub struct AtomEntry<'a, P> {
    /// Already percent-encoded: `Books(PartitionKey='sf',RowKey='1')`.
    pub relative_url: &'a str,
    /// None for a table.
    pub etag: Option<String>,
    /// The selected properties in the order they are shown.
    pub properties: P,
}

pub fn content_type(dialect: AtomDialect, feed: bool) -> &'static str {
    match (dialect, feed) {
        (AtomDialect::V2011, _) => "application/atom+xml;charset=utf-8",
        (AtomDialect::V2014, false) => "application/atom+xml;type=entry;charset=utf-8",
        (AtomDialect::V2014, true) => "application/atom+xml;type=feed;charset=utf-8",
    }
}

/// A document of one entry.
pub fn write_entry<'p, P>(out: &mut Vec<u8>, context: &AtomContext<'_>, entry: AtomEntry<'_, P>)
where
    P: IntoIterator<Item = (&'p str, AtomValue<'p>)>,
{
    let mut xml = Xml::start(out, context.dialect == AtomDialect::V2011);
    xml.open("entry", &root_attributes(context, entry.etag.as_deref()));
    write_entry_content(&mut xml, context, entry);
}

/// A document of many entries: `start`, each `entry`, `finish`.
#[derive(Debug)]
pub struct FeedWriter<'a> {
    xml: Xml<'a>,
    context: &'a AtomContext<'a>,
    has_entries: bool,
}

impl<'a> FeedWriter<'a> {
    pub fn start(out: &'a mut Vec<u8>, context: &'a AtomContext<'a>) -> Self {
        let mut xml = Xml::start(out, context.dialect == AtomDialect::V2011);
        xml.open("feed", &root_attributes(context, None));
        let title = [("type", "text")];
        let id = format!("{}{}", context.base, context.set);
        match context.dialect {
            AtomDialect::V2011 => {
                xml.leaf("title", &title, context.set);
                xml.leaf("id", &[], &id);
            }
            AtomDialect::V2014 => {
                xml.leaf("id", &[], &id);
                xml.leaf("title", &title, context.set);
            }
        }
        xml.leaf("updated", &[], &context.now.to_seconds_string());
        Self { xml, context, has_entries: false }
    }

    pub fn entry<'p, P>(&mut self, entry: AtomEntry<'_, P>)
    where
        P: IntoIterator<Item = (&'p str, AtomValue<'p>)>,
    {
        if !self.has_entries {
            self.has_entries = true;
            self.link();
        }
        let etag = entry.etag.as_deref().map(|etag| ("m:etag", etag));
        self.xml.open("entry", etag.as_slice());
        write_entry_content(&mut self.xml, self.context, entry);
    }

    /// The bytes written so far.
    pub fn written(&self) -> &Vec<u8> {
        self.xml.written()
    }

    pub fn finish(mut self) {
        // Atom requires an author in the feed or in each entry; an empty feed needs its own.
        if !self.has_entries {
            author(&mut self.xml);
            self.link();
        }
        self.xml.close("feed");
    }

    fn link(&mut self) {
        let set = self.context.set;
        self.xml.empty("link", &[("rel", "self"), ("title", set), ("href", set)]);
    }
}

fn root_attributes<'a>(context: &AtomContext<'a>, etag: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
    let mut attributes = vec![("xml:base", context.base)];
    let etag = etag.map(|etag| ("m:etag", etag));
    match context.dialect {
        AtomDialect::V2011 => {
            attributes.extend([("xmlns:d", DATA), ("xmlns:m", METADATA)]);
            attributes.extend(etag);
            attributes.push(("xmlns", ATOM));
        }
        AtomDialect::V2014 => {
            attributes.extend([("xmlns", ATOM), ("xmlns:d", DATA), ("xmlns:m", METADATA)]);
            if context.spatial_namespaces {
                attributes.extend([("xmlns:georss", GEORSS), ("xmlns:gml", GML)]);
            }
            attributes.extend(etag);
        }
    }
    attributes
}

/// All of an entry but its start tag.
fn write_entry_content<'p, P>(xml: &mut Xml<'_>, context: &AtomContext<'_>, entry: AtomEntry<'_, P>)
where
    P: IntoIterator<Item = (&'p str, AtomValue<'p>)>,
{
    let term = format!("{}.{}", context.account, context.set);
    let category = [("term", term.as_str()), ("scheme", SCHEME)];
    let link = [("rel", "edit"), ("title", context.set), ("href", entry.relative_url)];
    let updated = context.now.to_seconds_string();
    xml.leaf("id", &[], &format!("{}{}", context.base, entry.relative_url));
    match context.dialect {
        AtomDialect::V2011 => {
            xml.leaf("title", &[("type", "text")], "");
            xml.leaf("updated", &[], &updated);
            author(xml);
            xml.empty("link", &link);
            xml.empty("category", &category);
        }
        AtomDialect::V2014 => {
            xml.empty("category", &category);
            xml.empty("link", &link);
            xml.empty("title", &[]);
            xml.leaf("updated", &[], &updated);
            author(xml);
        }
    }
    xml.open("content", &[("type", "application/xml")]);
    xml.open("m:properties", &[]);
    for (name, value) in entry.properties {
        write_property(xml, name, value);
    }
    xml.close("m:properties");
    xml.close("content");
    xml.close("entry");
}

fn author(xml: &mut Xml<'_>) {
    xml.open("author", &[]);
    xml.empty("name", &[]);
    xml.close("author");
}

fn write_property(xml: &mut Xml<'_>, name: &str, value: AtomValue<'_>) {
    let tag = format!("d:{name}");
    let AtomValue::Value(value) = value else {
        return xml.empty(&tag, &[("m:null", "true")]);
    };
    let text = match value {
        ValueRef::String(text) => {
            // Readers may drop spaces around a text unless `xml:space` forbids it.
            let bare = !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
            let preserve: &[_] = if bare { &[] } else { &[("xml:space", "preserve")] };
            return xml.leaf(&tag, preserve, text);
        }
        ValueRef::Boolean(value) => value.to_string(),
        ValueRef::Int32(value) => value.to_string(),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::Double(value) if value.is_nan() => "NaN".to_owned(),
        ValueRef::Double(f64::INFINITY) => "INF".to_owned(),
        ValueRef::Double(f64::NEG_INFINITY) => "-INF".to_owned(),
        ValueRef::Double(value) => format_double(value),
        ValueRef::DateTime(value) => value.to_string(),
        ValueRef::Guid(value) => value.to_string(),
        ValueRef::Binary(bytes) => STANDARD.encode(bytes),
    };
    xml.leaf(&tag, &[("m:type", value.edm_type().name())], &text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ETag, Guid};

    const BOOK: &str = "Books(PartitionKey='sf',RowKey='1')";

    fn time(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    fn context(dialect: AtomDialect, set: &str) -> AtomContext<'_> {
        AtomContext {
            dialect,
            spatial_namespaces: false,
            base: "https://acct1.table.core.windows.net/",
            account: "acct1",
            set,
            now: time("2015-06-30T22:57:06.9Z"),
        }
    }

    fn book() -> AtomEntry<'static, Vec<(&'static str, AtomValue<'static>)>> {
        let written = time("2015-06-30T22:57:06.37Z");
        let properties = vec![
            ("PartitionKey", AtomValue::Value(ValueRef::String("sf"))),
            ("RowKey", AtomValue::Value(ValueRef::String("1"))),
            ("Timestamp", AtomValue::Value(ValueRef::DateTime(written))),
            ("Year", AtomValue::Value(ValueRef::Int32(1971))),
            ("Title", AtomValue::Value(ValueRef::String("One"))),
        ];
        AtomEntry { relative_url: BOOK, etag: Some(ETag(written).to_string()), properties }
    }

    fn entry(context: &AtomContext<'_>) -> String {
        let mut out = Vec::new();
        write_entry(&mut out, context, book());
        String::from_utf8(out).unwrap()
    }

    fn feed(context: &AtomContext<'_>, entries: usize) -> String {
        let mut out = Vec::new();
        let mut feed = FeedWriter::start(&mut out, context);
        for _ in 0..entries {
            feed.entry(book());
        }
        feed.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_entry_is_compact_since_2014() {
        let mut context = context(AtomDialect::V2014, "Books");
        let expected = r#"<?xml version="1.0" encoding="utf-8"?><entry xml:base="https://acct1.table.core.windows.net/" xmlns="http://www.w3.org/2005/Atom" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" m:etag="W/&quot;datetime'2015-06-30T22%3A57%3A06.37Z'&quot;"><id>https://acct1.table.core.windows.net/Books(PartitionKey='sf',RowKey='1')</id><category term="acct1.Books" scheme="http://schemas.microsoft.com/ado/2007/08/dataservices/scheme" /><link rel="edit" title="Books" href="Books(PartitionKey='sf',RowKey='1')" /><title /><updated>2015-06-30T22:57:06Z</updated><author><name /></author><content type="application/xml"><m:properties><d:PartitionKey>sf</d:PartitionKey><d:RowKey>1</d:RowKey><d:Timestamp m:type="Edm.DateTime">2015-06-30T22:57:06.37Z</d:Timestamp><d:Year m:type="Edm.Int32">1971</d:Year><d:Title>One</d:Title></m:properties></content></entry>"#;
        assert_eq!(entry(&context), expected);
        context.spatial_namespaces = true;
        let spatial = r#"metadata" xmlns:georss="http://www.georss.org/georss" xmlns:gml="http://www.opengis.net/gml" m:etag"#;
        assert_eq!(entry(&context), expected.replace(r#"metadata" m:etag"#, spatial));
    }

    #[test]
    fn an_entry_is_indented_in_2011() {
        let expected = [
            r#"<?xml version="1.0" encoding="utf-8" standalone="yes"?>"#,
            r#"<entry xml:base="https://acct1.table.core.windows.net/" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" m:etag="W/&quot;datetime'2015-06-30T22%3A57%3A06.37Z'&quot;" xmlns="http://www.w3.org/2005/Atom">"#,
            "  <id>https://acct1.table.core.windows.net/Books(PartitionKey='sf',RowKey='1')</id>",
            r#"  <title type="text"></title>"#,
            "  <updated>2015-06-30T22:57:06Z</updated>",
            "  <author>",
            "    <name />",
            "  </author>",
            r#"  <link rel="edit" title="Books" href="Books(PartitionKey='sf',RowKey='1')" />"#,
            r#"  <category term="acct1.Books" scheme="http://schemas.microsoft.com/ado/2007/08/dataservices/scheme" />"#,
            r#"  <content type="application/xml">"#,
            "    <m:properties>",
            "      <d:PartitionKey>sf</d:PartitionKey>",
            "      <d:RowKey>1</d:RowKey>",
            r#"      <d:Timestamp m:type="Edm.DateTime">2015-06-30T22:57:06.37Z</d:Timestamp>"#,
            r#"      <d:Year m:type="Edm.Int32">1971</d:Year>"#,
            "      <d:Title>One</d:Title>",
            "    </m:properties>",
            "  </content>",
            "</entry>",
        ];
        assert_eq!(entry(&context(AtomDialect::V2011, "Books")), expected.join("\r\n"));
    }

    #[test]
    fn a_table_has_no_etag() {
        let mut out = Vec::new();
        let table = AtomEntry {
            relative_url: "Tables('Books')",
            etag: None,
            properties: [("TableName", AtomValue::Value(ValueRef::String("Books")))],
        };
        write_entry(&mut out, &context(AtomDialect::V2014, "Tables"), table);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#"dataservices/metadata"><id>https://acct1.table.core.windows.net/Tables('Books')</id><category term="acct1.Tables""#), "{text}");
        assert!(text.contains("<m:properties><d:TableName>Books</d:TableName></m:properties>"), "{text}");
    }

    #[test]
    fn a_feed_names_itself_and_its_entries_share_its_namespaces() {
        let compact = feed(&context(AtomDialect::V2014, "Books"), 2);
        let head = r#"metadata"><id>https://acct1.table.core.windows.net/Books</id><title type="text">Books</title><updated>2015-06-30T22:57:06Z</updated><link rel="self" title="Books" href="Books" /><entry m:etag="W/&quot;datetime'2015-06-30T22%3A57%3A06.37Z'&quot;"><id>"#;
        assert!(compact.contains(head), "{compact}");
        assert!(compact.ends_with("</content></entry></feed>"), "{compact}");
        assert_eq!(compact.matches("<entry").count(), 2);

        let indented = feed(&context(AtomDialect::V2011, "Books"), 1);
        let head = "Atom\">\r\n  <title type=\"text\">Books</title>\r\n  <id>https://acct1.table.core.windows.net/Books</id>\r\n  <updated>2015-06-30T22:57:06Z</updated>\r\n  <link rel=\"self\" title=\"Books\" href=\"Books\" />\r\n  <entry m:etag=";
        assert!(indented.contains(head), "{indented}");
        assert!(indented.ends_with("\r\n    </content>\r\n  </entry>\r\n</feed>"), "{indented}");
    }

    #[test]
    fn a_feed_without_entries_has_an_author() {
        let compact = feed(&context(AtomDialect::V2014, "Books"), 0);
        let tail =
            r#"</updated><author><name /></author><link rel="self" title="Books" href="Books" /></feed>"#;
        assert!(compact.ends_with(tail), "{compact}");
        let indented = feed(&context(AtomDialect::V2011, "Books"), 0);
        let tail = "</updated>\r\n  <author>\r\n    <name />\r\n  </author>\r\n  <link rel=\"self\" title=\"Books\" href=\"Books\" />\r\n</feed>";
        assert!(indented.ends_with(tail), "{indented}");
    }

    fn check(value: AtomValue<'_>, expected: &str) {
        let mut out = Vec::new();
        write_property(&mut Xml::start(&mut out, false), "X", value);
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written.split_once("?>").unwrap().1, expected);
    }

    #[test]
    fn every_type_but_string_is_named() {
        let check = |value, expected| check(AtomValue::Value(value), expected);
        check(ValueRef::Boolean(true), r#"<d:X m:type="Edm.Boolean">true</d:X>"#);
        check(ValueRef::Int32(-5), r#"<d:X m:type="Edm.Int32">-5</d:X>"#);
        check(ValueRef::Int64(1 << 40), r#"<d:X m:type="Edm.Int64">1099511627776</d:X>"#);
        check(ValueRef::Double(2.5), r#"<d:X m:type="Edm.Double">2.5</d:X>"#);
        check(ValueRef::Double(f64::NAN), r#"<d:X m:type="Edm.Double">NaN</d:X>"#);
        check(ValueRef::Double(f64::INFINITY), r#"<d:X m:type="Edm.Double">INF</d:X>"#);
        check(ValueRef::Double(f64::NEG_INFINITY), r#"<d:X m:type="Edm.Double">-INF</d:X>"#);
        check(
            ValueRef::DateTime(time("2012-11-10T03:04:05.2Z")),
            r#"<d:X m:type="Edm.DateTime">2012-11-10T03:04:05.2Z</d:X>"#,
        );
        check(
            ValueRef::Guid(Guid([0xab; 16])),
            r#"<d:X m:type="Edm.Guid">abababab-abab-abab-abab-abababababab</d:X>"#,
        );
        check(ValueRef::Binary(&[1, 2, 3, 4]), r#"<d:X m:type="Edm.Binary">AQIDBA==</d:X>"#);
        check(ValueRef::Binary(&[]), r#"<d:X m:type="Edm.Binary"></d:X>"#);
    }

    #[test]
    fn text_survives_xml() {
        let string = |text, expected| check(AtomValue::Value(ValueRef::String(text)), expected);
        string("", "<d:X></d:X>");
        string("a<b>&\"'é", "<d:X>a&lt;b&gt;&amp;\"'é</d:X>");
        string("a\tb\nc\rd", "<d:X>a\tb\nc&#xD;d</d:X>");
        string("\u{1}\u{1f}\0\u{7f}\u{ffff}", "<d:X>&#x1;&#x1F;&#x0;\u{7f}&#xFFFF;</d:X>");
        string(" a", r#"<d:X xml:space="preserve"> a</d:X>"#);
        string("a\n", "<d:X xml:space=\"preserve\">a\n</d:X>");
        string("\u{a0}", "<d:X xml:space=\"preserve\">\u{a0}</d:X>");
        check(AtomValue::Null, r#"<d:X m:null="true" />"#);
    }

    #[test]
    fn only_the_newer_dialect_tells_entry_from_feed() {
        assert_eq!(content_type(AtomDialect::V2011, true), "application/atom+xml;charset=utf-8");
        assert_eq!(content_type(AtomDialect::V2011, false), "application/atom+xml;charset=utf-8");
        assert_eq!(content_type(AtomDialect::V2014, true), "application/atom+xml;type=feed;charset=utf-8");
        assert_eq!(content_type(AtomDialect::V2014, false), "application/atom+xml;type=entry;charset=utf-8");
    }
}
