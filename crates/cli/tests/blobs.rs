//! The Blob service of the real binary: SAS letters × operations, public access, names of metadata, sources of copies, batches,
//! request logs, and what survives a restart. Roles of bearer tokens are in `bearer.rs`, hostile input in `blob_limits.rs`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use protocol::signing::AccountKey;
use protocol::signing::sas::{AccountSas, BlobSas, Overrides, Sas, SignedResource, Terms};

use crate::support::request_logs::request_logs;
use crate::support::{ACCOUNT, Answer, Client, KEY, Partita, binary};

pub const VERSION: (&str, &str) = ("x-ms-version", "2021-08-06");
pub const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

pub fn server(arguments: &[&str]) -> (Partita, Client) {
    let server = Partita::start(&[&["--in-memory"], arguments].concat());
    let mut client = server.blob_client();
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    assert_eq!(client.send("PUT", "/box/b", &[VERSION, BLOCK], b"content").status, 201);
    (server, client)
}

pub fn terms(permissions: &str) -> Terms {
    Terms {
        version: "2021-08-06".to_owned(),
        permissions: permissions.to_owned(),
        expiry: "2099-01-01T00:00:00Z".to_owned(),
        ..Terms::default()
    }
}

pub fn token(permissions: &str, resource: SignedResource) -> String {
    let sas = Sas::Blob(BlobSas {
        terms: terms(permissions),
        container: "box".to_owned(),
        resource,
        identifier: String::new(),
        encryption_scope: String::new(),
        overrides: Overrides::default(),
        delegation: None,
    });
    sas.to_query(&sas.sign(ACCOUNT, &AccountKey::parse(KEY).unwrap()))
}

fn account_token(permissions: &str, resource_types: &str) -> String {
    let sas = Sas::Account(AccountSas {
        terms: terms(permissions),
        services: "b".to_owned(),
        resource_types: resource_types.to_owned(),
        ..AccountSas::default()
    });
    sas.to_query(&sas.sign(ACCOUNT, &AccountKey::parse(KEY).unwrap()))
}

pub fn with_token(
    client: &mut Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    token: &str,
) -> Answer {
    let separator = if path.contains('?') { '&' } else { '?' };
    let target = format!("/{ACCOUNT}{path}{separator}{token}");
    client.send_raw(method, &target, &[&[VERSION], headers].concat(), b"").unwrap()
}

/// Method, path, headers, letters.
type Operation = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// Operations, and the letters of a container's token of which one is enough.
const OPERATIONS: [Operation; 15] = [
    ("GET", "/box/b", &[], "r"),
    ("HEAD", "/box/b", &[], "r"),
    ("GET", "/box/b?comp=metadata", &[], "r"),
    ("GET", "/box/b?comp=blocklist", &[], "r"),
    ("PUT", "/box/new", &[BLOCK], "cw"),
    ("PUT", "/box/b?comp=metadata", &[], "w"),
    ("PUT", "/box/b?comp=properties", &[], "w"),
    ("PUT", "/box/b?comp=snapshot", &[], "cw"),
    ("PUT", "/box/b?comp=appendblock", &[], "aw"),
    ("PUT", "/box/b?comp=tier", &[("x-ms-access-tier", "Cool")], "w"),
    ("PUT", "/box/b?comp=lease", &[("x-ms-lease-action", "break")], "wd"),
    ("GET", "/box/b?comp=tags", &[], "t"),
    ("GET", "/box?restype=container&comp=list", &[], "l"),
    ("GET", "/box?restype=container&comp=blobs&where=a%3D%27b%27", &[], "f"),
    ("DELETE", "/box/gone", &[], "d"),
];

#[test]
fn every_operation_needs_one_of_its_letters() {
    let (_server, mut client) = server(&[]);
    for (method, path, headers, letters) in OPERATIONS {
        for letter in "racwdxyltf".chars() {
            let token = token(&letter.to_string(), SignedResource::Container);
            let answer = with_token(&mut client, method, path, headers, &token);
            let is_allowed = letters.contains(letter);
            assert_eq!(answer.status != 403, is_allowed, "{method} {path} with {letter}: {}", answer.text());
        }
    }
    // A container is never its own token's to change.
    let all = token("racwdxyltf", SignedResource::Container);
    for (method, path) in [
        ("PUT", "?restype=container"),
        ("DELETE", "?restype=container"),
        ("GET", "?restype=container&comp=acl"),
    ] {
        let answer = with_token(&mut client, method, &format!("/box{path}"), &[], &all);
        assert_eq!((answer.status, answer.code().as_str()), (403, "AuthorizationFailure"), "{method} {path}");
    }
}

#[test]
fn a_token_is_for_its_own_resource() {
    let (_server, mut client) = server(&[]);
    let blob = token("r", SignedResource::Blob("b".to_owned()));
    assert_eq!(with_token(&mut client, "GET", "/box/b", &[], &blob).text(), "content");
    let check = |client: &mut Client, path: &str, token: &str, expected: &str| {
        let answer = with_token(client, "GET", path, &[], token);
        assert_eq!((answer.status, answer.code().as_str()), (403, expected), "{path}");
    };
    check(&mut client, "/box/other", &blob, "AuthenticationFailed");
    check(&mut client, "/box?restype=container&comp=list", &blob, "AuthenticationFailed");
    check(&mut client, "/box/b?snapshot=2022-07-13T23:46:14.4048519Z", &blob, "AuthorizationFailure");
    check(&mut client, "/box/b?SNAPSHOT=2022-07-13T23:46:14.4048519Z", &blob, "AuthorizationFailure");
    let directory = token("r", SignedResource::Directory { path: "a".to_owned(), depth: "1".to_owned() });
    check(&mut client, "/box/a/b", &directory, "AuthenticationFailed");
    check(&mut client, "/?comp=list", &token("rl", SignedResource::Container), "AuthenticationFailed");
    check(&mut client, "/?comp=list", &account_token("l", "co"), "AuthorizationResourceTypeMismatch");
    check(&mut client, "/box/b", &account_token("w", "o"), "AuthorizationPermissionMismatch");
    assert_eq!(with_token(&mut client, "GET", "/?comp=list", &[], &account_token("l", "s")).status, 200);
}

#[test]
fn a_snapshots_token_is_for_that_snapshot_however_the_option_is_spelled() {
    let (server, mut client) = server(&[]);
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[VERSION], b"");
    let time = taken.header("x-ms-snapshot").unwrap().to_owned();
    let own = token("rd", SignedResource::Snapshot { blob: "b".to_owned(), time: time.clone() });
    let time = time.replace(':', "%3A");
    let other = "2020-01-01T00%3A00%3A00.0000000Z";
    let mut ask = |method: &str, options: &str| {
        let answer = with_token(&mut client, method, &format!("/box/b?{options}"), &[], &own);
        if answer.status < 300 { answer.status.to_string() } else { answer.code() }
    };
    assert_eq!(ask("GET", &format!("snapshot={time}")), "200");
    assert_eq!(ask("GET", &format!("Snapshot={time}")), "200");
    for method in ["GET", "DELETE"] {
        for options in [
            format!("Snapshot=&snapshot={time}"),
            format!("snapshot={time}&Snapshot="),
            format!("SNAPSHOT={other}&snapshot={time}"),
            format!("Snapshot={other}"),
            String::new(),
        ] {
            assert_eq!(ask(method, &options), "AuthenticationFailed", "{method} {options}");
        }
    }
    // A copy reads its source by the same rule.
    let mut copied = |options: &str| {
        let source = format!("http://{}/{ACCOUNT}/box/b?{options}&{own}", server.blob_address());
        client.send("PUT", "/box/copy", &[VERSION, ("x-ms-copy-source", &source)], b"").status
    };
    assert_eq!(copied(&format!("snapshot={time}")), 202);
    assert_eq!(copied(&format!("Snapshot=&snapshot={time}")), 401);
    // A token that was signed for no time is for nothing, not for the blob.
    let nothing = token("rd", SignedResource::Snapshot { blob: "b".to_owned(), time: String::new() });
    for method in ["GET", "DELETE"] {
        let answer = with_token(&mut client, method, "/box/b", &[], &nothing);
        assert_eq!((answer.status, answer.code().as_str()), (403, "AuthorizationFailure"), "{method}");
    }
    assert_eq!(client.send("HEAD", "/box/b", &[VERSION], b"").status, 200);
}

#[test]
fn who_may_only_create_never_overwrites() {
    let (_server, mut client) = server(&[]);
    let creates = token("c", SignedResource::Container);
    let check = |client: &mut Client, path: &str, headers: &[(&str, &str)], expected: &str| {
        let answer = with_token(client, "PUT", path, headers, &creates);
        let shown = if answer.status < 300 { answer.status.to_string() } else { answer.code() };
        assert_eq!(shown, expected, "{path}");
    };
    check(&mut client, "/box/new", &[BLOCK], "201");
    check(&mut client, "/box/b", &[BLOCK], "UnauthorizedBlobOverwrite");
    let lease = ("x-ms-lease-id", "00000000-1111-2222-3333-444444444444");
    check(&mut client, "/box/b", &[BLOCK, lease], "UnauthorizedBlobOverwrite");
    assert_eq!(client.send("GET", "/box/b", &[VERSION], b"").text(), "content");
}

#[test]
fn nothing_is_public_unless_the_operator_says_so() {
    let anonymous = |client: &mut Client, path: &str, version: &str| {
        let answer =
            client.send_raw("GET", &format!("/{ACCOUNT}{path}"), &[("x-ms-version", version)], b"").unwrap();
        if answer.status < 300 {
            answer.status.to_string()
        } else {
            format!("{} {}", answer.status, answer.code())
        }
    };
    let list = "/box?restype=container&comp=list";
    for (arguments, of_blob, of_list) in [
        (&[][..], "409 PublicAccessNotPermitted", "401 NoAuthenticationInformation"),
        (&["--blob-public-access", "on"], "200", "401 NoAuthenticationInformation"),
    ] {
        let (_server, mut client) = server(arguments);
        let new = "2021-08-06";
        assert_eq!(anonymous(&mut client, "/box/b", new), "401 NoAuthenticationInformation");
        assert_eq!(anonymous(&mut client, "/box/b", "2019-02-02"), "404 ResourceNotFound");
        let public = [VERSION, ("x-ms-blob-public-access", "blob")];
        assert_eq!(client.send("PUT", "/box?restype=container&comp=acl", &public, b"").status, 200);
        assert_eq!(anonymous(&mut client, "/box/b", new), of_blob);
        assert_eq!(anonymous(&mut client, list, new), of_list);
        assert_eq!(anonymous(&mut client, "/?comp=list", new), "401 NoAuthenticationInformation");
        let public = [VERSION, ("x-ms-blob-public-access", "container")];
        assert_eq!(client.send("PUT", "/box?restype=container&comp=acl", &public, b"").status, 200);
        assert_eq!(anonymous(&mut client, list, new), of_blob);
        let put = client.send_raw("PUT", &format!("/{ACCOUNT}/box/x"), &[VERSION, BLOCK], b"").unwrap();
        assert_eq!((put.status, put.code().as_str()), (401, "NoAuthenticationInformation"));
        // Who sends a bad credential is not anybody.
        let bad = client.send_raw(
            "GET",
            &format!("/{ACCOUNT}/box/b?sig=x&sv=2021-08-06&sr=b&sp=r"),
            &[VERSION],
            b"",
        );
        assert_eq!(bad.unwrap().status, 403);
    }
}

/// The lines of an answer's head.
fn head(server: &Partita, request: &[u8]) -> Vec<String> {
    let mut stream = TcpStream::connect(server.blob_address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn names_of_metadata_keep_their_case() {
    let (server, mut client) = server(&[]);
    let headers = [BLOCK, ("X-Ms-Meta-Hello", "World"), ("x-ms-meta-UP_1", "a"), ("x-ms-meta-low", "b")];
    // Twice on one connection, so that no spelling is another request's.
    for path in ["/box/cased", "/box/cased2"] {
        assert_eq!(client.send("PUT", path, &headers, b"x").status, 201);
        assert_eq!(client.send("PUT", "/box/lower", &[BLOCK, ("x-ms-meta-hello", "c")], b"x").status, 201);
    }
    let lines = head(&server, &client.signed("GET", "/box/cased2", &[], b""));
    for line in ["x-ms-meta-Hello: World", "x-ms-meta-UP_1: a", "x-ms-meta-low: b"] {
        assert!(lines.iter().any(|found| found == line), "{line} in {lines:?}");
    }
    let lines = head(&server, &client.signed("GET", "/box/lower", &[], b""));
    assert!(lines.iter().any(|found| found == "x-ms-meta-hello: c"), "{lines:?}");
    let list = client
        .send("GET", "/box?restype=container&comp=list&include=metadata&prefix=cased2", &[], b"")
        .text();
    let metadata = "<Metadata><Hello>World</Hello><UP_1>a</UP_1><low>b</low></Metadata>";
    assert!(list.contains(metadata), "{list}");
    let twice = [BLOCK, ("x-ms-meta-a", "1"), ("x-ms-meta-A", "2")];
    assert_eq!(client.send("PUT", "/box/twice", &twice, b"x").code(), "InvalidMetadata");
}

#[test]
fn a_health_check_hides_no_blob() {
    let (_server, mut client) = server(&[]);
    assert_eq!(client.send("PUT", "/health?restype=container", &[VERSION], b"").status, 201);
    for name in ["live", "ready"] {
        assert_eq!(client.send("PUT", &format!("/health/{name}"), &[VERSION, BLOCK], b"mine").status, 201);
        let host = ("Host", "devstoreaccount1.blob.localhost");
        let answer = client.send_signed("GET", &format!("/health/{name}"), &[VERSION, host], b"").unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "mine"), "{name}");
        let check = client.send_raw("GET", &format!("/health/{name}"), &[], b"").unwrap();
        assert_eq!((check.status, check.text().as_str()), (200, "ok\n"), "{name}");
    }
}

#[test]
fn a_copy_reads_only_what_its_caller_may_read() {
    let other = "--account";
    let accounts = format!("{ACCOUNT}:{KEY}");
    let (server, mut client) = {
        let server = Partita::start(&[
            "--in-memory",
            other,
            &accounts,
            other,
            "other:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        ]);
        let client = server.blob_client();
        (server, client)
    };
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    assert_eq!(client.send("PUT", "/box/b", &[VERSION, BLOCK], b"content").status, 201);
    let address = server.blob_address();
    let own = format!("http://{address}/{ACCOUNT}/box/b");
    let by_name = format!("http://localhost:{}/{ACCOUNT}/box/b", address.port());
    let foreign = "http://127.0.0.1:9/devstoreaccount1/box/b".to_owned();
    let unsigned = format!("http://{address}/other/box/b");
    let check = |client: &mut Client, source: &str, expected: &str| {
        let answer = client.send("PUT", "/box/copy", &[VERSION, ("x-ms-copy-source", source)], b"");
        let shown = match answer.status {
            202 => client.send("GET", "/box/copy", &[VERSION], b"").text(),
            status => format!("{status} {}", answer.code()),
        };
        assert_eq!(shown, expected, "{source}");
    };
    check(&mut client, &own, "content");
    check(&mut client, &by_name, "content");
    check(&mut client, &foreign, "412 CannotVerifyCopySource");
    check(&mut client, &unsigned, "401 CannotVerifyCopySource");
    check(&mut client, "not a url", "400 InvalidHeaderValue");
    check(&mut client, "file:///etc/passwd", "400 InvalidHeaderValue");
    // Into another account, a token says that the source may be read.
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let mut into = Client::of_service(front::ServiceKind::Blob, address, "other", key);
    assert_eq!(into.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    check(&mut into, &own, "401 CannotVerifyCopySource");
    let signed = format!("{own}?{}", token("r", SignedResource::Blob("b".to_owned())));
    check(&mut into, &signed, "content");
    let writes = format!("{own}?{}", token("w", SignedResource::Blob("b".to_owned())));
    check(&mut into, &writes, "401 CannotVerifyCopySource");
    let none = format!("http://{address}/{ACCOUNT}/box/none");
    let signed = format!("{none}?{}", token("r", SignedResource::Container));
    check(&mut into, &signed, "404 CannotVerifyCopySource");
    check(&mut client, &none, "404 BlobNotFound");
    check(&mut client, &signed, "404 BlobNotFound");
}

pub fn batch(parts: &[String]) -> Vec<u8> {
    let parts = parts.iter().enumerate().map(|(n, part)| {
        format!("--b\r\nContent-Type: application/http\r\nContent-ID: {n}\r\nContent-Transfer-Encoding: binary\r\n\r\n{part}\r\n")
    });
    format!("{}--b--\r\n", parts.collect::<String>()).into_bytes()
}

#[test]
fn parts_of_a_batch_have_credentials_of_their_own() {
    let (_server, mut client) = server(&[]);
    for name in ["one", "two", "three"] {
        assert_eq!(client.send("PUT", &format!("/box/{name}"), &[VERSION, BLOCK], b"x").status, 201);
    }
    let deletes = token("d", SignedResource::Container);
    let reads = token("r", SignedResource::Container);
    let part = |target: &str| format!("DELETE /{ACCOUNT}/{target} HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    let parts = [
        part(&format!("box/one?{deletes}")),
        part(&format!("box/two?{reads}")),
        part("box/three"),
        part(&format!("box/gone?{deletes}")),
    ];
    let kind = ("Content-Type", "multipart/mixed; boundary=b");
    let send = |client: &mut Client, path: &str, parts: &[String]| {
        client.send("POST", path, &[VERSION, kind], &batch(parts))
    };
    let answer = send(&mut client, "/?comp=batch", &parts);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let text = answer.text();
    let statuses: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).map(|line| &line[..3]).collect();
    assert_eq!(statuses, ["202", "403", "401", "404"], "{text}");
    let names = client.send("GET", "/box?restype=container&comp=list", &[VERSION], b"").text();
    assert!(!names.contains("<Name>one</Name>") && names.contains("<Name>two</Name>"), "{names}");

    // Nothing of a batch with too many parts is done.
    let many: Vec<String> = (0..257).map(|_| part(&format!("box/two?{deletes}"))).collect();
    let answer = send(&mut client, "/?comp=batch", &many);
    assert!(
        answer.status == 202 && answer.text().contains("ExceedsMaxBatchRequestCount"),
        "{}",
        answer.text()
    );
    assert_eq!(client.send("HEAD", "/box/two", &[VERSION], b"").status, 200);
    // A batch of a container stays in it.
    let elsewhere =
        send(&mut client, "/other?restype=container&comp=batch", &[part(&format!("box/two?{deletes}"))]);
    assert!(elsewhere.text().contains("HTTP/1.1 400"), "{}", elsewhere.text());
    let mixed = ["GET /x HTTP/1.1\r\n\r\n".to_owned(), part("box/two")];
    assert_eq!(send(&mut client, "/?comp=batch", &mixed).status, 400);
}

/// Parts are done beside each other and share syncs. Those of one blob are done in their order.
#[test]
fn parts_of_a_batch_share_syncs() {
    let data = tempfile::tempdir().unwrap();
    let server = Partita::start(&["--data", data.path().to_str().unwrap()]);
    let mut client = server.blob_client();
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    let deletes = token("d", SignedResource::Container);
    let part =
        |n: usize| format!("DELETE /{ACCOUNT}/box/{n}?{deletes} HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    let mut statuses = |parts: &[usize]| -> Vec<String> {
        let kind = ("Content-Type", "multipart/mixed; boundary=b");
        let parts: Vec<String> = parts.iter().map(|n| part(*n)).collect();
        let text = client.send("POST", "/?comp=batch", &[VERSION, kind], &batch(&parts)).text();
        let lines = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
        lines.map(|line| line[..3].to_owned()).collect()
    };
    const PARTS: usize = 128;
    let mut writer = server.blob_client();
    for n in 0..PARTS + 1 {
        assert_eq!(writer.send("PUT", &format!("/box/{n}"), &[VERSION, BLOCK], b"x").status, 201);
    }
    let groups = || server.metrics()["partita_store_commits_total"];
    let before = groups();
    // The missing one is last but one.
    let mut all: Vec<usize> = (0..PARTS).collect();
    all.insert(PARTS - 1, 999);
    let found = statuses(&all);
    let expected = all.iter().map(|n| if *n == 999 { "404" } else { "202" });
    assert!(found.iter().eq(expected), "{found:?}");
    let used = groups() - before;
    // One after the other, each has its own. How many share one depends on how fast the disk is.
    assert!(used < PARTS as f64, "{used} groups for {PARTS} deletions");
    assert_eq!(statuses(&[PARTS, PARTS]), ["202", "404"]);
}

/// Content is removed in the background, and a stop waits for it.
#[test]
fn what_was_deleted_before_a_stop_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let server = Partita::start(&["--data", data]);
    let mut client = server.blob_client();
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    let deletes = token("d", SignedResource::Container);
    // Few, because a stop waits five seconds at most, and a busy disk needs long for each sync.
    let parts = (0..24).map(|n| {
        assert_eq!(
            client.send("PUT", &format!("/box/{n}"), &[VERSION, BLOCK], &vec![1; 600_000]).status,
            201
        );
        format!("DELETE /{ACCOUNT}/box/{n}?{deletes} HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    });
    let parts: Vec<String> = parts.collect();
    let kind = ("Content-Type", "multipart/mixed; boundary=b");
    assert_eq!(client.send("POST", "/?comp=batch", &[VERSION, kind], &batch(&parts)).status, 202);
    drop(client);
    assert!(server.stop().success());
    let shown = binary().args(["check", "--data", data, "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(json["objects"]["count"], 0, "{}", json["objects"]);
}

#[test]
fn a_part_of_a_batch_is_permitted_what_it_is_permitted_alone() {
    let (_server, mut client) = server(&[]);
    let deletes = token("d", SignedResource::Container);
    let targets = [
        (format!("/{ACCOUNT}/box/b?deletetype=permanent&{deletes}"), "AuthorizationPermissionMismatch"),
        (format!("/{ACCOUNT}-secondary/box/b?{deletes}"), "InsufficientAccountPermissions"),
        (format!("/{ACCOUNT}/box/b?snapshot=%GG&{deletes}"), "InvalidQueryParameterValue"),
    ];
    let kind = ("Content-Type", "multipart/mixed; boundary=b");
    for (target, code) in targets {
        let part = format!("DELETE {target} HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
        let answer = client.send("POST", "/?comp=batch", &[VERSION, kind], &batch(&[part]));
        assert!(answer.text().contains(code), "{target}: {}", answer.text());
        assert_eq!(client.send("HEAD", "/box/b", &[VERSION], b"").status, 200, "{target}");
    }
}

#[test]
fn a_download_that_breaks_off_is_no_success_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.blob_client();
    assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    let content = vec![7; 24 << 20];
    assert_eq!(client.send("PUT", "/box/b", &[VERSION, BLOCK], &content).status, 201);
    let logging = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging></StorageServiceProperties>";
    let set = client.send("PUT", "/?restype=service&comp=properties", &[VERSION], logging.as_bytes());
    assert_eq!(set.status, 202);
    assert_eq!(client.send("GET", "/box/b", &[VERSION], b"").body, content);
    {
        let mut stream = TcpStream::connect(server.blob_address()).unwrap();
        stream.write_all(&client.signed("GET", "/box/b", &[], b"")).unwrap();
        stream.read_exact(&mut [0; 100_000]).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let logs = request_logs(&mut server.blob_client(), "blob/");
        // Those of the logs are logged too.
        let is_asked = |line: &&str| line.contains(";GetBlob;") && line.contains("/box/b");
        let gets: Vec<&str> = logs.lines().filter(is_asked).collect();
        if gets.len() >= 2 {
            let whole: Vec<&&str> =
                gets.iter().filter(|line| line.contains(";GetBlob;Success;200;")).collect();
            let broken: Vec<&&str> =
                gets.iter().filter(|line| line.contains(";GetBlob;NetworkError;200;")).collect();
            assert_eq!((whole.len(), broken.len()), (1, 1), "{gets:?}");
            assert!(
                whole[0].contains(&format!(";{};", 24 << 20))
                    && !broken[0].contains(&format!(";{};", 24 << 20))
            );
            break;
        }
        assert!(Instant::now() < deadline, "{logs}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn blobs_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    {
        let server = Partita::in_directory(directory.path());
        let mut client = server.blob_client();
        assert_eq!(client.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
        assert_eq!(client.send("PUT", "/box/large", &[VERSION, BLOCK], &content).status, 201);
        assert_eq!(client.send("PUT", "/box/small", &[VERSION, BLOCK], b"small").status, 201);
        assert_eq!(
            client.send("PUT", "/box/staged?comp=block&blockid=YQ%3D%3D", &[VERSION], b"block").status,
            201
        );
        server.kill();
    }
    let server = Partita::in_directory(directory.path());
    let mut client = server.blob_client();
    assert_eq!(client.send("GET", "/box/large", &[VERSION], b"").body, content);
    assert_eq!(client.send("GET", "/box/small", &[VERSION], b"").text(), "small");
    let list = b"<BlockList><Uncommitted>YQ==</Uncommitted></BlockList>";
    assert_eq!(client.send("PUT", "/box/staged?comp=blocklist", &[VERSION], list).status, 201);
    assert_eq!(client.send("GET", "/box/staged", &[VERSION], b"").text(), "block");
}
