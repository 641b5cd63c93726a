//! A span of each request, sent to a collector with OTLP over HTTP or HTTPS.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Client, Partita, binary};

const JSON: [(&str, &str); 2] =
    [("Accept", "application/json;odata=nometadata"), ("Content-Type", "application/json")];

/// The head and the body of a message.
type Posted = (String, Vec<u8>);

fn expect(client: &mut Client, method: &str, path: &str, headers: &[(&str, &str)], body: &str, status: u16) {
    let answer = client.send(method, path, &[&JSON, headers].concat(), body.as_bytes());
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
}

/// A collector that takes messages and hands them to the test; with TLS if there is a configuration of it. It reports a
/// connection that ends before a message as an error.
fn collector(tls: Option<Arc<ServerConfig>>) -> (String, Receiver<io::Result<Posted>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let address = format!("{scheme}://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let posted = match &tls {
                None => take(&mut stream),
                Some(tls) => {
                    let connection = ServerConnection::new(tls.clone()).unwrap();
                    take(&mut StreamOwned::new(connection, stream))
                }
            };
            if sender.send(posted).is_err() {
                return;
            }
        }
    });
    (address, received)
}

/// Reads one message and answers it.
fn take(stream: &mut (impl Read + Write)) -> io::Result<Posted> {
    let mut bytes = Vec::new();
    let (head_end, length) = loop {
        read_more(stream, &mut bytes)?;
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        break (end + 4, length.parse::<usize>().unwrap());
    };
    while bytes.len() < head_end + length {
        read_more(stream, &mut bytes)?;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    stream.flush()?;
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    Ok((head, bytes[head_end..].to_vec()))
}

fn read_more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece)?;
    bytes.extend(&piece[..count]);
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// A protobuf message, read without knowing its schema: the values of each field.
#[derive(Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    fn number(&self) -> u64 {
        let Self::Number(number) = self else { panic!("{self:?} is not a number") };
        *number
    }

    fn bytes(&self) -> &[u8] {
        let Self::Bytes(bytes) = self else { panic!("{self:?} is not bytes") };
        bytes
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

type Message = BTreeMap<u64, Vec<Field>>;

fn message(mut bytes: &[u8]) -> Message {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Message::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

fn attributes(fields: &[Field]) -> BTreeMap<String, String> {
    let attribute = |field: &Field| {
        let attribute = message(field.bytes());
        let value = message(attribute[&2][0].bytes());
        let text = value.get(&1).map(|text| text[0].text());
        (attribute[&1][0].text(), text.unwrap_or_else(|| value[&3][0].number().to_string()))
    };
    fields.iter().map(attribute).collect()
}

/// The spans of a message (ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span), after a look at their resource.
fn spans(bytes: &[u8]) -> Vec<Message> {
    let request = message(bytes);
    let of_resource = message(request[&1][0].bytes());
    let resource = message(of_resource[&1][0].bytes());
    assert_eq!(attributes(&resource[&1])["service.name"], "partita");
    let of_scope = message(of_resource[&2][0].bytes());
    of_scope[&2].iter().map(|span| message(span.bytes())).collect()
}

#[test]
fn each_request_is_a_span_at_the_collector_in_the_trace_of_its_client() {
    let (address, received) = collector(None);
    let server = Partita::start(&["--in-memory", "--otlp-endpoint", &address]);
    let mut client = server.client();
    let trace = |flags: &str| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    let (sampled, unsampled) = (trace("01"), trace("00"));
    expect(&mut client, "POST", "/Tables", &[], r#"{"TableName":"Books"}"#, 201);
    expect(&mut client, "GET", "/Books()", &[("traceparent", &sampled)], "", 200);
    expect(&mut client, "GET", "/Books()", &[("traceparent", &unsampled)], "", 200);
    expect(&mut client, "GET", "/None()", &[("traceparent", "nonsense")], "", 404);
    // A stop sends what is left.
    assert!(server.stop().success());
    let mut found = Vec::new();
    while found.len() < 3 {
        let (head, body) = received.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("application/x-protobuf"), "{head}");
        found.extend(spans(&body));
    }
    let names: Vec<String> = found.iter().map(|span| span[&5][0].text()).collect();
    assert_eq!(names, ["CreateTable", "QueryEntities", "QueryEntities"]);
    let [begun, joined, refused] = &found[..] else { panic!("{found:?}") };
    assert_eq!(joined[&1][0].bytes()[..2], [0x0a, 0xf7]);
    assert_eq!(joined[&4][0].bytes()[..2], [0xb7, 0xad]);
    for own in [begun, refused] {
        assert!(
            own[&1][0].bytes().len() == 16
                && own[&1][0].bytes() != joined[&1][0].bytes()
                && !own.contains_key(&4)
        );
    }
    let (start, end) = (joined[&7][0].number(), joined[&8][0].number());
    assert!(start > 1_700_000_000_000_000_000 && end > start, "{start} {end}");
    let of_joined = attributes(&joined[&9]);
    assert_eq!(of_joined["partita.service"], "table");
    assert_eq!(of_joined["partita.account"], "devstoreaccount1");
    assert_eq!(of_joined["http.response.status_code"], "200");
    let of_refused = attributes(&refused[&9]);
    assert_eq!(
        (of_refused["http.response.status_code"].as_str(), of_refused["error.type"].as_str()),
        ("404", "TableNotFound")
    );
    assert!(!refused.contains_key(&15), "a refusal is no error of the server");
}

#[test]
fn a_collector_that_is_not_there_holds_nothing_up() {
    // Nobody listens on a port that was just free.
    let address = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = Partita::logging_to(&log, "warn", &["--otlp-endpoint", &address]);
    let mut client = server.client();
    for _ in 0..50 {
        expect(&mut client, "GET", "/Tables", &[], "", 200);
    }
    assert!(server.stop().success());
    assert!(std::fs::read_to_string(&log).unwrap().contains("traces"), "the operator is told");
}

/// The collector's own authority and certificate: those that a server makes for development.
fn certificate(directory: &Path) -> Arc<ServerConfig> {
    let path = directory.display().to_string();
    let arguments = ["--in-memory", "--dev-cert", &path, "--tls-listen", "127.0.0.1:0"];
    assert!(Partita::start(&arguments).stop().success());
    let chain = vec![CertificateDer::from_pem_file(directory.join("certificate.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(config.with_single_cert(chain, key).unwrap())
}

/// A server that trusts only this authority, and its log.
fn trusting(authority: &Path, collector: &str, log: &Path) -> Partita {
    let mut command = binary();
    command.args(["serve", "--in-memory", "--listen", "127.0.0.1:0", "--log-level", "warn"]);
    command.args(["--otlp-endpoint", collector]).env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
    command.stderr(std::fs::File::create(log).unwrap());
    Partita::spawn(command)
}

#[test]
fn a_collector_is_sent_spans_over_https_if_its_authority_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (own, other) = (directory.path().join("own"), directory.path().join("other"));
    let (tls, _) = (certificate(&own), certificate(&other));
    let log = directory.path().join("log");

    let (address, received) = collector(Some(tls.clone()));
    let server = trusting(&own.join("authority.pem"), &address, &log);
    expect(&mut server.client(), "GET", "/Tables", &[], "", 200);
    assert!(server.stop().success());
    let (head, body) = received.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert_eq!(spans(&body)[0][&5][0].text(), "QueryTables");

    let (address, received) = collector(Some(tls));
    let server = trusting(&other.join("authority.pem"), &address, &log);
    expect(&mut server.client(), "GET", "/Tables", &[], "", 200);
    assert!(server.stop().success());
    assert!(received.recv_timeout(Duration::from_secs(60)).unwrap().is_err(), "a stranger got spans");
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("traces can't be sent") && log.contains("certificate"), "{log}");
}

#[test]
fn without_any_authority_a_collector_with_https_is_refused_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let nothing = directory.path().join("nothing.pem");
    std::fs::write(&nothing, "").unwrap();
    let mut command = binary();
    command.args([
        "serve",
        "--in-memory",
        "--listen",
        "127.0.0.1:0",
        "--otlp-endpoint",
        "https://127.0.0.1:1",
    ]);
    let output = command.env("SSL_CERT_FILE", &nothing).env_remove("SSL_CERT_DIR").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("no certificate of an authority"), "{said}");
}
