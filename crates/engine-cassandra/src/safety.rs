//! Checks that a cluster's settings keep acknowledged writes. Every node is asked before the first request is served.
//!
//! Cassandra's defaults are not safe enough. A node that loses its last seconds in a power failure also loses
//! promises that it made in the consensus, and then two writers can both be told that they succeeded.

use std::fmt;

use crate::session::ConnectError;

mod facts;

use facts::{Facts, NodeFacts};
pub use facts::{find, schema_version};

/// With this many replicas, a quorum is left when one of them is lost.
const REPLICAS_MIN: usize = 3;
const VERSION_MIN: (u32, u32) = (5, 0);
/// Servers and nodes exchange timestamps. If their clocks differ by more than this, one is not synchronized.
const CLOCK_SKEW_MAX_MILLISECONDS: i64 = 5_000;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Works, but should be changed.
    Advice,
    /// Works until something fails; then acknowledged writes can be lost.
    Unsafe,
    /// Can't work.
    Wrong,
}

/// One thing that is wrong with a cluster, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub weight: Weight,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// Whether a server would refuse to start on this cluster.
    pub fn is_refused(&self) -> bool {
        self.heaviest() >= Some(Weight::Unsafe)
    }

    /// Refuses unsafe findings, unless they are accepted, and wrong ones always. Logs the findings that it lets pass.
    pub fn judge(self, accept_unsafe: bool) -> Result<(), ConnectError> {
        match self.heaviest() {
            Some(Weight::Wrong) => Err(ConnectError::Wrong(self.of(Weight::Wrong))),
            Some(Weight::Unsafe) if !accept_unsafe => Err(ConnectError::Unsafe(self.of(Weight::Unsafe))),
            _ => {
                for Finding { weight, text } in &self.0 {
                    match weight {
                        Weight::Advice => tracing::warn!("{text}"),
                        _ => tracing::warn!("accepted with unsafe=true: {text}"),
                    }
                }
                Ok(())
            }
        }
    }

    fn heaviest(&self) -> Option<Weight> {
        self.0.iter().map(|finding| finding.weight).max()
    }

    fn of(self, weight: Weight) -> Self {
        Self(self.0.into_iter().filter(|finding| finding.weight == weight).collect())
    }

    fn add(&mut self, weight: Weight, text: impl Into<String>) {
        self.0.push(Finding { weight, text: text.into() });
    }
}

/// One finding on each line.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|finding| format!("  - {}", finding.text)).collect();
        f.write_str(&lines.join("\n"))
    }
}

fn assess(facts: &Facts) -> Findings {
    let mut found = Findings::default();
    schema(facts, &mut found);
    replication(facts, &mut found);
    for node in &facts.nodes {
        match &node.state {
            Ok(state) => settings(&node.address, state, &mut found),
            Err(why) => {
                found.add(Weight::Advice, format!("can't read the settings of node {}: {why}", node.address));
            }
        }
    }
    if let Some(wanted) = &facts.datacenter
        && !facts.nodes.iter().any(|node| node.datacenter.as_ref() == Some(wanted))
    {
        let mut there: Vec<&str> = facts.nodes.iter().filter_map(|node| node.datacenter.as_deref()).collect();
        there.sort_unstable();
        there.dedup();
        found.add(
            Weight::Wrong,
            format!("datacenter {wanted:?} has no nodes; the cluster has {}", there.join(", ")),
        );
    }
    found
}

fn schema(facts: &Facts, found: &mut Findings) {
    let keyspace = &facts.keyspace;
    match facts.schema_version {
        Some(version) if version == crate::schema::VERSION => {}
        Some(version) if version < crate::schema::VERSION => found.add(
            Weight::Wrong,
            format!(
                "keyspace {keyspace} has schema {version} and this program needs {}; stop the servers that use it and \
                 run `partita store init`",
                crate::schema::VERSION
            ),
        ),
        Some(version) => found.add(
            Weight::Wrong,
            format!(
                "keyspace {keyspace} has schema {version} and this program knows {}; run the release that made it",
                crate::schema::VERSION
            ),
        ),
        None => found.add(
            Weight::Wrong,
            format!("keyspace {keyspace} holds no tables of ours; make them with `partita store init`"),
        ),
    }
}

fn replication(facts: &Facts, found: &mut Findings) {
    let keyspace = &facts.keyspace;
    if !facts.durable_writes {
        found.add(
            Weight::Unsafe,
            format!(
                "keyspace {keyspace} writes no commit log; ALTER KEYSPACE {keyspace} WITH durable_writes = true"
            ),
        );
    }
    let replicas: usize = facts.replicas.iter().map(|(_, count)| count).sum();
    if replicas < REPLICAS_MIN {
        found.add(
            Weight::Unsafe,
            format!(
                "keyspace {keyspace} keeps {replicas} cop{} of everything and takes {REPLICAS_MIN} at least; \
                 ALTER KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'DATACENTER': \
                 {REPLICAS_MIN}}}, then nodetool repair",
                if replicas == 1 { "y" } else { "ies" }
            ),
        );
    }
    for (datacenter, count) in &facts.replicas {
        let is_in = |node: &&facts::Node| datacenter.is_none() || node.datacenter == *datacenter;
        let nodes = facts.nodes.iter().filter(is_in).count();
        if nodes < *count {
            let place =
                datacenter.as_ref().map_or("the cluster".to_owned(), |name| format!("datacenter {name:?}"));
            found.add(
                Weight::Unsafe,
                format!("keyspace {keyspace} wants {count} of its copies in {place}, which has {nodes} nodes; add nodes"),
            );
        }
    }
}

fn settings(address: &str, node: &NodeFacts, found: &mut Findings) {
    if !node
        .version
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok())
        .take(2)
        .ge([VERSION_MIN.0, VERSION_MIN.1])
    {
        found.add(
            Weight::Unsafe,
            format!(
                "node {address} is Cassandra {}; this program needs {}.{} or newer",
                node.version, VERSION_MIN.0, VERSION_MIN.1
            ),
        );
    }
    let setting =
        |name: &str| node.settings.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
    match setting("commitlog_sync") {
        Some("group" | "batch") => {}
        Some(other) => found.add(
            Weight::Unsafe,
            format!(
                "node {address} acknowledges writes before they are on its disk (commitlog_sync: {other}); set \
                 commitlog_sync: group and commitlog_sync_group_window: 2ms in its cassandra.yaml"
            ),
        ),
        None => found.add(Weight::Unsafe, unreadable(address, "commitlog_sync")),
    }
    match setting("paxos_variant") {
        Some("v2") => {}
        Some(other) => found.add(
            Weight::Unsafe,
            format!(
                "node {address} uses the older consensus, which is not safe while nodes join and leave \
                 (paxos_variant: {other}); set paxos_variant: v2 in its cassandra.yaml"
            ),
        ),
        None => found.add(Weight::Unsafe, unreadable(address, "paxos_variant")),
    }
    // What a node does when its disk fails. If it continues, it answers from what is left, as if that were everything.
    for (name, safe) in [
        ("disk_failure_policy", &["die", "stop", "stop_paranoid"][..]),
        ("commit_failure_policy", &["die", "stop", "stop_commit"]),
    ] {
        if let Some(other) = setting(name).filter(|value| !safe.contains(value)) {
            found.add(
                Weight::Unsafe,
                format!(
                    "node {address} continues when its disk fails ({name}: {other}); set {name}: stop in its \
                     cassandra.yaml"
                ),
            );
        }
    }
    if setting("paxos_state_purging") == Some("legacy") {
        found.add(
            Weight::Advice,
            format!(
                "node {address} discards old consensus state by the clock (paxos_state_purging: legacy); set \
                 paxos_state_purging: gc_grace in its cassandra.yaml"
            ),
        );
    }
    if let Some(ahead) = node.clock_ahead_milliseconds
        && ahead.abs() > CLOCK_SKEW_MAX_MILLISECONDS
    {
        let seconds = ahead.unsigned_abs() / 1000;
        let side = if ahead > 0 { "ahead of" } else { "behind" };
        found.add(
            Weight::Advice,
            format!(
                "the clock of node {address} is {seconds} s {side} this machine's; synchronize both with NTP"
            ),
        );
    }
}

fn unreadable(address: &str, setting: &str) -> String {
    format!(
        "node {address} does not say its {setting}; allow this server's role to read it: GRANT SELECT ON KEYSPACE \
         system_views TO ROLE"
    )
}

#[cfg(test)]
mod tests;
