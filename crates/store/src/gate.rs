//! Whether writes are let through. While the data moves to another store, writes are refused and reads go on.

use model::DateTime;
use tokio::sync::{RwLock, RwLockReadGuard};

use crate::Error;

/// Open, until it is closed; everyone who writes passes through it.
#[derive(Debug, Default)]
pub struct Gate {
    /// Held by every write for as long as it takes.
    closed: RwLock<Option<DateTime>>,
}

/// Permission to write, until dropped.
#[derive(Debug)]
pub struct Pass<'a> {
    _held: RwLockReadGuard<'a, Option<DateTime>>,
}

impl Gate {
    /// Once this is answered, every write that was let through has ended, and none is until `open`. Gives the time
    /// since when that is so, which tells one closing from another.
    pub async fn close(&self) -> DateTime {
        *self.closed.write().await.get_or_insert_with(DateTime::now)
    }

    /// Since when it had been closed.
    pub async fn open(&self) -> Option<DateTime> {
        self.closed.write().await.take()
    }

    /// Also `None` while `close` is running.
    pub fn closed_since(&self) -> Option<DateTime> {
        self.closed.try_read().ok().and_then(|closed| *closed)
    }

    /// Every write takes a pass first and keeps it until it is done.
    pub async fn pass(&self) -> Result<Pass<'_>, Error> {
        let closed = self.closed.read().await;
        if closed.is_some() { Err(Error::Frozen) } else { Ok(Pass { _held: closed }) }
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
