//! The messages of the queues. Every text is computed from a number that it begins with, so an answer can be checked without
//! storing the text.

use std::io::Write as _;

use crate::error::{BenchError, Result};
use crate::random::{Random, mix};

pub const QUEUES_MAX: u64 = 100_000;
/// The digits of a number.
pub const TEXT_BYTES_MIN: usize = 16;
/// The service's limit.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
const OFFSETS: u64 = 64 * 1024;

/// How many queues there are, how many messages wait in them, and how long the messages are.
#[derive(Debug)]
pub struct MessageSet {
    pub queues: u64,
    /// In all queues together.
    pub waiting: u64,
    text_bytes: usize,
    /// Texts are cut from these letters. None of them has a meaning in XML.
    letters: String,
}

impl MessageSet {
    pub fn new(queues: u64, waiting: u64, text_bytes: usize) -> Result<Self> {
        if !(1..=QUEUES_MAX).contains(&queues) {
            return Err(BenchError::Queues(queues));
        }
        if waiting < queues {
            return Err(BenchError::TooFewMessages { waiting, queues });
        }
        if !(TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(&text_bytes) {
            return Err(BenchError::MessageBytes { bytes: text_bytes });
        }
        let mut random = Random::new(0);
        let letters = (0..OFFSETS as usize + text_bytes).map(|_| {
            char::from(
                b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
                    [random.below(64) as usize],
            )
        });
        Ok(Self { queues, waiting, text_bytes, letters: letters.collect() })
    }

    /// The messages that wait in this queue.
    pub fn waiting_in(&self, queue: u64) -> u64 {
        self.waiting / self.queues + u64::from(queue < self.waiting % self.queues)
    }

    /// The body of a request that puts the message with this number, or changes one to it.
    pub fn write_body(&self, out: &mut Vec<u8>, number: u64) {
        out.clear();
        out.extend_from_slice(b"<QueueMessage><MessageText>");
        // Writing into a vector can't fail.
        let _ = write!(out, "{number:016x}");
        out.extend_from_slice(self.rest(number).as_bytes());
        out.extend_from_slice(b"</MessageText></QueueMessage>");
    }

    /// The number of the message with this text; `None` if it is not as it was written.
    pub fn number(&self, text: &[u8]) -> Option<u64> {
        let (number, rest) = text.split_at_checked(TEXT_BYTES_MIN)?;
        let number = u64::from_str_radix(std::str::from_utf8(number).ok()?, 16).ok()?;
        (rest == self.rest(number).as_bytes()).then_some(number)
    }

    fn rest(&self, number: u64) -> &str {
        let start = (mix(number) % OFFSETS) as usize;
        &self.letters[start..start + self.text_bytes - TEXT_BYTES_MIN]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_its_number_and_a_changed_one_does_not() {
        for bytes in [16, 17, 1024, 65_536] {
            let set = MessageSet::new(1, 1, bytes).unwrap();
            let mut body = Vec::new();
            set.write_body(&mut body, 0xabcd);
            let body = String::from_utf8(body).unwrap();
            let text = body.strip_prefix("<QueueMessage><MessageText>").unwrap();
            let text = text.strip_suffix("</MessageText></QueueMessage>").unwrap();
            assert_eq!(text.len(), bytes);
            assert_eq!(set.number(text.as_bytes()), Some(0xabcd));
            assert_eq!(set.number(&text.as_bytes()[..bytes - 1]), None, "cut off");
            assert_eq!(set.number(format!("{text}x").as_bytes()), None, "longer");
            if bytes > TEXT_BYTES_MIN {
                assert_eq!(set.number(text.replacen('d', "e", 1).as_bytes()), None, "another number");
            }
        }
    }

    #[test]
    fn messages_are_spread_evenly() {
        let set = MessageSet::new(3, 8, 64).unwrap();
        assert_eq!([0, 1, 2].map(|queue| set.waiting_in(queue)), [3, 3, 2]);
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let error = |queues, waiting, bytes| MessageSet::new(queues, waiting, bytes).unwrap_err().to_string();
        assert_eq!(error(0, 1, 64), "--queues 0 is out of range; it takes 1 to 100000");
        assert_eq!(error(10, 9, 64), "--waiting 9 is too few; each of the 10 queues needs a message");
        assert_eq!(error(1, 1, 15), "--message-bytes 15 is out of range; it takes 16 to 65536");
        assert_eq!(error(1, 1, 65_537), "--message-bytes 65537 is out of range; it takes 16 to 65536");
    }
}
