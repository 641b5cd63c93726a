//! The queue of the committer. It is limited in requests and bytes, so that an overloaded engine answers `Busy`.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use bytes::Bytes;
use store::{Error, Fault, Row};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::commit::{self, Work, WriteAnswer, WriteRequest};

/// The sender's side. The committer ends when the last one is dropped.
#[derive(Debug)]
pub struct Queue {
    sender: SyncSender<WriteRequest>,
    room: Arc<Room>,
}

/// The committer's side.
#[derive(Debug)]
pub struct QueueReceiver {
    receiver: Receiver<WriteRequest>,
    room: Arc<Room>,
}

pub fn queue(requests_max: usize, bytes_max: usize) -> (Queue, QueueReceiver) {
    // With a capacity of zero, every request that arrives while the committer works would be `Busy`.
    let (sender, receiver) = mpsc::sync_channel(requests_max.max(1));
    let room = Arc::new(Room {
        requests: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        bytes_max,
        large: Arc::new(Semaphore::new(1)),
        contended: Arc::new(Semaphore::new(1)),
    });
    (Queue { sender, room: room.clone() }, QueueReceiver { receiver, room })
}

impl Queue {
    /// Reserves memory for a request until it is answered.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Error> {
        let mut reserved = Reservation { room: self.room.clone(), bytes: 0, large: None };
        if reserved.grow(bytes) { Ok(reserved) } else { Err(Error::Busy) }
    }

    /// The turn of a transaction that the committer has returned. One at a time reads its rows again and is
    /// committed, so that they do not change the rows under each other.
    pub fn contended_turn(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, Fault>> + Send + use<> {
        // The future must not hold the queue: the committer ends when the queue is dropped.
        let turn = self.room.contended.clone().acquire_owned();
        // The semaphore is never closed.
        async move { turn.await.map_err(|_| Fault::bug("the semaphore of returned transactions was closed")) }
    }

    pub fn submit(&self, work: Work, reserved: Reservation) -> Result<oneshot::Receiver<WriteAnswer>, Error> {
        let weight = weigh(&work);
        let (reply, answer) = oneshot::channel();
        let request = WriteRequest { work, weight, reply, reserved };
        // Before it is sent: the committer may take it at once.
        self.room.requests.fetch_add(1, Ordering::Relaxed);
        self.sender.try_send(request).map(|()| answer).map_err(|refused| {
            self.room.requests.fetch_sub(1, Ordering::Relaxed);
            match refused {
                TrySendError::Full(_) => Error::Busy,
                TrySendError::Disconnected(_) => Fault::bug("the committer has ended").into(),
            }
        })
    }

    /// Requests that wait for the committer, and the memory that is reserved for them and for those that it works on.
    pub fn load(&self) -> (usize, usize) {
        (self.room.requests.load(Ordering::Relaxed), self.room.bytes.load(Ordering::Relaxed))
    }
}

impl QueueReceiver {
    /// `None` once all senders are dropped and all requests are taken.
    pub fn next_group(&self) -> Option<Vec<WriteRequest>> {
        let group = commit::gather(&self.receiver)?;
        self.room.requests.fetch_sub(group.len(), Ordering::Relaxed);
        Some(group)
    }
}

/// The memory that requests reserve, from before they read their rows until they are answered.
#[derive(Debug)]
struct Room {
    /// Requests in the queue.
    requests: AtomicUsize,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Transactions above `LARGE_BYTES` take turns. The one that has its turn may use any amount.
    large: Arc<Semaphore>,
    contended: Arc<Semaphore>,
}

/// Above this a transaction waits for its turn, instead of taking the memory of many small ones.
pub const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// Memory reserved for one request; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    room: Arc<Room>,
    bytes: usize,
    large: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// False, without a change, if there is not enough left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        if self.large.is_some() {
            return true;
        }
        let before = self.room.bytes.fetch_add(bytes, Ordering::Relaxed);
        // A request that is alone is accepted whatever its size.
        if before > self.bytes && before.saturating_add(bytes) > self.room.bytes_max {
            self.room.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Whether this many more bytes make it a large transaction, which has to wait for its turn.
    pub fn would_be_large(&self, bytes: usize) -> bool {
        self.large.is_none() && self.bytes.saturating_add(bytes) > LARGE_BYTES
    }

    /// Waits for the turn of a large transaction. From then on it may use any amount.
    pub async fn become_large(&mut self) -> Result<(), Error> {
        let turn = self.room.large.clone().acquire_owned().await;
        // The semaphore is never closed.
        self.large = Some(turn.map_err(|_| Fault::bug("the semaphore of large transactions was closed"))?);
        self.give_back();
        Ok(())
    }

    fn give_back(&mut self) {
        self.room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back();
    }
}

pub fn weigh(work: &Work) -> usize {
    const SMALL: usize = 64;
    match work {
        Work::Apply(prepared) => prepared.weight(),
        Work::Create(_, metadata) => metadata.as_ref().map_or(0, Bytes::len) + SMALL,
        Work::ReplaceTableMetadata { expected, metadata, .. }
        | Work::ReplaceServiceMetadata { expected, metadata, .. } => {
            metadata.len() + expected.as_ref().map_or(0, Bytes::len) + SMALL
        }
        Work::Load(_, _, rows) => {
            let row = |row: &Option<Row>| row.as_ref().map_or(0, |row| row.as_bytes().len());
            rows.iter().map(|(_, stored)| row(stored) + SMALL).sum()
        }
        Work::DropIf { expected, .. } => expected.as_ref().map_or(0, Bytes::len) + SMALL,
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
        assert!(queue.reserve(1).is_err(), "the small ones share the limit");
        let waits = tokio::time::timeout(std::time::Duration::from_millis(1), second.become_large());
        assert!(waits.await.is_err());
        drop(large);
        second.become_large().await.unwrap();
        assert!(queue.reserve(100).is_ok());
    }

    #[test]
    fn what_waits_is_counted_until_it_is_taken() {
        let (queue, queued) = queue(2, 1000);
        let submit = || queue.submit(Work::Forget(Vec::new()), queue.reserve(100).unwrap());
        let _answers = (submit().unwrap(), submit().unwrap());
        assert!(submit().is_err(), "the queue is full");
        assert_eq!(queue.load(), (2, 200));
        let group = queued.next_group().unwrap();
        assert_eq!((group.len(), queue.load()), (2, (0, 200)));
        drop(group);
        assert_eq!(queue.load(), (0, 0));
    }

    #[test]
    fn a_request_alone_is_accepted_whatever_its_size() {
        let (queue, _queued) = queue(10, 100);
        let mut alone = queue.reserve(1000).unwrap();
        assert!(alone.grow(1000) && queue.reserve(1).is_err());
        drop(alone);
        assert!(queue.reserve(1).is_ok());
    }
}
