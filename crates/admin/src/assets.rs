//! The console's files.

use bytes::Bytes;
use console::Asset;
use front::Body;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::refusal::Refusal;
use crate::reply::{self, Reply};

pub(crate) const ROOT: &str = "/console/";
const INDEX: &str = "index.html";
/// The console runs its own files only, and asks only this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
     require-trusted-types-for 'script'",
);

/// The file at this path after `/console/`. A path that names no file is a page of the console.
pub(crate) fn answer(assets: &'static [Asset], path: &str, headers: &HeaderMap) -> Result<Reply, Refusal> {
    let is_page = !path.rsplit('/').next().unwrap_or_default().contains('.');
    let path = if is_page { INDEX } else { path };
    let asset = choose(assets, path, headers).ok_or(Refusal::NotFound)?;
    let mut reply = if is_known(headers, asset.etag) {
        reply::empty(StatusCode::NOT_MODIFIED)
    } else {
        let mut reply = Response::new(Body::sized(Bytes::from_static(asset.bytes)));
        let encoding = asset.encoding.map(|encoding| (CONTENT_ENCODING, encoding));
        for (name, value) in [(CONTENT_TYPE, asset.content_type)].into_iter().chain(encoding) {
            insert(reply.headers_mut(), name, value);
        }
        reply
    };
    insert(reply.headers_mut(), ETAG, asset.etag);
    insert(reply.headers_mut(), VARY, "accept-encoding");
    insert(reply.headers_mut(), CACHE_CONTROL, "no-cache");
    reply.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    Ok(reply)
}

/// The smallest that the client takes. If it takes none, the smallest of all: browsers take every one that is stored.
fn choose(assets: &'static [Asset], path: &str, headers: &HeaderMap) -> Option<&'static Asset> {
    let accepts = |asset: &&Asset| asset.encoding.is_none_or(|encoding| accepts(headers, encoding));
    let stored = || assets.iter().filter(|asset| asset.path == path);
    let smallest =
        |found: &mut dyn Iterator<Item = &'static Asset>| found.min_by_key(|asset| asset.bytes.len());
    smallest(&mut stored().filter(accepts)).or_else(|| smallest(&mut stored()))
}

fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let sent = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|line| line.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        is_named && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|line| line.split(',')).any(|known| known.trim().trim_start_matches("W/") == etag)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    static FILES: [Asset; 4] = [
        Asset {
            path: "index.html",
            content_type: "text/html",
            encoding: None,
            etag: "\"1\"",
            bytes: b"<!doctype html>",
        },
        Asset {
            path: "app.js",
            content_type: "text/javascript",
            encoding: Some("br"),
            etag: "\"2\"",
            bytes: b"b",
        },
        Asset {
            path: "app.js",
            content_type: "text/javascript",
            encoding: Some("gzip"),
            etag: "\"3\"",
            bytes: b"gg",
        },
        Asset { path: "plain.css", content_type: "text/css", encoding: None, etag: "\"4\"", bytes: b"css" },
    ];

    fn get(path: &str, headers: &[(&str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        match answer(&FILES, path, &map) {
            Ok(reply) => {
                let of = |name| {
                    reply.headers().get(name).map_or("-", |value: &HeaderValue| value.to_str().unwrap())
                };
                assert!(of(CONTENT_SECURITY_POLICY).contains("script-src 'self';"));
                format!("{} {} {}", reply.status().as_u16(), of(ETAG), of(CONTENT_ENCODING))
            }
            Err(refusal) => refusal.code().to_owned(),
        }
    }

    #[test]
    fn files_are_found_pages_are_the_index_and_nothing_else_is_there() {
        assert_eq!(get("", &[]), "200 \"1\" -");
        assert_eq!(get("index.html", &[]), "200 \"1\" -");
        assert_eq!(get("tables/Books", &[]), "200 \"1\" -");
        assert_eq!(get("plain.css", &[]), "200 \"4\" -");
        assert_eq!(get("missing.js", &[]), "NotFound");
        assert_eq!(get("../Cargo.toml", &[]), "NotFound");
    }

    #[test]
    fn the_encoding_is_one_that_the_client_takes() {
        let accept = |value| get("app.js", &[("accept-encoding", value)]);
        assert_eq!(accept("gzip, deflate, br"), "200 \"2\" br");
        assert_eq!(accept("gzip, deflate"), "200 \"3\" gzip");
        assert_eq!(accept("br;q=0, gzip;q=0.5"), "200 \"3\" gzip");
        assert_eq!(get("app.js", &[]), "200 \"2\" br", "none is taken");
    }

    #[test]
    fn a_file_that_the_client_has_is_not_sent_again() {
        assert_eq!(get("", &[("if-none-match", "\"1\"")]), "304 \"1\" -");
        assert_eq!(get("", &[("if-none-match", "\"9\", W/\"1\"")]), "304 \"1\" -");
        assert_eq!(get("", &[("if-none-match", "\"9\"")]), "200 \"1\" -");
    }
}
