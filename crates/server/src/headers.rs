//! The headers of a request, or of one that is part of a batch: looked up where they lie.

use http::header::{AsHeaderName, HeaderMap, HeaderName};
use wire::names;

// Names of ours that every request is asked for: made once, so that looking one up is not also reading its name.
pub static X_MS_VERSION: HeaderName = HeaderName::from_static(names::X_MS_VERSION);
pub static X_MS_DATE: HeaderName = HeaderName::from_static(names::X_MS_DATE);
pub static X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(names::X_MS_CLIENT_REQUEST_ID);
pub static X_MS_REQUEST_ID: HeaderName = HeaderName::from_static(names::X_MS_REQUEST_ID);
pub static X_HTTP_METHOD: HeaderName = HeaderName::from_static(names::X_HTTP_METHOD);
pub static DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static(names::DATA_SERVICE_VERSION);
pub static MAX_DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static(names::MAX_DATA_SERVICE_VERSION);
pub static CONTENT_MD5: HeaderName = HeaderName::from_static(names::CONTENT_MD5);
pub static X_PARTITA_EXAMINED: HeaderName = HeaderName::from_static(names::X_PARTITA_EXAMINED);
pub static PREFER: HeaderName = HeaderName::from_static(names::PREFER);

#[derive(Clone, Copy, Debug)]
pub enum Headers<'a> {
    Request(&'a HeaderMap),
    /// Names in any case.
    Part(&'a [(&'a str, &'a str)]),
}

impl<'a> Headers<'a> {
    /// A header's text; one that is not ASCII counts as absent.
    pub fn get(self, name: &HeaderName) -> Option<&'a str> {
        match self {
            Self::Request(headers) => header(headers, name),
            Self::Part(_) => self.all(name).next().and_then(text),
        }
    }

    pub fn contains(self, name: &HeaderName) -> bool {
        match self {
            Self::Request(headers) => headers.contains_key(name),
            Self::Part(_) => self.all(name).next().is_some(),
        }
    }

    /// The values of every header of this name.
    pub fn all(self, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
        let (request, part) = match self {
            Self::Request(headers) => (Some(headers.get_all(name)), None),
            Self::Part(headers) => (None, Some(headers)),
        };
        let in_part =
            part.into_iter().flatten().filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_str()));
        let in_request = request.into_iter().flat_map(|values| values.into_iter());
        in_request.map(http::HeaderValue::as_bytes).chain(in_part.map(|(_, value)| value.as_bytes()))
    }
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|text| text.is_ascii())
}

/// A header's text; one that is not ASCII counts as absent.
pub fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parts_headers_are_found_as_a_requests_are() {
        let listed = [("If-Match", "*"), ("prefer", "a"), ("PREFER", "b"), ("X", "é")];
        let mut map = HeaderMap::new();
        for (name, value) in listed {
            let name = HeaderName::try_from(name).unwrap();
            map.append(name, http::HeaderValue::try_from(value).unwrap());
        }
        for headers in [Headers::Request(&map), Headers::Part(&listed)] {
            assert_eq!(headers.get(&HeaderName::from_static("if-match")), Some("*"));
            assert_eq!(headers.get(&HeaderName::from_static("prefer")), Some("a"));
            assert_eq!(headers.all(&HeaderName::from_static("prefer")).collect::<Vec<_>>(), [b"a", b"b"]);
            assert_eq!(
                (headers.get(&HeaderName::from_static("x")), headers.contains(&HeaderName::from_static("x"))),
                (None, true)
            );
            assert_eq!(
                (headers.get(&HeaderName::from_static("y")), headers.contains(&HeaderName::from_static("y"))),
                (None, false)
            );
        }
    }
}
