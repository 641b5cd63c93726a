//! The cluster as this server sees it, for people: the servers that may write, and the nodes.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use model::{AccountName, ServiceKind};
use store::{Engine as _, StoredName, TableRef};
use tokio::time::Instant;

use crate::engine::CassandraEngine;
use crate::slot;
use crate::trouble::Trouble;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    pub keyspace: String,
    /// The slot of this server.
    pub slot: i64,
    /// The slots that are taken, in their order.
    pub servers: Vec<ServerView>,
    pub nodes: Vec<NodeView>,
    /// Of the first tables.
    pub tables: Vec<DirectoryView>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    pub slot: i64,
    pub table_lease_milliseconds: Option<i32>,
    /// It obeys the present freeze, and has no write in flight.
    pub is_frozen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub address: String,
    pub datacenter: Option<String>,
    pub rack: Option<String>,
    /// This server has a connection to it.
    pub is_connected: bool,
}

/// The directory of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryView {
    pub account: AccountName,
    pub table: StoredName,
    pub segments: usize,
}

/// Tables whose directories are shown: each takes a read or two.
const TABLES_MAX: usize = 50;
/// Directories that are read at once, and how long all of them may take. Those that are not read by then are left out.
const READ_AT_ONCE: usize = 8;
const DIRECTORIES_TIME_MAX: Duration = Duration::from_secs(1);

impl CassandraEngine {
    pub fn view(&self) -> BoxFuture<'_, Result<ClusterView, Trouble>> {
        Box::pin(async {
            let cluster = self.cluster();
            let servers = slot::servers(cluster, self.freeze_switch().present().await?).await?;
            let state = cluster.session.get_cluster_state();
            let nodes = state.get_nodes_info().iter().map(|node| NodeView {
                address: node.address.to_string(),
                datacenter: node.datacenter.clone(),
                rack: node.rack.clone(),
                is_connected: node.is_connected(),
            });
            let keyspace = cluster.session.get_keyspace();
            let keyspace = keyspace.map_or_else(String::new, |name| name.to_string());
            let (slot, nodes) = (cluster.clock.slot(), nodes.collect());
            Ok(ClusterView { keyspace, slot, servers, nodes, tables: self.directories().await })
        })
    }

    /// A table that can't be read now, or was dropped meanwhile, is left out.
    async fn directories(&self) -> Vec<DirectoryView> {
        let deadline = Instant::now() + DIRECTORIES_TIME_MAX;
        let mut tables = Vec::new();
        for account in self.list_accounts().await.unwrap_or_default() {
            let left = TABLES_MAX - tables.len();
            let Ok(page) = self.list_tables(&account, ServiceKind::Table, "", left).await else { continue };
            let of_account = |name| TableRef { account: account.clone(), service: ServiceKind::Table, name };
            tables.extend(page.names.into_iter().map(of_account));
            if tables.len() >= TABLES_MAX || Instant::now() >= deadline {
                break;
            }
        }
        let mut views = stream::iter(tables).map(|table| self.directory(table)).buffered(READ_AT_ONCE);
        let mut shown = Vec::new();
        while let Ok(Some(view)) = tokio::time::timeout_at(deadline, views.next()).await {
            shown.extend(view);
        }
        shown
    }

    async fn directory(&self, table: TableRef) -> Option<DirectoryView> {
        let found = self.table(&table).await.ok()?;
        let map = self.cluster().read_map(found.id).await.ok()??;
        let TableRef { account, name, .. } = table;
        Some(DirectoryView { account, table: name, segments: map.segments().len() })
    }
}
