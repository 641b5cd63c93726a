//! Which hosts a request may name. A page of a stranger whose name was pointed at this machine (DNS rebinding) sends that
//! name; nobody can point a name at an address literal.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::HOST;
use thiserror::Error;

/// A name under which the administration is reached, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("admin-host is {0:?}; it takes a host name without scheme and port, such as tables.example.com")]
pub struct HostNameError(String);

impl HostName {
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        let is_name = !text.is_empty()
            && text.len() <= 253
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        if is_name { Ok(Self(text.to_ascii_lowercase())) } else { Err(HostNameError(text.to_owned())) }
    }
}

/// The host of a request, with its port, if it is one of ours and the request names no other.
pub(crate) fn accepted<'h>(headers: &'h HeaderMap, names: &[HostName]) -> Option<&'h str> {
    let mut sent = headers.get_all(HOST).iter();
    let host = sent.next()?.to_str().ok()?;
    (sent.next().is_none() && is_ours(host, names)).then_some(host)
}

fn is_ours(host: &str, names: &[HostName]) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let Some((inside, port)) = rest.split_once(']') else { return false };
            if inside.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            return is_port(port);
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_known = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.0.eq_ignore_ascii_case(name));
    is_known && is_port(port)
}

/// Nothing, or a colon and a number.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_address_literals_localhost_and_given_names_are_ours() {
        let names = [HostName::parse("Tables.example.com").unwrap()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:10004",
            "[::1]:10004",
            "[::1]",
            "10.1.2.3:1",
            "localhost:10004",
            "LOCALHOST",
            "tables.EXAMPLE.com:443",
        ] {
            assert!(is_ours(host, &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:10004",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "tables.example.com.evil.example",
            "127.0.0.1@evil.example",
            "127.0.0.1:evil",
            "127.0.0.1:99999",
            "[::1",
            "[evil]",
            "::1",
            "2130706433",
            "0x7f.1",
        ] {
            assert!(!is_ours(host, &names), "{host}");
        }
    }

    #[test]
    fn two_hosts_are_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(accepted(&headers, &[]), None);
        headers.append(HOST, "localhost".parse().unwrap());
        assert_eq!(accepted(&headers, &[]), Some("localhost"));
        headers.append(HOST, "localhost".parse().unwrap());
        assert_eq!(accepted(&headers, &[]), None);
    }
}
