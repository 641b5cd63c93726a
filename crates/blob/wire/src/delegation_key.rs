//! User delegation keys: what a bearer asks for, and is given to sign with (spec: blob-operations 4.3).

use blob_model::{DateTime, Guid, Refusal, limits};
use protocol::xml_fault::XmlFault;
use protocol::xml_tree::Element;

use crate::listed;
use crate::xml::{Writer, Xml};

/// From when to when a key is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    pub start: DateTime,
    pub expiry: DateTime,
}

/// The body of Get User Delegation Key. Without a start the key holds from now on.
pub fn read_request(body: &[u8], now: DateTime) -> Result<KeyInfo, Refusal> {
    let not_valid =
        |XmlFault { line, position, reason }| Refusal::XmlNotValid { line, position, reason: reason.into() };
    let root = Element::read(body).map_err(not_valid)?;
    let broken = || not_valid(XmlFault::default());
    if root.name != "KeyInfo" || !root.has_only(&["Start", "Expiry"]) {
        return Err(broken());
    }
    let time = |name| match listed::text(&root, name) {
        Some(text) => DateTime::parse(text.trim_ascii()).map(Some).ok_or_else(broken),
        None => Ok(None),
    };
    let start = time("Start")?.unwrap_or(now);
    let expiry = time("Expiry")?.ok_or_else(broken)?;
    let is_in_time = start < expiry && now < expiry && expiry <= now.plus(limits::DELEGATION_KEY_TIME_MAX);
    if is_in_time { Ok(KeyInfo { start, expiry }) } else { Err(common::Refusal::InputOutOfRange.into()) }
}

/// The body as a client writes it.
pub fn write_request(info: KeyInfo) -> Vec<u8> {
    let (start, expiry) = (info.start.to_seconds_string(), info.expiry.to_seconds_string());
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>"
    );
    body.into_bytes()
}

/// A key, and who may sign with it.
#[derive(Clone, PartialEq, Eq)]
pub struct DelegationKey {
    /// The caller and its directory.
    pub object: Guid,
    pub tenant: Guid,
    pub start: DateTime,
    pub expiry: DateTime,
    pub version: String,
    /// Base64 of the key itself.
    pub value: String,
}

/// Without the key.
impl std::fmt::Debug for DelegationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelegationKey")
            .field("object", &self.object)
            .field("expiry", &self.expiry)
            .finish_non_exhaustive()
    }
}

impl DelegationKey {
    /// The answer of Get User Delegation Key.
    pub fn write(&self) -> Vec<u8> {
        let mut xml = Xml::new(Writer::Old, 512);
        xml.open("UserDelegationKey");
        xml.element("SignedOid", &self.object.to_string());
        xml.element("SignedTid", &self.tenant.to_string());
        xml.element("SignedStart", &self.start.to_seconds_string());
        xml.element("SignedExpiry", &self.expiry.to_seconds_string());
        xml.element("SignedService", "b");
        xml.element("SignedVersion", &self.version);
        xml.element("Value", &self.value);
        xml.close("UserDelegationKey");
        xml.finish()
    }

    /// `None` if it is no such document.
    pub fn read(document: &[u8]) -> Option<Self> {
        let root = Element::parse(document).filter(|root| root.name == "UserDelegationKey")?;
        let text = |name| listed::text(&root, name);
        Some(Self {
            object: Guid::parse(text("SignedOid")?)?,
            tenant: Guid::parse(text("SignedTid")?)?,
            start: DateTime::parse(text("SignedStart")?)?,
            expiry: DateTime::parse(text("SignedExpiry")?)?,
            version: text("SignedVersion")?.to_owned(),
            value: text("Value")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    #[test]
    fn a_key_is_asked_for_at_most_seven_days_ahead() {
        let now = time("2022-08-12T20:55:00Z");
        let check = |inside: &str, expected: Result<(&str, &str), &str>| {
            let read = read_request(format!("<KeyInfo>{inside}</KeyInfo>").as_bytes(), now);
            let expected =
                expected.map(|(start, expiry)| KeyInfo { start: time(start), expiry: time(expiry) });
            assert_eq!(
                read.as_ref().map_err(|refusal| refusal.code()),
                expected.as_ref().map_err(|code| *code),
                "{inside}"
            );
        };
        let expiry = "<Expiry>2022-08-13T20:55:02Z</Expiry>";
        check(
            &format!("<Start>2022-08-12T20:55:02Z</Start>{expiry}"),
            Ok(("2022-08-12T20:55:02Z", "2022-08-13T20:55:02Z")),
        );
        check(expiry, Ok(("2022-08-12T20:55:00Z", "2022-08-13T20:55:02Z")));
        check("<Expiry>2022-08-19T20:55:00Z</Expiry>", Ok(("2022-08-12T20:55:00Z", "2022-08-19T20:55:00Z")));
        check("<Expiry>2022-08-19T20:55:01Z</Expiry>", Err("OutOfRangeInput"));
        check("<Expiry>2022-08-12T20:55:00Z</Expiry>", Err("OutOfRangeInput"));
        check(
            "<Start>2022-08-14T00:00:00Z</Start><Expiry>2022-08-13T00:00:00Z</Expiry>",
            Err("OutOfRangeInput"),
        );
        check("", Err("InvalidXmlDocument"));
        check("<Expiry>tomorrow</Expiry>", Err("InvalidXmlDocument"));
        check("<End>2022-08-13T00:00:00Z</End>", Err("InvalidXmlDocument"));
        let info = KeyInfo { start: now, expiry: time("2022-08-13T00:00:00Z") };
        assert_eq!(read_request(&write_request(info), now), Ok(info));
    }

    #[test]
    fn a_key_is_the_services_to_the_byte_and_is_not_shown() {
        let key = DelegationKey {
            object: Guid::parse("c4f48289-bb84-4086-b250-6f94a8f64cee").unwrap(),
            tenant: Guid::parse("72f988bf-86f1-41af-91ab-2d7cd011db47").unwrap(),
            start: time("2022-08-12T20:55:02Z"),
            expiry: time("2022-08-12T21:55:02Z"),
            version: "2021-08-06".to_owned(),
            value: "c2VjcmV0".to_owned(),
        };
        let document = key.write();
        assert_eq!(
            String::from_utf8_lossy(&document),
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey><SignedOid>c4f48289-bb84-4086-b250-6f94a8f64cee</SignedOid><SignedTid>72f988bf-86f1-41af-91ab-2d7cd011db47</SignedTid><SignedStart>2022-08-12T20:55:02Z</SignedStart><SignedExpiry>2022-08-12T21:55:02Z</SignedExpiry><SignedService>b</SignedService><SignedVersion>2021-08-06</SignedVersion><Value>c2VjcmV0</Value></UserDelegationKey>"
        );
        assert_eq!(DelegationKey::read(&document).as_ref(), Some(&key));
        assert!(!format!("{key:?}").contains("c2VjcmV0"));
    }
}
