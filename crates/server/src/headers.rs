//! The headers of a request, or of one that is part of a batch: looked up where they lie.

use http::HeaderMap;

#[derive(Clone, Copy, Debug)]
pub enum Headers<'a> {
    Request(&'a HeaderMap),
    /// Names in any case.
    Part(&'a [(&'a str, &'a str)]),
}

impl<'a> Headers<'a> {
    /// A header's text; one that is not ASCII counts as absent.
    pub fn get(self, name: &str) -> Option<&'a str> {
        match self {
            Self::Request(headers) => header(headers, name),
            Self::Part(_) => self.all(name).next().and_then(text),
        }
    }

    pub fn contains(self, name: &str) -> bool {
        match self {
            Self::Request(headers) => headers.contains_key(name),
            Self::Part(_) => self.all(name).next().is_some(),
        }
    }

    /// The values of every header of this name.
    pub fn all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let (request, part) = match self {
            Self::Request(headers) => (Some(headers.get_all(name)), None),
            Self::Part(headers) => (None, Some(headers)),
        };
        let in_part = part.into_iter().flatten().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        let in_request = request.into_iter().flat_map(|values| values.into_iter());
        in_request.map(http::HeaderValue::as_bytes).chain(in_part.map(|(_, value)| value.as_bytes()))
    }
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|text| text.is_ascii())
}

/// A header's text; one that is not ASCII counts as absent.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
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
            let name = http::HeaderName::try_from(name).unwrap();
            map.append(name, http::HeaderValue::try_from(value).unwrap());
        }
        for headers in [Headers::Request(&map), Headers::Part(&listed)] {
            assert_eq!(headers.get("if-match"), Some("*"));
            assert_eq!(headers.get("prefer"), Some("a"));
            assert_eq!(headers.all("prefer").collect::<Vec<_>>(), [b"a", b"b"]);
            assert_eq!((headers.get("x"), headers.contains("x")), (None, true));
            assert_eq!((headers.get("y"), headers.contains("y")), (None, false));
        }
    }
}
