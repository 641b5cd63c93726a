//! A proxy that loses chosen requests or answers.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is lost, together with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server does not get the request.
    Request,
    /// The server does the request, and the client gets no answer.
    Answer,
}

/// A part of the request line of each request to lose; each is used once.
type Plan = Arc<Mutex<Vec<(&'static str, Lost)>>>;

pub struct Proxy {
    pub connection_string: String,
    plan: Plan,
}

impl Proxy {
    /// In front of the server of a connection string, which must have an explicit address.
    pub async fn start(connection_string: &str) -> Self {
        let (before, rest) =
            connection_string.split_once("TableEndpoint=http://").expect("an endpoint without TLS");
        let (server, after) = rest.split_once('/').expect("an account in the path");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let plan = Plan::default();
        tokio::spawn(accept(listener, server.to_owned(), plan.clone()));
        Self { connection_string: format!("{before}TableEndpoint=http://{own}/{after}"), plan }
    }

    /// Loses the next request with this in its first line, or its answer.
    pub fn lose(&self, lost: Lost, first_line_holds: &'static str) {
        self.plan.lock().unwrap().push((first_line_holds, lost));
    }

    /// Whether everything planned was lost.
    pub fn is_done(&self) -> bool {
        self.plan.lock().unwrap().is_empty()
    }
}

async fn accept(listener: TcpListener, server: String, plan: Plan) {
    while let Ok((client, _)) = listener.accept().await {
        if let Ok(server) = TcpStream::connect(&server).await {
            tokio::spawn(carry(client, server, plan.clone()));
        }
    }
}

/// Carries one connection. Ends with it, or with a loss, and then closes both sides.
async fn carry(mut client: TcpStream, mut server: TcpStream, plan: Plan) {
    let (mut request, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut losing = None;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(1..) = read else { return };
                let bytes = &request[..read.unwrap()];
                losing = losing.or_else(|| planned(&plan, bytes));
                if losing == Some(Lost::Request) || server.write_all(bytes).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answer) => {
                let Ok(1..) = read else { return };
                if losing == Some(Lost::Answer) || client.write_all(&answer[..read.unwrap()]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What to lose, if these bytes begin a planned request.
fn planned(plan: &Plan, bytes: &[u8]) -> Option<Lost> {
    let line = bytes.split(|byte| *byte == b'\r').next().map(String::from_utf8_lossy)?;
    if !line.ends_with("HTTP/1.1") {
        return None;
    }
    let mut plan = plan.lock().unwrap();
    let at = plan.iter().position(|(holds, _)| line.contains(holds))?;
    Some(plan.remove(at).1)
}
