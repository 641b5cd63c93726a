//! Whether a shared access signature (whose signature is right) is valid now, for this caller and this service.
//!
//! The checks are in the service's order: policy, time, address, protocol, service.

use std::net::{IpAddr, Ipv4Addr};

use common::{AccountGrant, DateTime, Refusal};
use protocol::access_policies::{self, AccessPolicy};
use protocol::signing::sas::{Sas, Terms};

use crate::access::{Denial, Proof, ResourceToken};
use common::ServiceKind;

/// What a token can restrict of its caller.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub ip: IpAddr,
    pub https: bool,
}

/// The first version with `sip` and `spr`, and with a refusal of its own for each mismatch.
pub const SPECIFIC_REFUSALS: &str = "2015-04-05";

/// `policy` is the stored access policy that the token names, if it exists.
pub fn admit(
    sas: Sas,
    policy: Option<&AccessPolicy>,
    now: DateTime,
    caller: Caller,
    service: ServiceKind,
) -> Result<Proof, Denial> {
    let terms = sas.terms();
    let effective = match &sas {
        Sas::Table(_) | Sas::Queue(_) | Sas::Blob(_) => merge(service, &sas, policy)?,
        Sas::Account(_) => EffectiveTerms {
            start: time("st", &terms.start)?,
            expiry: time("se", &terms.expiry)?,
            permissions: terms.permissions.clone(),
        },
    };
    effective.check(now)?;
    // Older tokens do not sign these fields.
    if terms.version.as_str() >= SPECIFIC_REFUSALS {
        check_address(terms, caller.ip)?;
        check_protocol(terms, caller.https)?;
    }
    let permissions = effective.permissions;
    match sas {
        Sas::Account(account) if !account.services.contains(service.letter()) => Err(Denial::new(
            Refusal::AuthorizationServiceMismatch,
            format!(
                "the token is for services {:?}; {}s need {} in ss",
                account.services,
                service.name(),
                service.letter()
            ),
        )),
        Sas::Account(account) => {
            Ok(Proof::Account(AccountGrant { permissions, resource_types: account.resource_types }))
        }
        sas @ (Sas::Table(_) | Sas::Queue(_) | Sas::Blob(_)) => {
            Ok(Proof::Resource(ResourceToken { sas: Box::new(sas), permissions }))
        }
    }
}

/// The terms of a token together with those of its policy.
struct EffectiveTerms {
    start: Option<DateTime>,
    expiry: Option<DateTime>,
    permissions: String,
}

impl EffectiveTerms {
    fn check(&self, now: DateTime) -> Result<(), Denial> {
        let Some(expiry) = self.expiry else {
            return Err(Denial::failed("neither the token nor its policy says when it expires"));
        };
        if self.permissions.is_empty() {
            return Err(Denial::failed("neither the token nor its policy grants any permission"));
        }
        if let Some(start) = self.start
            && now < start
        {
            let why = format!("the token is valid from {start} on; now is {now}");
            return Err(Denial::failed(why).telling(self.frame(now)));
        }
        if now >= expiry {
            let since = now.unix_seconds() - expiry.unix_seconds();
            let why = format!("the token expired at {expiry}, {since} s ago");
            return Err(Denial::failed(why).telling(self.frame(now)));
        }
        Ok(())
    }

    /// When it holds, in the service's words.
    fn frame(&self, now: DateTime) -> String {
        let shown = |time: Option<DateTime>| {
            String::from_utf8_lossy(&time.unwrap_or(DateTime::MIN).http_date()).into_owned()
        };
        format!(
            "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
            shown(self.start),
            shown(self.expiry),
            shown(Some(now))
        )
    }
}

/// Start, expiry and permissions: each may be given by the token or by the policy, not by both.
fn merge(service: ServiceKind, token: &Sas, policy: Option<&AccessPolicy>) -> Result<EffectiveTerms, Denial> {
    let (terms, identifier) = (token.terms(), token.identifier());
    // The Blob service takes them in any order.
    let (fits, order) = match service {
        ServiceKind::Blob => (access_policies::in_any_order(service, &terms.permissions), ", each once"),
        ServiceKind::Table | ServiceKind::Queue => {
            (access_policies::in_order(service, &terms.permissions), " in this order")
        }
    };
    if !fits {
        let letters = service.permissions();
        let why = format!("sp is {:?}; it may hold letters of {letters}{order}", terms.permissions);
        return Err(Denial::failed(why));
    }
    let mut effective = EffectiveTerms {
        start: time("st", &terms.start)?,
        expiry: time("se", &terms.expiry)?,
        permissions: terms.permissions.clone(),
    };
    if identifier.is_empty() {
        return Ok(effective);
    }
    let missing = || Denial::failed(format!("the {service} has no stored policy {identifier:?}"));
    let policy = policy.ok_or_else(missing)?;
    for (name, slot, stored) in
        [("st", &mut effective.start, policy.start), ("se", &mut effective.expiry, policy.expiry)]
    {
        if slot.is_some() && stored.is_some() {
            return Err(said_twice(name, identifier));
        }
        *slot = slot.or(stored);
    }
    if let Some(stored) = &policy.permissions {
        if !effective.permissions.is_empty() {
            return Err(said_twice("sp", identifier));
        }
        effective.permissions.clone_from(stored);
    }
    Ok(effective)
}

fn said_twice(name: &str, identifier: &str) -> Denial {
    Denial::failed(format!(
        "{name} is given by the token and by its policy {identifier:?}; only one of them may"
    ))
}

fn time(name: &str, text: &str) -> Result<Option<DateTime>, Denial> {
    if text.is_empty() {
        return Ok(None);
    }
    DateTime::parse(text).map(Some).ok_or_else(|| Denial::failed(format!("{name} is {text:?}, not a time")))
}

fn check_address(terms: &Terms, ip: IpAddr) -> Result<(), Denial> {
    if terms.ip.is_empty() {
        return Ok(());
    }
    let (from, to) = terms.ip.split_once('-').unwrap_or((&terms.ip, &terms.ip));
    let address = |text: &str| {
        text.trim()
            .parse::<Ipv4Addr>()
            .map_err(|_| Denial::failed(format!("sip is {:?}, not an address", terms.ip)))
    };
    let (from, to) = (address(from)?, address(to)?);
    // On a dual-stack socket, an IPv4 address is mapped into IPv6.
    let inside = matches!(ip.to_canonical(), IpAddr::V4(ip) if from <= ip && ip <= to);
    if inside {
        return Ok(());
    }
    let why = format!("the caller's address {ip} is not in {}", terms.ip);
    Err(Denial::new(Refusal::AuthorizationSourceIpMismatch { ip: ip.to_canonical() }, why))
}

fn check_protocol(terms: &Terms, https: bool) -> Result<(), Denial> {
    match terms.protocol.as_str() {
        // Microsoft's documents have the first order only; libraries and tools sign the second too.
        "" | "https,http" | "http,https" => Ok(()),
        "https" if https => Ok(()),
        "https" => Err(Denial::new(
            Refusal::AuthorizationProtocolMismatch,
            "the token is for https only, and this is http",
        )),
        other => Err(Denial::failed(format!("spr is {other:?}; it may be https or https,http"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::QueryString;

    const NOW: &str = "2025-01-01T12:00:00Z";

    fn check_with(policy: Option<AccessPolicy>, token: &str, expected: &str) {
        let (sas, _) = Sas::read(&QueryString::parse(&format!("sv=2019-02-02&{token}&sig=x")).unwrap())
            .unwrap()
            .unwrap();
        let caller = Caller { ip: "::ffff:10.0.0.5".parse().unwrap(), https: false };
        let now = DateTime::parse(NOW).unwrap();
        let shown = match admit(sas, policy.as_ref(), now, caller, ServiceKind::Table) {
            Ok(Proof::Resource(token)) => format!("Books {}", token.permissions),
            Ok(Proof::Account(token)) => format!("{} {}", token.resource_types, token.permissions),
            Ok(proof @ (Proof::Anyone | Proof::Owner | Proof::Roles(..))) => format!("{proof:?}"),
            Err(denied) => format!("{}: {}", denied.refusal.code(ServiceKind::Table), denied.why),
        };
        assert_eq!(shown, expected, "{token}");
    }

    fn check(token: &str, expected: &str) {
        check_with(None, token, expected);
    }

    #[test]
    fn tokens_grant_within_their_time() {
        check("tn=Books&sp=r&se=2025-01-01T12:00:01Z", "Books r");
        check("tn=Books&sp=r&st=2025-01-01T12:00:00Z&se=2025-01-02", "Books r");
        check(
            "tn=Books&sp=r&se=2025-01-01T12:00:00Z",
            "AuthenticationFailed: the token expired at 2025-01-01T12:00:00Z, 0 s ago",
        );
        check(
            "tn=Books&sp=r&se=2025-01-01T11:00Z",
            "AuthenticationFailed: the token expired at 2025-01-01T11:00:00Z, 3600 s ago",
        );
        check(
            "tn=Books&sp=r&st=2025-01-01T12:00:01Z&se=2026-01-01",
            "AuthenticationFailed: the token is valid from 2025-01-01T12:00:01Z on; now is 2025-01-01T12:00:00Z",
        );
        check("tn=Books&sp=r", "AuthenticationFailed: neither the token nor its policy says when it expires");
        check(
            "tn=Books&se=2026-01-01",
            "AuthenticationFailed: neither the token nor its policy grants any permission",
        );
        check("tn=Books&sp=r&se=soon", "AuthenticationFailed: se is \"soon\", not a time");
    }

    #[test]
    fn tokens_hold_for_their_callers() {
        check("tn=Books&sp=r&se=2026-01-01&sip=10.0.0.5", "Books r");
        check("tn=Books&sp=r&se=2026-01-01&sip=10.0.0.1-10.0.0.5", "Books r");
        check(
            "tn=Books&sp=r&se=2026-01-01&sip=10.0.0.6-10.0.0.9",
            "AuthorizationSourceIPMismatch: the caller's address ::ffff:10.0.0.5 is not in 10.0.0.6-10.0.0.9",
        );
        check(
            "tn=Books&sp=r&se=2026-01-01&sip=home",
            "AuthenticationFailed: sip is \"home\", not an address",
        );
        for both in ["https,http", "http,https"] {
            check(&format!("tn=Books&sp=r&se=2026-01-01&spr={both}"), "Books r");
            check(&format!("ss=t&srt=o&sp=r&se=2026-01-01&spr={both}"), "o r");
        }
        check(
            "tn=Books&sp=r&se=2026-01-01&spr=https",
            "AuthorizationProtocolMismatch: the token is for https only, and this is http",
        );
        check(
            "tn=Books&sp=r&se=2026-01-01&spr=http",
            "AuthenticationFailed: spr is \"http\"; it may be https or https,http",
        );
        check(
            "ss=b&srt=o&sp=r&se=2026-01-01",
            "AuthorizationServiceMismatch: the token is for services \"b\"; tables need t in ss",
        );
        check("ss=bt&srt=sco&sp=rw&se=2026-01-01", "sco rw");
    }

    #[test]
    fn a_policy_says_what_the_token_does_not() {
        let policy = || AccessPolicy {
            id: "p".into(),
            start: None,
            expiry: DateTime::parse("2026-01-01"),
            permissions: Some("ra".into()),
        };
        check_with(Some(policy()), "tn=Books&si=p", "Books ra");
        check_with(Some(AccessPolicy { permissions: None, ..policy() }), "tn=Books&si=p&sp=d", "Books d");
        check_with(
            Some(policy()),
            "tn=Books&si=p&sp=r",
            "AuthenticationFailed: sp is given by the token and by its policy \"p\"; only one of them may",
        );
        check_with(
            Some(policy()),
            "tn=Books&si=p&se=2027-01-01",
            "AuthenticationFailed: se is given by the token and by its policy \"p\"; only one of them may",
        );
        check_with(
            None,
            "tn=Books&si=p&sp=r&se=2026-01-01",
            "AuthenticationFailed: the table has no stored policy \"p\"",
        );
        check_with(
            Some(AccessPolicy { expiry: None, ..policy() }),
            "tn=Books&si=p",
            "AuthenticationFailed: neither the token nor its policy says when it expires",
        );
        check_with(
            Some(AccessPolicy { expiry: DateTime::parse("2024-12-31T23:59:59Z"), ..policy() }),
            "tn=Books&si=p",
            "AuthenticationFailed: the token expired at 2024-12-31T23:59:59Z, 43201 s ago",
        );
    }
}
