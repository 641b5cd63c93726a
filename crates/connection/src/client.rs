//! One connection to a Table endpoint: signs and sends requests, gives back whole answers.
//!
//! It shares a machine with the server it measures, so it is made to cost little: one write and mostly one
//! read a request, buffers used again, a date written once a second. It retries nothing a server has refused.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use wire::connection_string::{Credential, Endpoint};
use wire::signing::shared_key::{Scheme, SignedRequest};

use crate::response::{Response, ResponseReader};

/// A server that is just starting is waited for this long in all.
const CONNECT_ATTEMPTS: u32 = 5;
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Node's servers, Azurite among them, close what is idle for five seconds; a write sent just then is lost.
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

/// What to send; the account, the date and the signature are added.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'static str,
    /// After the endpoint's own path, encoded.
    pub path: &'a str,
    /// Encoded, without `?`.
    pub query: &'a str,
    /// Whole lines.
    pub headers: &'a str,
    pub body: Option<&'a [u8]>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody to talk to, in spite of several attempts.
    Unreachable(String),
    /// The connection broke; the next request gets a new one.
    Broken(String),
}

pub struct Client {
    target: Arc<Target>,
    stream: Option<Box<dyn Stream>>,
    reader: ResponseReader,
    request: Vec<u8>,
    /// `Host` and what else never changes.
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

    /// The next request gets a new connection: whoever gives up waiting for an answer must not read it later.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    /// Sends a request and reads its answer. `now` is when, for the date.
    pub async fn send(&mut self, request: Request<'_>, now: Instant) -> Result<Response<'_>, Trouble> {
        self.write_request(&request, now);
        if self.last_used.is_some_and(|last| now.duration_since(last) > IDLE_TIME_MAX) {
            self.stream = None;
        }
        self.last_used = Some(now);
        let fresh = self.stream.is_none();
        if let Err(error) = self.exchange().await {
            // A server may close an idle connection at any time. Only a read can be sent again for sure.
            let lapsed = !fresh && self.reader.is_idle() && request.method == "GET";
            self.stream = None;
            match error {
                Trouble::Broken(_) if lapsed => self.exchange().await?,
                error => return Err(error),
            }
        }
        let response = self.reader.response();
        if response.closes {
            self.stream = None;
        }
        Ok(response)
    }

    async fn exchange(&mut self) -> Result<(), Trouble> {
        let outcome = self.write_and_read().await;
        if outcome.is_err() {
            self.stream = None;
        }
        outcome
    }

    async fn write_and_read(&mut self) -> Result<(), Trouble> {
        let broken = |error: std::io::Error| Trouble::Broken(format!("the connection broke: {error}"));
        if self.stream.is_none() {
            self.stream = Some(connect(&self.target).await.map_err(Trouble::Unreachable)?);
            self.reader.reset();
        } else {
            self.reader.next();
        }
        let Some(stream) = &mut self.stream else {
            return Err(Trouble::Unreachable("no connection".to_owned()));
        };
        stream.write_all(&self.request).await.map_err(broken)?;
        if self.target.tls.is_some() {
            stream.flush().await.map_err(broken)?;
        }
        loop {
            match stream.read(self.reader.space()).await.map_err(broken)? {
                0 => return self.reader.closed().map_err(Trouble::Broken),
                count => self.reader.received(count),
            }
            if self.reader.advance().map_err(Trouble::Broken)? {
                return Ok(());
            }
        }
    }

    fn write_request(&mut self, request: &Request<'_>, now: Instant) {
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
        // Made of text just above.
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

async fn connect(target: &Target) -> Result<Box<dyn Stream>, String> {
    let mut why = String::new();
    for attempt in 0..CONNECT_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
        match tokio::time::timeout(CONNECT_TIME_MAX, connect_once(target)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = error,
            Err(_) => why = "no answer in time".to_owned(),
        }
    }
    Err(format!("can't connect to {}: {why}", target.endpoint.url()))
}

async fn connect_once(target: &Target) -> Result<Box<dyn Stream>, String> {
    let endpoint = &target.endpoint;
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    let stream = stream.map_err(|error| format!("{error}; is the server running there?"))?;
    // Requests are written whole; waiting to fill a packet would only delay them.
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    match &target.tls {
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| error.to_string())?;
            let stream = tls.connect(name, stream).await;
            let untrusted = |error| format!("{error}; --ca names an authority to trust besides the system's");
            Ok(Box::new(stream.map_err(untrusted)?))
        }
    }
}
