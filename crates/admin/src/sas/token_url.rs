//! A URL with a token, or a token alone.
//!
//! A table's token names its table (`tn`), and a blob's token says what kind of resource it is for (`sr`). A queue's token
//! says neither. The names of queues, containers and blobs are in the URL only, and are signed all the same.

use common::ServiceKind;
use front::Address;
use front::account::{Account, Accounts};
use percent_encoding::percent_decode_str;
use protocol::QueryString;
use protocol::signing::sas::{BlobTarget, Sas};

use super::SasError;

/// The parts of a URL. A token alone has only a query.
#[derive(Debug)]
pub(crate) struct TokenUrl<'a> {
    pub scheme: &'a str,
    pub host: &'a str,
    pub path: &'a str,
    pub query: &'a str,
}

impl<'a> TokenUrl<'a> {
    pub fn split(text: &'a str) -> Self {
        let (address, query) = text.split_once('?').unwrap_or(("", text));
        let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self { scheme, host, path, query }
    }

    /// The service that the host names, as in `account.queue.core.windows.net`.
    pub fn service_of_host(&self) -> Option<ServiceKind> {
        self.host.split('.').nth(1).and_then(ServiceKind::of_name)
    }

    /// The service that the host names, or else the one that emulators serve at this port.
    pub fn likely_service(&self) -> Option<ServiceKind> {
        let port = self.host.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let of_port = || ServiceKind::ALL.into_iter().find(|service| Some(service.default_port()) == port);
        self.service_of_host().or_else(of_port)
    }

    /// The first name in the path after the account, and what follows it, both decoded.
    fn names(&self, service: ServiceKind, account: &Account) -> Result<(String, String), SasError> {
        if self.host.is_empty() {
            return Err(SasError::NoUrl);
        }
        let accounts = Accounts::new([account.clone()]);
        let address =
            Address::find(self.scheme, self.host, self.path, &accounts, (service, &ServiceKind::ALL))
                .map_err(|_| SasError::OtherAccount { account: account.name.clone() })?;
        // The Blob service takes an encoded slash for a slash, others for a character of a name.
        let decode = |text| percent_decode_str(text).decode_utf8().map_err(|_| SasError::NotText);
        let whole = match service {
            ServiceKind::Blob => decode(address.path)?,
            ServiceKind::Queue | ServiceKind::Table => address.path.into(),
        };
        let path = whole.strip_prefix('/').unwrap_or(&whole);
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match service {
            ServiceKind::Blob => Ok((first.to_owned(), rest.to_owned())),
            ServiceKind::Queue | ServiceKind::Table => {
                Ok((decode(first)?.into_owned(), decode(rest)?.into_owned()))
            }
        }
    }
}

/// The token in a URL, and its signature.
pub(crate) fn read(
    url: &TokenUrl<'_>,
    query: &QueryString,
    account: &Account,
) -> Result<Option<(Sas, String)>, SasError> {
    let is_account = query.get("ss").is_some() && query.get("srt").is_some();
    let service = match (query.get("tn"), query.get("sr")) {
        // Any of the services' tokens may be an account's; the one of tables takes no name from the URL.
        _ if is_account => ServiceKind::Table,
        (Some(_), _) => ServiceKind::Table,
        // As some SDKs write it in a queue's token that is signed with a user delegation key.
        (None, Some("q")) => ServiceKind::Queue,
        (None, Some(_)) => ServiceKind::Blob,
        (None, None) => url.likely_service().unwrap_or(ServiceKind::Queue),
    };
    Ok(match service {
        ServiceKind::Table => Sas::read(query)?,
        ServiceKind::Queue => Sas::read_queue(query, &url.names(service, account)?.0)?,
        ServiceKind::Blob => {
            let (first, rest) = url.names(service, account)?;
            let is_of_blob = matches!(query.get("sr"), Some("b" | "bs" | "bv"));
            let target = match rest.as_str() {
                // A blob of the root container.
                "" if is_of_blob && !first.is_empty() => {
                    BlobTarget { container: "$root", blob: Some(&first) }
                }
                "" => BlobTarget { container: &first, blob: None },
                blob => BlobTarget { container: &first, blob: Some(blob) },
            };
            Sas::read_blob(query, target)?
        }
    })
}
