//! Answers of the Blob service at the console's own address. What somebody has stored comes as bytes that nothing runs: a stored
//! page, script or style must not become one of the console's.

use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderName,
};
use http::{HeaderMap, HeaderValue};

/// Headers that whoever wrote the blob has chosen, and the names that the console reads them by.
const CHOSEN: [(HeaderName, HeaderName); 5] = [
    (CONTENT_TYPE, HeaderName::from_static("x-partita-content-type")),
    (CONTENT_ENCODING, HeaderName::from_static("x-partita-content-encoding")),
    (CONTENT_LANGUAGE, HeaderName::from_static("x-partita-content-language")),
    (CONTENT_DISPOSITION, HeaderName::from_static("x-partita-content-disposition")),
    (CACHE_CONTROL, HeaderName::from_static("x-partita-cache-control")),
];

/// Of every answer of the service, so that nobody has to tell content from documents. With `nosniff`, which all answers have,
/// a browser neither shows nor runs it; with no encoding, it saves the bytes that are stored.
pub(crate) fn disarm(headers: &mut HeaderMap) {
    for (name, shown) in CHOSEN {
        if let Some(value) = headers.remove(name) {
            headers.insert(shown, value);
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_of_a_blob_has_chosen_is_shown_and_not_obeyed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/html"),
            ("content-encoding", "gzip"),
            ("content-language", "en"),
            ("content-disposition", "inline; filename=a.html"),
            ("cache-control", "public, max-age=99999"),
            ("etag", "\"1\""),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        disarm(&mut headers);
        let mut all: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        all.sort_unstable();
        assert_eq!(
            all,
            [
                "content-disposition: attachment",
                "content-type: application/octet-stream",
                "etag: \"1\"",
                "x-partita-cache-control: public, max-age=99999",
                "x-partita-content-disposition: inline; filename=a.html",
                "x-partita-content-encoding: gzip",
                "x-partita-content-language: en",
                "x-partita-content-type: text/html",
            ]
        );
    }
}
