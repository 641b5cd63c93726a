//! What the administration answers.

use serde_json::{Value, json};

use super::kit::{JSON, JSON_BODY, Visitor, code};
use crate::support::{ACCOUNT, Client, KEY, Partita, binary};

#[test]
fn the_status_says_what_runs_and_how_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut visitor = Visitor::developer(&server);
    visitor.create_table("Books");
    let status = visitor.get("/api/status").json();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["store"]["kind"], "embedded");
    assert_eq!(status["health"], json!({ "ready": true, "reasons": [] }));
    assert_eq!(status["accounts"], json!([ACCOUNT]));
    for (place, name) in [
        ("memory", "resident_bytes"),
        ("disk", "free_bytes"),
        ("memory", "cache_bytes"),
        ("engine", "commits"),
    ] {
        assert!(status[place][name].as_f64().is_some_and(|number| number > 0.0), "{place} {name}: {status}");
    }
    assert_eq!(status["jobs"], json!([]));
}

#[test]
fn commands_do_what_the_control_socket_does() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut visitor = Visitor::developer(&server);
    let mut command = |name: &str| visitor.send("POST", &format!("/api/commands/{name}"), &[], b"");
    assert!(command("freeze").json()["text"].as_str().unwrap().starts_with("frozen since "));
    let refused = server.client().send("POST", "/Tables", &[JSON, JSON_BODY], br#"{"TableName":"Books"}"#);
    assert_eq!(refused.status, 503);
    let health = Visitor::of(&server).get("/api/status").json()["health"].clone();
    let reasons = health["reasons"].as_array().unwrap();
    let reason = reasons.first().and_then(Value::as_str).unwrap_or_default();
    assert!(health["ready"] == true && reasons.len() == 1 && reason.starts_with("frozen since "), "{health}");
    assert!(command("thaw").json()["since"].is_string());
    let health = Visitor::of(&server).get("/api/status").json()["health"].clone();
    assert_eq!(health, json!({ "ready": true, "reasons": [] }));
    let written = server.client().send("POST", "/Tables", &[JSON, JSON_BODY], br#"{"TableName":"Books"}"#);
    assert_eq!(written.status, 201, "{}", written.text());
    assert_eq!(command("thaw").json()["text"], "was not frozen");
    let checkpoint = command("checkpoint").json();
    assert!(std::path::Path::new(checkpoint["directory"].as_str().unwrap()).is_dir(), "{checkpoint}");
    assert_eq!(command("stop").status, 404);
    assert_eq!(visitor.get("/api/commands/freeze").status, 405);
    let status = visitor.get("/api/status").json();
    assert_eq!(status["backups"][0]["commits"], checkpoint["commits"], "{status}");

    // A store that was moved away stays frozen, as with `partita thaw`.
    let mark = "place = '/new'\ninstead = 'partita serve --data /new'\ntime = 'now'\n";
    std::fs::write(directory.path().join("MOVED"), mark).unwrap();
    let moved = visitor.send("POST", "/api/commands/thaw", &[], b"");
    assert!(moved.status == 500 && moved.text().contains("/new"), "{}", moved.text());
}

#[test]
fn nothing_is_backed_up_without_a_directory() {
    let server = Partita::in_memory();
    let answer = Visitor::developer(&server).send("POST", "/api/commands/checkpoint", &[], b"");
    assert_eq!((answer.status, code(&answer)), (500, "CommandFailed".to_owned()));
}

#[test]
fn tables_and_queues_are_listed_with_what_they_hold() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [vec!["--in-memory"], vec!["--data", directory.path().to_str().unwrap()]] {
        let server = Partita::start(&arguments);
        let mut visitor = Visitor::developer(&server);
        visitor.create_table("Empty");
        visitor.create_table("Books");
        for row in 0..25 {
            let body = json!({ "PartitionKey": "p", "RowKey": row.to_string(), "Text": "a".repeat(100) });
            assert_eq!(visitor.table("POST", "/Books", &body.to_string()).status, 201);
        }
        assert_eq!(
            visitor
                .send(
                    "DELETE",
                    "/api/forward/table/Books(PartitionKey='p',RowKey='7')",
                    &[("if-match", "*")],
                    b""
                )
                .status,
            204
        );
        let listed = visitor.get("/api/tables").json();
        assert_eq!(
            (listed["tables"][0]["name"].as_str(), listed["tables"][0]["estimated_rows"].as_u64()),
            (Some("Books"), Some(24)),
            "{listed}"
        );
        assert!(
            listed["tables"][0]["estimated_bytes"].as_u64().is_some_and(|bytes| bytes > 2_400),
            "{listed}"
        );
        assert_eq!(
            listed["tables"][1],
            json!({ "name": "Empty", "estimated_rows": 0, "estimated_bytes": 0 })
        );
        assert_eq!(listed["next"], Value::Null);

        for number in 0..103 {
            let queue = format!("/api/forward/queue/q{number:03}");
            assert_eq!(visitor.send("PUT", &queue, &[], b"").status, 201);
        }
        let message = b"<QueueMessage><MessageText>a</MessageText></QueueMessage>";
        assert_eq!(visitor.send("POST", "/api/forward/queue/q001/messages", &[], message).status, 201);
        let first = visitor.get("/api/queues").json();
        assert_eq!(first["queues"].as_array().map(Vec::len), Some(100));
        assert_eq!(first["queues"][1], json!({ "name": "q001", "approximate_messages": 1 }));
        let next = first["next"].as_str().unwrap().replace('/', "%2F");
        let rest = visitor.get(&format!("/api/queues?next={next}")).json();
        assert_eq!(
            (rest["queues"].as_array().map(Vec::len), &rest["next"]),
            (Some(3), &Value::Null),
            "{rest}"
        );
    }
}

#[test]
fn many_tables_come_in_pages() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    for number in 0..1_001 {
        visitor.create_table(&format!("T{number:04}"));
    }
    let first = visitor.get("/api/tables").json();
    assert_eq!(first["tables"].as_array().map(Vec::len), Some(1_000));
    let rest = visitor.get(&format!("/api/tables?next={}", first["next"].as_str().unwrap())).json();
    assert_eq!(rest["tables"], json!([{ "name": "T1000", "estimated_rows": 0, "estimated_bytes": 0 }]));
}

#[test]
fn a_token_that_is_made_works_and_is_explained() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    visitor.create_table("Books");
    for partition in ["A", "a", "b", "c"] {
        let body = json!({ "PartitionKey": partition, "RowKey": "r" });
        assert_eq!(visitor.table("POST", "/Books", &body.to_string()).status, 201);
    }
    let mut make =
        |request: Value| visitor.send("POST", "/api/sas", &[JSON_BODY], request.to_string().as_bytes());
    let made = make(json!({ "kind": "table", "resource": "Books", "permissions": "r", "expiry": "1h", "start_pk": "a", "end_pk": "b" })).json();
    let (url, token) = (made["url"].as_str().unwrap(), made["token"].as_str().unwrap());
    assert_eq!(url, format!("http://{}/{ACCOUNT}/Books?{token}", server.address));
    let explanation = made["explanation"].to_string();
    assert!(
        explanation.contains("read on entities of table Books") && explanation.contains("accepted now"),
        "{explanation}"
    );
    assert!(explanation.contains(r#"from partition \"a\" to partition \"b\""#), "{explanation}");
    let mut client = Client::new(server.address, ACCOUNT, KEY);
    let mut get = |target: &str| client.send_raw("GET", target, &[JSON], b"").unwrap().status;
    let ranged = "$filter=PartitionKey%20ge%20'a'%20and%20PartitionKey%20le%20'b'";
    assert_eq!(get(&format!("/{ACCOUNT}/Books()?{ranged}&{token}")), 200);
    assert_eq!(get(&format!("/{ACCOUNT}/Tables?{token}")), 403);
    for (partition, expected) in [("A", 404), ("a", 200), ("b", 200), ("c", 404)] {
        let row = format!("/{ACCOUNT}/Books(PartitionKey='{partition}',RowKey='r')?{token}");
        assert_eq!(get(&row), expected, "{partition}");
    }

    let made = make(json!({ "kind": "account", "permissions": "rl", "services": "t", "resource_types": "sco", "expiry": "2099-01-01T00:00:00Z" })).json();
    assert_eq!(get(&format!("/{ACCOUNT}/Tables?{}", made["token"].as_str().unwrap())), 200);
    let of_queues =
        json!({ "kind": "account", "permissions": "rl", "services": "q", "resource_types": "sco" });
    let made = make(of_queues).json();
    let queues = format!("http://{}/{ACCOUNT}/?", server.queue_address());
    assert!(made["url"].as_str().unwrap().starts_with(&queues), "{made}");
    let terms = json!({ "kind": "table", "resource": "Books", "permissions": "r", "policy": "p", "start": "2020-01-01T00:00:00Z", "expiry": "2099-01-01T00:00:00Z", "ip": "10.0.0.1", "protocol": "https", "start_pk": "a", "start_rk": "b", "end_pk": "c", "end_rk": "d" });
    let made = make(terms).json()["token"].as_str().unwrap().to_owned();
    for field in [
        "si=p",
        "st=2020-01-01T00%3A00%3A00Z",
        "se=2099-01-01T00%3A00%3A00Z",
        "sip=10.0.0.1",
        "spr=https",
        "spk=a",
        "srk=b",
        "epk=c",
        "erk=d",
    ] {
        assert!(made.split('&').any(|part| part == field), "{field}: {made}");
    }
    let made = make(json!({ "kind": "queue", "resource": "my-jobs", "permissions": "raup" })).json();
    assert!(made["url"].as_str().unwrap().contains("/my-jobs?"), "{made}");
    for (request, expected) in [
        (json!({ "kind": "table", "resource": "Books", "permissions": "dr" }), "SasInvalid"),
        (json!({ "kind": "table", "resource": "a/b", "permissions": "r" }), "TableNameInvalid"),
        (json!({ "kind": "queue", "resource": "A_B", "permissions": "r" }), "SasInvalid"),
        (
            json!({ "kind": "account", "permissions": "r", "services": "x", "resource_types": "s" }),
            "SasInvalid",
        ),
        (json!({ "kind": "file" }), "NotJson"),
    ] {
        let refused = make(request.clone());
        assert_eq!((refused.status, code(&refused)), (400, expected.to_owned()), "{request}");
    }
}

#[test]
fn settings_and_metrics_are_shown_without_secrets() {
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--in-memory"]);
    command.args(["--account", &format!("shop:{KEY}"), "--idle-seconds", "77"]);
    command.env("PARTITA_MAX_CONNECTIONS", "99");
    let server = Partita::spawn(command);
    let mut visitor = Visitor::of(&server);
    let settings = visitor.get("/api/settings");
    assert!(!settings.text().contains(KEY));
    let listed = settings.json();
    let of = |name: &str| {
        listed["settings"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned().unwrap()
    };
    assert_eq!(of("idle-seconds"), json!({ "name": "idle-seconds", "value": "77", "from": "flag" }));
    assert_eq!(
        of("max-connections"),
        json!({ "name": "max-connections", "value": "99", "from": "variable" })
    );
    assert_eq!(of("account")["value"], "shop");
    assert_eq!(of("request-mib"), json!({ "name": "request-mib", "value": "256", "from": "default" }));
    let metrics = visitor.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(metrics.text().contains("\npartita_requests_total{") && !metrics.text().contains(KEY));
}

#[test]
fn the_console_is_served_and_runs_only_its_own_files() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::of(&server);
    assert_eq!(visitor.get("/").header("location"), Some("/console/"));
    let page = visitor.get("/console/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    let expected = [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
    ];
    assert_eq!(policy.split("; ").collect::<Vec<_>>(), expected);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    let etag = page.header("etag").unwrap().to_owned();
    assert_eq!(visitor.send("GET", "/console/", &[("if-none-match", &etag)], b"").status, 304);
    // A path that names no file is a page of the console, whatever it looks like.
    assert_eq!(visitor.get("/console/../../etc/passwd").body, page.body);
    assert_eq!(visitor.get("/console/../../etc/resolv.conf").status, 404);
    assert_eq!(visitor.send("PUT", "/console/", &[("x-partita-csrf", "1")], b"").status, 405);
}
