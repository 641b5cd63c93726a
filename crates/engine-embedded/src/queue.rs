//! The way to the committer: bounded in number and in bytes, so that overload is answered and not hoarded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use bytes::Bytes;
use store::{Error, Fault, Row};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::commit::{self, Answer, Request, Work};

/// Where requests are put in. The committer ends when the last one is dropped.
#[derive(Debug)]
pub struct Queue {
    sender: SyncSender<Request>,
    room: Arc<Room>,
}

/// Where the committer takes them out.
#[derive(Debug)]
pub struct Queued {
    receiver: Receiver<Request>,
}

pub fn queue(requests_max: usize, bytes_max: usize) -> (Queue, Queued) {
    // A bound of zero would be a rendezvous: every request that finds the committer at work would be `Busy`.
    let (sender, receiver) = mpsc::sync_channel(requests_max.max(1));
    let room = Arc::new(Room { bytes: AtomicUsize::new(0), bytes_max, large: Arc::new(Semaphore::new(1)) });
    (Queue { sender, room }, Queued { receiver })
}

impl Queue {
    /// Room for so many bytes, until the request they are for is answered.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Error> {
        let mut reserved = Reserved { room: self.room.clone(), bytes: 0, large: None };
        if reserved.grow(bytes) { Ok(reserved) } else { Err(Error::Busy) }
    }

    pub fn submit(&self, work: Work, reserved: Reserved) -> Result<oneshot::Receiver<Answer>, Error> {
        let weight = weigh(&work);
        let (reply, answer) = oneshot::channel();
        let request = Request { work, weight, reply, reserved };
        self.sender.try_send(request).map(|()| answer).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => Fault::bug("the committer has ended").into(),
        })
    }
}

impl Queued {
    /// `None` once nobody can send any more and all that was sent is taken.
    pub fn next_group(&self) -> Option<Vec<Request>> {
        commit::gather(&self.receiver)
    }
}

/// What requests may hold from before they read the rows they need until they are answered.
#[derive(Debug)]
struct Room {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Transactions that need more than `LARGE_BYTES` have room one at a time, however much that is.
    large: Arc<Semaphore>,
}

/// From here on a transaction waits for its turn, and does not take the room of many small ones.
pub const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// Room for one request, given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    room: Arc<Room>,
    bytes: usize,
    large: Option<OwnedSemaphorePermit>,
}

impl Reserved {
    /// False, and nothing is changed, if there is no room.
    pub fn grow(&mut self, bytes: usize) -> bool {
        if self.large.is_some() {
            return true;
        }
        let before = self.room.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Whatever its size, a request that is the only one is taken.
        if before > self.bytes && before.saturating_add(bytes) > self.room.bytes_max {
            self.room.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Whether so much more is for a large transaction, which has to wait for its turn first.
    pub fn would_be_large(&self, bytes: usize) -> bool {
        self.large.is_none() && self.bytes.saturating_add(bytes) > LARGE_BYTES
    }

    /// Waits for the turn of a large transaction. There is room for it then, whatever it needs.
    pub async fn become_large(&mut self) -> Result<(), Error> {
        let turn = self.room.large.clone().acquire_owned().await;
        // The semaphore is never closed.
        self.large = Some(turn.map_err(|_| Fault::bug("nobody gives turns to large transactions any more"))?);
        self.give_back();
        Ok(())
    }

    fn give_back(&mut self) {
        self.room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.give_back();
    }
}

pub fn weigh(work: &Work) -> usize {
    const SMALL: usize = 64;
    match work {
        Work::Apply(ahead) => ahead.weight(),
        Work::Create(_, metadata) => metadata.as_ref().map_or(0, Bytes::len) + SMALL,
        Work::ReplaceTableMetadata { expected, metadata, .. }
        | Work::ReplaceServiceMetadata { expected, metadata, .. } => {
            metadata.len() + expected.as_ref().map_or(0, Bytes::len) + SMALL
        }
        Work::Load(_, _, rows) => {
            let row = |row: &Option<Row>| row.as_ref().map_or(0, |row| row.as_bytes().len());
            rows.iter().map(|(_, stored)| row(stored) + SMALL).sum()
        }
        Work::Drop(_) | Work::Hide(_) | Work::Forget(_) => SMALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_large_transaction_at_a_time_and_small_ones_beside_it() {
        let (queue, _queued) = queue(10, 100);
        let mut large = queue.reserve(60).unwrap();
        assert!(queue.reserve(41).is_err() && queue.reserve(40).is_ok());
        assert!(!large.would_be_large(LARGE_BYTES - 60) && large.would_be_large(LARGE_BYTES - 59));
        large.become_large().await.unwrap();
        assert!(large.grow(usize::MAX) && !large.would_be_large(usize::MAX));
        let mut second = queue.reserve(100).unwrap();
        assert!(queue.reserve(1).is_err(), "the small ones share what there is");
        let waits = tokio::time::timeout(std::time::Duration::from_millis(1), second.become_large());
        assert!(waits.await.is_err());
        drop(large);
        second.become_large().await.unwrap();
        assert!(queue.reserve(100).is_ok());
    }

    #[test]
    fn a_request_alone_is_taken_whatever_its_size() {
        let (queue, _queued) = queue(10, 100);
        let mut alone = queue.reserve(1000).unwrap();
        assert!(alone.grow(1000) && queue.reserve(1).is_err());
        drop(alone);
        assert!(queue.reserve(1).is_ok());
    }
}
