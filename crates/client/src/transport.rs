//! Signs and sends a request, and retries it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use model::ServiceKind;
use tracing::Instrument as _;
use wire::connection_string::{Credential, Endpoint};
use wire::names;
use wire::signing::AccountKey;
use wire::signing::shared_key::{BlobQueueRequest, Scheme, SignedRequest};

use crate::error::{Error, Result, ServiceRefusal};
use crate::retry::{self, RetryPolicy, RetryVerdict};
use crate::tls;

/// The newest version that both tables and queues support.
const VERSION: &str = "2019-02-02";
/// With tags, the tier `Cold` and blocks of 4,000 MiB.
const BLOB_VERSION: &str = "2021-12-02";
/// Far more than a service sends: a page ends at 4 MiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Servers on Node, such as Azurite, close a connection after five idle seconds; a write sent at that moment is lost.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

pub type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A request before it is signed.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// The operation's name in traces.
    pub name: &'static str,
    pub method: Method,
    /// Relative to the endpoint's path, encoded: `/Books`.
    pub path: String,
    /// Names and values, not encoded.
    pub query: Vec<(&'static str, String)>,
    pub headers: Vec<(Cow<'static, str>, String)>,
    pub body: Bytes,
    pub repeat: Repeat,
    /// Finds a refusal in the body of an answer whose status says success.
    pub inspect: fn(&ServiceAnswer) -> Option<ServiceRefusal>,
}

/// How to read the answer to a retry if the first attempt may have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// As the first answer: for reads and upserts.
    Harmless,
    /// A refusal with one of these statuses may be caused by the first attempt.
    Ambiguous(&'static [u16]),
    /// A refusal with this status means that the request has reached its goal.
    Achieved(u16),
    /// Not sent again if it may have been done: a second time would change more.
    Never,
}

impl ServiceRequest {
    pub fn new(name: &'static str, method: Method, path: impl Into<String>) -> Self {
        Self {
            name,
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            repeat: Repeat::Harmless,
            inspect: |_| None,
        }
    }

    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn body(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }
}

/// A successful answer.
#[derive(Debug)]
pub struct ServiceAnswer {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ServiceAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A successful answer whose body is still to be read.
pub struct OpenAnswer {
    pub answer: ServiceAnswer,
    body: Incoming,
    piece_within: Duration,
}

impl OpenAnswer {
    /// The next piece of the body, or why the connection broke; `None` at the end.
    pub async fn next(&mut self) -> Option<std::result::Result<Bytes, String>> {
        loop {
            match tokio::time::timeout(self.piece_within, self.body.frame()).await {
                Err(_) => return Some(Err(format!("nothing came for {:?}", self.piece_within))),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(chain(&error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for OpenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAnswer").field("answer", &self.answer).finish_non_exhaustive()
    }
}

/// How the body of a successful answer is read. That of a refusal is always read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Whole,
    Open,
}

/// Connections to one endpoint. Cheap to clone.
#[derive(Clone)]
pub struct Transport {
    pub service: ServiceKind,
    http: Http,
    pub endpoint: Arc<Endpoint>,
    pub retry: Arc<RetryPolicy>,
    /// Whether the endpoint has ever answered this transport or a clone of it.
    reached: Arc<AtomicBool>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transport({})", self.endpoint.url())
    }
}

/// The outcome of one attempt.
enum Attempt {
    /// With the body, if it was left open.
    Done(ServiceAnswer, Option<Incoming>),
    Refused(ServiceRefusal),
    /// With the `Retry-After`.
    TurnedAway(ServiceRefusal, Option<Duration>),
    Failed(ServiceRefusal, Option<Duration>),
    NotSent(String),
    Lost(String),
    Unsendable(UnsendableError),
}

/// Why no HTTP request can be built. A retry would fail, too.
#[derive(Debug, thiserror::Error)]
enum UnsendableError {
    #[error("can't build an address from {path:?}: {source}")]
    Address { path: String, source: http::uri::InvalidUri },
    #[error("can't build a request: {0}")]
    Request(#[from] http::Error),
}

impl Transport {
    pub fn new(
        service: ServiceKind,
        endpoint: Endpoint,
        retry: RetryPolicy,
        authorities: &[Vec<u8>],
    ) -> Result<Self> {
        let connector = tls::connector(authorities)?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_idle_timeout(IDLE_TIME_MAX).pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        let http = builder.build(connector);
        let (endpoint, retry) = (Arc::new(endpoint), Arc::new(retry));
        Ok(Self { service, http, endpoint, retry, reached: Arc::default() })
    }

    /// The same connection pool for another endpoint.
    pub fn at(&self, endpoint: Endpoint) -> Self {
        Self { endpoint: Arc::new(endpoint), reached: Arc::default(), ..self.clone() }
    }

    /// Sends a request, with retries.
    pub async fn send(&self, request: ServiceRequest) -> Result<ServiceAnswer> {
        self.traced(request, Reading::Whole).await.map(|(answer, _)| answer)
    }

    /// The same, with retries until the answer begins. Its body is left to be read.
    pub async fn open(&self, request: ServiceRequest) -> Result<OpenAnswer> {
        let (answer, body) = self.traced(request, Reading::Open).await?;
        let body = body.ok_or_else(|| Error::Unreadable("the answer has no body".to_owned()))?;
        Ok(OpenAnswer { answer, body, piece_within: self.retry.answer_within })
    }

    async fn traced(
        &self,
        request: ServiceRequest,
        reading: Reading,
    ) -> Result<(ServiceAnswer, Option<Incoming>)> {
        let span = tracing::debug_span!(
            "storage_request",
            service = %self.service,
            operation = request.name,
            path = request.path,
            attempts = tracing::field::Empty,
            status = tracing::field::Empty,
            request_id = tracing::field::Empty,
        );
        self.attempts(request, reading).instrument(span).await
    }

    async fn attempts(
        &self,
        request: ServiceRequest,
        reading: Reading,
    ) -> Result<(ServiceAnswer, Option<Incoming>)> {
        let is_read = is_read(&request.method);
        let repeats = self.retry.repeats_doubtful && request.repeat != Repeat::Never;
        // Whether an earlier attempt may have been done.
        let mut doubtful = false;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let attempt = self.attempt(&request, reading).await;
            tracing::Span::current().record("attempts", attempts);
            let hopeless = matches!(attempt, Attempt::NotSent(_))
                && self.retry.needs_contact
                && !self.reached.load(Ordering::Relaxed);
            let last = hopeless || attempts >= self.retry.attempts;
            let (told, why) = match attempt {
                Attempt::Done(answer, body) => return Ok((answer, body)),
                Attempt::Unsendable(error) => return Err(Error::Invalid(error.to_string())),
                Attempt::Refused(refused) => {
                    return match request.repeat {
                        Repeat::Ambiguous(statuses) if doubtful && statuses.contains(&refused.status) => {
                            Err(Error::OutcomeUnknown(format!(
                                "an earlier attempt had no answer, then {refused}"
                            )))
                        }
                        Repeat::Achieved(status) if doubtful && status == refused.status => {
                            Ok((ServiceAnswer { headers: HeaderMap::new(), body: Bytes::new() }, None))
                        }
                        _ => Err(Error::Refused(refused)),
                    };
                }
                Attempt::TurnedAway(refused, _) if last && doubtful => {
                    return Err(Error::OutcomeUnknown(format!(
                        "an earlier attempt had no answer, then {refused}"
                    )));
                }
                Attempt::TurnedAway(refused, _) if last => return Err(Error::Refused(refused)),
                Attempt::TurnedAway(refused, told) => (told, refused.to_string()),
                Attempt::NotSent(why) if last && doubtful => return Err(Error::OutcomeUnknown(why)),
                Attempt::NotSent(why) if last => return Err(Error::Unanswered(why)),
                Attempt::NotSent(why) => (None, why),
                Attempt::Failed(refused, _) if last && is_read => return Err(Error::Refused(refused)),
                Attempt::Lost(why) if last && is_read => return Err(Error::Unanswered(why)),
                Attempt::Failed(refused, told) if is_read || !last && repeats => {
                    doubtful |= !is_read;
                    (told, refused.to_string())
                }
                Attempt::Lost(why) if is_read || !last && repeats => {
                    doubtful |= !is_read;
                    (None, why)
                }
                Attempt::Failed(refused, _) => return Err(Error::OutcomeUnknown(refused.to_string())),
                Attempt::Lost(why) => return Err(Error::OutcomeUnknown(why)),
            };
            let pause = self.retry.pause(attempts, rand::random(), told);
            tracing::debug!(attempts, ?pause, why, "trying again");
            if let Some(on_pause) = &self.retry.on_pause {
                on_pause.call(&why, pause);
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, request: &ServiceRequest, reading: Reading) -> Attempt {
        let signed = match self.signed(request) {
            Ok(signed) => signed,
            Err(error) => return Attempt::Unsendable(error),
        };
        let exchange = async {
            let response = self.http.request(signed).await.map_err(|error| {
                let why = chain(&error);
                if error.is_connect() { Attempt::NotSent(why) } else { Attempt::Lost(why) }
            })?;
            let (head, body) = response.into_parts();
            if reading == Reading::Open && head.status.is_success() {
                return Ok((head, Bytes::new(), Some(body)));
            }
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body =
                body.map_err(|error| Attempt::Lost(format!("the answer was cut off: {error}")))?.to_bytes();
            Ok((head, body, None))
        };
        let (head, body, open) = match tokio::time::timeout(self.retry.answer_within, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(attempt)) => return attempt,
            Err(_) => return Attempt::Lost(format!("no answer in {:?}", self.retry.answer_within)),
        };
        self.reached.store(true, Ordering::Relaxed);
        let status = head.status.as_u16();
        let answer = ServiceAnswer { headers: head.headers, body };
        let span = tracing::Span::current();
        span.record("status", status);
        span.record("request_id", answer.header(names::X_MS_REQUEST_ID).unwrap_or_default());
        let refused = match (request.inspect)(&answer) {
            None if head.status.is_success() => return Attempt::Done(answer, open),
            None if self.service == ServiceKind::Queue => queue_refused(status, &answer),
            None if self.service == ServiceKind::Blob => blob_refused(status, &answer),
            None => refused(status, &answer),
            Some(refused) => refused,
        };
        let told = answer.header("retry-after").and_then(|text| retry::told(text, SystemTime::now()));
        match retry::verdict(refused.status) {
            RetryVerdict::Final => Attempt::Refused(refused),
            RetryVerdict::TurnedAway => Attempt::TurnedAway(refused, told),
            RetryVerdict::Doubtful => Attempt::Failed(refused, told),
        }
    }

    fn signed(
        &self,
        request: &ServiceRequest,
    ) -> std::result::Result<http::Request<Full<Bytes>>, UnsendableError> {
        let endpoint = &self.endpoint;
        let date = httpdate::fmt_http_date(SystemTime::now());
        let path = format!("{}{}", endpoint.path, request.path);
        let mut query: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        if let Credential::Signature(signature) = &endpoint.credential {
            query.push(signature.clone());
        }
        let query = query.join("&");
        let mut headers = vec![
            (Cow::from(names::X_MS_VERSION), version(self.service).to_owned()),
            (names::X_MS_DATE.into(), date),
            (names::X_MS_CLIENT_REQUEST_ID.into(), id()),
            ("user-agent".into(), concat!("partita-client/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        if self.service == ServiceKind::Table {
            headers.push(("accept".into(), "application/json;odata=minimalmetadata".to_owned()));
            headers.push((names::DATA_SERVICE_VERSION.into(), "3.0".to_owned()));
            headers.push((names::MAX_DATA_SERVICE_VERSION.into(), "3.0;NetFx".to_owned()));
        }
        headers.extend(request.headers.iter().cloned());
        if !is_read(&request.method) {
            headers.push(("content-length".into(), request.body.len().to_string()));
        }
        if let Credential::Key(key) = &endpoint.credential {
            let authorization = self.authorization(key, request, &path, &query, &headers);
            headers.push(("authorization".into(), authorization));
        }
        let scheme = if endpoint.tls { "https" } else { "http" };
        let mark = if query.is_empty() { "" } else { "?" };
        let uri = format!("{scheme}://{}{path}{mark}{query}", endpoint.authority());
        let uri: Uri = uri.parse().map_err(|source| UnsendableError::Address { path, source })?;
        let mut builder = http::Request::builder().method(request.method.clone()).uri(uri);
        for (name, value) in &headers {
            builder = builder.header(&**name, value);
        }
        Ok(builder.body(Full::new(request.body.clone()))?)
    }

    /// The header of a request that is signed with the account's key, in the form of its service.
    fn authorization(
        &self,
        key: &AccountKey,
        request: &ServiceRequest,
        path: &str,
        query: &str,
        headers: &[(Cow<'static, str>, String)],
    ) -> String {
        let (method, account) = (request.method.as_str(), self.endpoint.account.as_str());
        let header = |name| headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value);
        match self.service {
            ServiceKind::Table => {
                let comp = request.query.iter().find(|(name, _)| *name == names::COMP);
                let signed = SignedRequest {
                    method,
                    content_md5: "",
                    content_type: "",
                    date: header(names::X_MS_DATE),
                    account,
                    path,
                    comp: comp.map(|(_, value)| value.as_str()),
                };
                // SharedKeyLite does not sign the body's headers, which proxies may change.
                let signature = key.sign(&signed.string_to_sign(Scheme::SharedKeyLite));
                format!("SharedKeyLite {account}:{signature}")
            }
            ServiceKind::Queue | ServiceKind::Blob => {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, value.as_str())).collect();
                let signed = BlobQueueRequest { method, account, path, query, headers: &headers };
                // The only form that signs the query, and so the receipt of a message.
                let signature = key.sign(&signed.string_to_sign(Scheme::SharedKey));
                format!("SharedKey {account}:{signature}")
            }
        }
    }
}

/// Reads a refusal. If the body is not the service's, for example a proxy's, the first part of its text is the message.
pub fn refused(status: u16, answer: &ServiceAnswer) -> ServiceRefusal {
    let header = |name| answer.header(name).unwrap_or_default().to_owned();
    let (code, message) = wire::error_body::read(&answer.body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&answer.body);
        (header(names::X_MS_ERROR_CODE), text.chars().take(200).collect())
    });
    ServiceRefusal { status, code, message, index: None, request_id: header(names::X_MS_REQUEST_ID) }
}

/// The same of the Queue service.
fn queue_refused(status: u16, answer: &ServiceAnswer) -> ServiceRefusal {
    match queue_wire::error_body::read(&answer.body) {
        Some(entry) => {
            let request_id = answer.header(names::X_MS_REQUEST_ID).unwrap_or_default().to_owned();
            ServiceRefusal { status, code: entry.code, message: entry.message, index: None, request_id }
        }
        None => refused(status, answer),
    }
}

/// The same of the Blob service. The answer to a HEAD has no body, and its code in a header.
fn blob_refused(status: u16, answer: &ServiceAnswer) -> ServiceRefusal {
    let header = |name| answer.header(name).unwrap_or_default().to_owned();
    match blob_wire::error_body::read(&answer.body) {
        Some(entry) => ServiceRefusal {
            status,
            code: entry.code,
            message: entry.message,
            index: None,
            request_id: header(names::X_MS_REQUEST_ID),
        },
        None => refused(status, answer),
    }
}

fn version(service: ServiceKind) -> &'static str {
    match service {
        ServiceKind::Table | ServiceKind::Queue => VERSION,
        ServiceKind::Blob => BLOB_VERSION,
    }
}

/// Whether a request changes nothing.
fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Percent-encodes everything except the unreserved characters of RFC 3986.
pub fn encode(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, KEPT).to_string()
}

/// A random GUID.
pub fn id() -> String {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    model::Guid(bytes).to_string()
}

/// The text of an error with its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
