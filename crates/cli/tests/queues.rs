//! The Queue service of the real binary: SAS letters × operations, stored policies, hostile clients, request logs, and what
//! survives a restart. Roles of bearer tokens are in `bearer.rs`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::time::{Duration, SystemTime};

use wire::signing::AccountKey;
use wire::signing::sas::{AccountSas, QueueSas, Sas, Terms};

use crate::support::request_logs::request_logs;
use crate::support::{ACCOUNT, Answer, Client, KEY, Partita};

const TEXT: &[u8] = b"<QueueMessage><MessageText>a</MessageText></QueueMessage>";
const QUEUE: &str = "jobs";
/// A message that is not there, with a receipt that could be.
const MESSAGE: &str = "/jobs/messages/0a1b2c3d-0000-4000-8000-0123456789ab?popreceipt=AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3D&visibilitytimeout=0";

/// Every operation with a name, and what the owner hears: what is permitted gets as far.
const OPERATIONS: [(&str, &str, &str, u16); 16] = [
    ("get properties", "GET", "/?restype=service&comp=properties", 200),
    ("set properties", "PUT", "/?restype=service&comp=properties", 400),
    ("list", "GET", "/?comp=list", 200),
    ("create", "PUT", "/jobs", 204),
    ("get metadata", "GET", "/jobs?comp=metadata", 200),
    ("head metadata", "HEAD", "/jobs?comp=metadata", 200),
    ("set metadata", "PUT", "/jobs?comp=metadata", 204),
    ("get acl", "GET", "/jobs?comp=acl", 200),
    ("set acl", "PUT", "/jobs?comp=acl", 204),
    ("put", "POST", "/jobs/messages", 201),
    ("peek", "GET", "/jobs/messages?peekonly=true", 200),
    ("get", "GET", "/jobs/messages", 200),
    ("update", "PUT", MESSAGE, 404),
    ("delete", "DELETE", MESSAGE, 404),
    ("clear", "DELETE", "/jobs/messages", 204),
    ("drop", "DELETE", "/jobs", 204),
];

fn server() -> (Partita, Client) {
    let server = Partita::in_memory();
    let mut client = server.queue_client();
    assert_eq!(client.send("PUT", "/jobs", &[], b"").status, 201);
    (server, client)
}

fn terms(permissions: &str) -> Terms {
    Terms {
        version: "2021-02-12".to_owned(),
        permissions: permissions.to_owned(),
        expiry: "2099-01-01T00:00:00Z".to_owned(),
        ..Terms::default()
    }
}

fn query(sas: &Sas) -> String {
    sas.to_query(&sas.sign(ACCOUNT, &AccountKey::parse(KEY).unwrap()))
}

fn queue_token(permissions: &str) -> String {
    query(&Sas::Queue(QueueSas {
        terms: terms(permissions),
        queue: QUEUE.to_owned(),
        identifier: String::new(),
        delegation: None,
    }))
}

fn account_token(permissions: &str, resource_types: &str, services: &str) -> String {
    query(&Sas::Account(AccountSas {
        terms: terms(permissions),
        services: services.to_owned(),
        resource_types: resource_types.to_owned(),
        ..AccountSas::default()
    }))
}

fn with_token(client: &mut Client, method: &str, path: &str, token: &str) -> Answer {
    let separator = if path.contains('?') { '&' } else { '?' };
    let target = format!("/{ACCOUNT}{path}{separator}{token}");
    let body = if path == "/jobs/messages" && method == "POST" { TEXT } else { b"" };
    client.send_raw(method, &target, &[("x-ms-version", "2021-02-12")], body).unwrap()
}

/// These operations work, and each of the others is refused with the code that it says.
fn check(client: &mut Client, token: &str, allowed: &[&str], code: impl Fn(&str) -> &'static str) {
    for (name, method, path, status) in OPERATIONS {
        client.send("PUT", "/jobs", &[], b"");
        let answer = with_token(client, method, path, token);
        let told = (answer.status, answer.header("x-ms-error-code").unwrap_or_default());
        if allowed.contains(&name) {
            assert_eq!(told.0, status, "{name} with {token}: {}", answer.text());
        } else {
            assert_eq!(told, (403, code(name)), "{name} with {token}: {}", answer.text());
        }
    }
}

/// The resource type that an operation is of, and whether a service's token can ever permit it.
fn kind(name: &str) -> (char, bool) {
    match name {
        "get properties" | "set properties" | "list" => ('s', false),
        "get metadata" | "head metadata" => ('c', true),
        "create" | "set metadata" | "get acl" | "set acl" | "drop" => ('c', false),
        "put" | "peek" | "get" | "update" | "delete" => ('o', true),
        "clear" => ('o', false),
        other => panic!("no operation is called {other}"),
    }
}

#[test]
fn the_owner_may_do_everything() {
    let (_server, mut client) = server();
    for (name, method, path, status) in OPERATIONS {
        client.send("PUT", "/jobs", &[], b"");
        let body = if name == "put" { TEXT } else { b"" };
        let answer = client.send(method, path, &[], body);
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
    }
}

/// Specification: queue-operations 7.3.
#[test]
fn letters_of_a_queues_token() {
    let (_server, mut client) = server();
    // A queue's token does not name its queue: it signs the one that is addressed, and at the service there is none. So
    // the signature can't be right, and that is told before what the token permits.
    let code = |name: &str| match kind(name) {
        ('s', _) => "AuthenticationFailed",
        (_, false) => "AuthorizationFailure",
        (_, true) => "AuthorizationPermissionMismatch",
    };
    let mut check =
        |letters: &str, allowed: &[&str]| check(&mut client, &queue_token(letters), allowed, code);
    check("r", &["peek", "get metadata", "head metadata"]);
    check("a", &["put"]);
    check("u", &["update"]);
    check("p", &["get", "delete"]);
    check("raup", &["peek", "get metadata", "head metadata", "put", "update", "get", "delete"]);
    let update = |client: &mut Client, token: &str| with_token(client, "PUT", MESSAGE, token);
    let refused = update(&mut client, &queue_token("rap"));
    assert_eq!(refused.header("x-ms-error-code"), Some("AuthorizationPermissionMismatch"));
    let refused = with_token(&mut client, "DELETE", "/jobs", &queue_token("raup"));
    assert_eq!(refused.header("x-ms-error-code"), Some("AuthorizationFailure"));
    // It signs the queue that is addressed.
    let other = with_token(&mut client, "GET", "/other/messages?peekonly=true", &queue_token("r"));
    assert_eq!((other.status, other.header("x-ms-error-code")), (403, Some("AuthenticationFailed")));
    assert!(other.text().contains("<AuthenticationErrorDetail>Signature did not match."), "{}", other.text());
    let list = with_token(&mut client, "GET", "/?comp=list", &queue_token("raup"));
    let signed = "Signature did not match. String to sign used was raup\n\n2099-01-01T00:00:00Z\n/queue/devstoreaccount1/\n\n\n\n2021-02-12";
    assert!(list.text().contains(signed), "{}", list.text());
}

/// Specification: queue-operations 7.4.
#[test]
fn letters_of_an_accounts_token() {
    let (_server, mut client) = server();
    let mut check = |letters: &str, types: &str, allowed: &[&str]| {
        let code = |name: &str| match kind(name) {
            _ if name.ends_with("acl") => "AuthorizationFailure",
            (kind, _) if !types.contains(kind) => "AuthorizationResourceTypeMismatch",
            _ => "AuthorizationPermissionMismatch",
        };
        check(&mut client, &account_token(letters, types, "bfqt"), allowed, code);
    };
    check("rwdlacup", "s", &["get properties", "set properties", "list"]);
    check("rwdlacup", "c", &["create", "drop", "get metadata", "head metadata", "set metadata"]);
    check("rwdlacup", "o", &["put", "peek", "get", "update", "delete", "clear"]);
    check("r", "sco", &["get properties", "get metadata", "head metadata", "peek"]);
    check("w", "sco", &["set properties", "create", "set metadata"]);
    check("d", "sco", &["drop", "clear"]);
    check("l", "sco", &["list"]);
    check("a", "sco", &["put"]);
    check("c", "sco", &["create"]);
    check("u", "sco", &["update"]);
    check("p", "sco", &["get", "delete"]);
    check("xytfi", "sco", &[]);
    let code = |client: &mut Client, token: &str| {
        let answer = with_token(client, "GET", "/?restype=service&comp=properties", token);
        (
            answer.header("x-ms-error-code").unwrap_or_default().to_owned(),
            answer.header("x-ms-version").is_some(),
        )
    };
    assert_eq!(
        code(&mut client, &account_token("r", "s", "b")),
        ("AuthorizationServiceMismatch".to_owned(), false)
    );
    assert_eq!(
        code(&mut client, &account_token("r", "co", "q")),
        ("AuthorizationResourceTypeMismatch".to_owned(), true)
    );
    assert_eq!(
        code(&mut client, &account_token("wdlcup", "s", "q")),
        ("AuthorizationPermissionMismatch".to_owned(), true)
    );
}

#[test]
fn a_stored_policy_grants_and_revokes() {
    let (_server, mut client) = server();
    let token = query(&Sas::Queue(QueueSas {
        terms: Terms { version: "2021-02-12".to_owned(), ..Terms::default() },
        queue: QUEUE.to_owned(),
        identifier: "worker".to_owned(),
        delegation: None,
    }));
    let peek = |client: &mut Client| with_token(client, "GET", "/jobs/messages?peekonly=true", &token).status;
    assert_eq!(peek(&mut client), 403);
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>worker</Id><AccessPolicy><Expiry>2099-01-01</Expiry><Permission>rp</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    assert_eq!(client.send("PUT", "/jobs?comp=acl", &[], policies.as_bytes()).status, 204);
    assert_eq!(peek(&mut client), 200);
    assert_eq!(with_token(&mut client, "POST", "/jobs/messages", &token).status, 403);
    assert_eq!(client.send("PUT", "/jobs?comp=acl", &[], b"").status, 204);
    assert_eq!(peek(&mut client), 403);
}

#[test]
fn a_token_out_of_its_time_is_told_so() {
    let (_server, mut client) = server();
    let mut terms = terms("r");
    terms.expiry = "2020-01-01T00:00:00Z".to_owned();
    let sas = QueueSas { terms, queue: QUEUE.to_owned(), identifier: String::new(), delegation: None };
    let answer = with_token(&mut client, "GET", "/jobs?comp=metadata", &query(&Sas::Queue(sas)));
    assert_eq!(answer.status, 403);
    let detail = "<AuthenticationErrorDetail>Signature not valid in the specified time frame: Start [Mon, 01 Jan 0001 00:00:00 GMT] - Expiry [Wed, 01 Jan 2020 00:00:00 GMT] - Current [";
    assert!(answer.text().contains(detail), "{}", answer.text());
}

/// The vectors of the specification (queue-operations 7.2), with a clock that is not looked at.
#[test]
fn signatures_of_the_specification_are_accepted() {
    let server = Partita::start(&["--in-memory", "--skip-clock-check"]);
    let mut client = server.queue_client();
    assert_eq!(
        client.send("PUT", "/myqueue", &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], b"").status,
        201
    );
    let text = b"<QueueMessage><MessageText>aGVsbG8=</MessageText></QueueMessage>";
    let mut check = |method: &str,
                     target: &str,
                     more: &[(&str, &str)],
                     body: &[u8],
                     signatures: [&str; 2],
                     status: u16| {
        for (scheme, signature) in ["SharedKey", "SharedKeyLite"].into_iter().zip(signatures) {
            let authorization = format!("{scheme} {ACCOUNT}:{signature}");
            let mut headers = vec![
                ("x-ms-date", "Fri, 15 Nov 2024 12:00:00 GMT"),
                ("x-ms-version", "2021-02-12"),
                ("Authorization", authorization.as_str()),
            ];
            headers.extend_from_slice(more);
            let answer = client.send_raw(method, &format!("/{ACCOUNT}{target}"), &headers, body).unwrap();
            assert_eq!(answer.status, status, "{scheme} {target}: {}", answer.text());
        }
    };
    let list =
        ["HFLyv4mAnmJGbrJAIUVxWzQlU10Rh0Im5TVfmpGQ7Y8=", "BrLa1a1GDI2Arhh+I4mj5CHZfHMwaa75a95hZBWjeQc="];
    check("GET", "/?comp=list", &[], b"", list, 200);
    let create =
        ["9PF3jjwtbQIOPTNV0RHxDohqPKYXVWrFYDC6qSExJ1I=", "HhW4JSsL8SWt8jdOpvRt5tBwlnUmnbg4ijfOhJLYvBg="];
    check("PUT", "/myqueue", &[("x-ms-meta-b", "2"), ("x-ms-meta-a", "1")], b"", create, 204);
    let put =
        ["j7Fq94FjQUEerNA+YQBa0DGW1lr2rAEv2KnEe3M/MIQ=", "4r1ACtt7mS8dx8JfSQ/9hm9aQl5DiwUzf23FZkeQK2I="];
    let xml = [("Content-Type", "application/xml")];
    check("POST", "/myqueue/messages?visibilitytimeout=5&messagettl=60", &xml, text, put, 201);
    let get =
        ["f/g6SvGQSIXWYWlQN4GLSK2tzIQprwsnMn3fDEyBnzE=", "jXYLu4uVMyg9WeHEFM1Qh9iu89vspSw5c1NQc34xoNY="];
    check("GET", "/myqueue/messages?numofmessages=4&visibilitytimeout=20", &[], b"", get, 200);
    let delete =
        ["ybkH4WB0pxFMVuQZcSyD1hSvFe//9/N13u3H4ThnXnk=", "EsIBXGyUeleyvA78vEFUEPOYjB7PXqWgVg0HHIuvjWM="];
    let message =
        "/myqueue/messages/0a1b2c3d-0000-4000-8000-0123456789ab?popreceipt=AgAAAAMAAAAAAAAAO0dZ7P5O1QE%3D";
    check("DELETE", message, &[], b"", delete, 404);
    let metadata =
        ["/l33oeh06XQsGuje0TDfdKioqqrh3ZMFedplUvUibcI=", "uSBGg3nlc1prBPztjzcer1e2sMCgHGTUqIQgdzLKfOM="];
    check("GET", "/myqueue?comp=metadata&timeout=30", &[], b"", metadata, 200);
}

/// The text between these tags, the first time.
fn between(text: &str, tag: &str) -> String {
    let (_, rest) = text.split_once(&format!("<{tag}>")).unwrap_or_else(|| panic!("no {tag} in {text}"));
    rest.split('<').next().unwrap_or_default().to_owned()
}

#[test]
fn times_are_distances_from_one_instant() {
    let (_server, mut client) = server();
    let seconds = |text: &str| {
        let time = httpdate::parse_http_date(text).unwrap();
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
    };
    let text = client.send("POST", "/jobs/messages?visibilitytimeout=7&messagettl=100", &[], TEXT).text();
    let time = |tag: &str| seconds(&between(&text, tag));
    assert_eq!(time("TimeNextVisible") - time("InsertionTime"), 7);
    assert_eq!(time("ExpirationTime") - time("InsertionTime"), 100);
}

#[test]
fn a_message_comes_back_when_its_time_is_over_and_its_first_receipt_still_counts() {
    let (_server, mut client) = server();
    client.send("POST", "/jobs/messages", &[], TEXT);
    let got = client.send("GET", "/jobs/messages?visibilitytimeout=5", &[], b"").text();
    let empty = client.send("GET", "/jobs/messages", &[], b"").text();
    assert!(empty.ends_with("<QueueMessagesList />"), "{empty}");
    let peeked = testing::wait_until("it is visible again", || {
        let peeked = client.send("GET", "/jobs/messages?peekonly=true", &[], b"").text();
        peeked.contains("<QueueMessage>").then_some(peeked)
    });
    assert_eq!(between(&peeked, "DequeueCount"), "1");
    let message =
        format!("/jobs/messages/{}?popreceipt={}", between(&got, "MessageId"), between(&got, "PopReceipt"));
    assert_eq!(client.send("DELETE", &message, &[], b"").status, 204);
}

#[test]
fn an_expired_message_is_gone() {
    let (_server, mut client) = server();
    let put = client.send("POST", "/jobs/messages?messagettl=1", &[], TEXT).text();
    std::thread::sleep(Duration::from_millis(1100));
    let peeked = client.send("GET", "/jobs/messages?peekonly=true", &[], b"").text();
    assert!(peeked.ends_with("<QueueMessagesList />"), "{peeked}");
    let message =
        format!("/jobs/messages/{}?popreceipt={}", between(&put, "MessageId"), between(&put, "PopReceipt"));
    assert_eq!(client.send("DELETE", &message, &[], b"").status, 404);
}

#[test]
fn queues_messages_and_leases_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.queue_client();
    assert_eq!(client.send("PUT", "/jobs", &[("x-ms-meta-a", "1")], b"").status, 201);
    for text in ["one", "two"] {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        assert_eq!(client.send("POST", "/jobs/messages", &[], body.as_bytes()).status, 201);
    }
    let got = client.send("GET", "/jobs/messages?visibilitytimeout=600", &[], b"").text();
    server.kill();
    let server = Partita::in_directory(directory.path());
    let mut client = server.queue_client();
    let metadata = client.send("GET", "/jobs?comp=metadata", &[], b"");
    assert_eq!(metadata.header("x-ms-meta-a"), Some("1"));
    assert_eq!(metadata.header("x-ms-approximate-messages-count"), Some("2"));
    let peeked = client.send("GET", "/jobs/messages?peekonly=true&numofmessages=32", &[], b"").text();
    assert_eq!(between(&peeked, "MessageText"), "two");
    assert_eq!(peeked.matches("<QueueMessage>").count(), 1, "{peeked}");
    let message =
        format!("/jobs/messages/{}?popreceipt={}", between(&got, "MessageId"), between(&got, "PopReceipt"));
    assert_eq!(client.send("DELETE", &message, &[], b"").status, 204);
}

#[test]
fn tables_and_queues_do_not_meet() {
    let server = Partita::in_memory();
    let (mut tables, mut queues) = (server.client(), server.queue_client());
    let json = [("Content-Type", "application/json"), ("Accept", "application/json;odata=nometadata")];
    assert_eq!(tables.send("POST", "/Tables", &json, b"{\"TableName\":\"jobs\"}").status, 201);
    let list = queues.send("GET", "/?comp=list", &[], b"").text();
    assert!(list.contains("<Queues />"), "{list}");
    assert_eq!(queues.send("PUT", "/jobs", &[], b"").status, 201);
    assert_eq!(queues.send("POST", "/jobs/messages", &[], TEXT).status, 201);
    assert_eq!(tables.send("GET", "/jobs", &json, b"").text(), "{\"value\":[]}");
    assert_eq!(tables.send("DELETE", "/Tables('jobs')", &json, b"").status, 204);
    let metadata = queues.send("GET", "/jobs?comp=metadata", &[], b"");
    assert_eq!(metadata.header("x-ms-approximate-messages-count"), Some("1"));
    assert!(!tables.send("GET", "/Tables", &json, b"").text().contains("jobs"));
}

#[test]
fn queues_can_be_off() {
    let server = Partita::start(&["--in-memory", "--queue-listen", "off"]);
    assert!(!server.banner.contains("Queue"), "{}", server.banner);
    // No other host leads to them.
    let answer = server
        .client()
        .send_raw("GET", "/?comp=list", &[("Host", "devstoreaccount1.queue.localhost")], b"")
        .unwrap();
    assert!(!answer.text().contains("EnumerationResults"), "{}", answer.text());
}

#[test]
fn a_taken_port_of_queues_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = crate::support::binary();
    command.args(["serve", "--in-memory", "--listen", "127.0.0.1:0", "--queue-listen", &address]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&address) && said.contains("--queue-listen"), "{said}");
}

#[test]
fn requests_are_logged_and_counted_as_queues() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut queues = server.queue_client();
    let on = "<RetentionPolicy><Enabled>true</Enabled><Days>2</Days></RetentionPolicy>";
    let properties = format!(
        "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>{on}</Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{on}</HourMetrics></StorageServiceProperties>"
    );
    let set = queues.send("PUT", "/?restype=service&comp=properties", &[], properties.as_bytes());
    assert_eq!(set.status, 202, "{}", set.text());
    queues.send("PUT", "/jobs", &[], b"");
    queues.send("POST", "/jobs/messages", &[], TEXT);
    queues.send("GET", "/jobs/messages?numofmessages=2", &[], b"");
    queues.send("GET", "/jobs/messages?peekonly=true", &[], b"");
    queues.send("DELETE", "/jobs/messages", &[], b"");
    assert!(server.stop().success());
    let server = Partita::in_directory(directory.path());
    let log = request_logs(&mut server.blob_client(), "queue/");
    let operations: Vec<&str> = log.lines().filter_map(|line| line.split(';').nth(2)).collect();
    assert_eq!(
        operations,
        ["CreateQueue", "PutMessage", "GetMessages", "PeekMessage", "ClearMessages"],
        "{log}"
    );
    let mut tables = server.client();
    let json = [("Accept", "application/json;odata=nometadata")];
    let metrics = tables.send("GET", "/$MetricsHourPrimaryTransactionsQueue()", &json, b"").text();
    assert!(metrics.contains("user;PutMessage") && metrics.contains("user;All"), "{metrics}");
}

/// The memory that messages of the worst kind take, many at once, is within what the operator allows.
#[test]
fn large_answers_are_bounded() {
    let server = Partita::start(&["--in-memory", "--request-mib", "32"]);
    let mut client = server.queue_client();
    assert_eq!(client.send("PUT", "/jobs", &[], b"").status, 201);
    let text = "&amp;".repeat(65_536);
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    for _ in 0..32 {
        assert_eq!(client.send("POST", "/jobs/messages", &[], body.as_bytes()).status, 201);
    }
    let alone = client.send("GET", "/jobs/messages?peekonly=true&numofmessages=32", &[], b"");
    assert_eq!(alone.text().matches("<QueueMessage>").count(), 32);
    let before = server.memory_kib();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = server.queue_client();
                for _ in 0..4 {
                    let path = "/jobs/messages?peekonly=true&numofmessages=32";
                    let answer = client.send("GET", path, &[], b"");
                    assert!(matches!(answer.status, 200 | 503), "{}", answer.status);
                }
            });
        }
    });
    let grown = server.peak_memory_kib().saturating_sub(before);
    assert!(grown < 128 * 1024, "{grown} KiB more, where 32 MiB are for requests");
}

#[test]
fn a_page_of_queues_ends_before_its_metadata_is_too_large() {
    let server = Partita::in_memory();
    let mut client = server.queue_client();
    let value = "v".repeat(8000);
    for n in 0..140 {
        assert_eq!(client.send("PUT", &format!("/q-{n:03}"), &[("x-ms-meta-a", &value)], b"").status, 201);
    }
    let page = client.send("GET", "/?comp=list&include=metadata", &[], b"").text();
    assert_eq!(page.matches("<Queue>").count(), 131);
    assert!(page.ends_with("<NextMarker>/devstoreaccount1/q-131</NextMarker></EnumerationResults>"));
    let rest =
        client.send("GET", "/?comp=list&include=metadata&marker=/devstoreaccount1/q-131", &[], b"").text();
    assert_eq!((rest.matches("<Queue>").count(), rest.contains("<NextMarker />")), (9, true));
    let names = client.send("GET", "/?comp=list", &[], b"").text();
    assert_eq!(names.matches("<Queue>").count(), 140);
}

/// Bodies that are meant to cost more than they are worth. Each is refused or stored, and the server answers the next one.
#[test]
fn hostile_bodies() {
    let (server, mut client) = server();
    let before = server.memory_kib();
    let deep = |count: usize| format!("<QueueMessage><MessageText>{}", "<a>".repeat(count));
    let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>";
    let many_attributes = format!("<QueueMessage {}><MessageText/></QueueMessage>", "a='b' ".repeat(60_000));
    let references =
        format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", "&#65;".repeat(65_536));
    for _ in 0..5 {
        for (body, status) in [
            (deep(130_000).into_bytes(), 400),
            (bomb.as_bytes().to_vec(), 400),
            (many_attributes.clone().into_bytes(), 201),
            (references.clone().into_bytes(), 201),
            (vec![0; 100_000], 400),
            (vec![0xff; 1000], 400),
            (vec![b' '; 300_000], 400),
            (vec![b'<'; 300_000], 400),
            (vec![b'&'; 300_000], 400),
            (vec![b'a'; 6 * 65_536 + 1025], 413),
        ] {
            let answer = client.send("POST", "/jobs/messages", &[], &body);
            assert_eq!(answer.status, status, "{:?}…: {}", &body[..10], answer.text());
        }
    }
    assert_eq!(client.send("GET", "/jobs?comp=metadata", &[], b"").status, 200);
    let grown = server.memory_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
}
