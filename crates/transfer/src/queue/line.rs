//! A message as a line of JSON: in the files of exports, and in what `partita queue` prints.

use std::collections::BTreeMap;

use model::DateTime;
use partita_client::{PeekedMessage, PutMessage, TakenMessage};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The service's way to say that a message never expires.
const FOREVER: &str = "9999-12-31T23:59:59Z";

/// A message. Lines of other programs need only its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_visible: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dequeue_count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The first line of an exported file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLine {
    pub queue: String,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Queue(QueueLine),
    Message(ImportedMessage),
}

/// What an import takes from a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedMessage {
    pub text: String,
    /// `None` if the line does not say, `Some(None)` if it never expires.
    pub expires: Option<Option<DateTime>>,
    pub next_visible: Option<DateTime>,
}

/// Why a line is no message.
#[derive(Debug, Error)]
pub enum LineError {
    #[error("it is not a message in JSON: {0}; is it a file of `partita queue export`?")]
    Json(#[from] serde_json::Error),
    #[error("it has no \"text\"; is it a file of `partita queue export`?")]
    NoText,
    #[error("its {name:?} is {text:?}, not a time such as 2030-01-01T00:00:00Z")]
    Time { name: &'static str, text: String },
}

impl MessageLine {
    /// As a delivery shows it.
    pub fn of_taken(message: &TakenMessage) -> Self {
        Self {
            receipt: Some(message.handle.receipt.clone()),
            next_visible: Some(message.handle.next_visible.to_seconds_string()),
            ..Self::of(&message.handle.id, message.inserted, message.expires)
        }
        .with(message.dequeue_count, &message.text)
    }

    /// As it was before the delivery that read it.
    pub fn of_exported(message: &TakenMessage) -> Self {
        Self::of(&message.handle.id, message.inserted, message.expires)
            .with(message.dequeue_count.saturating_sub(1), &message.text)
    }

    pub fn of_peeked(message: &PeekedMessage) -> Self {
        Self::of(&message.id, message.inserted, message.expires).with(message.dequeue_count, &message.text)
    }

    pub fn of_put(message: &PutMessage) -> Self {
        Self {
            receipt: Some(message.handle.receipt.clone()),
            next_visible: Some(message.handle.next_visible.to_seconds_string()),
            ..Self::of(&message.handle.id, message.inserted, message.expires)
        }
    }

    fn of(id: &str, inserted: DateTime, expires: DateTime) -> Self {
        Self {
            id: Some(id.to_owned()),
            inserted: Some(inserted.to_seconds_string()),
            expires: Some(expires.to_seconds_string()),
            ..Self::default()
        }
    }

    fn with(self, dequeue_count: u32, text: &str) -> Self {
        Self { dequeue_count: Some(dequeue_count), text: Some(text.to_owned()), ..self }
    }

    /// Whether it stays until it is deleted.
    pub fn is_forever(&self) -> bool {
        self.expires.as_deref() == Some(FOREVER)
    }
}

/// Reads a line of a file. Unknown members are ignored.
pub fn read(raw: &[u8]) -> Result<Line, LineError> {
    #[derive(Deserialize)]
    struct Either {
        #[serde(flatten)]
        message: MessageLine,
        queue: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
    }
    let Either { message, queue, metadata } = serde_json::from_slice(raw)?;
    match (message.text.is_some(), queue) {
        (false, Some(queue)) => Ok(Line::Queue(QueueLine { queue, metadata: metadata.unwrap_or_default() })),
        _ => imported(message).map(Line::Message),
    }
}

fn imported(line: MessageLine) -> Result<ImportedMessage, LineError> {
    let is_forever = line.is_forever();
    let time = |name, text: Option<String>| match text {
        None => Ok(None),
        Some(text) => match DateTime::parse(&text) {
            Some(time) => Ok(Some(time)),
            None => Err(LineError::Time { name, text }),
        },
    };
    let expires = time("expires", line.expires)?.map(|time| Some(time).filter(|_| !is_forever));
    let next_visible = time("nextVisible", line.next_visible)?;
    Ok(ImportedMessage { text: line.text.ok_or(LineError::NoText)?, expires, next_visible })
}

/// Adds a line to a text.
pub fn write(out: &mut Vec<u8>, line: &impl Serialize) {
    // Text, numbers and maps with text keys are always JSON, and a Vec takes every byte.
    let written = serde_json::to_writer(&mut *out, line);
    debug_assert!(written.is_ok(), "{written:?}");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    #[test]
    fn lines_are_messages_or_name_their_queue() {
        let check = |line: &str, expected: Result<Line, &str>| match (read(line.as_bytes()), expected) {
            (Ok(line), Ok(expected)) => assert_eq!(line, expected),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{line}: {error}"),
            (found, expected) => panic!("{line}: {found:?}, not {expected:?}"),
        };
        let message = |expires, next_visible| {
            Ok(Line::Message(ImportedMessage { text: "a".to_owned(), expires, next_visible }))
        };
        check(r#"{"text":"a"}"#, message(None, None));
        check(r#"{"text":"a","queue":"of another program"}"#, message(None, None));
        check(
            r#"{"id":"7","expires":"2030-01-01T00:00:00Z","nextVisible":"2029-01-01T00:00:00Z","text":"a","x":1}"#,
            message(Some(Some(time("2030-01-01T00:00:00Z"))), Some(time("2029-01-01T00:00:00Z"))),
        );
        check(r#"{"expires":"9999-12-31T23:59:59Z","text":"a"}"#, message(Some(None), None));
        let metadata = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        check(
            r#"{"queue":"jobs","metadata":{"a":"1"}}"#,
            Ok(Line::Queue(QueueLine { queue: "jobs".to_owned(), metadata })),
        );
        check(
            r#"{"queue":"jobs"}"#,
            Ok(Line::Queue(QueueLine { queue: "jobs".to_owned(), ..QueueLine::default() })),
        );
        check(r#"{"PartitionKey":"a"}"#, Err("no \"text\""));
        check(r#"{"text":"a","expires":"soon"}"#, Err("\"expires\" is \"soon\""));
        check("text", Err("not a message in JSON"));
        check("", Err("not a message in JSON"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(text in any::<String>(), count in any::<u32>()) {
            let line = MessageLine::of("id", time("2020-01-01T00:00:00Z"), time("2030-01-01T00:00:00Z"))
                .with(count, &text);
            let mut written = Vec::new();
            write(&mut written, &line);
            prop_assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
            let expires = Some(Some(time("2030-01-01T00:00:00Z")));
            prop_assert_eq!(read(&written).unwrap(), Line::Message(ImportedMessage { text, expires, next_visible: None }));
        }
    }
}
