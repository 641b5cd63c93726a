//! Shared Key and Shared Key Lite against the real binary: what is accepted, what is refused, what is logged.
//! Refusals that fit into text are in `conformance/wire/{shared_key,dates,accounts}.http`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::time::{Duration, SystemTime};

use crate::support::{ACCOUNT, Answer, Client, KEY, Partita};
use wire::signing::AccountKey;
use wire::signing::shared_key::{Scheme, SignedRequest};

const FIRST_KEY: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
const SECOND_KEY: &str = "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudCwgYXMgZ29vZCBhcyB0aGUgZmlyc3Q=";
const FOREIGN_KEY: &str = "YSBrZXkgdGhhdCBiZWxvbmdzIHRvIG5vYm9keQ==";
const SCHEMES: [Scheme; 2] = [Scheme::SharedKey, Scheme::SharedKeyLite];

/// A request whose signature may differ from it in any way.
#[derive(Clone)]
struct Signed<'a> {
    scheme: Scheme,
    /// The scheme's name in the header; if empty, the usual one.
    spelled: &'a str,
    key: &'a str,
    account: &'a str,
    method: &'a str,
    /// Path and query as sent.
    target: &'a str,
    /// The path to sign instead of the target's path.
    signed_path: Option<&'a str>,
    content_type: &'a str,
    content_md5: &'a str,
    /// Seconds from now.
    age: i64,
    date_header: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a str,
}

const GET: Signed<'static> = Signed {
    scheme: Scheme::SharedKey,
    spelled: "",
    key: KEY,
    account: ACCOUNT,
    method: "GET",
    target: "/devstoreaccount1/Tables",
    signed_path: None,
    content_type: "",
    content_md5: "",
    age: 0,
    date_header: "x-ms-date",
    headers: &[],
    body: "",
};

impl Signed<'_> {
    fn send(&self, client: &mut Client) -> Answer {
        let moved = Duration::from_secs(self.age.unsigned_abs());
        let time = if self.age < 0 { SystemTime::now() - moved } else { SystemTime::now() + moved };
        let date = httpdate::fmt_http_date(time);
        let (path, query) = self.target.split_once('?').unwrap_or((self.target, ""));
        let request = SignedRequest {
            method: self.method,
            content_md5: self.content_md5,
            content_type: self.content_type,
            date: &date,
            account: self.account,
            path: self.signed_path.unwrap_or(path),
            comp: query.split('&').find_map(|pair| pair.strip_prefix("comp=")),
        };
        let signature = AccountKey::parse(self.key).unwrap().sign(&request.string_to_sign(self.scheme));
        let scheme = match (self.spelled, self.scheme) {
            ("", Scheme::SharedKey) => "SharedKey",
            ("", Scheme::SharedKeyLite) => "SharedKeyLite",
            (spelled, _) => spelled,
        };
        let authorization = format!("{scheme} {}:{signature}", self.account);
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            (self.date_header, date.as_str()),
            ("x-ms-version", "2019-02-02"),
            ("Accept", "application/json;odata=nometadata"),
        ];
        for (name, value) in [("Content-Type", self.content_type), ("Content-MD5", self.content_md5)] {
            headers.extend(Some((name, value)).filter(|(_, value)| !value.is_empty()));
        }
        headers.extend_from_slice(self.headers);
        client.send_raw(self.method, self.target, &headers, self.body.as_bytes()).unwrap()
    }

    /// Sends it with each scheme and expects this status.
    fn check(&self, client: &mut Client, expected: u16) {
        for scheme in SCHEMES {
            let answer = Signed { scheme, ..self.clone() }.send(client);
            assert_eq!(answer.status, expected, "{scheme:?} {} {}", self.target, answer.text());
            if expected == 403 {
                assert_eq!(answer.code(), "AuthenticationFailed");
            }
        }
    }
}

#[test]
fn both_keys_of_the_account_are_accepted_and_no_other() {
    let account = format!("acct1:{FIRST_KEY}:{SECOND_KEY}");
    let server = Partita::start(&["--in-memory", "--account", &account]);
    let mut client = Client::new(server.address, "acct1", FIRST_KEY);
    let request = Signed { account: "acct1", target: "/acct1/Tables", ..GET };
    for (key, expected) in [(FIRST_KEY, 200), (SECOND_KEY, 200), (FOREIGN_KEY, 403), (KEY, 403)] {
        Signed { key, ..request.clone() }.check(&mut client, expected);
    }
    // With configured accounts, the development account does not exist.
    Signed { key: KEY, ..GET }.check(&mut client, 404);
}

#[test]
fn accounts_do_not_see_each_other() {
    let server = Partita::start(&[
        "--in-memory",
        "--account",
        &format!("acct1:{FIRST_KEY}"),
        "--account",
        &format!("acct2:{SECOND_KEY}"),
    ]);
    let mut first = Client::new(server.address, "acct1", FIRST_KEY);
    let mut second = Client::new(server.address, "acct2", SECOND_KEY);
    let json = [("Content-Type", "application/json"), ("Accept", "application/json;odata=nometadata")];
    assert_eq!(first.send("POST", "/Tables", &json, br#"{"TableName":"Books"}"#).status, 201);
    assert_eq!(second.send("GET", "/Tables", &json, b"").text(), r#"{"value":[]}"#);
    assert_eq!(second.send("GET", "/Books()", &json, b"").code(), "TableNotFound");
    // One account's key and name at the other's address, in all combinations.
    for (account, key) in [("acct1", FIRST_KEY), ("acct1", SECOND_KEY), ("acct2", FIRST_KEY)] {
        Signed { account, key, target: "/acct2/Tables", ..GET }.check(&mut second, 403);
    }
    Signed { account: "acct2", key: SECOND_KEY, target: "/acct2/Tables", ..GET }.check(&mut second, 200);
}

#[test]
fn dates_may_be_fifteen_minutes_off_and_no_more() {
    let server = Partita::in_memory();
    let mut client = server.client();
    for (age, expected) in [(0, 200), (-14 * 60, 200), (14 * 60, 200), (-16 * 60, 403), (16 * 60, 403)] {
        for date_header in ["x-ms-date", "Date"] {
            Signed { age, date_header, ..GET }.check(&mut client, expected);
        }
    }
}

#[test]
fn x_ms_date_wins_over_date() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let old = [("Date", "Fri, 15 Nov 2024 12:00:00 GMT")];
    Signed { headers: &old, ..GET }.check(&mut client, 200);
    let nonsense = [("Date", "yesterday")];
    Signed { headers: &nonsense, ..GET }.check(&mut client, 200);
    // Signed over Date while another x-ms-date is there.
    let old = [("x-ms-date", "Fri, 15 Nov 2024 12:00:00 GMT")];
    Signed { date_header: "Date", headers: &old, ..GET }.check(&mut client, 403);
}

#[test]
fn without_the_clock_check_the_signatures_in_the_specification_are_accepted() {
    let server = Partita::start(&["--in-memory", "--skip-clock-check"]);
    let mut client = server.client();
    let json = [("Content-Type", "application/json")];
    assert_eq!(client.send("POST", "/Tables", &json, br#"{"TableName":"mytable"}"#).status, 201);
    let batch = "multipart/mixed; boundary=batch_a1e9d677-b28b-435e-a89e-87e6a768a431";
    // Method, target, content type, both signatures and what comes of it: access-and-service 1.8, K1 to K4, K7.
    for (method, target, content_type, shared_key, lite, expected) in [
        (
            "GET",
            "/devstoreaccount1/Tables",
            "",
            "D37nUoTuIdZKzDa4CuSALxDCBY/Z/EXSbx4AhvREOio=",
            "9I7q41/TX7+ofrbqvFEw1vBCpu/Q7WyEpM49qDS+uUI=",
            200,
        ),
        (
            "POST",
            "/devstoreaccount1/Tables",
            "application/json;odata=nometadata",
            "jLyrM4UzwhyNxNvk4pllTRPdC3OvYP61hL1/SbBU9JQ=",
            "9I7q41/TX7+ofrbqvFEw1vBCpu/Q7WyEpM49qDS+uUI=",
            400,
        ),
        (
            "GET",
            "/devstoreaccount1/mytable()?$filter=PartitionKey%20eq%20%27a%27&$top=5",
            "",
            "dMqQwlWVcNuedhxLlvRcBrgAhXrODhsRcApEOUxOOHA=",
            "qqoYOXfUf/DkN6x5zVoAcb/P3VZYPTNY/eQx3lsfJtg=",
            200,
        ),
        (
            "PUT",
            "/devstoreaccount1/mytable(PartitionKey='a%20b',RowKey='%C3%A9~1')",
            "application/json",
            "byF7JpUqmpCEDvjBNgm/Dvv6gfLa40jzlsBCMwfrzK8=",
            "psr31aS4t1Mozu3h6qtLnbhFRXDaGWInMqNM3Cyc/NI=",
            400,
        ),
        (
            "POST",
            "/devstoreaccount1/$batch",
            batch,
            "gw6Uz5DPwXZiMArZWG6yRgWvoxav5Ro3K+TSrHD1wLY=",
            "ouEqsrbDwOAAcyoTgP6vfpwrE5f1jXWQwwJMMUkGTEk=",
            400,
        ),
    ] {
        for authorization in
            [format!("SharedKey {ACCOUNT}:{shared_key}"), format!("SharedKeyLite {ACCOUNT}:{lite}")]
        {
            let mut headers = vec![
                ("Authorization", authorization.as_str()),
                ("x-ms-date", "Fri, 15 Nov 2024 12:00:00 GMT"),
                ("x-ms-version", "2019-02-02"),
            ];
            headers.extend(Some(("Content-Type", content_type)).filter(|_| !content_type.is_empty()));
            let answer = client.send_raw(method, target, &headers, b"").unwrap();
            assert_eq!(answer.status, expected, "{method} {target} {authorization} {}", answer.text());
        }
    }
    // Its wrong ones: an empty date line as Blob has it, the account once instead of twice.
    for wrong in
        ["BalfFkTqyWz+hUb0YHOFCcHD6VgWVL/Nv7bVfZ7jCGI=", "gu74Zduzo3PK+XehOKMFDDgCEQAOFZEIFgy6T3FhXOQ="]
    {
        let authorization = format!("SharedKey {ACCOUNT}:{wrong}");
        let headers =
            [("Authorization", authorization.as_str()), ("x-ms-date", "Fri, 15 Nov 2024 12:00:00 GMT")];
        assert_eq!(client.send_raw("GET", "/devstoreaccount1/Tables", &headers, b"").unwrap().status, 403);
    }
}

#[test]
fn only_the_signed_spelling_of_a_path_is_accepted() {
    let server = Partita::in_memory();
    let mut client = server.client();
    for (sent, signed, expected) in [
        ("/devstoreaccount1/Tables(%27abc%27)", "/devstoreaccount1/Tables(%27abc%27)", 404),
        ("/devstoreaccount1/Tables(%27abc%27)", "/devstoreaccount1/Tables('abc')", 403),
        ("/devstoreaccount1/Tables('%7Eabc')", "/devstoreaccount1/Tables('~abc')", 403),
        (
            "/devstoreaccount1/abc(PartitionKey='%c3%a9',RowKey='')",
            "/devstoreaccount1/abc(PartitionKey='%C3%A9',RowKey='')",
            403,
        ),
        ("/devstoreaccount1/Tables", "/devstoreaccount1/tables", 403),
        ("/devstoreaccount1//Tables", "/devstoreaccount1/Tables", 403),
        ("/devstoreaccount1/./Tables", "/devstoreaccount1/Tables", 403),
    ] {
        Signed { target: sent, signed_path: Some(signed), ..GET }.check(&mut client, expected);
    }
}

#[test]
fn of_the_query_only_comp_is_signed() {
    let server = Partita::in_memory();
    let mut client = server.client();
    Signed { target: "/devstoreaccount1/Tables?$top=5&timeout=9&x=y", ..GET }.check(&mut client, 200);
    let unsigned_comp =
        Signed { target: "/devstoreaccount1/abc?restype=x&COMP=acl", ..GET }.send(&mut client);
    assert_eq!(unsigned_comp.status, 403, "{}", unsigned_comp.text());
    let signed_comp = Signed { target: "/devstoreaccount1/abc?restype=x&comp=acl", ..GET }.send(&mut client);
    assert_ne!(signed_comp.status, 403);
}

#[test]
fn shared_key_signs_method_type_and_digest() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let post = Signed {
        method: "POST",
        content_type: "application/json; charset=utf-8",
        content_md5: "XrY7u+Ae7tCTyyK7j1rNww==",
        body: r#"{"TableName":"abc"}"#,
        ..GET
    };
    assert_eq!(post.send(&mut client).status, 201);
    // Headers beyond the signed ones: Shared Key refuses another type or digest, Shared Key Lite does not look.
    for name in ["Content-Type", "Content-MD5"] {
        let added = [(name, "application/json")];
        let changed = Signed { method: "POST", headers: &added, body: r#"{"TableName":"def"}"#, ..GET };
        assert_eq!(changed.send(&mut client).status, 403, "{name}");
    }
    // An empty Content-Type is signed like a missing one.
    assert_eq!(Signed { headers: &[("Content-Type", "")], ..GET }.send(&mut client).status, 200);
    // A tunnelled request is signed as the POST it is.
    let tunnelled = Signed {
        method: "POST",
        target: "/devstoreaccount1/abc(PartitionKey='p',RowKey='r')",
        content_type: "application/json",
        headers: &[("X-HTTP-Method", "MERGE")],
        body: "{}",
        ..GET
    };
    tunnelled.check(&mut client, 204);
}

#[test]
fn the_name_of_the_scheme_is_case_insensitive() {
    let server = Partita::in_memory();
    let mut client = server.client();
    assert_eq!(Signed { spelled: "sharedkey", ..GET }.send(&mut client).status, 200);
    let lite = Signed { scheme: Scheme::SharedKeyLite, spelled: "SHAREDKEYLITE", ..GET };
    assert_eq!(lite.send(&mut client).status, 200);
    // A signature of the other scheme.
    assert_eq!(Signed { spelled: "SharedKeyLite", ..GET }.send(&mut client).status, 403);
}

#[test]
fn the_secondary_is_signed_with_its_suffix_or_without() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let secondary = Signed { target: "/devstoreaccount1-secondary/Tables", ..GET };
    secondary.check(&mut client, 200);
    Signed { signed_path: Some("/devstoreaccount1/Tables"), ..secondary.clone() }.check(&mut client, 200);
    Signed { account: "devstoreaccount1-secondary", ..secondary }.check(&mut client, 403);
    // The suffix in the signature of a request to the primary is wrong.
    Signed { signed_path: Some("/devstoreaccount1-secondary/Tables"), ..GET }.check(&mut client, 403);
}

#[test]
fn host_style_signs_the_account_once() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let host = [("Host", "devstoreaccount1.table.localhost")];
    Signed { target: "/Tables", headers: &host, ..GET }.check(&mut client, 200);
    let doubled =
        Signed { target: "/Tables", signed_path: Some("/devstoreaccount1/Tables"), headers: &host, ..GET };
    doubled.check(&mut client, 403);
    // An absolute request line signs only its path.
    let absolute = Signed {
        target: "http://devstoreaccount1.table.localhost/Tables",
        signed_path: Some("/Tables"),
        headers: &host,
        ..GET
    };
    absolute.check(&mut client, 200);
}

#[test]
fn a_wrong_signature_is_refused_before_the_table_is_looked_up() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let json = [("Content-Type", "application/json")];
    assert_eq!(client.send("POST", "/Tables", &json, br#"{"TableName":"Books"}"#).status, 201);
    for target in ["/devstoreaccount1/Books()", "/devstoreaccount1/Nowhere()"] {
        Signed { key: FOREIGN_KEY, target, ..GET }.check(&mut client, 403);
    }
    let large = "x".repeat(5 * 1024 * 1024);
    Signed { key: FOREIGN_KEY, method: "POST", body: &large, ..GET }.check(&mut client, 403);
}

#[test]
fn the_log_has_the_string_to_sign_and_never_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let account = format!("acct1:{FIRST_KEY}:{SECOND_KEY}");
    let server = Partita::logging_to(&log, "trace", &["--account", &account]);
    let mut client = Client::new(server.address, "acct1", FIRST_KEY);
    let request = Signed { account: "acct1", target: "/acct1/Tables", key: FIRST_KEY, ..GET };
    request.check(&mut client, 200);
    Signed { key: FOREIGN_KEY, ..request.clone() }.check(&mut client, 403);
    Signed { age: -3600, ..request.clone() }.check(&mut client, 403);
    assert_eq!(
        client.send_raw("GET", "/acct1/Tables", &[("x-ms-version", "2019-02-02")], b"").unwrap().status,
        403
    );
    let good = AccountKey::parse(FIRST_KEY).unwrap();
    server.stop();

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("/acct1/acct1/Tables"), "the string to sign is not told:\n{text}");
    assert!(text.contains("3600 s behind"), "the age is not told:\n{text}");
    assert!(text.contains("no Authorization header"), "what was missing is not told:\n{text}");
    assert!(!text.contains("panicked"));
    for key in [FIRST_KEY, SECOND_KEY] {
        assert!(!text.contains(key) && !text.contains(&key[..20]), "a key is in the log:\n{text}");
    }
    // The log must not contain the correct signature either.
    for line in text.lines().filter(|line| line.contains("is not that of")) {
        let string = line.split('"').nth(1).unwrap_or_default().replace("\\n", "\n");
        assert!(!text.contains(&good.sign(&string)), "{line}");
    }
}
