//! The recorded requests and answers of clients of queues: one JSON object on each line.
//!
//! The text of a message is two numbers: that of its Put, which tells the message, and that of the Put or Update which wrote
//! the text.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::history::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueOperation {
    pub client: u32,
    pub queue: String,
    /// Read before the request was sent.
    pub start: Time,
    /// Read after the answer arrived, or the request was given up.
    pub end: Time,
    pub action: QueueAction,
    pub outcome: QueueOutcome,
}

/// The number of a message's Put; never 0.
pub type MessageNumber = u32;

/// How long a message is hidden is given in seconds, as the protocol has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueAction {
    Put {
        number: MessageNumber,
        visibility: u32,
    },
    Get {
        count: u32,
        visibility: u32,
    },
    Peek {
        count: u32,
    },
    Update {
        handle: Handle,
        visibility: u32,
        /// The number of the new text. Without it the text stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<u32>,
    },
    Delete(Handle),
    /// No request: the queue was emptied, by Gets and Deletes that are in the history, until nothing came any more.
    Drain,
}

/// What a client names a message by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handle {
    pub message: MessageNumber,
    pub id: String,
    pub receipt: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOutcome {
    /// A Put was done.
    Stored(Handle),
    Taken(Vec<Taken>),
    Peeked(Vec<Shown>),
    /// An Update was done, and gave this receipt.
    Updated(String),
    Deleted,
    /// The receipt of an Update or Delete was not good.
    NotFound,
    Drained,
    /// The server was too busy and did nothing.
    TurnedAway,
    /// It was done at any time from its start on, but not after `until`, or never.
    Unknown {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
}

/// A message as a Get returned it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    #[serde(flatten)]
    pub shown: Shown,
    pub receipt: String,
}

/// A message as a Peek showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub message: MessageNumber,
    /// The number of the Put or Update that wrote the text.
    pub text: u32,
    pub id: String,
    pub dequeue_count: u32,
}

impl Taken {
    pub fn handle(&self) -> Handle {
        let Shown { message, id, .. } = &self.shown;
        Handle { message: *message, id: id.clone(), receipt: self.receipt.clone() }
    }
}

/// One history for each queue, in the order of the starts.
pub fn by_queue(operations: Vec<QueueOperation>) -> BTreeMap<String, Vec<QueueOperation>> {
    let mut histories = BTreeMap::<String, Vec<QueueOperation>>::new();
    for operation in operations {
        histories.entry(operation.queue.clone()).or_default().push(operation);
    }
    for history in histories.values_mut() {
        history.sort_by_key(|operation| operation.start);
    }
    histories
}

/// Messages that must still come: they are known to be stored, and nobody has tried to delete them with success or without
/// an answer.
pub fn owed<'a>(history: impl Iterator<Item = &'a QueueOperation> + Clone) -> Vec<MessageNumber> {
    let mut owed = BTreeSet::new();
    for operation in history.clone() {
        match &operation.outcome {
            QueueOutcome::Stored(handle) => drop(owed.insert(handle.message)),
            QueueOutcome::Taken(taken) => owed.extend(taken.iter().map(|taken| taken.shown.message)),
            QueueOutcome::Peeked(shown) => owed.extend(shown.iter().map(|shown| shown.message)),
            _ => {}
        }
    }
    for operation in history {
        if let (QueueAction::Delete(handle), QueueOutcome::Deleted | QueueOutcome::Unknown { .. }) =
            (&operation.action, &operation.outcome)
        {
            owed.remove(&handle.message);
        }
    }
    owed.into_iter().collect()
}
