//! Work that takes time by the bytes it is done on: reading a body, writing an answer. Long work keeps no other request
//! waiting.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Writing more bytes than this is long work.
const LONG_WORK_BYTES: usize = 256 * 1024;
/// Reading a byte of a body takes about as long as writing four of an answer.
pub const WRITTEN_PER_READ: usize = 4;

/// The processors are the process's, and so is what it does on them at once.
pub static LONG_WORK: LazyLock<LongWork> =
    LazyLock::new(|| LongWork::on(available_parallelism().map_or(1, usize::from)));

#[derive(Debug)]
pub struct LongWork {
    places: Semaphore,
}

/// A place to do work in: where it keeps nobody waiting if it is long, and where one is if it is short.
#[derive(Debug)]
pub struct Place<'a> {
    for_long_work: Option<SemaphorePermit<'a>>,
}

impl LongWork {
    /// One processor is left to short requests, if there are several.
    fn on(processors: usize) -> Self {
        Self { places: Semaphore::new(processors.saturating_sub(1).max(1)) }
    }

    /// For work that takes as long as writing so many bytes. Who asks first has it first. Nobody may wait for another
    /// place while having one.
    pub async fn place(&self, bytes: usize) -> Place<'_> {
        if bytes <= LONG_WORK_BYTES {
            return Place { for_long_work: None };
        }
        // An error would say that the semaphore was closed, and nobody closes it.
        Place { for_long_work: self.places.acquire().await.ok() }
    }
}

impl Place<'_> {
    /// If the work is long, the other requests of this thread go to another one.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.for_long_work.is_some() { tokio::task::block_in_place(work) } else { work() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    const LONG: usize = LONG_WORK_BYTES + 1;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_work_leaves_its_thread_to_other_requests() {
        let (answer, answered) = mpsc::channel();
        let long = tokio::spawn(async move {
            let long_work = LongWork::on(1);
            let place = long_work.place(LONG).await;
            place.run(|| answered.recv_timeout(Duration::from_secs(30)).is_ok())
        });
        // On the only thread there is, unless that is taken.
        let other = tokio::spawn(async move { answer.send(()) });
        assert!(long.await.is_ok_and(|was_answered| was_answered));
        assert!(other.await.is_ok_and(|sent| sent.is_ok()));
    }

    /// How many of twenty works of this length are done at once at most.
    async fn most_at_once(processors: usize, bytes: usize) -> usize {
        let long_work = Arc::new(LongWork::on(processors));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works = (0..20).map(|_| {
            let (long_work, running, most) = (long_work.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                let work = || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(10));
                    running.fetch_sub(1, Ordering::SeqCst);
                };
                long_work.place(bytes).await.run(work);
            })
        });
        for work in works.collect::<Vec<_>>() {
            assert!(work.await.is_ok());
        }
        most.load(Ordering::SeqCst)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn long_work_leaves_a_processor_to_short_requests() {
        assert_eq!(most_at_once(1, LONG).await, 1);
        assert_eq!(most_at_once(2, LONG).await, 1);
        assert_eq!(most_at_once(4, LONG).await, 3);
        // Short work waits for nobody.
        assert!(most_at_once(2, LONG_WORK_BYTES).await > 1);
    }
}
