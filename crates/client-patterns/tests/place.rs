//! A service and a table for each test.
//!
//! The service is shared with other tests. If there is none, each test starts the program that `PARTITA_BIN` names.

use std::io::{BufRead, BufReader};
use std::panic::AssertUnwindSafe;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use futures_util::{FutureExt as _, TryStreamExt as _};
use partita_client::{RetryPolicy, Table, TableService, property};

use crate::support;

/// A service, and a name that no other test uses.
pub struct Place {
    pub connection_string: String,
    /// Letters and digits, to use it as a prefix of table names.
    pub name: String,
    _server: Option<Server>,
}

impl Place {
    pub fn service(&self) -> TableService {
        self.service_at(&self.connection_string, support::quick())
    }

    /// The same service at another address.
    pub fn service_at(&self, connection_string: &str, retry: RetryPolicy) -> TableService {
        TableService::builder(connection_string).unwrap().retry(retry).build().unwrap()
    }

    pub fn table(&self) -> Table {
        self.service().table(&self.name).unwrap()
    }
}

/// Runs a test with an empty table.
pub async fn with_table<F: Future<Output = ()>>(test: impl FnOnce(Table) -> F) {
    with_place(|place| async move {
        let table = place.table();
        table.create().await.unwrap();
        test(table).await;
    })
    .await;
}

/// Runs a test with a service. At the end, drops the tables whose names begin with the test's name.
pub async fn with_place<F: Future<Output = ()>>(test: impl FnOnce(Arc<Place>) -> F) {
    let Some(place) = place() else { return };
    let place = Arc::new(place);
    let outcome = AssertUnwindSafe(test(place.clone())).catch_unwind().await;
    tidy(&place).await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

async fn tidy(place: &Place) {
    let service = place.service();
    let ours = property("TableName").starts_with(&place.name);
    let names: Vec<String> = service.tables(Some(ours)).try_collect().await.unwrap();
    for name in names {
        service.table(&name).unwrap().drop().await.unwrap();
    }
}

fn place() -> Option<Place> {
    let name = support::unique("Pattern");
    if let Ok(program) = std::env::var("PARTITA_BIN")
        && std::env::var(support::PARTITA).is_err()
    {
        let server = Server::start(&program);
        return Some(Place {
            connection_string: server.connection_string.clone(),
            name,
            _server: Some(server),
        });
    }
    let connection_string = support::connection_string(support::PARTITA)?;
    Some(Place { connection_string, name, _server: None })
}

/// A server in memory. Killed when dropped.
struct Server {
    child: Child,
    connection_string: String,
    /// Kept open, because the server may still write to it.
    _output: BufReader<ChildStdout>,
}

impl Server {
    fn start(program: &str) -> Self {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARTITA_")) {
            command.env_remove(name);
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--in-memory"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("TableEndpoint=") {
            line.clear();
            assert!(
                output.read_line(&mut line).unwrap() > 0,
                "{program} ended before it said where it listens"
            );
        }
        let at = line.find("DefaultEndpointsProtocol").unwrap();
        let connection_string = line[at..].trim().to_owned();
        Self { child, connection_string, _output: output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
