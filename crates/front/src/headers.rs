//! The headers of a request, or of a part of a batch, without copying them.

use http::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};
use protocol::names;

// Every request is searched for these. Made once, so that no look-up parses the name.
pub static X_MS_VERSION: HeaderName = HeaderName::from_static(names::X_MS_VERSION);
pub static X_MS_DATE: HeaderName = HeaderName::from_static(names::X_MS_DATE);
pub static X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(names::X_MS_CLIENT_REQUEST_ID);
pub static X_MS_REQUEST_ID: HeaderName = HeaderName::from_static(names::X_MS_REQUEST_ID);
pub static CONTENT_MD5: HeaderName = HeaderName::from_static(names::CONTENT_MD5);

#[derive(Clone, Copy, Debug)]
pub enum Headers<'a> {
    Request(&'a HeaderMap),
    /// Names in any case.
    Part(&'a [(&'a str, &'a str)]),
}

/// The value of a header. An unreadable one is neither absent nor empty: each caller decides what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header<'a> {
    Absent,
    Text(&'a str),
    /// Not ASCII text.
    Unreadable,
}

impl<'a> Header<'a> {
    /// For headers that are optional: an unreadable one is ignored.
    pub fn if_readable(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unreadable => None,
        }
    }

    /// For headers that must not be ignored: an unreadable one is the error `unreadable`.
    pub fn required_readable<E>(self, unreadable: E) -> Result<Option<&'a str>, E> {
        match self {
            Self::Text(text) => Ok(Some(text)),
            Self::Absent => Ok(None),
            Self::Unreadable => Err(unreadable),
        }
    }

    pub fn is_sent(self) -> bool {
        self != Self::Absent
    }

    /// Of a request.
    pub(crate) fn of_value(value: Option<&'a HeaderValue>) -> Self {
        let Some(value) = value else { return Self::Absent };
        value.to_str().map_or(Self::Unreadable, Self::Text)
    }

    /// Of a part. The same texts are readable as in a request.
    fn of_text(text: Option<&'a str>) -> Self {
        let Some(text) = text else { return Self::Absent };
        // Without a branch per byte, so that the compiler can vectorize it.
        let is_readable = |byte: u8| (b' '..=b'~').contains(&byte) | (byte == b'\t');
        let readable = text.bytes().fold(true, |readable, byte| readable & is_readable(byte));
        if readable { Self::Text(text) } else { Self::Unreadable }
    }
}

impl<'a> Headers<'a> {
    /// The first header of this name.
    pub fn get(self, name: &HeaderName) -> Header<'a> {
        match self {
            Self::Request(headers) => header(headers, name),
            Self::Part(headers) => {
                let mut known = headers.iter();
                let found = known.find(|(known, _)| known.eq_ignore_ascii_case(name.as_str()));
                Header::of_text(found.map(|(_, value)| *value))
            }
        }
    }

    /// Every header of this name.
    pub fn texts(self, name: &HeaderName) -> impl Iterator<Item = Header<'a>> {
        let readable = |value: &'a [u8]| std::str::from_utf8(value).ok();
        self.all(name)
            .map(move |value| readable(value).map_or(Header::Unreadable, |text| Header::of_text(Some(text))))
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
        in_request.map(HeaderValue::as_bytes).chain(in_part.map(|(_, value)| value.as_bytes()))
    }
}

/// The first header of this name.
pub fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Header<'_> {
    Header::of_value(headers.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parts_headers_are_found_as_a_requests_are() {
        let listed = [("If-Match", "*"), ("prefer", "a"), ("PREFER", "b"), ("X", "é"), ("Empty", "")];
        let mut map = HeaderMap::new();
        for (name, value) in listed {
            let name = HeaderName::try_from(name).unwrap();
            map.append(name, HeaderValue::try_from(value).unwrap());
        }
        for headers in [Headers::Request(&map), Headers::Part(&listed)] {
            let get = |name| headers.get(&HeaderName::from_static(name));
            assert_eq!(get("if-match"), Header::Text("*"));
            assert_eq!(get("prefer"), Header::Text("a"));
            assert_eq!(headers.all(&HeaderName::from_static("prefer")).collect::<Vec<_>>(), [b"a", b"b"]);
            assert_eq!(get("empty"), Header::Text(""));
            assert_eq!(get("x"), Header::Unreadable);
            assert_eq!(get("y"), Header::Absent);
        }
    }
}
