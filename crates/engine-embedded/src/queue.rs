//! The way to the committer: bounded in number and in bytes, so that overload is answered and not hoarded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use store::{Error, Fault, Row};
use tokio::sync::oneshot;

use crate::commit::{self, Answer, Request, Work};

/// Where requests are put in. The committer ends when the last one is dropped.
#[derive(Debug)]
pub struct Queue {
    sender: SyncSender<Request>,
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// Where the committer takes them out.
#[derive(Debug)]
pub struct Queued {
    receiver: Receiver<Request>,
    bytes: Arc<AtomicUsize>,
}

pub fn queue(requests_max: usize, bytes_max: usize) -> (Queue, Queued) {
    // A bound of zero would be a rendezvous: every request that finds the committer at work would be `Busy`.
    let (sender, receiver) = mpsc::sync_channel(requests_max.max(1));
    let bytes = Arc::new(AtomicUsize::new(0));
    (Queue { sender, bytes: bytes.clone(), bytes_max }, Queued { receiver, bytes })
}

impl Queue {
    pub fn submit(&self, work: Work) -> Result<oneshot::Receiver<Answer>, Error> {
        let weight = weigh(&work);
        // Whatever its size, a request alone in the queue is taken.
        let before = self.bytes.fetch_add(weight, Ordering::Relaxed);
        if before > 0 && before + weight > self.bytes_max {
            self.bytes.fetch_sub(weight, Ordering::Relaxed);
            return Err(Error::Busy);
        }
        let (reply, answer) = oneshot::channel();
        self.sender.try_send(Request { work, weight, reply }).map(|()| answer).map_err(|refused| {
            self.bytes.fetch_sub(weight, Ordering::Relaxed);
            match refused {
                TrySendError::Full(_) => Error::Busy,
                TrySendError::Disconnected(_) => Fault::new("the committer has ended").into(),
            }
        })
    }
}

impl Queued {
    /// `None` once nobody can send any more and all that was sent is taken.
    pub fn next_group(&self) -> Option<Vec<Request>> {
        let group = commit::gather(&self.receiver)?;
        let bytes = group.iter().map(|request| request.weight).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(group)
    }
}

fn weigh(work: &Work) -> usize {
    const SMALL: usize = 64;
    match work {
        Work::Apply(ahead) => ahead.weight(),
        Work::SetTableMetadata(_, metadata) | Work::SetServiceMetadata(_, metadata) => metadata.len() + SMALL,
        Work::Load(_, _, rows) => {
            let row = |row: &Option<Row>| row.as_ref().map_or(0, |row| row.as_bytes().len());
            rows.iter().map(|(_, stored)| row(stored) + SMALL).sum()
        }
        Work::Create(_) | Work::Drop(_) | Work::Hide(_) | Work::Forget(_) => SMALL,
    }
}
