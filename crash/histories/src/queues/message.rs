//! What was said of one message, as steps for the search.

use std::collections::{BTreeMap, HashMap};

use super::history::{MessageNumber, QueueAction, QueueOperation, QueueOutcome, Shown};
use crate::history::Time;

/// A receipt, numbered in the order of the history. A change without an answer has one that nobody knows.
pub type Receipt = u32;

#[derive(Clone, Debug)]
pub struct Step {
    /// Its index in the history.
    pub operation: usize,
    pub start: Time,
    /// If it was done, it was done no later than this.
    pub end: Time,
    /// Whether it was certainly done.
    pub required: bool,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Put {
        makes: Receipt,
        text: u32,
        hides: Time,
    },
    /// A Get that returned the message or, if nothing was shown, may have done so.
    Take {
        makes: Receipt,
        shows: Option<Look>,
        hides: Time,
    },
    Peek(Look),
    Update {
        needs: Receipt,
        makes: Receipt,
        text: Option<u32>,
        hides: Time,
    },
    Delete {
        needs: Receipt,
    },
    /// An Update or Delete whose receipt was not good.
    NotFound {
        needs: Receipt,
    },
    Drain,
}

/// A message as it was shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub dequeue_count: u32,
    pub text: u32,
}

impl Kind {
    pub fn changes_nothing(&self) -> bool {
        matches!(self, Self::Peek(_) | Self::NotFound { .. } | Self::Drain)
    }
}

/// A history of which no order needs to be looked for.
#[derive(Clone, Debug)]
pub struct Contradiction {
    pub message: MessageNumber,
    pub why: &'static str,
    pub operations: Vec<usize>,
}

#[derive(Debug, Default)]
struct Receipts {
    /// By message and text, with the operation that gave it.
    known: HashMap<(MessageNumber, String), (Receipt, Option<usize>)>,
    last: Receipt,
}

impl Receipts {
    fn fresh(&mut self) -> Receipt {
        self.last += 1;
        self.last
    }

    fn used(&mut self, message: MessageNumber, text: &str) -> Receipt {
        let next = self.last + 1;
        let (receipt, _) = *self.known.entry((message, text.to_owned())).or_insert((next, None));
        self.last = self.last.max(receipt);
        receipt
    }

    /// `Err` with the operation that gave the same one before.
    fn made(&mut self, message: MessageNumber, text: &str, operation: usize) -> Result<Receipt, usize> {
        let receipt = self.used(message, text);
        match self.known.insert((message, text.to_owned()), (receipt, Some(operation))) {
            Some((_, Some(other))) => Err(other),
            _ => Ok(receipt),
        }
    }
}

/// The steps of every message, in the order of their starts.
pub fn messages(history: &[QueueOperation]) -> Result<BTreeMap<MessageNumber, Vec<Step>>, Contradiction> {
    same_ids(history)?;
    let mut messages = BTreeMap::<MessageNumber, Vec<Step>>::new();
    let mut receipts = Receipts::default();
    for (index, operation) in history.iter().enumerate() {
        for (message, kind) in kinds(operation, index, &mut receipts)? {
            messages.entry(message).or_default().push(step(operation, index, kind));
        }
    }
    if let Some((message, steps)) = messages.iter().find(|(_, steps)| !steps.iter().any(is_put)) {
        let operations = steps.iter().map(|step| step.operation).collect();
        return Err(Contradiction { message: *message, why: "was put by nobody", operations });
    }
    // What concerns every message: Gets without an answer, and the end.
    for (index, operation) in history.iter().enumerate() {
        for steps in messages.values_mut() {
            let kind = match (&operation.action, &operation.outcome) {
                (QueueAction::Get { visibility, .. }, QueueOutcome::Unknown { .. }) => {
                    Kind::Take { makes: receipts.fresh(), shows: None, hides: nanos(*visibility) }
                }
                (QueueAction::Drain, _) => Kind::Drain,
                _ => continue,
            };
            steps.push(step(operation, index, kind));
        }
    }
    messages.values_mut().for_each(|steps| steps.sort_by_key(|step| step.start));
    Ok(messages)
}

fn is_put(step: &Step) -> bool {
    matches!(step.kind, Kind::Put { .. })
}

fn step(operation: &QueueOperation, index: usize, kind: Kind) -> Step {
    let (required, end) = match operation.outcome {
        QueueOutcome::Unknown { until } => (false, until.unwrap_or(Time::MAX)),
        _ => (true, operation.end),
    };
    Step { operation: index, start: operation.start, end, required, kind }
}

/// What an operation says of the messages that it names.
fn kinds(
    operation: &QueueOperation,
    index: usize,
    receipts: &mut Receipts,
) -> Result<Vec<(MessageNumber, Kind)>, Contradiction> {
    let made = |receipts: &mut Receipts, message, text: &str| {
        receipts.made(message, text, index).map_err(|other| Contradiction {
            message,
            why: "was given the same receipt twice",
            operations: vec![other, index],
        })
    };
    let one = match (&operation.action, &operation.outcome) {
        (QueueAction::Put { number, visibility }, QueueOutcome::Stored(handle)) => {
            let makes = made(receipts, *number, &handle.receipt)?;
            (*number, Kind::Put { makes, text: *number, hides: nanos(*visibility) })
        }
        (QueueAction::Put { number, visibility }, QueueOutcome::Unknown { .. }) => {
            (*number, Kind::Put { makes: receipts.fresh(), text: *number, hides: nanos(*visibility) })
        }
        (QueueAction::Get { visibility, .. }, QueueOutcome::Taken(taken)) => {
            let take = |taken: &super::history::Taken| {
                let message = taken.shown.message;
                let makes = made(receipts, message, &taken.receipt)?;
                let shows = Some(look(&taken.shown));
                Ok((message, Kind::Take { makes, shows, hides: nanos(*visibility) }))
            };
            return taken.iter().map(take).collect();
        }
        (QueueAction::Peek { .. }, QueueOutcome::Peeked(shown)) => {
            return Ok(shown.iter().map(|shown| (shown.message, Kind::Peek(look(shown)))).collect());
        }
        (QueueAction::Update { handle, visibility, text }, outcome) => {
            let needs = receipts.used(handle.message, &handle.receipt);
            let (text, hides) = (*text, nanos(*visibility));
            let kind = match outcome {
                QueueOutcome::Updated(receipt) => {
                    Kind::Update { needs, makes: made(receipts, handle.message, receipt)?, text, hides }
                }
                QueueOutcome::Unknown { .. } => Kind::Update { needs, makes: receipts.fresh(), text, hides },
                QueueOutcome::NotFound => Kind::NotFound { needs },
                _ => return Ok(Vec::new()),
            };
            (handle.message, kind)
        }
        (QueueAction::Delete(handle), outcome) => {
            let needs = receipts.used(handle.message, &handle.receipt);
            let kind = match outcome {
                QueueOutcome::Deleted | QueueOutcome::Unknown { .. } => Kind::Delete { needs },
                QueueOutcome::NotFound => Kind::NotFound { needs },
                _ => return Ok(Vec::new()),
            };
            (handle.message, kind)
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![one])
}

fn look(shown: &Shown) -> Look {
    Look { dequeue_count: shown.dequeue_count, text: shown.text }
}

fn nanos(seconds: u32) -> Time {
    Time::from(seconds) * 1_000_000_000
}

/// Checks that a message has one id, and an id one message: a Put is done once.
fn same_ids(history: &[QueueOperation]) -> Result<(), Contradiction> {
    let (mut ids, mut numbers) = (HashMap::new(), HashMap::new());
    for (index, operation) in history.iter().enumerate() {
        let named: Vec<(MessageNumber, &str)> = match &operation.outcome {
            QueueOutcome::Stored(handle) => vec![(handle.message, handle.id.as_str())],
            QueueOutcome::Taken(taken) => {
                taken.iter().map(|taken| (taken.shown.message, taken.shown.id.as_str())).collect()
            }
            QueueOutcome::Peeked(shown) => {
                shown.iter().map(|shown| (shown.message, shown.id.as_str())).collect()
            }
            _ => Vec::new(),
        };
        for (message, id) in named {
            let (known, first) = *numbers.entry(id).or_insert((message, index));
            if known != message {
                let why = "has the id of another message";
                return Err(Contradiction { message, why, operations: vec![first, index] });
            }
            let (known, first) = *ids.entry(message).or_insert((id, index));
            if known != id {
                let operations = vec![first, index];
                return Err(Contradiction { message, why: "is stored twice", operations });
            }
        }
    }
    Ok(())
}
