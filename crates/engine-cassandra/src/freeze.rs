//! A switch that all servers of a keyspace obey: while it is on, nothing is written. For moving house.

use std::sync::Arc;
use std::time::Duration;

use scylla::value::CqlValue;
use store::Error;

use crate::cached::Cached;
use crate::cluster::{Cluster, Conditional, REQUEST_TIMEOUT};
use crate::trouble::Trouble;
use crate::{round, slot};

/// As long as a write that a server has begun may still be under way.
const WRITES_END: Duration = round::DEADLINE.saturating_add(REQUEST_TIMEOUT);

#[derive(Debug)]
pub struct Freeze {
    cluster: Arc<Cluster>,
    lease: Duration,
    known: Cached<(), bool>,
}

impl Freeze {
    pub fn new(cluster: Arc<Cluster>, lease: Duration) -> Self {
        Self { cluster, lease, known: Cached::new(lease) }
    }

    /// `Busy` while the switch is on, as it was at most a lease ago.
    pub async fn check(&self) -> Result<(), Error> {
        match self.known.get(&(), || async { self.read().await.map(|on| Some(on == Some(true))) }).await? {
            Some(true) => Err(Error::Busy),
            _ => Ok(()),
        }
    }

    /// As it is now.
    pub async fn is_on(&self) -> Result<bool, Trouble> {
        Ok(self.read().await? == Some(true))
    }

    async fn read(&self) -> Result<Option<bool>, Trouble> {
        let rows = self.cluster.read(&self.cluster.statements.frozen, ()).await?;
        let row =
            rows.maybe_first_row::<(Option<bool>,)>().map_err(|error| Trouble::fault(error.to_string()))?;
        Ok(row.and_then(|(on,)| on))
    }

    /// When this has answered, no server has a write under way and none begins one.
    ///
    /// A server that has given its slot back has ended its writes; of those, at most one whose answer was lost is still on
    /// its way to a node. One that starts now finds the switch on.
    pub async fn freeze(&self) -> Result<(), Trouble> {
        self.set(true).await?;
        let others = slot::are_others_held(&self.cluster.link, self.cluster.clock.slot()).await?;
        tokio::time::sleep(self.lease + if others { WRITES_END } else { REQUEST_TIMEOUT }).await;
        Ok(())
    }

    pub async fn thaw(&self) -> Result<(), Trouble> {
        self.set(false).await
    }

    async fn set(&self, on: bool) -> Result<(), Trouble> {
        loop {
            let now = self.read().await?;
            if now == Some(on) {
                return Ok(());
            }
            let values = vec![Some(CqlValue::Boolean(on)), now.map(CqlValue::Boolean)];
            let step = Conditional { statement: &self.cluster.statements.set_frozen, values };
            let outcome = self.cluster.compare_and_set(vec![step]).await;
            self.known.forget(&());
            match outcome {
                // Lost or not: the next look tells.
                Ok(_) | Err(Trouble::Unknown(_)) => {}
                Err(other) => return Err(other),
            }
        }
    }
}
