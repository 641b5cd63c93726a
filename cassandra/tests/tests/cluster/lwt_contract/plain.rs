//! Writes without conditions and with our own timestamps, as the directory makes them.

use scylla::statement::Consistency;
use uuid::Uuid;

use crate::lwt_contract::ground::{Partition, Step::*, key, partition};

const LIST: &str = "INSERT INTO directory (segment, pk, epoch) VALUES (?, ?, ?) USING TIMESTAMP ?";
/// Reads a page as the engine does, with the timestamp that Cassandra stores for each entry.
const ENTRIES: &str =
    "SELECT pk, epoch, writetime(epoch) FROM directory WHERE segment = ? AND pk >= ? LIMIT ?";
const DROP_SEGMENT: &str = "DELETE FROM directory USING TIMESTAMP ? WHERE segment = ?";

struct Segment {
    p: Partition,
    id: Uuid,
}

impl Segment {
    async fn new() -> Option<Self> {
        Some(Self { p: partition().await?, id: Uuid::new_v4() })
    }

    async fn list(&self, pk: &str, epoch: i64) {
        let statement = self.p.prepare(LIST).await;
        self.p.session.execute_unpaged(&statement, (self.id, key(pk), epoch, epoch)).await.unwrap();
    }

    /// Writes an odd number, which strikes off the entry.
    async fn strike(&self, pk: &str, timestamp: i64) {
        self.list(pk, timestamp).await;
    }

    /// Every entry with its epoch and timestamp.
    async fn entries(&self) -> Vec<String> {
        let mut statement = self.p.prepare(ENTRIES).await;
        statement.set_consistency(Consistency::Quorum);
        let result = self.p.session.execute_unpaged(&statement, (self.id, key(""), 1000_i32)).await.unwrap();
        self.p.show(result).split_off(1)
    }
}

#[tokio::test]
async fn of_two_listings_the_later_epoch_wins_in_any_order() {
    let Some(s) = Segment::new().await else { return };
    s.list("a", 256).await;
    s.list("a", 512).await;
    s.list("b", 512).await;
    s.list("b", 256).await;
    assert_eq!(s.entries().await, ["a 512 512", "b 512 512"]);
}

#[tokio::test]
async fn a_strike_after_a_listing_wins_in_any_order() {
    let Some(s) = Segment::new().await else { return };
    s.list("a", 256).await;
    s.strike("a", 257).await;
    s.strike("b", 257).await;
    s.list("b", 256).await;
    assert_eq!(s.entries().await, ["a 257 257", "b 257 257"]);
    // A later listing wins over the strike, also one that was written before it.
    s.list("a", 512).await;
    s.list("c", 512).await;
    s.strike("c", 257).await;
    assert_eq!(s.entries().await, ["a 512 512", "b 257 257", "c 512 512"]);
}

#[tokio::test]
async fn a_copy_of_an_entry_has_its_timestamp() {
    let (Some(from), Some(to)) = (Segment::new().await, Segment::new().await) else { return };
    from.list("a", 256).await;
    to.strike("a", 257).await;
    for line in from.entries().await {
        let parts: Vec<&str> = line.split(' ').collect();
        assert_eq!(parts[1], parts[2]);
        to.list(parts[0], parts[2].parse().unwrap()).await;
    }
    // A copy does not bring back an entry that was struck off meanwhile.
    assert_eq!(to.entries().await, ["a 257 257"]);
}

#[tokio::test]
async fn entries_are_in_the_order_of_their_bytes() {
    let Some(s) = Segment::new().await else { return };
    let keys: [&[u8]; 6] = [&[1], &[1, 0], &[1, 0, 5], &[1, 127], &[1, 128], &[1, 255, 255]];
    let statement = s.p.prepare(LIST).await;
    for pk in keys.iter().rev() {
        s.p.session.execute_unpaged(&statement, (s.id, *pk, 2_i64, 2_i64)).await.unwrap();
    }
    let read = s.p.prepare(ENTRIES).await;
    let result = s.p.session.execute_unpaged(&read, (s.id, key(""), 100_i32)).await.unwrap();
    let rows = result.into_rows_result().unwrap();
    let found: Vec<Vec<u8>> = rows.rows::<(Vec<u8>, i64, i64)>().unwrap().map(|row| row.unwrap().0).collect();
    assert_eq!(found, keys);
}

#[tokio::test]
async fn a_segment_is_dropped_up_to_a_time() {
    let Some(s) = Segment::new().await else { return };
    s.list("a", 256).await;
    s.list("b", 512).await;
    s.list("c", 1024).await;
    let statement = s.p.prepare(DROP_SEGMENT).await;
    s.p.session.execute_unpaged(&statement, (512_i64, s.id)).await.unwrap();
    // Epochs can be ahead of the clock, so the present time would not be enough.
    assert_eq!(s.entries().await, ["c 1024 1024"]);
}

#[tokio::test]
async fn a_purge_removes_rows_and_the_partitions_own_columns() {
    let Some(p) = partition().await else { return };
    p.given(&[Put("a", 1, None), Register(1, 100, None)]).await;
    let purge = p.prepare("DELETE FROM entities USING TIMESTAMP ? WHERE tid = ? AND pk = ?").await;
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
    p.session.execute_unpaged(&purge, (now + 3_600_000_000, p.tid, &p.pk)).await.unwrap();
    assert_eq!(p.rows().await, Vec::<String>::new());
    assert_eq!(p.state().await, None);
    // A conditional write after the purge is accepted but can't be read: only a dropped table may be purged.
    p.given(&[Put("a", 2, None), Register(2, 200, None)]).await;
    assert_eq!(p.rows().await, Vec::<String>::new());
    assert_eq!(p.state().await, None);
}
