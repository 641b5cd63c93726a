//! Who gets an answer at all.

use std::net::{SocketAddr, TcpListener};
use std::process::Output;

use serde_json::json;

use super::kit::{JSON_BODY, TOKEN, Visitor, code, over_tls, owner, two_accounts};
use crate::support::{Partita, binary};

/// Everything that is not a page or the sign-in.
const ANSWERS: [&str; 9] = [
    "GET /api/status",
    "GET /api/settings",
    "GET /metrics",
    "GET /api/events",
    "GET /api/tables",
    "GET /api/queues",
    "GET /api/forward/table/Tables",
    "POST /api/sas",
    "POST /api/commands/freeze",
];

fn serve(arguments: &[&str]) -> Output {
    binary().args(["serve", "--in-memory", "--listen", "127.0.0.1:0"]).args(arguments).output().unwrap()
}

#[test]
fn away_from_loopback_there_is_no_answer_without_a_credential() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let server = Partita::start(&[
        "--in-memory",
        "--development",
        "--admin",
        "0.0.0.0:0",
        "--admin-token",
        TOKEN,
        "--dev-cert",
        &certificates,
        "--tls-listen",
        "127.0.0.1:0",
    ]);
    let (_, rest) = server.banner.split_once("Console and metrics: https://").unwrap();
    let address: SocketAddr = rest.split('/').next().unwrap().parse().unwrap();
    let send = |line: &str, more: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-partita-csrf: 1\r\nContent-Length: 0\r\n{more}\r\n"
        );
        over_tls(address, directory.path(), &request)
    };
    for line in ANSWERS {
        let refused = send(line, "");
        assert_eq!((refused.status, code(&refused)), (401, "NoSession".to_owned()), "{line}");
        let wrong = send(line, "Cookie: partita_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n");
        assert_eq!(wrong.status, 401, "{line}");
    }
    let wrong = send("GET /api/status", "Authorization: Bearer a-wrong-administrators-token\r\n");
    assert_eq!((wrong.status, code(&wrong)), (401, "WrongToken".to_owned()));
    let right = send("GET /api/status", &format!("Authorization: Bearer {TOKEN}\r\n"));
    assert_eq!(right.status, 200, "{}", right.text());

    let sign_in = |body: &str| {
        let length = body.len();
        let head = "POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
        over_tls(address, directory.path(), &format!("{head}Content-Length: {length}\r\n\r\n{body}"))
    };
    let development = sign_in(r#"{"development":true}"#);
    assert_eq!((development.status, code(&development)), (403, "DevelopmentElsewhere".to_owned()));
    let session = sign_in(&json!({ "admin_token": TOKEN }).to_string());
    assert_eq!(session.status, 200, "{}", session.text());
    assert!(session.header("set-cookie").unwrap().ends_with("; Secure"), "{session:?}");
}

#[test]
fn an_address_that_others_can_reach_needs_tls_and_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let (tls, token) =
        (["--dev-cert", &certificates, "--tls-listen", "127.0.0.1:0"], ["--admin-token", TOKEN]);
    let base = ["--development", "--admin", "0.0.0.0:0"];
    for arguments in [&base[..], &[&base[..], &tls].concat(), &[&base[..], &token].concat()] {
        let refused = serve(arguments);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains("admin-token-file"), "{arguments:?}: {text}");
    }
    // The development account's key is public.
    let refused = serve(&[&["--admin", "0.0.0.0:0"][..], &tls, &token].concat());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--development"));
}

#[test]
fn with_a_token_the_loopback_address_proves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let file = file.display().to_string();
    let server = Partita::start(&["--in-memory", "--admin-token-file", &file]);
    let mut visitor = Visitor::of(&server);
    assert_eq!(visitor.plain("GET", "/api/status", &[], b"").status, 401);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(visitor.plain("GET", "/api/status", &[("authorization", &bearer)], b"").status, 200);
    let mut developer = Visitor::developer(&server);
    assert_eq!(code(&developer.get("/api/status")), "NotAdmin");
    let mut administrator =
        Visitor::signed_in(&server, &json!({ "development": true, "admin_token": TOKEN }));
    assert_eq!(administrator.get("/api/status").status, 200);
    let alone = Visitor::of(&server).sign_in(&json!({ "admin_token": TOKEN }));
    assert_eq!(
        (alone.json()["rights"].as_str(), alone.json()["admin"].as_bool()),
        (Some("admin"), Some(true))
    );
}

#[test]
fn the_owner_of_an_account_is_not_the_administrator() {
    let server = two_accounts(&[]);
    let mut visitor = Visitor::signed_in(&server, &owner());
    let lines = ["GET /api/status", "GET /api/settings", "GET /metrics", "POST /api/commands/freeze"];
    let answers = lines.map(|line| {
        let (method, path) = line.split_once(' ').unwrap();
        let answer = visitor.send(method, path, &[], b"");
        (line, answer.status, answer.text().contains("NotAdmin"))
    });
    assert_eq!(answers, lines.map(|line| (line, 403, true)));
}

#[test]
fn a_name_that_was_pointed_here_is_refused() {
    let server = Partita::start(&["--in-memory", "--admin-host", "tables.example.com"]);
    let mut visitor = Visitor::developer(&server);
    let port = server.admin_address().port();
    let paths =
        ANSWERS.into_iter().chain(["GET /", "GET /console/", "GET /api/session", "POST /api/session"]);
    for line in paths {
        let (method, path) = line.split_once(' ').unwrap();
        for host in
            ["evil.example".to_owned(), format!("evil.example:{port}"), "localhost.evil.example".to_owned()]
        {
            let answer = visitor.send(method, path, &[("host", &host)], b"");
            assert_eq!((answer.status, code(&answer)), (421, "WrongHost".to_owned()), "{line} {host}");
        }
    }
    for host in ["localhost".to_owned(), format!("[::1]:{port}"), format!("Tables.Example.com:{port}")] {
        assert_eq!(visitor.send("GET", "/api/status", &[("host", &host)], b"").status, 200, "{host}");
    }
    let twice = visitor.send("GET", "/api/status", &[("host", "localhost"), ("host", "evil.example")], b"");
    assert_eq!(twice.status, 421);
    let absolute = visitor.send("GET", "http://localhost/api/status", &[("host", "localhost")], b"");
    assert_eq!((absolute.status, code(&absolute)), (400, "BadTarget".to_owned()));
}

#[test]
fn other_sites_can_neither_read_nor_write() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    let own = format!("http://{}", server.admin_address());
    for line in ANSWERS.into_iter().chain(["GET /api/session", "POST /api/session", "DELETE /api/session"]) {
        let (method, path) = line.split_once(' ').unwrap();
        for header in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let answer = visitor.send(method, path, &[header], b"");
            assert_eq!((answer.status, code(&answer)), (403, "CrossSite".to_owned()), "{line} {header:?}");
        }
    }
    assert_eq!(visitor.send("GET", "/api/status", &[("origin", &own)], b"").status, 200);
    let link =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(visitor.send("GET", "/console/", &link, b"").status, 200);
    assert_eq!(visitor.send("GET", "/api/tables", &link, b"").status, 403);
    assert_eq!(visitor.send("OPTIONS", "/api/status", &[("origin", "http://evil.example")], b"").status, 403);
}

#[test]
fn what_changes_something_needs_the_sessions_token() {
    let server = Partita::in_memory();
    let (mut visitor, other) = (Visitor::developer(&server), Visitor::developer(&server));
    let cookie = visitor.cookie.clone();
    let session = ("cookie", cookie.as_str());
    for (method, path) in [
        ("POST", "/api/commands/freeze"),
        ("POST", "/api/sas"),
        ("POST", "/api/forward/table/Tables"),
        ("DELETE", "/api/forward/table/Tables('T')"),
        ("PUT", "/api/forward/queue/jobs"),
        ("DELETE", "/api/session"),
    ] {
        let wrong = ["", "1", &other.csrf, &visitor.csrf[1..]].map(str::to_owned);
        for token in wrong {
            let headers = [session, JSON_BODY, ("x-partita-csrf", &token)];
            let answer = visitor.plain(method, path, &headers, b"{}");
            assert_eq!(
                (answer.status, code(&answer)),
                (403, "WrongCsrf".to_owned()),
                "{method} {path} {token:?}"
            );
        }
        let without = visitor.plain(method, path, &[session], b"");
        assert_eq!(code(&without), "WrongCsrf", "{method} {path}");
    }
    // Without a session, a header that no page of another site can send.
    assert_eq!(visitor.plain("POST", "/api/commands/reload", &[], b"").status, 403);
    assert_eq!(visitor.plain("POST", "/api/commands/reload", &[("x-partita-csrf", "1")], b"").status, 200);
    // A form of another site can send this type without asking.
    let form =
        visitor.plain("POST", "/api/session", &[("content-type", "text/plain")], br#"{"development":true}"#);
    assert_eq!(code(&form), "NotJson");
}

/// The ports on which a process listens.
fn listening(process: u32) -> usize {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let listens = lines.filter(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[3] == "0A" && sockets.iter().any(|socket| socket == fields[9])
    });
    listens.count()
}

#[test]
fn off_opens_nothing() {
    let on = Partita::in_memory();
    assert_eq!(listening(on.process_id()), 4, "tables, queues, blobs and the administration");
    let off = Partita::start(&["--in-memory", "--admin", "off"]);
    assert_eq!(listening(off.process_id()), 3);
    assert!(!off.banner.contains("Console"), "{}", off.banner);
}

#[test]
fn an_address_that_is_asked_for_must_be_free_and_the_usual_one_need_not() {
    let server = Partita::in_memory();
    let refused = serve(&["--admin", &server.admin_address().to_string()]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("--admin"), "{text}");

    // Held by this test, or by another program.
    let _usual = TcpListener::bind("127.0.0.1:10004");
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = binary();
    command.args([
        "serve",
        "--in-memory",
        "--listen",
        &free(),
        "--queue-listen",
        "off",
        "--blob-listen",
        "off",
        "--log-level",
        "error",
    ]);
    let without = Partita::spawn(command);
    assert!(!without.banner.contains("Console"), "{}", without.banner);
}

#[test]
fn other_users_of_this_machine_see_the_state_and_change_nothing() {
    // The server is this user's. The other user's program is a shell, which can open a connection by itself.
    let as_other = |server: &Partita, line: &str| {
        let address = server.admin_address();
        let script = format!(
            "exec 3<>/dev/tcp/{}/{}; printf '{line} HTTP/1.1\\r\\nHost: localhost\\r\\nx-partita-csrf: 1\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -1 <&3",
            address.ip(),
            address.port()
        );
        let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", &script];
        std::process::Command::new("setpriv").args(other).output()
    };
    let server = Partita::in_memory();
    match as_other(&server, "GET /api/status") {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).starts_with("HTTP/1.1 200"), "{output:?}");
        }
        _ => return testing::not_run("acting as another user takes root, setpriv (util-linux) and bash"),
    }
    for line in ["POST /api/commands/freeze", "GET /api/events"] {
        let output = as_other(&server, line).unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("HTTP/1.1 403"), "{line}: {output:?}");
    }
    let own = Visitor::of(&server).plain("POST", "/api/commands/freeze", &[("x-partita-csrf", "1")], b"");
    assert_eq!(own.status, 200);
}
