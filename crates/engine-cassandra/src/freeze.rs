//! The freeze: a switch in the keyspace that makes all servers refuse writes, for a migration.
//!
//! Every server reads the switch regularly. When it is on, the server refuses writes, and when its last write is
//! answered it notes in its slot that it is quiet. The command that turned the switch on waits until all slots are
//! quiet. A server that does not respond loses its slot, and with it the right to write.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scylla::value::CqlValue;
use store::Error;
use uuid::Uuid;

use crate::cluster::{Cluster, Conditional, REQUEST_TIMEOUT};
use crate::lane::Lanes;
use crate::slot;
use crate::trouble::{Trouble, undecodable};

/// The pause between two checks whether all servers are quiet.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Freeze {
    cluster: Arc<Cluster>,
    lanes: Arc<Lanes>,
    /// The freeze that this server obeys.
    obeyed: Mutex<Option<Uuid>>,
    /// Writes in flight, without those in lanes.
    under_way: Arc<AtomicUsize>,
}

/// A write that was allowed to begin. It counts as in flight as long as this lives.
#[derive(Debug)]
pub struct WritePermit(Arc<AtomicUsize>);

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The stored switch. Each freeze has its own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    on: Option<bool>,
    name: Option<Uuid>,
}

impl Switch {
    fn frozen(self) -> Option<Uuid> {
        self.name.filter(|_| self.on == Some(true))
    }
}

impl Freeze {
    /// A server reads the switch once before its first write.
    pub fn new(cluster: Arc<Cluster>, lanes: Arc<Lanes>) -> Self {
        Self { cluster, lanes, obeyed: Mutex::default(), under_way: Arc::default() }
    }

    /// `Busy` while this server obeys a freeze. Until it does, the freeze is not complete.
    pub fn begin(&self) -> Result<WritePermit, Error> {
        // Counted before the check, so that a server with this write never counts as quiet.
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let pass = WritePermit(self.under_way.clone());
        if self.obeyed().is_some() { Err(Error::Busy) } else { Ok(pass) }
    }

    /// The present switch.
    pub async fn is_on(&self) -> Result<bool, Trouble> {
        Ok(self.read().await?.on == Some(true))
    }

    /// The freeze that is on now.
    pub async fn present(&self) -> Result<Option<Uuid>, Trouble> {
        Ok(self.read().await?.frozen())
    }

    /// Reads the switch and obeys it.
    pub async fn look(&self) -> Result<(), Trouble> {
        let frozen = self.read().await?.frozen();
        *self.obeyed.lock().unwrap_or_else(PoisonError::into_inner) = frozen;
        Ok(())
    }

    /// The freeze that this server obeys, once it has no write in flight.
    pub fn quiet(&self) -> Option<Uuid> {
        let obeyed = self.obeyed()?;
        (self.under_way.load(Ordering::SeqCst) == 0 && self.lanes.are_empty()).then_some(obeyed)
    }

    fn obeyed(&self) -> Option<Uuid> {
        *self.obeyed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self) -> Result<Switch, Trouble> {
        let rows = self.cluster.read(&self.cluster.statements.frozen, ()).await?;
        let row = rows
            .maybe_first_row::<(Option<bool>, Option<Uuid>)>()
            .map_err(undecodable("the switch that refuses writes"))?;
        Ok(row.map_or(Switch { on: None, name: None }, |(on, name)| Switch { on, name }))
    }

    /// When this returns, no server has a write in flight and none begins one.
    ///
    /// Of the writes that servers have ended, at most those whose answers were lost are still on their way to a node,
    /// for as long as a node goes on with a request. A server that starts now finds the switch on.
    pub async fn freeze(&self) -> Result<(), Trouble> {
        let name = self.set(true).await?;
        self.look().await?;
        while !slot::are_all_quiet(&self.cluster.link, name).await? {
            tokio::time::sleep(PAUSE).await;
        }
        tokio::time::sleep(REQUEST_TIMEOUT).await;
        Ok(())
    }

    pub async fn thaw(&self) -> Result<(), Trouble> {
        self.set(false).await?;
        self.look().await
    }

    /// The name of the last turning on.
    async fn set(&self, on: bool) -> Result<Uuid, Trouble> {
        let name = Uuid::new_v4();
        loop {
            let now = self.read().await?;
            if let (true, Some(name)) = (now.on == Some(on), now.name) {
                return Ok(name);
            }
            let values = vec![
                Some(CqlValue::Boolean(on)),
                Some(CqlValue::Uuid(name)),
                now.on.map(CqlValue::Boolean),
                now.name.map(CqlValue::Uuid),
            ];
            let step = Conditional { statement: &self.cluster.statements.set_frozen, values };
            let outcome = self.cluster.compare_and_set(vec![step]).await;
            match outcome {
                // Lost or not: the next look tells.
                Ok(_) | Err(Trouble::Unknown(_)) => {}
                Err(other) => return Err(other),
            }
        }
    }
}
