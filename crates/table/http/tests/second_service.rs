//! A toy service beside tables, behind the same front. It proves that nothing in the front is made for tables alone, and
//! that bodies of any length pass through it in little memory.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod toy;

use std::sync::Arc;
use std::time::Duration;

use front::account::{Account, Accounts, SharedAccounts};
use front::analytics::Analytics;
use front::bearer::{Bearer, SharedBearer};
use front::{AnyService, Bounds, Listener, Server, ServiceKind, Services};
use protocol::signing::sas::{AccountSas, Sas, Terms};
use service::Service;
use store::{Engine, Gate, MemoryEngine};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use toy::Toy;

const MEMORY_BYTES: usize = 512 * 1024;

/// A server of both services, each on a port of its own.
struct Ground {
    tables: String,
    toys: String,
    logs: tempfile::TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

impl Ground {
    async fn new() -> Self {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        let gate = Arc::new(Gate::default());
        let logs = tempfile::tempdir().unwrap();
        let tables = Listener::bind(ServiceKind::Table, "127.0.0.1:0", None).await.unwrap();
        let toys = Listener::bind(ServiceKind::Queue, "127.0.0.1:0", None).await.unwrap();
        let service = Service::new(engine.clone()).gated(gate.clone());
        let server = Server {
            services: Services::new().with(table_http::behind_front(service)).with(AnyService::new(Toy)),
            engine,
            gate,
            accounts: SharedAccounts::new(Accounts::new([Account::development()])),
            bearer: SharedBearer::new(Arc::new(Bearer { tenant: "common".to_owned(), trust: None })),
            check_clock: true,
            bounds: Bounds {
                connections: 100,
                idle: Duration::from_secs(30),
                head_bytes: 64 * 1024,
                memory_bytes: MEMORY_BYTES,
                shutdown: Duration::from_secs(10),
            },
            analytics: Analytics::new(Some(logs.path().to_owned())).unwrap(),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (at_tables, at_toys) = (tables.address().to_string(), toys.address().to_string());
        let served = tokio::task::spawn_blocking(move || {
            let stop = Box::pin(async { drop(stopped.await) });
            tokio::runtime::Handle::current().block_on(server.run(vec![tables, toys], stop));
        });
        Self { tables: at_tables, toys: at_toys, logs, stop: Some(stop), served }
    }

    async fn end(mut self) -> tempfile::TempDir {
        drop(self.stop.take());
        self.served.await.unwrap();
        self.logs
    }
}

/// A token for everything in these services.
fn token(services: &str) -> String {
    let sas = Sas::Account(AccountSas {
        terms: Terms {
            version: "2019-02-02".to_owned(),
            permissions: "rwdlacup".to_owned(),
            start: String::new(),
            expiry: "2099-01-01T00:00:00Z".to_owned(),
            ip: String::new(),
            protocol: String::new(),
        },
        services: services.to_owned(),
        resource_types: "sco".to_owned(),
        encryption_scope: String::new(),
    });
    let account = Account::development();
    sas.to_query(&sas.sign(account.name.as_str(), &account.keys[0]))
}

async fn connect(address: &str, host: &str, method: &str, target: &str, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The whole answer as text.
async fn ask(address: &str, host: &str, method: &str, target: &str, body: &str) -> String {
    let more = format!("Content-Length: {}\r\n", body.len());
    let mut stream = connect(address, host, method, target, &more).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn check(answer: &str, parts: &[&str]) {
    for part in parts {
        assert!(answer.contains(part), "{part:?} is missing in\n{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_or_a_host_names_the_service() {
    let ground = Ground::new().await;
    let sas = token("tq");
    let path = format!("/devstoreaccount1/toys?{sas}");
    check(&ask(&ground.toys, "127.0.0.1", "GET", &path, "").await, &["200 OK", "toys of devstoreaccount1"]);
    check(&ask(&ground.tables, "127.0.0.1", "GET", &path, "").await, &["404", "TableNotFound"]);
    let host = "devstoreaccount1.queue.example.com";
    let answer = ask(&ground.tables, host, "GET", &format!("/toys?{sas}"), "").await;
    check(&answer, &["200 OK", "toys of devstoreaccount1"]);
    let host = "devstoreaccount1.table.example.com";
    check(
        &ask(&ground.toys, host, "GET", &format!("/Tables?{sas}"), "").await,
        &["200 OK", "odata.metadata"],
    );
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_refuses_in_its_own_words() {
    let ground = Ground::new().await;
    let path = |sas: &str| format!("/devstoreaccount1/broken?{sas}");
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path(&token("q")), "").await;
    check(&refused, &["418", "toy: ToyBroken"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path(&token("t")), "").await;
    check(&refused, &["403", "toy: AuthorizationServiceMismatch"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", "/devstoreaccount1/toys", "").await;
    check(&refused, &["403", "toy: AuthenticationFailed"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path("sig=x&sv=x"), "").await;
    check(&refused, &["toy: "]);
    ground.end().await;
}

const LOGGING: &str = "<?xml version=\"1.0\"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>\
<Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics></StorageServiceProperties>";

#[tokio::test(flavor = "multi_thread")]
async fn properties_logs_and_metrics_are_each_services_own() {
    let ground = Ground::new().await;
    let sas = token("tq");
    let set = format!("/devstoreaccount1/?restype=service&comp=properties&{sas}");
    check(&ask(&ground.toys, "127.0.0.1", "PUT", &set, LOGGING).await, &["202"]);
    let get = |address: String| {
        let target = set.clone();
        async move { ask(&address, "127.0.0.1", "GET", &target, "").await }
    };
    check(&get(ground.toys.clone()).await, &["<Read>true</Read>"]);
    check(&get(ground.tables.clone()).await, &["<Read>false</Read>"]);
    check(
        &ask(&ground.toys, "127.0.0.1", "GET", &format!("/devstoreaccount1/toys?{sas}"), "").await,
        &["200"],
    );
    check(
        &ask(&ground.tables, "127.0.0.1", "GET", &format!("/devstoreaccount1/Tables?{sas}"), "").await,
        &["200"],
    );
    let metrics = format!("/devstoreaccount1/$MetricsHourPrimaryTransactionsQueue()?{sas}");
    let mut shown = String::new();
    for _ in 0..100 {
        shown = ask(&ground.tables, "127.0.0.1", "GET", &metrics, "").await;
        if shown.contains("200 OK") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    check(&shown, &["200 OK"]);
    let logs = ground.end().await;
    let account = logs.path().join("devstoreaccount1");
    assert!(account.join("queue").is_dir() && !account.join("table").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_any_length_is_sent_in_little_memory() {
    const LENGTH: u64 = 64 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/stream/{LENGTH}?{}", token("q"));
    let mut stream = connect(&ground.toys, "127.0.0.1", "GET", &target, "").await;
    let mut buffer = vec![0; 1024 * 1024];
    // A client that does not read at first: what is made for it stays within the bound.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut received = 0_u64;
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    assert!(received > LENGTH && received < LENGTH + 4096, "{received}");
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_does_not_look_whole() {
    const LENGTH: usize = 4 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/cut/{LENGTH}?{}", token("q"));
    let mut stream = connect(&ground.toys, "127.0.0.1", "GET", &target, "").await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    check(&text, &["200 OK", &format!("content-length: {LENGTH}")]);
    assert!(text.len() < LENGTH, "{} bytes came", text.len());
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_any_length_is_taken_in_little_memory() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/sink?{}", token("q"));
    let more = format!("Content-Length: {LENGTH}\r\n");
    let mut stream = connect(&ground.toys, "127.0.0.1", "PUT", &target, &more).await;
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..LENGTH / piece.len() {
        stream.write_all(&piece).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    check(&answer, &["200 OK", &format!("{LENGTH} bytes")]);
    ground.end().await;
}
