//! A scan by two threads has the same result as a scan by one, and a damaged row ends both.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{load, open, open_with, partition_name, raw};
use engine_embedded::{Counters, Options};
use model::{Cut, EntityKey, KeyRange, ValueRef};
use rand::Rng;
use store::{Budget, Candidate, Engine, Error, Fault, FaultKind, RowFilter, Scan};
use store_suite::{key, scan, table};
use tempfile::TempDir;

const ROWS: usize = 60_000;

/// Keeps every row whose number, times this, ends in no more than that many of a hundred.
struct Sometimes(i32, i32);

impl RowFilter for Sometimes {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault> {
        let mut found = [None];
        candidate.row.find(&["N"], &mut found)?;
        let [Some(ValueRef::Int32(n))] = found else { return Ok(false) };
        let (partition, _) = candidate.keys()?;
        let seed: i32 = partition.bytes().map(i32::from).sum();
        Ok((n * self.0 + seed * 37) % 100 < self.1)
    }
}

fn random_scan() -> Scan {
    let mut random = rand::rng();
    let mut place = || {
        let (partition, row) = (random.random_range(0..ROWS / 100), random.random_range(0..100));
        Cut::before(&partition_name(partition), &format!("r{row:02}"))
    };
    let mut places = [place(), place(), place(), place()];
    places.sort();
    let [a, b, c, d] = places;
    let range = |start, end| KeyRange { start, end };
    let ranges = match random.random_range(0..4) {
        0 => vec![KeyRange::all()],
        1 => vec![range(a, d)],
        2 => vec![range(a, Cut::End)],
        _ => vec![range(a, b), range(c, d)],
    };
    let budget = Budget {
        rows: *pick(&[1, 7, 100, 300, 1000, usize::MAX]),
        bytes: *pick(&[1000, 30_000, 100_000, usize::MAX]),
        time: Duration::from_secs(600),
        examined: *pick(&[u64::MAX, u64::MAX, 1000, 20_000]),
    };
    let filter = Sometimes(random.random_range(1..50), *pick(&[0, 0, 1, 2, 10]));
    Scan { ranges, budget, filter: Some(Arc::new(filter)), lasts: false }
}

fn pick<T>(of: &[T]) -> &T {
    &of[rand::rng().random_range(0..of.len())]
}

#[derive(Debug, PartialEq)]
struct Answer {
    rows: Vec<(String, String, Vec<u8>)>,
    next: Option<EntityKey>,
    examined: u64,
    kibibytes: u64,
}

async fn answers(directory: &Path, helpers: usize, scans: &[Scan]) -> (Vec<Answer>, Counters) {
    let options = Options { scan_helpers: helpers, ..Options::new(directory) };
    let engine = open_with(options);
    let mut found = Vec::new();
    for scan in scans {
        let page = engine.scan(&table("Books"), scan.clone()).await.unwrap();
        let rows = page.entities.iter();
        let rows = rows.map(|e| (e.partition.to_owned(), e.row_key.to_owned(), e.row.bytes().to_vec()));
        found.push(Answer {
            rows: rows.collect(),
            next: page.next,
            examined: page.examined,
            kibibytes: page.kibibytes,
        });
    }
    let counters = engine.counters();
    engine.close().await;
    (found, counters)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_threads_return_the_same_page_as_one() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), ROWS).await;
    engine.close().await;
    drop(engine);

    let scans: Vec<Scan> = (0..60).map(|_| random_scan()).collect();
    let (alone, counters) = answers(directory.path(), 0, &scans).await;
    let examined: u64 = alone.iter().map(|answer| answer.examined).sum();
    assert_eq!((counters.shared_scans, counters.rows_read), (0, examined), "the pages tell what was read");
    let (together, counters) = answers(directory.path(), 1, &scans).await;
    let shared = counters.shared_scans;
    assert!(
        counters.rows_read >= examined,
        "rows of a helper's discarded page were read, and are not examined"
    );
    assert!(shared > 5, "{shared} of {} scans were shared: too few to mean anything", scans.len());
    for ((scan, alone), together) in scans.iter().zip(&alone).zip(&together) {
        assert!(alone == together, "{scan:?}: {:?} and {:?}", alone.next, together.next);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_scan_that_runs_out_of_time_continues_where_it_stopped() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), ROWS).await;
    engine.close().await;
    drop(engine);

    let engine = open_with(Options { scan_helpers: 1, ..Options::new(directory.path()) });
    let filter: Arc<dyn RowFilter> = Arc::new(Sometimes(1, 1));
    let expected = Scan { filter: Some(filter.clone()), ..scan(vec![KeyRange::all()], usize::MAX) };
    let expected = engine.scan(&table("Books"), expected).await.unwrap().entities.len();
    let (mut found, mut examined, mut from) = (0, 0, Some(Cut::start()));
    while let Some(start) = from {
        let budget = Budget {
            rows: usize::MAX,
            bytes: usize::MAX,
            time: Duration::from_millis(3),
            examined: u64::MAX,
        };
        let ranges = vec![KeyRange { start, end: Cut::End }];
        let page = engine
            .scan(&table("Books"), Scan { ranges, budget, filter: Some(filter.clone()), lasts: false })
            .await
            .unwrap();
        found += page.entities.len();
        examined += page.examined;
        from = page.next.map(|next| Cut::before(next.partition.as_str(), next.row.as_str()));
    }
    assert_eq!((found, examined), (expected, ROWS as u64), "each row looked at once");
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_a_fault_and_never_an_answer() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 1000).await;
    engine.close().await;
    drop(engine);

    let db = raw(directory.path());
    let data = db.cf_handle("data").unwrap();
    let (stored, row) = {
        let mut rows = db.raw_iterator_cf(data);
        rows.seek_to_last();
        (rows.key().unwrap().to_vec(), rows.value().unwrap().to_vec())
    };
    let damaged: [(&str, Vec<u8>); 4] = [
        ("nothing", vec![]),
        ("another format", [&[9], &row[1..]].concat()),
        ("cut short", row[..row.len() - 3].to_vec()),
        ("a type there is not", [&row[..10], &[77], &row[11..]].concat()),
    ];
    drop(db);
    for (what, bytes) in damaged {
        let db = raw(directory.path());
        db.put_cf(db.cf_handle("data").unwrap(), &stored, bytes).unwrap();
        drop(db);
        let engine = open(directory.path());
        let books = table("Books");
        let all = || vec![KeyRange::all()];
        let whole = engine.scan(&books, scan(all(), usize::MAX)).await.unwrap();
        assert_eq!(whole.entities.len(), 1000, "rows are checked by reading them, so {what} counts as one");
        let properties = whole.entities.show(|rows| rows.map(|row| row.properties.count()).sum::<usize>());
        assert!(properties.is_err(), "{what}: {properties:?}");
        let filtered = Scan { filter: Some(Arc::new(Sometimes(1, 0))), ..scan(all(), usize::MAX) };
        let filtered = engine.scan(&books, filtered).await;
        let Err(Error::Fault(fault)) = filtered else { panic!("{what}: {filtered:?}") };
        assert_eq!(fault.kind(), FaultKind::Damaged, "{what}: {fault}");
        assert!(fault.to_string().contains("RowKey \"r99\", table Books"), "{what}: {fault}");
        let got = engine.get(&books, &key(&partition_name(9), "r99")).await.unwrap().unwrap();
        let properties = got.show(|_, properties| properties.count());
        assert!(properties.is_err(), "{what}: {properties:?}");
        let before = engine.scan(&books, scan(all(), 900)).await.unwrap();
        assert_eq!(before.entities.len(), 900, "rows before it can be read");
        engine.close().await;
    }
}
