//! Objects whose names are older than what servers put: those of a store that is moved into the keyspace.

use bytes::Bytes;
use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraObjects, Options, connect};
use model::DateTime;
use scylla::client::session::Session;
use store::{ObjectId, Objects};

const CONTENT: Bytes = Bytes::from_static(b"content");
/// Eleven days.
const OLD_HOURS: i64 = 264;
const TICKS_PER_HOUR: i64 = 3600 * 10_000_000;

struct Ground {
    options: Options,
    session: Session,
    objects: CassandraObjects,
}

impl Ground {
    async fn on(nodes: &[String]) -> Self {
        let options = fresh_keyspace(nodes).await;
        let session = connect(&options).await.unwrap();
        session.use_keyspace(&options.keyspace, true).await.unwrap();
        let objects = CassandraObjects::new(open(&options).await);
        Self { options, session, objects }
    }

    async fn end(self) {
        self.objects.close().await;
        drop_keyspace(&self.options).await;
    }

    /// Of two parts.
    async fn put(&self, object: ObjectId) {
        for number in [0, 15, 16] {
            self.objects.put(object, number, CONTENT).await.unwrap();
        }
    }

    async fn listed(&self) -> Vec<ObjectId> {
        self.objects.list(ObjectId::FIRST, 10).await.unwrap().objects
    }

    async fn chunks(&self, object: ObjectId) -> usize {
        let mut found = 0;
        for number in [0, 15, 16] {
            found += usize::from(self.objects.get(object, number).await.unwrap().is_some());
        }
        found
    }

    async fn hours(&self) -> usize {
        let text = "SELECT hour FROM object_hours WHERE shard = 0";
        self.session.query_unpaged(text, ()).await.unwrap().into_rows_result().unwrap().rows_num()
    }

    async fn remove(&self, object: ObjectId) {
        self.objects.remove(&[object]).await.unwrap();
        assert_eq!(self.chunks(object).await, 0);
    }

    /// Whether an object is all there, and goes when it is removed.
    async fn check_lives_and_goes(&self, object: ObjectId) {
        self.put(object).await;
        assert_eq!(self.chunks(object).await, 3, "{object}");
        assert_eq!(self.listed().await, [object]);
        self.remove(object).await;
        assert_eq!(self.listed().await, []);
    }
}

fn hour() -> i64 {
    DateTime::now().ticks() / TICKS_PER_HOUR - OLD_HOURS
}

/// All in the same hour.
fn named(number: u8) -> ObjectId {
    ObjectId::new(DateTime::from_ticks(hour() * TICKS_PER_HOUR).unwrap(), [number; 8])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_into_an_hour_that_was_deleted_is_listed_until_it_is_removed() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let (one, other) = (named(1), named(2));
    for object in [one, other, one, one] {
        ground.check_lives_and_goes(object).await;
        assert_eq!(ground.hours().await, 0, "the list has deleted it");
    }
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_removed_can_be_put_again_before_its_hour_is_deleted() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let (one, other) = (named(1), named(2));
    ground.put(other).await;
    for _ in 0..2 {
        ground.put(one).await;
        assert_eq!((ground.chunks(one).await, ground.listed().await), (3, vec![one, other]));
        ground.remove(one).await;
        assert_eq!((ground.chunks(other).await, ground.listed().await), (3, vec![other]));
    }
    ground.end().await;
}

/// Of objects that were young when they were put, the removal has the timestamp 2, and so has the end of their hour.
#[tokio::test(flavor = "multi_thread")]
async fn what_servers_have_removed_does_not_hide_what_is_put_later() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let object = named(1);
    for part in [0_i64, 1] {
        let text = "DELETE FROM chunks USING TIMESTAMP 2 WHERE object = ? AND part = ?";
        ground.session.query_unpaged(text, (&object.as_bytes()[..], part)).await.unwrap();
        let text =
            "UPDATE objects USING TIMESTAMP 2 SET removed = true WHERE hour = ? AND object = ? AND part = ?";
        ground.session.query_unpaged(text, (hour(), &object.as_bytes()[..], part)).await.unwrap();
    }
    ground.check_lives_and_goes(object).await;
    let text = "DELETE FROM objects USING TIMESTAMP 2 WHERE hour = ?";
    ground.session.query_unpaged(text, (hour(),)).await.unwrap();
    let text = "DELETE FROM object_hours USING TIMESTAMP 2 WHERE shard = 0 AND hour = ?";
    ground.session.query_unpaged(text, (hour(),)).await.unwrap();
    ground.check_lives_and_goes(object).await;
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_with_an_old_name_that_arrives_late_does_not_bring_its_object_back() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let object = named(1);
    ground.put(object).await;
    let text = "SELECT WRITETIME(body) FROM chunks WHERE object = ? AND part = 1 AND number = 16";
    let rows = ground.session.query_unpaged(text, (&object.as_bytes()[..],)).await.unwrap();
    let (written,) = rows.into_rows_result().unwrap().single_row::<(i64,)>().unwrap();
    ground.remove(object).await;
    let late = [
        format!("INSERT INTO object_hours (shard, hour) VALUES (0, {}) USING TIMESTAMP {written}", hour()),
        format!(
            "INSERT INTO objects (hour, object, part, removed) VALUES ({}, ?, 1, false) USING TIMESTAMP {written}",
            hour()
        ),
        format!(
            "INSERT INTO chunks (object, part, number, body) VALUES (?, 1, 16, 0xff) USING TIMESTAMP {written}"
        ),
    ];
    for is_hour_deleted in [false, true] {
        ground.session.query_unpaged(late[0].as_str(), ()).await.unwrap();
        for text in &late[1..] {
            ground.session.query_unpaged(text.as_str(), (&object.as_bytes()[..],)).await.unwrap();
        }
        assert_eq!((ground.chunks(object).await, ground.listed().await), (0, vec![]), "{is_hour_deleted}");
    }
    assert_eq!(ground.hours().await, 0);
    ground.end().await;
}

/// A store was moved here, its blobs were deleted by those who worked here, and it is moved here again on the same day.
#[tokio::test(flavor = "multi_thread")]
async fn a_young_object_that_was_removed_here_can_be_moved_here_again() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let object = ObjectId::new(DateTime::now(), [1; 8]);
    let moving = CassandraObjects::of_a_move(open(&ground.options).await);
    for _ in 0..2 {
        for number in [0, 15, 16] {
            moving.put(object, number, CONTENT).await.unwrap();
        }
        assert_eq!((ground.chunks(object).await, ground.listed().await), (3, vec![object]));
        ground.remove(object).await;
        assert_eq!(ground.listed().await, []);
    }
    ground.put(object).await;
    assert_eq!(ground.chunks(object).await, 0, "what a server puts late stays removed");
    moving.close().await;
    ground.end().await;
}

/// Whoever lists a part is killed after its hour.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_hour_in_which_nothing_was_listed_is_deleted() {
    let Some(nodes) = nodes() else { return };
    let ground = Ground::on(&nodes).await;
    let micros = (DateTime::now().ticks() - DateTime::parse("1970-01-01T00:00:00Z").unwrap().ticks()) / 10;
    let days = |days: i64| micros - days * 24 * 3600 * 1_000_000;
    for (hour, written) in [(hour(), days(11)), (hour() - 1, days(0))] {
        let text = "INSERT INTO object_hours (shard, hour) VALUES (0, ?) USING TIMESTAMP ?";
        ground.session.query_unpaged(text, (hour, written)).await.unwrap();
    }
    assert_eq!(ground.listed().await, []);
    assert_eq!(ground.hours().await, 1, "the young one may be about to list a part");
    ground.end().await;
}
