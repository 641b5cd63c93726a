//! Blobs through the administration: streamed both ways, disarmed, and reached by every legal name.

use serde_json::json;

use super::kit::{JSON_BODY, Visitor};
use crate::support::{ACCOUNT, Client, KEY, Partita};

const VERSION: (&str, &str) = ("x-ms-version", "2021-12-02");
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

fn with_container(arguments: &[&str]) -> (Partita, Visitor) {
    let server = Partita::start(&[&["--in-memory"], arguments].concat());
    let mut visitor = Visitor::developer(&server);
    let made = visitor.send("PUT", "/api/forward/blob/box?restype=container", &[VERSION], b"");
    assert_eq!(made.status, 201, "{}", made.text());
    (server, visitor)
}

#[test]
fn a_stored_page_or_script_is_neither_at_the_consoles_address() {
    let (_server, mut visitor) = with_container(&[]);
    for kind in
        ["text/html", "image/svg+xml", "text/javascript", "text/css", "application/xhtml+xml", "text/xml"]
    {
        let chosen = [
            ("x-ms-blob-content-type", kind),
            ("x-ms-blob-content-disposition", "inline; filename=a.html"),
            ("x-ms-blob-cache-control", "public, max-age=31536000"),
            ("x-ms-blob-content-encoding", "gzip"),
        ];
        let headers = [&[VERSION, BLOCK][..], &chosen].concat();
        let body = b"<script>alert(document.domain)</script>";
        assert_eq!(visitor.send("PUT", "/api/forward/blob/box/page", &headers, body).status, 201);
        // As a link has it, which sends no headers, and as the console asks.
        for (method, path, more) in [
            ("GET", "box/page", vec![]),
            ("GET", "box/page", vec![("x-ms-range", "bytes=0-9")]),
            ("GET", "box/page", vec![("accept", "text/html"), VERSION]),
            ("HEAD", "box/page", vec![]),
            ("GET", "box/none", vec![]),
            ("GET", "box?restype=container&comp=list", vec![]),
        ] {
            let answer = visitor.send(method, &format!("/api/forward/blob/{path}"), &more, b"");
            for (name, expected) in [
                ("content-type", Some("application/octet-stream")),
                ("content-disposition", Some("attachment")),
                ("content-encoding", None),
                ("cache-control", Some("no-store")),
                ("x-content-type-options", Some("nosniff")),
                (
                    "content-security-policy",
                    Some("default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'"),
                ),
            ] {
                assert_eq!(answer.header(name), expected, "{name} of {kind} at {method} {path}");
            }
        }
        let shown = visitor.send("HEAD", "/api/forward/blob/box/page", &[VERSION], b"");
        assert_eq!(shown.header("x-partita-content-type"), Some(kind));
        assert_eq!(shown.header("x-partita-content-encoding"), Some("gzip"));
    }
}

#[test]
fn a_body_larger_than_the_memory_for_requests_goes_through_in_pieces() {
    let (server, mut visitor) = with_container(&["--request-mib", "16"]);
    let content: Vec<u8> = (0..48 * 1024 * 1024_u32).map(|at| (at / 7) as u8).collect();
    let put = visitor.send("PUT", "/api/forward/blob/box/large", &[VERSION, BLOCK], &content);
    assert_eq!(put.status, 201, "{}", put.text());
    let got = visitor.send("GET", "/api/forward/blob/box/large", &[VERSION], b"");
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.body == content, "{} bytes are back", got.body.len());
    let status = visitor.get("/api/status").json();
    assert_eq!(status["memory"]["request_bytes_held"], 0);
    drop(server);
}

#[test]
fn a_name_whose_slashes_are_encoded_is_the_same_name() {
    let (server, mut visitor) = with_container(&[]);
    for (encoded, name) in [
        ("box%2F..", ".."),
        ("box%2F.", "."),
        ("box%2Fa%2F..%2F..%2Fb", "a/../../b"),
        ("box%2F..%2Fother%2Fsecret", "../other/secret"),
        ("box%2F%2F", "/"),
        ("box%2F100%25", "100%"),
        ("box%2F%2541", "%41"),
        ("box%2F%E2%80%AEtxt.exe", "\u{202e}txt.exe"),
        ("box%2F%22%3E%3Cscript%3E", "\"><script>"),
    ] {
        let path = format!("/api/forward/blob/{encoded}");
        let put = visitor.send("PUT", &path, &[VERSION, BLOCK], name.as_bytes());
        assert_eq!(put.status, 201, "{encoded}: {}", put.text());
        assert_eq!(visitor.get(&path).text(), name, "{encoded}");
    }
    let mut client = server.blob_client();
    let list = client.send("GET", "/box?restype=container&comp=list", &[VERSION], b"").text();
    assert_eq!(list.matches("<Blob>").count(), 9, "all of them in this container: {list}");
}

#[test]
fn a_token_for_a_blob_works_whatever_its_name() {
    let (server, mut visitor) = with_container(&[]);
    let long = "ü".repeat(1024);
    for name in ["plain/a b.txt", "..", "a/../b", "100%", "%41", "q?#&=+", "a//b/", "\u{202e}x\"<'>", &long] {
        let asked =
            json!({ "kind": "blob", "resource": "box", "blob": name, "permissions": "rcw", "expiry": "1h" });
        let made = visitor.send("POST", "/api/sas", &[JSON_BODY], asked.to_string().as_bytes());
        assert_eq!(made.status, 200, "{name}: {}", made.text());
        let made = made.json();
        let explained = made["explanation"].to_string();
        assert!(explained.contains("accepted now"), "{name}: {explained}");
        let url = made["url"].as_str().unwrap();
        let target = url.strip_prefix(&format!("http://{}", server.blob_address())).unwrap();
        let mut client = Client::new(server.blob_address(), ACCOUNT, KEY);
        let put = client.send_raw("PUT", target, &[BLOCK], name.as_bytes()).unwrap();
        assert_eq!(put.status, 201, "{name}: {}", put.text());
        assert_eq!(client.send_raw("GET", target, &[], b"").unwrap().text(), name);
        let other = target.replace("/box", "/box2");
        assert_eq!(client.send_raw("GET", &other, &[], b"").unwrap().status, 403, "{name}");
    }
    let asked = json!({ "kind": "container", "resource": "box", "permissions": "l" });
    let made = visitor.send("POST", "/api/sas", &[JSON_BODY], asked.to_string().as_bytes()).json();
    let target = format!("/{ACCOUNT}/box?restype=container&comp=list&{}", made["token"].as_str().unwrap());
    let mut client = Client::new(server.blob_address(), ACCOUNT, KEY);
    assert_eq!(client.send_raw("GET", &target, &[], b"").unwrap().status, 200);
    for asked in [
        json!({ "kind": "blob", "resource": "box", "permissions": "r" }),
        json!({ "kind": "blob", "resource": "A_B", "blob": "x", "permissions": "r" }),
        json!({ "kind": "blob", "resource": "box", "blob": "x", "permissions": "wr" }),
        json!({ "kind": "blob", "resource": "box", "blob": "x".repeat(1025), "permissions": "r" }),
        json!({ "kind": "container", "resource": "box", "permissions": "" }),
    ] {
        let refused = visitor.send("POST", "/api/sas", &[JSON_BODY], asked.to_string().as_bytes());
        assert_eq!(refused.status, 400, "{asked}: {}", refused.text());
    }
}

#[test]
fn names_of_metadata_keep_their_case() {
    let (server, mut visitor) = with_container(&[]);
    let headers = [VERSION, BLOCK, ("x-ms-meta-madeBy", "Ann"), ("x-ms-meta-ISBN", "1")];
    assert_eq!(visitor.send("PUT", "/api/forward/blob/box/a", &headers, b"").status, 201);
    let mut client = server.blob_client();
    let list =
        client.send("GET", "/box?restype=container&comp=list&include=metadata", &[VERSION], b"").text();
    assert!(list.contains("<Metadata><madeBy>Ann</madeBy><ISBN>1</ISBN></Metadata>"), "{list}");
}
