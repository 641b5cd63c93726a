//! Where the services of this server are reached.

use std::net::SocketAddr;

use common::{AccountName, ServiceKind};
use front::Listener;

/// A port of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceEndpoint {
    pub service: ServiceKind,
    pub scheme: &'static str,
    pub address: SocketAddr,
}

impl From<&Listener> for ServiceEndpoint {
    fn from(listener: &Listener) -> Self {
        Self { service: listener.service(), scheme: listener.scheme(), address: listener.address() }
    }
}

impl ServiceEndpoint {
    /// The endpoint of a service, with the scheme of the request if there is one.
    pub(crate) fn of(all: &[Self], service: ServiceKind, scheme: &str) -> Option<Self> {
        let mut own = all.iter().filter(|endpoint| endpoint.service == service);
        own.clone().find(|endpoint| endpoint.scheme == scheme).or_else(|| own.next()).copied()
    }

    /// The URL for people. A server that listens on all addresses is reached as the administration is, at `host`.
    pub(crate) fn url(&self, host: &str, account: &AccountName) -> String {
        let port = self.address.port();
        match self.address.ip().is_unspecified() {
            false => format!("{}://{}/{account}", self.scheme, self.address),
            true => {
                let end = host.rfind(']').map_or(0, |at| at + 1);
                let host = host[end..].find(':').map_or(host, |at| &host[..end + at]);
                format!("{}://{host}:{port}/{account}", self.scheme)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_where_the_request_found_it() {
        let account = AccountName::parse("shop").unwrap();
        for (address, host, expected) in [
            ("127.0.0.1:10002", "localhost:10004", "http://127.0.0.1:10002/shop"),
            ("0.0.0.0:10002", "localhost:10004", "http://localhost:10002/shop"),
            ("0.0.0.0:10002", "10.1.2.3", "http://10.1.2.3:10002/shop"),
            ("[::]:10002", "[::1]:10004", "http://[::1]:10002/shop"),
            ("[::]:10002", "[::1]", "http://[::1]:10002/shop"),
        ] {
            let address = address.parse().unwrap();
            let endpoint = ServiceEndpoint { service: ServiceKind::Table, scheme: "http", address };
            assert_eq!(endpoint.url(host, &account), expected);
        }
    }
}
