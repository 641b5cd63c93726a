//! Requests as bytes over one connection, one at a time, with their whole answers: what the clients of queues and of blobs have
//! in common.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No request takes so long; a server that is stopped in the middle of one does.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Wire {
    authority: String,
    stream: Option<TcpStream>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Wire {
    pub fn new(authority: &str) -> Self {
        Self { authority: authority.to_owned(), stream: None }
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// `target` is path and query; `headers` are whole lines. `None` if there was no answer.
    pub async fn ask(&mut self, method: &str, target: &str, headers: &str, body: &[u8]) -> Option<Answer> {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nx-ms-version: 2021-02-12\r\n{headers}\
             Content-Length: {}\r\n\r\n",
            self.authority,
            body.len()
        );
        // A connection whose request was not answered is of no more use.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.authority).await.ok()?,
        };
        let answer = timeout(ANSWER_TIME_MAX, async {
            stream.write_all(&[head.as_bytes(), body].concat()).await.ok()?;
            read_answer(&mut stream).await
        });
        let answer = answer.await.ok().flatten()?;
        self.stream = Some(stream);
        Some(answer)
    }
}

async fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: bytes.split_off(head_end) };
    match answer.header("content-length").map(|length| length.parse::<usize>().ok()) {
        // An answer that has no body need not say how long it is.
        _ if status == 204 => {}
        Some(length) => {
            let length = length?;
            answer.body.reserve(length.saturating_sub(answer.body.len()));
            while answer.body.len() < length {
                read_more(stream, &mut answer.body).await?;
            }
        }
        None => {
            while !answer.body.ends_with(b"0\r\n\r\n") {
                read_more(stream, &mut answer.body).await?;
            }
            answer.body = joined(&answer.body)?;
        }
    }
    Some(answer)
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
