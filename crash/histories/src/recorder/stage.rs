//! The servers of a run: one that it starts, and perhaps kills, or endpoints that are there.

use std::path::PathBuf;
use std::sync::Arc;

use common::ServiceKind;
use connection::Endpoint;
use tempfile::TempDir;
use tokio::sync::watch;

use super::client::Clock;
use super::killer::Killer;
use super::server::Server;
use crate::random::Random;

/// The servers to use.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server that this run starts, and kills if `kills` says so.
    Binary { path: PathBuf, kills: bool },
    /// Front ends of one store, with the authority to trust besides the system's.
    Endpoints { connection_strings: Vec<String>, authority: Option<PathBuf> },
}

/// Fields are dropped in this order, so that the server ends before its directory.
#[derive(Debug)]
pub struct Stage {
    pub killer: Option<Killer>,
    _server: Option<Server>,
    _data: TempDir,
    pub clock: Clock,
    pub is_up: watch::Receiver<bool>,
    /// Others use the store too.
    pub is_foreign: bool,
    connection_strings: Vec<String>,
    authority: Option<PathBuf>,
}

impl Stage {
    pub fn set(target: Target, seed: u64) -> Result<Self, String> {
        let data =
            tempfile::tempdir().map_err(|error| format!("can't make a temporary directory: {error}"))?;
        let (clock, (up, is_up)) = (Clock::start(), watch::channel(true));
        let is_foreign = matches!(target, Target::Endpoints { .. });
        let (mut killer, mut server) = (None, None);
        let (connection_strings, authority) = match target {
            Target::Binary { path, kills } => {
                let started = Server::start(&path, data.path())?;
                let strings = vec![started.connection_string.clone()];
                if kills {
                    killer = Some(Killer { server: started, random: Random::new(seed), clock, up });
                } else {
                    server = Some(started);
                }
                (strings, None)
            }
            Target::Endpoints { connection_strings, authority } => (connection_strings, authority),
        };
        Ok(Self {
            killer,
            _server: server,
            _data: data,
            clock,
            is_up,
            is_foreign,
            connection_strings,
            authority,
        })
    }

    /// Where clients of a service connect.
    pub fn targets(&self, service: ServiceKind) -> Result<Vec<Arc<connection::Target>>, String> {
        let target = |text: &String| {
            let endpoint = Endpoint::of(service, text).map_err(|error| error.to_string())?;
            let connector =
                || connection::connector(self.authority.as_deref()).map_err(|error| error.to_string());
            let tls = if endpoint.tls { Some(connector()?) } else { None };
            Ok(Arc::new(connection::Target { service, endpoint, tls }))
        };
        self.connection_strings.iter().map(target).collect()
    }
}
