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

/// What Azurite prints, which programs that start it wait for. They match different versions of it, so there is a line of each.
#[derive(Debug)]
pub struct AzuriteLines {
    /// The title and the address of each service, in Azurite's order.
    services: Vec<(&'static str, String)>,
}

impl AzuriteLines {
    pub fn of(listeners: &[Listener]) -> Self {
        let address = |listener: &Listener| format!("{}://{}", listener.scheme(), listener.address());
        let in_order = [ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table];
        let of_service =
            |service| listeners.iter().filter(move |listener: &&Listener| listener.service() == service);
        let services = in_order
            .into_iter()
            .flat_map(of_service)
            .map(|listener| (listener.service().title(), address(listener)));
        Self { services: services.collect() }
    }

    pub fn at_start(&self) -> String {
        let lines = |(service, address): &(&str, String)| {
            format!(
                "Azurite {service} service is starting at {address}\n\
                 Azurite {service} service is successfully listening at {address}\n\
                 Azurite {service} service successfully listens on {address}\n"
            )
        };
        self.services.iter().map(lines).collect()
    }

    pub fn at_stop(&self) -> String {
        let lines = |(service, _): &(&str, String)| {
            format!(
                "Azurite {service} service is closing...\nAzurite {service} service successfully closed\n"
            )
        };
        self.services.iter().map(lines).collect()
    }
}
