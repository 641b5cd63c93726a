//! A server that dies between any two steps of creating, dropping or purging a table.
//!
//! For every n, no request of the first server about the table arrives after the n-th, and its work stops there. Then
//! the table must be complete or gone, and another server finishes the work.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraEngine, Options, Schedule, connect};
use model::KeyRange;
use scylla::client::session::Session;
use scylla_proxy::{Condition, RequestOpcode};
use store::{Engine as _, Error, TableRef};
use store_suite::{insert, scan, table};
use uuid::Uuid;

use crate::lost_answers::address;
use crate::lost_answers::between::Between;

const PARTITIONS: [&str; 3] = ["a", "b", "c"];
const AN_HOUR: Duration = Duration::from_secs(3600);
const AT_ONCE: Duration = Duration::from_millis(10);
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A janitor that does nothing by itself.
const IDLE: Schedule = Schedule {
    split_above: 2,
    merge_below: 1,
    quiet: AN_HOUR,
    look_every: AN_HOUR,
    walk_every: AN_HOUR,
    purge_after: AN_HOUR,
};
/// A janitor that finishes the work of others as soon as it sees it.
const EAGER: Schedule =
    Schedule { look_every: AT_ONCE, walk_every: AT_ONCE, purge_after: Duration::ZERO, ..IDLE };
/// A janitor that only removes dropped tables.
const PURGING: Schedule = Schedule { look_every: AT_ONCE, purge_after: Duration::ZERO, ..IDLE };
/// A janitor that splits segments and leaves dropped tables alone.
const SPLITTING: Schedule = Schedule { purge_after: AN_HOUR, ..EAGER };

/// A keyspace, a proxy that can stop the requests of a server, and a session that is connected to the node directly.
struct Ground {
    options: Options,
    session: Session,
    between: Between,
    /// Options that connect through the proxy.
    through: Options,
}

impl Ground {
    async fn new() -> Option<Self> {
        let nodes = nodes()?;
        let options = fresh_keyspace(&nodes).await;
        let session = connect(&options).await.unwrap();
        session.use_keyspace(&options.keyspace, true).await.unwrap();
        let between = Between::start(address(&nodes[0]).await).await;
        let through = Options { nodes: vec![between.address.clone()], janitor: IDLE, ..options.clone() };
        Some(Self { options, session, between, through })
    }

    async fn server(&self, janitor: Schedule) -> Arc<CassandraEngine> {
        open(&Options { janitor, ..self.options.clone() }).await
    }

    /// A server behind the proxy. It dies when the proxy loses its requests.
    async fn mortal(&self, janitor: Schedule) -> Arc<CassandraEngine> {
        open(&Options { janitor, ..self.through.clone() }).await
    }

    /// The outcome of the work; `None` if the server died first.
    async fn until_death<T>(
        &mut self,
        steps: usize,
        about: &Condition,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut died = self.between.lose_after(steps, about);
        let outcome = tokio::select! {
            biased;
            _ = died.recv() => None,
            outcome = work => Some(outcome),
        };
        self.between.expect_nothing();
        outcome
    }

    async fn finish(self) {
        drop_keyspace(&self.options).await;
    }

    /// The number of rows in one of the keyspace's tables, without the row of an account, which is never deleted.
    async fn count(&self, of: &str) -> usize {
        let text = match of {
            "tables" => "SELECT account FROM tables WHERE state > 0 ALLOW FILTERING".to_owned(),
            of => format!("SELECT * FROM {of}"),
        };
        let rows = self.session.query_unpaged(text, ()).await.unwrap();
        rows.into_rows_result().unwrap().rows_num()
    }

    async fn await_count(&self, of: &str, count: usize) {
        let until = Instant::now() + PATIENCE;
        while self.count(of).await != count {
            assert!(Instant::now() < until, "{of} has {} rows, not {count}", self.count(of).await);
            tokio::time::sleep(AT_ONCE).await;
        }
    }

    async fn await_nothing(&self) {
        for of in ["tables", "purges", "entities", "directory", "segments"] {
            self.await_count(of, 0).await;
        }
    }

    /// Requests about one table: by its name, its id, or a segment of its directory.
    async fn about(&self, table: &TableRef) -> Condition {
        let of = "SELECT id FROM tables WHERE account = ? AND name = ?";
        let found =
            self.session.query_unpaged(of, (table.account.as_str(), table.name.folded())).await.unwrap();
        let (id,) = found.into_rows_result().unwrap().first_row::<(Uuid,)>().unwrap();
        let segments = self.session.query_unpaged("SELECT segment FROM segments WHERE tid = ?", (id,)).await;
        let segments = segments.unwrap().into_rows_result().unwrap();
        let segments = segments.rows::<(Uuid,)>().unwrap().map(|segment| segment.unwrap().0);
        let ids = segments.chain([id]).map(|id| Box::from(id.as_bytes().as_slice()));
        let named = Condition::BodyContainsCaseSensitive(Box::from(table.name.folded().as_bytes()));
        Condition::any(ids.map(Condition::BodyContainsCaseSensitive).chain([named]))
    }
}

async fn fill(engine: &CassandraEngine, table: &TableRef) {
    for partition in PARTITIONS {
        engine.apply(table, insert(partition, "r", 1)).await.unwrap();
    }
}

async fn partitions(engine: &CassandraEngine, table: &TableRef) -> Vec<String> {
    let page = engine.scan(table, scan(vec![KeyRange::all()], 1000)).await.unwrap();
    page.entities.iter().map(|entity| entity.partition.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_its_creation_ends_a_table_exists_or_can_be_created() {
    let Some(mut ground) = Ground::new().await else { return };
    let (mortal, witness) = (ground.mortal(IDLE).await, ground.server(IDLE).await);
    let any_step = Condition::RequestOpcode(RequestOpcode::Batch);
    let mut deaths = 0;
    for steps in 0.. {
        let name = table(&format!("Made{steps}"));
        let made = ground.until_death(steps, &any_step, mortal.create_table(&name, None)).await;
        match (&made, witness.create_table(&name, None).await) {
            (None, Ok(()) | Err(Error::TableAlreadyExists)) => {}
            (Some(Ok(())), Err(Error::TableAlreadyExists)) => {}
            (made, again) => panic!("{steps} steps: {made:?}, then {again:?}"),
        }
        fill(&witness, &name).await;
        for server in [&witness, &mortal] {
            assert_eq!(partitions(server, &name).await, PARTITIONS, "{steps} steps");
        }
        if made.is_some() {
            break;
        }
        deaths += 1;
    }
    assert_eq!(deaths, 2, "the directory and the table are created in one step each");
    // Each death may leave a directory without a table. Nothing refers to it.
    assert!(ground.count("segments").await <= ground.count("tables").await + deaths);
    mortal.close().await;
    witness.close().await;
    ground.finish().await;
}

/// What is left of a table after the server that dropped it has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    All,
    Nothing,
    /// Nothing, and the drop was answered.
    NothingAsSaid,
}

async fn drop_and_die(
    ground: &mut Ground,
    [mortal, witness]: [&CassandraEngine; 2],
    name: &TableRef,
    steps: usize,
) -> Left {
    witness.create_table(name, None).await.unwrap();
    fill(witness, name).await;
    let about = ground.about(name).await;
    let dropped = ground.until_death(steps, &about, mortal.drop_table(name)).await;
    // The witness may use its cached table for the length of its lease.
    tokio::time::sleep(ground.options.table_lease * 2).await;
    match (dropped, witness.find_table(name).await) {
        (None, Ok(_)) => {
            assert_eq!(partitions(witness, name).await, PARTITIONS, "{steps} steps");
            Left::All
        }
        (None, Err(Error::TableNotFound)) => Left::Nothing,
        (Some(Ok(())), Err(Error::TableNotFound)) => Left::NothingAsSaid,
        (dropped, found) => panic!("{steps} steps: {dropped:?}, then {found:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_its_drop_ends_a_table_is_complete_or_removed_by_another_server() {
    let Some(mut ground) = Ground::new().await else { return };
    let (mortal, witness) = (ground.mortal(IDLE).await, ground.server(IDLE).await);
    let mut seen = Vec::new();
    for steps in 0.. {
        let name = table(&format!("Dropped{steps}"));
        let left = drop_and_die(&mut ground, [&mortal, &witness], &name, steps).await;
        if left == Left::All {
            witness.drop_table(&name).await.unwrap();
        }
        let janitor = ground.server(EAGER).await;
        ground.await_nothing().await;
        janitor.close().await;
        seen.push(left);
        if left == Left::NothingAsSaid {
            break;
        }
    }
    // The steps of a drop: read, doom, note for purging, forget.
    assert_eq!(seen, [Left::All, Left::All, Left::Nothing, Left::Nothing, Left::NothingAsSaid]);
    mortal.close().await;
    witness.close().await;
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_its_drop_ends_the_name_of_a_table_can_be_used_for_a_new_one() {
    let Some(mut ground) = Ground::new().await else { return };
    let (mortal, witness) = (ground.mortal(IDLE).await, ground.server(IDLE).await);
    for steps in 0.. {
        let name = table(&format!("Again{steps}"));
        let left = drop_and_die(&mut ground, [&mortal, &witness], &name, steps).await;
        if left == Left::All {
            let created = witness.create_table(&name, None).await;
            assert!(matches!(created, Err(Error::TableAlreadyExists)), "{steps} steps: {created:?}");
            witness.drop_table(&name).await.unwrap();
        }
        witness.create_table(&name, None).await.unwrap();
        assert_eq!(partitions(&witness, &name).await, [""; 0], "{steps} steps: nothing of the first");
        witness.apply(&name, insert("new", "r", 1)).await.unwrap();
        let janitor = ground.server(EAGER).await;
        ground.await_count("purges", 0).await;
        for of in ["tables", "entities", "directory", "segments"] {
            assert_eq!(ground.count(of).await, 1, "{steps} steps: {of} of the new table, and nothing else");
        }
        for server in [&witness, &janitor, &mortal] {
            assert_eq!(partitions(server, &name).await, ["new"], "{steps} steps");
        }
        janitor.drop_table(&name).await.unwrap();
        ground.await_nothing().await;
        janitor.close().await;
        if left == Left::NothingAsSaid {
            break;
        }
    }
    mortal.close().await;
    witness.close().await;
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_its_purge_ends_another_server_finishes_it() {
    let Some(mut ground) = Ground::new().await else { return };
    let witness = ground.server(SPLITTING).await;
    let kept = table("Kept");
    witness.create_table(&kept, None).await.unwrap();
    witness.apply(&kept, insert("p", "r", 1)).await.unwrap();
    let mut deaths = 0;
    for steps in 0.. {
        let name = table(&format!("Purged{steps}"));
        witness.create_table(&name, None).await.unwrap();
        fill(&witness, &name).await;
        // The segment of the new table is split in two.
        ground.await_count("segments", 3).await;
        let about = ground.about(&name).await;
        witness.drop_table(&name).await.unwrap();
        let mut lost = ground.between.lose_after(steps, &about);
        let mortal = ground.mortal(PURGING).await;
        let died = tokio::select! {
            biased;
            _ = lost.recv() => true,
            () = ground.await_count("purges", 0) => false,
        };
        mortal.close().await;
        ground.between.expect_nothing();
        if died {
            deaths += 1;
            let janitor = ground.server(EAGER).await;
            ground.await_count("purges", 0).await;
            janitor.close().await;
        }
        for of in ["tables", "entities", "directory", "segments"] {
            assert_eq!(ground.count(of).await, 1, "{steps} steps: {of} of the other table, and nothing else");
        }
        assert_eq!(partitions(&witness, &kept).await, ["p"], "{steps} steps");
        if !died {
            break;
        }
    }
    assert!(
        deaths >= 9,
        "the map, two segments, three partitions and the note for purging are removed one by one: {deaths}"
    );
    witness.close().await;
    ground.finish().await;
}
