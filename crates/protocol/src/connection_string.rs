//! Connection strings, as every Azure tool writes them: read into the address of an endpoint and the credential for it.
//!
//! Opens no connection.

use common::ServiceKind;
use thiserror::Error;

use crate::names::SECONDARY_SUFFIX;
use crate::signing::AccountKey;

/// The account every emulator has, with its published key.
pub const DEVELOPMENT: &str = "UseDevelopmentStorage=true";
const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const PUBLIC_SUFFIX: &str = "core.windows.net";

/// What authorizes requests.
#[derive(Clone)]
pub enum Credential {
    Key(AccountKey),
    /// A shared access signature: a query string without `?`.
    Signature(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Signature(_) => "Signature(..)",
        })
    }
}

/// A service's endpoint and the account to sign for.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// The path before the name of a table, queue or container: empty, or `/account` in path style. Never ends in `/`.
    pub path: String,
    /// Empty if a shared access signature comes without it.
    pub account: String,
    pub credential: Credential,
    /// The address of the read-only secondary, if it is known.
    pub secondary: Option<String>,
}

/// Why a text names no endpoint. No key and no signature is shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    #[error("a part of the connection string has no =; it takes Name=value;Name=value")]
    NoEquals,
    #[error("the connection string has no AccountName; copy the whole of it")]
    NoAccountName,
    #[error("the connection string has no {}Endpoint and no AccountName; copy the whole of it", .service.title())]
    NoAddress { service: ServiceKind },
    #[error("the connection string has no AccountKey and no SharedAccessSignature; copy the whole of it")]
    NoCredential,
    #[error("the AccountKey of {account} is not Base64; copy the whole of it")]
    KeyNotBase64 { account: String },
    #[error(
        "the {service} endpoint {url:?} {defect}; write http://host:port/account or https://account.host"
    )]
    Url { service: ServiceKind, url: String, defect: UrlDefect },
}

/// What is wrong with the URL of an endpoint. The text follows the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UrlDefect {
    #[error("is neither http nor https")]
    Scheme,
    #[error("has more than a host and a path")]
    Extra,
    #[error("has a port that is not a number up to 65535")]
    Port,
    #[error("has no host")]
    NoHost,
}

impl Endpoint {
    /// The endpoint of tables.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        Self::of(ServiceKind::Table, text)
    }

    /// The endpoint of a service.
    pub fn of(service: ServiceKind, text: &str) -> Result<Self, EndpointError> {
        let parts = Parts::parse(service, text)?;
        if parts.development {
            let host = parts.proxy.map_or("http://127.0.0.1", |proxy| proxy.trim_end_matches('/'));
            let url = format!("{host}:{}/{DEVELOPMENT_ACCOUNT}", service.default_port());
            let key = key(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)?;
            let endpoint = Self::at(service, &url, DEVELOPMENT_ACCOUNT, key)?;
            return endpoint.with_secondary(service, &format!("{url}{SECONDARY_SUFFIX}"));
        }
        let account = match (parts.account, parts.signature, parts.endpoint) {
            (Some(account), ..) => account,
            // A request with a shared access signature needs the address only.
            (None, Some(_), Some(_)) => "",
            (None, Some(_), None) => return Err(EndpointError::NoAddress { service }),
            (None, None, _) => return Err(EndpointError::NoAccountName),
        };
        // With both, the key is used: it may do everything.
        let credential = match (parts.key, parts.signature) {
            (Some(text), _) => key(account, text)?,
            (None, Some(text)) => Credential::Signature(text.trim_start_matches('?').to_owned()),
            (None, None) => return Err(EndpointError::NoCredential),
        };
        match parts.endpoint {
            Some(url) => {
                let endpoint = Self::at(service, url, account, credential)?;
                match parts.secondary {
                    Some(url) => endpoint.with_secondary(service, url),
                    None => Ok(endpoint),
                }
            }
            None => {
                let protocol = parts.protocol.unwrap_or("https");
                let suffix = parts.suffix.unwrap_or(PUBLIC_SUFFIX);
                let url = |of: &str| format!("{protocol}://{account}{of}.{service}.{suffix}");
                let secondary = parts.secondary.map_or_else(|| url(SECONDARY_SUFFIX), str::to_owned);
                Self::at(service, &url(""), account, credential)?.with_secondary(service, &secondary)
            }
        }
    }

    fn with_secondary(self, service: ServiceKind, url: &str) -> Result<Self, EndpointError> {
        let secondary = Self::at(service, url, &self.account, self.credential.clone())?;
        Ok(Self { secondary: Some(secondary.url()), ..self })
    }

    /// The endpoint of a service at a URL, such as `https://shop.table.core.windows.net`.
    pub fn at(
        service: ServiceKind,
        url: &str,
        account: &str,
        credential: Credential,
    ) -> Result<Self, EndpointError> {
        let bad = |defect| {
            // The text after a question mark may be a signature.
            let url = url.split('?').next().unwrap_or_default().to_owned();
            EndpointError::Url { service, url, defect }
        };
        let (tls, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return Err(bad(UrlDefect::Scheme)),
        };
        if rest.contains(['?', '#', '@']) {
            return Err(bad(UrlDefect::Extra));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            // A colon inside brackets belongs to the address.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| bad(UrlDefect::Port))?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad(UrlDefect::NoHost));
        }
        let path = path.trim_end_matches('/').to_owned();
        let (host, account) = (host.to_owned(), account.to_owned());
        Ok(Self { tls, host, port, path, account, credential, secondary: None })
    }

    /// The value of the `Host` header: `host`, or `host:port` if the port is not the scheme's default.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The URL, without the credential.
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }
}

fn key(account: &str, text: &str) -> Result<Credential, EndpointError> {
    let bad = || EndpointError::KeyNotBase64 { account: account.to_owned() };
    AccountKey::parse(text).map(Credential::Key).ok_or_else(bad)
}

#[derive(Default)]
struct Parts<'a> {
    development: bool,
    proxy: Option<&'a str>,
    account: Option<&'a str>,
    key: Option<&'a str>,
    signature: Option<&'a str>,
    endpoint: Option<&'a str>,
    secondary: Option<&'a str>,
    protocol: Option<&'a str>,
    suffix: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn parse(service: ServiceKind, text: &'a str) -> Result<Self, EndpointError> {
        let mut parts = Self::default();
        let endpoint = format!("{service}endpoint");
        let secondary = format!("{service}secondaryendpoint");
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            // The error does not show the part: it may be a key.
            let (name, value) = part.split_once('=').ok_or(EndpointError::NoEquals)?;
            let value = Some(value.trim()).filter(|value| !value.is_empty());
            match name.trim().to_ascii_lowercase().as_str() {
                "usedevelopmentstorage" => {
                    parts.development = value.is_some_and(|value| value.eq_ignore_ascii_case("true"));
                }
                "developmentstorageproxyuri" => parts.proxy = value,
                "accountname" => parts.account = value,
                "accountkey" => parts.key = value,
                "sharedaccesssignature" => parts.signature = value,
                "defaultendpointsprotocol" => parts.protocol = value,
                "endpointsuffix" => parts.suffix = value,
                name if name == endpoint => parts.endpoint = value,
                name if name == secondary => parts.secondary = value,
                // The endpoints of other services.
                _ => {}
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = Endpoint::parse(text)
            .map_or_else(|e| e.to_string(), |e| format!("{} for {}", e.url(), e.account));
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn endpoints_are_found() {
        check("UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1 for devstoreaccount1");
        check(
            "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://host.docker.internal/",
            "http://host.docker.internal:10002/devstoreaccount1 for devstoreaccount1",
        );
        check("AccountName=shop;AccountKey=AAAA", "https://shop.table.core.windows.net for shop");
        check(
            "DefaultEndpointsProtocol=http;AccountName=shop;AccountKey=AA==;EndpointSuffix=core.chinacloudapi.cn",
            "http://shop.table.core.chinacloudapi.cn for shop",
        );
        check(
            " accountname = shop ; AccountKey=AAAA ; TableEndpoint=http://[::1]:1234/shop/;",
            "http://[::1]:1234/shop for shop",
        );
        check(
            "AccountName=a;AccountKey=AAAA;TableEndpoint=https://h:443;BlobEndpoint=http://x",
            "https://h for a",
        );
        check("AccountName=a;AccountKey=AAAA;TableEndpoint=http://[::1]", "http://[::1] for a");
    }

    #[test]
    fn each_service_has_its_own_endpoint() {
        let check = |service, text: &str, expected: (&str, Option<&str>)| {
            let endpoint = Endpoint::of(service, text).unwrap();
            assert_eq!((endpoint.url().as_str(), endpoint.secondary.as_deref()), expected, "{text}");
        };
        let own = |port: u16| format!("http://127.0.0.1:{port}/devstoreaccount1");
        for (service, port) in
            [(ServiceKind::Blob, 10000), (ServiceKind::Queue, 10001), (ServiceKind::Table, 10002)]
        {
            let secondary = format!("{}-secondary", own(port));
            check(service, DEVELOPMENT, (&own(port), Some(&secondary)));
        }
        check(
            ServiceKind::Queue,
            "AccountName=shop;AccountKey=AAAA",
            ("https://shop.queue.core.windows.net", Some("https://shop-secondary.queue.core.windows.net")),
        );
        let text = "AccountName=a;AccountKey=AAAA;BlobEndpoint=http://h:1/a;BlobSecondaryEndpoint=http://h:1/b;QueueEndpoint=http://h:2/a";
        check(ServiceKind::Blob, text, ("http://h:1/a", Some("http://h:1/b")));
        check(ServiceKind::Queue, text, ("http://h:2/a", None));
        assert_eq!(
            Endpoint::of(ServiceKind::Queue, "SharedAccessSignature=sig=x").unwrap_err().to_string(),
            "the connection string has no QueueEndpoint and no AccountName; copy the whole of it"
        );
        assert!(
            Endpoint::of(ServiceKind::Blob, "AccountName=a;AccountKey=AAAA;BlobEndpoint=x")
                .unwrap_err()
                .to_string()
                .starts_with("the blob endpoint")
        );
    }

    #[test]
    fn the_secondary_is_named_or_known_by_custom() {
        let check = |text: &str, expected: Option<&str>| {
            let endpoint = Endpoint::parse(&format!("AccountName=shop;AccountKey=AAAA;{text}")).unwrap();
            assert_eq!(endpoint.secondary.as_deref(), expected, "{text}");
        };
        check("", Some("https://shop-secondary.table.core.windows.net"));
        check("TableEndpoint=http://h:1/shop", None);
        check(
            "TableEndpoint=http://h/a;TableSecondaryEndpoint=http://h/a-secondary/",
            Some("http://h/a-secondary"),
        );
        check("UseDevelopmentStorage=true", Some("http://127.0.0.1:10002/devstoreaccount1-secondary"));
    }

    #[test]
    fn what_is_wrong_is_named_and_keys_are_not_shown() {
        check("AccountKey=AAAA", "the connection string has no AccountName; copy the whole of it");
        check(
            "AccountName=a",
            "the connection string has no AccountKey and no SharedAccessSignature; copy the whole of it",
        );
        check(
            "SharedAccessSignature=sv=1&sig=secret",
            "the connection string has no TableEndpoint and no AccountName; copy the whole of it",
        );
        check("secret", "a part of the connection string has no =; it takes Name=value;Name=value");
        check("AccountName=a;AccountKey=!!", "the AccountKey of a is not Base64; copy the whole of it");
        let way_out = "write http://host:port/account or https://account.host";
        for (url, why) in [
            ("ftp://h", "is neither http nor https"),
            ("h:1", "is neither http nor https"),
            ("http://h:70000/a", "has a port that is not a number up to 65535"),
            ("http:///a", "has no host"),
            ("http://h/a?sig=x", "has more than a host and a path"),
        ] {
            check(
                &format!("AccountName=a;AccountKey=AAAA;TableEndpoint={url}"),
                &format!("the table endpoint {:?} {why}; {way_out}", url.trim_end_matches("?sig=x")),
            );
        }
    }

    #[test]
    fn a_signature_stands_for_a_key() {
        let signature = "sv=2019-02-02&tn=books&sig=a%2Fb%3D";
        for (text, expected) in [
            (format!("SharedAccessSignature={signature};TableEndpoint=http://h:1/a"), "http://h:1/a for "),
            (
                format!("AccountName=a;SharedAccessSignature=?{signature}"),
                "https://a.table.core.windows.net for a",
            ),
        ] {
            check(&text, expected);
            let endpoint = Endpoint::parse(&text).unwrap();
            assert!(matches!(&endpoint.credential, Credential::Signature(found) if found == signature));
            assert!(!format!("{endpoint:?}").contains("sig="), "{endpoint:?}");
        }
        let both = Endpoint::parse("AccountName=a;AccountKey=AAAA;SharedAccessSignature=sig=b").unwrap();
        assert!(matches!(both.credential, Credential::Key(_)));
    }
}
