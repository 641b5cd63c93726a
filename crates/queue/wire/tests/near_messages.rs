//! XML that is nearly a message: what is accepted keeps to the limits, and is shown and read back as the same text.

use common::{DateTime, Guid};
use proptest::prelude::*;
use queue_model::{Message, MessageId, limits};
use queue_wire::{error_body, message_body, message_list};
use testing::{Reading, check_near, text_near};

const PIECES: [&str; 16] = [
    "<MessageText>",
    "</MessageText>",
    "<MessageText />",
    "<QueueMessage>",
    "</QueueMessage>",
    "&#x",
    "&lt;",
    ";",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<a b='c'>",
    "</a>",
    "\u{feff}",
    "\r\n",
];

#[test]
fn what_is_nearly_a_message_reads_back_or_is_refused() {
    let body =
        "[a-z é&<>\"'\r\n\t𝄞]{0,40}".prop_map(|text| String::from_utf8(message_body::write(&text)).unwrap());
    check_near(text_near(body, &PIECES), 8..=85, |text| {
        let read = message_body::read(text.as_bytes());
        match &read {
            Ok(message) => {
                prop_assert!(message.as_str().len() <= limits::TEXT_BYTES_MAX);
                prop_assert_eq!(
                    &message_body::read(&message_body::write(message.as_str())),
                    &read,
                    "{}",
                    text
                );
                let (now, id) = (DateTime::MIN_STORED, MessageId(Guid([0; 16])));
                let shown =
                    Message { id, inserted: now, expires: now, dequeue_count: 0, text: message.clone() };
                let entries = message_list::read(&message_list::write_peeked(&[shown])).unwrap();
                prop_assert_eq!(entries[0].text.as_str(), message.as_str(), "{}", text);
            }
            Err(refusal) => {
                prop_assert_eq!(refusal.status(), 400, "{}", text);
                let document =
                    error_body::write(refusal.code(), "no", &refusal.details(), "id", DateTime::MIN_STORED);
                prop_assert!(error_body::read(&document).is_some(), "{}", text);
            }
        }
        Ok(Reading::of(&read))
    });
}
