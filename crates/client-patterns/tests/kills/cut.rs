//! Proxies that break after a number of requests, as if the client's process ended there.

use std::sync::{Arc, Mutex};

use partita_client::{QueueService, RetryPolicy, TableService};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::Services;

/// What happens to the first request without an answer. Later requests are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    NotSent,
    Unanswered,
}

pub struct Cut {
    pub services: Services,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Clone, Copy)]
struct Plan {
    seen: u64,
    answered: u64,
    last: Last,
}

impl Cut {
    pub async fn new(connection_string: &str) -> Self {
        let plan = Arc::new(Mutex::new(Plan { seen: 0, answered: 0, last: Last::NotSent }));
        let urls = [
            TableService::from_connection_string(connection_string).unwrap().url(),
            QueueService::from_connection_string(connection_string).unwrap().url(),
        ];
        let mut text = connection_string.to_owned();
        for url in urls {
            let server = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
            assert!(text.contains(&server), "no plain address in the connection string");
            text = text.replace(&server, &proxy(server.clone(), &plan).await);
        }
        Self { services: Services::new(&text, RetryPolicy::never()), plan }
    }

    /// Answers this many requests from now on.
    pub fn after(&self, answered: u64, last: Last) {
        *self.plan.lock().unwrap() = Plan { seen: 0, answered, last };
    }

    /// Whether there were no more requests than that.
    pub fn was_enough(&self) -> bool {
        let plan = self.plan.lock().unwrap();
        plan.seen <= plan.answered
    }
}

/// A proxy of this server. Returns its address.
async fn proxy(server: String, plan: &Arc<Mutex<Plan>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, plan) = (listener.local_addr().unwrap().to_string(), Arc::clone(plan));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, server.clone(), Arc::clone(&plan)));
        }
    });
    address
}

/// Passes one request of a connection, then closes it.
async fn pass(mut client: TcpStream, server: String, plan: Arc<Mutex<Plan>>) -> Option<()> {
    let (head, body) = read_request(&mut client).await?;
    let Plan { seen, answered, last } = {
        let mut plan = plan.lock().unwrap();
        plan.seen += 1;
        *plan
    };
    if seen > answered + 1 || seen > answered && last == Last::NotSent {
        return None;
    }
    let mut upstream = TcpStream::connect(server).await.ok()?;
    let (line, headers) = head.split_once("\r\n")?;
    upstream.write_all(format!("{line}\r\nconnection: close\r\n{headers}").as_bytes()).await.ok()?;
    upstream.write_all(&body).await.ok()?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).await.ok()?;
    if seen <= answered {
        client.write_all(&answer).await.ok()?;
    }
    Some(())
}

/// The head with the empty line at its end, and the body.
async fn read_request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        (client.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    while body.len() < length.unwrap_or(0) {
        (client.read_buf(&mut body).await.ok()? > 0).then_some(())?;
    }
    Some((head, body))
}
