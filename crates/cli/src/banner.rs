//! What `partita serve` prints once it is ready.

use front::{Listener, Port, ServiceKind, account};

use crate::config::{CertificateSource, Config, Tls};

/// Endpoints and connection strings. Shows a key only if it is the public one.
pub fn banner(config: &Config, listeners: &[Listener], admin: Option<&Port>, place: &str) -> String {
    let mut lines = vec![format!("Partita {} is ready.", env!("CARGO_PKG_VERSION"))];
    let endpoint =
        |listener: &Listener, account| format!("{}://{}/{account}", listener.scheme(), listener.address());
    for listener in listeners {
        let service = listener.service().title();
        for account in &config.accounts {
            let label = format!("{service} endpoint");
            lines.push(format!("  {label:<18} {}", endpoint(listener, &account.name)));
        }
    }
    lines.push(format!("  Data               {place}"));
    if let Some(port) = admin {
        lines.push(format!("  Console and metrics: {}://{}/", port.scheme(), port.address()));
    }
    if let Some(Tls { source: CertificateSource::Development(directory), .. }) = &config.tls {
        let authority = directory.join("authority.pem");
        let authority = std::path::absolute(&authority).unwrap_or(authority);
        lines.push(format!(
            "  Authority          {} (configure HTTPS clients to trust it)",
            authority.display()
        ));
    }
    let key = if config.development { account::DEVELOPMENT_KEY } else { "<key>" };
    // Every scheme has a port of tables, and beside it one of queues if those are served.
    for tables in listeners.iter().filter(|listener| listener.service() == ServiceKind::Table) {
        let scheme = tables.scheme();
        let of_scheme = || listeners.iter().filter(|listener| listener.scheme() == scheme);
        for account in &config.accounts {
            let name = &account.name;
            let endpoints: String = of_scheme()
                .map(|listener| {
                    format!("{}Endpoint={};", listener.service().title(), endpoint(listener, name))
                })
                .collect();
            lines.push(format!(
                "  Connection string  DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};{endpoints}"
            ));
        }
    }
    lines.join("\n")
}
