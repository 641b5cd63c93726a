//! `partita serve --store`: connects to a cluster.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use admin::{ClusterNode, ClusterSource, ClusterStatus, DirectorySegments, FrontEnd};
use engine_cassandra::{CassandraEngine, ClusterView, ConnectError, Options};
use thiserror::Error;
use tokio::time::Instant;

const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Waits for a cluster that does not answer yet, because servers and their cluster are often started together. Other
/// errors are permanent and are returned at once.
pub async fn connect(options: Options, wait: Duration) -> Result<CassandraEngine, ClusterError> {
    if sends_password_in_clear(&options) {
        tracing::warn!(
            "the password is sent to the cluster without TLS, so others on the network can read it; add \
             tls=true"
        );
    }
    let deadline = Instant::now() + wait;
    let mut pause = RETRY_MIN;
    loop {
        let error = match CassandraEngine::connect(options.clone()).await {
            Ok(engine) => return Ok(engine),
            Err(error) => error,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if !error.is_temporary() || left.is_zero() {
            return Err(ClusterError::new(error, wait));
        }
        tracing::warn!(%error, seconds_left = left.as_secs(), "the cluster can't be used yet; retrying");
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// The state of the cluster, for the console.
pub fn source(engine: Arc<CassandraEngine>) -> ClusterSource {
    ClusterSource::new(move || {
        let engine = engine.clone();
        async move { engine.view().await.map(shown).map_err(|trouble| trouble.to_string()) }
    })
}

fn shown(view: ClusterView) -> ClusterStatus {
    let this = view.slot;
    let front_ends = view.servers.into_iter().map(|server| FrontEnd {
        slot: server.slot,
        this: server.slot == this,
        table_lease_ms: server.table_lease_milliseconds,
        frozen: server.is_frozen,
    });
    let nodes = view.nodes.into_iter().map(|node| ClusterNode {
        address: node.address,
        datacenter: node.datacenter,
        rack: node.rack,
        up: node.is_connected,
    });
    let segments = view.tables.into_iter().map(|directory| DirectorySegments {
        account: directory.account.to_string(),
        table: directory.table.to_string(),
        segments: directory.segments,
    });
    ClusterStatus {
        segments: segments.collect(),
        keyspace: view.keyspace,
        slot: this,
        front_ends: front_ends.collect(),
        nodes: nodes.collect(),
    }
}

#[derive(Debug, Error)]
pub enum ClusterError {
    #[error("{source} (gave up after {} s; --store-wait-seconds sets a longer wait)", .waited.as_secs())]
    Unready { source: ConnectError, waited: Duration },
    #[error(transparent)]
    Refused(ConnectError),
}

impl ClusterError {
    fn new(source: ConnectError, waited: Duration) -> Self {
        if source.is_temporary() { Self::Unready { source, waited } } else { Self::Refused(source) }
    }
}

/// Whether the password goes to another machine without TLS.
fn sends_password_in_clear(options: &Options) -> bool {
    let is_here = |node: &String| {
        let host = node.rsplit_once(':').map_or(node.as_str(), |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    options.login.is_some() && options.tls.is_none() && !options.nodes.iter().all(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_clear_only_without_tls_and_to_other_machines() {
        let check = |address: &str, expected| {
            let options = Options::from_address(address).unwrap();
            assert_eq!(sends_password_in_clear(&options), expected, "{address}");
        };
        check("cassandra://u:p@10.0.0.1/k", true);
        check("cassandra://u:p@127.0.0.1,db/k", true);
        check("cassandra://u:p@10.0.0.1/k?tls=true", false);
        check("cassandra://u:p@127.0.0.1:9042,localhost/k", false);
        check("cassandra://10.0.0.1/k", false);
    }
}
