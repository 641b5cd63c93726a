//! A way to a server on which chosen requests or answers are lost.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is lost, and with it the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server never sees it.
    Request,
    /// The server carries it out and nobody hears of it.
    Answer,
}

/// Which requests, by what their first line holds; each of these is used once.
type Plan = Arc<Mutex<Vec<(&'static str, Lost)>>>;

pub struct Proxy {
    pub connection_string: String,
    plan: Plan,
}

impl Proxy {
    /// Before the server of a connection string, which must have an address of its own.
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

    /// Loses the next request that has this in its first line, or its answer.
    pub fn lose(&self, lost: Lost, first_line_holds: &'static str) {
        self.plan.lock().unwrap().push((first_line_holds, lost));
    }

    /// All that was to be lost has been.
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

/// Ends with the connection, or by losing something, and then both sides are closed.
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

/// What is to be lost of the request that begins here, if one does.
fn planned(plan: &Plan, bytes: &[u8]) -> Option<Lost> {
    let line = bytes.split(|byte| *byte == b'\r').next().map(String::from_utf8_lossy)?;
    if !line.ends_with("HTTP/1.1") {
        return None;
    }
    let mut plan = plan.lock().unwrap();
    let at = plan.iter().position(|(holds, _)| line.contains(holds))?;
    Some(plan.remove(at).1)
}
