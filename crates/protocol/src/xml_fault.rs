//! What is wrong with a document, and where: queues and blobs tell it in their refusals, tables don't.

use common::limits;

use crate::xml_tree::Element;

/// A place in a document and the reason, in the service's words. Both numbers count from one; both are zero if the document
/// as a whole is at fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line}, position {position}")]
pub struct XmlFault {
    pub line: usize,
    pub position: usize,
    pub reason: String,
}

const NOT_WELL_FORMED: &str = "Error parsing Xml content";

impl XmlFault {
    /// The document is no XML at this byte of it.
    pub fn not_well_formed(document: &str, at: usize) -> Self {
        Self::at(document, at, NOT_WELL_FORMED.to_owned())
    }

    fn at(document: &str, at: usize, reason: String) -> Self {
        let (line, position) = place(document, at);
        Self { line, position, reason }
    }

    /// What is wrong with a body that is refused as a list of policies.
    pub fn of_policies(body: &[u8]) -> Self {
        let root = match Element::read(body) {
            Ok(root) => root,
            Err(fault) => return fault,
        };
        let is_bad = |id: &&Element| {
            let units = id.text().encode_utf16().count();
            units == 0 || units > limits::POLICY_ID_UNITS_MAX
        };
        // An identifier without an id is at fault itself.
        let id_of = |identifier: &'_ Element| identifier.children.iter().position(|child| child.name == "Id");
        let mut identifiers = root.children.iter().take(limits::STORED_POLICIES_MAX);
        let bad = identifiers.find_map(|identifier| match id_of(identifier) {
            Some(id) => Some(&identifier.children[id]).filter(is_bad),
            None => Some(identifier),
        });
        match bad {
            Some(id) => {
                let reason = "Signed identifier ID cannot be empty or over 64 characters in length";
                Self::behind(body, id, reason)
            }
            None => Self::default(),
        }
    }

    /// What is wrong with a body that is refused as service properties.
    pub fn of_properties(body: &[u8]) -> Self {
        let root = match Element::read(body) {
            Ok(root) => root,
            Err(fault) => return fault,
        };
        if root.children.is_empty() {
            let document = text_of(body);
            let (line, position) = place(document, root.end);
            let reason = format!(
                "{NOT_WELL_FORMED}: 'None' is an invalid XmlNodeType. Line {line}, position {position}."
            );
            return Self { line, position, reason };
        }
        let policies = root.children.iter().flat_map(|section| &section.children);
        let mut days = policies.flat_map(|policy| &policy.children).filter(|child| child.name == "Days");
        let is_bad = |days: &&Element| {
            !days.text().parse().is_ok_and(|days: u16| (1..=limits::RETENTION_DAYS_MAX).contains(&days))
        };
        match days.find(is_bad) {
            Some(days) => {
                let reason = "Retention days must be greater than 0 and less than or equal to 365 days.";
                Self::behind(body, days, reason)
            }
            None => Self::default(),
        }
    }

    /// The same of the properties of blobs, which have a policy of their own.
    pub fn of_blob_properties(body: &[u8]) -> Self {
        // Unlike queues, blobs do not tell where a document is no XML.
        if Element::read(body).is_err() {
            return Self::default();
        }
        let shared = Self::of_properties(body);
        let (true, Ok(root)) = (shared.reason.is_empty(), Element::read(body)) else { return shared };
        let Ok(Some(policy)) = root.child("DeleteRetentionPolicy") else { return shared };
        let text = |name| policy.child(name).ok().flatten().map(|child| (child, child.text()));
        let missing = |name: &str| Self::behind(body, policy, &format!("Element is missing: {name}."));
        match (text("Enabled"), text("Days")) {
            (None, _) => missing("Enabled"),
            (Some((_, enabled)), None) if enabled.eq_ignore_ascii_case("true") => missing("Days"),
            (_, Some((days, text)))
                if !text.parse().is_ok_and(|days: u16| (1..=limits::RETENTION_DAYS_MAX).contains(&days)) =>
            {
                let reason = "Retention days must be greater than 0 and less than or equal to 365 days.";
                Self::behind(body, days, reason)
            }
            _ => shared,
        }
    }

    /// At the name of the tag behind an element: there the service stands when it has read the element's text.
    fn behind(body: &[u8], element: &Element, reason: &str) -> Self {
        let document = text_of(body);
        let rest = document.get(element.end..).unwrap_or_default();
        let tag = ["</", "<"].into_iter().find(|tag| rest.starts_with(tag)).map_or(0, str::len);
        Self::at(document, element.end + tag, reason.to_owned())
    }
}

/// A document without its byte order mark; empty if it is no UTF-8.
fn text_of(body: &[u8]) -> &str {
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Line and column of a byte of a document, both from one. Columns are counted in UTF-16, as the service counts.
fn place(document: &str, at: usize) -> (usize, usize) {
    let before = document.get(..at).unwrap_or(document);
    let line_starts = before.match_indices(['\n', '\r']).filter(|(at, end)| {
        // CR and LF together end one line.
        *end == "\n" || document.as_bytes().get(at + 1) != Some(&b'\n')
    });
    let (lines, start) = line_starts.fold((0, 0), |(lines, _), (at, _)| (lines + 1, at + 1));
    (lines + 1, before[start..].encode_utf16().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARATION: &str = "<?xml version='1.0' encoding='utf-8'?>\n";

    fn show(fault: &XmlFault) -> String {
        format!("{} {} {}", fault.line, fault.position, fault.reason)
    }

    /// Both numbers as the service answered them.
    #[test]
    fn properties_are_faulted_where_the_service_faults_them() {
        let check = |body: &str, expected: &str| {
            let body = format!("{DECLARATION}{body}");
            assert_eq!(show(&XmlFault::of_properties(body.as_bytes())), expected, "{body}");
        };
        check(
            "<StorageServiceProperties><MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy></MinuteMetrics></StorageServiceProperties>",
            "2 176 Retention days must be greater than 0 and less than or equal to 365 days.",
        );
        check(
            "<StorageServiceProperties />",
            "2 29 Error parsing Xml content: 'None' is an invalid XmlNodeType. Line 2, position 29.",
        );
        check("<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>", "0 0 ");
        check("<a>\u{1}</a>", "2 4 Error parsing Xml content");
    }

    #[test]
    fn properties_of_blobs_that_are_no_xml_are_faulted_as_a_whole() {
        assert_eq!(show(&XmlFault::of_blob_properties(b"<a")), "0 0 ");
        let empty = XmlFault::of_blob_properties(b"<StorageServiceProperties />");
        assert!(empty.reason.contains("invalid XmlNodeType"), "{empty}");
    }

    #[test]
    fn policies_are_faulted_at_their_ids() {
        let check = |inside: &str, expected: &str| {
            let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
            assert_eq!(show(&XmlFault::of_policies(body.as_bytes())), expected, "{body}");
        };
        let reason = "Signed identifier ID cannot be empty or over 64 characters in length";
        check("<SignedIdentifier><Id></Id></SignedIdentifier>", &format!("1 49 {reason}"));
        check("<SignedIdentifier><Id/><AccessPolicy/></SignedIdentifier>", &format!("1 44 {reason}"));
        check("<SignedIdentifier></SignedIdentifier>", &format!("1 59 {reason}"));
        let long = "é".repeat(65);
        check(&format!("<SignedIdentifier><Id>{long}</Id></SignedIdentifier>"), &format!("1 114 {reason}"));
        check(&"<SignedIdentifier><Id>a</Id></SignedIdentifier>".repeat(6), "0 0 ");
        check("<SignedIdentifier>", "1 38 Error parsing Xml content");
    }

    #[test]
    fn places_are_counted_as_lines_and_utf_16() {
        let check = |before: &str, expected| assert_eq!(place(&format!("{before}x"), before.len()), expected);
        check("", (1, 1));
        check("ab", (1, 3));
        check("a\nb", (2, 2));
        check("a\r\nb", (2, 2));
        check("a\rb\r\r", (4, 1));
        check("é𝄞", (1, 4));
    }
}
