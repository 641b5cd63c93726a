//! Reads `cassandra://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/KEYSPACE[?NAME=VALUE&…]`.
//!
//! Opens no file and asks no name server: it only checks the form. Errors name the part that is wrong and what it
//! takes, and never show what may be a password.

use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::options::{Login, Options, Password, Reads, Tls};

const SCHEME: &str = "cassandra://";
const DEFAULT_PORT: u16 = 9042;
/// Cassandra's own limit.
const KEYSPACE_CHARS_MAX: usize = 48;
const LEASE_MILLISECONDS: std::ops::RangeInclusive<u64> = 10..=60_000;

/// Why an address can't be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OptionsError {
    #[error("a store's address begins with cassandra://, as in cassandra://10.0.0.1,10.0.0.2/partita")]
    Scheme,
    #[error("the @ comes too late; a / in a user or password is written %2F, and a ? is %3F")]
    LateLogin,
    #[error("host {host:?} {why}; hosts are NAME, NAME:PORT or [IPV6]:PORT, with commas")]
    Host { host: String, why: HostError },
    #[error("the keyspace is missing; it stands after the hosts, as in cassandra://10.0.0.1/partita")]
    NoKeyspace,
    #[error(
        "keyspace {name:?} can't be used; it takes up to {KEYSPACE_CHARS_MAX} lower-case letters, digits and _, with a \
         letter first"
    )]
    Keyspace { name: String },
    #[error("{name} after the ? has no value; write NAME=VALUE")]
    NoValue { name: String },
    #[error("{name} is given twice; it takes one value")]
    Twice { name: String },
    #[error(
        "{name} is not known; there are reads, datacenter, user, password-file, tls, ca, cert, key, server-name, \
         table-lease-ms, split-above, merge-below, writes-under-way, combine and unsafe"
    )]
    Unknown { name: String },
    #[error("{name} is empty; leave it out or give it a value")]
    Empty { name: String },
    #[error("{name} is {value:?}; it takes {takes}")]
    Value { name: String, value: String, takes: &'static str },
    #[error("{name} is {value}; it takes 1 at least")]
    Zero { name: String, value: String },
    #[error("table-lease-ms is {0}; it takes {least} to {most}", least = LEASE_MILLISECONDS.start(), most = LEASE_MILLISECONDS.end())]
    TableLease(u64),
    #[error(
        "split-above is {split_above} and merge-below {merge_below}; merge-below takes half of split-above at most"
    )]
    MergeBelow { split_above: usize, merge_below: usize },
    #[error("the user is given before @ and as user; it takes one of them")]
    UserTwice,
    #[error("the password is given before @ and as password-file; it takes one of them")]
    PasswordTwice,
    #[error("there is no password=; name a file that holds it with password-file=FILE")]
    PasswordSetting,
    #[error("user {user} has no password; name a file that holds it with password-file=FILE")]
    NoPassword { user: String },
    #[error("there is a password and no user; write user=NAME, or NAME:PASSWORD@ before the hosts")]
    NoUser,
    #[error("cert and key are given together, or neither of them")]
    HalfIdentity,
    #[error("ca, cert, key and server-name are for TLS; add tls=true")]
    NoTls,
    #[error("{part} has a % that begins no %-encoding; a % itself is written %25")]
    Percent { part: String },
    #[error("{part} is not UTF-8 once its %-encodings are read")]
    NotUtf8 { part: String },
}

/// What is wrong with a host.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HostError {
    #[error("has no closing bracket")]
    Bracket,
    #[error("is no IPv6 address")]
    Ipv6,
    #[error("is empty")]
    Empty,
    #[error("has a character that no host has")]
    Character,
    #[error("has no valid port")]
    Port,
}

impl Options {
    pub fn from_address(text: &str) -> Result<Self, OptionsError> {
        let rest = text.strip_prefix(SCHEME).ok_or(OptionsError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, keyspace) = rest.split_once('/').unwrap_or((rest, ""));
        // An @ in a password should be written %40. A host has none, so the last @ ends the login.
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let is_late = login.is_none() && text.contains('@');
        let nodes: Result<_, _> = hosts.split(',').map(node).collect();
        // If the @ comes too late, what looks like a host or keyspace may be a part of the password.
        let nodes = nodes.map_err(|error| if is_late { OptionsError::LateLogin } else { error })?;
        if keyspace.contains('@') {
            return Err(OptionsError::LateLogin);
        }
        let mut options = Self::new(nodes, keyspace_name(keyspace)?);
        let mut said = Said::default();
        if let Some(login) = login {
            let (user, password) = login.split_once(':').map_or((login, None), |(user, p)| (user, Some(p)));
            said.user = Some(decode("the user before @", user)?);
            said.password =
                password.map(|text| decode("the password before @", text)).transpose()?.map(Password::Text);
        }
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| OptionsError::NoValue { name: shown(pair).to_owned() })?;
            let value = decode(shown(name), value)?;
            if seen.contains(&name) {
                return Err(OptionsError::Twice { name: shown(name).to_owned() });
            }
            seen.push(name);
            setting(&mut options, &mut said, name, value)?;
        }
        options.login = said.login()?;
        options.tls = said.tls()?;
        // Otherwise a merged segment could be large enough to be split again, for ever.
        if options.janitor.merge_below.saturating_mul(2) > options.janitor.split_above {
            let (split_above, merge_below) = (options.janitor.split_above, options.janitor.merge_below);
            return Err(OptionsError::MergeBelow { split_above, merge_below });
        }
        Ok(options)
    }
}

/// Settings that are checked together.
#[derive(Default)]
struct Said {
    user: Option<String>,
    password: Option<Password>,
    tls: Option<bool>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    server_name: Option<String>,
}

impl Said {
    fn login(&mut self) -> Result<Option<Login>, OptionsError> {
        match (self.user.take(), self.password.take()) {
            (None, None) => Ok(None),
            (Some(user), Some(password)) if !user.is_empty() => Ok(Some(Login { user, password })),
            (Some(user), None) if !user.is_empty() => Err(OptionsError::NoPassword { user }),
            _ => Err(OptionsError::NoUser),
        }
    }

    fn tls(&mut self) -> Result<Option<Tls>, OptionsError> {
        let identity = match (self.certificate.take(), self.key.take()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return Err(OptionsError::HalfIdentity),
        };
        let tls = Tls { authority: self.authority.take(), identity, server_name: self.server_name.take() };
        match self.tls {
            Some(true) => Ok(Some(tls)),
            Some(false) | None if tls == Tls::default() => Ok(None),
            _ => Err(OptionsError::NoTls),
        }
    }
}

fn setting(options: &mut Options, said: &mut Said, name: &str, value: String) -> Result<(), OptionsError> {
    match name {
        "reads" => {
            options.reads = match value.as_str() {
                "serial" => Reads::Serial,
                "quorum" => Reads::Quorum,
                _ => return Err(unfit(name, &value, "serial or quorum")),
            }
        }
        "datacenter" => options.datacenter = Some(full(name, value)?),
        "user" if said.user.is_some() => {
            return Err(OptionsError::UserTwice);
        }
        "user" => said.user = Some(full(name, value)?),
        "password-file" if said.password.is_some() => {
            return Err(OptionsError::PasswordTwice);
        }
        "password-file" => said.password = Some(Password::File(full(name, value)?.into())),
        "password" => {
            return Err(OptionsError::PasswordSetting);
        }
        "tls" => said.tls = Some(truth(name, &value)?),
        "ca" => said.authority = Some(full(name, value)?.into()),
        "cert" => said.certificate = Some(full(name, value)?.into()),
        "key" => said.key = Some(full(name, value)?.into()),
        "server-name" => said.server_name = Some(full(name, value)?),
        "table-lease-ms" => {
            let lease = number(name, &value)?;
            if !LEASE_MILLISECONDS.contains(&lease) {
                return Err(OptionsError::TableLease(lease));
            }
            options.table_lease = Duration::from_millis(lease);
        }
        "split-above" => options.janitor.split_above = count(name, &value)?,
        "merge-below" => options.janitor.merge_below = count(name, &value)?,
        "writes-under-way" => options.writes_under_way = count(name, &value)?,
        "combine" => options.combine = truth(name, &value)?,
        "unsafe" => options.accept_unsafe = truth(name, &value)?,
        _ => return Err(OptionsError::Unknown { name: shown(name).to_owned() }),
    }
    Ok(())
}

/// Parses `host`, `host:port`, `[v6]` or `[v6]:port`. The result always has a port.
fn node(text: &str) -> Result<String, OptionsError> {
    let wrong = |why| OptionsError::Host { host: text.to_owned(), why };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(|| wrong(HostError::Bracket))?;
        host.parse::<Ipv6Addr>().map_err(|_| wrong(HostError::Ipv6))?;
        (format!("[{host}]"), if port.is_empty() { None } else { Some(port.strip_prefix(':').unwrap_or("")) })
    } else {
        let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let host = decode("a host", host)?;
        if host.is_empty() {
            return Err(wrong(HostError::Empty));
        }
        if !host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')) {
            return Err(wrong(HostError::Character));
        }
        (host, port)
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong(HostError::Port))?,
    };
    Ok(format!("{host}:{port}"))
}

/// A keyspace name that needs no quotes in CQL. Without quotes, CQL ignores case.
fn keyspace_name(text: &str) -> Result<String, OptionsError> {
    let name = decode("the keyspace", text)?;
    if name.is_empty() {
        return Err(OptionsError::NoKeyspace);
    }
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.len() <= KEYSPACE_CHARS_MAX;
    if is_plain { Ok(name) } else { Err(OptionsError::Keyspace { name }) }
}

/// The name for an error message, unless it may be a part of a password.
fn shown(name: &str) -> &str {
    if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') { name } else { "a name" }
}

fn decode(part: &str, text: &str) -> Result<String, OptionsError> {
    // A lone % is refused, because a password with a wrong encoding would be a wrong password.
    let bytes = text.as_bytes();
    let is_whole = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !is_whole {
        return Err(OptionsError::Percent { part: part.to_owned() });
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| OptionsError::NotUtf8 { part: part.to_owned() })
}

fn full(name: &str, value: String) -> Result<String, OptionsError> {
    if value.is_empty() { Err(OptionsError::Empty { name: name.to_owned() }) } else { Ok(value) }
}

fn truth(name: &str, value: &str) -> Result<bool, OptionsError> {
    value.parse().map_err(|_| unfit(name, value, "true or false"))
}

fn number(name: &str, value: &str) -> Result<u64, OptionsError> {
    value.parse().map_err(|_| unfit(name, value, "a number"))
}

fn count(name: &str, value: &str) -> Result<usize, OptionsError> {
    let counted = number(name, value)?;
    usize::try_from(counted)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| OptionsError::Zero { name: name.to_owned(), value: value.to_owned() })
}

fn unfit(name: &str, value: &str, takes: &'static str) -> OptionsError {
    OptionsError::Value { name: name.to_owned(), value: value.to_owned(), takes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::from_address(text).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_have_their_ports() {
        for (hosts, expected) in [
            ("a", vec!["a:9042"]),
            ("a:1,b.c-d_e:65535", vec!["a:1", "b.c-d_e:65535"]),
            ("127.0.0.1,[::1],[fe80::1]:7", vec!["127.0.0.1:9042", "[::1]:9042", "[fe80::1]:7"]),
            ("b%C3%BCcher.example", vec!["bücher.example:9042"]),
        ] {
            let options = parse(&format!("cassandra://{hosts}/k")).unwrap();
            assert_eq!(options.nodes, expected);
            assert_eq!(options, Options::new(options.nodes.clone(), "k"));
        }
    }

    #[test]
    fn every_setting_is_read() {
        let options = parse(
            "cassandra://h/shop_1?reads=quorum&datacenter=D%201&user=u%26v&password-file=/p%25&tls=true&ca=/a&cert=/c&key=/k\
             &server-name=nodes.example&table-lease-ms=250&split-above=200&merge-below=20&writes-under-way=9\
             &combine=false&unsafe=true",
        );
        let expected = Options {
            login: Some(Login { user: "u&v".into(), password: Password::File("/p%".into()) }),
            tls: Some(Tls {
                authority: Some("/a".into()),
                identity: Some(("/c".into(), "/k".into())),
                server_name: Some("nodes.example".into()),
            }),
            datacenter: Some("D 1".into()),
            reads: Reads::Quorum,
            table_lease: Duration::from_millis(250),
            janitor: crate::Schedule { split_above: 200, merge_below: 20, ..Default::default() },
            writes_under_way: 9,
            combine: false,
            accept_unsafe: true,
            ..Options::new(vec!["h:9042".into()], "shop_1")
        };
        assert_eq!(options, Ok(expected));
        assert_eq!(parse("cassandra://h/k?tls=true").unwrap().tls, Some(Tls::default()));
        assert_eq!(parse("cassandra://h/k?tls=false").unwrap().tls, None);
    }

    #[test]
    fn a_password_is_read_and_never_shown() {
        for (login, password) in
            [("me:s3cr3t", "s3cr3t"), ("me:s%40%2F%3A3cr3t", "s@/:3cr3t"), ("me:a@s3cr3t", "a@s3cr3t")]
        {
            let options = parse(&format!("cassandra://{login}@h/k")).unwrap();
            let expected = Login { user: "me".into(), password: Password::Text(password.into()) };
            assert_eq!(options.login, Some(expected));
            assert!(!format!("{options:?} {options}").contains("cr3t"));
            assert_eq!(options.to_string(), "cassandra://me@h:9042/k");
        }
        // Some of these forget to encode what is in the password.
        for login in [
            "me:s3cr3t@,h/k",
            "me:s3cr3t@h",
            "me:s3cr3t%@h/k",
            ":s3cr3t@h/k",
            "me:s3/cr3t@h/k",
            "me:1/cr3t@h/k",
            "me:s3cr3t?@h/k",
            "me:1/a?s3cr3t=@h/k",
            "me:cr3t?x=@h/k",
        ] {
            let text = format!("cassandra://{login}");
            let text = text.as_str();
            let error = parse(text).unwrap_err();
            assert!(!error.contains("cr3t"), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named_with_the_way_out() {
        for (text, expected) in [
            ("cassandra:/h/k", "begins with cassandra://"),
            ("cassandra:///k", "host \"\" is empty"),
            ("cassandra://a,,b/k", "host \"\" is empty"),
            ("cassandra://a:/k", "host \"a:\" has no valid port"),
            ("cassandra://a:0/k", "has no valid port"),
            ("cassandra://a:65536/k", "has no valid port"),
            ("cassandra://::1/k", "host \"::1\" is empty; hosts are NAME, NAME:PORT or [IPV6]:PORT"),
            ("cassandra://[::1/k", "no closing bracket"),
            ("cassandra://[x]/k", "is no IPv6 address"),
            ("cassandra://[::1]9042/k", "has no valid port"),
            ("cassandra://a b/k", "a character that no host has"),
            ("cassandra://a", "the keyspace is missing"),
            ("cassandra://a/", "the keyspace is missing"),
            ("cassandra://a/K", "keyspace \"K\" can't be used"),
            ("cassandra://a/1k", "with a letter first"),
            ("cassandra://a/k/l", "keyspace \"k/l\" can't be used"),
            ("cassandra://a/k?reads", "reads after the ? has no value"),
            ("cassandra://a/k?reads=dirty", "it takes serial or quorum"),
            ("cassandra://a/k?tls=yes", "it takes true or false"),
            ("cassandra://a/k?ca=/a", "add tls=true"),
            ("cassandra://a/k?tls=false&ca=/a", "add tls=true"),
            ("cassandra://a/k?tls=true&cert=/a", "cert and key are given together"),
            ("cassandra://u@a/k", "user u has no password"),
            ("cassandra://a/k?password-file=/p", "a password and no user"),
            ("cassandra://u:p@a/k?user=v", "one of them"),
            ("cassandra://u:p@a/k?password-file=/p", "one of them"),
            ("cassandra://a/k?password=p", "password-file=FILE"),
            ("cassandra://a/k?user=", "user is empty"),
            ("cassandra://a/k?reads=serial&reads=serial", "reads is given twice"),
            ("cassandra://a/k?table-lease-ms=9", "it takes 10 to 60000"),
            ("cassandra://a/k?split-above=-1", "it takes a number"),
            ("cassandra://a/k?split-above=0", "it takes 1 at least"),
            ("cassandra://a/k?split-above=10&merge-below=6", "half of split-above"),
            ("cassandra://a/k?datacenter=%zz", "a % itself is written %25"),
            ("cassandra://a/k?datacenter=%ff", "is not UTF-8"),
            ("cassandra://a/k?colour=red", "colour is not known; there are reads,"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(
            text in prop_oneof![any::<String>(), "cassandra://[a-c:@%0-9,\\[\\]/?&=]{0,30}",
                "cassandra://([a-c]{1,3}(:[0-9]{1,5})?,){0,2}[a-c]/[a-d]{1,4}(\\?(reads|tls|user|unsafe)=(true|serial|a%2)(&ca=b)?)?"],
        ) {
            if let Ok(options) = Options::from_address(&text) {
                prop_assert!(!options.nodes.is_empty());
                // What is shown leads to the same nodes and keyspace.
                let shown = options.to_string();
                let plain = shown.rsplit_once('@').map_or(shown.clone(), |(_, rest)| format!("cassandra://{rest}"));
                let again = Options::from_address(&plain).unwrap();
                prop_assert_eq!(again.nodes, options.nodes);
                prop_assert_eq!(again.keyspace, options.keyspace);
            }
        }
    }
}
