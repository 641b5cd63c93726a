//! Bearer tokens against the real binary: what each role may do, what is refused and how, what is logged.
//! Each check of a token by itself is in `src/bearer/tests.rs`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::http::read_answer;
use crate::support::{ACCOUNT, Answer, Client, Partita};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const ISSUER: &str = "https://sts.windows.net/tenant/";
const READER: &str = "Storage Table Data Reader";
const CONTRIBUTOR: &str = "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3";
const NEW: &str = "2020-12-06";
const OLD: &str = "2019-02-02";
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/contoso/oauth2/authorize resource_id=https://storage.azure.com";

/// Signs tokens with its own key.
struct Issuer {
    kid: &'static str,
    key: EcdsaKeyPair,
    public: Value,
}

impl Issuer {
    fn new(kid: &'static str) -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let (x, y) = pair.public_key_raw()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let public = json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y });
        let private = pair.serialize_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &private, &SystemRandom::new())
            .unwrap();
        Self { kid, key, public }
    }

    fn publish(&self, path: &Path) {
        std::fs::write(path, json!({ "keys": [self.public] }).to_string()).unwrap();
    }

    /// A valid token of a reader, with these claims changed.
    fn token(&self, changes: Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({
            "iss": ISSUER, "aud": "https://storage.azure.com", "nbf": now - 5, "exp": now + 600, "roles": [READER],
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = json!({ "typ": "JWT", "alg": "ES256", "kid": self.kid }).to_string();
        let message =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn of_role(&self, role: &str) -> String {
        self.token(json!({ "roles": role }))
    }
}

struct Setting {
    issuer: Issuer,
    directory: tempfile::TempDir,
    server: Partita,
}

impl Setting {
    fn new(more: &[&str]) -> Self {
        let issuer = Issuer::new("first");
        let directory = tempfile::tempdir().unwrap();
        let jwks = directory.path().join("jwks.json");
        issuer.publish(&jwks);
        let jwks = jwks.display().to_string();
        let arguments = ["--bearer-issuer", ISSUER, "--bearer-jwks", &jwks, "--bearer-tenant", "contoso"];
        let log = directory.path().join("log");
        let server = Partita::logging_to(&log, "warn", &[&arguments, more].concat());
        Self { issuer, directory, server }
    }

    fn over_http() -> Self {
        Self::new(&["--bearer-over-http"])
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    fn get_tables(&self, authorization: Option<&str>, version: &str) -> Answer {
        let mut headers = vec![("x-ms-version", version), ("Accept", "application/json")];
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let target = format!("/{ACCOUNT}/Tables");
        self.server.client().send_raw("GET", &target, &headers, b"").unwrap()
    }
}

fn send(client: &mut Client, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let content_type = match path {
        "/$batch" => "multipart/mixed; boundary=b",
        _ if path.contains("comp=properties") => "application/xml",
        _ => "application/json",
    };
    let mut headers = vec![
        ("Authorization", authorization.as_str()),
        ("x-ms-version", NEW),
        ("Accept", "application/json;odata=nometadata"),
        ("Content-Type", content_type),
    ];
    if method == "DELETE" || path.contains("'held'") {
        headers.push(("If-Match", "*"));
    }
    let target = format!("/{ACCOUNT}{path}");
    client.send_raw(method, &target, &headers, body.as_bytes()).unwrap()
}

fn batch(row: &str) -> String {
    format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\r\nPOST /Books HTTP/1.1\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n--c--\r\n--b--\r\n"
    )
}

/// A blob's token that the user of this key has signed.
fn delegated(key: &str, permissions: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = key.split_once(&format!("<{name}>")).unwrap();
        rest.split_once('<').unwrap().0.to_owned()
    };
    let query = format!(
        "sv=2021-08-06&sr=c&sp={permissions}&se=2099-01-01T00:00:00Z&skoid={}&sktid={}&skt={}&ske={}&sks=b&skv={}&sig=x",
        field("SignedOid"),
        field("SignedTid"),
        field("SignedStart"),
        field("SignedExpiry"),
        field("SignedVersion"),
    );
    let query = protocol::QueryString::parse(&query).unwrap();
    let target = protocol::signing::sas::BlobTarget { container: "box", blob: Some("b") };
    let (sas, _) = protocol::signing::sas::Sas::read_blob(&query, target).unwrap().unwrap();
    let signing = protocol::signing::AccountKey::parse(&field("Value")).unwrap();
    sas.to_query(&sas.sign(ACCOUNT, &signing))
}

#[test]
fn a_user_signs_tokens_that_allow_no_more_than_the_roles() {
    let setting = Setting::over_http();
    let mut client = setting.server.blob_client();
    let version = ("x-ms-version", "2021-08-06");
    assert_eq!(client.send("PUT", "/box?restype=container", &[version], b"").status, 201);
    let typed = [version, ("x-ms-blob-type", "BlockBlob")];
    assert_eq!(client.send("PUT", "/box/b", &typed, b"content").status, 201);
    let until = common::DateTime::now().plus(std::time::Duration::from_secs(3600)).to_seconds_string();
    let body = format!("<KeyInfo><Expiry>{until}</Expiry></KeyInfo>");
    let mut key = |role: &str| {
        let authorization = format!("Bearer {}", setting.issuer.of_role(role));
        let headers = [("Authorization", authorization.as_str()), version];
        let target = format!("/{ACCOUNT}/?restype=service&comp=userdelegationkey");
        client.send_raw("POST", &target, &headers, body.as_bytes()).unwrap()
    };
    let (reader, writer) = (key("Storage Blob Data Reader"), key("Storage Blob Data Contributor"));
    assert_eq!((reader.status, writer.status), (200, 200), "{}", reader.text());
    assert_eq!(key("Storage Table Data Reader").code(), "AuthorizationPermissionMismatch");
    let mut client = setting.server.blob_client();
    let mut with = |key: &Answer, permissions: &str, method: &str| {
        let token = delegated(&key.text(), permissions);
        let target = format!("/{ACCOUNT}/box/b?{token}");
        let answer = client.send_raw(method, &target, &typed, b"").unwrap();
        if answer.status < 300 { answer.status.to_string() } else { answer.code() }
    };
    assert_eq!(with(&reader, "rw", "GET"), "200");
    assert_eq!(with(&reader, "rw", "PUT"), "AuthorizationPermissionMismatch");
    assert_eq!(with(&writer, "rw", "PUT"), "201");
    assert_eq!(with(&writer, "r", "PUT"), "AuthorizationPermissionMismatch");
    // With an account key nobody gets one.
    let mut client = setting.server.blob_client();
    let refused =
        client.send("POST", "/?restype=service&comp=userdelegationkey", &[version], body.as_bytes());
    assert_eq!((refused.status, refused.code().as_str()), (403, "AuthenticationFailed"));
    assert!(refused.text().contains("Only authentication scheme Bearer is supported"), "{}", refused.text());
}

#[test]
fn each_role_may_do_the_same_as_in_the_real_service() {
    let setting = Setting::over_http();
    let mut owner = setting.server.client();
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    assert_eq!(owner.send("POST", "/Tables", &json, br#"{"TableName":"Books"}"#).status, 201);
    let held = br#"{"PartitionKey":"p","RowKey":"held"}"#;
    assert_eq!(owner.send("POST", "/Books", &json, held).status, 201);

    let tokens = ["Backup Reader", READER, CONTRIBUTOR].map(|role| setting.issuer.of_role(role));
    let mismatch = (403, "AuthorizationPermissionMismatch");
    let missing = (404, "ResourceNotFound");
    let held = "/Books(PartitionKey='p',RowKey='held')";
    let policies = "<?xml version=\"1.0\"?><SignedIdentifiers/>";
    let insert = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    let batch = batch("batched");
    // What comes of it with another role, as a reader, as a contributor.
    for (method, path, body, expected) in [
        ("GET", "/Tables", "", [mismatch, (200, ""), (200, "")]),
        ("POST", "/Tables", r#"{"TableName":"More"}"#, [mismatch, mismatch, (201, "")]),
        ("DELETE", "/Tables('More')", "", [mismatch, mismatch, (204, "")]),
        ("GET", "/Books()", "", [mismatch, (200, ""), (200, "")]),
        ("GET", held, "", [mismatch, (200, ""), (200, "")]),
        ("POST", "/Books", insert, [mismatch, mismatch, (201, "")]),
        ("PUT", held, "{}", [mismatch, mismatch, (204, "")]),
        ("MERGE", held, "{}", [mismatch, mismatch, (204, "")]),
        ("PUT", "/Books(PartitionKey='p',RowKey='put')", "{}", [mismatch, mismatch, (204, "")]),
        ("DELETE", held, "", [mismatch, mismatch, (204, "")]),
        ("POST", "/$batch", &batch, [mismatch, (202, "AuthorizationPermissionMismatch"), (202, "")]),
        ("GET", "/?restype=service&comp=properties", "", [mismatch; 3]),
        ("PUT", "/?restype=service&comp=properties", "<a/>", [mismatch; 3]),
        ("GET", "/Books?comp=acl", "", [missing; 3]),
        ("PUT", "/Books?comp=acl", policies, [missing; 3]),
    ] {
        for (token, expected) in tokens.iter().zip(expected) {
            let answer = send(&mut owner, token, method, path, body);
            assert_eq!(
                (answer.status, answer.code().as_str()),
                expected,
                "{method} {path}: {}",
                answer.text()
            );
        }
    }
    let answer = send(&mut owner, &tokens[1], "GET", "/Books()?$select=RowKey", "");
    assert_eq!(answer.text(), r#"{"value":[{"RowKey":"batched"},{"RowKey":"new"},{"RowKey":"put"}]}"#);
    let answer = owner.send("GET", "/Tables", &json, b"");
    assert_eq!(answer.status, 200, "keys go on signing");
    let log = setting.log();
    assert!(
        log.contains(r#"a bearer token with the roles [\"Backup Reader\"] does not permit listing tables"#),
        "the roles that a token names: {log}"
    );
}

/// The same of queues (specification: queue-operations 7.5).
#[test]
fn each_role_of_queues_may_do_the_same_as_in_the_real_service() {
    let setting = Setting::over_http();
    let mut client = setting.server.queue_client();
    let roles = [
        "Storage Table Data Contributor",
        "Storage Queue Data Reader",
        "Storage Queue Data Message Sender",
        "8a0f0c08-91a1-4084-bc3d-661d67233fed",
        "Storage Queue Data Contributor",
    ];
    let tokens = roles.map(|role| setting.issuer.of_role(role));
    let text = "<QueueMessage><MessageText>a</MessageText></QueueMessage>";
    let message = "/jobs/messages/0a1b2c3d-0000-4000-8000-0123456789ab?popreceipt=AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3D&visibilitytimeout=0";
    // The letters of those that may: reader, sender, processor, contributor.
    for (method, path, body, may, status) in [
        ("GET", "/?comp=list", "", "rc", 200),
        ("PUT", "/jobs", "", "c", 204),
        ("GET", "/jobs?comp=metadata", "", "rc", 200),
        ("PUT", "/jobs?comp=metadata", "", "c", 204),
        ("POST", "/jobs/messages", text, "sc", 201),
        ("GET", "/jobs/messages?peekonly=true", "", "rpc", 200),
        ("GET", "/jobs/messages", "", "pc", 200),
        ("PUT", message, "", "c", 404),
        ("DELETE", message, "", "pc", 404),
        ("DELETE", "/jobs/messages", "", "c", 204),
        ("GET", "/?restype=service&comp=properties", "", "", 200),
        ("DELETE", "/jobs", "", "c", 204),
    ] {
        for (token, letter) in tokens.iter().zip("-rspc".chars()) {
            client.send("PUT", "/jobs", &[], b"");
            let answer = send(&mut client, token, method, path, body);
            let expected = if may.contains(letter) { status } else { 403 };
            assert_eq!(answer.status, expected, "{method} {path} as {letter}: {}", answer.text());
        }
    }
    let contributor = format!("Bearer {}", tokens[4]);
    let mut policies = |version| {
        client.send("PUT", "/jobs", &[], b"");
        let headers = [("Authorization", contributor.as_str()), ("x-ms-version", version)];
        client.send_raw("GET", &format!("/{ACCOUNT}/jobs?comp=acl"), &headers, b"").unwrap().status
    };
    assert_eq!((policies("2021-02-12"), policies("2025-07-05")), (403, 200));
}

#[test]
fn a_token_for_another_audience_is_told_so_by_queues() {
    let setting = Setting::over_http();
    let token = setting.issuer.token(json!({ "aud": "https://vault.azure.net" }));
    let answer = send(&mut setting.server.queue_client(), &token, "GET", "/?comp=list", "");
    assert_eq!((answer.status, answer.header("x-ms-error-code")), (401, Some("InvalidAuthenticationInfo")));
    assert_eq!((answer.header("WWW-Authenticate"), answer.header("x-ms-version")), (Some(CHALLENGE), None));
    let detail = "<AuthenticationErrorDetail>Audience validation failed. Audience did not match.</AuthenticationErrorDetail></Error>";
    assert!(answer.text().ends_with(detail), "{}", answer.text());
    let own = setting.issuer.token(json!({
        "aud": format!("https://{ACCOUNT}.queue.core.windows.net"), "roles": "Storage Queue Data Reader",
    }));
    assert_eq!(send(&mut setting.server.queue_client(), &own, "GET", "/?comp=list", "").status, 200);
}

/// Roles that manage the account may read and write service properties, but no data.
#[test]
fn properties_and_statistics_are_for_roles_over_the_account() {
    let setting = Setting::over_http();
    let mut client = setting.server.client();
    let properties = "/?restype=service&comp=properties";
    let cors = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    let statistics = |client: &mut Client, token: &str| {
        let authorization = format!("Bearer {token}");
        let target = format!("/{ACCOUNT}-secondary/?restype=service&comp=stats");
        client
            .send_raw("GET", &target, &[("Authorization", &authorization), ("x-ms-version", NEW)], b"")
            .unwrap()
    };
    for (roles, manages, reads) in [
        (json!(["Owner"]), true, false),
        (json!("8e3af657-a8ff-443c-a75c-2fe8c4bcb635"), true, false),
        (json!(["Contributor"]), true, false),
        (json!("b24988ac-6180-42a0-ab88-20f7382dd24c"), true, false),
        (json!(["Storage Account Contributor"]), true, false),
        (json!("17d1049b-9a84-46fb-8f53-869881c3d3ab"), true, false),
        (json!([CONTRIBUTOR, "Owner"]), true, true),
        (json!([CONTRIBUTOR]), false, true),
        (json!([READER]), false, true),
        (json!(["Reader"]), false, false),
        (json!([]), false, false),
    ] {
        let token = setting.issuer.token(json!({ "roles": roles }));
        let expected = |status| if manages { status } else { 403 };
        assert_eq!(send(&mut client, &token, "GET", properties, "").status, expected(200), "{roles}");
        assert_eq!(send(&mut client, &token, "PUT", properties, cors).status, expected(202), "{roles}");
        assert_eq!(statistics(&mut client, &token).status, expected(200), "{roles}");
        let tables = send(&mut client, &token, "GET", "/Tables", "").status;
        assert_eq!(tables, if reads { 200 } else { 403 }, "{roles}");
    }
    let log = setting.log();
    assert!(log.contains("SetTableServiceProperties") && log.contains("comp"), "{log}");
}

#[test]
fn a_request_without_credentials_is_challenged_from_version_2020_12_06_on() {
    let setting = Setting::over_http();
    let check = |authorization: Option<&str>, version, expected: (u16, &str), challenge| {
        let answer = setting.get_tables(authorization, version);
        assert_eq!((answer.status, answer.code().as_str()), expected, "{authorization:?} {version}");
        assert_eq!(answer.header("www-authenticate"), challenge, "{authorization:?} {version}");
        answer
    };
    check(None, NEW, (401, "NoAuthenticationInformation"), Some(CHALLENGE));
    check(None, OLD, (403, "AuthenticationFailed"), None);
    let answer = check(Some("Bearer a.b.c"), NEW, (401, "InvalidAuthenticationInfo"), Some(CHALLENGE));
    assert_eq!(answer.header("x-ms-error-code"), Some("InvalidAuthenticationInfo"));
    assert_eq!(answer.header("server"), Some("Microsoft-HTTPAPI/2.0"));
    let text = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    assert!(answer.text().contains(text), "{}", answer.text());
    check(Some("Bearer a.b.c"), OLD, (403, "AuthenticationFailed"), None);
    for malformed in ["Bearer", "Bearer a b", "Bear a", "SharedKey"] {
        for version in [NEW, OLD] {
            check(Some(malformed), version, (400, "InvalidAuthenticationInfo"), None);
        }
    }
}

#[test]
fn each_defect_is_refused_and_logged_without_the_token() {
    let setting = Setting::over_http();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let issuer = &setting.issuer;
    for (token, why) in [
        (issuer.token(json!({ "exp": now - 1000 })), "the bearer token expired 100"),
        (issuer.token(json!({ "nbf": now + 1000 })), "the bearer token becomes valid in "),
        (issuer.token(json!({ "aud": "https://vault.azure.net" })), "https://vault.azure.net"),
        (issuer.token(json!({ "aud": "https://other.table.core.windows.net" })), "https://other.table"),
        (issuer.token(json!({ "iss": "https://sts.windows.net/else/" })), "https://sts.windows.net/else/"),
        (Issuer::new("first").token(json!({})), "the bearer token's signature is not that of key"),
        (Issuer::new("unknown").token(json!({})), "the JWKS holds no key"),
    ] {
        let authorization = format!("Bearer {token}");
        for (version, expected) in [(NEW, 401), (OLD, 403)] {
            assert_eq!(setting.get_tables(Some(&authorization), version).status, expected, "{why}");
        }
        assert!(setting.log().contains(why), "{why}");
        assert!(!setting.log().contains(&token), "a token must never be shown");
    }
    let own = issuer.token(json!({ "aud": format!("https://{ACCOUNT}.table.core.windows.net/") }));
    assert_eq!(setting.get_tables(Some(&format!("bearer {own}")), OLD).status, 200);
}

#[test]
fn tokens_over_plain_http_are_refused_unless_a_setting_allows_them() {
    let setting = Setting::new(&[]);
    let good = format!("Bearer {}", setting.issuer.token(json!({})));
    for version in [NEW, OLD] {
        let answer = setting.get_tables(Some(&good), version);
        assert_eq!((answer.status, answer.code().as_str()), (403, "AuthenticationFailed"));
        assert_eq!(answer.header("www-authenticate"), None);
    }
    assert!(setting.log().contains("bearer tokens are accepted over HTTPS only"));
}

/// Reads the tables over HTTPS. The server has made its certificate in this directory.
fn get_over_tls(server: &Partita, certificates: &Path, version: &str, token: &str) -> Answer {
    let (_, rest) = server.banner.split_once("https://").unwrap();
    let address: SocketAddr = rest.split('/').next().unwrap().parse().unwrap();

    let mut roots = RootCertStore::empty();
    let authority = certificates.join("authority.pem");
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), address.ip().into()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    write!(
        stream,
        "GET /{ACCOUNT}/Tables HTTP/1.1\r\nHost: {address}\r\nx-ms-version: {version}\r\n\
         Accept: application/json\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    read_answer(&mut BufReader::new(stream), false).unwrap()
}

#[test]
fn tokens_over_https_are_accepted() {
    let certificates = tempfile::tempdir().unwrap();
    let path = certificates.path().display().to_string();
    let setting = Setting::new(&["--dev-cert", &path, "--tls-listen", "127.0.0.1:0"]);
    let token = setting.issuer.token(json!({}));
    assert_eq!(get_over_tls(&setting.server, certificates.path(), NEW, &token).status, 200);
}

#[test]
fn bearer_tokens_are_off_by_default() {
    let certificates = tempfile::tempdir().unwrap();
    let path = certificates.path().display().to_string();
    let server = Partita::start(&["--in-memory", "--dev-cert", &path, "--tls-listen", "127.0.0.1:0"]);
    let good = Issuer::new("first").token(json!({}));
    let get = |authorization: &str| {
        let headers = [("Authorization", authorization), ("x-ms-version", NEW)];
        server.client().send_raw("GET", &format!("/{ACCOUNT}/Tables"), &headers, b"").unwrap()
    };
    let told = |answer: &Answer| {
        (answer.status, answer.code(), answer.header("www-authenticate").map(str::to_owned))
    };
    let challenge = CHALLENGE.replace("contoso", "common");
    // As any token that is not accepted.
    let plain = get(&format!("Bearer {good}"));
    assert_eq!(told(&plain), (403, "AuthenticationFailed".into(), None));
    let new = get_over_tls(&server, certificates.path(), NEW, &good);
    assert_eq!(told(&new), (401, "InvalidAuthenticationInfo".into(), Some(challenge.clone())));
    let old = get_over_tls(&server, certificates.path(), OLD, &good);
    assert_eq!(told(&old), (403, "AuthenticationFailed".into(), None));
    for malformed in ["Bearer", "Bearer a b"] {
        let answer = get(malformed);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "InvalidAuthenticationInfo"),
            "{malformed}"
        );
    }
    let headers = [("x-ms-version", NEW)];
    let answer = server.client().send_raw("GET", &format!("/{ACCOUNT}/Tables"), &headers, b"").unwrap();
    assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
}

#[test]
fn configured_audiences_replace_the_default_ones() {
    let setting =
        Setting::new(&["--bearer-over-http", "--bearer-audience", "api://a", "--bearer-audience", "api://b"]);
    for (audience, expected) in [("api://a", 200), ("api://b", 200), ("https://storage.azure.com", 401)] {
        let token = setting.issuer.token(json!({ "aud": audience }));
        assert_eq!(setting.get_tables(Some(&format!("Bearer {token}")), NEW).status, expected, "{audience}");
    }
}

#[test]
fn sighup_reloads_the_keys_and_a_bad_file_changes_nothing() {
    let setting = Setting::over_http();
    let (first, second) = (&setting.issuer, Issuer::new("second"));
    let jwks = setting.directory.path().join("jwks.json");
    let status = |issuer: &Issuer| {
        setting.get_tables(Some(&format!("Bearer {}", issuer.token(json!({})))), NEW).status
    };
    let hang_up = || testing::signal(setting.server.process_id(), "HUP");
    assert_eq!((status(first), status(&second)), (200, 401));
    second.publish(&jwks);
    hang_up();
    testing::wait_until("the new key is there", || (status(&second) == 200).then_some(()));
    assert_eq!(status(first), 401);
    std::fs::write(&jwks, "nonsense").unwrap();
    hang_up();
    testing::wait_until("the bad file is noticed", || setting.log().contains("are unchanged").then_some(()));
    assert_eq!(status(&second), 200);
}
