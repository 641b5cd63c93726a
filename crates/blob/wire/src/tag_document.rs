//! Tags as a document: the body of Set Blob Tags, the answer of Get Blob Tags, and a part of lists (spec: blob-operations
//! 6.4).

use blob_model::{Refusal, Tags};
use protocol::xml_fault::XmlFault;
use protocol::xml_tree::Element;

use crate::xml::{Writer, Xml};

/// The answer of Get Blob Tags.
pub fn write(tags: &Tags) -> Vec<u8> {
    let mut xml = Xml::new(Writer::New, 256 + tags.len() * 128);
    xml.open("Tags");
    write_set(&mut xml, tags.iter());
    xml.close("Tags");
    xml.finish()
}

pub(crate) fn write_set<'t>(xml: &mut Xml, tags: impl ExactSizeIterator<Item = (&'t str, &'t str)>) {
    if tags.len() == 0 {
        xml.empty("TagSet");
        return;
    }
    xml.open("TagSet");
    for (key, value) in tags {
        xml.open("Tag");
        xml.element("Key", key);
        xml.element("Value", value);
        xml.close("Tag");
    }
    xml.close("TagSet");
}

/// The body of Set Blob Tags, or the answer of Get Blob Tags.
pub fn read(body: &[u8]) -> Result<Tags, Refusal> {
    let root = Element::read(body).map_err(not_valid)?;
    if root.name != "Tags" {
        return Err(not_valid(XmlFault::default()));
    }
    of(&root)
}

/// Of the element `Tags`.
pub(crate) fn of(tags: &Element) -> Result<Tags, Refusal> {
    let not_valid = || not_valid(XmlFault::default());
    let set = tags.child("TagSet").ok().flatten().ok_or_else(not_valid)?;
    if !tags.has_only(&["TagSet"]) || !set.has_only(&["Tag"]) {
        return Err(not_valid());
    }
    let pairs = set.children.iter().map(|tag| {
        let text = |name| tag.child(name).ok().flatten().map(|child| child.whole_text().to_owned());
        tag.has_only(&["Key", "Value"]).then(|| Some((text("Key")?, text("Value")?))).flatten()
    });
    let pairs: Vec<(String, String)> = pairs.collect::<Option<_>>().ok_or_else(not_valid)?;
    Tags::new(pairs).map_err(|_| common::Refusal::InputNotValid.into())
}

fn not_valid(XmlFault { line, position, reason }: XmlFault) -> Refusal {
    Refusal::XmlNotValid { line, position, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_the_services_to_the_byte() {
        let check = |tags: &str, expected: &str| {
            let tags = Tags::parse(tags).unwrap();
            let document = String::from_utf8(write(&tags)).unwrap();
            let start = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Tags>";
            assert_eq!(document.strip_prefix(start), Some(expected));
            assert_eq!(read(document.as_bytes()), Ok(tags));
        };
        check("", "<TagSet/></Tags>");
        check(
            "b=2&a=1&empty=",
            "<TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag><Tag><Key>empty</Key><Value/></Tag></TagSet></Tags>",
        );
    }

    #[test]
    fn a_body_is_read_or_refused() {
        let check = |body: &str, expected: Result<usize, &str>| {
            let tags = read(body.as_bytes());
            assert_eq!(
                tags.as_ref().map(Tags::len).map_err(|refusal| refusal.code()),
                expected,
                "{body:.80}"
            );
        };
        let tag = |key: &str| format!("<Tag><Key>{key}</Key><Value>v</Value></Tag>");
        let set = |tags: &str| {
            format!("<?xml version='1.0' encoding='utf-8'?>\n<Tags><TagSet>{tags}</TagSet></Tags>")
        };
        check(&set(""), Ok(0));
        check(&set(&tag("a")), Ok(1));
        check("<Tags><TagSet/></Tags>", Ok(0));
        check(&set("<Tag><Value>v</Value><Key>k</Key></Tag>"), Ok(1));
        check(&set(&format!("{}{}", tag("a"), tag("a"))), Err("InvalidInput"));
        check(&set(&(0..11).map(|n| tag(&n.to_string())).collect::<String>()), Err("InvalidInput"));
        check(&set(&tag("a,b")), Err("InvalidInput"));
        for body in [
            "",
            "x",
            "<Tags/>",
            "<Tag/>",
            "<Tags><TagSet><Tag/></TagSet></Tags>",
            "<Tags><TagSet><T/></TagSet></Tags>",
        ] {
            check(body, Err("InvalidXmlDocument"));
        }
    }
}
