//! A client of queues that knows only their protocol: one connection, one request at a time.
//!
//! It signs nothing: a token of the development account, made once, is good for all that it does.

use crate::wire::{Answer, Wire};

/// Signed with the published key of the development account, for all operations on queues, until 2099.
const TOKEN: &str = "sv=2021-02-12&ss=q&srt=sco&sp=rwdlacup&se=2099-01-01T00:00:00Z&spr=https,http\
                     &sig=LJ7ys9LS12cnHQvvjl9r3rbB2lsSPPZwjg2T01mXrTU%3D";
const ACCOUNT: &str = "/devstoreaccount1";

/// A message as a Get gave it.
#[derive(Clone, Debug)]
pub struct Taken {
    pub id: String,
    pub receipt: String,
    pub dequeue_count: u32,
    pub text: String,
}

#[derive(Debug)]
pub struct QueueClient {
    wire: Wire,
    /// The address of its queue.
    queue: String,
}

impl QueueClient {
    pub fn new(authority: &str, queue: &str) -> Self {
        Self { wire: Wire::new(authority), queue: format!("{ACCOUNT}/{queue}") }
    }

    pub async fn create(&mut self) -> Result<(), String> {
        match self.ask("PUT", &self.queue.clone(), "", "").await.map(|response| response.status) {
            Some(201 | 204) => Ok(()),
            other => Err(format!("the queue could not be created: {other:?}")),
        }
    }

    /// The status; `None` if there was no answer.
    pub async fn put(&mut self, text: &str) -> Option<u16> {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let response = self.ask("POST", &format!("{}/messages", self.queue), "messagettl=-1&", &body).await?;
        Some(response.status)
    }

    /// `None` if there was no answer, or none that gives messages out.
    pub async fn get(&mut self, count: u32, visibility: u64) -> Option<Vec<Taken>> {
        let query = format!("numofmessages={count}&visibilitytimeout={visibility}&");
        let response = self.ask("GET", &format!("{}/messages", self.queue), &query, "").await?;
        (response.status == 200).then(|| read_messages(&response))
    }

    /// All messages that are visible, up to 32, without their receipts; `None` as for `get`.
    pub async fn peek(&mut self) -> Option<Vec<Taken>> {
        let query = "peekonly=true&numofmessages=32&";
        let response = self.ask("GET", &format!("{}/messages", self.queue), query, "").await?;
        (response.status == 200).then(|| read_messages(&response))
    }

    /// The new receipt or the status; `None` if there was no answer.
    pub async fn update(&mut self, id: &str, receipt: &str, visibility: u64) -> Option<Result<String, u16>> {
        let query = format!("popreceipt={}&visibilitytimeout={visibility}&", escaped(receipt));
        let response = self.ask("PUT", &format!("{}/messages/{id}", self.queue), &query, "").await?;
        let updated = response.header("x-ms-popreceipt").map(str::to_owned);
        Some(updated.filter(|_| response.status == 204).ok_or(response.status))
    }

    /// The status; `None` if there was no answer.
    pub async fn delete(&mut self, id: &str, receipt: &str) -> Option<u16> {
        let query = format!("popreceipt={}&", escaped(receipt));
        let response = self.ask("DELETE", &format!("{}/messages/{id}", self.queue), &query, "").await?;
        Some(response.status)
    }

    async fn ask(&mut self, method: &str, path: &str, query: &str, body: &str) -> Option<Answer> {
        self.wire.ask(method, &format!("{path}?{query}{TOKEN}"), "", body.as_bytes()).await
    }
}

fn read_messages(answer: &Answer) -> Vec<Taken> {
    answer.text().split("<QueueMessage>").skip(1).filter_map(read_message).collect()
}

/// The lab's own texts need no escapes.
fn read_message(document: &str) -> Option<Taken> {
    let element = |name: &str| {
        let (_, rest) = document.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.to_owned())
    };
    Some(Taken {
        id: element("MessageId")?,
        receipt: element("PopReceipt").unwrap_or_default(),
        dequeue_count: element("DequeueCount")?.parse().ok()?,
        text: element("MessageText")?,
    })
}

/// A receipt is Base64.
fn escaped(receipt: &str) -> String {
    receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}
