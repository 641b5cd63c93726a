//! A proxy between a command and a server that disturbs chosen requests.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// This request and all later ones get no answer.
    Stall,
    /// The connection breaks before the server gets the request.
    Break,
    /// The server does the request, and the connection breaks before the answer.
    Swallow,
    /// The proxy answers with this text.
    Answer(&'static str),
}

#[derive(Clone)]
pub struct Gate {
    pub address: SocketAddr,
    inner: Arc<(Mutex<Inner>, Condvar)>,
}

struct Inner {
    server: SocketAddr,
    requests: Vec<String>,
    harms: Vec<(usize, Harm)>,
    stalled: usize,
    /// How often `harm` was called.
    told: usize,
}

impl Gate {
    /// In front of this server.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inner = Inner { server, requests: Vec::new(), harms: Vec::new(), stalled: 0, told: 0 };
        let gate = Self {
            address: listener.local_addr().unwrap(),
            inner: Arc::new((Mutex::new(inner), Condvar::new())),
        };
        let serving = gate.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let gate = serving.clone();
                std::thread::spawn(move || gate.serve(&stream.unwrap()));
            }
        });
        gate
    }

    /// Disturbs the requests with these numbers, counted from 0 again. Replaces earlier settings, and breaks stalled
    /// connections.
    pub fn harm(&self, harms: &[(usize, Harm)]) {
        let mut inner = self.inner.0.lock().unwrap();
        inner.requests.clear();
        inner.harms = harms.to_vec();
        inner.stalled = 0;
        inner.told += 1;
        self.inner.1.notify_all();
    }

    pub fn send_to(&self, server: SocketAddr) {
        self.inner.0.lock().unwrap().server = server;
    }

    /// The first lines of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.inner.0.lock().unwrap().requests.clone()
    }

    /// Waits until a request is stalled.
    pub fn wait_until_stalled(&self) {
        let (inner, changed) = &*self.inner;
        let waits = |inner: &mut Inner| inner.stalled == 0;
        let patience = Duration::from_secs(60);
        let (inner, _) = changed.wait_timeout_while(inner.lock().unwrap(), patience, waits).unwrap();
        assert!(inner.stalled > 0, "nothing stalled: {:?}", inner.requests);
    }

    fn wait_until_told_otherwise(&self, told: usize) {
        let (inner, changed) = &*self.inner;
        let inner = inner.lock().unwrap();
        drop(changed.wait_while(inner, |inner| inner.told == told).unwrap());
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((head, body)) = read_request(&mut reader) {
            let (harm, server, told) = self.count(&head);
            let mut client = stream;
            let answer = match harm {
                Some(Harm::Stall) => return self.wait_until_told_otherwise(told),
                Some(Harm::Break) => return,
                Some(Harm::Answer(answer)) => answer.as_bytes().to_vec(),
                Some(Harm::Swallow) => {
                    assert!(!forward(server, &head, &body).is_empty(), "it was to be carried out");
                    return;
                }
                None => forward(server, &head, &body),
            };
            if answer.is_empty() || client.write_all(&answer).is_err() {
                return;
            }
        }
    }

    fn count(&self, head: &str) -> (Option<Harm>, SocketAddr, usize) {
        let mut inner = self.inner.0.lock().unwrap();
        let number = inner.requests.len();
        inner.requests.push(head.lines().next().unwrap_or_default().to_owned());
        let harm = inner.harms.iter().find(|(at, harm)| match harm {
            Harm::Stall => number >= *at,
            _ => number == *at,
        });
        let harm = harm.map(|(_, harm)| *harm);
        if harm == Some(Harm::Stall) {
            inner.stalled += 1;
            self.inner.1.notify_all();
        }
        (harm, inner.server, inner.told)
    }
}

fn read_request(reader: &mut impl std::io::BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
        // Names of headers are the same in any case.
        let line = head[start..].to_ascii_lowercase();
        let value = line.strip_prefix("content-length:");
        length = value.map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The whole answer, over a new connection; empty if there is none.
fn forward(server: SocketAddr, head: &str, body: &[u8]) -> Vec<u8> {
    let Ok(mut upstream) = TcpStream::connect(server) else { return Vec::new() };
    let (line, headers) = head.split_once("\r\n").unwrap();
    let request = [format!("{line}\r\nConnection: close\r\n{headers}").as_bytes(), body].concat();
    let mut answer = Vec::new();
    match upstream.write_all(&request).and_then(|()| upstream.read_to_end(&mut answer)) {
        Ok(_) => answer,
        Err(_) => Vec::new(),
    }
}
