//! `partita queue` without export and import: one request, or a few, and what it prints.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _};

use futures_util::TryStreamExt as _;
use partita_client::{Error, MessageHandle, PutOptions, Queue, TimeToLive};
use serde_json::json;
use thiserror::Error as ThisError;

use super::QueueOutcome;
use super::command::{
    CountCommand, CreateCommand, DeleteMessageCommand, GetCommand, Life, ListCommand, OneQueue, PeekCommand,
    PutCommand, Shown,
};
use super::endpoint::{QueueRequestError, Queues};
use super::line::MessageLine;
use super::show::{self, Display};
use crate::format::FileFormat;
use crate::input::{Input, InputError};

/// More than the text of a message.
const INPUT_BYTES_MAX: u64 = 64 * 1024;

/// Why a command failed.
#[derive(Debug, ThisError)]
pub enum ToolError {
    #[error(transparent)]
    Request(#[from] QueueRequestError),
    #[error(
        "queue {queue} has no message {id} with this receipt: it was deleted, has expired, or was delivered again since; \
         `partita queue get {queue}` prints new receipts"
    )]
    NoMessage { queue: String, id: String },
    #[error("can't write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("can't read standard input: {0}")]
    Unreadable(#[source] io::Error),
    #[error("standard input: {0}")]
    Input(#[from] InputError),
    #[error("{place} is not UTF-8 text; --base64 puts any bytes")]
    NotText { place: String },
    #[error("standard input is longer than a message of 64 KiB; --lines puts each line as a message")]
    TooLong,
    #[error("{place} can't be a message: {source}{}", base64_hint(*.encoded))]
    Unfit { place: String, source: Box<Error>, encoded: bool },
}

fn base64_hint(encoded: bool) -> &'static str {
    if encoded { "; Base64 makes it a third longer" } else { "; --base64 puts any characters" }
}

/// The endpoint, and one of its queues.
struct Chosen {
    queues: Queues,
    queue: Queue,
}

impl Chosen {
    fn new(of: &OneQueue) -> Result<Self, QueueRequestError> {
        let queues = Queues::connect(&of.connection)?;
        Ok(Self { queue: queues.queue(&of.queue)?, queues })
    }

    fn failed(&self, error: Error) -> QueueRequestError {
        self.queues.failed(self.queue.name(), error)
    }
}

pub async fn list(command: &ListCommand) -> Result<(), ToolError> {
    let queues = Queues::connect(&command.connection)?;
    let display = Display::new(command.format);
    let mut listed = std::pin::pin!(queues.service.queues(&command.prefix));
    loop {
        let next = listed.try_next().await;
        let next = next.map_err(|error| QueueRequestError::List(queues.request_error(error)))?;
        let Some(entry) = next else { return Ok(()) };
        let mut json = json!({ "name": entry.name, "metadata": entry.metadata });
        let mut text = show::fitted(&entry.name, None);
        if command.counts {
            let properties = queues.queue(&entry.name)?.properties().await;
            match properties {
                Ok(properties) => {
                    json["approximateCount"] = properties.approximate_count.into();
                    // As wide as the longest name.
                    text = format!("{:<63} {}", entry.name, properties.approximate_count);
                }
                // It was deleted since it was listed.
                Err(error) if error.code() == Some("QueueNotFound") => continue,
                Err(error) => return Err(queues.failed(&entry.name, error).into()),
            }
        }
        display.say(&text, &json)?;
    }
}

pub async fn create(command: &CreateCommand) -> Result<(), ToolError> {
    let of = Chosen::new(&command.of)?;
    let metadata: BTreeMap<String, String> = command.metadata.iter().cloned().collect();
    of.queue.create(&metadata).await.map_err(|error| of.failed(error))?;
    Ok(say(&format!("created {}", of.queue.name()))?)
}

pub async fn delete(command: &OneQueue) -> Result<(), ToolError> {
    let of = Chosen::new(command)?;
    of.queue.drop().await.map_err(|error| of.failed(error))?;
    Ok(say(&format!("deleted {}", of.queue.name()))?)
}

pub async fn clear(command: &OneQueue) -> Result<(), ToolError> {
    let of = Chosen::new(command)?;
    of.queue.clear().await.map_err(|error| of.failed(error))?;
    Ok(say(&format!("cleared {}", of.queue.name()))?)
}

pub async fn count(command: &CountCommand) -> Result<(), ToolError> {
    let of = Chosen::new(&command.of)?;
    let count = of.queue.properties().await.map_err(|error| of.failed(error))?.approximate_count;
    let json = json!({ "queue": of.queue.name(), "approximateCount": count });
    Ok(Display::new(command.format).say(&count.to_string(), &json)?)
}

pub async fn delete_message(command: &DeleteMessageCommand) -> Result<(), ToolError> {
    let of = Chosen::new(&command.of)?;
    let handle = MessageHandle::new(&command.id, &command.receipt);
    match of.queue.delete(&handle).await {
        Ok(()) => Ok(say(&format!("deleted {}", command.id))?),
        Err(error) if error.code() == Some("MessageNotFound") => {
            Err(ToolError::NoMessage { queue: of.queue.name().to_owned(), id: command.id.clone() })
        }
        Err(error) => Err(of.failed(error).into()),
    }
}

pub async fn peek(command: &PeekCommand) -> Result<QueueOutcome, ToolError> {
    let of = Chosen::new(&command.of)?;
    let display = Display::new(command.format);
    let peeked = of.queue.peek(command.count).await.map_err(|error| of.failed(error))?;
    for message in &peeked {
        display.message(&decoded(MessageLine::of_peeked(message), command.base64))?;
    }
    Ok(outcome(peeked.is_empty(), &of.queue))
}

/// Prints before it deletes: if the output is closed, nothing is deleted.
pub async fn get(command: &GetCommand) -> Result<QueueOutcome, ToolError> {
    let of = Chosen::new(&command.of)?;
    let display = Display::new(command.format);
    let taken = of.queue.get(command.count, command.visibility).await.map_err(|error| of.failed(error))?;
    for message in &taken {
        display.message(&decoded(MessageLine::of_taken(message), command.base64))?;
        if command.delete {
            of.queue.delete(&message.handle).await.map_err(|error| of.failed(error))?;
        }
    }
    Ok(outcome(taken.is_empty(), &of.queue))
}

fn outcome(is_empty: bool, queue: &Queue) -> QueueOutcome {
    if !is_empty {
        return QueueOutcome::Done;
    }
    eprintln!("no message of {} is visible", queue.name());
    QueueOutcome::NoMessage
}

fn decoded(mut message: MessageLine, is_base64: bool) -> MessageLine {
    if let (true, Some(text)) = (is_base64, &message.text) {
        match show::decoded(text) {
            Some(text) => message.text = Some(text),
            None => {
                let id = message.id.as_deref().unwrap_or_default();
                eprintln!("message {id} is not text in Base64; it is shown as it is");
            }
        }
    }
    message
}

pub async fn put(command: &PutCommand) -> Result<(), ToolError> {
    let of = Chosen::new(&command.of)?;
    let mut options = PutOptions::new();
    if let Some(delay) = command.delay {
        options = options.visible_after(delay);
    }
    if let Some(life) = command.ttl {
        options = options.time_to_live(match life {
            Life::For(time) => TimeToLive::For(time),
            Life::Forever => TimeToLive::Forever,
        });
    }
    let putting = Putting { of, options, encoded: command.base64, display: Display::new(command.format) };
    match &command.text {
        Some(text) => putting.put("the message", text.as_bytes()).await,
        None if command.lines => putting.lines().await,
        None => putting.put("standard input", &whole_input()?).await,
    }
}

struct Putting {
    of: Chosen,
    options: PutOptions,
    encoded: bool,
    display: Display,
}

impl Putting {
    async fn lines(&self) -> Result<(), ToolError> {
        let mut input = Input::new(BufReader::new(io::stdin()), FileFormat::Jsonl)?;
        while let Some(record) = input.next_raw()? {
            let line = record.raw.strip_suffix(b"\n").unwrap_or(&record.raw);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.put(&format!("line {} of standard input", record.line), line).await?;
        }
        Ok(())
    }

    async fn put(&self, place: &str, bytes: &[u8]) -> Result<(), ToolError> {
        let text = match (self.encoded, std::str::from_utf8(bytes)) {
            (true, _) => show::encoded(bytes),
            (false, Ok(text)) => text.to_owned(),
            (false, Err(_)) => return Err(ToolError::NotText { place: place.to_owned() }),
        };
        let put = self.of.queue.put_with(&text, self.options).await.map_err(|error| match error {
            Error::Invalid(_) => {
                ToolError::Unfit { place: place.to_owned(), source: Box::new(error), encoded: self.encoded }
            }
            error => self.of.failed(error).into(),
        })?;
        Ok(self.display.say(&put.handle.id, &MessageLine::of_put(&put))?)
    }
}

fn whole_input() -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    // One byte more than a message has, to tell what is too long.
    io::stdin().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(ToolError::Unreadable)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX { Err(ToolError::TooLong) } else { Ok(bytes) }
}

fn say(text: &str) -> io::Result<()> {
    Display::new(Shown::Text).say(text, &())
}
