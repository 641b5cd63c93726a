//! Clients that want the lease of the same blob: they ask for it, write with it and give it back; and some write without it.

use std::time::Duration;

use tokio::task::JoinSet;

use super::blob_exchange::BlobExchange;
use super::client::Client;
use super::killer::Killer;
use super::round::{Recorded, gather};
use super::wire::Message;
use crate::history::Time;
use crate::leases::LeaseEvent;
use crate::random::Random;

const TURNS: usize = 12;
/// The shortest that there is.
const LEASE_SECONDS: u64 = 15;
const SECOND: Time = 1_000_000_000;
/// Clocks of several servers agree to within a second.
const CERTAIN: Time = (LEASE_SECONDS - 1) * SECOND;
const PAUSE_MILLIS_MAX: usize = 20;
const BLOB: &str = "leased";

pub async fn record(
    clients: &mut Vec<Client<BlobExchange>>,
    killer: &mut Option<Killer>,
    container: &str,
    seed: u64,
) -> Result<Recorded<LeaseEvent>, String> {
    let first = clients.first_mut().ok_or("it takes at least one client")?;
    if first.exchange.status(&put(container, "")).await != Some(201) {
        // The store may be failing on purpose just now.
        return Ok(Recorded { operations: Vec::new(), kills: 0, strange: Vec::new() });
    }
    let mut tasks = JoinSet::new();
    for mut client in std::mem::take(clients) {
        let (random, container) = (Random::numbered(seed, u64::from(client.number)), container.to_owned());
        tasks.spawn(async move {
            let events = client.contend(&container, random).await;
            (client, events, None)
        });
    }
    Ok(gather(tasks, clients, killer).await?.0)
}

fn put(container: &str, lease: &str) -> Message {
    let (path, query) = (format!("/{container}/{BLOB}"), String::new());
    let headers = format!("{lease}x-ms-blob-type: BlockBlob\r\n");
    Message { method: "PUT", path, query, headers, body: Some("x".repeat(6000)) }
}

fn lease(container: &str, headers: String) -> Message {
    let (path, query) = (format!("/{container}/{BLOB}"), "comp=lease".to_owned());
    Message { method: "PUT", path, query, headers, body: Some(String::new()) }
}

impl Client<BlobExchange> {
    async fn contend(&mut self, container: &str, mut random: Random) -> Vec<LeaseEvent> {
        let (client, mut events) = (self.number, Vec::new());
        for turn in 0..TURNS {
            tokio::time::sleep(Duration::from_millis(random.below(PAUSE_MILLIS_MAX) as u64)).await;
            // An error means that this server is never killed.
            if self.up.has_changed().unwrap_or(false) {
                self.exchange.status(&put(container, "")).await;
            }
            let _ = self.up.wait_for(|up| *up).await;
            let asked = self.clock.now();
            if random.chance(25) {
                let written = self.exchange.status(&put(container, "")).await;
                if written == Some(201) {
                    events.push(LeaseEvent::Trespassed { client, from: asked, until: self.clock.now() });
                }
                continue;
            }
            let id = format!("00000000-0000-4000-8000-{:06}{:06}", client, turn);
            let acquire = format!(
                "x-ms-lease-action: acquire\r\nx-ms-lease-duration: {LEASE_SECONDS}\r\nx-ms-proposed-lease-id: {id}\r\n"
            );
            let acquired = self.exchange.status(&lease(container, acquire)).await;
            let from = self.clock.now();
            let header = format!("x-ms-lease-id: {id}\r\n");
            if acquired == Some(201) {
                let written = self.exchange.status(&put(container, &header)).await;
                tokio::time::sleep(Duration::from_millis(random.below(PAUSE_MILLIS_MAX) as u64)).await;
                let (until, end) = (self.clock.now(), asked + CERTAIN);
                if let Some(status @ 400..500) = written.filter(|_| until < end) {
                    events.push(LeaseEvent::Denied { client, at: until, status });
                }
                if from < end {
                    events.push(LeaseEvent::Held { client, from, until: until.min(end) });
                }
            }
            if acquired != Some(409) {
                // Also if nobody knows whether it was acquired; it ends by itself.
                let release = format!("{header}x-ms-lease-action: release\r\n");
                self.exchange.status(&lease(container, release)).await;
            }
        }
        events
    }
}
