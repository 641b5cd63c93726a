//! How many copies a new keyspace keeps and where, and how it is created from an address.

use std::fmt;

use futures_util::future::BoxFuture;
use scylla::client::session::Session;

use crate::options::Options;
use crate::schema::{self, InitError, SchemaChanges};
use crate::session;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replication {
    /// This many in every datacenter.
    Everywhere(usize),
    /// This many in each of these datacenters.
    In(Vec<(String, usize)>),
}

/// Why a cluster can't keep this many copies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicationError {
    #[error(
        "datacenter {datacenter:?} has {nodes} of the {copies} nodes that the copies need; add nodes, or set \
         another number"
    )]
    TooFewNodes { datacenter: String, nodes: usize, copies: usize },
    #[error("the cluster has no datacenter {datacenter:?}; it has {}", .known.join(", "))]
    NoDatacenter { datacenter: String, known: Vec<String> },
}

/// The map that CREATE KEYSPACE takes.
impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{'class': 'NetworkTopologyStrategy'")?;
        match self {
            Self::Everywhere(count) => write!(f, ", 'replication_factor': {count}")?,
            Self::In(datacenters) => {
                for (name, count) in datacenters {
                    write!(f, ", '{}': {count}", name.replace('\'', "''"))?;
                }
            }
        }
        f.write_str("}")
    }
}

/// Creates what is missing in the keyspace that the address names. Does nothing if it is complete.
pub fn init_store<'a>(
    options: &'a Options,
    replication: &'a Replication,
) -> BoxFuture<'a, Result<SchemaChanges, InitError>> {
    Box::pin(init_with(options, replication))
}

async fn init_with(options: &Options, replication: &Replication) -> Result<SchemaChanges, InitError> {
    let session = session::open(options).await?;
    fits(&session, replication)?;
    schema::init(&session, &options.keyspace, &replication.to_string()).await
}

/// Cassandra would create a keyspace with more copies than nodes, and then refuse every write.
fn fits(session: &Session, replication: &Replication) -> Result<(), ReplicationError> {
    let state = session.get_cluster_state();
    let mut nodes = std::collections::BTreeMap::<&str, usize>::new();
    for node in state.get_nodes_info() {
        *nodes.entry(node.datacenter.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let wanted: Vec<(&str, usize)> = match replication {
        Replication::Everywhere(count) => nodes.keys().map(|name| (*name, *count)).collect(),
        Replication::In(datacenters) => {
            datacenters.iter().map(|(name, count)| (name.as_str(), *count)).collect()
        }
    };
    for (name, count) in wanted {
        match nodes.get(name) {
            Some(there) if *there >= count => {}
            Some(there) => {
                let (datacenter, nodes) = (name.to_owned(), *there);
                return Err(ReplicationError::TooFewNodes { datacenter, nodes, copies: count });
            }
            None => {
                let known = nodes.keys().map(|name| (*name).to_owned()).collect();
                return Err(ReplicationError::NoDatacenter { datacenter: name.to_owned(), known });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replication_is_written_in_cql() {
        for (replication, expected) in [
            (Replication::Everywhere(3), "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"),
            (
                Replication::In(vec![("a".into(), 3), ("o'b".into(), 2)]),
                "{'class': 'NetworkTopologyStrategy', 'a': 3, 'o''b': 2}",
            ),
        ] {
            assert_eq!(replication.to_string(), expected);
        }
    }
}
