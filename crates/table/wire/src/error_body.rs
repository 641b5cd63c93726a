//! Error documents, in the four shapes the service has (spec: table-operations 7.2).

use common::xml_character::is_forbidden;
use model::{DateTime, Refusal};
use protocol::xml_tree::Element;

use crate::entity_json::write_string;

const METADATA_NAMESPACE: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";

/// The content of an error document.
#[derive(Clone, Debug)]
pub struct ErrorText {
    code: &'static str,
    message: String,
}

impl ErrorText {
    /// `index` is the index of the operation that failed in a batch, if the message shows it.
    pub fn new(refusal: &Refusal, index: Option<usize>, request_id: &str, time: DateTime) -> Self {
        let prefix = index.map_or(String::new(), |index| format!("{index}:"));
        let time = time.to_fixed_string();
        Self {
            code: refusal.code(),
            message: format!("{prefix}{refusal}\nRequestId:{request_id}\nTime:{time}"),
        }
    }

    pub fn json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"odata.error\":{\"code\":");
        write_string(&mut out, self.code);
        out.extend_from_slice(b",\"message\":{\"lang\":\"en-US\",\"value\":");
        write_string(&mut out, &self.message);
        out.extend_from_slice(b"}}}");
        out
    }

    /// The table server's XML, for clients that did not ask for JSON.
    pub fn xml(&self) -> Vec<u8> {
        let (code, message) = (self.code, escape(&self.message));
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><error xmlns=\"{METADATA_NAMESPACE}\"><code>{code}</code><message xml:lang=\"en-US\">{message}</message></error>"
        )
        .into_bytes()
    }

    /// The table server's XML in versions before 2013-08-15.
    pub fn old_xml(&self) -> Vec<u8> {
        let (code, message) = (self.code, escape(&self.message));
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\r\n<error xmlns=\"{METADATA_NAMESPACE}\">\r\n  <code>{code}</code>\r\n  <message xml:lang=\"en-US\">{message}</message>\r\n</error>"
        )
        .into_bytes()
    }

    /// The front end's XML, with a prefix on its elements.
    pub fn front_end_xml(&self) -> Vec<u8> {
        let (code, message) = (self.code, escape(&self.message));
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"{METADATA_NAMESPACE}\"><m:code>{code}</m:code><m:message xml:lang=\"en-US\">{message}</m:message></m:error>"
        )
        .into_bytes()
    }

    /// The answer to an unreadable `x-ms-version`: always XML, with a byte order mark.
    pub fn version_xml(&self) -> Vec<u8> {
        let mut out = b"\xEF\xBB\xBF".to_vec();
        out.extend(self.old_xml());
        out
    }
}

/// The code and the message of any of these documents; `None` for any other text.
pub fn read(body: &[u8]) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    struct Document {
        #[serde(rename = "odata.error")]
        error: CodeAndMessage,
    }
    #[derive(serde::Deserialize)]
    struct CodeAndMessage {
        code: String,
        message: Message,
    }
    #[derive(serde::Deserialize)]
    struct Message {
        value: String,
    }
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii();
    if body.first() == Some(&b'{') {
        let Document { error } = serde_json::from_slice(body).ok()?;
        return Some((error.code, error.message.value));
    }
    let root = Element::parse(body)?;
    let child = |name: &str| {
        root.children
            .iter()
            .find(|child| child.name.eq_ignore_ascii_case(name))
            .map(|child| child.text().to_owned())
    };
    Some((child("code")?, child("message").unwrap_or_default()))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // The message may quote a client's text. XML holds these characters not even as references.
            c if is_forbidden(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(refusal: &Refusal, index: Option<usize>) -> ErrorText {
        ErrorText::new(refusal, index, "6f0a1c22-9002-0011-7a31-0c5d1e000000", DateTime::MIN_STORED)
    }

    #[test]
    fn bodies_are_the_services_to_the_byte() {
        let tail = "RequestId:6f0a1c22-9002-0011-7a31-0c5d1e000000";
        let json = String::from_utf8(text(&Refusal::TableNotFound, Some(2)).json()).unwrap();
        assert_eq!(
            json,
            format!(
                r#"{{"odata.error":{{"code":"TableNotFound","message":{{"lang":"en-US","value":"2:The table specified does not exist.\n{tail}\nTime:1601-01-01T00:00:00.0000000Z"}}}}}}"#
            )
        );
        let refused = text(&common::Refusal::AuthenticationFailed.into(), None);
        let xml = String::from_utf8(refused.front_end_xml()).unwrap();
        assert_eq!(xml.len(), 419, "the recorded Content-Length");
    }

    #[test]
    fn every_shape_is_read() {
        let error = text(&Refusal::EntityAlreadyExists, Some(2));
        for body in [error.json(), error.xml(), error.old_xml(), error.front_end_xml(), error.version_xml()] {
            let (code, message) = read(&body).unwrap();
            assert_eq!(code, "EntityAlreadyExists");
            assert!(message.starts_with("2:The specified entity already exists."), "{message}");
        }
        for body in ["", "<html><p>Bad gateway</p></html>", "{}", "busy"] {
            assert_eq!(read(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn quoted_input_is_escaped() {
        let refusal = Refusal::Syntax { message: "in '<a>&'".into() };
        let xml = String::from_utf8(text(&refusal, None).xml()).unwrap();
        assert!(xml.contains("in '&lt;a&gt;&amp;'"), "{xml}");
    }

    #[test]
    fn what_xml_forbids_is_replaced_so_that_every_shape_is_read() {
        let refusal = Refusal::Syntax { message: "in 'a\0\u{1f}\u{fffe}\u{ffff}\tb'".into() };
        let error = text(&refusal, None);
        for body in [error.xml(), error.old_xml(), error.front_end_xml(), error.version_xml()] {
            let (_, message) = read(&body).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&body)));
            assert!(message.starts_with("in 'a\u{fffd}\u{fffd}\u{fffd}\u{fffd}\tb'"), "{message}");
        }
    }
}
