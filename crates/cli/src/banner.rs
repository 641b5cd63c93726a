//! What `partita serve` prints once it is ready.

use front::{Listener, account};

use crate::config::{CertificateSource, Config, Tls};

/// Endpoints and connection strings. Shows a key only if it is the public one.
pub fn banner(config: &Config, listeners: &[Listener], place: &str) -> String {
    let mut lines = vec![format!("Partita {} is ready.", env!("CARGO_PKG_VERSION"))];
    let endpoints = || {
        let each = |listener| config.accounts.iter().map(move |account| (listener, &account.name));
        listeners.iter().flat_map(each).map(|(listener, name): (&Listener, _)| {
            let (scheme, address) = (listener.scheme(), listener.address());
            (scheme, name, format!("{scheme}://{address}/{name}"))
        })
    };
    for (_, _, endpoint) in endpoints() {
        lines.push(format!("  Table endpoint     {endpoint}"));
    }
    lines.push(format!("  Data               {place}"));
    if let Some(Tls { source: CertificateSource::Development(directory), .. }) = &config.tls {
        let authority = directory.join("authority.pem");
        let authority = std::path::absolute(&authority).unwrap_or(authority);
        lines.push(format!(
            "  Authority          {} (configure HTTPS clients to trust it)",
            authority.display()
        ));
    }
    let key = if config.development { account::DEVELOPMENT_KEY } else { "<key>" };
    for (scheme, name, endpoint) in endpoints() {
        lines.push(format!(
            "  Connection string  DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};TableEndpoint={endpoint};"
        ));
    }
    lines.join("\n")
}
