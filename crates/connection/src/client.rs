//! One connection to a Table endpoint: signs and sends requests, and reads whole answers.
//!
//! It often runs on the machine of the server that it measures, so it costs little: one write and mostly one read per
//! request, reused buffers, a date that is formatted once a second.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};
use wire::connection_string::{Credential, Endpoint};
use wire::signing::shared_key::{Scheme, SignedRequest};

use crate::response::{Response, ResponseError, ResponseReader};

/// Several attempts: the server may be just starting.
const CONNECT_ATTEMPTS: u32 = 5;
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Servers on Node, such as Azurite, close a connection that is idle for five seconds; a write sent at that moment is
/// lost. A connection that was idle for longer than this is not used again.
const IDLE_TIME_MAX: Duration = Duration::from_secs(2);

const COMMON_HEADERS: &str = "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n";

/// An endpoint and what is needed to trust it.
#[derive(Clone)]
pub struct Target {
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
    /// Whole lines, each with its CRLF.
    pub headers: &'a str,
    pub body: Option<&'a [u8]>,
}

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
        let fixed_headers = format!("Host: {}\r\n{COMMON_HEADERS}", target.endpoint.authority());
        Self {
            target,
            stream: None,
            reader: ResponseReader::default(),
            request: Vec::new(),
            fixed_headers,
            date: String::new(),
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
        let is_read = request.method == "GET";
        self.send_as(request, now, is_read).await
    }

    /// The same, but never sends it twice, whatever its method: a GET may change something, as that of messages does.
    pub async fn send_once(
        &mut self,
        request: UnsignedRequest<'_>,
        now: Instant,
    ) -> Result<Response<'_>, SendError> {
        self.send_as(request, now, false).await
    }

    async fn send_as(
        &mut self,
        request: UnsignedRequest<'_>,
        now: Instant,
        may_repeat: bool,
    ) -> Result<Response<'_>, SendError> {
        self.write_request(&request, now);
        if self.last_used.is_some_and(|last| now.duration_since(last) > IDLE_TIME_MAX) {
            self.stream = None;
        }
        self.last_used = Some(now);
        let fresh = self.stream.is_none();
        if let Err(error) = self.exchange().await {
            // The server may have closed the idle connection. Only a read is safe to send again.
            let lapsed = !fresh && self.reader.is_idle() && may_repeat;
            self.stream = None;
            match error {
                SendError::Broken(_) if lapsed => self.exchange().await?,
                error => return Err(error),
            }
        }
        let response = self.reader.response();
        if response.closes {
            self.stream = None;
        }
        Ok(response)
    }

    async fn exchange(&mut self) -> Result<(), SendError> {
        let outcome = self.write_and_read().await;
        if outcome.is_err() {
            self.stream = None;
        }
        outcome
    }

    async fn write_and_read(&mut self) -> Result<(), SendError> {
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
        let sent = write(stream, &self.request, self.target.tls.is_some()).await;
        sent.map_err(BrokenConnection::Io)?;
        Ok(read(stream, &mut self.reader).await?)
    }

    fn write_request(&mut self, request: &UnsignedRequest<'_>, now: Instant) {
        if self.date_written.is_none_or(|written| now.duration_since(written) >= Duration::from_secs(1)) {
            self.date = httpdate::fmt_http_date(SystemTime::now());
            self.date_written = Some(now);
        }
        let endpoint = &self.target.endpoint;
        let out = &mut self.request;
        out.clear();
        push(out, &[request.method, " "]);
        let path_start = out.len();
        push(out, &[&endpoint.path, request.path]);
        // Written from text just above.
        let path = std::str::from_utf8(&out[path_start..]).unwrap_or_default();
        let signed = SignedRequest {
            method: request.method,
            content_md5: "",
            content_type: "",
            date: &self.date,
            account: &endpoint.account,
            path,
            // The only part of a query that is signed.
            comp: request.query.split('&').find_map(|part| part.strip_prefix("comp=")),
        };
        let mut authorization = None;
        let mut signature = "";
        match &endpoint.credential {
            // What the SDKs for .NET, JavaScript and Go send.
            Credential::Key(key) => {
                authorization = Some(key.sign(&signed.string_to_sign(Scheme::SharedKeyLite)));
            }
            Credential::Signature(query) => signature = query,
        }
        let mut mark = "?";
        for piece in [request.query, signature].into_iter().filter(|piece| !piece.is_empty()) {
            push(out, &[mark, piece]);
            mark = "&";
        }
        push(out, &[" HTTP/1.1\r\n", &self.fixed_headers, "x-ms-date: ", &self.date, "\r\n"]);
        if let Some(authorization) = authorization {
            push(out, &["Authorization: SharedKeyLite ", &endpoint.account, ":", &authorization, "\r\n"]);
        }
        push(out, &[request.headers]);
        match request.body {
            Some(body) => {
                push(out, &["Content-Length: ", &body.len().to_string(), "\r\n\r\n"]);
                out.extend_from_slice(body);
            }
            None => push(out, &["\r\n"]),
        }
    }
}

fn push(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

async fn write(stream: &mut Box<dyn Stream>, bytes: &[u8], is_buffered: bool) -> io::Result<()> {
    stream.write_all(bytes).await?;
    if is_buffered { stream.flush().await } else { Ok(()) }
}

/// Until the answer is whole.
async fn read(stream: &mut Box<dyn Stream>, reader: &mut ResponseReader) -> Result<(), BrokenConnection> {
    loop {
        match stream.read(reader.space()).await? {
            0 => return Ok(reader.closed()?),
            count => reader.received(count),
        }
        if reader.advance()? {
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
