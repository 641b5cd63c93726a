//! A server of tables and toys in this process, and requests to it as text.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::AccountName;
use common::throttle::{Targets, Throttle};
use front::account::{Account, Accounts, SharedAccounts};
use front::analytics::{Analytics, LogHour, LogLines, LogStore, LogStoreError};
use front::bearer::{Bearer, SharedBearer};
use front::metrics::Metrics;
use front::{AnyService, Bounds, Listener, Seats, Server, ServiceKind, Services, SlowQueries};
use protocol::signing::sas::{AccountSas, Sas, Terms};
use service::Service;
use store::{Engine, Gate, MemoryEngine};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::toy::Toy;

const MEMORY_BYTES: usize = 512 * 1024;

/// Request logs in memory.
#[derive(Default)]
pub struct Shelf(Mutex<Vec<LogLines>>);

impl Shelf {
    /// The services that have logs.
    pub fn services(&self) -> Vec<ServiceKind> {
        let mut services: Vec<_> = self.0.lock().unwrap().iter().map(|lines| lines.of.service).collect();
        services.dedup();
        services
    }
}

#[async_trait]
impl LogStore for Shelf {
    async fn prepare(&self, _: &AccountName) -> Result<(), LogStoreError> {
        Ok(())
    }

    async fn append(&self, lines: LogLines) -> Result<(), LogStoreError> {
        self.0.lock().unwrap().push(lines);
        Ok(())
    }

    async fn expire(&self, _: &LogHour) -> Result<u64, LogStoreError> {
        Ok(0)
    }
}

/// A server of both services, each on a port of its own.
pub struct Ground {
    pub tables: String,
    pub toys: String,
    logs: Arc<Shelf>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

impl Ground {
    pub async fn new() -> Self {
        Self::on(Arc::new(MemoryEngine::new())).await
    }

    pub async fn on(engine: Arc<dyn Engine>) -> Self {
        Self::start(engine, None).await
    }

    /// Both services draw from the same buckets.
    pub async fn throttled(targets: Targets) -> Self {
        Self::start(Arc::new(MemoryEngine::new()), Some(Arc::new(Throttle::new(targets)))).await
    }

    async fn start(engine: Arc<dyn Engine>, throttle: Option<Arc<Throttle>>) -> Self {
        let gate = Arc::new(Gate::default());
        let logs = Arc::new(Shelf::default());
        let tables = Listener::bind(ServiceKind::Table, "127.0.0.1:0", None).await.unwrap();
        let toys = Listener::bind(ServiceKind::Queue, "127.0.0.1:0", None).await.unwrap();
        let mut service = Service::new(engine.clone()).gated(gate.clone());
        if let Some(throttle) = &throttle {
            service = service.throttled(throttle.clone());
        }
        let toy = AnyService::new(Toy { throttle });
        let services = Services::new()
            .with(table_http::behind_front(service, table_http::Extensions::default()))
            .with(toy);
        let metrics = Metrics::new(&services);
        let server = Server {
            services,
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
            memory: front::Memory::new(MEMORY_BYTES),
            analytics: Analytics::new(Some(logs.clone())),
            metrics,
            traces: None,
            slow_queries: SlowQueries::default(),
            seats: Seats::here(),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (at_tables, at_toys) = (tables.address().to_string(), toys.address().to_string());
        let served = tokio::task::spawn_blocking(move || {
            let stop = Box::pin(async { drop(stopped.await) });
            tokio::runtime::Handle::current().block_on(server.run(vec![tables, toys], stop));
        });
        Self { tables: at_tables, toys: at_toys, logs, stop: Some(stop), served }
    }

    /// Stops the server. Its logs remain.
    pub async fn end(mut self) -> Arc<Shelf> {
        drop(self.stop.take());
        self.served.await.unwrap();
        self.logs
    }
}

/// A token for everything in these services.
pub fn token(services: &str) -> String {
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

pub async fn connect(address: &str, host: &str, method: &str, target: &str, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The whole answer as text.
pub async fn ask(address: &str, host: &str, method: &str, target: &str, body: &str) -> String {
    let more = format!("Content-Length: {}\r\n", body.len());
    let mut stream = connect(address, host, method, target, &more).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub fn check(answer: &str, parts: &[&str]) {
    for part in parts {
        assert!(answer.contains(part), "{part:?} is missing in\n{answer}");
    }
}
