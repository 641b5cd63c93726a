//! One connection to queues: sends the operations of a workload, and checks the answers.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use memchr::memmem;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::messages::MessageSet;
use crate::random::Random;
use crate::tally::OperationFailure;
use crate::workload::Workload;
use connection::{Client, Response, UnsignedRequest};

/// How long a Get hides a message: longer than any run, so that none is given out twice.
const GET_QUERY: &str = "visibilitytimeout=86400";
/// The messages that each connection holds and updates by turns.
const HELD: usize = 16;
/// Hides a message, but for less time than it lives.
const HIDDEN_QUERY: &str = "visibilitytimeout=86400";

/// What all connections to the queues of one endpoint share.
#[derive(Debug)]
pub struct QueueContext {
    pub messages: MessageSet,
    pub names: Vec<String>,
    /// The next number of a message. Each is used once.
    pub next: AtomicU64,
    /// The next queue that messages are taken from.
    pub turn: AtomicU64,
    /// By queue: visible messages, as far as changes were acknowledged.
    pub visible: Vec<AtomicI64>,
    /// In all queues, visible or not.
    pub present: AtomicI64,
    /// The numbers of messages that were given out. Each may be given out once.
    pub taken: Mutex<HashSet<u64>>,
    /// Do not check bodies.
    pub trust: bool,
}

/// A message that was given to this connection.
#[derive(Clone, Debug)]
struct Lease {
    queue: usize,
    id: String,
    receipt: String,
}

#[derive(Debug)]
pub struct QueueWorker {
    client: Client,
    shared: Arc<QueueContext>,
    random: Random,
    path: String,
    query: String,
    body: Vec<u8>,
    /// What `queue-mixed` does next.
    step: MixedStep,
    held: Vec<Lease>,
    /// The next of them to update.
    next_held: usize,
}

/// One message goes through a queue in four operations.
#[derive(Debug)]
enum MixedStep {
    Put,
    Peek { queue: usize },
    Get { queue: usize },
    Delete(Lease),
}

impl QueueWorker {
    pub fn new(client: Client, shared: Arc<QueueContext>, seed: u64) -> Self {
        Self {
            client,
            shared,
            random: Random::new(seed),
            path: String::new(),
            query: String::new(),
            body: Vec::new(),
            step: MixedStep::Put,
            held: Vec::new(),
            next_held: 0,
        }
    }

    /// Does one operation and checks it. Returns how many messages it put, returned, changed or removed.
    pub async fn operate(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        match workload {
            Workload::QueuePut => {
                let queue = self.any_queue();
                self.put(queue, "", now).await.map(drop)?;
            }
            Workload::QueuePeek => {
                let queue = self.any_queue();
                self.peek(queue, now).await?;
            }
            Workload::QueueGetDelete => {
                let turn = self.shared.turn.fetch_add(1, Ordering::Relaxed);
                let queue = (turn % self.shared.messages.queues) as usize;
                let lease = self.get(queue, now).await?;
                self.delete(&lease, now).await?;
            }
            Workload::QueueUpdate => self.update(now).await?,
            Workload::QueueMixed => self.mixed(now).await?,
            _ => return Err(OperationFailure::bug("a workload of another service was given to queues")),
        }
        Ok(1)
    }

    /// What must be there before the workload begins.
    pub async fn prepare(&mut self, workload: Workload) -> Result<(), OperationFailure> {
        if workload == Workload::QueueUpdate {
            while self.held.len() < HELD {
                let queue = self.any_queue();
                let lease = self.put(queue, HIDDEN_QUERY, Instant::now()).await?;
                self.held.push(lease);
            }
        }
        Ok(())
    }

    /// Removes what the workload has left, by the receipts that it was given last.
    pub async fn tidy(&mut self) -> Result<(), OperationFailure> {
        if let MixedStep::Delete(lease) = std::mem::replace(&mut self.step, MixedStep::Put) {
            self.delete(&lease, Instant::now()).await?;
        }
        while let Some(lease) = self.held.pop() {
            self.delete(&lease, Instant::now()).await?;
        }
        Ok(())
    }

    /// Puts one of the messages that are to wait.
    pub async fn load(&mut self, queue: usize) -> Result<(), OperationFailure> {
        self.put(queue, "", Instant::now()).await.map(drop)
    }

    /// Checks the first message of a queue.
    pub async fn expect_loaded(&mut self, queue: usize) -> Result<(), OperationFailure> {
        self.peek(queue, Instant::now()).await
    }

    async fn put(
        &mut self,
        queue: usize,
        query: &'static str,
        now: Instant,
    ) -> Result<Lease, OperationFailure> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.messages_path(queue);
        self.shared.messages.write_body(&mut self.body, number);
        let request =
            UnsignedRequest { method: "POST", path: &self.path, query, headers: "", body: Some(&self.body) };
        let response = self.client.send(request, now).await?;
        expect_status(&response, 201)?;
        let lease = lease(&response, queue)?;
        self.shared.present.fetch_add(1, Ordering::Relaxed);
        if query.is_empty() {
            self.shared.visible[queue].fetch_add(1, Ordering::Relaxed);
        }
        Ok(lease)
    }

    async fn peek(&mut self, queue: usize, now: Instant) -> Result<(), OperationFailure> {
        self.messages_path(queue);
        let request = UnsignedRequest {
            method: "GET",
            path: &self.path,
            query: "peekonly=true",
            headers: "",
            body: None,
        };
        let response = self.client.send(request, now).await?;
        expect_status(&response, 200)?;
        if !self.shared.trust {
            message_number(&response, &self.shared.messages)?;
        }
        Ok(())
    }

    async fn get(&mut self, queue: usize, now: Instant) -> Result<Lease, OperationFailure> {
        self.messages_path(queue);
        let request =
            UnsignedRequest { method: "GET", path: &self.path, query: GET_QUERY, headers: "", body: None };
        let response = self.client.send(request, now).await?;
        expect_status(&response, 200)?;
        if !self.shared.trust {
            let number = message_number(&response, &self.shared.messages)?;
            let mut taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
            if !taken.insert(number) {
                let what = format!("message {number:x} was given out twice");
                return Err(OperationFailure::wrong(what, response.body));
            }
        }
        let lease = lease(&response, queue)?;
        self.shared.visible[queue].fetch_sub(1, Ordering::Relaxed);
        Ok(lease)
    }

    async fn delete(&mut self, lease: &Lease, now: Instant) -> Result<(), OperationFailure> {
        self.lease_path(lease);
        let request = UnsignedRequest {
            method: "DELETE",
            path: &self.path,
            query: &self.query,
            headers: "",
            body: None,
        };
        expect_status(&self.client.send(request, now).await?, 204)?;
        self.shared.present.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the next message that this connection holds another text, and keeps its new receipt.
    async fn update(&mut self, now: Instant) -> Result<(), OperationFailure> {
        let Some(mut lease) = self.held.get(self.next_held).cloned() else {
            return Err(OperationFailure::bug("no message is held"));
        };
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.messages.write_body(&mut self.body, number);
        self.lease_path(&lease);
        self.query.push('&');
        self.query.push_str(HIDDEN_QUERY);
        let request = UnsignedRequest {
            method: "PUT",
            path: &self.path,
            query: &self.query,
            headers: "",
            body: Some(&self.body),
        };
        let response = self.client.send(request, now).await?;
        expect_status(&response, 204)?;
        let receipt =
            response.header("x-ms-popreceipt").and_then(|receipt| std::str::from_utf8(receipt).ok());
        match receipt {
            Some(receipt) if self.shared.trust || receipt != lease.receipt => {
                receipt.clone_into(&mut lease.receipt);
            }
            Some(_) => return Err(OperationFailure::wrong("an update gave the old receipt".to_owned(), b"")),
            None => {
                return Err(OperationFailure::wrong("an update gave no receipt".to_owned(), response.head));
            }
        }
        self.held[self.next_held] = lease;
        self.next_held = (self.next_held + 1) % self.held.len();
        Ok(())
    }

    /// The next of four operations. After a failure it begins again.
    async fn mixed(&mut self, now: Instant) -> Result<(), OperationFailure> {
        match std::mem::replace(&mut self.step, MixedStep::Put) {
            MixedStep::Put => {
                let queue = self.any_queue();
                self.put(queue, "", now).await?;
                self.step = MixedStep::Peek { queue };
            }
            MixedStep::Peek { queue } => {
                self.peek(queue, now).await?;
                self.step = MixedStep::Get { queue };
            }
            MixedStep::Get { queue } => {
                let lease = self.get(queue, now).await?;
                self.step = MixedStep::Delete(lease);
            }
            MixedStep::Delete(lease) => self.delete(&lease, now).await?,
        }
        Ok(())
    }

    fn any_queue(&mut self) -> usize {
        self.random.below(self.shared.messages.queues) as usize
    }

    fn messages_path(&mut self, queue: usize) {
        self.path.clear();
        for piece in ["/", &self.shared.names[queue], "/messages"] {
            self.path.push_str(piece);
        }
    }

    /// Sets path and query.
    fn lease_path(&mut self, lease: &Lease) {
        self.messages_path(lease.queue);
        self.path.push('/');
        self.path.push_str(&lease.id);
        self.query.clear();
        // Writing into a string can't fail.
        let _ = write!(self.query, "popreceipt={}", utf8_percent_encode(&lease.receipt, NON_ALPHANUMERIC));
    }
}

fn expect_status(response: &Response<'_>, status: u16) -> Result<(), OperationFailure> {
    if response.status == status { Ok(()) } else { Err(OperationFailure::status(response)) }
}

/// The number of the only message of an answer.
fn message_number(response: &Response<'_>, messages: &MessageSet) -> Result<u64, OperationFailure> {
    let wrong = |what: String| OperationFailure::wrong(what, response.body);
    match memmem::find_iter(response.body, b"<QueueMessage>").count() {
        1 => {}
        found => return Err(wrong(format!("an answer has {found} messages instead of 1"))),
    }
    let text = element(response.body, b"<MessageText>", b"</MessageText>");
    let number = text.and_then(|text| messages.number(text));
    number.ok_or_else(|| wrong("a message has not the text that it was put with".to_owned()))
}

/// The id and the receipt of the only message of an answer.
fn lease(response: &Response<'_>, queue: usize) -> Result<Lease, OperationFailure> {
    let text = |open: &[u8], close: &[u8]| {
        let found = element(response.body, open, close).and_then(|found| std::str::from_utf8(found).ok());
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let id = text(b"<MessageId>", b"</MessageId>");
    let receipt = text(b"<PopReceipt>", b"</PopReceipt>");
    match (id, receipt) {
        (Some(id), Some(receipt)) => Ok(Lease { queue, id, receipt }),
        _ => Err(OperationFailure::wrong("an answer has no id or no receipt".to_owned(), response.body)),
    }
}

fn element<'b>(body: &'b [u8], open: &[u8], close: &[u8]) -> Option<&'b [u8]> {
    let rest = &body[memmem::find(body, open)? + open.len()..];
    Some(&rest[..memmem::find(rest, close)?])
}
