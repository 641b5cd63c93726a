//! Partitions are filled and emptied, segments split and merge, janitors are killed, and scans miss nothing.
//!
//! `PARTITA_FIRE_SECONDS` sets the length.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::{CassandraEngine, Options, Schedule, connect};
use model::{Cut, KeyRange};
use rand::Rng;
use scylla::client::session::Session;
use store::{Change, Condition, Engine, Error, Reason, Scan, TableRef, Transaction};
use store_suite::{key, number, scan, table};
use testing::Patience;
use tokio::task::JoinSet;
use uuid::Uuid;

const PARTITIONS: u32 = 160;
const WRITERS: u32 = 8;
/// All writers fill the table up to `FULL` partitions, then empty it down to `EMPTY`, and so on. Segments are split on
/// the way up and merged on the way down.
const FULL: usize = 140;
const EMPTY: usize = 25;
/// The pause before the table is filled again, so that janitors find the small segments.
const REST: Duration = Duration::from_secs(1);
/// The map of segments has been changed so often that both directions were taken.
const VERSION_MIN: i64 = 4;
const PATIENCE: Duration = Duration::from_secs(300);

/// Partitions whose row certainly exists, each with the number of its insertion.
#[derive(Default)]
struct Truth {
    rows: Mutex<BTreeMap<String, u64>>,
    emptying: AtomicBool,
    emptied: Mutex<Option<Instant>>,
    insertions: AtomicU64,
    scans: AtomicU64,
    over: AtomicBool,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scan_sees_every_partition_that_was_there_throughout() {
    let Some(nodes) = nodes() else { return };
    let seconds = std::env::var("PARTITA_FIRE_SECONDS").map_or(10, |text| text.parse().unwrap());
    let mut options = fresh_keyspace(&nodes).await;
    options.janitor = Schedule {
        split_above: 40,
        merge_below: 15,
        quiet: Duration::ZERO,
        look_every: Duration::from_millis(30),
        walk_every: Duration::from_millis(100),
        ..Schedule::default()
    };
    let engines = [open(&options).await, open(&options).await];
    let table = table("Fire");
    engines[0].create_table(&table, None).await.unwrap();

    let truth = Arc::new(Truth::default());
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let engine = engines[writer as usize % 2].clone();
        tasks.spawn(write(engine, table.clone(), truth.clone(), writer));
    }
    for engine in &engines {
        tasks.spawn(scan_all_the_time(engine.clone(), table.clone(), truth.clone()));
    }
    tasks.spawn(start_and_kill_janitors(options.clone(), truth.clone()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    // A cluster that is busy with other tests may need longer until something has happened.
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    let patience = Patience::lasting(PATIENCE, "segments were split and merged, and a scan has ended");
    while truth.scans.load(Ordering::Acquire) == 0 || map_version(&session).await <= VERSION_MIN {
        tokio::time::sleep(patience.pause().max(Duration::from_millis(200))).await;
    }
    truth.over.store(true, Ordering::Release);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }

    let map_version = audit(&options, &truth).await;
    let scans = truth.scans.load(Ordering::Acquire);
    let insertions = truth.insertions.load(Ordering::Acquire);
    eprintln!("{scans} scans, {insertions} insertions, the map at version {map_version}");
    assert!(scans > 0 && map_version > VERSION_MIN, "something happened");
    for engine in engines {
        engine.close().await;
    }
    drop_keyspace(&options).await;
}

impl Truth {
    /// Called before the row is deleted. Returns whether it was there.
    fn remove(&self, partition: &str) -> bool {
        self.rows.lock().unwrap().remove(partition).is_some()
    }

    fn is_filling(&self) -> bool {
        let rows = self.rows.lock().unwrap().len();
        let mut emptied = self.emptied.lock().unwrap();
        if rows >= FULL {
            self.emptying.store(true, Ordering::Release);
        } else if rows <= EMPTY && emptied.get_or_insert_with(Instant::now).elapsed() >= REST {
            *emptied = None;
            self.emptying.store(false, Ordering::Release);
        }
        !self.emptying.load(Ordering::Acquire)
    }
}

/// Fills its partitions and empties most of them again. Those whose number ends in zero are never emptied.
async fn write(engine: Arc<CassandraEngine>, table: TableRef, truth: Arc<Truth>, writer: u32) {
    let mine: Vec<u32> = (0..PARTITIONS).filter(|n| n % WRITERS == writer).collect();
    while !truth.over.load(Ordering::Acquire) {
        for &n in &mine {
            if truth.over.load(Ordering::Acquire) {
                return;
            }
            if rand::rng().random_bool(0.2) {
                continue;
            }
            let partition = format!("p{n:03}");
            if truth.is_filling() {
                let change =
                    Transaction::of_one(key(&partition, "r"), Condition::Anything, Change::Put(number(1)));
                apply(&engine, &table, change).await;
                let insertion = truth.insertions.fetch_add(1, Ordering::AcqRel);
                truth.rows.lock().unwrap().entry(partition).or_insert(insertion);
            } else if n % 10 != 0 && truth.remove(&partition) {
                let change = Transaction::of_one(key(&partition, "r"), Condition::Exists, Change::Delete);
                apply(&engine, &table, change).await;
            } else {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
}

/// Repeats the transaction until it is certainly done.
async fn apply(engine: &CassandraEngine, table: &TableRef, transaction: Transaction) {
    loop {
        match engine.apply(table, transaction.clone()).await {
            Ok(_) | Err(Error::Rejected { reason: Reason::Missing, .. }) => return,
            Err(Error::Busy | Error::OutcomeUnknown) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn scan_all_the_time(engine: Arc<CassandraEngine>, table: TableRef, truth: Arc<Truth>) {
    while !truth.over.load(Ordering::Acquire) {
        let before = truth.rows.lock().unwrap().clone();
        let seen = scan_through(&engine, &table).await;
        let after = truth.rows.lock().unwrap().clone();
        assert!(seen.is_sorted_by(|a, b| a < b), "not in order, or not each once: {seen:?}");
        let seen: BTreeSet<&String> = seen.iter().collect();
        for (partition, insertion) in before {
            if after.get(&partition) == Some(&insertion) {
                assert!(
                    seen.contains(&partition),
                    "{partition} was there throughout, but only {seen:?} were seen"
                );
            }
        }
        truth.scans.fetch_add(1, Ordering::AcqRel);
    }
}

/// The partitions of the whole table, page by page.
async fn scan_through(engine: &CassandraEngine, table: &TableRef) -> Vec<String> {
    let (mut seen, mut from) = (Vec::new(), Cut::start());
    loop {
        let rows = rand::rng().random_range(1..60);
        let rest = vec![KeyRange { start: from.clone(), end: Cut::End }];
        let page: Scan = scan(rest, rows);
        match engine.scan(table, page).await {
            Ok(page) => {
                seen.extend(page.entities.iter().map(|entity| entity.partition.to_owned()));
                match page.next {
                    Some(next) => from = Cut::before(next.partition.as_str(), next.row.as_str()),
                    None => return seen,
                }
            }
            Err(Error::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Servers that only run their janitors, and are stopped at a random moment.
async fn start_and_kill_janitors(options: Options, truth: Arc<Truth>) {
    while !truth.over.load(Ordering::Acquire) {
        let server = open(&options).await;
        let life = rand::rng().random_range(300..1500);
        tokio::time::sleep(Duration::from_millis(life)).await;
        drop(server);
    }
}

/// Checks what is stored in the cluster, without the engine: partitions with rows are listed in the current segment
/// and, once the janitors have done their work, no others are. Returns the version of the map.
async fn audit(options: &Options, truth: &Truth) -> i64 {
    let session = connect(options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    let expected: BTreeSet<Vec<u8>> = truth.rows.lock().unwrap().keys().map(|key| stored(key)).collect();
    let engine = open(options).await;
    let until = Instant::now() + PATIENCE;
    loop {
        let table: Uuid = session
            .query_unpaged("SELECT id FROM tables", ())
            .await
            .unwrap()
            .into_rows_result()
            .unwrap()
            .rows::<(Option<Uuid>,)>()
            .unwrap()
            .find_map(|row| row.unwrap().0)
            .unwrap();
        let rows = session.query_unpaged("SELECT tid, pk, rk FROM entities", ()).await.unwrap();
        let rows = rows.into_rows_result().unwrap();
        let rows = rows.rows::<(Uuid, Vec<u8>, Option<Vec<u8>>)>().unwrap().map(Result::unwrap);
        let with_rows: BTreeSet<Vec<u8>> = rows
            .filter(|(tid, _, row)| *tid == table && row.as_ref().is_some_and(|row| *row != [0]))
            .map(|(_, partition, _)| partition)
            .collect();
        assert_eq!(with_rows, expected, "what was written is there");

        let map = map_of(&session, table).await;
        let mut listed = BTreeSet::new();
        for (i, (start, segment, _)) in map.iter().enumerate() {
            let end = map.get(i + 1).map(|(start, ..)| start);
            let entries =
                session.query_unpaged("SELECT pk, epoch FROM directory WHERE segment = ?", (segment,)).await;
            let entries = entries.unwrap().into_rows_result().unwrap();
            for entry in entries.rows::<(Vec<u8>, i64)>().unwrap() {
                let (entry, epoch) = entry.unwrap();
                assert!(
                    entry >= *start && end.is_none_or(|end| entry < *end),
                    "an entry lies in its segment"
                );
                // An odd number strikes off.
                if epoch % 2 == 0 {
                    listed.insert(entry);
                }
            }
        }
        // The janitors still run. If one has moved a segment meanwhile, the entries may have been read after it had removed
        // those of the old segment.
        if map_of(&session, table).await != map {
            continue;
        }
        assert!(listed.is_superset(&with_rows), "a partition with a row is listed");
        if listed == with_rows {
            engine.close().await;
            return map[0].2;
        }
        assert!(Instant::now() < until, "empty partitions stay listed: {:?}", listed.difference(&with_rows));
        // A scan reports empty partitions to the janitor.
        scan_through(&engine, &store_suite::table("Fire")).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The version of the map of the only table, 0 if it has none yet.
async fn map_version(session: &Session) -> i64 {
    let versions = session.query_unpaged("SELECT version FROM segments", ()).await.unwrap();
    let versions = versions.into_rows_result().unwrap();
    versions.rows::<(Option<i64>,)>().unwrap().filter_map(|row| row.unwrap().0).max().unwrap_or(0)
}

/// The segments of a table: where each begins, its name, and the version of the map.
async fn map_of(session: &Session, table: Uuid) -> Vec<(Vec<u8>, Uuid, i64)> {
    let map = session
        .query_unpaged("SELECT start, segment, version FROM segments WHERE tid = ?", (table,))
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    map.rows().unwrap().map(Result::unwrap).collect()
}

fn stored(key: &str) -> Vec<u8> {
    [&[1], key.as_bytes()].concat()
}
