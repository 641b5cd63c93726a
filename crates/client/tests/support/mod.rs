//! Where to test: services that `scripts/client` starts and names in the environment.

#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use partita_client::{BlobService, Container, PublicAccess, RetryPolicy, Table, TableService};

/// Partita's connection string.
pub const PARTITA: &str = "PARTITA_CLIENT_TEST";
/// Azurite's.
pub const AZURITE: &str = "PARTITA_CLIENT_TEST_AZURITE";

/// Partita, if there is a server to test against.
pub fn service() -> Option<TableService> {
    named(PARTITA)
}

/// Every service there is: for what they have in common.
pub fn services() -> Vec<TableService> {
    [PARTITA, AZURITE].into_iter().filter_map(named).collect()
}

pub fn connection_string(name: &str) -> Option<String> {
    testing::needed(name, "scripts/client starts the services and sets their connection strings")
}

fn named(name: &str) -> Option<TableService> {
    let text = connection_string(name)?;
    Some(TableService::builder(&text).unwrap().retry(quick()).build().unwrap())
}

/// As by default, with pauses that a test has time for.
pub fn quick() -> RetryPolicy {
    RetryPolicy::default().pauses(Duration::from_millis(10), Duration::from_millis(100))
}

/// A name that no other test has.
pub fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}{now:x}x{}x{number}", std::process::id())
}

/// A table of a test's own, made just now.
pub async fn table(service: &TableService, name: &str) -> Table {
    let table = service.table(&unique(name)).unwrap();
    table.create().await.unwrap();
    table
}

/// The Blob service of every server there is.
pub fn blob_services() -> Vec<BlobService> {
    let named = |name| {
        let text = connection_string(name)?;
        Some(BlobService::builder(&text).unwrap().retry(quick()).build().unwrap())
    };
    [PARTITA, AZURITE].into_iter().filter_map(named).collect()
}

/// Whether it is Partita, and not Azurite, which deviates from the service in places.
pub fn is_partita(service: &BlobService) -> bool {
    let azurite = connection_string(AZURITE);
    azurite.is_none_or(|text| BlobService::from_connection_string(&text).unwrap().url() != service.url())
}

/// A container of a test's own, made just now.
pub async fn container(service: &BlobService, name: &str) -> Container {
    let container = service.container(&unique(name)).unwrap();
    container.create(&Default::default(), PublicAccess::Private).await.unwrap();
    container
}
