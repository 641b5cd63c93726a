//! Signing in and out.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::kit::{JSON_BODY, TOKEN, Visitor, code, other_owner, owner, two_accounts};
use crate::support::{ACCOUNT, KEY, Partita, binary};

fn token(arguments: &[&str]) -> String {
    let made = binary().arg("sas").args(arguments).output().unwrap();
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn every_credential_signs_in() {
    let server = two_accounts(&[]);
    let account_sas = token(&["account", "--permissions", "rl", "--services", "tq"]);
    let queue_sas = token(&["queue", "--queue", "jobs", "--permissions", "r"]);
    let tables = format!("http://{}/{ACCOUNT}", server.address);
    let queues = format!("http://{}/{ACCOUNT}", server.queue_address());
    for (credential, rights) in [
        (owner(), "owner"),
        (json!({ "development": true }), "owner"),
        (
            json!({ "connection_string": format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={tables}") }),
            "owner",
        ),
        (json!({ "connection_string": "UseDevelopmentStorage=true" }), "owner"),
        (
            json!({ "connection_string": format!("TableEndpoint={tables};SharedAccessSignature={account_sas}") }),
            "sas",
        ),
        (
            json!({ "connection_string": format!("QueueEndpoint={queues};SharedAccessSignature={account_sas}") }),
            "sas",
        ),
        (json!({ "sas": format!("{tables}/Books?{account_sas}") }), "sas"),
        (json!({ "sas": format!("?{account_sas}"), "account": ACCOUNT }), "sas"),
        (json!({ "sas": format!("http://127.0.0.1:10001/{ACCOUNT}/jobs?{queue_sas}") }), "sas"),
    ] {
        let mut visitor = Visitor::of(&server);
        let answer = visitor.sign_in(&credential);
        assert_eq!(answer.status, 200, "{credential}: {}", answer.text());
        let session = answer.json();
        assert_eq!((session["account"].as_str(), session["rights"].as_str()), (Some(ACCOUNT), Some(rights)));
        assert_eq!(session["endpoints"]["table"], tables.as_str());
        assert_eq!(session["admin"], false, "the server has a token");
        let again = visitor.get("/api/session");
        assert_eq!((again.status, again.json()["csrf"].clone()), (200, session["csrf"].clone()));
    }
}

#[test]
fn what_does_not_prove_anything_does_not_sign_in() {
    let server = two_accounts(&[]);
    let expired = token(&["account", "--permissions", "r", "--expires", "2020-01-01T00:00:00Z"]);
    let forged = token(&["account", "--permissions", "r"]).replace("sp=r&", "sp=rwd&");
    let tables = format!("http://{}/{ACCOUNT}", server.address);
    for (credential, expected) in [
        (json!({ "account": "other", "key": KEY }), "WrongKey"),
        (json!({ "account": "nobody", "key": KEY }), "WrongKey"),
        (json!({ "account": ACCOUNT, "key": "not Base64" }), "WrongKey"),
        (json!({ "sas": format!("{tables}?{expired}") }), "WrongSas"),
        (json!({ "sas": format!("{tables}?{forged}") }), "WrongSas"),
        (json!({ "sas": format!("http://{}/other?{forged}", server.address) }), "WrongSas"),
        (json!({ "admin_token": "not-the-administrators-token" }), "WrongToken"),
        (json!({ "connection_string": "AccountName=" }), "ConnectionStringInvalid"),
        (json!({ "account": ACCOUNT }), "SignInIncomplete"),
        (json!({ "development": true, "key": KEY }), "SignInIncomplete"),
        (json!({}), "SignInIncomplete"),
        (json!({ "user": "root" }), "NotJson"),
        (json!("text"), "NotJson"),
    ] {
        // Some of these count as failures, of which only a few are allowed in a second.
        let answer = loop {
            let answer = Visitor::of(&server).sign_in(&credential);
            if answer.status != 429 {
                break answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        };
        assert!(answer.status >= 400 && code(&answer) == expected, "{credential}: {}", answer.text());
        assert!(answer.header("set-cookie").is_none() && !answer.text().contains(KEY));
    }
    let large = Visitor::of(&server).plain("POST", "/api/session", &[JSON_BODY], &vec![b' '; 70_000]);
    assert_eq!((large.status, code(&large)), (413, "BodyTooLarge".to_owned()));
}

#[test]
fn scripts_can_not_read_the_cookie_and_other_sites_do_not_send_it() {
    let server = Partita::in_memory();
    let answer = Visitor::of(&server).sign_in(&json!({ "development": true }));
    let cookie = answer.header("set-cookie").unwrap();
    let attributes: HashSet<&str> = cookie.split("; ").skip(1).collect();
    assert_eq!(attributes, HashSet::from(["HttpOnly", "SameSite=Strict", "Path=/"]), "{cookie}");
    let id = cookie.split(';').next().unwrap().strip_prefix("partita_session=").unwrap();
    assert_eq!(id.len(), 43, "32 bytes");
    assert!(!answer.text().contains(id), "only in the cookie");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[test]
fn wrong_keys_are_soon_not_even_looked_at() {
    let server = two_accounts(&[]);
    let mut visitor = Visitor::of(&server);
    let wrong = json!({ "account": "other", "key": KEY });
    let first_limited = (0..100).find(|_| visitor.sign_in(&wrong).status == 429);
    assert!(first_limited.is_some_and(|tries| tries >= 3), "{first_limited:?}");
    let limited = visitor.sign_in(&wrong);
    // More may have become possible since, but then it is a failure again.
    assert!(matches!(limited.status, 403 | 429), "{}", limited.status);
    // Half a second later one more is possible, so a slow machine may have to ask again.
    let right = testing::wait_until("the limit is before the check", || {
        while visitor.sign_in(&wrong).status != 429 {}
        let right = visitor.sign_in(&owner());
        (right.status == 429).then_some(right)
    });
    assert_eq!(right.header("retry-after"), Some("1"));
    // The same holds for the administrator's token.
    let bearer = [("authorization", "Bearer a-guessed-administrators-token")];
    assert!((0..100).any(|_| visitor.plain("GET", "/api/status", &bearer, b"").status == 429));
}

#[test]
fn signing_out_ends_a_session_and_signing_in_again_ends_the_one_before() {
    let server = Partita::in_memory();
    let mut visitor = Visitor::developer(&server);
    let first = visitor.cookie.clone();
    let (cookie, csrf) = (first.clone(), visitor.csrf.clone());
    let again = visitor.plain(
        "POST",
        "/api/session",
        &[JSON_BODY, ("cookie", &cookie), ("x-partita-csrf", &csrf)],
        br#"{"development":true}"#,
    );
    assert_eq!(again.status, 200);
    assert_eq!(visitor.plain("GET", "/api/session", &[("cookie", &first)], b"").status, 401);

    let mut visitor = Visitor::developer(&server);
    let out = visitor.send("DELETE", "/api/session", &[], b"");
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let gone = visitor.get("/api/session");
    assert_eq!((gone.status, gone.json()["development"].as_bool()), (401, Some(true)));
    assert_eq!(visitor.get("/api/tables").status, 401);
}

#[test]
fn ten_thousand_sign_ins_end_no_session_of_another_account() {
    let server = two_accounts(&[]);
    let mut other = Visitor::signed_in(&server, &other_owner());
    let mut greedy = Visitor::of(&server);
    let first = {
        greedy.sign_in(&owner());
        greedy.cookie.clone()
    };
    let mut seen = HashSet::new();
    for _ in 0..10_000 {
        let answer = greedy.plain("POST", "/api/session", &[JSON_BODY], owner().to_string().as_bytes());
        assert_eq!(answer.status, 200);
        assert!(seen.insert(answer.header("set-cookie").unwrap().to_owned()));
    }
    assert_eq!(other.get("/api/session").status, 200);
    assert_eq!(greedy.plain("GET", "/api/session", &[("cookie", &first)], b"").status, 401);
    let bearer = format!("Bearer {TOKEN}");
    let status = other.plain("GET", "/api/status", &[("authorization", &bearer)], b"").json();
    assert!(status["sessions"].as_u64().is_some_and(|count| count <= 129), "{status}");
}

#[test]
fn a_session_does_not_outlive_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("partita.toml");
    let write =
        |key: &str| std::fs::write(&file, format!("[[account]]\nname = 'shop'\nkey = '{key}'\n")).unwrap();
    let (old, new) = ("AAAAAAAAAAAAAAAAAAAAAA==", "BBBBBBBBBBBBBBBBBBBBBA==");
    write(old);
    let server = Partita::start(&["--in-memory", "--config", &file.display().to_string()]);
    let mut visitor = Visitor::signed_in(&server, &json!({ "account": "shop", "key": old }));
    assert_eq!(visitor.table("GET", "/Tables", "").status, 200);
    write(new);
    let reloaded = visitor.send("POST", "/api/commands/reload", &[], b"").json();
    assert_eq!(reloaded["accounts"], Value::from(vec!["shop"]), "{reloaded}");
    assert_eq!(visitor.table("GET", "/Tables", "").status, 403);
    assert_eq!(visitor.get("/api/tables").status, 403);
    let sas = json!({ "kind": "table", "resource": "Books", "permissions": "r" }).to_string();
    assert_eq!(visitor.send("POST", "/api/sas", &[JSON_BODY], sas.as_bytes()).status, 403);
}
