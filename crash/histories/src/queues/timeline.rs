//! A violation as text: one operation on each line, with a bar that shows when it ran.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::history::{Handle, MessageNumber, QueueAction, QueueOperation, QueueOutcome, Shown};
use super::judge::Violation;
use crate::timeline::Bars;

/// Receipts are named in the order in which they were given; `r1` is the first.
pub fn render(history: &[QueueOperation], violation: &Violation) -> String {
    let mut shown: Vec<usize> = violation.core.iter().chain(&violation.context).copied().collect();
    shown.sort_by_key(|index| history[*index].start);
    let names = Names::of(history, violation.message);
    let bars = Bars::of(shown.iter().map(|index| (history[*index].start, history[*index].end)));
    let queue = shown.first().map_or("", |index| history[*index].queue.as_str());
    let mut out = format!("queue {queue}: message #{} {}\n", violation.message, violation.why);
    for index in shown {
        let operation = &history[index];
        let mark = if violation.core.contains(&index) { '!' } else { ' ' };
        let is_open = matches!(operation.outcome, QueueOutcome::Unknown { .. });
        // Writing into a string can't fail.
        let _ = writeln!(
            out,
            "{mark} client {:<2} {}  {} -> {}",
            operation.client,
            bars.of_one(operation.start, operation.end, is_open),
            names.action(&operation.action),
            names.outcome(&operation.outcome)
        );
    }
    out.push_str(
        "(! = can't be left out; #7 = the message of the Put with number 7; r3 = its third receipt; time runs to the \
         right)\n",
    );
    out
}

struct Names<'a> {
    message: MessageNumber,
    receipts: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(history: &'a [QueueOperation], message: MessageNumber) -> Self {
        let mut given: Vec<(u64, &str)> = Vec::new();
        for operation in history {
            match (&operation.action, &operation.outcome) {
                (_, QueueOutcome::Stored(handle)) if handle.message == message => {
                    given.push((operation.end, &handle.receipt));
                }
                (_, QueueOutcome::Taken(taken)) => {
                    let own = taken.iter().filter(|taken| taken.shown.message == message);
                    given.extend(own.map(|taken| (operation.end, taken.receipt.as_str())));
                }
                (QueueAction::Update { handle, .. }, QueueOutcome::Updated(receipt))
                    if handle.message == message =>
                {
                    given.push((operation.end, receipt));
                }
                _ => {}
            }
        }
        given.sort_unstable();
        let numbered = given.into_iter().enumerate().map(|(at, (_, receipt))| (receipt, at + 1));
        Self { message, receipts: numbered.collect() }
    }

    fn receipt(&self, receipt: &str) -> String {
        self.receipts.get(receipt).map_or_else(|| receipt.to_owned(), |number| format!("r{number}"))
    }

    fn handle(&self, handle: &Handle) -> String {
        format!("#{} with {}", handle.message, self.receipt(&handle.receipt))
    }

    fn action(&self, action: &QueueAction) -> String {
        match action {
            QueueAction::Put { number, visibility } => format!("put #{number}, hidden for {visibility} s"),
            QueueAction::Get { count, visibility } => format!("get {count}, hidden for {visibility} s"),
            QueueAction::Peek { count } => format!("peek {count}"),
            QueueAction::Update { handle, visibility, text } => {
                let text = text.map_or_else(String::new, |text| format!(", text {text}"));
                format!("update {}, hidden for {visibility} s{text}", self.handle(handle))
            }
            QueueAction::Delete(handle) => format!("delete {}", self.handle(handle)),
            QueueAction::Drain => "the queue is empty".to_owned(),
        }
    }

    fn shown(&self, shown: &Shown) -> String {
        format!("#{} text {} count {}", shown.message, shown.text, shown.dequeue_count)
    }

    /// Of a page, only what it says of the message.
    fn outcome(&self, outcome: &QueueOutcome) -> String {
        let joined =
            |shown: Vec<String>| if shown.is_empty() { "nothing".to_owned() } else { shown.join("; ") };
        match outcome {
            QueueOutcome::Stored(handle) => format!("done {}", self.receipt(&handle.receipt)),
            QueueOutcome::Taken(taken) => {
                let own = taken.iter().filter(|taken| taken.shown.message == self.message);
                let show = |taken: &super::history::Taken| {
                    format!("{} {}", self.shown(&taken.shown), self.receipt(&taken.receipt))
                };
                joined(own.map(show).collect())
            }
            QueueOutcome::Peeked(shown) => {
                let own = shown.iter().filter(|shown| shown.message == self.message);
                joined(own.map(|shown| self.shown(shown)).collect())
            }
            QueueOutcome::Updated(receipt) => format!("done {}", self.receipt(receipt)),
            QueueOutcome::Deleted | QueueOutcome::Drained => "done".to_owned(),
            QueueOutcome::NotFound => "not found".to_owned(),
            QueueOutcome::TurnedAway => "turned away".to_owned(),
            QueueOutcome::Unknown { until: None } => "no answer".to_owned(),
            QueueOutcome::Unknown { until: Some(_) } => "no answer, the server was killed".to_owned(),
        }
    }
}
