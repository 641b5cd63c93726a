//! Reads what `safety` judges: from the cluster, and from each of its nodes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use scylla::client::session::Session;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::response::query_result::QueryRowsResult;
use scylla::statement::Consistency;
use scylla::statement::unprepared::Statement;
use scylla::value::CqlTimeuuid;

use super::{Findings, assess};
use crate::clock::unix_micros;
use crate::options::Options;
use crate::session::ConnectError;
use crate::trouble::{Trouble, undecodable};

const NODE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Facts {
    pub keyspace: String,
    pub durable_writes: bool,
    /// Copies in each datacenter; `None` stands for the whole cluster.
    pub replicas: Vec<(Option<String>, usize)>,
    /// `None`: the keyspace has no such table, or it is empty.
    pub schema_version: Option<i32>,
    /// The datacenter that the address names.
    pub datacenter: Option<String>,
    pub nodes: Vec<Node>,
}

#[derive(Debug)]
pub struct Node {
    pub address: String,
    pub datacenter: Option<String>,
    /// Or why it could not be read.
    pub state: Result<NodeFacts, Trouble>,
}

#[derive(Debug, Default)]
pub struct NodeFacts {
    pub version: String,
    pub settings: Vec<(String, String)>,
    pub clock_ahead_milliseconds: Option<i64>,
}

/// Everything that is wrong with the keyspace and its cluster.
pub async fn find(session: &Session, options: &Options) -> Result<Findings, ConnectError> {
    let keyspace = &options.keyspace;
    let text = "SELECT durable_writes, replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let rows = rows(session, statement(text, Consistency::One), (keyspace,)).await?;
    let row = rows.maybe_first_row::<(bool, HashMap<String, String>)>();
    let Some((durable_writes, replication)) = row.map_err(undecodable("the settings of the keyspace"))?
    else {
        return Err(ConnectError::KeyspaceMissing(keyspace.clone()));
    };
    let state = session.get_cluster_state();
    let nodes = state.get_nodes_info().iter().map(async |node| Node {
        address: node.address.to_string(),
        datacenter: node.datacenter.clone(),
        state: ask_node(session, node).await,
    });
    Ok(assess(&Facts {
        keyspace: keyspace.clone(),
        durable_writes,
        replicas: replicas(&replication),
        schema_version: schema_version(session, keyspace).await?,
        datacenter: options.datacenter.clone(),
        nodes: join_all(nodes).await,
    }))
}

/// The version that `init` has stored; `None` if it did not run yet.
pub async fn schema_version(session: &Session, keyspace: &str) -> Result<Option<i32>, Trouble> {
    let text = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    let found = rows(session, statement(text, Consistency::One), (keyspace, "schema_version")).await?;
    if found.rows_num() == 0 {
        return Ok(None);
    }
    let text = format!("SELECT version FROM {keyspace}.schema_version WHERE id = 0");
    // It is written by consensus, so it is read by consensus.
    let found = rows(session, statement(&text, Consistency::Serial), ()).await?;
    let row = found.maybe_first_row::<(Option<i32>,)>().map_err(undecodable("the version of the schema"))?;
    Ok(row.and_then(|(version,)| version))
}

/// Parses Cassandra's notation: `{'class': …, 'replication_factor': '3'}`, or a name and a number for each datacenter.
/// `3/1` means that one of the three copies is dropped when the others are in step, so it does not count.
fn replicas(replication: &HashMap<String, String>) -> Vec<(Option<String>, usize)> {
    let mut replicas: Vec<_> = replication
        .iter()
        .filter(|(name, _)| *name != "class")
        .map(|(name, count)| {
            let (all, transient) = count.split_once('/').unwrap_or((count, "0"));
            let number = |text: &str| text.trim().parse::<usize>().unwrap_or(0);
            let datacenter = (name != "replication_factor").then(|| name.clone());
            (datacenter, number(all).saturating_sub(number(transient)))
        })
        .collect();
    replicas.sort();
    replicas
}

async fn ask_node(session: &Session, node: &Arc<scylla::cluster::Node>) -> Result<NodeFacts, Trouble> {
    let ask = async |text: &str| {
        let mut statement = statement(text, Consistency::One);
        let policy = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node.clone()), None);
        statement.set_load_balancing_policy(Some(policy));
        rows(session, statement, ()).await
    };
    let before = unix_micros();
    let local = ask("SELECT release_version, now() FROM system.local").await?;
    let after = unix_micros();
    let (version, now): (String, CqlTimeuuid) =
        local.first_row().map_err(undecodable("the version of a node"))?;
    let settings = ask("SELECT name, value FROM system_views.settings WHERE name IN \
         ('commitlog_sync', 'paxos_variant', 'paxos_state_purging', 'disk_failure_policy', 'commit_failure_policy')")
    .await
    .map_err(|trouble| tracing::warn!(node = %node.address, %trouble, "can't read the settings of a node"));
    let settings = settings.ok().map_or(Ok(Vec::new()), |rows| {
        let rows = rows.rows::<(String, Option<String>)>().map_err(undecodable("the settings of a node"))?;
        let pairs = rows.filter_map(|row| row.map(|(name, value)| Some((name, value?))).transpose());
        pairs.collect::<Result<Vec<_>, _>>().map_err(undecodable("the settings of a node"))
    })?;
    Ok(NodeFacts { version, settings, clock_ahead_milliseconds: ahead(now, before, after) })
}

/// How far the node's clock is ahead of ours. `before` and `after` are our clock before and after its answer.
fn ahead(now: CqlTimeuuid, before: i64, after: i64) -> Option<i64> {
    let (seconds, nanos) = now.as_ref().get_timestamp()?.to_unix();
    let theirs = i64::try_from(seconds).ok()?.checked_mul(1_000_000)? + i64::from(nanos / 1000);
    // A time between the two may be exact.
    let micros = if theirs < before { theirs - before } else { (theirs - after).max(0) };
    Some(micros / 1000)
}

fn statement(text: &str, consistency: Consistency) -> Statement {
    let mut statement = Statement::new(text);
    statement.set_consistency(consistency);
    statement.set_is_idempotent(true);
    statement.set_request_timeout(Some(NODE_TIMEOUT));
    statement
}

async fn rows(
    session: &Session,
    statement: Statement,
    values: impl scylla::serialize::row::SerializeRow + Sync,
) -> Result<QueryRowsResult, Trouble> {
    let result = driver::query(session, statement, &values).await?;
    result.into_rows_result().map_err(undecodable("an answer about the cluster's settings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cassandras_notation_of_replication_is_parsed() {
        let check = |pairs: &[(&str, &str)], expected: &[(Option<&str>, usize)]| {
            let map = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let expected: Vec<_> =
                expected.iter().map(|(name, count)| (name.map(str::to_owned), *count)).collect();
            assert_eq!(replicas(&map), expected);
        };
        check(&[("class", "SimpleStrategy"), ("replication_factor", "3")], &[(None, 3)]);
        check(
            &[("class", "NetworkTopologyStrategy"), ("a", "3"), ("b", "2")],
            &[(Some("a"), 3), (Some("b"), 2)],
        );
        check(&[("class", "NetworkTopologyStrategy"), ("a", "3/1")], &[(Some("a"), 2)]);
        check(&[("class", "LocalStrategy")], &[]);
        check(&[("class", "SimpleStrategy"), ("replication_factor", "many")], &[(None, 0)]);
    }
}
