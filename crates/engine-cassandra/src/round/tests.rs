//! Writes of two servers to one partition, on a real node.

use store::{Change, Condition};
use store_suite::{key, number};
use uuid::Uuid;

use super::*;
use crate::test_keyspace::TestKeyspace;

/// Two servers with empty caches, and a partition that nobody has used.
async fn two_writers() -> Option<(TestKeyspace, Writer, Writer, PartitionId)> {
    let (keyspace, clusters) = TestKeyspace::with_servers(2).await?;
    let writer = |cluster: &Arc<Cluster>| {
        Writer::new(cluster.clone(), Arc::new(Directory::new(cluster.clone())), Arc::new(Hints::default()))
    };
    let id = PartitionId { table: Uuid::new_v4(), key: KeyBytes::of("p") };
    writer(&clusters[0]).directory.create(id.table).await.unwrap();
    Some((keyspace, writer(&clusters[0]), writer(&clusters[1]), id))
}

impl Writer {
    /// One operation on the row, as a client asks for it.
    async fn change(&self, id: &PartitionId, row: &str, condition: Condition, change: Change) -> DateTime {
        let (answer, stamps) = oneshot::channel();
        let transaction = Transaction::of_one(key("p", row), condition, change);
        let waiting = WaitingTransaction { transaction, answer, arrived: Instant::now() };
        self.commit_group(id, vec![waiting], &mut Knowledge::default()).await;
        stamps.await.unwrap().unwrap()[0]
    }

    /// Sends the insert of a row with a stamp that was made before.
    async fn insert_with(&self, id: &PartitionId, row: &str, stamp: DateTime) -> WriteOutcome {
        let put = RowWrite { expected: None, row: Some((stamp, number(1).stamp(stamp))) };
        let writes = BTreeMap::from([(KeyBytes::of(row), put)]);
        let (first, last) = (stamp.ticks(), stamp.ticks());
        let made = ReadyWrite { writes: &writes, first, last, own_stamps: true };
        let deadline = Instant::now() + DEADLINE;
        self.write(id, made, &mut Knowledge::default(), deadline).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_insert_is_refused_if_the_row_was_inserted_and_deleted_meanwhile() {
    let Some((keyspace, slow, other, id)) = two_writers().await else { return };
    // The partition has a row, so that neither server changes its epoch, and both know its state.
    other.change(&id, "first", Condition::Absent, Change::Put(number(1))).await;
    slow.state(&id).await.unwrap();

    let early = slow.stamps(1).await.unwrap()[0];
    let between = other.change(&id, "a", Condition::Absent, Change::Put(number(1))).await;
    assert!(early < between);
    other.change(&id, "a", Condition::Exists, Change::Delete).await;
    let outcome = slow.insert_with(&id, "a", early).await;
    assert_eq!(outcome, WriteOutcome::Outrun, "the new row would be older than the deleted one");

    // The refusal has shown the delete, so the next stamp is larger.
    let after = slow.change(&id, "a", Condition::Absent, Change::Put(number(1))).await;
    assert!(after > between);
    keyspace.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inserts_of_two_servers_do_not_refuse_each_other() {
    let Some((keyspace, slow, other, id)) = two_writers().await else { return };
    other.change(&id, "first", Condition::Absent, Change::Put(number(1))).await;
    other.change(&id, "second", Condition::Absent, Change::Put(number(1))).await;
    other.change(&id, "second", Condition::Exists, Change::Delete).await;
    slow.state(&id).await.unwrap();
    let early = slow.stamps(1).await.unwrap()[0];
    other.change(&id, "a", Condition::Absent, Change::Put(number(1))).await;
    other.change(&id, "a", Condition::Exists, Change::Put(number(2))).await;
    assert_eq!(slow.insert_with(&id, "b", early).await, WriteOutcome::Applied);
    keyspace.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_learns_of_a_delete_makes_new_stamps_before_it_writes() {
    let Some((keyspace, slow, other, id)) = two_writers().await else { return };
    other.change(&id, "first", Condition::Absent, Change::Put(number(1))).await;
    let early = slow.stamps(1).await.unwrap()[0];
    other.change(&id, "a", Condition::Absent, Change::Put(number(1))).await;
    other.change(&id, "a", Condition::Exists, Change::Delete).await;
    // Its first look at the partition comes after its stamps.
    assert_eq!(slow.insert_with(&id, "a", early).await, WriteOutcome::Outrun);
    assert!(slow.stamps(1).await.unwrap()[0].ticks() > slow.state(&id).await.unwrap().deleted.unwrap());
    keyspace.end().await;
}
