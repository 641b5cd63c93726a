//! A bound socket, plain or with TLS.

use std::fmt;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub struct Port {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    address: SocketAddr,
}

impl Port {
    /// Plain HTTP without an acceptor, HTTPS with one.
    pub async fn bind(address: &str, tls: Option<TlsAcceptor>) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { socket, tls, address })
    }

    /// With the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.address)
    }
}
