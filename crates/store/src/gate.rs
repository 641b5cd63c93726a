//! The gate that all writes pass. In the last step of a migration it is closed: writes are refused, and reads continue.

use model::DateTime;
use tokio::sync::{RwLock, RwLockReadGuard};

use crate::Error;

/// Open until it is closed. Every write passes through it.
#[derive(Debug, Default)]
pub struct Gate {
    /// Locked for reading by every write while it runs. The time since which the gate is closed.
    closed: RwLock<Option<DateTime>>,
}

/// Permission to write, until dropped.
#[derive(Debug)]
pub struct WritePermit<'a> {
    _held: RwLockReadGuard<'a, Option<DateTime>>,
}

impl Gate {
    /// When this returns, all writes have ended, and none can begin before `open`. Returns the time of the closing,
    /// which tells one closing from another.
    pub async fn close(&self) -> DateTime {
        *self.closed.write().await.get_or_insert_with(DateTime::now)
    }

    /// Returns since when it was closed.
    pub async fn open(&self) -> Option<DateTime> {
        self.closed.write().await.take()
    }

    /// Also `None` while `close` is running.
    pub fn closed_since(&self) -> Option<DateTime> {
        self.closed.try_read().ok().and_then(|closed| *closed)
    }

    /// Every write takes a permit first and keeps it until it is done.
    pub async fn pass(&self) -> Result<WritePermit<'_>, Error> {
        let closed = self.closed.read().await;
        if closed.is_some() { Err(Error::Frozen) } else { Ok(WritePermit { _held: closed }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[tokio::test]
    async fn closing_waits_for_writes_under_way_and_lets_no_other_in() {
        let gate = Gate::default();
        let under_way = gate.pass().await.unwrap();
        let mut closing = pin!(gate.close());
        let mut context = Context::from_waker(Waker::noop());
        assert!(closing.as_mut().poll(&mut context).is_pending());
        let mut next = pin!(gate.pass());
        assert!(next.as_mut().poll(&mut context).is_pending(), "who comes later waits for the answer");
        drop(under_way);
        let Poll::Ready(since) = closing.as_mut().poll(&mut context) else { panic!("nothing is under way") };
        assert!(matches!(next.await, Err(Error::Frozen)));
        assert_eq!(gate.closed_since(), Some(since));
    }

    #[tokio::test]
    async fn a_closing_is_told_from_the_next_one() {
        let gate = Gate::default();
        let first = gate.close().await;
        assert_eq!(gate.close().await, first, "closed is closed");
        assert_eq!(gate.open().await, Some(first));
        assert_eq!(gate.open().await, None);
        assert!(gate.pass().await.is_ok());
        assert_ne!(gate.close().await, first);
    }
}
