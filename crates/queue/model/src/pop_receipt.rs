//! Pop receipts: what a client shows to change or delete the message that it was given.
//!
//! In the layout of the service (spec: queue-operations 6.3), so that a receipt says when its message becomes visible.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::DateTime;

/// The second and the third word of every receipt.
const MARK: [u8; 8] = [3, 0, 0, 0, 0, 0, 0, 0];
/// The first word, by what made the receipt.
const GIVEN: [u8; 4] = [2, 0, 0, 0];
const UPDATED: [u8; 4] = [3, 0, 0, 0];

/// A text that is no Base64, and so no receipt whatever message it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pop receipt is Base64")]
pub struct NotBase64;

/// A receipt as this server writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopReceipt {
    next_visible: DateTime,
    /// How often the message had been delivered, in the receipt of an update.
    dequeue_count: Option<u32>,
}

impl PopReceipt {
    /// Of a Put or a Get. A time before 1601 is taken for 1601, where the clock of receipts begins.
    pub fn given(next_visible: DateTime) -> Self {
        Self { next_visible: next_visible.max(DateTime::MIN_STORED), dequeue_count: None }
    }

    /// Of an Update.
    pub fn updated(next_visible: DateTime, dequeue_count: u32) -> Self {
        Self { dequeue_count: Some(dequeue_count), ..Self::given(next_visible) }
    }

    /// When its message becomes visible.
    pub fn next_visible(&self) -> DateTime {
        self.next_visible
    }

    /// How often the message had been delivered; none unless an update made the receipt.
    pub fn dequeue_count(&self) -> Option<u32> {
        self.dequeue_count
    }

    /// `Ok(None)` for a text that could be a receipt, but none that this server has given.
    pub fn parse(text: &str) -> Result<Option<Self>, NotBase64> {
        let bytes = STANDARD.decode(text).map_err(|_| NotBase64)?;
        Ok(Self::of_bytes(&bytes))
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk::<4>()?;
        let (mark, rest) = rest.split_first_chunk::<8>()?;
        let (ticks, rest) = rest.split_first_chunk::<8>()?;
        let since_1601 = i64::try_from(u64::from_le_bytes(*ticks)).ok()?;
        let next_visible = DateTime::from_ticks(DateTime::MIN_STORED.ticks().checked_add(since_1601)?)?;
        let dequeue_count = match (*kind, rest) {
            (GIVEN, []) => None,
            (UPDATED, count) => Some(u32::from_le_bytes(count.try_into().ok()?)),
            _ => return None,
        };
        (*mark == MARK).then_some(Self { next_visible, dequeue_count })
    }

    /// Its text, in ASCII.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; 24];
        let kind = if self.dequeue_count.is_some() { UPDATED } else { GIVEN };
        bytes[..4].copy_from_slice(&kind);
        bytes[4..12].copy_from_slice(&MARK);
        let since_1601 = self.next_visible.ticks() - DateTime::MIN_STORED.ticks();
        bytes[12..20].copy_from_slice(&since_1601.to_le_bytes());
        bytes[20..].copy_from_slice(&self.dequeue_count.unwrap_or_default().to_le_bytes());
        let length = if self.dequeue_count.is_some() { 24 } else { 20 };
        let mut text = [0; 32];
        // 24 bytes are 32 letters.
        let written = STANDARD.encode_slice(&bytes[..length], &mut text).unwrap_or_default();
        out.extend_from_slice(&text[..written]);
    }
}

impl fmt::Display for PopReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(32);
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn receipts_are_the_specifications_to_the_byte() {
        let time = DateTime::parse("2024-11-15T12:00:30.1234567Z").unwrap();
        assert_eq!(PopReceipt::given(time).to_string(), "AgAAAAMAAAAAAAAAh1l591U32wE=");
        assert_eq!(PopReceipt::updated(time, 1).to_string(), "AwAAAAMAAAAAAAAAh1l591U32wEBAAAA");
    }

    #[test]
    fn receipts_of_the_service_say_when_the_message_becomes_visible() {
        let check = |text: &str, time: &str, count| {
            let receipt = PopReceipt::parse(text).unwrap().unwrap();
            assert_eq!(
                (receipt.next_visible().to_seconds_string().as_str(), receipt.dequeue_count()),
                (time, count)
            );
        };
        check("AgAAAAMAAAAAAAAAkP0RP0Fx2QE=", "2023-04-17T15:28:22Z", None);
        check("AwAAAAMAAAAAAAAABsT9bh+J1QEBAAAA", "2019-10-22T21:26:57Z", Some(1));
    }

    #[test]
    fn other_texts_are_told_apart() {
        let good = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE=";
        for text in ["invalid", "exist", &format!("{good}Random"), "a b=", "é", "="] {
            assert_eq!(PopReceipt::parse(text), Err(NotBase64), "{text}");
        }
        let old = "AgAAAAEAAACucgAAkP0RP0Fx2QE=";
        let beyond = STANDARD.encode([&GIVEN[..], &MARK, &[0xff; 8]].concat());
        let short = STANDARD.encode([&UPDATED[..], &MARK, &[0; 8]].concat());
        let long = STANDARD.encode([&GIVEN[..], &MARK, &[0; 12]].concat());
        for text in ["", "abcdefghijklmnopqrst", old, &beyond, &short, &long] {
            assert_eq!(PopReceipt::parse(text), Ok(None), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            ticks in DateTime::MIN_STORED.ticks()..=DateTime::MAX.ticks(), count in any::<Option<u32>>(),
        ) {
            let time = DateTime::from_ticks(ticks).unwrap();
            let receipt = count.map_or(PopReceipt::given(time), |count| PopReceipt::updated(time, count));
            prop_assert_eq!(PopReceipt::parse(&receipt.to_string()), Ok(Some(receipt)));
        }
    }
}
