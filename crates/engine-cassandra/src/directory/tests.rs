//! The directory on a real cluster. A server is stopped at every request, and another one continues.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::reshape::{Sizes, Suspects};
use super::*;
use crate::partition::{PartitionState, Registration};
use crate::test_keyspace::TestKeyspace;

/// Independent servers on a keyspace of their own.
struct Servers {
    directories: Vec<Directory>,
    keyspace: TestKeyspace,
}

impl Servers {
    async fn start(count: i64) -> Option<Self> {
        let (keyspace, clusters) = TestKeyspace::with_servers(count).await?;
        Some(Self { directories: clusters.into_iter().map(Directory::new).collect(), keyspace })
    }

    fn two(&self) -> (&Directory, &Directory) {
        (&self.directories[0], &self.directories[1])
    }

    async fn end(self) {
        self.keyspace.end().await;
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("p{n:03}")).collect()
}

fn id(table: Uuid, name: &str) -> PartitionId {
    PartitionId { table, key: KeyBytes::of(name) }
}

impl Directory {
    async fn table_of(&self, listed: &[String]) -> Uuid {
        let table = Uuid::new_v4();
        self.create(table).await.unwrap();
        let ids: Vec<PartitionId> = listed.iter().map(|name| id(table, name)).collect();
        let lists = ids.iter().map(|id| self.list(id, self.cluster.clock.epoch_above(0).unwrap()));
        try_join_all(lists).await.unwrap();
        table
    }

    async fn all_listed(&self, table: Uuid) -> Vec<KeyBytes> {
        let (mut all, mut from) = (Vec::new(), Some(KeyBytes::lowest()));
        while let Some(at) = from {
            let listing = self.page(table, &at, 7).await.unwrap();
            all.extend(listing.partitions.into_iter().map(|listed| listed.key));
            from = listing.next;
        }
        all
    }

    async fn state(&self, id: &PartitionId) -> PartitionState {
        self.cluster.partition_state(id).await.unwrap()
    }

    /// Registers the partition as a writer does, without a row.
    async fn register(&self, id: &PartitionId) {
        let state = self.state(id).await;
        let epoch = self.cluster.clock.epoch_above(state.epoch.unwrap_or(0)).unwrap();
        self.list(id, epoch).await.unwrap();
        assert!(self.cluster.change_epoch(id, state.epoch, epoch, Registration::Listed).await.unwrap());
    }
}

fn keys(names: &[String]) -> Vec<KeyBytes> {
    names.iter().map(|name| KeyBytes::of(name)).collect()
}

const NOBODY: Suspects = Suspects { epochs: 0..0, quiet: Duration::ZERO };
const SPLIT: Sizes = Sizes { split_above: 10, merge_below: 0 };
const MERGE: Sizes = Sizes { split_above: 1000, merge_below: 100 };

/// A server that may wait `waits` times and is killed at the next. What it has sent still arrives.
struct Killed<F> {
    waits: usize,
    work: F,
}

impl<F: Future + Unpin> Future for Killed<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.work).poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.waits == 0 => Poll::Ready(None),
            Poll::Pending => {
                self.waits -= 1;
                Poll::Pending
            }
        }
    }
}

/// Whether the work ended before it was killed.
async fn killed_after<T>(waits: usize, work: impl Future<Output = Result<T, Trouble>>) -> bool {
    Killed { waits, work: pin!(work) }.await.map(Result::unwrap).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_or_merge_killed_anywhere_loses_no_partition_and_is_finished_by_another() {
    let Some(servers) = Servers::start(2).await else { return };
    let (first, second) = servers.two();
    let names = names(14);
    for (sizes, segments) in [(SPLIT, 2), (MERGE, 1)] {
        let mut waits = 0;
        loop {
            let table = first.table_of(&names).await;
            if sizes.merge_below > 0 {
                first.walk(table, SPLIT, &NOBODY).await.unwrap();
            }
            let done = killed_after(waits, first.walk(table, sizes, &NOBODY)).await;
            assert_eq!(second.all_listed(table).await, keys(&names), "killed at wait {waits}");
            // Requests of the killed server may still arrive, and must not undo this listing.
            second.list(&id(table, "p007x"), second.cluster.clock.epoch_above(0).unwrap()).await.unwrap();
            second.walk(table, sizes, &NOBODY).await.unwrap();
            let mut expected = keys(&names);
            expected.insert(8, KeyBytes::of("p007x"));
            assert_eq!(first.all_listed(table).await, expected, "killed at wait {waits}");
            let map = second.fresh_map(table).await.unwrap();
            assert_eq!(map.segments().len(), segments);
            assert!(!map.segments().iter().any(Segment::is_under_way));
            // A busy machine has answers ready before they are waited for, and fewer waits; then it is tried again.
            if done && waits > 10 {
                break;
            }
            waits += 1;
        }
    }
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_janitor_killed_anywhere_leaves_the_partition_to_the_next() {
    let Some(servers) = Servers::start(2).await else { return };
    let (first, second) = servers.two();
    let table = first.table_of(&[]).await;
    let mut waits = 0;
    loop {
        let id = id(table, &format!("p{waits}"));
        first.register(&id).await;
        let done = killed_after(waits, first.tidy(&id, Duration::ZERO)).await;
        // More than once: the last request of the killed server may arrive between those of the second.
        for _ in 0..3 {
            second.tidy(&id, Duration::ZERO).await.unwrap();
        }
        assert_eq!(second.state(&id).await.registration, Registration::None, "killed at wait {waits}");
        assert!(!second.all_listed(table).await.contains(&id.key), "killed at wait {waits}");
        if done && waits > 3 {
            break;
        }
        waits += 1;
    }
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_written_again_is_listed_wherever_the_janitor_stopped() {
    let Some(servers) = Servers::start(2).await else { return };
    let (janitor, writer) = servers.two();
    let table = janitor.table_of(&[]).await;
    let mut waits = 0;
    loop {
        let id = id(table, &format!("p{waits}"));
        writer.register(&id).await;
        let done = killed_after(waits, janitor.tidy(&id, Duration::ZERO)).await;
        // As the write path does: lists the partition if it is not listed, then changes the epoch that it has read.
        loop {
            let state = writer.state(&id).await;
            let epoch = writer.cluster.clock.epoch_above(state.epoch.unwrap_or(0)).unwrap();
            if state.registration == Registration::None {
                writer.list(&id, epoch).await.unwrap();
            }
            if writer.cluster.change_epoch(&id, state.epoch, epoch, Registration::Listed).await.unwrap() {
                break;
            }
        }
        assert!(janitor.all_listed(table).await.contains(&id.key), "killed at wait {waits}");
        if done {
            break;
        }
        waits += 1;
    }
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_was_never_written_is_struck_off_by_a_walk() {
    let Some(servers) = Servers::start(2).await else { return };
    let (first, second) = servers.two();
    let names = names(3);
    let table = first.table_of(&names).await;
    first.register(&id(table, "p001")).await;
    let young = Suspects { epochs: 0..i64::MAX, quiet: Duration::from_secs(600) };
    second.walk(table, SPLIT, &young).await.unwrap();
    assert_eq!(second.all_listed(table).await.len(), 3, "its writer may still continue");
    let late = first.cluster.clock.epoch_above(0).unwrap();
    first.list(&id(table, "p002"), late).await.unwrap();
    second.walk(table, SPLIT, &Suspects { quiet: Duration::ZERO, ..young }).await.unwrap();
    assert_eq!(second.all_listed(table).await, vec![KeyBytes::of("p001")]);
    let committed = first.cluster.change_epoch(&id(table, "p002"), None, late, Registration::Listed).await;
    assert!(!committed.unwrap(), "the writer that listed it can't continue");
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worn_segment_is_rewritten_with_all_its_partitions() {
    const SIZES: Sizes = Sizes { split_above: 20, merge_below: 0 };
    let Some(servers) = Servers::start(2).await else { return };
    let (first, second) = servers.two();
    let names = names(12);
    let table = first.table_of(&names).await;
    let (struck, kept) = names.split_at(5);
    let entries = async || {
        let map = second.fresh_map(table).await.unwrap();
        let [segment] = map.segments() else { panic!("{map:?}") };
        (segment.id, second.read_segment(segment.id, &KeyBytes::lowest(), None, 100).await.unwrap().listed)
    };
    let (before, _) = entries().await;
    assert_eq!(first.changed(SIZES), vec![(table, KeyBytes::lowest())], "with so many listed");
    for (n, name) in struck.iter().enumerate() {
        // Up to four struck-off entries are left alone, whichever server has struck them off.
        second.walk(table, SIZES, &NOBODY).await.unwrap();
        assert_eq!(entries().await.0, before, "{n} are struck off");
        assert_eq!(first.changed(SIZES).len(), usize::from(n == 3), "after two of its own");
        let striker = if n % 2 == 0 { first } else { second };
        assert!(striker.tidy(&id(table, name), Duration::ZERO).await.unwrap());
        assert!(!striker.tidy(&id(table, name), Duration::ZERO).await.unwrap(), "once");
    }
    assert_eq!(first.all_listed(table).await, keys(kept));
    assert_eq!(entries().await.1.len(), 12, "struck-off entries are skipped");
    second.walk(table, SIZES, &NOBODY).await.unwrap();
    let (after, left) = entries().await;
    assert_ne!(before, after);
    assert_eq!(left.len(), 7);
    // The first server still has the old map in its cache, but the old segment is gone.
    assert_eq!(first.all_listed(table).await, keys(kept));
    // An old listing arrives after the partition was struck off. It is harmless, and is struck off again.
    first.list(&id(table, "p001"), 2).await.unwrap();
    assert!(second.tidy(&id(table, "p001"), Duration::ZERO).await.unwrap());
    assert_eq!(first.all_listed(table).await, keys(kept));
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_killed_anywhere_is_finished_by_another_and_leaves_nothing() {
    let Some(servers) = Servers::start(2).await else { return };
    let (first, second) = servers.two();
    let names = names(12);
    let mut waits = 0;
    loop {
        let table = first.table_of(&names).await;
        first.walk(table, SPLIT, &NOBODY).await.unwrap();
        first.register(&id(table, "p003")).await;
        let map = first.fresh_map(table).await.unwrap();
        first.cluster.write(&first.cluster.statements.add_purge, (table,)).await.unwrap();
        let done = killed_after(waits, first.purge(table)).await;
        second.purge(table).await.unwrap();
        assert!(second.cluster.read_map(table).await.unwrap().is_none());
        assert_eq!(second.state(&id(table, "p003")).await, PartitionState::UNTOUCHED);
        for segment in map.segments() {
            let left = second.read_segment(segment.id, &KeyBytes::lowest(), None, 10).await;
            assert_eq!(left.unwrap().listed, vec![]);
        }
        let purges = second.cluster.read(&second.cluster.statements.list_purges, ()).await.unwrap();
        assert_eq!(purges.rows_num(), 0);
        if done {
            break;
        }
        // There are too many requests to stop at each.
        waits += 1 + waits / 8;
    }
    servers.end().await;
}
