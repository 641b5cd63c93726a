//! One request and its answer: signed after it was changed, sent as it is, and read strictly.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use front::ServiceKind;
use protocol::QueryString;
use protocol::signing::AccountKey;
use protocol::signing::sas::{AccountSas, Sas, Terms};
use protocol::signing::shared_key::{BlobQueueRequest, Scheme, SignedRequest};

use crate::support::{Answer, Partita};

/// Bodies beyond this are not read to their end: a page blob may have some tebibytes of zeros.
const BODY_BYTES_READ_MAX: usize = 4 << 20;
/// Characters from here on are sent as one byte each, which is no UTF-8.
pub const RAW_BYTES: u32 = 0xf700;

#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub blob: SocketAddr,
    queue: SocketAddr,
    table: SocketAddr,
}

impl Addresses {
    pub fn of(server: &Partita) -> Self {
        Self { blob: server.blob_address(), queue: server.queue_address(), table: server.address }
    }

    fn of_service(&self, service: ServiceKind) -> SocketAddr {
        match service {
            ServiceKind::Blob => self.blob,
            ServiceKind::Queue => self.queue,
            ServiceKind::Table => self.table,
        }
    }
}

pub struct Account {
    pub name: String,
    pub key: AccountKey,
    pub addresses: Addresses,
}

impl Account {
    /// A token for everything, which unlike a signature permits headers that are not ASCII.
    pub fn token(&self) -> String {
        let terms = Terms {
            version: "2020-12-06".to_owned(),
            permissions: "rwdxylacuptfi".to_owned(),
            expiry: "2099-01-01T00:00:00Z".to_owned(),
            ..Terms::default()
        };
        let sas = Sas::Account(AccountSas {
            terms,
            services: "bqt".to_owned(),
            resource_types: "sco".to_owned(),
            ..AccountSas::default()
        });
        sas.to_query(&sas.sign(&self.name, &self.key))
    }
}

/// A request before it is signed.
#[derive(Clone, Debug)]
pub struct Request {
    pub service: ServiceKind,
    pub method: String,
    /// Behind the account.
    pub path: String,
    /// Names and values as they stand in the URL.
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Instead of with a signature.
    pub by_token: bool,
    /// Without a length, which a request without a body need not have.
    pub without_length: bool,
}

impl Request {
    pub fn new(
        service: ServiceKind,
        method: &str,
        target: &str,
        headers: impl Iterator<Item = (String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        };
        Self {
            service,
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.split('&').filter(|text| !text.is_empty()).map(pair).collect(),
            headers: headers.collect(),
            body,
            by_token: false,
            without_length: false,
        }
    }

    pub fn is_chunked(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"))
    }

    fn query_text(&self) -> String {
        let pairs: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&")
    }

    /// The bytes to send, with a credential that is right for them.
    fn signed(&self, account: &Account) -> Vec<u8> {
        let path = format!("/{}{}", account.name, self.path);
        let mut query = self.query_text();
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut head = vec![("Host".to_owned(), account.addresses.of_service(self.service).to_string())];
        if self.by_token {
            let separator = if query.is_empty() { "" } else { "&" };
            query = format!("{query}{separator}{}", account.token());
        } else {
            head.push(("x-ms-date".to_owned(), date.clone()));
        }
        head.extend_from_slice(&self.headers);
        let without_length = self.is_chunked() || (self.without_length && self.body.is_empty());
        if !without_length {
            head.push(("Content-Length".to_owned(), self.body.len().to_string()));
        }
        if !self.by_token {
            let string = self.string_to_sign(account, &path, &query, &head, &date);
            let signature = account.key.sign(&string);
            head.push(("Authorization".to_owned(), format!("SharedKeyLite {}:{signature}", account.name)));
        }
        let question = if query.is_empty() { "" } else { "?" };
        let mut text = format!("{} {path}{question}{query} HTTP/1.1\r\n", self.method);
        for (name, value) in &head {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut bytes = raw(&text);
        if self.is_chunked() {
            for piece in self.body.chunks(7) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }

    fn string_to_sign(
        &self,
        account: &Account,
        path: &str,
        query: &str,
        head: &[(String, String)],
        date: &str,
    ) -> String {
        // At the secondary, the path is signed with or without the suffix.
        match self.service {
            ServiceKind::Table => {
                let options = QueryString::parse(query);
                let comp = options.as_ref().and_then(|options| options.get_ignoring_case("comp"));
                let request = SignedRequest {
                    method: &self.method,
                    content_md5: "",
                    content_type: "",
                    date,
                    account: &account.name,
                    path,
                    comp,
                };
                request.string_to_sign(Scheme::SharedKeyLite)
            }
            ServiceKind::Blob | ServiceKind::Queue => {
                let headers: Vec<(&str, &str)> =
                    head.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let (method, account) = (self.method.as_str(), account.name.as_str());
                let request = BlobQueueRequest { method, account, path, query, headers: &headers };
                request.string_to_sign(Scheme::SharedKeyLite)
            }
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credential = if self.by_token { "token" } else { "signature" };
        writeln!(f, "{:?}, with a {credential}", self.service)?;
        writeln!(f, "{} {}?{}", self.method, self.path.escape_debug(), self.query_text().escape_debug())?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", value.escape_debug())?;
        }
        writeln!(f, "\n{}", self.body.escape_ascii())
    }
}

fn raw(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(u32::from(character).wrapping_sub(RAW_BYTES)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// One connection to each service, kept as long as the server keeps it.
#[derive(Default)]
pub struct Connections {
    open: Vec<(SocketAddr, BufReader<TcpStream>)>,
}

impl Connections {
    /// Sends one request and reads its answer. An error is a fault of the server.
    pub fn send(&mut self, account: &Account, request: &Request) -> io::Result<Answer> {
        let address = account.addresses.of_service(request.service);
        let mut connection = match self.open.iter().position(|(known, _)| *known == address) {
            Some(place) => self.open.swap_remove(place).1,
            None => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                stream.set_write_timeout(Some(Duration::from_secs(60)))?;
                BufReader::new(stream)
            }
        };
        // A server that refuses early may close its side; its answer can still be read.
        let _ = connection.get_mut().write_all(&request.signed(account));
        let (answer, whole) = read_strictly(&mut connection, request.method == "HEAD")?;
        if answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            if whole && connection.read(&mut [0])? != 0 {
                return Err(fault("bytes behind the last answer"));
            }
        } else if whole {
            self.open.push((address, connection));
        }
        Ok(answer)
    }
}

fn fault(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A line without its end, which is CR LF.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(256 * 1024).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Err(fault("closed without an answer"));
    }
    let text = bytes.strip_suffix(b"\r\n").ok_or_else(|| fault("a line without an end"))?;
    if text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(fault(format!("control characters in {:?}", text.escape_ascii().to_string())));
    }
    // Bytes beyond ASCII may stand in a value.
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// An answer, and whether it was read to its end.
fn read_strictly(stream: &mut impl BufRead, no_body: bool) -> io::Result<(Answer, bool)> {
    let first = line(stream)?;
    let rest = first.strip_prefix("HTTP/1.1 ").ok_or_else(|| fault(&first))?;
    let (status, reason) = rest.split_once(' ').ok_or_else(|| fault(&first))?;
    let status: u16 = status.parse().map_err(|_| fault(&first))?;
    if !(200..600).contains(&status) {
        return Err(fault(first));
    }
    let mut answer = Answer { status, reason: reason.to_owned(), headers: Vec::new(), body: Vec::new() };
    loop {
        let text = line(stream)?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').ok_or_else(|| fault(&text))?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(fault(text));
        }
        answer.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let values = |name: &str| -> Vec<&str> {
        let found = answer.headers.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).collect()
    };
    let (lengths, chunks) = (values("content-length"), values("transfer-encoding"));
    for single in ["content-length", "transfer-encoding", "content-type", "etag", "x-ms-request-id", "date"] {
        if values(single).len() > 1 {
            return Err(fault(format!("{single} twice")));
        }
    }
    if !lengths.is_empty() && !chunks.is_empty() {
        return Err(fault("a length and chunks"));
    }
    if no_body || matches!(status, 204 | 304) {
        return Ok((answer, true));
    }
    match (lengths.first(), chunks.first()) {
        (Some(length), None) => {
            let length: u64 = length.parse().map_err(|_| fault(format!("a length of {length:?}")))?;
            let read = usize::try_from(length).unwrap_or(usize::MAX).min(BODY_BYTES_READ_MAX);
            answer.body = vec![0; read];
            stream.read_exact(&mut answer.body)?;
            Ok((answer, read as u64 == length))
        }
        (None, Some(&"chunked")) => {
            while let size @ 1.. = chunk_size(stream)? {
                let start = answer.body.len();
                answer.body.resize(start + size, 0);
                stream.read_exact(&mut answer.body[start..])?;
                if !line(stream)?.is_empty() {
                    return Err(fault("a chunk that does not end"));
                }
                if answer.body.len() > BODY_BYTES_READ_MAX {
                    return Ok((answer, false));
                }
            }
            match line(stream)?.as_str() {
                "" => Ok((answer, true)),
                text => Err(fault(format!("behind the last chunk: {text}"))),
            }
        }
        _ => Err(fault("neither a length nor chunks")),
    }
}

fn chunk_size(stream: &mut impl BufRead) -> io::Result<usize> {
    let text = line(stream)?;
    let size = usize::from_str_radix(&text, 16).map_err(|_| fault(format!("a chunk of {text:?}")))?;
    if size > 64 << 20 { Err(fault(format!("a chunk of {text}"))) } else { Ok(size) }
}
