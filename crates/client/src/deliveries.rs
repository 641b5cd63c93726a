//! A stream of a queue's messages, each of which stays its consumer's as long as the consumer works on it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use crate::error::{Error, Result};
use crate::queue::{MessageHandle, Queue, TakenMessage};

const VISIBILITY: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How to take messages, made by [`Queue::deliveries`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Deliveries {
    queue: Queue,
    at_once: u32,
    visibility: Duration,
    pause_max: Duration,
    poison: Option<(Queue, u32)>,
}

/// A message that is its consumer's: its visibility is renewed in the background. Call [`done`](Self::done) when the work is
/// done. If it is dropped before, or its process dies, the message is delivered again when its visibility has ended.
#[derive(Debug)]
pub struct Delivery {
    queue: Queue,
    text: String,
    dequeue_count: u32,
    /// Locked during a renewal, because it changes the receipt.
    handle: Arc<Mutex<MessageHandle>>,
    renewal: AbortHandle,
}

impl Deliveries {
    pub(crate) fn new(queue: Queue) -> Self {
        Self { queue, at_once: 1, visibility: VISIBILITY, pause_max: PAUSE_MAX, poison: None }
    }

    /// How many messages a request takes, at most 32; one if it is not set. All of them are renewed from then on.
    pub fn at_once(self, count: u32) -> Self {
        Self { at_once: count, ..self }
    }

    /// How long a message stays invisible after its consumer has died; a minute if it is not set. It is renewed when half of
    /// it has passed.
    pub fn visibility(self, visibility: Duration) -> Self {
        Self { visibility, ..self }
    }

    /// The longest pause before an empty queue is asked again; ten seconds if it is not set. The first is a tenth of a second,
    /// and each one is twice as long as the one before.
    pub fn pause_max(self, pause: Duration) -> Self {
        Self { pause_max: pause, ..self }
    }

    /// Moves a message to another queue if it was delivered more than `attempts` times.
    pub fn poison(self, queue: Queue, attempts: u32) -> Self {
        Self { poison: Some((queue, attempts)), ..self }
    }

    /// The messages, without end. After an error the stream goes on.
    pub fn stream(self) -> impl Stream<Item = Result<Delivery>> + Send {
        stream::unfold((self, VecDeque::new()), |(deliveries, mut waiting)| async move {
            let next = deliveries.next(&mut waiting).await;
            Some((next, (deliveries, waiting)))
        })
    }

    async fn next(&self, waiting: &mut VecDeque<Delivery>) -> Result<Delivery> {
        let mut pause = PAUSE_MIN.min(self.pause_max);
        loop {
            if let Some(delivery) = waiting.pop_front() {
                return Ok(delivery);
            }
            let taken = self.queue.get(self.at_once, self.visibility).await?;
            if taken.is_empty() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(self.pause_max);
                continue;
            }
            for message in taken {
                match &self.poison {
                    Some((poison, attempts)) if message.dequeue_count > *attempts => {
                        self.bury(&message, poison).await?;
                    }
                    _ => waiting.push_back(Delivery::new(self.queue.clone(), message, self.visibility)),
                }
            }
        }
    }

    /// Puts first and deletes then: a message may be in both queues, and is never in none.
    async fn bury(&self, message: &TakenMessage, poison: &Queue) -> Result<()> {
        poison.put(&message.text).await?;
        tracing::warn!(queue = poison.name(), message = message.handle.id, "a poison message");
        match self.queue.delete(&message.handle).await {
            Err(Error::Refused(refused)) if refused.status == 404 => Ok(()),
            done => done,
        }
    }
}

impl Delivery {
    fn new(queue: Queue, message: TakenMessage, visibility: Duration) -> Self {
        let handle = Arc::new(Mutex::new(message.handle));
        let renewal = tokio::spawn(renew(queue.clone(), handle.clone(), visibility)).abort_handle();
        Self { queue, text: message.text, dequeue_count: message.dequeue_count, handle, renewal }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// How often the message was delivered, this time included.
    pub fn dequeue_count(&self) -> u32 {
        self.dequeue_count
    }

    /// Deletes the message. Refused with `MessageNotFound` if its visibility had ended and another consumer has it.
    pub async fn done(self) -> Result<()> {
        let handle = self.handle.lock().await;
        self.renewal.abort();
        self.queue.delete(&handle).await
    }

    /// Gives the message back, to be delivered again after a time.
    pub async fn give_back(self, after: Duration) -> Result<()> {
        let mut handle = self.handle.lock().await;
        self.renewal.abort();
        self.queue.renew(&mut handle, after).await
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews until the message is no longer ours. A failure is tried again, until the visibility has long ended.
async fn renew(queue: Queue, handle: Arc<Mutex<MessageHandle>>, visibility: Duration) {
    loop {
        tokio::time::sleep(visibility / 2).await;
        let mut handle = handle.lock().await;
        if let Err(error) = queue.renew(&mut handle, visibility).await {
            tracing::warn!(queue = queue.name(), message = handle.id, %error, "a message was not renewed");
            if error.status() == Some(404) {
                return;
            }
        }
    }
}
