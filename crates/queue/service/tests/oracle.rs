//! What a queue must answer: a plain list of messages, and every receipt that was ever given.

use std::collections::BTreeMap;
use std::time::Duration;

use queue_model::{DateTime, Message, MessageId, NewMessage, PopReceipt, Refusal, TakenMessage};

/// The moments between which an operation took place.
#[derive(Clone, Copy, Debug)]
pub struct When {
    pub after: DateTime,
    pub before: DateTime,
}

#[derive(Clone, Debug)]
struct Known {
    inserted: DateTime,
    expires: DateTime,
    dequeue_count: u32,
    text: String,
    receipt: PopReceipt,
}

impl Known {
    fn is_surely_visible(&self, when: When) -> bool {
        self.receipt.next_visible() <= when.after && when.before < self.expires
    }

    fn may_be_visible(&self, when: When) -> bool {
        self.receipt.next_visible() <= when.before && when.after < self.expires
    }
}

#[derive(Debug, Default)]
pub struct Oracle {
    messages: BTreeMap<MessageId, Known>,
    /// Every receipt with its message, also those that are no longer good.
    pub receipts: Vec<(MessageId, PopReceipt)>,
    /// Seen by nobody yet, but known to have expired.
    expired: usize,
}

impl Oracle {
    pub fn put(
        &mut self,
        put: NewMessage,
        text: &str,
        visibility: Duration,
        ttl: Option<Duration>,
        when: When,
    ) {
        assert!(when.after < put.inserted && put.inserted < when.before, "{put:?} {when:?}");
        assert_eq!(put.expires, ttl.map_or(DateTime::MAX, |ttl| put.inserted.plus(ttl)));
        let late = put.receipt.next_visible().ticks() - put.inserted.plus(visibility).ticks();
        assert!((0..=1).contains(&late), "{put:?}");
        let known = Known {
            inserted: put.inserted,
            expires: put.expires,
            dequeue_count: 0,
            text: text.to_owned(),
            receipt: put.receipt,
        };
        assert!(self.messages.insert(put.id, known).is_none(), "an id given twice");
        self.give(put.id, put.receipt);
    }

    /// Judges what a Get gave out.
    pub fn got(&mut self, got: &[TakenMessage], count: u32, visibility: Duration, when: When) {
        let messages: Vec<&Message> = got.iter().map(|taken| &taken.message).collect();
        self.check_visible(&messages, 1, count, when);
        for taken in got {
            let due = taken.receipt.next_visible();
            assert!(due > when.after.plus(visibility), "visible too early: {taken:?}");
            assert!(due.ticks() <= when.before.plus(visibility).ticks() + 10_001, "too late: {taken:?}");
            let known = self.messages.get_mut(&taken.message.id).unwrap();
            known.dequeue_count += 1;
            known.receipt = taken.receipt;
            assert_eq!(taken.receipt.dequeue_count(), None);
            self.give(taken.message.id, taken.receipt);
        }
    }

    pub fn peeked(&self, shown: &[Message], count: u32, when: When) {
        self.check_visible(&shown.iter().collect::<Vec<_>>(), 0, count, when);
    }

    /// In order of visibility, none that can't be visible, and none left out that surely is.
    fn check_visible(&self, shown: &[&Message], more_dequeues: u32, count: u32, when: When) {
        assert!(shown.len() <= count as usize);
        let mut last = None;
        for message in shown {
            let known = self.messages.get(&message.id).unwrap_or_else(|| panic!("deleted: {message:?}"));
            assert!(known.may_be_visible(when), "not visible {when:?}: {message:?} {known:?}");
            assert_eq!(
                (message.inserted, message.expires, message.dequeue_count, message.text.as_str()),
                (known.inserted, known.expires, known.dequeue_count + more_dequeues, known.text.as_str())
            );
            let place = (known.receipt.next_visible(), message.id);
            assert!(last < Some(place), "not in order of visibility");
            last = Some(place);
        }
        let is_full = shown.len() == count as usize;
        for (id, known) in &self.messages {
            let must_come = known.is_surely_visible(when)
                && (!is_full || Some((known.receipt.next_visible(), *id)) < last);
            let is_shown = shown.iter().any(|message| message.id == *id);
            assert!(is_shown || !must_come, "left out {when:?}: {id} {known:?}");
        }
    }

    /// What an operation with a receipt must answer: yes, no, or either because the message expires at that moment.
    fn expects(&self, id: MessageId, receipt: PopReceipt, when: When) -> Option<bool> {
        match self.messages.get(&id) {
            Some(known) if known.receipt == receipt => match () {
                () if when.before < known.expires => Some(true),
                () if known.expires <= when.after => Some(false),
                () => None,
            },
            _ => Some(false),
        }
    }

    pub fn updated(
        &mut self,
        (id, receipt): (MessageId, PopReceipt),
        visibility: Duration,
        text: Option<&str>,
        answer: Result<PopReceipt, Refusal>,
        when: When,
    ) {
        let expected = self.expects(id, receipt, when);
        let given = match answer {
            Err(Refusal::MessageNotFound) => return assert_ne!(expected, Some(true), "{id} {receipt}"),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::visible_after_expiry(visibility.as_secs()));
                assert_ne!(expected, Some(false));
                return assert!(when.before.plus(visibility) > self.messages[&id].expires);
            }
            Ok(given) => given,
        };
        assert_ne!(expected, Some(false), "a stale receipt was good: {id} {receipt}");
        let known = self.messages.get_mut(&id).unwrap();
        assert!(when.after.plus(visibility) <= known.expires);
        assert!(given.next_visible() > when.after.plus(visibility), "visible too early");
        assert!(given.next_visible().ticks() <= when.before.plus(visibility).ticks() + 10_001);
        assert_eq!(given.dequeue_count(), Some(known.dequeue_count));
        known.receipt = given;
        if let Some(text) = text {
            text.clone_into(&mut known.text);
        }
        self.give(id, given);
    }

    pub fn deleted(
        &mut self,
        (id, receipt): (MessageId, PopReceipt),
        answer: Result<(), Refusal>,
        when: When,
    ) {
        let expected = self.expects(id, receipt, when);
        match answer {
            Ok(()) => {
                assert_ne!(expected, Some(false), "a stale receipt was good: {id} {receipt}");
                self.messages.remove(&id);
            }
            Err(refusal) => {
                assert_eq!(refusal, Refusal::MessageNotFound);
                assert_ne!(expected, Some(true), "a good receipt was stale: {id} {receipt}");
            }
        }
    }

    pub fn cleared(&mut self) {
        self.messages.clear();
        self.expired = 0;
    }

    /// The count has all messages that live, and at most those that have expired and may not be removed yet.
    pub fn counted(&mut self, count: u64, when: When) {
        self.forget_expired(when);
        // One that expires meanwhile may be removed by the counting itself.
        let live = self.messages.values().filter(|known| when.before < known.expires).count() as u64;
        let all = (self.messages.len() + self.expired) as u64;
        assert!((live..=all).contains(&count), "{count} messages, not {live} to {all}");
    }

    /// After a sweep nothing is left of what has expired.
    pub fn swept(&mut self, messages: u64, when: When) {
        self.forget_expired(when);
        let unsure = self.messages.values().filter(|known| known.expires <= when.before).count() as u64;
        let live = self.messages.len() as u64;
        assert!((live - unsure..=live).contains(&messages), "{messages} messages, not {live}");
        if unsure == 0 {
            self.expired = 0;
        }
    }

    fn forget_expired(&mut self, when: When) {
        let before = self.messages.len();
        self.messages.retain(|_, known| when.after < known.expires);
        self.expired += before - self.messages.len();
    }

    /// The next moments at which something happens: a message becomes visible or expires.
    pub fn moments(&self, now: DateTime) -> Vec<DateTime> {
        let moments = self.messages.values().flat_map(|known| [known.receipt.next_visible(), known.expires]);
        moments.filter(|moment| *moment > now && *moment < DateTime::MAX).collect()
    }

    /// No two receipts of a message are the same.
    fn give(&mut self, id: MessageId, receipt: PopReceipt) {
        assert!(!self.receipts.contains(&(id, receipt)), "a receipt given twice: {id} {receipt}");
        self.receipts.push((id, receipt));
    }
}
