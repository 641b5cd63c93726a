//! Messages: their ids, their text, and what each operation says of them.

use std::fmt;

use common::{DateTime, Guid, xml_character};

use crate::{PopReceipt, limits};

/// What a message is called in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub Guid);

impl MessageId {
    pub fn parse(text: &str) -> Option<Self> {
        Guid::parse(text).map(Self)
    }

    pub fn write(self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text of a message: at most 64 KiB of UTF-8, all of it characters that XML has.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MessageText(String);

/// Why a text can't be a message's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("a message's text has at most {} bytes", limits::TEXT_BYTES_MAX)]
    TooLong,
    #[error("a message's text has no {0:?}, which XML can't carry")]
    Forbidden(char),
}

impl MessageText {
    pub fn new(text: String) -> Result<Self, TextFault> {
        if text.len() > limits::TEXT_BYTES_MAX {
            return Err(TextFault::TooLong);
        }
        let forbidden = xml_character::find_forbidden(&text).and_then(|at| text[at..].chars().next());
        match forbidden {
            Some(forbidden) => Err(TextFault::Forbidden(forbidden)),
            None => Ok(Self(text)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// Without the text itself: what clients store is no business of logs.
impl fmt::Debug for MessageText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageText({} bytes)", self.0.len())
    }
}

/// A message as Peek shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub inserted: DateTime,
    /// `DateTime::MAX` for one that lives for ever.
    pub expires: DateTime,
    /// How often it has been delivered.
    pub dequeue_count: u32,
    pub text: MessageText,
}

/// A message that Get has given to a client, and the receipt for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenMessage {
    pub message: Message,
    pub receipt: PopReceipt,
}

/// What Put says of the message that it has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    /// `DateTime::MAX` for one that lives for ever.
    pub expires: DateTime,
    pub receipt: PopReceipt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_counted_in_bytes_and_has_only_characters_of_xml() {
        let check = |text: &str, expected: Option<TextFault>| {
            assert_eq!(MessageText::new(text.to_owned()).err(), expected, "{text:.20}");
        };
        check("", None);
        check("  mess\t age1\r\n", None);
        check("\u{7f}\u{85}\u{fffd}𝄞", None);
        check(&"é".repeat(limits::TEXT_BYTES_MAX / 2), None);
        check(&format!("{}a", "é".repeat(limits::TEXT_BYTES_MAX / 2)), Some(TextFault::TooLong));
        for forbidden in ['\0', '\u{1}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            check(&format!("a{forbidden}"), Some(TextFault::Forbidden(forbidden)));
        }
    }

    #[test]
    fn an_id_is_a_guid_and_nothing_more() {
        let id = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5";
        assert_eq!(MessageId::parse(id).map(|id| id.to_string()).as_deref(), Some(id));
        assert_eq!(MessageId::parse(&format!("{id}Random")), None);
        assert_eq!(MessageId::parse(&format!("test-message-{id}")), None);
    }
}
