//! Work whose time grows with the bytes it is done on: reading a body or a filter, writing an answer. Long work keeps no other
//! request waiting.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Writing more bytes than this is long work.
const LONG_WORK_BYTES: usize = 256 * 1024;
/// Reading a byte of a body takes about as long as writing four of an answer.
pub const WRITTEN_PER_READ: usize = 4;
/// Parsing and planning a byte of a filter takes about as long as writing so many of an answer.
pub const WRITTEN_PER_FILTER_BYTE: usize = 64;

/// One for the process, because all requests share its processors.
pub static LONG_WORK: LazyLock<LongWork> =
    LazyLock::new(|| LongWork::on(available_parallelism().map_or(1, usize::from)));

#[derive(Debug)]
pub struct LongWork {
    permits: Semaphore,
}

/// The right to do one piece of work. Long work has one of a few permits; short work needs none.
#[derive(Debug)]
pub struct WorkPermit<'a> {
    for_long_work: Option<SemaphorePermit<'a>>,
}

impl LongWork {
    /// One processor is left to short requests, if there are several.
    fn on(processors: usize) -> Self {
        Self { permits: Semaphore::new(processors.saturating_sub(1).max(1)) }
    }

    /// For work that takes as long as writing so many bytes. Permits are given in the order of the calls. A caller that has
    /// one must not wait for another: if all did, none would go on.
    pub async fn permit(&self, bytes: usize) -> WorkPermit<'_> {
        if bytes <= LONG_WORK_BYTES {
            return WorkPermit { for_long_work: None };
        }
        // An error would say that the semaphore was closed, and nobody closes it.
        WorkPermit { for_long_work: self.permits.acquire().await.ok() }
    }

    /// For a filter of so many bytes.
    pub async fn permit_for_filter(&self, bytes: usize) -> WorkPermit<'_> {
        self.permit(bytes * WRITTEN_PER_FILTER_BYTE).await
    }
}

impl WorkPermit<'_> {
    /// If the work is long, the other requests of this thread move to another thread.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.for_long_work.is_some() { tokio::task::block_in_place(work) } else { work() }
    }

    /// The same for work in many pieces, which may also have to wait in between. Moving requests to another thread takes as
    /// long as writing some ten thousand bytes, so it is done once for all pieces.
    pub async fn run_all<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| self.run(|| work.as_mut().poll(context))).await
    }

    /// For a piece of work within `run_all`.
    pub const PIECE: WorkPermit<'static> = WorkPermit { for_long_work: None };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntityQuery, Service, TableQuery};
    use model::{AccountName, TableName};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;
    use store::{MemoryEngine, RequestMemory, TableRef};

    const LONG: usize = LONG_WORK_BYTES + 1;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_work_leaves_its_thread_to_other_requests() {
        let (answer, answered) = mpsc::channel();
        let long = tokio::spawn(async move {
            let long_work = LongWork::on(1);
            let permit = long_work.permit(LONG).await;
            permit.run(|| answered.recv_timeout(Duration::from_secs(30)).is_ok())
        });
        // Needs the only thread of the runtime.
        let other = tokio::spawn(async move { answer.send(()) });
        assert!(long.await.is_ok_and(|was_answered| was_answered));
        assert!(other.await.is_ok_and(|sent| sent.is_ok()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_in_pieces_leaves_its_thread_too() {
        let (answer, answered) = mpsc::channel();
        let long = tokio::spawn(async move {
            let long_work = LongWork::on(1);
            let permit = long_work.permit(LONG).await;
            let piece = move || answered.recv_timeout(Duration::from_secs(30)).is_ok();
            let pieces = async move { WorkPermit::PIECE.run(piece) };
            permit.run_all(pieces).await
        });
        // Needs the only thread of the runtime.
        let other = tokio::spawn(async move { answer.send(()) });
        assert!(long.await.is_ok_and(|was_answered| was_answered));
        assert!(other.await.is_ok_and(|sent| sent.is_ok()));
    }

    /// The largest number of twenty pieces of work of this length that ran at once.
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
                long_work.permit(bytes).await.run(work);
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
        // Short work does not wait.
        assert!(most_at_once(2, LONG_WORK_BYTES).await > 1);
    }

    /// A filter that takes long to read. Were it short, it would be read without a permit.
    fn long_filter() -> String {
        format!("A eq 1{}", " or A eq 1".repeat(2_000))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_long_filter_waits_for_a_permit_and_a_short_one_does_not() {
        let service = Service::new(Arc::new(MemoryEngine::new()));
        let table = TableRef::table(AccountName::parse("mine").unwrap(), TableName::parse("Books").unwrap());
        service.create_table(&table).await.unwrap();
        let memory = RequestMemory::new(64 << 20);
        let entities = async |filter: &str| {
            let query = EntityQuery { filter: Some(filter), ..EntityQuery::default() };
            service.query_entities(&table, query, &mut memory.nothing()).await.map(|page| page.entities.len())
        };
        let tables = async |filter: &str| {
            let query = TableQuery { filter: Some(filter), ..TableQuery::default() };
            service.query_tables(&table.account, query).await.map(|page| page.names.len())
        };
        let long_filter = long_filter();
        let all = u32::try_from(LONG_WORK.permits.available_permits()).unwrap();
        let permits = LONG_WORK.permits.acquire_many(all).await;
        let (mut long_entities, mut long_tables) = (pin!(entities(&long_filter)), pin!(tables(&long_filter)));
        tokio::select! {
            biased;
            _ = &mut long_entities => panic!("a long filter of entities was read without a permit"),
            _ = &mut long_tables => panic!("a long filter of tables was read without a permit"),
            short = async { (entities("A eq 1").await, tables("A eq 1").await) } => {
                assert_eq!((short.0.unwrap(), short.1.unwrap()), (0, 0));
            }
        }
        drop(permits);
        assert_eq!((long_entities.await.unwrap(), long_tables.await.unwrap()), (0, 0));
    }
}
