//! A client of queues that knows only their protocol: one connection, one request at a time.
//!
//! It signs nothing: a token of the development account, made once, is good for all that it does.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Signed with the published key of the development account, for all operations on queues, until 2099.
const TOKEN: &str = "sv=2021-02-12&ss=q&srt=sco&sp=rwdlacup&se=2099-01-01T00:00:00Z&spr=https,http\
                     &sig=LJ7ys9LS12cnHQvvjl9r3rbB2lsSPPZwjg2T01mXrTU%3D";
const ACCOUNT: &str = "/devstoreaccount1";
/// No request takes so long; a server that is stopped in the middle of one does.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

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
    authority: String,
    /// The address of its queue.
    queue: String,
    stream: Option<TcpStream>,
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl QueueClient {
    pub fn new(authority: &str, queue: &str) -> Self {
        Self { authority: authority.to_owned(), queue: format!("{ACCOUNT}/{queue}"), stream: None }
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
        let messages = response.body.split("<QueueMessage>").skip(1);
        (response.status == 200).then(|| messages.filter_map(read_message).collect())
    }

    /// All messages that are visible, up to 32, without their receipts; `None` as for `get`.
    pub async fn peek(&mut self) -> Option<Vec<Taken>> {
        let query = "peekonly=true&numofmessages=32&";
        let response = self.ask("GET", &format!("{}/messages", self.queue), query, "").await?;
        let messages = response.body.split("<QueueMessage>").skip(1);
        (response.status == 200).then(|| messages.filter_map(read_message).collect())
    }

    /// The new receipt or the status; `None` if there was no answer.
    pub async fn update(&mut self, id: &str, receipt: &str, visibility: u64) -> Option<Result<String, u16>> {
        let query = format!("popreceipt={}&visibilitytimeout={visibility}&", escaped(receipt));
        let response = self.ask("PUT", &format!("{}/messages/{id}", self.queue), &query, "").await?;
        let updated = response.head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("x-ms-popreceipt").then(|| value.trim().to_owned())
        });
        Some(updated.filter(|_| response.status == 204).ok_or(response.status))
    }

    /// The status; `None` if there was no answer.
    pub async fn delete(&mut self, id: &str, receipt: &str) -> Option<u16> {
        let query = format!("popreceipt={}&", escaped(receipt));
        let response = self.ask("DELETE", &format!("{}/messages/{id}", self.queue), &query, "").await?;
        Some(response.status)
    }

    async fn ask(&mut self, method: &str, path: &str, query: &str, body: &str) -> Option<Response> {
        let request = format!(
            "{method} {path}?{query}{TOKEN} HTTP/1.1\r\nHost: {}\r\nx-ms-version: 2021-02-12\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.authority,
            body.len()
        );
        // A connection whose request was not answered is of no more use.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.authority).await.ok()?,
        };
        let answer = timeout(ANSWER_TIME_MAX, async {
            stream.write_all(request.as_bytes()).await.ok()?;
            read_response(&mut stream).await
        });
        let response = answer.await.ok().flatten()?;
        self.stream = Some(stream);
        Some(response)
    }
}

async fn read_response(stream: &mut TcpStream) -> Option<Response> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut body = bytes.split_off(head_end);
    match length {
        // An answer that has no body need not say how long it is.
        _ if status == 204 => {}
        Some(length) => {
            while body.len() < length {
                read_more(stream, &mut body).await?;
            }
        }
        None => {
            while !body.ends_with(b"0\r\n\r\n") {
                read_more(stream, &mut body).await?;
            }
            body = joined(&body)?;
        }
    }
    Some(Response { status, head, body: String::from_utf8_lossy(&body).into_owned() })
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(bytes).await.ok()?;
    (read > 0).then_some(())
}

/// The chunks of a body as one.
fn joined(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n")?;
        let length = usize::from_str_radix(str::from_utf8(&chunks[..end]).ok()?, 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(chunks.get(end + 2..end + 2 + length)?);
        chunks = chunks.get(end + 4 + length..)?;
    }
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
