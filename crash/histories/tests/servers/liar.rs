//! A proxy in front of a real server that sometimes gives a false answer.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug)]
pub enum Lie {
    /// A get is answered with the answer of the previous one.
    OldAnswer,
    /// A write is acknowledged like the last one, but not sent on.
    WriteNotDone,
    /// `If-Match` with an ETag is sent on as `*`.
    ConditionNotSent,
    /// A Get of messages is answered with the answer of an earlier one.
    OldMessages,
    /// The Delete of a message is acknowledged, but not sent on.
    DeleteNotDone,
    /// A Get of a blob is answered with the answer of an earlier one.
    OldBlob,
    /// A Put of a blob is acknowledged like an earlier one, but not sent on.
    BlobNotPut,
    /// A blob's content has the end of another version.
    MixedBlob,
    /// A lease is given to somebody whom the server has refused.
    LeaseGiven,
}

impl Lie {
    fn endpoint(self) -> &'static str {
        match self {
            Self::OldAnswer | Self::WriteNotDone | Self::ConditionNotSent => "TableEndpoint=http://",
            Self::OldMessages | Self::DeleteNotDone => "QueueEndpoint=http://",
            Self::OldBlob | Self::BlobNotPut | Self::MixedBlob | Self::LeaseGiven => "BlobEndpoint=http://",
        }
    }
}

/// One of this many suitable requests gets a false answer.
const LIE_EVERY: usize = 5;

pub struct Liar {
    pub connection_string: String,
}

/// What all connections share.
#[derive(Default)]
struct Memory {
    chances: usize,
    answers: HashMap<String, Vec<u8>>,
}

impl Liar {
    /// Runs as long as the test does.
    pub fn start(connection_string: &str, lie: Lie) -> Self {
        let endpoint = lie.endpoint();
        let (before, rest) = connection_string.split_once(endpoint).unwrap();
        let (server, after) = rest.split_once('/').unwrap();
        let server: SocketAddr = server.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection_string = format!("{before}{endpoint}{}/{after}", listener.local_addr().unwrap());
        let memory = Arc::new(Mutex::new(Memory::default()));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                let memory = memory.clone();
                std::thread::spawn(move || serve(client, server, lie, &memory));
            }
        });
        Self { connection_string }
    }
}

fn serve(client: TcpStream, server: TcpStream, lie: Lie, memory: &Mutex<Memory>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut requests, mut answers) = (BufReader::new(&client), BufReader::new(&server));
    while let Some(mut request) = read_message(&mut requests) {
        let line = request.lines().next().unwrap().to_owned();
        let get = line.starts_with("GET ") && line.contains("RowKey=");
        let upsert = line.starts_with("PUT ") && !request.contains("If-Match");
        let messages = line.starts_with("GET ") && line.contains("/messages?numofmessages=");
        let delete = line.starts_with("DELETE ") && line.contains("/messages/");
        let get_blob = line.starts_with("GET ") && line.contains("/b");
        let put_blob =
            upsert && line.contains("/b") && !line.contains('?') && !request.contains("None-Match");
        // The conditions within a batch count towards its length.
        let head = if line.contains("$batch") { "" } else { request.as_str() };
        let condition = head.lines().find(|line| line.starts_with("If-Match: W/")).map(str::to_owned);
        let lies = || {
            let mut memory = memory.lock().unwrap();
            memory.chances += 1;
            memory.chances.is_multiple_of(LIE_EVERY)
        };
        // An answer with more messages than were asked for would be caught for that.
        let kind = line.split("&visibilitytimeout").next().unwrap_or_default().to_owned();
        let told = match lie {
            Lie::OldAnswer if get && lies() => memory.lock().unwrap().answers.get(&line).cloned(),
            // The answer may have the version of another row's write, or one that no write of this row has.
            Lie::WriteNotDone if upsert && lies() => later(memory.lock().unwrap().answers.get("PUT")),
            Lie::OldMessages if messages && lies() => memory.lock().unwrap().answers.get(&kind).cloned(),
            Lie::DeleteNotDone if delete && lies() => memory.lock().unwrap().answers.get("DELETE").cloned(),
            Lie::OldBlob if get_blob && lies() => memory.lock().unwrap().answers.get(&line).cloned(),
            Lie::BlobNotPut if put_blob && lies() => memory.lock().unwrap().answers.get("PUT blob").cloned(),
            Lie::ConditionNotSent => {
                if let Some(condition) = condition.filter(|_| lies()) {
                    request = request.replace(&condition, "If-Match: *");
                }
                None
            }
            _ => None,
        };
        let answer = told.unwrap_or_else(|| {
            (&server).write_all(request.as_bytes()).unwrap();
            read_message(&mut answers).unwrap_or_default().into_bytes()
        });
        let answer = match lie {
            Lie::MixedBlob if get_blob && answer.starts_with(b"HTTP/1.1 200") && lies() => mixed(answer),
            Lie::LeaseGiven if request.contains("x-ms-lease-action: acquire") && lies() => {
                let text = String::from_utf8(answer).unwrap();
                if text.starts_with("HTTP/1.1 409") {
                    b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_vec()
                } else {
                    text.into_bytes()
                }
            }
            _ => answer,
        };
        let key = match () {
            () if put_blob => "PUT blob".to_owned(),
            () if upsert => "PUT".to_owned(),
            () if messages => kind,
            () if delete => "DELETE".to_owned(),
            () => line,
        };
        // Lies are told again, so they are remembered only if they would be good answers.
        if !delete || answer.starts_with(b"HTTP/1.1 204") {
            memory.lock().unwrap().answers.insert(key, answer.clone());
        }
        if answer.is_empty() || (&client).write_all(&answer).is_err() {
            return;
        }
    }
}

/// The last byte but one is of a number.
fn mixed(mut answer: Vec<u8>) -> Vec<u8> {
    let at = answer.len() - 2;
    answer[at] = if answer[at] == b'9' { b'8' } else { b'9' };
    answer
}

/// The same acknowledgement with a slightly later ETag, which looks like a real one.
fn later(answer: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    let text = String::from_utf8(answer?.clone()).unwrap();
    let end = text.find("Z'\"")?;
    let last = text[..end].chars().next_back().filter(char::is_ascii_digit)?;
    let next = char::from_digit(last.to_digit(10)? % 9 + 1, 10)?;
    Some(format!("{}{next}{}", &text[..end - 1], &text[end..]).into_bytes())
}

/// A request or an answer, head and body; nothing at the end of the connection.
fn read_message(from: &mut impl BufRead) -> Option<String> {
    let (mut message, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let start = message.len();
        if from.read_line(&mut message).ok()? == 0 {
            return None;
        }
        let line = message[start..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        chunked |= line.starts_with("transfer-encoding:");
        if line.is_empty() {
            break;
        }
    }
    while chunked {
        let start = message.len();
        from.read_line(&mut message).ok()?;
        let size = usize::from_str_radix(message[start..].trim(), 16).unwrap();
        read_exactly(from, &mut message, size + 2)?;
        chunked = size > 0;
    }
    read_exactly(from, &mut message, length)?;
    Some(message)
}

fn read_exactly(from: &mut impl Read, into: &mut String, length: usize) -> Option<()> {
    let read = from.take(length as u64).read_to_string(into).ok()?;
    (read == length).then_some(())
}
