//! A message as a row of its queue's table: the key that says from when on it is visible, and the properties.

use std::fmt;
use std::time::Duration;

use model::{Cut, EntityKey, Key, KeyRange, ValueRef};
use queue_model::{DateTime, Guid, Message, MessageId, MessageText, PopReceipt, TakenMessage};
use store::{Change, Condition, Fault, RawRow, RowDraft, RowOperation, StoredRef};

use crate::clock::due;

/// The partition of all messages of a queue.
pub const MESSAGES: &str = "m";

/// Names of properties: short, because every message has them.
const DEQUEUES: &str = "D";
pub const EXPIRES: &str = "E";
pub const INSERTED: &str = "I";
const CHANGES: &str = "N";
const TEXT: &str = "T";
const UPDATED: &str = "U";

/// Where a message's row is. Rows lie in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// From when on the message is visible.
    pub due: DateTime,
    pub id: MessageId,
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
const TEXT_BYTES: usize = 48;

impl RowKey {
    /// The last one that is visible at this time.
    pub fn last_at(due: DateTime) -> Self {
        Self { due, id: MessageId(Guid([0xff; 16])) }
    }

    /// 16 digits of the time and 32 of the id, which sort as they do.
    pub fn text(self) -> String {
        let mut text = String::with_capacity(TEXT_BYTES);
        for byte in self.due.ticks().to_be_bytes().into_iter().chain(self.id.0.0) {
            let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
            text.push(digit(byte >> 4));
            text.push(digit(byte & 0xf));
        }
        text
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (due, id) = text.split_at_checked(16)?;
        let is_ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if id.len() != 32 || !text.bytes().all(is_ours) {
            return None;
        }
        let due = DateTime::from_ticks(i64::from_str_radix(due, 16).ok()?)?;
        let id = u128::from_str_radix(id, 16).ok()?;
        Some(Self { due, id: MessageId(Guid(id.to_be_bytes())) })
    }

    fn key(self) -> Result<Key, Fault> {
        Key::parse(self.text()).map_err(|_| Fault::bug("the place of a message is not a valid row key"))
    }

    pub fn entity(self) -> Result<EntityKey, Fault> {
        let partition =
            Key::parse(MESSAGES).map_err(|_| Fault::bug("the messages' partition is not a key"))?;
        Ok(EntityKey { partition, row: self.key()? })
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The messages that become visible from one time up to another, both included.
pub fn range(from: DateTime, to: DateTime) -> KeyRange {
    let start = format!("{:016x}", from.ticks());
    KeyRange { start: Cut::before(MESSAGES, &start), end: Cut::after(MESSAGES, &RowKey::last_at(to).text()) }
}

/// The messages from a place on.
pub fn range_from(place: &str) -> KeyRange {
    KeyRange { start: Cut::before(MESSAGES, place), end: Cut::after_partition(MESSAGES) }
}

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    pub key: RowKey,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub dequeue_count: u32,
    /// How often its receipt has changed.
    pub changes: u32,
    /// Its receipt is that of an Update.
    pub is_updated: bool,
    pub text: MessageText,
}

impl StoredMessage {
    /// As Put makes it.
    pub fn new(
        id: MessageId,
        now: DateTime,
        visibility: Duration,
        expires: DateTime,
        text: MessageText,
    ) -> Self {
        let key = RowKey { due: due(now, visibility, now, 0), id };
        Self { key, inserted: now, expires, dequeue_count: 0, changes: 0, is_updated: false, text }
    }

    /// As a Get leaves it.
    pub fn taken(self, now: DateTime, visibility: Duration) -> Self {
        let dequeue_count = self.dequeue_count.saturating_add(1);
        Self { dequeue_count, is_updated: false, ..self.moved(now, visibility) }
    }

    /// As an Update leaves it.
    pub fn updated(self, now: DateTime, visibility: Duration, text: Option<MessageText>) -> Self {
        let moved = self.moved(now, visibility);
        Self { is_updated: true, text: text.unwrap_or(moved.text), ..moved }
    }

    fn moved(self, now: DateTime, visibility: Duration) -> Self {
        let changes = self.changes.saturating_add(1);
        let key = RowKey { due: due(now, visibility, self.inserted, changes), ..self.key };
        Self { key, changes, ..self }
    }

    pub fn receipt(&self) -> PopReceipt {
        receipt(self.key, self.is_updated, self.dequeue_count)
    }

    pub fn is_expired(&self, now: DateTime) -> bool {
        self.expires <= now
    }

    pub fn into_message(self) -> Message {
        let Self { key, inserted, expires, dequeue_count, text, .. } = self;
        Message { id: key.id, inserted, expires, dequeue_count, text }
    }

    pub fn into_taken(self) -> TakenMessage {
        let receipt = self.receipt();
        TakenMessage { message: self.into_message(), receipt }
    }

    fn draft(&self) -> RowDraft {
        // Numbers as they are; nobody calculates with them in the store.
        let properties = [
            (DEQUEUES, ValueRef::Int32(self.dequeue_count.cast_signed())),
            (EXPIRES, ValueRef::DateTime(self.expires)),
            (INSERTED, ValueRef::DateTime(self.inserted)),
            (CHANGES, ValueRef::Int32(self.changes.cast_signed())),
            (TEXT, ValueRef::Binary(self.text.as_str().as_bytes())),
            (UPDATED, ValueRef::Boolean(self.is_updated)),
        ];
        RowDraft::new(properties.into_iter())
    }

    /// The row is put where none is.
    pub fn insertion(&self) -> Result<RowOperation, Fault> {
        let change = Change::Put(self.draft());
        Ok(RowOperation { row: self.key.key()?, condition: Condition::Absent, change })
    }

    pub fn read(key: RowKey, row: RawRow<'_>) -> Result<Self, Fault> {
        let names = [DEQUEUES, EXPIRES, INSERTED, CHANGES, TEXT, UPDATED];
        let mut found = [None; 6];
        row.find(&names, &mut found)?;
        let [
            Some(ValueRef::Int32(dequeue_count)),
            Some(ValueRef::DateTime(expires)),
            Some(ValueRef::DateTime(inserted)),
            Some(ValueRef::Int32(changes)),
            Some(ValueRef::Binary(text)),
            Some(ValueRef::Boolean(is_updated)),
        ] = found
        else {
            return Err(unlike(key));
        };
        let text = String::from_utf8(text.to_vec()).map_err(|_| unlike(key))?;
        let text = MessageText::new(text).map_err(|fault| unlike(key).because(fault))?;
        let (dequeue_count, changes) = (dequeue_count.cast_unsigned(), changes.cast_unsigned());
        Ok(Self { key, inserted, expires, dequeue_count, changes, is_updated, text })
    }
}

fn receipt(key: RowKey, is_updated: bool, dequeue_count: u32) -> PopReceipt {
    match is_updated {
        true => PopReceipt::updated(key.due, dequeue_count),
        false => PopReceipt::given(key.due),
    }
}

/// The receipt of the message in this row, and when it expires: without its text, which may be long.
pub fn read_standing(key: RowKey, row: RawRow<'_>) -> Result<(PopReceipt, DateTime), Fault> {
    let mut found = [None; 3];
    row.find(&[DEQUEUES, EXPIRES, UPDATED], &mut found)?;
    match found {
        [
            Some(ValueRef::Int32(dequeue_count)),
            Some(ValueRef::DateTime(expires)),
            Some(ValueRef::Boolean(is_updated)),
        ] => Ok((receipt(key, is_updated, dequeue_count.cast_unsigned()), expires)),
        _ => Err(unlike(key)),
    }
}

fn unlike(key: RowKey) -> Fault {
    Fault::damaged("a message's row is not as this program writes it").about(key)
}

/// A row as a scan found it, with the version that a change of it is held to.
#[derive(Clone, Debug)]
pub struct FoundMessage {
    pub message: StoredMessage,
    pub version: DateTime,
}

impl FoundMessage {
    /// Bytes that it takes among messages read ahead.
    pub fn memory(&self) -> usize {
        2 * size_of::<Self>() + self.message.text.as_str().len()
    }

    pub fn read(stored: StoredRef<'_>) -> Result<Self, Fault> {
        let key = read_key(stored.row_key)?;
        Ok(Self { message: StoredMessage::read(key, stored.row)?, version: stored.row.timestamp()? })
    }

    pub fn place(&self) -> (RowKey, DateTime) {
        (self.message.key, self.version)
    }

    pub fn deletion(&self) -> Result<RowOperation, Fault> {
        deletion(self.message.key, self.version)
    }
}

pub fn read_key(text: &str) -> Result<RowKey, Fault> {
    RowKey::parse(text)
        .ok_or_else(|| Fault::damaged("the key of a message is not as this program writes it").about(text))
}

/// The row goes, if it is still the version that was read.
pub fn deletion(key: RowKey, version: DateTime) -> Result<RowOperation, Fault> {
    Ok(RowOperation { row: key.key()?, condition: Condition::Version(version), change: Change::Delete })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> StoredMessage {
        let now = DateTime::parse("2026-11-17T10:00:00Z").unwrap();
        let id = MessageId::parse("0a1b2c3d-192b-4f77-a501-2ba4be007ea5").unwrap();
        let text = MessageText::new(text.to_owned()).unwrap();
        StoredMessage::new(id, now, Duration::from_secs(5), now.plus(Duration::from_secs(60)), text)
    }

    #[test]
    fn row_keys_read_back_and_sort_by_time() {
        let key = message("").key;
        assert_eq!(key.text(), "08df44918dcf0081".to_owned() + "0a1b2c3d192b4f77a5012ba4be007ea5");
        assert_eq!(RowKey::parse(&key.text()), Some(key));
        let later =
            RowKey { due: DateTime::from_ticks(key.due.ticks() + 1).unwrap(), id: MessageId(Guid([0; 16])) };
        assert!(key < RowKey::last_at(key.due) && RowKey::last_at(key.due) < later);
        assert!(
            key.text() < RowKey::last_at(key.due).text() && RowKey::last_at(key.due).text() < later.text()
        );
        for text in
            ["", "0a1b", &key.text()[1..], &key.text().to_uppercase(), &format!("{key}0"), &"g".repeat(48)]
        {
            assert_eq!(RowKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn messages_read_back_from_their_rows() {
        let put = message("text");
        let taken = put.clone().taken(put.key.due, Duration::from_secs(30));
        let updated = taken.clone().updated(put.key.due, Duration::ZERO, Some(MessageText::default()));
        let largest = message(&"é".repeat(32 * 1024));
        for message in [put, taken, updated, largest] {
            let row = message.draft().stamp(DateTime::MIN_STORED);
            let entity = message.key.entity().unwrap();
            assert!(entity.check_properties(row.view().properties()).is_ok(), "within what a row may hold");
            let raw = RawRow::new(row.as_bytes());
            let standing = (message.receipt(), message.expires);
            assert_eq!(read_standing(message.key, raw).unwrap(), standing);
            assert_eq!(StoredMessage::read(message.key, raw).unwrap(), message);
        }
    }

    #[test]
    fn receipts_and_counts_change_as_the_service_has_it() {
        let put = message("text");
        let now = put.key.due;
        let taken = put.clone().taken(now, Duration::from_secs(30));
        let updated = taken.clone().updated(now, Duration::from_secs(10), None);
        let again = updated.clone().taken(now, Duration::from_secs(30));
        assert_eq!([&put, &taken, &updated, &again].map(|message| message.dequeue_count), [0, 1, 1, 2]);
        assert_eq!(
            [&put, &taken, &updated, &again].map(|message| message.receipt().dequeue_count()),
            [None, None, Some(1), None]
        );
        assert_eq!((again.inserted, again.expires), (put.inserted, put.expires));
        assert_eq!(updated.text, put.text);
        assert_ne!(taken.receipt(), again.receipt(), "though both were hidden at the same time");
    }
}
