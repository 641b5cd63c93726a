//! The distributed engine: tables on an Apache Cassandra cluster that any number of servers share.
//!
//! An account's partition is one Cassandra partition, and every write to it is one conditional batch, so the
//! cluster itself judges conditions and keeps transactions whole. Order across partitions comes from a
//! directory of partition keys, which an epoch in every partition keeps true (`directory`).

mod address;
mod cached;
mod catalog;
mod clock;
mod cluster;
mod counters;
mod directory;
mod engine;
mod freeze;
mod health;
mod keys;
mod lane;
mod narrow;
mod objects;
mod options;
mod partition;
mod plan;
mod replication;
mod retry;
mod roster;
mod round;
mod safety;
mod scan;
mod schema;
mod session;
mod slot;
mod statements;
#[cfg(test)]
mod test_keyspace;
mod tls;
mod trouble;
mod unknown;
mod view;

pub use address::{HostError, OptionsError};
pub use directory::Schedule;
pub use engine::CassandraEngine;
pub use objects::CassandraObjects;
pub use options::{Login, Options, Password, Reads, Tls};
pub use replication::{Replication, ReplicationError, init_store};
pub use safety::{Finding, Findings, Weight};
pub use schema::{InitError, SchemaChanges, init};
pub use session::{ConnectError, check as check_store, open as connect};
pub use tls::TlsError;
pub use trouble::Trouble;
pub use view::{ClusterView, DirectoryView, NodeView, ServerView};
