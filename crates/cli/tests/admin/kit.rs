//! A client of the administration, with or without a session, over plain HTTP or TLS.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::http::read_answer;
use crate::support::{ACCOUNT, Answer, Client, KEY, Partita};

pub const JSON_BODY: (&str, &str) = ("content-type", "application/json");
pub const JSON: (&str, &str) = ("accept", "application/json;odata=nometadata");
pub const TOKEN: &str = "an-administrators-token";

/// One connection to the administration, and what its browser remembers.
pub struct Visitor {
    client: Client,
    pub cookie: String,
    pub csrf: String,
}

impl Visitor {
    pub fn of(server: &Partita) -> Self {
        Self::at(server.admin_address())
    }

    pub fn at(address: SocketAddr) -> Self {
        let (cookie, csrf) = (String::new(), String::new());
        Self { client: Client::new(address, ACCOUNT, KEY), cookie, csrf }
    }

    /// Signed in to the development account.
    pub fn developer(server: &Partita) -> Self {
        Self::signed_in(server, &json!({ "development": true }))
    }

    pub fn signed_in(server: &Partita, credential: &Value) -> Self {
        let mut visitor = Self::of(server);
        let answer = visitor.sign_in(credential);
        assert_eq!(answer.status, 200, "{}", answer.text());
        visitor
    }

    pub fn sign_in(&mut self, credential: &Value) -> Answer {
        let answer = self.plain("POST", "/api/session", &[JSON_BODY], credential.to_string().as_bytes());
        if answer.status == 200 {
            let cookie = answer.header("set-cookie").unwrap();
            self.cookie = cookie.split(';').next().unwrap().to_owned();
            self.csrf = answer.json()["csrf"].as_str().unwrap().to_owned();
        }
        answer
    }

    /// Only this, without the session.
    pub fn plain(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let sent = self.client.send_raw(method, target, headers, body);
        sent.unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }

    /// In the session, with its token against cross-site requests.
    pub fn send(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let (cookie, csrf) = (self.cookie.clone(), self.csrf.clone());
        let own = [("cookie", cookie.as_str()), ("x-partita-csrf", csrf.as_str())];
        let own = own.into_iter().filter(|(_, value)| !value.is_empty());
        let all: Vec<(&str, &str)> = own.chain(headers.iter().copied()).collect();
        self.plain(method, target, &all, body)
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.send("GET", target, &[], b"")
    }

    /// To the table service.
    pub fn table(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let target = format!("/api/forward/table{path}");
        self.send(method, &target, &[JSON, JSON_BODY], body.as_bytes())
    }

    pub fn create_table(&mut self, name: &str) {
        let created = self.table("POST", "/Tables", &json!({ "TableName": name }).to_string());
        assert_eq!(created.status, 201, "{}", created.text());
    }
}

/// The code of a refusal of the administration.
pub fn code(answer: &Answer) -> String {
    answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
}

/// One request over TLS to a server with a development certificate in this directory.
pub fn over_tls(address: SocketAddr, certificates: &Path, request: &str) -> Answer {
    let mut roots = RootCertStore::empty();
    let authority = certificates.join("authority.pem");
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
    let connection = ClientConnection::new(Arc::new(config), ServerName::from(address.ip())).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    write!(stream, "{request}").unwrap();
    read_answer(&mut BufReader::new(stream), request.starts_with("HEAD")).unwrap()
}

/// Two accounts, and a token so that sessions are not the administrator's.
pub fn two_accounts(arguments: &[&str]) -> Partita {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let accounts = [format!("{ACCOUNT}:{KEY}"), format!("other:{key}")].join(";");
    let own = ["--in-memory", "--account", &accounts, "--admin-token", TOKEN];
    Partita::start(&[&own[..], arguments].concat())
}

pub fn owner() -> Value {
    json!({ "account": ACCOUNT, "key": KEY })
}

pub fn other_owner() -> Value {
    json!({ "account": "other", "key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" })
}
