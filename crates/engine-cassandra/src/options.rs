//! Where the cluster is and how to use it: what a `cassandra://` address says (`address` reads it).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::directory::Schedule;

/// The consistency of reads of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reads {
    /// Every read takes part in the consensus of its partition: what was seen once is seen by all later reads.
    #[default]
    Serial,
    /// Cheaper. Two reads of different rows may see a part of a transaction that is not answered yet.
    Quorum,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `host:port`; without a port, Cassandra's default.
    pub nodes: Vec<String>,
    pub keyspace: String,
    pub login: Option<Login>,
    pub tls: Option<Tls>,
    /// The datacenter whose nodes are used. Others are used only while these are down.
    pub datacenter: Option<String>,
    pub reads: Reads,
    /// How long a server may use what it has read about a table. Dropping a table takes a little longer than this.
    pub table_lease: Duration,
    pub janitor: Schedule,
    /// The limit of writes in flight.
    pub writes_under_way: usize,
    /// Whether waiting writes of one partition are combined.
    pub combine: bool,
    /// Accept settings under which an acknowledged write can be lost (`safety`).
    pub accept_unsafe: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: Password,
}

/// Never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    Text(String),
    /// A file that holds only the password. It is read when the session is opened.
    File(PathBuf),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities to trust, in PEM; without it, the system's.
    pub authority: Option<PathBuf>,
    /// This server's own certificate and key, in PEM, for a cluster that asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name in every node's certificate; without it, each certificate must have the IP address of its node.
    pub server_name: Option<String>,
}

impl Options {
    pub fn new(nodes: Vec<String>, keyspace: impl Into<String>) -> Self {
        Self {
            nodes,
            keyspace: keyspace.into(),
            login: None,
            tls: None,
            datacenter: None,
            reads: Reads::default(),
            table_lease: Duration::from_secs(1),
            janitor: Schedule::default(),
            writes_under_way: 256,
            combine: true,
            accept_unsafe: false,
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// For people: the address without secrets.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map_or(String::new(), |login| format!("{}@", login.user));
        write!(f, "cassandra://{user}{}/{}", self.nodes.join(","), self.keyspace)
    }
}
