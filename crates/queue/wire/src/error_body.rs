//! Error documents (spec: queue-operations 2.3).

use std::borrow::Cow;

use common::DateTime;
use protocol::xml_tree::Element;

use crate::xml;

/// Details follow the message, in their order.
pub fn write(
    code: &str,
    message: &str,
    details: &[(&'static str, Cow<'_, str>)],
    request_id: &str,
    time: DateTime,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(xml::START);
    xml::open(&mut out, "Error");
    xml::element(&mut out, "Code", code);
    xml::open(&mut out, "Message");
    xml::text(&mut out, message);
    out.extend_from_slice(b"\nRequestId:");
    xml::text(&mut out, request_id);
    out.extend_from_slice(b"\nTime:");
    out.extend_from_slice(time.to_fixed_string().as_bytes());
    xml::close(&mut out, "Message");
    for (name, value) in details {
        xml::shown(&mut out, name, value);
    }
    xml::close(&mut out, "Error");
    out
}

/// An error as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    pub code: String,
    pub message: String,
    pub details: Vec<(String, String)>,
}

/// `None` if it is no such document.
pub fn read(document: &[u8]) -> Option<ErrorEntry> {
    let root = Element::parse(document).filter(|root| root.name == "Error")?;
    let text = |name| root.child(name).ok().flatten().map(|child| child.text().to_owned());
    let details = root.children.iter().filter(|child| !["Code", "Message"].contains(&child.name.as_str()));
    Some(ErrorEntry {
        code: text("Code")?,
        message: text("Message").unwrap_or_default(),
        details: details.map(|child| (child.name.clone(), child.text().to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0a1b2c3d-e003-0001-4741-71f1ef000000";

    fn time() -> DateTime {
        DateTime::parse("2023-04-17T15:28:22.4708180Z").unwrap()
    }

    /// The length is the recorded one.
    #[test]
    fn an_error_is_the_services_to_the_byte() {
        let document = write("QueueNotFound", "The specified queue does not exist.", &[], ID, time());
        assert_eq!(
            String::from_utf8_lossy(&document),
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>QueueNotFound</Code><Message>The specified queue does not exist.\nRequestId:0a1b2c3d-e003-0001-4741-71f1ef000000\nTime:2023-04-17T15:28:22.4708180Z</Message></Error>"
        );
        assert_eq!(document.len(), 217);
    }

    #[test]
    fn details_follow_the_message_and_read_back() {
        let details = [
            ("LineNumber", Cow::Borrowed("0")),
            ("LinePosition", Cow::Borrowed("0")),
            ("Reason", Cow::Borrowed("")),
        ];
        let message = "XML specified is not syntactically valid.";
        let document = write("InvalidXmlDocument", message, &details, ID, time());
        assert!(document.ends_with(
            b"</Message><LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason /></Error>"
        ));
        assert_eq!(document.len(), 294);
        let error = read(&document).unwrap();
        assert_eq!(error.code, "InvalidXmlDocument");
        assert!(error.message.starts_with(message), "{}", error.message);
        assert_eq!(error.details[1], ("LinePosition".to_owned(), "0".to_owned()));
        assert_eq!(read(b"<QueueMessagesList />"), None);
    }

    #[test]
    fn what_a_client_sent_is_escaped() {
        let details = [("QueryParameterValue", Cow::Borrowed("<&>\u{1}"))];
        let document = write("a", "b", &details, ID, time());
        assert!(String::from_utf8_lossy(&document).contains("<QueryParameterValue>&lt;&amp;&gt;\u{fffd}</"));
    }
}
