//! Scans: their order, ranges, budgets and filters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Cut, EntityKey, KeyRange, ServiceKind, ValueRef};
use store::{Budget, Candidate, Change, Condition, Fault, RowFilter, Scan, Transaction};

use crate::Shared;
use crate::fixtures::{created, filled, insert, key, keys, number, of_service, scan};

pub async fn rows_come_in_utf16_order_each_once(engine: Shared) {
    let table = created(&engine, "Books").await;
    let texts =
        ["", " ", "!", "A", "AA", "Z", "a", "b", "é", "\u{d7ff}", "𝄞", "\u{10ffff}", "\u{e000}", "\u{ffff}"];
    for partition in texts.iter().rev() {
        for row in texts {
            engine.apply(&table, insert(partition, row, 1)).await.unwrap();
        }
    }
    let page = engine.scan(&table, scan(vec![KeyRange::all()], 1000)).await.unwrap();
    let expected: Vec<String> =
        texts.iter().flat_map(|p| texts.iter().map(move |r| format!("{p}|{r}"))).collect();
    assert_eq!(keys(&page), expected);
    assert_eq!(page.next, None);
}

/// Keys of up to 4,096 units, with any characters but those below the space: in scans, in ranges, and as places to go on.
pub async fn rows_of_other_services_have_wider_keys(engine: Shared) {
    let container = of_service(ServiceKind::Blob, "pictures");
    engine.create_table(&container, None).await.unwrap();
    let long = |unit: &str, units: usize| unit.repeat(units);
    let texts = [
        String::new(),
        "a".to_owned(),
        "a#".to_owned(),
        "a/b".to_owned(),
        "a/b?c".to_owned(),
        "a\\".to_owned(),
        "a\u{7f}".to_owned(),
        "a\u{9f}".to_owned(),
        long("b", 4095),
        long("b", 4096),
        long("\u{ffff}", 4096),
    ];
    assert!(texts.is_sorted());
    let wide = |partition: &str, row: &str| EntityKey::parse_stored(partition, row).unwrap();
    for partition in texts.iter().rev() {
        for row in &texts {
            let put = Change::Put(number(1));
            let transaction = Transaction::of_one(wide(partition, row), Condition::Absent, put);
            engine.apply(&container, transaction).await.unwrap();
        }
    }
    let expected: Vec<String> =
        texts.iter().flat_map(|p| texts.iter().map(move |r| format!("{p}|{r}"))).collect();
    for rows in [7, 1000] {
        let (mut seen, mut from) = (Vec::new(), Cut::start());
        loop {
            let range = KeyRange { start: from, end: Cut::End };
            let page = engine.scan(&container, scan(vec![range], rows)).await.unwrap();
            seen.extend(keys(&page));
            assert!(page.entities.iter().all(|entity| entity.key().is_ok()));
            let Some(next) = page.next else { break };
            from = Cut::before(next.partition.as_str(), next.row.as_str());
        }
        assert!(seen == expected, "pages of {rows}");
    }
    // A folder is a range of partitions, and a key is found alone.
    let folder = KeyRange { start: Cut::before_partition("a/"), end: Cut::before_partition("a0") };
    let page = engine.scan(&container, scan(vec![folder], 1000)).await.unwrap();
    assert!(keys(&page) == expected[3 * texts.len()..5 * texts.len()]);
    for text in &texts {
        let place = wide(text, text);
        assert!(engine.get(&container, &place).await.unwrap().is_some());
        let exactly = KeyRange::entity(text, text);
        assert_eq!(engine.scan(&container, scan(vec![exactly], 2)).await.unwrap().entities.len(), 1);
        let row = engine.get(&container, &place).await.unwrap();
        engine.load(&container, &place.partition, vec![(place.row.clone(), None)]).await.unwrap();
        assert!(engine.get(&container, &place).await.unwrap().is_none());
        engine.load(&container, &place.partition, vec![(place.row.clone(), row)]).await.unwrap();
        assert!(engine.get(&container, &place).await.unwrap().is_some());
    }
}

pub async fn ranges_read_only_their_rows(engine: Shared) {
    let table = filled(&engine).await;
    let between = |start, end| KeyRange { start, end };
    let cases = [
        (vec![KeyRange::entity("p1", "r07")], 1),
        (vec![KeyRange::entity("p1", "r99")], 0),
        (vec![KeyRange::partition("p2")], 50),
        (vec![between(Cut::before("p1", "r10"), Cut::before("p1", "r20"))], 10),
        (vec![between(Cut::after("p1", "r10"), Cut::after("p1", "r20"))], 10),
        (vec![between(Cut::after_partition("p0"), Cut::before_partition("p3"))], 100),
        (vec![KeyRange::entity("p0", "r00"), KeyRange::partition("p1"), KeyRange::entity("p3", "r49")], 52),
        (vec![between(Cut::before("p9", ""), Cut::End)], 0),
        (vec![], 0),
        (vec![KeyRange::all()], 200),
    ];
    for (ranges, expected) in cases {
        let page = engine.scan(&table, scan(ranges.clone(), 1000)).await.unwrap();
        assert_eq!(page.entities.len(), expected, "{ranges:?}");
        assert_eq!(page.examined, expected as u64, "{ranges:?} must examine nothing else");
        for entity in page.entities.iter() {
            let (partition, row) = (entity.partition, entity.row_key);
            assert!(ranges.iter().any(|range| range.contains(partition, row)), "{ranges:?}");
        }
    }
}

pub async fn a_scan_ends_at_its_budget_and_resumes(engine: Shared) {
    let table = filled(&engine).await;
    let ranges = [KeyRange::partition("p0"), KeyRange::partition("p2")];
    for (rows, bytes) in [(7, usize::MAX), (50, usize::MAX), (100, usize::MAX), (1000, 100), (1000, 1)] {
        let (mut seen, mut from) = (Vec::new(), Cut::start());
        let mut pages = 0;
        loop {
            let rest = KeyRange { start: from.clone(), end: Cut::End };
            let left: Vec<_> = ranges.iter().map(|r| r.intersect(&rest)).filter(|r| !r.is_empty()).collect();
            let budget = Budget { rows, bytes, time: Duration::from_secs(60), examined: u64::MAX };
            let page =
                engine.scan(&table, Scan { ranges: left, budget, filter: None, lasts: false }).await.unwrap();
            assert!(page.entities.len() <= rows && !page.entities.is_empty());
            seen.extend(keys(&page));
            pages += 1;
            match page.next {
                Some(next) => from = Cut::before(next.partition.as_str(), next.row.as_str()),
                None => break,
            }
        }
        let row = |p: &'static str| (0..50).map(move |r| format!("{p}|r{r:02}"));
        assert_eq!(
            seen,
            row("p0").chain(row("p2")).collect::<Vec<_>>(),
            "pages of {rows} rows, {bytes} bytes"
        );
        if bytes == usize::MAX {
            assert_eq!(pages, 100_usize.div_ceil(rows), "exactly full pages end without a token");
        } else {
            assert!(pages > 10);
        }
    }
    let budget = Budget { rows: 1000, bytes: usize::MAX, time: Duration::ZERO, examined: u64::MAX };
    let hurried = Scan { ranges: vec![KeyRange::all()], budget, filter: None, lasts: false };
    let page = engine.scan(&table, hurried).await.unwrap();
    assert!(page.entities.len() < 200 && page.next.is_some(), "no time left: a short page and a token");
}

struct Even;

impl RowFilter for Even {
    fn keep(&self, candidate: Candidate<'_>) -> Result<bool, Fault> {
        let (partition, row_key) = candidate.keys()?;
        assert!(partition.starts_with('p') && row_key.starts_with('r'));
        let mut found = [None];
        candidate.row.find(&["N"], &mut found)?;
        Ok(matches!(found, [Some(ValueRef::Int32(n))] if n % 10 == 0))
    }
}

pub async fn a_filtered_scan_returns_the_rows_that_its_filter_keeps(engine: Shared) {
    let table = filled(&engine).await;
    let page = engine
        .scan(&table, Scan { filter: Some(Arc::new(Even)), ..scan(vec![KeyRange::all()], 7) })
        .await
        .unwrap();
    assert_eq!(keys(&page), ["p0|r00", "p0|r10", "p0|r20", "p0|r30", "p0|r40", "p1|r00", "p1|r10"]);
    assert_eq!(page.next, Some(key("p1", "r11")));
    let budget = Budget { rows: 7, bytes: usize::MAX, time: Duration::ZERO, examined: u64::MAX };
    let ranges = vec![KeyRange { start: Cut::before("p0", "r41"), end: Cut::End }];
    let page = engine
        .scan(&table, Scan { ranges, budget, filter: Some(Arc::new(Nothing)), lasts: false })
        .await
        .unwrap();
    assert!(page.entities.is_empty() && page.next.is_some(), "an empty page with a token is legal");
}

struct Nothing;

impl RowFilter for Nothing {
    fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
        Ok(false)
    }
}

/// Counts the rows that it is asked about, and keeps every tenth.
#[derive(Default)]
struct Counting(AtomicU64);

impl RowFilter for Counting {
    fn keep(&self, _: Candidate<'_>) -> Result<bool, Fault> {
        Ok(self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(10))
    }
}

pub async fn a_page_tells_how_many_rows_it_examined_and_ends_at_its_limit(engine: Shared) {
    let table = filled(&engine).await;
    let ranges = || vec![KeyRange::partition("p0"), KeyRange::partition("p2")];
    for (limit, examined, next) in [
        (u64::MAX, 100, None),
        (101, 100, None),
        (100, 100, None),
        (99, 99, Some(key("p2", "r49"))),
        (51, 51, Some(key("p2", "r01"))),
        (50, 50, Some(key("p2", "r00"))),
        (1, 1, Some(key("p0", "r01"))),
    ] {
        let filter = Arc::new(Counting::default());
        let mut limited = Scan { filter: Some(filter.clone()), ..scan(ranges(), 1000) };
        limited.budget.examined = limit;
        let page = engine.scan(&table, limited).await.unwrap();
        let asked = filter.0.load(Ordering::Relaxed);
        assert_eq!((page.examined, asked, page.next), (examined, examined, next), "limit {limit}");
        assert_eq!(page.entities.len() as u64, examined.div_ceil(10), "limit {limit}");
        let mut unfiltered = scan(ranges(), 1000);
        unfiltered.budget.examined = limit;
        let page = engine.scan(&table, unfiltered).await.unwrap();
        assert_eq!((page.examined, page.entities.len() as u64), (examined, examined), "limit {limit}");
    }
}
