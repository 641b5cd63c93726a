//! HTTPS with a development certificate, beside plain HTTP and instead of it.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::support::http::{Answer, read_answer};
use crate::support::{ACCOUNT, Client, KEY, Partita};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// One signed GET over TLS from a client that trusts only this authority.
fn get(address: SocketAddr, authority: &Path, path: &str) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::from(address.ip());
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    let target = format!("/{ACCOUNT}{path}");
    let date = httpdate::fmt_http_date(SystemTime::now());
    let authorization = Client::new(address, ACCOUNT, KEY).authorization(&target, &date);
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nHost: {address}\r\nx-ms-date: {date}\r\nx-ms-version: 2019-02-02\r\n\
         Accept: application/json\r\nAuthorization: {authorization}\r\n\r\n"
    )?;
    read_answer(&mut BufReader::new(stream), false)
}

fn https_address(server: &Partita) -> SocketAddr {
    let (_, rest) = server.banner.split_once("https://").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

#[test]
fn http_and_https_serve_the_same_account_and_links_have_the_right_scheme() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let server = Partita::start(&["--in-memory", "--dev-cert", &certificates, "--tls-listen", "127.0.0.1:0"]);
    let body = br#"{"TableName":"Books"}"#;
    assert_eq!(server.client().send("POST", "/Tables", &[("Accept", "application/json")], body).status, 201);
    let address = https_address(&server);
    let answer = get(address, &directory.path().join("authority.pem"), "/Tables").unwrap();
    assert_eq!(answer.status, 200);
    let metadata = format!("https://{address}/{ACCOUNT}/$metadata#Tables");
    assert_eq!(answer.json()["odata.metadata"], metadata.as_str());
    assert_eq!(answer.json()["value"][0]["TableName"], "Books");
}

#[test]
fn a_client_that_trusts_another_authority_does_not_connect() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |directory: &Path| {
        let directory = directory.display().to_string();
        Partita::start(&["--in-memory", "--no-http", "--dev-cert", &directory, "--tls-listen", "127.0.0.1:0"])
    };
    let (server, _other) = (start(ours.path()), start(theirs.path()));
    let address = https_address(&server);
    assert!(get(address, &theirs.path().join("authority.pem"), "/Tables").is_err());
    assert_eq!(get(address, &ours.path().join("authority.pem"), "/Tables").unwrap().status, 200);
    assert!(!server.banner.contains("http://"), "plain HTTP is off: {}", server.banner);
}

#[test]
fn plain_text_on_the_tls_port_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let server = Partita::start(&["--in-memory", "--dev-cert", &certificates, "--tls-listen", "127.0.0.1:0"]);
    let address = https_address(&server);
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(get(address, &directory.path().join("authority.pem"), "/Tables").unwrap().status, 200);
}
