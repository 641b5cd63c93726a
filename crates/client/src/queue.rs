//! One queue: its messages and its metadata; creates and drops it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use model::{DateTime, ServiceKind};
use queue_model::{MessageText, Metadata, QueueName};
use queue_wire::message_list::MessageEntry;
use queue_wire::{message_body, message_list, names as queue_names};
use wire::names;

use crate::deliveries::Deliveries;
use crate::error::{Error, Result};
use crate::sas::{self, AccessPolicy, QueuePermissions, QueueSas};
use crate::transport::{Repeat, ServiceAnswer, ServiceRequest, Transport, encode};

const XML: &str = "application/xml";

/// A queue of an account, made by [`QueueService::queue`](crate::QueueService::queue). Cheap to clone.
///
/// A message is delivered at least once: if the answer to [`put`](Self::put) is lost, the message is put again, and a
/// message that is not deleted while its visibility lasts is delivered again. So do what a message asks in a way that
/// may be repeated.
#[derive(Clone, Debug)]
pub struct Queue {
    transport: Transport,
    name: Arc<str>,
}

/// What names a message to its queue: the receipt is that of the latest delivery or update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MessageHandle {
    pub id: String,
    pub receipt: String,
    /// When the message is visible to other consumers.
    pub next_visible: DateTime,
}

impl MessageHandle {
    /// From an id and a receipt that were kept. When the message is visible is not known: `next_visible` is the time now.
    pub fn new(id: impl Into<String>, receipt: impl Into<String>) -> Self {
        Self { id: id.into(), receipt: receipt.into(), next_visible: DateTime::now() }
    }
}

/// A message that was put. It can be updated and deleted by its handle until it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutMessage {
    pub handle: MessageHandle,
    pub inserted: DateTime,
    pub expires: DateTime,
}

/// A message that was delivered, and is invisible to other consumers for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakenMessage {
    pub handle: MessageHandle,
    pub text: String,
    pub inserted: DateTime,
    pub expires: DateTime,
    /// How often it was delivered, this time included.
    pub dequeue_count: u32,
}

/// A message that was looked at, and is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekedMessage {
    pub id: String,
    pub text: String,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub dequeue_count: u32,
}

/// What [`Queue::put_with`] does beyond [`Queue::put`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct PutOptions {
    visible_after: Option<Duration>,
    time_to_live: Option<TimeToLive>,
}

/// How long a message stays if nobody deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLive {
    For(Duration),
    Forever,
}

/// A queue's metadata, and how many messages it has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueProperties {
    /// Names are in lower case, as HTTP libraries send them.
    pub metadata: BTreeMap<String, String>,
    /// Invisible messages included.
    pub approximate_count: u64,
}

impl PutOptions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Invisible at first, up to seven days.
    pub fn visible_after(self, time: Duration) -> Self {
        Self { visible_after: Some(time), ..self }
    }

    /// Seven days if it is not set.
    pub fn time_to_live(self, time: TimeToLive) -> Self {
        Self { time_to_live: Some(time), ..self }
    }
}

impl Queue {
    pub(crate) fn new(transport: Transport, name: &str) -> Result<Self> {
        match QueueName::parse(name) {
            Ok(_) => Ok(Self { transport, name: name.into() }),
            Err(refusal) => Err(Error::invalid(format!(
                "{name:?} can't be the name of a queue ({}); it takes 3 to 63 letters a to z, digits and single dashes, a \
                 letter or digit first and last",
                refusal.code()
            ))),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the queue. One that exists with the same metadata is not an error, another one is.
    pub async fn create(&self, metadata: &BTreeMap<String, String>) -> Result<()> {
        let request = self.about("create_queue", Method::PUT);
        self.transport.send(with_metadata(request, metadata)?).await.map(drop)
    }

    /// Creates the queue if there is none, and leaves one that exists as it is.
    pub async fn create_if_missing(&self) -> Result<()> {
        match self.create(&BTreeMap::new()).await {
            Err(error) if error.code() == Some("QueueAlreadyExists") => Ok(()),
            done => done,
        }
    }

    pub async fn exists(&self) -> Result<bool> {
        match self.properties().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("QueueNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the queue with all of its messages.
    pub async fn drop(&self) -> Result<()> {
        let request = self.about("delete_queue", Method::DELETE);
        self.transport.send(request.repeat(Repeat::Achieved(404))).await.map(drop)
    }

    pub async fn properties(&self) -> Result<QueueProperties> {
        let request = self.about("get_queue_metadata", Method::GET).query(names::COMP, "metadata");
        let answer = self.transport.send(request).await?;
        let count = answer.header(queue_names::APPROXIMATE_MESSAGES_COUNT).and_then(|text| text.parse().ok());
        let metadata = answer.headers.iter().filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(queue_names::METADATA_PREFIX)?;
            Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        });
        let metadata = metadata.collect();
        let approximate_count = count.ok_or_else(|| {
            Error::Unreadable("the answer does not say how many messages there are".to_owned())
        })?;
        Ok(QueueProperties { metadata, approximate_count })
    }

    /// Replaces all of the metadata.
    pub async fn set_metadata(&self, metadata: &BTreeMap<String, String>) -> Result<()> {
        let request = self.about("set_queue_metadata", Method::PUT).query(names::COMP, "metadata");
        self.transport.send(with_metadata(request, metadata)?).await.map(drop)
    }

    /// The stored access policies of this queue.
    pub async fn policies(&self) -> Result<Vec<AccessPolicy<QueuePermissions>>> {
        let request = self.about("get_queue_policies", Method::GET).query(names::COMP, "acl");
        sas::read_policies(ServiceKind::Queue, &self.transport.send(request).await?.body)
    }

    /// Replaces all stored access policies; at most five. On Azure it can take half a minute until they apply.
    pub async fn set_policies(&self, policies: &[AccessPolicy<QueuePermissions>]) -> Result<()> {
        let request = self.about("set_queue_policies", Method::PUT).query(names::COMP, "acl");
        self.transport.send(request.body(XML, sas::write_policies(policies))).await.map(drop)
    }

    /// A shared access signature for the messages of this queue; needs the account's key.
    pub fn sign(&self, sas: &QueueSas) -> Result<String> {
        sas::sign_queue(&self.transport.endpoint, &self.name, sas)
    }

    /// Puts a message, which is visible at once and stays for seven days: up to 64 KiB of text.
    pub async fn put(&self, text: &str) -> Result<PutMessage> {
        self.put_with(text, PutOptions::new()).await
    }

    pub async fn put_with(&self, text: &str, options: PutOptions) -> Result<PutMessage> {
        let mut request = with_text(self.messages("put_message", Method::POST), text)?;
        if let Some(time) = options.visible_after {
            request = request.query(queue_names::VISIBILITY_TIMEOUT, seconds(time));
        }
        if let Some(time) = options.time_to_live {
            let time = match time {
                TimeToLive::For(time) => seconds(time),
                TimeToLive::Forever => "-1".to_owned(),
            };
            request = request.query(queue_names::MESSAGE_TTL, time);
        }
        let answer = self.transport.send(request).await?;
        let [message] = <[MessageEntry; 1]>::try_from(read(&answer)?)
            .map_err(|_| Error::Unreadable("the answer to a put does not have one message".to_owned()))?;
        let (inserted, expires) = (time(&message.inserted)?, time(&message.expires)?);
        Ok(PutMessage {
            handle: handle(message.id, message.receipt, &message.next_visible)?,
            inserted,
            expires,
        })
    }

    /// Takes up to `count` messages, at most 32, and hides them from other consumers for `visibility`, one second to seven
    /// days. Answers at once, with an empty list if no message is visible.
    pub async fn get(&self, count: u32, visibility: Duration) -> Result<Vec<TakenMessage>> {
        let request = self.messages("get_messages", Method::GET);
        let request = request
            .query(queue_names::NUMBER_OF_MESSAGES, count.to_string())
            .query(queue_names::VISIBILITY_TIMEOUT, seconds(visibility));
        let answer = self.transport.send(request).await?;
        let taken = read(&answer)?.into_iter().map(|message| {
            Ok(TakenMessage {
                inserted: time(&message.inserted)?,
                expires: time(&message.expires)?,
                dequeue_count: message.dequeue_count.unwrap_or_default(),
                handle: handle(message.id, message.receipt, &message.next_visible)?,
                text: message.text,
            })
        });
        taken.collect()
    }

    /// A stream of messages, whose visibility is renewed while they are worked on.
    ///
    /// ```no_run
    /// # async fn run(steps: partita_client::Queue, poison: partita_client::Queue) -> partita_client::Result<()> {
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut deliveries = std::pin::pin!(steps.deliveries().poison(poison, 5).stream());
    /// while let Some(step) = deliveries.try_next().await? {
    ///     println!("{}", step.text());
    ///     step.done().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.clone())
    }

    /// The first visible messages, at most 32, without taking them.
    pub async fn peek(&self, count: u32) -> Result<Vec<PeekedMessage>> {
        let request = self.messages("peek_messages", Method::GET);
        let request = request
            .query(queue_names::PEEK_ONLY, "true")
            .query(queue_names::NUMBER_OF_MESSAGES, count.to_string());
        let answer = self.transport.send(request).await?;
        let peeked = read(&answer)?.into_iter().map(|message| {
            Ok(PeekedMessage {
                inserted: time(&message.inserted)?,
                expires: time(&message.expires)?,
                dequeue_count: message.dequeue_count.unwrap_or_default(),
                id: message.id,
                text: message.text,
            })
        });
        peeked.collect()
    }

    /// Changes how long a message stays invisible from now on, and keeps its text. Zero makes it visible at once. The handle
    /// gets the new receipt.
    pub async fn renew(&self, handle: &mut MessageHandle, visibility: Duration) -> Result<()> {
        let request = self.message("renew_message", Method::PUT, handle);
        self.change(request, handle, visibility).await
    }

    /// Replaces a message's text and visibility. The handle gets the new receipt.
    pub async fn update(&self, handle: &mut MessageHandle, text: &str, visibility: Duration) -> Result<()> {
        let request = with_text(self.message("update_message", Method::PUT, handle), text)?;
        self.change(request, handle, visibility).await
    }

    /// Deletes a message. Refused with `MessageNotFound` if it was deleted, or if its receipt is no longer the latest one.
    pub async fn delete(&self, handle: &MessageHandle) -> Result<()> {
        let request = self.message("delete_message", Method::DELETE, handle);
        self.transport.send(request.repeat(Repeat::Achieved(404))).await.map(drop)
    }

    /// Deletes all messages.
    pub async fn clear(&self) -> Result<()> {
        self.transport.send(self.messages("clear_messages", Method::DELETE)).await.map(drop)
    }

    async fn change(
        &self,
        request: ServiceRequest,
        handle: &mut MessageHandle,
        visibility: Duration,
    ) -> Result<()> {
        let request = request.query(queue_names::VISIBILITY_TIMEOUT, seconds(visibility));
        let answer = self.transport.send(request.repeat(Repeat::Ambiguous(&[404]))).await?;
        let header = |name| {
            answer.header(name).ok_or_else(|| Error::Unreadable(format!("the answer has no header {name}")))
        };
        handle.next_visible = time(header(queue_names::TIME_NEXT_VISIBLE_HEADER)?)?;
        header(queue_names::POP_RECEIPT_HEADER)?.clone_into(&mut handle.receipt);
        Ok(())
    }

    fn about(&self, name: &'static str, method: Method) -> ServiceRequest {
        ServiceRequest::new(name, method, format!("/{}", self.name))
    }

    fn messages(&self, name: &'static str, method: Method) -> ServiceRequest {
        ServiceRequest::new(name, method, format!("/{}/{}", self.name, queue_names::MESSAGES))
    }

    fn message(&self, name: &'static str, method: Method, handle: &MessageHandle) -> ServiceRequest {
        let path = format!("/{}/{}/{}", self.name, queue_names::MESSAGES, encode(&handle.id));
        ServiceRequest::new(name, method, path).query(queue_names::POP_RECEIPT, &handle.receipt)
    }
}

fn with_metadata(request: ServiceRequest, metadata: &BTreeMap<String, String>) -> Result<ServiceRequest> {
    let pairs = metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let checked = Metadata::new(pairs).map_err(|refusal| {
        Error::invalid(format!(
            "this can't be the metadata of a queue ({}); names take letters, digits and _, no digit first",
            refusal.code()
        ))
    })?;
    let add = |request: ServiceRequest, (name, value): (&str, &str)| {
        request.header(format!("{}{name}", queue_names::METADATA_PREFIX), value)
    };
    Ok(checked.iter().fold(request, add))
}

fn with_text(request: ServiceRequest, text: &str) -> Result<ServiceRequest> {
    let text = MessageText::new(text.to_owned()).map_err(|_| {
        Error::invalid("a message takes up to 64 KiB of text, of characters that XML can have")
    })?;
    Ok(request.body(XML, message_body::write(text.as_str())))
}

/// In whole seconds, rounded up, so that no message is visible before its time.
fn seconds(time: Duration) -> String {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)).to_string()
}

fn read(answer: &ServiceAnswer) -> Result<Vec<MessageEntry>> {
    message_list::read(&answer.body)
        .ok_or_else(|| Error::Unreadable("the messages in the answer can't be read".to_owned()))
}

fn handle(id: String, receipt: String, next_visible: &str) -> Result<MessageHandle> {
    Ok(MessageHandle { id, receipt, next_visible: time(next_visible)? })
}

fn time(text: &str) -> Result<DateTime> {
    let parsed = httpdate::parse_http_date(text).ok().and_then(DateTime::from_system_time);
    parsed.ok_or_else(|| Error::Unreadable(format!("{text:?} in the answer is not a time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_whole_seconds_and_never_shorter() {
        for (milliseconds, expected) in [(0, "0"), (1, "1"), (1_000, "1"), (1_001, "2")] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn the_last_time_is_read() {
        let never = time("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
        assert_eq!(never.to_seconds_string(), "9999-12-31T23:59:59Z");
        assert!(time("soon").is_err());
    }
}
