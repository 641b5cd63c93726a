//! Error documents (spec: blob-operations 2.3).

use std::borrow::Cow;

use common::DateTime;
use protocol::xml_tree::Element;

use crate::xml::{Writer, Xml};

/// Details follow the message, in their order.
pub fn write(
    writer: Writer,
    code: &str,
    message: &str,
    details: &[(&'static str, Cow<'_, str>)],
    request_id: &str,
    time: DateTime,
) -> Vec<u8> {
    let mut xml = Xml::new(writer, 512);
    xml.open("Error");
    xml.element("Code", code);
    xml.open("Message");
    xml.text(message);
    xml.text("\nRequestId:");
    xml.text(request_id);
    xml.text("\nTime:");
    xml.text(&time.to_fixed_string());
    xml.close("Message");
    for (name, value) in details {
        xml.shown(name, value);
    }
    xml.close("Error");
    xml.finish()
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
        details: details.map(|child| (child.name.clone(), child.whole_text().to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::Refusal;

    const ID: &str = "e03975c3-401e-00be-585a-a89e581eb086";

    fn write_refusal(writer: Writer, refusal: &Refusal) -> Vec<u8> {
        let time = DateTime::parse("2022-08-04T23:32:52.2729174Z").unwrap();
        write(writer, refusal.code(), &refusal.to_string(), &refusal.details(), ID, time)
    }

    /// The lengths are recorded ones.
    #[test]
    fn an_error_is_the_services_to_the_byte() {
        let refusal = Refusal::from(common::Refusal::ConditionNotMet);
        let document = write_refusal(Writer::New, &refusal);
        assert_eq!(
            String::from_utf8_lossy(&document),
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error><Code>ConditionNotMet</Code><Message>The condition specified using HTTP conditional header(s) is not met.\nRequestId:e03975c3-401e-00be-585a-a89e581eb086\nTime:2022-08-04T23:32:52.2729174Z</Message></Error>"
        );
        assert_eq!(document.len(), 253);
        let check = |writer, refusal: &Refusal, length| {
            assert_eq!(write_refusal(writer, refusal).len(), length, "{refusal:?}");
        };
        check(Writer::Old, &refusal, 252);
        check(Writer::Old, &Refusal::BlobNotFound, 215);
        check(Writer::Old, &Refusal::ContainerAlreadyExists, 230);
        check(Writer::New, &Refusal::AppendPositionNotMet, 251);
        check(Writer::Old, &Refusal::RangeInvalid { length: 0 }, 249);
        check(Writer::Old, &Refusal::XmlNotValid { line: 0, position: 0, reason: "".into() }, 294);
        let lease = "'d92e6954-3274-4715-811c-727ca7145303'".to_owned();
        check(Writer::New, &Refusal::HeaderInvalid { name: "x-ms-lease-id", value: lease }, 368);
        let length = "8796093022209".to_owned();
        check(Writer::Old, &Refusal::HeaderInvalid { name: "x-ms-blob-content-length", value: length }, 343);
    }

    #[test]
    fn an_error_reads_back() {
        let refusal = Refusal::ParameterInvalid { name: "comp", value: "<&>'".to_owned(), reason: Some("") };
        for writer in [Writer::Old, Writer::New] {
            let error = read(&write_refusal(writer, &refusal)).unwrap();
            assert_eq!(error.code, "InvalidQueryParameterValue");
            assert!(error.message.starts_with(&refusal.to_string()));
            assert_eq!(error.details[1], ("QueryParameterValue".to_owned(), "<&>'".to_owned()));
            assert_eq!(error.details[2], ("Reason".to_owned(), String::new()));
        }
        assert_eq!(read(b"<Tags/>"), None);
    }
}
