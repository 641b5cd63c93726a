//! Stored access policies as XML: the bodies of Get and Set ACL of a table, queue or container, and the stored document.

use std::fmt::Write as _;

use common::{DateTime, Refusal, ServiceKind, limits};

use crate::xml_tree::{Element, RepeatedChild, escape};

/// A stored access policy. It provides the terms that a token does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    pub id: String,
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    pub permissions: Option<String>,
}

/// An empty body, or an empty list, means no policies.
pub fn read(service: ServiceKind, body: &[u8]) -> Result<Vec<AccessPolicy>, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    policies(service, body).ok_or(Refusal::XmlNotValid)
}

fn policies(service: ServiceKind, body: &[u8]) -> Option<Vec<AccessPolicy>> {
    let root = Element::parse(body).filter(|root| root.name == "SignedIdentifiers")?;
    if root.children.len() > limits::STORED_POLICIES_MAX || !root.has_only(&["SignedIdentifier"]) {
        return None;
    }
    let mut policies: Vec<AccessPolicy> = Vec::new();
    for identifier in &root.children {
        let policy = policy(service, identifier).ok()??;
        if policies.iter().any(|other| other.id == policy.id) {
            return None;
        }
        policies.push(policy);
    }
    Some(policies)
}

fn policy(service: ServiceKind, identifier: &Element) -> Result<Option<AccessPolicy>, RepeatedChild> {
    let Some(id) = identifier.child("Id")?.map(Element::text) else { return Ok(None) };
    let fits = !id.is_empty() && id.encode_utf16().count() <= limits::POLICY_ID_UNITS_MAX;
    if !fits || !identifier.has_only(&["Id", "AccessPolicy"]) {
        return Ok(None);
    }
    let mut policy = AccessPolicy { id: id.to_owned(), ..AccessPolicy::default() };
    let Some(terms) = identifier.child("AccessPolicy")? else { return Ok(Some(policy)) };
    if !terms.has_only(&["Start", "Expiry", "Permission"]) {
        return Ok(None);
    }
    // An empty element counts as absent.
    let said = |name| terms.child(name).map(|child| child.map(Element::text).filter(|text| !text.is_empty()));
    for (name, slot) in [("Start", &mut policy.start), ("Expiry", &mut policy.expiry)] {
        if let Some(text) = said(name)? {
            let Some(time) = DateTime::parse(text) else { return Ok(None) };
            *slot = Some(time);
        }
    }
    if let Some(permissions) = said("Permission")? {
        if !in_order(service, permissions) {
            return Ok(None);
        }
        policy.permissions = Some(permissions.to_owned());
    }
    Ok(Some(policy))
}

/// Whether these are permissions of the service, each at most once, in the service's order.
pub fn in_order(service: ServiceKind, permissions: &str) -> bool {
    let mut left = service.permissions().chars();
    permissions.chars().all(|letter| left.any(|known| known == letter))
}

/// Whether these are permissions of the service, each at most once, in any order.
pub fn in_any_order(service: ServiceKind, permissions: &str) -> bool {
    let is_first = |at, letter| !permissions[..at].contains(letter);
    permissions
        .char_indices()
        .all(|(at, letter)| service.permissions().contains(letter) && is_first(at, letter))
}

/// The answer to Get ACL, with its byte order mark.
pub fn write(policies: &[AccessPolicy]) -> Vec<u8> {
    let mut out = String::from("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>");
    if policies.is_empty() {
        out.push_str("<SignedIdentifiers />");
        return out.into_bytes();
    }
    out.push_str("<SignedIdentifiers>");
    for policy in policies {
        // Writing to a String can't fail.
        let _ = write!(out, "<SignedIdentifier><Id>{}</Id>", escape(&policy.id));
        let mut terms = String::new();
        for (name, time) in [("Start", policy.start), ("Expiry", policy.expiry)] {
            if let Some(time) = time {
                let _ = write!(terms, "<{name}>{}</{name}>", time.to_fixed_string());
            }
        }
        if let Some(permissions) = &policy.permissions {
            let _ = write!(terms, "<Permission>{permissions}</Permission>");
        }
        if !terms.is_empty() {
            let _ = write!(out, "<AccessPolicy>{terms}</AccessPolicy>");
        }
        out.push_str("</SignedIdentifier>");
    }
    out.push_str("</SignedIdentifiers>");
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &str) {
        let shown = match read(ServiceKind::Table, body.as_bytes()) {
            Ok(policies) => String::from_utf8(write(&policies)).unwrap(),
            Err(refusal) => refusal.code(ServiceKind::Table).to_owned(),
        };
        assert_eq!(
            shown.trim_start_matches("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>"),
            expected,
            "{body}"
        );
    }

    #[test]
    fn policies_are_shown_as_they_were_given() {
        check("", "<SignedIdentifiers />");
        check("<SignedIdentifiers/>", "<SignedIdentifiers />");
        check(
            "<SignedIdentifiers><SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2021-06-08T02:10:09Z</Start><Expiry>2021-06-09</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2021-06-08T02:10:09.0000000Z</Start><Expiry>2021-06-09T00:00:00.0000000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
        );
        check(
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy/></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>",
        );
    }

    #[test]
    fn an_id_keeps_its_carriage_return() {
        let body =
            "<SignedIdentifiers><SignedIdentifier><Id>a&#13;b</Id></SignedIdentifier></SignedIdentifiers>";
        let policies = read(ServiceKind::Table, body.as_bytes()).unwrap();
        assert_eq!(policies[0].id, "a\rb");
        assert_eq!(read(ServiceKind::Table, &write(&policies)), Ok(policies));
    }

    #[test]
    fn letters_in_any_order_are_each_there_once() {
        for (letters, expected) in [("", true), ("wr", true), ("rw", true), ("rr", false), ("rq", false)] {
            assert_eq!(in_any_order(ServiceKind::Blob, letters), expected, "{letters}");
        }
    }

    #[test]
    fn each_service_has_its_own_permissions() {
        let check = |permissions: &str, expected: [bool; 3]| {
            let body = format!(
                "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
            );
            let accepted = ServiceKind::ALL.map(|service| read(service, body.as_bytes()).is_ok());
            assert_eq!(accepted, expected, "{permissions} of blobs, queues, tables");
        };
        check("ra", [true, true, true]);
        check("raup", [false, true, false]);
        check("raud", [false, false, true]);
        check("racwdl", [true, false, false]);
        check("ar", [false, false, false]);
    }

    #[test]
    fn what_is_no_list_of_policies_is_refused() {
        let one = |inside: &str| {
            format!("<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier></SignedIdentifiers>")
        };
        let six =
            (0..6).map(|i| format!("<SignedIdentifier><Id>{i}</Id></SignedIdentifier>")).collect::<String>();
        for body in [
            "<x/>".to_owned(),
            "<SignedIdentifiers>".to_owned(),
            format!("<SignedIdentifiers>{six}</SignedIdentifiers>"),
            one(""),
            one("<Id></Id>"),
            one(&format!("<Id>{}</Id>", "x".repeat(65))),
            one("<Id>a</Id><Id>b</Id>"),
            one("<Id>a</Id><AccessPolicy><Permission>ar</Permission></AccessPolicy>"),
            one("<Id>a</Id><AccessPolicy><Permission>rr</Permission></AccessPolicy>"),
            one("<Id>a</Id><AccessPolicy><Permission>x</Permission></AccessPolicy>"),
            one("<Id>a</Id><AccessPolicy><Start>soon</Start></AccessPolicy>"),
            one("<Id>a</Id><AccessPolicy><Wrong/></AccessPolicy>"),
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>".to_owned(),
        ] {
            check(&body, "InvalidXmlDocument");
        }
    }
}
