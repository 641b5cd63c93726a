//! Where the cluster shows the settings that the check at start reads.

use std::collections::HashMap;

use crate::lwt_contract::ground::partition;

#[tokio::test]
async fn settings_that_decide_safety_are_found_by_name() {
    let Some(p) = partition().await else { return };
    for (name, allowed) in [
        ("paxos_variant", ["v1", "v2"].as_slice()),
        ("commitlog_sync", &["periodic", "batch", "group"]),
        ("paxos_state_purging", &["legacy", "gc_grace", "repaired"]),
    ] {
        let text = "SELECT value FROM system_views.settings WHERE name = ?";
        let result = p.session.query_unpaged(text, (name,)).await.unwrap();
        let lines = p.show(result);
        assert!(allowed.contains(&lines[1].as_str()), "{name}: {lines:?}");
    }
}

#[tokio::test]
async fn time_limits_are_in_milliseconds() {
    let Some(p) = partition().await else { return };
    for name in ["cas_contention_timeout", "write_request_timeout", "read_request_timeout"] {
        let text = "SELECT value FROM system_views.settings WHERE name = ?";
        let result = p.session.query_unpaged(text, (name,)).await.unwrap();
        let lines = p.show(result);
        let number = lines[1].strip_suffix("ms").and_then(|number| number.parse::<u64>().ok());
        // The engine waits 12 s for a conditional write: longer than the node's own limits together.
        assert!(number.is_some_and(|ms| ms < 12_000), "{name}: {lines:?}");
    }
}

#[tokio::test]
async fn the_replication_of_a_keyspace_is_a_map_of_texts() {
    let Some(p) = partition().await else { return };
    let text = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'partita_lwt_contract'";
    let rows = p.session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap();
    let (replication,): (HashMap<String, String>,) = rows.single_row().unwrap();
    assert_eq!(replication["class"], "org.apache.cassandra.locator.SimpleStrategy");
    assert!(replication["replication_factor"].parse::<u32>().is_ok(), "{replication:?}");
}

#[tokio::test]
async fn every_node_shows_its_version() {
    let Some(p) = partition().await else { return };
    let mut versions = Vec::new();
    for table in ["system.local", "system.peers_v2"] {
        let result =
            p.session.query_unpaged(format!("SELECT release_version FROM {table}"), ()).await.unwrap();
        versions.extend(p.show(result).split_off(1));
    }
    assert_eq!(versions.len(), p.session.get_cluster_state().get_nodes_info().len());
    assert!(versions.iter().all(|version| version.starts_with("5.")), "{versions:?}");
}
