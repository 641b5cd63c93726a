//! Answers of the Blob service that differ by operation, version or token: who writes an error, who may read a copy's source,
//! what a token with an encryption scope may do, how what was deleted is removed.

use front::ServiceKind;
use protocol::signing::AccountKey;
use protocol::signing::sas::{BlobSas, Overrides, Sas, SignedResource};

use crate::blob_limits::encoded;
use crate::blobs::{BLOCK, VERSION, batch, server, terms, token, with_token};
use crate::support::{ACCOUNT, Answer, Client, KEY, Partita};

const OLD: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>";
const NEW: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error>";

/// The header in which the service names itself.
fn program(answer: &Answer) -> Option<&str> {
    answer.header("server")
}

/// Method, path, headers, and how the error begins.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn errors_come_from_the_writer_of_their_operation() {
    let (_server, mut client) = server(&[]);
    let source = ("x-ms-copy-source", "http://127.0.0.1:9/a/b/c");
    let restored = [("x-ms-deleted-container-name", "other"), ("x-ms-deleted-container-version", "1")];
    let update = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511"), source];
    let cases: [Case<'_>; 12] = [
        ("GET", "/box/none", &[], OLD),
        ("GET", "/box/none?comp=metadata", &[], OLD),
        ("GET", "/box/none?comp=tags", &[], NEW),
        ("GET", "/?comp=blobs&where=nonsense", &[], NEW),
        ("PUT", "/box/b?comp=seal", &[], NEW),
        ("PUT", "/box/none?comp=appendblock", &[source], NEW),
        ("PUT", "/box/none?comp=page", &update, NEW),
        ("PUT", "/box/none?comp=block&blockid=YQ==", &[source], OLD),
        ("PUT", "/none?restype=container&comp=undelete", &restored, NEW),
        ("GET", "/box/none?comp=pagelist", &[], NEW),
        ("PUT", "/box/b?comp=expiry", &[], NEW),
        ("GET", "/box/b?comp=blocklist&snapshot=invalidSnapshot", &[], NEW),
    ];
    for (method, path, headers, expected) in cases {
        let answer = client.send(method, path, &[&[VERSION], headers].concat(), b"");
        assert!(answer.text().starts_with(expected), "{method} {path}: {}", answer.text());
    }
    let earlier = client.send("GET", "/box/none?comp=pagelist", &[("x-ms-version", "2020-08-04")], b"");
    assert!(earlier.text().starts_with(OLD), "{}", earlier.text());
    let restored = client.send(
        "PUT",
        "/none?restype=container&comp=undelete",
        &[&[VERSION], &restored[..]].concat(),
        b"",
    );
    let message = "The value of deleted-container-name header must match the destination container name.\n";
    assert!(restored.text().contains(message), "{}", restored.text());
    let part = format!("DELETE /{ACCOUNT}/box/none HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    let kind = ("Content-Type", "multipart/mixed; boundary=b");
    let answer = client.send("POST", "/?comp=batch", &[VERSION, kind], &batch(&[part]));
    assert!(answer.text().contains(NEW), "{}", answer.text());
}

#[test]
fn a_snapshot_that_is_no_time_is_refused_without_code_and_version() {
    let (_server, mut client) = server(&[]);
    let served = client.send("HEAD", "/box/b", &[VERSION], b"");
    let bare = client.send("HEAD", "/box/b?snapshot=1", &[VERSION, ("x-ms-client-request-id", "mine")], b"");
    assert_eq!((bare.status, program(&bare)), (400, program(&served)));
    assert_eq!((bare.header("x-ms-error-code"), bare.header("x-ms-version")), (None, None));
    assert_eq!(bare.header("x-ms-client-request-id"), Some("mine"));
}

#[test]
fn a_part_of_a_batch_is_answered_with_its_own_id() {
    let (_server, mut client) = server(&[]);
    let deletes = token("d", SignedResource::Container);
    let part = |blob: &str, header: &str| {
        format!("DELETE /{ACCOUNT}/box/{blob}?{deletes} HTTP/1.1\r\nContent-Length: 0\r\n{header}\r\n")
    };
    let parts = [
        part("b", "x-ms-client-request-id: one\r\n"),
        part("none", "X-Ms-Client-Request-Id: two\r\n"),
        part("none", ""),
        part("none", &format!("x-ms-client-request-id: {}\r\n", "x".repeat(1025))),
    ];
    let headers =
        [VERSION, ("Content-Type", "multipart/mixed; boundary=b"), ("x-ms-client-request-id", "outer")];
    let answer = client.send("POST", "/?comp=batch", &headers, &batch(&parts));
    assert_eq!((answer.status, answer.header("x-ms-client-request-id")), (202, Some("outer")));
    let text = answer.text();
    let ids: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("x-ms-client-request-id: ")).collect();
    assert_eq!(ids, ["one", "two"], "{text}");
}

#[test]
fn a_token_for_another_level_is_refused_by_the_blob_server() {
    let (_server, mut client) = server(&[]);
    let served = client.send("GET", "/box/b", &[VERSION], b"");
    let of_container = token("rl", SignedResource::Container);
    for (path, expected) in
        [("/?comp=list", "for the this resource"), ("/?comp=blobs&where=a='1'", "for this resource")]
    {
        let answer = with_token(&mut client, "GET", path, &[], &of_container);
        assert_eq!((answer.status, answer.code().as_str()), (403, "AuthenticationFailed"), "{path}");
        assert!(answer.text().contains(expected), "{}", answer.text());
        assert_eq!(program(&answer), program(&served));
    }
    let asked = b"<KeyInfo><Expiry>2099-01-01T00:00:00Z</Expiry></KeyInfo>";
    let answer = client.send("POST", "/?restype=service&comp=userdelegationkey", &[VERSION], asked);
    assert_eq!((answer.status, program(&answer)), (403, program(&served)), "{}", answer.text());
    // A wrong signature never reaches it.
    let answer = with_token(&mut client, "GET", "/box/b", &[], &of_container.replace("sig=", "sig=AAAA"));
    assert_eq!(answer.status, 403);
    assert_ne!(program(&answer), program(&served));
}

#[test]
fn a_token_with_an_encryption_scope_reads_but_does_not_store() {
    let (_server, mut client) = server(&[]);
    let sas = Sas::Blob(BlobSas {
        terms: terms("rwd"),
        container: "box".to_owned(),
        resource: SignedResource::Container,
        identifier: String::new(),
        encryption_scope: "mine".to_owned(),
        overrides: Overrides::default(),
        delegation: None,
    });
    let token = sas.to_query(&sas.sign(ACCOUNT, &AccountKey::parse(KEY).unwrap()));
    assert_eq!(with_token(&mut client, "GET", "/box/b", &[], &token).status, 200);
    let answer = with_token(&mut client, "PUT", "/box/new", &[BLOCK], &token);
    assert_eq!((answer.status, answer.code().as_str()), (400, "UnsupportedHeader"), "{}", answer.text());
    assert_eq!(client.send("HEAD", "/box/new", &[VERSION], b"").status, 404);
    assert_eq!(with_token(&mut client, "DELETE", "/box/b", &[], &token).status, 202);
}

#[test]
fn a_lease_id_that_is_none_is_refused_by_every_action() {
    let (_server, mut client) = server(&[]);
    let bad = "no guid";
    let infinite = ("x-ms-lease-duration", "-1");
    for action in ["acquire", "renew", "change", "release", "break"] {
        for name in ["x-ms-lease-id", "x-ms-proposed-lease-id"] {
            let headers = [VERSION, infinite, ("x-ms-lease-action", action), (name, bad)];
            let answer = client.send("PUT", "/box/b?comp=lease", &headers, b"");
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, "InvalidHeaderValue"),
                "{action} {name}"
            );
        }
    }
}

/// Copies from `source` by each operation that takes one.
fn copies<'a>(client: &mut Client, source: &'a str, version: (&'a str, &'a str)) -> Vec<String> {
    let source = ("x-ms-copy-source", source);
    let update =
        [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511"), ("x-ms-source-range", "bytes=0-511")];
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("/box/copy", &[]),
        ("/box/sync", &[("x-ms-requires-sync", "true")]),
        ("/box/put", &[BLOCK]),
        ("/box/blocks?comp=block&blockid=YQ==", &[]),
        ("/box/append?comp=appendblock", &[]),
        ("/box/page?comp=page", &update),
    ];
    let copy = |(path, headers): (&str, &[(&str, &str)])| {
        let answer = client.send("PUT", path, &[&[version, source], headers].concat(), b"");
        if answer.status < 300 {
            answer.status.to_string()
        } else {
            format!("{} {}", answer.status, answer.code())
        }
    };
    cases.into_iter().map(copy).collect()
}

#[test]
fn only_copy_blob_reads_a_source_in_the_name_of_its_caller() {
    let (server, mut client) = server(&[]);
    let (append, page) = (("x-ms-blob-type", "AppendBlob"), ("x-ms-blob-type", "PageBlob"));
    let length = ("x-ms-blob-content-length", "512");
    assert_eq!(client.send("PUT", "/box/append", &[VERSION, append], b"").status, 201);
    assert_eq!(client.send("PUT", "/box/page", &[VERSION, page, length], b"").status, 201);
    assert_eq!(client.send("PUT", "/box/pages", &[VERSION, BLOCK], &[7; 512]).status, 201);
    let source = format!("http://{}/{ACCOUNT}/box/pages", server.blob_address());
    let signed = format!("{source}?{}", token("r", SignedResource::Container));
    let refused = "401 CannotVerifyCopySource";
    assert_eq!(copies(&mut client, &source, VERSION), ["202", refused, refused, refused, refused, refused]);
    let earlier = copies(&mut client, &source, ("x-ms-version", "2019-07-07"));
    let missing = "404 CannotVerifyCopySource";
    assert_eq!(earlier, ["202", missing, missing, missing, missing, missing]);
    assert_eq!(copies(&mut client, &signed, VERSION), ["202", "202", "201", "201", "201", "201"]);
}

#[test]
fn a_copy_that_was_compared_answers_with_what_it_was_compared_with() {
    let (server, mut client) = server(&[]);
    let token = token("r", SignedResource::Container);
    let source = format!("http://{}/{ACCOUNT}/box/b?{token}", server.blob_address());
    let md5 = client.send("HEAD", "/box/b", &[VERSION], b"").header("content-md5").unwrap().to_owned();
    let sync = [VERSION, ("x-ms-copy-source", &source), ("x-ms-requires-sync", "true")];
    let plain = client.send("PUT", "/box/sync", &sync, b"");
    let compared =
        client.send("PUT", "/box/sync", &[&sync[..], &[("x-ms-source-content-md5", &md5)]].concat(), b"");
    let sums = |answer: &Answer| {
        (answer.header("x-ms-content-crc64").is_some(), answer.header("content-md5").map(str::to_owned))
    };
    assert_eq!((sums(&plain), sums(&compared)), ((true, None), (false, Some(md5.clone()))));
    // Nobody reads a terabyte to say that it is too much, or for a header that Copy Blob does not have.
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1099511627776")];
    assert_eq!(client.send("PUT", "/box/huge", &[&[VERSION], &page[..]].concat(), b"").status, 201);
    let huge = source.replace("/box/b?", "/box/huge?");
    let copy = [VERSION, ("x-ms-copy-source", &*huge), ("x-ms-source-content-md5", &*md5)];
    let sync = client.send("PUT", "/box/copy", &[&copy[..], &[("x-ms-requires-sync", "true")]].concat(), b"");
    assert_eq!((sync.status, sync.code().as_str()), (413, "RequestBodyTooLarge"), "{}", sync.text());
    assert_eq!(client.send("PUT", "/box/copy", &copy, b"").status, 202);
}

#[test]
fn the_tags_of_a_snapshot_stay_as_they_are() {
    let (_server, mut client) = server(&[]);
    assert_eq!(client.send("PUT", "/box/b", &[VERSION, BLOCK, ("x-ms-tags", "a=1")], b"x").status, 201);
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[VERSION], b"");
    let time = taken.header("x-ms-snapshot").unwrap().replace(':', "%3A");
    let path = format!("/box/b?comp=tags&snapshot={time}");
    let before = client.send("GET", &path, &[VERSION], b"").text();
    assert!(before.contains("<Key>a</Key>"), "{before}");
    let tags = b"<Tags><TagSet><Tag><Key>b</Key><Value>2</Value></Tag></TagSet></Tags>";
    let answer = client.send("PUT", &path, &[VERSION], tags);
    assert_eq!((answer.status, answer.code().as_str()), (400, "InvalidQueryParameterValue"));
    assert!(answer.text().contains("<QueryParameterName>snapshot<"), "{}", answer.text());
    assert_eq!(client.send("GET", &path, &[VERSION], b"").text(), before);
    assert_eq!(client.send("PUT", "/box/b?comp=tags", &[VERSION], tags).status, 204);
}

#[test]
fn an_expression_that_names_a_missing_container_finds_nothing() {
    let (_server, mut client) = server(&[]);
    for name in ["nosuch", "No such name"] {
        let path = format!("/?comp=blobs&where={}", encoded(&format!("@container='{name}' AND a='1'")));
        let answer = client.send("GET", &path, &[VERSION], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("<Blobs/><NextMarker/>"), "{}", answer.text());
    }
    let path = format!("/nosuch?restype=container&comp=blobs&where={}", encoded("a='1'"));
    let answer = client.send("GET", &path, &[VERSION], b"");
    assert_eq!((answer.status, answer.code().as_str()), (404, "ContainerNotFound"));
}

#[test]
fn tags_are_copied_by_those_who_may_set_them() {
    let (server, mut client) = server(&[]);
    assert_eq!(client.send("PUT", "/box/b", &[VERSION, BLOCK, ("x-ms-tags", "a=1")], b"x").status, 201);
    let source =
        format!("http://{}/{ACCOUNT}/box/b?{}", server.blob_address(), token("r", SignedResource::Container));
    let mut copy = |letters: &str, option: &str| {
        let headers = [
            ("x-ms-copy-source", &*source),
            ("x-ms-requires-sync", "true"),
            ("x-ms-copy-source-tag-option", option),
        ];
        let token = token(letters, SignedResource::Container);
        let answer = with_token(&mut client, "PUT", "/box/copy", &headers, &token);
        format!("{} {}", answer.status, answer.code())
    };
    assert_eq!(copy("w", "REPLACE"), "202 ");
    assert_eq!(copy("w", "COPY"), "403 AuthorizationPermissionMismatch");
    assert_eq!(copy("wt", "COPY"), "202 ");
}

#[test]
fn nobody_reads_the_tags_of_a_public_blob() {
    let (server, mut client) = server(&["--blob-public-access", "on"]);
    let public = [VERSION, ("x-ms-blob-public-access", "blob")];
    assert_eq!(client.send("PUT", "/box?restype=container&comp=acl", &public, b"").status, 200);
    let source = format!("http://{}/{ACCOUNT}/box/b", server.blob_address());
    let mut copy = |option| {
        let headers =
            [VERSION, BLOCK, ("x-ms-copy-source", &*source), ("x-ms-copy-source-tag-option", option)];
        client.send("PUT", "/box/copy", &headers, b"").status
    };
    assert_eq!((copy("REPLACE"), copy("COPY")), (201, 401));
}

/// Keeps what is deleted for a week.
fn keep(client: &mut Client, allows_removal: bool) {
    let body = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><AllowPermanentDelete>{allows_removal}</AllowPermanentDelete><Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>"
    );
    let answer = client.send("PUT", "/?restype=service&comp=properties", &[VERSION], body.as_bytes());
    assert_eq!(answer.status, 202, "{}", answer.text());
}

#[test]
fn a_deleted_snapshot_is_removed_if_the_account_allows_it() {
    let (_server, mut client) = server(&[]);
    keep(&mut client, false);
    let mut snapshot = || {
        let answer = client.send("PUT", "/box/b?comp=snapshot", &[VERSION], b"");
        format!("/box/b?snapshot={}", answer.header("x-ms-snapshot").unwrap().replace(':', "%3A"))
    };
    let (live, deleted) = (snapshot(), snapshot());
    let remove = |client: &mut Client, path: &str| {
        let answer = client.send("DELETE", &format!("{path}&deletetype=permanent"), &[VERSION], b"");
        let permanent = answer.header("x-ms-delete-type-permanent").unwrap_or_default();
        format!("{} {}{permanent}", answer.status, answer.code())
    };
    assert_eq!(
        client.send("DELETE", &deleted, &[VERSION], b"").header("x-ms-delete-type-permanent"),
        Some("false")
    );
    assert_eq!(remove(&mut client, &deleted), "409 PermanentDeleteIsOff");
    keep(&mut client, true);
    assert_eq!(remove(&mut client, &live), "409 BlobOperationNotSupported");
    assert_eq!(remove(&mut client, "/box/b?x="), "409 BlobOperationNotSupported");
    assert_eq!(remove(&mut client, &deleted), "202 true");
    assert_eq!(remove(&mut client, &deleted), "404 BlobNotFound");
    assert_eq!(client.send("PUT", "/box/b?comp=undelete", &[VERSION], b"").status, 200);
    let left =
        client.send("GET", "/box?restype=container&comp=list&include=snapshots,deleted", &[VERSION], b"");
    assert_eq!(left.text().matches("<Blob>").count(), 2, "{}", left.text());
}

#[test]
fn deleting_only_snapshots_leaves_uncommitted_blocks() {
    let (_server, mut client) = server(&[]);
    assert_eq!(client.send("PUT", "/box/staged?comp=block&blockid=YQ==", &[VERSION], b"x").status, 201);
    let only = ("x-ms-delete-snapshots", "only");
    for (path, headers) in
        [("/box/staged", &[VERSION, only][..]), ("/box/staged?deletetype=permanent", &[VERSION])]
    {
        let answer = client.send("DELETE", path, headers, b"");
        assert_eq!((answer.status, answer.code().as_str()), (404, "BlobNotFound"), "{path}");
        let list = client.send("GET", "/box/staged?comp=blocklist&blocklisttype=all", &[VERSION], b"");
        assert!(list.text().contains("<Name>YQ==</Name>"), "{}", list.text());
    }
    assert_eq!(client.send("DELETE", "/box/staged", &[VERSION], b"").status, 202);
}

#[test]
fn a_list_begins_at_the_name_that_it_is_to_start_from() {
    let (_server, mut client) = server(&[]);
    for name in ["a", "c", "d/1", "d/2"] {
        assert_eq!(client.send("PUT", &format!("/box/{name}"), &[VERSION, BLOCK], b"x").status, 201);
    }
    assert_eq!(client.send("PUT", "/box/c?comp=snapshot", &[VERSION], b"").status, 201);
    let mut list = |options: &str| {
        let path = format!("/box?restype=container&comp=list{options}");
        let answer = client.send("GET", &path, &[VERSION], b"");
        assert_eq!(answer.status, 200, "{options}: {}", answer.text());
        let text = answer.text();
        let names = text.split("<Name>").skip(1).filter_map(|rest| rest.split_once('<'));
        let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
        let next = text.split_once("<NextMarker>").and_then(|(_, rest)| rest.split_once('<'));
        (names.join(" "), next.map(|(marker, _)| marker.to_owned()))
    };
    assert_eq!(list("&startFrom=b").0, "b c d/1 d/2");
    assert_eq!(list("&startfrom=bb").0, "c d/1 d/2");
    assert_eq!(list("&include=snapshots&startFrom=c").0, "c c d/1 d/2");
    assert_eq!(list("&delimiter=/&startFrom=c").0, "c d/");
    assert_eq!(list("&prefix=d/&startFrom=a").0, "d/1 d/2");
    assert_eq!(list("&prefix=a&startFrom=b").0, "");
    // A marker goes on from where its page has ended.
    let (names, next) = list("&maxresults=2&startFrom=b");
    assert_eq!(names, "b c");
    let marker = encoded(&next.unwrap());
    assert_eq!(list(&format!("&maxresults=2&startFrom=b&marker={marker}")).0, "d/1 d/2");
    // It need be no name that a blob can have.
    assert_eq!(list(&format!("&startFrom={}", "z".repeat(3000))).0, "");
    assert_eq!(list("&startFrom=%00%01/%F4%8F%BF%BF").0, "a b c d/1 d/2");
    assert_eq!(list("&startFrom=%F4%8F%BF%BF").0, "");
}

#[test]
fn a_list_of_origins_that_is_too_long_is_named() {
    let (_server, mut client) = server(&[]);
    let origins: Vec<String> = (0..65).map(|n| format!("http://{n}.{}.example", "x".repeat(20))).collect();
    let body = format!(
        "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{}</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors></StorageServiceProperties>",
        origins.join(",")
    );
    let answer = client.send("PUT", "/?restype=service&comp=properties", &[VERSION], body.as_bytes());
    assert_eq!((answer.status, answer.code().as_str()), (400, "InvalidXmlNodeValue"));
    let text = answer.text();
    let value = &origins.join(",")[..1024];
    let expected =
        format!("<XmlNodeName>AllowedOrigins</XmlNodeName><XmlNodeValue>{value}</XmlNodeValue><Reason />");
    assert!(text.contains(&expected), "{text}");
}

/// The version of requests without one is the oldest that current SDKs send, whatever the account's properties say.
#[test]
fn the_default_version_is_kept_and_changes_nothing() {
    let server = Partita::in_memory();
    let mut client = server.blob_client();
    let path = "/?restype=service&comp=properties";
    let body = b"<StorageServiceProperties><DefaultServiceVersion>2021-08-06</DefaultServiceVersion></StorageServiceProperties>";
    assert_eq!(client.send("PUT", path, &[VERSION], body).status, 202);
    let kept = client.send("GET", path, &[VERSION], b"");
    assert!(
        kept.text().contains("<DefaultServiceVersion>2021-08-06</DefaultServiceVersion>"),
        "{}",
        kept.text()
    );
    let answer = client.send_raw("GET", &format!("/{ACCOUNT}/box/b"), &[], b"").unwrap();
    // From 2019-12-12 on it would be 401 with a challenge.
    assert_eq!(answer.status, 404, "{}", answer.text());
}

#[test]
fn an_answer_without_a_body_names_no_length_of_it() {
    let (_server, mut client) = server(&[]);
    let etag = client.send("HEAD", "/box/b", &[VERSION], b"").header("etag").unwrap().to_owned();
    let same = client.send("GET", "/box/b", &[VERSION, ("If-None-Match", &etag)], b"");
    assert_eq!((same.status, same.header("content-length")), (304, None));
    let missing = client.send("HEAD", "/box/none", &[VERSION], b"");
    assert_eq!((missing.status, missing.header("transfer-encoding")), (404, None));
}

/// The SDKs ask whether its container exists, and want 404 if there is no change feed.
#[test]
fn an_account_without_a_change_feed_says_so() {
    let (_server, mut client) = server(&[]);
    let mut check = |method: &str, path: &str, status: u16, code: &str| {
        let answer = client.send(method, path, &[VERSION, BLOCK], b"");
        let told = answer.header("x-ms-error-code");
        assert_eq!((answer.status, told), (status, Some(code)), "{method} {path}: {}", answer.text());
    };
    let container = "/$blobchangefeed?restype=container";
    for (method, path) in [
        ("HEAD", container),
        ("GET", container),
        ("GET", "/$blobchangefeed?restype=container&comp=list&prefix=idx/segments/&delimiter=/"),
        ("GET", "/$blobchangefeed/meta/segments.json"),
        ("DELETE", "/$blobchangefeed/meta/segments.json"),
    ] {
        check(method, path, 404, "ContainerNotFound");
    }
    let not_allowed = "InsufficientAccountPermissions";
    check("PUT", container, 403, not_allowed);
    check("DELETE", container, 403, not_allowed);
    check("PUT", "/$blobchangefeed/b", 403, not_allowed);
    check("HEAD", "/$other?restype=container", 400, "InvalidResourceName");
}

#[test]
fn content_headers_that_are_not_sent_are_cleared_unless_something_else_is_set() {
    let (_server, mut client) = server(&[]);
    let page = [VERSION, ("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    let put = |client: &mut Client| {
        let typed =
            [&page[..], &[("x-ms-blob-content-type", "text/x"), ("x-ms-blob-cache-control", "c")]].concat();
        assert_eq!(client.send("PUT", "/box/p", &typed, b"").status, 201);
    };
    let (length, increment) =
        (("x-ms-blob-content-length", "512"), ("x-ms-sequence-number-action", "increment"));
    let cases: [(&[(&str, &str)], _); 4] = [
        (&[], (None, None)),
        (&[("x-ms-blob-content-language", "de")], (None, None)),
        (&[length], (Some("text/x"), Some("c"))),
        (&[increment], (Some("text/x"), Some("c"))),
    ];
    for (sent, expected) in cases {
        put(&mut client);
        let headers = [&[VERSION], sent].concat();
        assert_eq!(client.send("PUT", "/box/p?comp=properties", &headers, b"").status, 200);
        let blob = client.send("HEAD", "/box/p", &[VERSION], b"");
        let kept = (blob.header("content-type"), blob.header("cache-control"));
        assert_eq!(kept, expected, "{sent:?}");
    }
}

#[test]
fn letters_of_a_token_stand_in_any_order() {
    let (_server, mut client) = server(&[]);
    for (letters, expected) in [("rw", 200), ("wr", 200), ("rr", 403), ("rq", 403)] {
        let answer =
            with_token(&mut client, "GET", "/box/b", &[], &token(letters, SignedResource::Container));
        assert_eq!(answer.status, expected, "{letters}");
    }
}

/// Who can't say who he is must not make the server hold what he sent, several times as long.
#[test]
fn a_stranger_is_not_told_all_that_he_sent() {
    let (server, _client) = server(&[]);
    let mut stranger = Client::of_service(ServiceKind::Blob, server.blob_address(), ACCOUNT, KEY);
    for (length, is_told) in [(100, true), (60_000, false)] {
        let sent = "&".repeat(length);
        let headers = [
            VERSION,
            ("Authorization", "SharedKey devstoreaccount1:eA=="),
            ("x-ms-date", "Thu, 19 Nov 2026 02:00:00 GMT"),
            ("x-ms-a", sent.as_str()),
        ];
        let answer = stranger.send_raw("GET", &format!("/{ACCOUNT}/?comp=list"), &headers, b"").unwrap();
        assert_eq!((answer.status, answer.header("x-ms-error-code")), (403, Some("AuthenticationFailed")));
        assert_eq!(answer.text().contains("&amp;&amp;"), is_told, "{length}");
        assert_eq!(answer.text().is_empty(), !is_told, "{length}");
    }
}
