//! A switch that all servers of a keyspace obey: while it is on, nothing is written. For moving house.
//!
//! Every server looks at the switch all the time. One that finds it on refuses writes from then on, and when the last
//! one it had begun is answered it notes in its slot that it is quiet. Whoever turned the switch on waits until all
//! slots say so. A server that is not heard of loses its slot, and with it the right to send what it may still hold.

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

/// Between two looks at the slots of servers that are still to become quiet.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Freeze {
    cluster: Arc<Cluster>,
    lanes: Arc<Lanes>,
    /// Which turning on of the switch this server has seen and obeys.
    obeyed: Mutex<Option<Uuid>>,
    /// Writes begun and not answered, apart from those in lanes.
    under_way: Arc<AtomicUsize>,
}

/// A write that was let begin. It is under way for as long as this lives.
#[derive(Debug)]
pub struct Pass(Arc<AtomicUsize>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The switch as it is stored. Each turning on has a name of its own.
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
    /// A server looks once before it takes its first write.
    pub fn new(cluster: Arc<Cluster>, lanes: Arc<Lanes>) -> Self {
        Self { cluster, lanes, obeyed: Mutex::default(), under_way: Arc::default() }
    }

    /// `Busy` while this server obeys the switch. Before it does, whoever turned it on waits for this server.
    pub fn begin(&self) -> Result<Pass, Error> {
        // Counted before the question, so that nobody who asks whether all is quiet overlooks this one.
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let pass = Pass(self.under_way.clone());
        if self.obeyed().is_some() { Err(Error::Busy) } else { Ok(pass) }
    }

    /// As it is now.
    pub async fn is_on(&self) -> Result<bool, Trouble> {
        Ok(self.read().await?.on == Some(true))
    }

    /// Looks at the switch, and obeys it.
    pub async fn look(&self) -> Result<(), Trouble> {
        let frozen = self.read().await?.frozen();
        *self.obeyed.lock().unwrap_or_else(PoisonError::into_inner) = frozen;
        Ok(())
    }

    /// The turning on of the switch that this server obeys, once it has no write under way.
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

    /// When this has answered, no server has a write under way and none begins one.
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
