//! A message's body: what is accepted is shown, and reads back as the same text by a client and by a server; a refusal is a
//! document that a client can read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{DateTime, Guid};
use queue_model::{Message, MessageId};
use queue_wire::{error_body, message_body, message_list};

fuzz_target!(|body: &[u8]| {
    match message_body::read(body) {
        Ok(text) => {
            assert_eq!(message_body::read(&message_body::write(text.as_str())), Ok(text.clone()));
            let now = DateTime::MIN_STORED;
            let id = MessageId(Guid([0; 16]));
            let message = Message { id, inserted: now, expires: now, dequeue_count: 1, text: text.clone() };
            let shown = message_list::write_peeked(&[message]);
            let read = message_list::read(&shown).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&shown)));
            assert_eq!(read[0].text, text.as_str());
        }
        Err(refusal) => {
            let (status, code) = refusal.answer();
            assert!((400..500).contains(&status), "{refusal:?}");
            let document = error_body::write(code, &refusal.to_string(), &refusal.details(), "id", DateTime::MIN_STORED);
            let read = error_body::read(&document).unwrap_or_else(|| panic!("{refusal:?}"));
            assert_eq!(read.code, code);
        }
    }
});
