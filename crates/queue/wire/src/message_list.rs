//! Lists of messages: the answers of Put, Get and Peek (spec: queue-operations 5).

use common::{DateTime, Version};
use protocol::xml_tree::Element;
use queue_model::{Message, NewMessage, PopReceipt, TakenMessage, limits};

use crate::QueueVersion as _;
use crate::xml;

const LIST: &str = "QueueMessagesList";
const MESSAGE: &str = "QueueMessage";

/// Tags, ids, times and a receipt of one message take about this much.
const BYTES_BESIDE_TEXT: usize = 512;

/// Put's answer.
pub fn write_new(message: &NewMessage) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES_BESIDE_TEXT);
    begin(&mut out, 1);
    xml::open(&mut out, MESSAGE);
    identity(&mut out, message.id, message.inserted, message.expires);
    lease(&mut out, &message.receipt);
    xml::close(&mut out, MESSAGE);
    xml::close(&mut out, LIST);
    out
}

/// Get's answer. Before 2016-05-31 the dequeue count stands before the receipt.
pub fn write_taken(messages: &[TakenMessage], version: Version) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(messages.iter().map(|taken| &taken.message)));
    begin(&mut out, messages.len());
    for TakenMessage { message, receipt } in messages {
        xml::open(&mut out, MESSAGE);
        identity(&mut out, message.id, message.inserted, message.expires);
        if version.has_put_answer() {
            lease(&mut out, receipt);
            dequeue_count(&mut out, message.dequeue_count);
        } else {
            dequeue_count(&mut out, message.dequeue_count);
            lease(&mut out, receipt);
        }
        xml::element(&mut out, "MessageText", message.text.as_str());
        xml::close(&mut out, MESSAGE);
    }
    end(&mut out, messages.len());
    out
}

/// Peek's answer.
pub fn write_peeked(messages: &[Message]) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(messages.iter()));
    begin(&mut out, messages.len());
    for message in messages {
        xml::open(&mut out, MESSAGE);
        identity(&mut out, message.id, message.inserted, message.expires);
        dequeue_count(&mut out, message.dequeue_count);
        xml::element(&mut out, "MessageText", message.text.as_str());
        xml::close(&mut out, MESSAGE);
    }
    end(&mut out, messages.len());
    out
}

fn room<'m>(messages: impl Iterator<Item = &'m Message>) -> usize {
    let each = messages.map(|message| message.text.as_str().len() + BYTES_BESIDE_TEXT);
    each.sum::<usize>() + xml::START.len() + 64
}

fn begin(out: &mut Vec<u8>, messages: usize) {
    out.extend_from_slice(xml::START);
    if messages > 0 {
        xml::open(out, LIST);
    }
}

fn end(out: &mut Vec<u8>, messages: usize) {
    if messages > 0 { xml::close(out, LIST) } else { xml::empty(out, LIST) }
}

fn identity(out: &mut Vec<u8>, id: queue_model::MessageId, inserted: DateTime, expires: DateTime) {
    out.extend_from_slice(b"<MessageId>");
    id.write(out);
    out.extend_from_slice(b"</MessageId><InsertionTime>");
    out.extend_from_slice(&inserted.http_date());
    out.extend_from_slice(b"</InsertionTime><ExpirationTime>");
    out.extend_from_slice(&expires.http_date());
    out.extend_from_slice(b"</ExpirationTime>");
}

fn lease(out: &mut Vec<u8>, receipt: &PopReceipt) {
    out.extend_from_slice(b"<PopReceipt>");
    receipt.write(out);
    out.extend_from_slice(b"</PopReceipt><TimeNextVisible>");
    out.extend_from_slice(&receipt.next_visible().http_date());
    out.extend_from_slice(b"</TimeNextVisible>");
}

fn dequeue_count(out: &mut Vec<u8>, count: u32) {
    out.extend_from_slice(b"<DequeueCount>");
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"</DequeueCount>");
}

/// A message as a client reads it. What an answer does not show is empty, or none. Ids and receipts are opaque to clients,
/// and times are as the service wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageEntry {
    pub id: String,
    pub inserted: String,
    pub expires: String,
    pub receipt: String,
    pub next_visible: String,
    pub dequeue_count: Option<u32>,
    pub text: String,
}

/// The messages of an answer to Put, Get or Peek; `None` if it is none.
pub fn read(document: &[u8]) -> Option<Vec<MessageEntry>> {
    // A message has eight tags.
    let tags_max = 16 + limits::MESSAGES_MAX as usize * 16;
    let root = Element::parse_list(document, tags_max).filter(|root| root.name == LIST)?;
    root.children.iter().map(entry).collect()
}

fn entry(element: &Element) -> Option<MessageEntry> {
    if element.name != MESSAGE {
        return None;
    }
    let child = |name| element.child(name).ok().map(|child| child.map_or("", Element::whole_text));
    let dequeue_count = child("DequeueCount")?;
    Some(MessageEntry {
        id: Some(child("MessageId")?).filter(|id| !id.is_empty())?.to_owned(),
        inserted: child("InsertionTime")?.to_owned(),
        expires: child("ExpirationTime")?.to_owned(),
        receipt: child("PopReceipt")?.to_owned(),
        next_visible: child("TimeNextVisible")?.to_owned(),
        dequeue_count: if dequeue_count.is_empty() { None } else { Some(dequeue_count.parse().ok()?) },
        text: child("MessageText")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use queue_model::{MessageId, MessageText};

    const OPEN: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList>";
    const CLOSE: &str = "</QueueMessagesList>";

    fn message(text: &str, expires: &str) -> Message {
        Message {
            id: MessageId::parse("0a1b2c3d-192b-4f77-a501-2ba4be007ea5").unwrap(),
            inserted: DateTime::parse("2023-04-17T15:28:22.5").unwrap(),
            expires: DateTime::parse(expires).unwrap(),
            dequeue_count: 3,
            text: MessageText::new(text.to_owned()).unwrap(),
        }
    }

    fn receipt() -> PopReceipt {
        PopReceipt::parse("AgAAAAMAAAAAAAAAkP0RP0Fx2QE=").unwrap().unwrap()
    }

    fn shown(document: Vec<u8>) -> String {
        String::from_utf8(document).unwrap()
    }

    #[test]
    fn puts_answer_is_the_services_to_the_byte() {
        let Message { id, inserted, expires, .. } = message("", "2023-04-24T15:28:22.5");
        let new = NewMessage { id, inserted, expires, receipt: receipt() };
        assert_eq!(
            shown(write_new(&new)),
            format!(
                "{OPEN}<QueueMessage><MessageId>0a1b2c3d-192b-4f77-a501-2ba4be007ea5</MessageId><InsertionTime>Mon, 17 Apr 2023 15:28:22 GMT</InsertionTime><ExpirationTime>Mon, 24 Apr 2023 15:28:22 GMT</ExpirationTime><PopReceipt>AgAAAAMAAAAAAAAAkP0RP0Fx2QE=</PopReceipt><TimeNextVisible>Mon, 17 Apr 2023 15:28:22 GMT</TimeNextVisible></QueueMessage>{CLOSE}"
            )
        );
    }

    const IDENTITY: &str = "<MessageId>0a1b2c3d-192b-4f77-a501-2ba4be007ea5</MessageId><InsertionTime>Mon, 17 Apr 2023 15:28:22 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>";
    const LEASE: &str = "<PopReceipt>AgAAAAMAAAAAAAAAkP0RP0Fx2QE=</PopReceipt><TimeNextVisible>Mon, 17 Apr 2023 15:28:22 GMT</TimeNextVisible>";
    const COUNT: &str = "<DequeueCount>3</DequeueCount>";

    #[test]
    fn the_dequeue_count_moved_behind_the_times() {
        let check = |version: &str, expected: &str| {
            let messages = [
                TakenMessage { message: message("<a&b>", "9999-12-31T23:59:59.9999999"), receipt: receipt() },
                TakenMessage { message: message("", "9999-12-31T23:59:59.9999999"), receipt: receipt() },
            ];
            let version = Version::parse(version).unwrap();
            assert_eq!(shown(write_taken(&messages, version)), format!("{OPEN}{expected}{CLOSE}"));
        };
        check(
            "2016-05-31",
            &format!(
                "<QueueMessage>{IDENTITY}{LEASE}{COUNT}<MessageText>&lt;a&amp;b&gt;</MessageText></QueueMessage><QueueMessage>{IDENTITY}{LEASE}{COUNT}<MessageText /></QueueMessage>"
            ),
        );
        check(
            "2015-12-11",
            &format!(
                "<QueueMessage>{IDENTITY}{COUNT}{LEASE}<MessageText>&lt;a&amp;b&gt;</MessageText></QueueMessage><QueueMessage>{IDENTITY}{COUNT}{LEASE}<MessageText /></QueueMessage>"
            ),
        );
    }

    #[test]
    fn peek_shows_no_receipt() {
        assert_eq!(
            shown(write_peeked(&[message("x", "9999-12-31T23:59:59.9999999")])),
            format!(
                "{OPEN}<QueueMessage>{IDENTITY}{COUNT}<MessageText>x</MessageText></QueueMessage>{CLOSE}"
            )
        );
    }

    #[test]
    fn no_messages_are_an_empty_element() {
        let empty = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />";
        assert_eq!(shown(write_peeked(&[])), empty);
        assert_eq!(shown(write_taken(&[], Version::DEFAULT)), empty);
        assert_eq!(read(empty.as_bytes()), Some(Vec::new()));
    }

    #[test]
    fn a_client_reads_what_a_server_writes() {
        let text = "  mess\t age1\r\n<&>\"'𝄞";
        let taken = TakenMessage { message: message(text, "2023-04-24"), receipt: receipt() };
        let expected = MessageEntry {
            id: "0a1b2c3d-192b-4f77-a501-2ba4be007ea5".to_owned(),
            inserted: "Mon, 17 Apr 2023 15:28:22 GMT".to_owned(),
            expires: "Mon, 24 Apr 2023 00:00:00 GMT".to_owned(),
            receipt: receipt().to_string(),
            next_visible: "Mon, 17 Apr 2023 15:28:22 GMT".to_owned(),
            dequeue_count: Some(3),
            text: text.to_owned(),
        };
        let many = vec![taken.clone(); limits::MESSAGES_MAX as usize];
        for version in ["2015-12-11", "2021-02-12"] {
            let read = read(&write_taken(&many, Version::parse(version).unwrap()));
            assert!(read == Some(vec![expected.clone(); many.len()]), "{version}");
        }
        let peeked = MessageEntry { receipt: String::new(), next_visible: String::new(), ..expected };
        assert_eq!(read(&write_peeked(&[taken.message])), Some(vec![peeked]));
        assert_eq!(read(b"<Error/>"), None);
        assert_eq!(read(b"<QueueMessagesList><QueueMessage/></QueueMessagesList>"), None);
    }
}
