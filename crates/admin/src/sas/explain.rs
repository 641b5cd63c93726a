//! What a token grants, and why it would be refused.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use common::{DateTime, ServiceKind};
use front::access::Denial;
use front::account::Account;
use front::delegation::{self, Rights};
use front::sas::{self, Caller};
use protocol::QueryString;
use protocol::signing::sas::{AccountSas, BlobSas, QueueSas, Sas, SignedResource, TableSas, UserDelegation};

use super::SasError;
use super::token_url::{TokenUrl, read};

pub fn explain(text: &str, account: &Account, now: DateTime) -> Result<String, SasError> {
    let url = TokenUrl::split(text);
    let query = QueryString::parse(url.query).ok_or(SasError::NotText)?;
    if query.get("sig").is_none() {
        return Err(SasError::NoToken);
    }
    let (sas, signature) = read(&url, &query, account)?.ok_or(SasError::NoToken)?;
    let service = service_of(&sas, &url);
    let mut lines = Lines::default();
    match &sas {
        Sas::Account(sas) => lines.account(sas, account),
        Sas::Table(sas) => lines.table(sas),
        Sas::Queue(sas) => lines.queue(sas),
        Sas::Blob(sas) => lines.blob(sas),
    }
    lines.terms(&sas);
    let signed = match sas.delegation() {
        Some(user) => lines.delegation(user, &sas, &signature, account),
        None if lines.signature(&sas, &signature, account) => Signed::Account,
        None => Signed::Wrong,
    };
    lines.add("from here", &verdict(sas, &signed, &url, service, now));
    Ok(lines.0.trim_end().to_owned())
}

/// The service at which the token is judged. An account's token that is not part of a URL is judged at one of its own
/// services.
fn service_of(sas: &Sas, url: &TokenUrl<'_>) -> ServiceKind {
    match sas {
        Sas::Table(_) => ServiceKind::Table,
        Sas::Queue(_) => ServiceKind::Queue,
        Sas::Blob(_) => ServiceKind::Blob,
        Sas::Account(sas) => {
            let mut own =
                ServiceKind::ALL.into_iter().rev().filter(|kind| sas.services.contains(kind.letter()));
            url.likely_service().or_else(|| own.next()).unwrap_or(ServiceKind::Table)
        }
    }
}

/// Who has signed a token.
enum Signed {
    Account,
    /// A user who may do this.
    User(Rights),
    Wrong,
    /// A user, with fields that no server of ours takes.
    Denied(Denial),
}

/// What a server would answer to a request from this machine. It knows the stored access policies, and we do not.
fn verdict(sas: Sas, signed: &Signed, url: &TokenUrl<'_>, service: ServiceKind, now: DateTime) -> String {
    if let Some(addressed) = url.service_of_host().filter(|addressed| *addressed != service) {
        return format!(
            "REFUSED: this is a token for the {service} service, and the URL is of the {addressed} service"
        );
    }
    if sas.delegation().is_some() && service != ServiceKind::Blob {
        return "REFUSED by Partita, which gives out user delegation keys for blobs only".to_owned();
    }
    if !sas.identifier().is_empty() {
        return format!("only the server can tell: it knows the terms of policy {:?}", sas.identifier());
    }
    let https = url.scheme.eq_ignore_ascii_case("https");
    let caller = Caller { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), https };
    let rights = match signed {
        Signed::User(rights) => Some(*rights),
        Signed::Account | Signed::Wrong | Signed::Denied(_) => None,
    };
    let admitted = sas::admit(sas, None, now, caller, service);
    let admitted = admitted.and_then(|proof| delegation::limit(proof, rights, now));
    let admitted = match service {
        ServiceKind::Table => admitted.and_then(table_http::access::grant).map(drop),
        ServiceKind::Queue => admitted.and_then(queue_http::access::grant).map(drop),
        ServiceKind::Blob => admitted.map(drop),
    };
    let refused = |denial: &Denial| format!("REFUSED with {}: {}", denial.refusal.code(service), denial.why);
    match (admitted, signed) {
        (Err(denial), _) => refused(&denial),
        (Ok(()), Signed::Denied(denial)) => refused(denial),
        (Ok(()), Signed::Wrong) => "REFUSED with AuthenticationFailed: the signature is wrong".to_owned(),
        (Ok(()), Signed::Account | Signed::User(_)) => "it would be accepted now".to_owned(),
    }
}

/// The explanation.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// The value is partly the token's, whose fields may hold anything: it stays one line, and changes no terminal.
    fn add(&mut self, name: &str, value: &str) {
        // Writing to a String can't fail.
        let _ = write!(self.0, "{name:<12} ");
        for letter in value.chars() {
            match letter {
                '"' | '\'' | '\\' => self.0.push(letter),
                other => self.0.extend(other.escape_debug()),
            }
        }
        self.0.push('\n');
    }

    fn kind(&mut self, kind: &str, version: &str) {
        self.add("token", &format!("{kind}, version {version}"));
    }

    fn account(&mut self, sas: &AccountSas, account: &Account) {
        self.kind("for an account", &sas.terms.version);
        let permissions = words(&sas.terms.permissions, ACCOUNT_WORDS);
        let services = ServiceKind::ALL.into_iter().filter(|kind| sas.services.contains(kind.letter()));
        let on: Vec<String> = services.map(|kind| words(&sas.resource_types, levels(kind))).collect();
        let on = if on.is_empty() { "nothing".to_owned() } else { on.join(", ") };
        self.add("grants", &format!("{permissions} on {on} of account {}", account.name));
        self.add("services", &words(&sas.services, SERVICE_WORDS));
    }

    fn table(&mut self, sas: &TableSas) {
        self.kind("for a table", &sas.terms.version);
        let permissions = words(&sas.terms.permissions, TABLE_WORDS);
        self.add("grants", &format!("{permissions} on entities of table {}", sas.table));
        let bound = |partition: &str, row: &str| match (partition, row) {
            ("", _) => "any".to_owned(),
            (partition, "") => format!("partition {partition:?}"),
            (partition, row) => format!("partition {partition:?}, row {row:?}"),
        };
        let from = bound(&sas.start_partition, &sas.start_row);
        self.add("keys", &format!("from {from} to {}", bound(&sas.end_partition, &sas.end_row)));
    }

    fn queue(&mut self, sas: &QueueSas) {
        self.kind("for a queue", &sas.terms.version);
        let permissions = words(&sas.terms.permissions, QUEUE_WORDS);
        self.add("grants", &format!("{permissions} on messages of queue {}", sas.queue));
    }

    fn blob(&mut self, sas: &BlobSas) {
        self.kind("for blobs", &sas.terms.version);
        let resource = match &sas.resource {
            SignedResource::Container => "all blobs".to_owned(),
            SignedResource::Blob(blob) => format!("blob {}", legible(blob)),
            SignedResource::Snapshot { blob, time } => format!("snapshot {time} of blob {}", legible(blob)),
            SignedResource::Version { blob, time } => format!("version {time} of blob {}", legible(blob)),
            SignedResource::Directory { path, .. } => format!("all blobs in directory {path:?}"),
        };
        let permissions = words(&sas.terms.permissions, BLOB_WORDS);
        self.add("grants", &format!("{permissions} on {resource} of container {}", sas.container));
        let overrides = &sas.overrides;
        for (name, value) in [
            ("Cache-Control", &overrides.cache_control),
            ("Content-Disposition", &overrides.content_disposition),
            ("Content-Encoding", &overrides.content_encoding),
            ("Content-Language", &overrides.content_language),
            ("Content-Type", &overrides.content_type),
        ] {
            if !value.is_empty() {
                self.add("answers with", &format!("{name}: {value}"));
            }
        }
        if !sas.encryption_scope.is_empty() {
            self.add("encryption", &format!("scope {:?}", sas.encryption_scope));
        }
    }

    fn terms(&mut self, sas: &Sas) {
        let (terms, policy) = (sas.terms(), sas.identifier());
        if !policy.is_empty() {
            self.add("policy", &format!("{policy:?} provides the terms that the token does not have"));
        }
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let (start, expiry) = match policy {
            "" => ("any time", "no time: it has no expiry"),
            _ => ("the start that its policy has, if any,", "the expiry that its policy has"),
        };
        let (start, expiry) = (or(&terms.start, start), or(&terms.expiry, expiry));
        self.add("valid", &format!("from {start} until {expiry}"));
        let (ip, protocol) = (or(&terms.ip, "any address"), or(&terms.protocol, "https,http"));
        self.add("callers", &format!("from {ip} by {protocol}"));
    }

    /// Whether the signature is right.
    fn signature(&mut self, sas: &Sas, signature: &str, account: &Account) -> bool {
        let string = sas.string_to_sign(account.name.as_str());
        let key = account.keys.iter().position(|key| key.verifies(&string, signature));
        let name = &account.name;
        match key {
            Some(index) => self.add("signature", &format!("right, by key {} of account {name}", index + 1)),
            None => self.add("signature", &format!("WRONG for account {name}; it should sign {string:?}")),
        }
        key.is_some()
    }

    /// Keys of this account are made of the account's own key; those of Azure are known to Azure alone.
    fn delegation(&mut self, user: &UserDelegation, sas: &Sas, signature: &str, account: &Account) -> Signed {
        let UserDelegation { key_user, key_tenant, key_start, key_expiry, .. } = user;
        let key = format!(
            "by a user delegation key of {key_user} in tenant {key_tenant}, valid from {key_start} until {key_expiry}"
        );
        let string = sas.string_to_sign(account.name.as_str());
        let (verdict, signed) = match delegation::verify(account, user, &string, signature) {
            Ok(Some(rights)) => ("right", Signed::User(rights)),
            Ok(None) => ("WRONG, unless the key is Azure's", Signed::Wrong),
            Err(denial) => ("not checked", Signed::Denied(denial)),
        };
        self.add("signature", &format!("{verdict}; {key}"));
        signed
    }
}

type Words = &'static [(char, &'static str)];

const TABLE_WORDS: Words = &[('r', "read"), ('a', "add"), ('u', "update"), ('d', "delete")];
const QUEUE_WORDS: Words = &[('r', "read"), ('a', "add"), ('u', "update"), ('p', "process")];
const BLOB_WORDS: Words = &[
    ('r', "read"),
    ('a', "add"),
    ('c', "create"),
    ('w', "write"),
    ('d', "delete"),
    ('x', "delete versions"),
    ('y', "delete permanently"),
    ('l', "list"),
    ('t', "tags"),
    ('f', "find by tags"),
    ('m', "move"),
    ('e', "execute"),
    ('o', "change the owner"),
    ('p', "change permissions"),
    ('i', "immutability"),
];
const ACCOUNT_WORDS: Words = &[
    ('r', "read"),
    ('w', "write"),
    ('d', "delete"),
    ('x', "delete versions"),
    ('y', "delete permanently"),
    ('l', "list"),
    ('a', "add"),
    ('c', "create"),
    ('u', "update"),
    ('p', "process"),
    ('t', "tags"),
    ('f', "find by tags"),
    ('i', "immutability"),
];
const SERVICE_WORDS: Words = &[('b', "blobs"), ('q', "queues"), ('t', "tables"), ('f', "files")];

/// The letters of `srt`.
const fn levels(service: ServiceKind) -> Words {
    match service {
        ServiceKind::Blob => &[('s', "the blob service"), ('c', "containers"), ('o', "blobs")],
        ServiceKind::Queue => &[('s', "the queue service"), ('c', "queues"), ('o', "messages")],
        ServiceKind::Table => &[('s', "the table service"), ('c', "tables"), ('o', "entities")],
    }
}

fn words(letters: &str, words: Words) -> String {
    let word = |letter| match words.iter().find(|(known, _)| *known == letter) {
        Some((_, word)) => (*word).to_owned(),
        None => format!("{letter:?} (UNKNOWN)"),
    };
    let list: Vec<String> = letters.chars().map(word).collect();
    if list.is_empty() { "no permissions of its own".to_owned() } else { list.join(", ") }
}

/// A blob's name may have line breaks, or characters that turn others around: then it could say what we did not.
fn legible(name: &str) -> String {
    if name.escape_debug().eq(name.chars()) { name.to_owned() } else { format!("{name:?}") }
}

#[cfg(test)]
mod tests;
