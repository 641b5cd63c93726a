//! Requests of a session to the services.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use super::kit::{JSON, JSON_BODY, TOKEN, Visitor, code, other_owner, owner, two_accounts};
use crate::support::http::read_answer;
use crate::support::{ACCOUNT, Partita, binary};

#[test]
fn a_session_does_with_its_account_what_its_key_may_do() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    visitor.create_table("Books");
    let inserted = visitor.table("POST", "/Books", r#"{"PartitionKey":"a b","RowKey":"é'1","Year":1969}"#);
    assert_eq!(inserted.status, 201, "{}", inserted.text());
    let found = visitor.table("GET", "/Books()?$filter=Year%20lt%201970&$select=Year", "");
    assert_eq!(found.json()["value"], json!([{ "Year": 1969 }]), "{}", found.text());
    let row = "/Books(PartitionKey='a%20b',RowKey='%C3%A9''1')";
    let etag = visitor.table("GET", row, "").header("etag").unwrap().to_owned();
    let target = format!("/api/forward/table{row}");
    let stale = visitor.send(
        "PUT",
        &target,
        &[JSON, JSON_BODY, ("if-match", "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"")],
        b"{}",
    );
    assert_eq!(stale.status, 412, "{}", stale.text());
    let merged = visitor.send(
        "POST",
        &target,
        &[JSON, JSON_BODY, ("x-http-method", "MERGE"), ("if-match", &etag)],
        br#"{"N":1}"#,
    );
    assert_eq!(merged.status, 204, "{}", merged.text());
    assert_eq!(
        server.client().send("GET", row, &[JSON], b"").json()["N"],
        1,
        "the same data as at the service's port"
    );
    assert_eq!(visitor.send("DELETE", &target, &[("if-match", "*")], b"").status, 204);

    let acl = "/api/forward/table/Books?comp=acl";
    let policies = br#"<?xml version="1.0"?><SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"#;
    assert_eq!(visitor.send("PUT", acl, &[("content-type", "application/xml")], policies).status, 204);
    assert!(visitor.get(acl).text().contains("<Id>p</Id>"));

    assert_eq!(visitor.send("PUT", "/api/forward/queue/jobs", &[("x-ms-meta-a", "b")], b"").status, 201);
    let message = b"<QueueMessage><MessageText>a &amp; b</MessageText></QueueMessage>";
    assert_eq!(
        visitor.send("POST", "/api/forward/queue/jobs/messages?visibilitytimeout=0", &[], message).status,
        201
    );
    let peeked = visitor.get("/api/forward/queue/jobs/messages?peekonly=true&numofmessages=5");
    assert!(peeked.text().contains("a &amp; b"), "{}", peeked.text());
    assert_eq!(visitor.get("/api/forward/queue/?comp=list&include=metadata").status, 200);
}

#[test]
fn no_request_reaches_another_account() {
    let server = two_accounts(&[]);
    let mut victim = Visitor::signed_in(&server, &other_owner());
    victim.create_table("Secret");
    assert_eq!(victim.table("POST", "/Secret", r#"{"PartitionKey":"p","RowKey":"r"}"#).status, 201);
    let mut visitor = Visitor::signed_in(&server, &owner());
    visitor.create_table("Own");
    for path in [
        "/../other/Secret()",
        "//other/Secret()",
        "/%2e%2e/other/Secret()",
        "/..%2fother/Secret()",
        "/other/Secret()",
        "-secondary/Tables",
        "/Secret()",
        "@other/Secret()",
        ":10002/other/Secret()",
        "/http://127.0.0.1/other/Secret()",
    ] {
        let answer = visitor.table("GET", path, "");
        assert!(
            answer.status >= 400 && !answer.text().contains("\"p\""),
            "{path}: {} {}",
            answer.status,
            answer.text()
        );
    }
    // Headers that would say who asks, or whom.
    let bearer = format!("Bearer {TOKEN}");
    for header in [
        ("x-forwarded-host", "other.table.localhost"),
        ("x-original-url", "/other/Secret()"),
        ("x-ms-date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("authorization", bearer.as_str()),
    ] {
        let answer = visitor.send("GET", "/api/forward/table/Tables", &[JSON, header], b"");
        assert_eq!(answer.json()["value"], json!([{ "TableName": "Own" }]), "{header:?}");
    }
    let host =
        visitor.send("GET", "/api/forward/table/Tables", &[JSON, ("host", "other.table.localhost")], b"");
    assert_eq!(host.status, 421);
    // A part of a batch may name any address; its account is that of the batch.
    let part = format!(
        "DELETE http://{}/other/Secret(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n",
        server.address
    );
    let batch = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{part}\r\n--c--\r\n--b--\r\n"
    );
    visitor.send(
        "POST",
        "/api/forward/table/$batch",
        &[("content-type", "multipart/mixed; boundary=b")],
        batch.as_bytes(),
    );
    assert_eq!(
        victim.table("GET", "/Secret(PartitionKey='p',RowKey='r')", "").status,
        200,
        "nothing was deleted"
    );
}

#[test]
fn only_the_services_are_reached() {
    let server = Partita::start(&["--in-memory", "--queue-listen", "off", "--blob-listen", "off"]);
    let mut visitor = Visitor::developer(&server);
    for (path, expected) in [
        ("/api/forward/health/live", 404),
        ("/api/forward//health/live", 404),
        ("/api/forward/", 404),
        ("/api/forward", 404),
        ("/api/forward/queue/?comp=list", 404),
        ("/api/forward/blob/?comp=list", 404),
        ("/health/live", 404),
    ] {
        let answer = visitor.get(path);
        assert_eq!(answer.status, expected, "{path}: {}", answer.text());
        assert_ne!(answer.text(), "ok\n", "{path}");
    }
    let inside = visitor.table("GET", "/health/live", "");
    assert!(inside.status >= 400 && inside.text() != "ok\n", "{}", inside.text());
    assert_eq!(code(&visitor.get("/api/forward/queue/?comp=list")), "NotServed");
    assert_eq!(Visitor::of(&server).get("/api/forward/table/Tables").status, 401, "not without a session");
}

#[test]
fn a_token_is_no_more_in_a_session_than_elsewhere() {
    let server = two_accounts(&[]);
    let mut visitor = Visitor::signed_in(&server, &owner());
    visitor.create_table("Books");
    visitor.create_table("Others");
    let made = binary().args(["sas", "table", "--table", "Books", "--permissions", "r"]).output().unwrap();
    let sas = String::from_utf8(made.stdout).unwrap();
    let mut guest =
        Visitor::signed_in(&server, &json!({ "sas": format!("?{}", sas.trim()), "account": ACCOUNT }));
    assert_eq!(guest.table("GET", "/Books()", "").status, 200);
    for (method, path) in [("GET", "/Others()"), ("GET", "/Tables"), ("POST", "/Books"), ("POST", "/Tables")]
    {
        let answer = guest.table(method, path, r#"{"PartitionKey":"p","RowKey":"r","TableName":"T"}"#);
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    }
    // Fields beside the token's own do not change what it grants.
    for more in ["?sp=raud", "?sig=x", "?tn=Others", "?se=2099-01-01"] {
        assert_eq!(guest.table("GET", &format!("/Others(){more}"), "").status, 403, "{more}");
    }
    assert_eq!(code(&guest.get("/api/status")), "NotAdmin");
    assert_eq!(code(&guest.send("POST", "/api/sas", &[JSON_BODY], b"{}")), "NotOwner");
    assert_eq!(guest.get("/api/tables").status, 403);
}

#[test]
fn an_upload_takes_its_share_of_the_memory_for_requests() {
    let server = Partita::start(&["--in-memory", "--request-mib", "16"]);
    let mut visitor = Visitor::developer(&server);
    visitor.create_table("Books");
    const BYTES: usize = 4 * 1024 * 1024;
    let head = format!(
        "POST /api/forward/table/Books HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nx-partita-csrf: {}\r\nContent-Type: application/json\r\nContent-Length: {BYTES}\r\n\r\n",
        server.admin_address(),
        visitor.cookie,
        visitor.csrf
    );
    let mut slow = TcpStream::connect(server.admin_address()).unwrap();
    slow.write_all(head.as_bytes()).unwrap();
    slow.write_all(&vec![b' '; BYTES - 1]).unwrap();
    // Three times the buffer. While the buffer still grows, it may be the upload that finds no memory.
    const HELD: usize = 3 * BYTES - store::FREE_BYTES;
    let held = |visitor: &mut Visitor| {
        visitor.get("/api/status").json()["memory"]["request_bytes_held"].as_u64().unwrap()
    };
    testing::wait_until("the buffer of the upload has its full size", || {
        (held(&mut visitor) == HELD as u64).then_some(())
    });
    let refused = visitor.table("POST", "/Books", &" ".repeat(BYTES));
    assert_eq!(refused.status, 503, "{}", refused.text());
    slow.write_all(b" ").unwrap();
    let answered = read_answer(&mut BufReader::new(&mut slow), false).unwrap();
    assert_eq!(answered.status, 400, "it was read whole, and is no entity");
    drop(slow);
    testing::wait_until("it is given back", || (held(&mut visitor) == 0).then_some(()));
    let too_large = visitor.table("POST", "/Books", &" ".repeat(BYTES + 1));
    assert_eq!(too_large.status, 413, "{}", too_large.text());
}
