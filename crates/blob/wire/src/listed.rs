//! How a client reads the elements of a list. What is written in a way that the service never writes is `None`.

use blob_model::{DateTime, Etag, LeaseView, Metadata};
use percent_encoding::percent_decode_str;
use protocol::xml_tree::Element;

/// An element that is there at most once.
pub(crate) fn child<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.child(name).ok().flatten()
}

/// Its text, if it has any.
pub(crate) fn text<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    child(element, name).map(Element::whole_text).filter(|text| !text.is_empty())
}

/// The text of a name, which may be encoded.
pub(crate) fn name(element: &Element) -> Option<String> {
    match element.attribute("Encoded") {
        Some("true") => {
            percent_decode_str(element.whole_text()).decode_utf8().ok().map(|text| text.into_owned())
        }
        _ => Some(element.whole_text().to_owned()),
    }
}

pub(crate) fn is_true(element: &Element, name: &str) -> bool {
    text(element, name) == Some("true")
}

pub(crate) fn time(element: &Element, name: &str) -> Option<DateTime> {
    DateTime::from_system_time(httpdate::parse_http_date(text(element, name)?).ok()?)
}

pub(crate) fn number<N: std::str::FromStr>(element: &Element, name: &str) -> Option<N> {
    text(element, name)?.parse().ok()
}

pub(crate) fn etag(properties: &Element) -> Option<Etag> {
    Etag::parse(text(properties, "Etag")?)
}

pub(crate) fn lease(properties: &Element) -> Option<LeaseView> {
    let known = |name: &str, words: &[&'static str]| {
        let found = text(properties, name)?;
        words.iter().copied().find(|word| *word == found)
    };
    Some(LeaseView {
        status: known("LeaseStatus", &["locked", "unlocked"])?,
        state: known("LeaseState", &["available", "leased", "expired", "breaking", "broken"])?,
        duration: known("LeaseDuration", &["infinite", "fixed"]),
    })
}

pub(crate) fn metadata(item: &Element) -> Option<Metadata> {
    let pairs = child(item, "Metadata").map_or(&[][..], |metadata| &metadata.children);
    Metadata::new(pairs.iter().map(|pair| (pair.name.clone(), pair.whole_text().to_owned())).collect()).ok()
}
