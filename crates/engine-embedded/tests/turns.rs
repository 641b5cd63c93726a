//! Scans take turns: a long scan lets waiting scans go first, and still reaches its end.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::support::{eventually, load, partition_name};
use engine_embedded::{EmbeddedEngine, Options};
use model::{Cut, KeyRange};
use store::{Budget, Candidate, Engine, Error, Fault, RowFilter, Scan};
use store_suite::{scan, table};
use tempfile::TempDir;
use testing::wait_until;

const ROWS: usize = 10_000;

/// Keeps no row and is slow: more than two seconds for all rows. It can be held at a row, so that nothing depends on how
/// fast the test gets on beside it.
#[derive(Default)]
struct Slow {
    rows: AtomicUsize,
    is_held: AtomicBool,
}

impl Slow {
    fn rows(&self) -> usize {
        self.rows.load(Ordering::SeqCst)
    }

    fn hold(&self) {
        self.is_held.store(true, Ordering::SeqCst);
    }

    fn go_on(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }
}

impl RowFilter for Slow {
    fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
        self.rows.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(200));
        wait_until("the scan may go on", || (!self.is_held.load(Ordering::SeqCst)).then_some(()));
        Ok(false)
    }
}

fn slow(from: Cut) -> (Arc<Slow>, Scan) {
    let filter = Arc::new(Slow::default());
    let budget = Budget { rows: 1000, bytes: usize::MAX, time: Duration::from_secs(600), examined: u64::MAX };
    let ranges = vec![KeyRange { start: from, end: Cut::End }];
    (filter.clone(), Scan { ranges, budget, filter: Some(filter), lasts: false })
}

async fn loaded(concurrent_scans: usize, waiting_scans: usize) -> (TempDir, Arc<EmbeddedEngine>) {
    let directory = TempDir::new().unwrap();
    let options = Options { concurrent_scans, waiting_scans, ..Options::new(directory.path()) };
    let engine = Arc::new(EmbeddedEngine::open(options).unwrap());
    load(&engine, &table("Books"), ROWS).await;
    (directory, engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_scan_gives_way_and_continues_where_it_stopped() {
    let (_directory, engine) = loaded(1, 100).await;
    let (slow_filter, long) = slow(Cut::start());
    slow_filter.hold();
    let reader = engine.clone();
    let long = tokio::spawn(async move { reader.scan(&table("Books"), long).await });
    eventually("the long scan reads", || slow_filter.rows() > 0).await;

    let books = table("Books");
    let partition = scan(vec![KeyRange::partition(&partition_name(7))], 1000);
    let mut short = pin!(engine.scan(&books, partition));
    let mut context = Context::from_waker(Waker::noop());
    assert!(short.as_mut().poll(&mut context).is_pending(), "who is polled once stands in line");
    slow_filter.go_on();
    assert_eq!(short.await.unwrap().entities.len(), 100);

    let page = long.await.unwrap().unwrap();
    let next = page.next.expect("cut short, though it had ten minutes");
    assert!(page.examined < ROWS as u64);
    let (_, rest) = slow(Cut::before(next.partition.as_str(), next.row.as_str()));
    let rest = engine.scan(&table("Books"), rest).await.unwrap();
    assert_eq!((page.examined + rest.examined, rest.next), (ROWS as u64, None));
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_scan_is_not_interrupted_if_no_other_waits() {
    let (_directory, engine) = loaded(1, 100).await;
    let page = engine.scan(&table("Books"), slow(Cut::start()).1).await.unwrap();
    assert_eq!((page.examined, page.next), (ROWS as u64, None));
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scan_too_many_is_answered_busy() {
    let (_directory, engine) = loaded(1, 1).await;
    let (slow_filter, long) = slow(Cut::start());
    slow_filter.hold();
    let reader = engine.clone();
    let long = tokio::spawn(async move { reader.scan(&table("Books"), long).await });
    eventually("the long scan reads", || slow_filter.rows() > 0).await;
    let all = || scan(vec![KeyRange::all()], 1);
    // A scan whose client has given up leaves its turn to the next.
    let gave_up = tokio::time::timeout(Duration::from_millis(20), engine.scan(&table("Books"), all())).await;
    assert!(gave_up.is_err());
    let books = table("Books");
    let mut waiting = pin!(engine.scan(&books, all()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending(), "who is polled once stands in line");
    let mut refused = pin!(engine.scan(&books, all()));
    assert!(matches!(refused.as_mut().poll(&mut context), Poll::Ready(Err(Error::Busy))));
    slow_filter.go_on();
    assert!(waiting.await.is_ok());
    assert!(long.await.unwrap().is_ok());
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_whose_caller_no_longer_waits_stops() {
    let (_directory, engine) = loaded(1, 100).await;
    let (slow_filter, long) = slow(Cut::start());
    slow_filter.hold();
    let books = table("Books");
    tokio::select! {
        page = engine.scan(&books, long) => panic!("{page:?}"),
        () = eventually("the long scan reads", || slow_filter.rows() > 0) => {}
    }
    slow_filter.go_on();
    // The only turn is free again long before the scan could have read all rows.
    assert_eq!(engine.scan(&table("Books"), scan(vec![KeyRange::all()], 1)).await.unwrap().entities.len(), 1);
    assert!(slow_filter.rows() < ROWS / 2, "{}", slow_filter.rows());
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_without_rows_count_towards_the_time_of_a_scan() {
    let (_directory, engine) = loaded(1, 100).await;
    // The first thousands of ranges are empty, and the last one has a partition.
    let empty = (0..4000).map(|n| KeyRange::entity("a", &format!("{n:05}")));
    let ranges: Vec<_> = empty.chain([KeyRange::partition(&partition_name(7))]).collect();
    let before = engine.counters().seeks;
    let budget = Budget { rows: 1000, bytes: usize::MAX, time: Duration::ZERO, examined: u64::MAX };
    let page = Scan { budget, ..scan(ranges.clone(), 1000) };
    let page = engine.scan(&table("Books"), page).await.unwrap();
    let seeks = engine.counters().seeks - before;
    assert!(seeks < 100, "{seeks} seeks without any time");
    // It continues at the first row behind the ranges that it read, and misses none.
    let next = page.next.expect("there is more");
    assert_eq!((page.examined, next.partition.as_str()), (0, partition_name(0).as_str()));
    let whole = engine.scan(&table("Books"), scan(ranges, 1000)).await.unwrap();
    assert_eq!((whole.examined, whole.next), (100, None));
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_can_last_as_long_as_its_page() {
    let (_directory, engine) = loaded(1, 100).await;
    let lasting = Scan { lasts: true, ..scan(vec![KeyRange::all()], 1) };
    let page = engine.scan(&table("Books"), lasting).await.unwrap();
    let books = table("Books");
    let next =
        tokio::time::timeout(Duration::from_millis(50), engine.scan(&books, scan(vec![KeyRange::all()], 1)));
    assert!(next.await.is_err(), "the page is still there");
    drop(page);
    assert_eq!(engine.scan(&table("Books"), scan(vec![KeyRange::all()], 1)).await.unwrap().entities.len(), 1);
    engine.close().await;
}
