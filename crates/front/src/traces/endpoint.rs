//! Where spans are sent to: an address of OTLP over HTTP, and one request to it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::{Authority, Scheme};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// What follows the address that collectors are known by.
const TRACES_PATH: &str = "/v1/traces";
/// Of an answer; it says little.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone)]
pub struct OtlpEndpoint {
    authority: Authority,
    host: String,
    port: u16,
    path: String,
    /// With HTTPS.
    tls: Option<TlsConnector>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OtlpEndpointError {
    #[error("{0:?} is not an address of a collector; use one like http://127.0.0.1:4318")]
    Malformed(String),
    /// Without the address, which may hold a password.
    #[error("the collector's address has a user or a query; use one like http://127.0.0.1:4318")]
    TooMuch,
    #[error("no certificate of an authority is installed, so no collector can be trusted with HTTPS")]
    NoAuthorities,
}

/// Why spans were not taken.
#[derive(Debug, Error)]
pub enum SendError {
    #[error("can't connect: {0}")]
    Connect(#[source] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the request can't be made: {0}")]
    Request(#[from] http::Error),
    #[error("the collector answered {0}")]
    Refused(StatusCode),
    #[error("no answer in time")]
    Late,
}

impl SendError {
    /// Whether the same spans may be taken later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502..=504),
            Self::Connect(_) | Self::Http(_) | Self::Late => true,
            Self::Request(_) => false,
        }
    }
}

impl OtlpEndpoint {
    /// An address with or without the path of traces.
    pub fn parse(text: &str) -> Result<Self, OtlpEndpointError> {
        if text.contains(['@', '?']) {
            return Err(OtlpEndpointError::TooMuch);
        }
        let malformed = || OtlpEndpointError::Malformed(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let authority = uri.authority().ok_or_else(malformed)?.clone();
        if authority.host().is_empty() {
            return Err(malformed());
        }
        let (tls, usual_port) = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => (None, 80),
            Some(scheme) if *scheme == Scheme::HTTPS => (Some(connector()?), 443),
            _ => return Err(malformed()),
        };
        let path = uri.path().trim_end_matches('/');
        let path = if path.ends_with(TRACES_PATH) { path.to_owned() } else { format!("{path}{TRACES_PATH}") };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self { port: authority.port_u16().unwrap_or(usual_port), host, authority, path, tls })
    }

    /// Posts one message, on a connection of its own: there are few of them, and a collector may move.
    pub async fn post(&self, message: Bytes) -> Result<(), SendError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(SendError::Connect)?;
        let Some(tls) = &self.tls else { return self.post_on(stream, message).await };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|error| SendError::Connect(std::io::Error::other(error)))?;
        self.post_on(tls.connect(name, stream).await.map_err(SendError::Connect)?, message).await
    }

    async fn post_on(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        message: Bytes,
    ) -> Result<(), SendError> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(HOST, self.authority.as_str())
            .header(USER_AGENT, "Partita")
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(CONTENT_LENGTH, message.len())
            .body(Full::new(message))?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            // Read, so that the collector does not see a broken connection; what it says does not matter.
            let _ = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            Ok::<_, hyper::Error>(head.status)
        };
        // A collector may close the connection with its answer. If it closes it before, the exchange fails too.
        let connection = async {
            let _ = connection.await;
            std::future::pending::<Infallible>().await
        };
        let status = tokio::select! {
            status = exchange => status?,
            never = connection => match never {},
        };
        if status.is_success() { Ok(()) } else { Err(SendError::Refused(status)) }
    }
}

fn connector() -> Result<TlsConnector, OtlpEndpointError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(OtlpEndpointError::NoAuthorities);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    // The provider has the protocols' ciphers: it is rustls' own.
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|_| OtlpEndpointError::NoAuthorities)?;
    Ok(TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl fmt::Debug for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_with_the_path_of_traces() {
        let check = |text: &str, expected: &str, host: &str, port: u16| {
            let endpoint = OtlpEndpoint::parse(text).unwrap();
            assert_eq!(
                (endpoint.to_string().as_str(), endpoint.host.as_str(), endpoint.port),
                (expected, host, port)
            );
        };
        check("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", "127.0.0.1", 4318);
        check("http://collector/", "http://collector/v1/traces", "collector", 80);
        check("http://[::1]:4318/otlp/", "http://[::1]:4318/otlp/v1/traces", "::1", 4318);
        check("http://c:1/v1/traces", "http://c:1/v1/traces", "c", 1);
        for wrong in
            ["", "127.0.0.1:4318", "/v1/traces", "ftp://a", "http://user:key@a", "http://a?b=c", "http://"]
        {
            assert!(OtlpEndpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_refused_address_does_not_show_a_password() {
        for wrong in ["http://user:secret@a", "user:secret@a", "http://a?key=secret", "user:secret @ a"] {
            let error = OtlpEndpoint::parse(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{wrong}: {error}");
        }
    }
}
