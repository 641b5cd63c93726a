//! One connection to an endpoint of tables, queues or blobs: signs and sends requests, and reads whole answers. The content
//! of a blob goes through it in pieces, so that it may be longer than memory.
//!
//! It often runs on the machine of the server that it measures, so it costs little: one write and mostly one read per
//! request, reused buffers, a date that is formatted once a second.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use common::ServiceKind;
use protocol::connection_string::{Credential, Endpoint};
use protocol::names;
use protocol::signing::AccountKey;
use protocol::signing::shared_key::{BlobQueueRequest, Scheme, SignedRequest};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

use crate::response::{Response, ResponseError, ResponseReader};

/// Several attempts: the server may be just starting.
const CONNECT_ATTEMPTS: u32 = 5;
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Servers on Node, such as Azurite, close a connection that is idle for five seconds; a write sent at that moment is
/// lost. A connection that was idle for longer than this is not used again.
const IDLE_TIME_MAX: Duration = Duration::from_secs(2);

const VERSION: &str = "2019-02-02";
/// The first in which one append may have 100 MiB.
const BLOB_VERSION: &str = "2022-11-02";

/// Content up to this length is sent with the head, in one write.
const SENT_WITH_HEAD_MAX: u64 = 64 * 1024;

/// An endpoint and what is needed to trust it.
#[derive(Clone)]
pub struct Target {
    pub service: ServiceKind,
    pub endpoint: Endpoint,
    pub tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.endpoint.url())
    }
}

/// A request before `Client::send` adds the account, the date and the signature.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedRequest<'a> {
    pub method: &'static str,
    /// Follows the endpoint's own path; percent-encoded.
    pub path: &'a str,
    /// Percent-encoded, without `?`.
    pub query: &'a str,
    /// Whole lines, each with its CRLF; of tables, none that are signed.
    pub headers: &'a str,
    pub body: Option<&'a [u8]>,
}

/// The content of an upload, which may be longer than memory.
pub trait Content: Sync {
    fn length(&self) -> u64;
    /// Some of it from here on, which is below the length: at least one byte, and not more than there are.
    fn piece(&self, at: u64) -> &[u8];
}

/// Takes the content of a good answer as it comes.
pub type Sink<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// Several attempts to connect failed. The request was not sent.
    #[error("can't connect to {url}: {source}")]
    Unreachable { url: String, source: ConnectError },
    /// The server may have carried out the request. The next request gets a new connection.
    #[error(transparent)]
    Broken(#[from] BrokenConnection),
}

/// Why an attempt to connect failed.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("{0}; is the server running there?")]
    Tcp(#[source] io::Error),
    #[error("no connection within {CONNECT_TIME_MAX:?}; is the server running there?")]
    TimedOut,
    #[error("{host:?} is not a name that a certificate can have: {source}")]
    HostName { host: String, source: InvalidDnsNameError },
    #[error("{0}; --ca names an authority to trust besides the system's")]
    Tls(#[source] io::Error),
}

/// Why a connection can't be used any more.
#[derive(Debug, Error)]
pub enum BrokenConnection {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Response(#[from] ResponseError),
}

pub struct Client {
    target: Arc<Target>,
    stream: Option<Box<dyn Stream>>,
    reader: ResponseReader,
    request: Vec<u8>,
    /// `Host` and the other headers that never change.
    fixed_headers: String,
    date: String,
    /// The length of the body in digits.
    body_length: String,
    date_written: Option<Instant>,
    last_used: Option<Instant>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.target)
    }
}

impl Client {
    pub fn new(target: Arc<Target>) -> Self {
        let of_tables = if target.service == ServiceKind::Table { "DataServiceVersion: 3.0\r\n" } else { "" };
        let host = target.endpoint.authority();
        let version = version(target.service);
        let fixed_headers = format!("Host: {host}\r\nx-ms-version: {version}\r\n{of_tables}");
        Self {
            target,
            stream: None,
            reader: ResponseReader::default(),
            request: Vec::new(),
            fixed_headers,
            date: String::new(),
            body_length: String::new(),
            date_written: None,
            last_used: None,
        }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.target.endpoint
    }

    /// Closes the connection; the next request gets a new one. A caller that stops waiting for an answer must call this,
    /// or it reads that answer as the answer to the next request.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    /// Sends a request and reads its answer. `now` decides whether the date is formatted again.
    pub async fn send(
        &mut self,
        request: UnsignedRequest<'_>,
        now: Instant,
    ) -> Result<Response<'_>, SendError> {
        self.transfer(request, None, None, now).await
    }

    /// Sends a request whose body is this content.
    pub async fn upload(
        &mut self,
        request: UnsignedRequest<'_>,
        content: &dyn Content,
        now: Instant,
    ) -> Result<Response<'_>, SendError> {
        self.transfer(request, Some(content), None, now).await
    }

    /// Sends a request, and passes the content of a good answer on. The answer then has no body.
    pub async fn download(
        &mut self,
        request: UnsignedRequest<'_>,
        sink: Sink<'_>,
        now: Instant,
    ) -> Result<Response<'_>, SendError> {
        self.transfer(request, None, Some(sink), now).await
    }

    async fn transfer(
        &mut self,
        request: UnsignedRequest<'_>,
        content: Option<&dyn Content>,
        mut sink: Option<Sink<'_>>,
        now: Instant,
    ) -> Result<Response<'_>, SendError> {
        self.write_request(&request, content, now);
        self.reader.stream(sink.is_some());
        if self.last_used.is_some_and(|last| now.duration_since(last) > IDLE_TIME_MAX) {
            self.stream = None;
        }
        self.last_used = Some(now);
        let fresh = self.stream.is_none();
        if let Err(error) = self.exchange(content, &mut sink).await {
            // The server may have closed the idle connection. Only a read is safe to send again, and a GET of queues may
            // hide messages.
            let is_read = request.method == "GET" && self.target.service != ServiceKind::Queue;
            let lapsed = !fresh && self.reader.is_idle() && is_read;
            self.stream = None;
            match error {
                SendError::Broken(_) if lapsed => self.exchange(content, &mut sink).await?,
                error => return Err(error),
            }
        }
        let response = self.reader.response();
        if response.closes {
            self.stream = None;
        }
        Ok(response)
    }

    async fn exchange(
        &mut self,
        content: Option<&dyn Content>,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<(), SendError> {
        let outcome = self.write_and_read(content, sink).await;
        if outcome.is_err() {
            self.stream = None;
        }
        outcome
    }

    async fn write_and_read(
        &mut self,
        content: Option<&dyn Content>,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<(), SendError> {
        let stream = match &mut self.stream {
            Some(stream) => {
                self.reader.next();
                stream
            }
            none => {
                let stream = connect(&self.target).await?;
                self.reader.reset();
                none.insert(stream)
            }
        };
        let long = content.filter(|content| content.length() > SENT_WITH_HEAD_MAX);
        let sent = write(stream, &self.request, long, self.target.tls.is_some()).await;
        sent.map_err(BrokenConnection::Io)?;
        Ok(read(stream, &mut self.reader, sink).await?)
    }

    fn write_request(&mut self, request: &UnsignedRequest<'_>, content: Option<&dyn Content>, now: Instant) {
        if self.date_written.is_none_or(|written| now.duration_since(written) >= Duration::from_secs(1)) {
            self.date = httpdate::fmt_http_date(SystemTime::now());
            self.date_written = Some(now);
        }
        self.body_length.clear();
        let length = content.map(Content::length).or(request.body.map(|body| body.len() as u64));
        if let Some(length) = length {
            // Writing into a string can't fail.
            let _ = write!(self.body_length, "{length}");
        }
        let endpoint = &self.target.endpoint;
        let out = &mut self.request;
        out.clear();
        push(out, &[request.method, " "]);
        let path_start = out.len();
        push(out, &[&endpoint.path, request.path]);
        // Written from text just above.
        let path = std::str::from_utf8(&out[path_start..]).unwrap_or_default();
        let (mut authorization, mut signature) = (None, "");
        match &endpoint.credential {
            Credential::Key(key) => {
                let version = version(self.target.service);
                let signed = Signed { request, path, version, date: &self.date, length: &self.body_length };
                authorization = Some(match self.target.service {
                    ServiceKind::Table => signed.of_tables(&endpoint.account, key),
                    ServiceKind::Queue | ServiceKind::Blob => {
                        signed.of_queues_and_blobs(&endpoint.account, key)
                    }
                });
            }
            Credential::Signature(query) => signature = query,
        }
        let mut mark = "?";
        for piece in [request.query, signature].into_iter().filter(|piece| !piece.is_empty()) {
            push(out, &[mark, piece]);
            mark = "&";
        }
        push(out, &[" HTTP/1.1\r\n", &self.fixed_headers, "x-ms-date: ", &self.date, "\r\n"]);
        if let Some((scheme, signature)) = authorization {
            push(out, &["Authorization: ", scheme, " ", &endpoint.account, ":", &signature, "\r\n"]);
        }
        push(out, &[request.headers]);
        if length.is_some() {
            push(out, &["Content-Length: ", &self.body_length, "\r\n"]);
        }
        push(out, &["\r\n"]);
        match content {
            Some(content) if content.length() <= SENT_WITH_HEAD_MAX => {
                for piece in pieces(content) {
                    out.extend_from_slice(piece);
                }
            }
            Some(_) => {}
            None => out.extend_from_slice(request.body.unwrap_or_default()),
        }
    }
}

/// What a signature covers.
struct Signed<'a> {
    request: &'a UnsignedRequest<'a>,
    /// With that of the endpoint.
    path: &'a str,
    version: &'a str,
    date: &'a str,
    length: &'a str,
}

impl Signed<'_> {
    /// What the SDKs for .NET, JavaScript and Go send.
    fn of_tables(&self, account: &str, key: &AccountKey) -> (&'static str, String) {
        let signed = SignedRequest {
            method: self.request.method,
            content_md5: "",
            content_type: "",
            date: self.date,
            account,
            path: self.path,
            // The only part of a query that is signed.
            comp: self.request.query.split('&').find_map(|part| part.strip_prefix("comp=")),
        };
        ("SharedKeyLite", key.sign(&signed.string_to_sign(Scheme::SharedKeyLite)))
    }

    /// What all SDKs send.
    fn of_queues_and_blobs(&self, account: &str, key: &AccountKey) -> (&'static str, String) {
        let mut headers = vec![
            (names::X_MS_DATE, self.date),
            (names::X_MS_VERSION, self.version),
            ("content-length", self.length),
        ];
        headers.extend(self.request.headers.split("\r\n").filter_map(|line| line.split_once(": ")));
        let signed = BlobQueueRequest {
            method: self.request.method,
            account,
            path: self.path,
            query: self.request.query,
            headers: &headers,
        };
        ("SharedKey", key.sign(&signed.string_to_sign(Scheme::SharedKey)))
    }
}

fn version(service: ServiceKind) -> &'static str {
    match service {
        ServiceKind::Table | ServiceKind::Queue => VERSION,
        ServiceKind::Blob => BLOB_VERSION,
    }
}

fn pieces(content: &dyn Content) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let piece = (at < content.length()).then(|| content.piece(at))?;
        at += piece.len() as u64;
        Some(piece)
    })
}

fn push(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

async fn write(
    stream: &mut Box<dyn Stream>,
    bytes: &[u8],
    content: Option<&dyn Content>,
    is_buffered: bool,
) -> io::Result<()> {
    stream.write_all(bytes).await?;
    for piece in content.into_iter().flat_map(pieces) {
        stream.write_all(piece).await?;
    }
    if is_buffered { stream.flush().await } else { Ok(()) }
}

/// Until the answer is whole.
async fn read(
    stream: &mut Box<dyn Stream>,
    reader: &mut ResponseReader,
    sink: &mut Option<Sink<'_>>,
) -> Result<(), BrokenConnection> {
    loop {
        match stream.read(reader.space()).await? {
            0 => return Ok(reader.closed()?),
            count => reader.received(count),
        }
        let is_whole = reader.advance()?;
        if let Some(sink) = sink {
            reader.drain(sink);
        }
        if is_whole {
            return Ok(());
        }
    }
}

async fn connect(target: &Target) -> Result<Box<dyn Stream>, SendError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, connect_once(target)).await;
        match connected.unwrap_or(Err(ConnectError::TimedOut)) {
            Ok(stream) => return Ok(stream),
            Err(source) if attempt == CONNECT_ATTEMPTS => {
                return Err(SendError::Unreachable { url: target.endpoint.url(), source });
            }
            Err(_) => tokio::time::sleep(CONNECT_PAUSE).await,
        }
    }
}

async fn connect_once(target: &Target) -> Result<Box<dyn Stream>, ConnectError> {
    let endpoint = &target.endpoint;
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    let stream = stream.map_err(ConnectError::Tcp)?;
    // A request is one write; waiting for a full packet would only delay it.
    stream.set_nodelay(true).map_err(ConnectError::Tcp)?;
    match &target.tls {
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let host = endpoint.host.clone();
            let name = ServerName::try_from(host.clone())
                .map_err(|source| ConnectError::HostName { host, source })?;
            let stream = tls.connect(name, stream).await.map_err(ConnectError::Tls)?;
            Ok(Box::new(stream))
        }
    }
}
