//! Whether a page of another site sent a request. Browsers say so in `Sec-Fetch-Site` and in `Origin`; other programs send
//! neither.

use http::header::ORIGIN;
use http::request::Parts;
use http::{HeaderMap, Method};

/// `host`: the request's own, with its port.
pub(crate) fn is_cross_site(head: &Parts, scheme: &str, host: &str) -> bool {
    if may_be_linked_to(head) {
        return false;
    }
    let mut sites = head.headers.get_all("sec-fetch-site").iter();
    if sites.any(|site| site != "same-origin" && site != "none") {
        return true;
    }
    let own = format!("{scheme}://{host}");
    let mut origins = head.headers.get_all(ORIGIN).iter();
    origins.any(|origin| !origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()))
}

/// The console's pages may be opened by a link, like any page.
fn may_be_linked_to(head: &Parts) -> bool {
    let is_page = head.uri.path() == "/" || head.uri.path().starts_with("/console");
    head.method == Method::GET
        && is_page
        && is(&head.headers, "sec-fetch-mode", "navigate")
        && is(&head.headers, "sec-fetch-dest", "document")
}

fn is(headers: &HeaderMap, name: &str, expected: &str) -> bool {
    let mut sent = headers.get_all(name).iter();
    sent.next().is_some_and(|value| value == expected) && sent.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, headers: &[(&str, &str)], expected: bool) {
        let (method, path) = request.split_once(' ').unwrap();
        let mut builder = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let head = builder.body(()).unwrap().into_parts().0;
        assert_eq!(is_cross_site(&head, "http", "127.0.0.1:10004"), expected, "{request} {headers:?}");
    }

    #[test]
    fn pages_of_other_sites_send_nothing_but_links() {
        let own = "http://127.0.0.1:10004";
        check("GET /api/status", &[], false);
        check("GET /api/status", &[("sec-fetch-site", "same-origin")], false);
        check("GET /api/status", &[("sec-fetch-site", "none")], false);
        check("GET /api/status", &[("sec-fetch-site", "cross-site")], true);
        check("GET /api/status", &[("sec-fetch-site", "same-site")], true);
        check(
            "GET /api/status",
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            true,
        );
        check("POST /api/session", &[("origin", own)], false);
        check("POST /api/session", &[("origin", "https://127.0.0.1:10004")], true);
        check("POST /api/session", &[("origin", "http://127.0.0.1:3000")], true);
        check("POST /api/session", &[("origin", "null")], true);
        check("POST /api/session", &[("origin", "http://evil.example")], true);
        check("POST /api/session", &[("origin", own), ("origin", "http://evil.example")], true);
        check(
            "POST /api/session",
            &[("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
            true,
        );
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        check("GET /console/", &link, false);
        check("GET /", &link, false);
        check("GET /api/status", &link, true);
        check("POST /console/", &link, true);
        let frame =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        check("GET /console/", &frame, true);
        check(
            "GET /console/app.js",
            &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
            true,
        );
    }
}
