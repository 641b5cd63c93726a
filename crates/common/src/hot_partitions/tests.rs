use super::*;
use std::collections::HashMap;

fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

fn place(partition: &str) -> Place<'_> {
    Place { service: ServiceKind::Table, resource: "books", partition: Some(partition) }
}

const GET: Load = Load { requests: 1, writes: 0, entities: 1, kibibytes: 2, refusals: 0 };

fn at(hot: &HotPartitions, seconds: u64) -> Instant {
    hot.started + Duration::from_secs(seconds)
}

/// A sequence of numbers below `n`, `k` about as often as 1/(k+1): the same in every run.
fn zipf(n: usize, length: usize) -> impl Iterator<Item = usize> {
    let cumulative: Vec<f64> = (0..n)
        .scan(0.0, |sum, k| {
            *sum += 1.0 / (k + 1) as f64;
            Some(*sum)
        })
        .collect();
    let mut state: u64 = 0x1234_5678_9ABC_DEF1;
    (0..length).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = (state >> 11) as f64 / (1_u64 << 53) as f64 * cumulative[n - 1];
        cumulative.partition_point(|sum| *sum <= at).min(n - 1)
    })
}

#[test]
fn the_top_partitions_of_zipf_data_are_those_of_an_exact_count() {
    let (hot, mine) = (HotPartitions::new(), account("mine"));
    const REQUESTS: usize = 300_000;
    let mut exact = HashMap::<usize, u64>::new();
    for (n, k) in zipf(10_000, REQUESTS).enumerate() {
        // Below the rate at which requests are sampled.
        hot.record(&mine, place(&format!("p{k}")), GET, at(&hot, n as u64 / 10_000));
        *exact.entry(k).or_default() += 1;
    }
    let report = hot.report(&mine, PARTITIONS_MAX, HotOrder::Requests, at(&hot, 30));
    let minute = &report.this_minute;
    assert!(!minute.is_sampled && minute.partitions.len() == PARTITIONS_MAX);
    let key = |partition: &HotPartition| partition.partition.as_ref().unwrap()[1..].parse::<usize>().unwrap();
    for partition in &minute.partitions {
        let (truth, load) = (exact[&key(partition)], partition.load);
        assert!(truth <= load.requests && load.requests - partition.error <= truth, "{partition:?}, {truth}");
        assert!(load.entities <= truth && load.entities == load.requests - partition.error, "{partition:?}");
    }
    let mut truth: Vec<(u64, usize)> = exact.iter().map(|(k, count)| (*count, *k)).collect();
    truth.sort_unstable_by(|a, b| b.cmp(a));
    let top: Vec<usize> = truth[..20].iter().map(|(_, k)| *k).collect();
    let mut found: Vec<usize> = minute.partitions[..20].iter().map(key).collect();
    let mut expected = top.clone();
    (found.sort_unstable(), expected.sort_unstable());
    assert_eq!(found, expected, "the twenty most requested");
    for (count, k) in truth.iter().filter(|(count, _)| *count > (REQUESTS / PARTITIONS_MAX) as u64) {
        assert!(minute.partitions.iter().any(|partition| key(partition) == *k), "p{k} with {count} requests");
    }
}

#[test]
fn a_minute_becomes_the_last_and_is_then_forgotten() {
    let (hot, mine) = (HotPartitions::new(), account("mine"));
    hot.record(&mine, place("a"), GET, at(&hot, 59));
    let names = |minute: &HotMinute| -> Vec<String> {
        minute.partitions.iter().map(|partition| partition.partition.clone().unwrap()).collect()
    };
    let report = |seconds| {
        let report = hot.report(&mine, 20, HotOrder::Requests, at(&hot, seconds));
        (names(&report.this_minute), names(&report.last_minute))
    };
    assert_eq!(report(59), (vec!["a".to_owned()], vec![]));
    hot.record(&mine, place("b"), GET, at(&hot, 60));
    assert_eq!(report(119), (vec!["b".to_owned()], vec!["a".to_owned()]));
    assert_eq!(report(120), (vec![], vec!["b".to_owned()]));
    assert_eq!(report(300), (vec![], vec![]));
    assert_eq!(hot.slots_left.load(Ordering::Relaxed), SLOTS_MAX, "all slots were given back");
}

#[test]
fn accounts_services_and_whole_tables_are_apart() {
    let (hot, now) = (HotPartitions::new(), Instant::now());
    let (mine, other) = (account("mine"), account("other"));
    let places = [
        place("a"),
        Place { partition: None, ..place("") },
        Place { partition: Some(""), ..place("") },
        Place { resource: "booksa", partition: None, service: ServiceKind::Table },
        Place { resource: "books", partition: None, service: ServiceKind::Queue },
    ];
    for place in places {
        hot.record(&mine, place, GET, now);
    }
    let report = hot.report(&mine, 20, HotOrder::Requests, now);
    assert_eq!(report.this_minute.partitions.len(), places.len(), "{report:?}");
    for place in places {
        let same = |found: &&HotPartition| {
            (found.service, found.resource.as_str(), found.partition.as_deref())
                == (place.service, place.resource, place.partition)
        };
        assert_eq!(report.this_minute.partitions.iter().filter(same).count(), 1, "{place:?}");
    }
    assert!(hot.report(&other, 20, HotOrder::Requests, now).this_minute.partitions.is_empty());
}

#[test]
fn a_report_is_in_the_order_asked_for() {
    let (hot, mine, now) = (HotPartitions::new(), account("mine"), Instant::now());
    hot.record(&mine, place("busy"), GET, now);
    hot.record(&mine, place("busy"), GET, now);
    hot.record(&mine, place("scanned"), Load { entities: 58_000, ..GET }, now);
    hot.record(&mine, place("large"), Load { kibibytes: 4096, ..GET }, now);
    hot.record(&mine, place("refused"), Load { refusals: 1, entities: 0, ..GET }, now);
    let first = |order| {
        let report = hot.report(&mine, 1, order, now);
        report.this_minute.partitions[0].partition.clone().unwrap()
    };
    let orders = [HotOrder::Requests, HotOrder::Entities, HotOrder::Kibibytes, HotOrder::Refusals];
    assert_eq!(orders.map(first), ["busy", "scanned", "large", "refused"]);
}

#[test]
fn above_twenty_thousand_a_second_one_of_eight_is_counted_for_all() {
    let (hot, mine, now) = (HotPartitions::new(), account("mine"), Instant::now());
    for _ in 0..COUNTED_PER_SECOND {
        hot.record(&mine, place("a"), GET, now);
    }
    assert!(!hot.report(&mine, 1, HotOrder::Requests, now).this_minute.is_sampled);
    for _ in 0..80_000 {
        hot.record(&mine, place("a"), GET, now);
    }
    let report = hot.report(&mine, 1, HotOrder::Requests, now);
    assert!(report.this_minute.is_sampled);
    assert_eq!(report.this_minute.partitions[0].load.requests, 100_000);
}

#[test]
fn ten_thousand_accounts_stay_within_the_slots() {
    let hot = HotPartitions::new();
    let long = "k".repeat(1024);
    for n in 0..10_000 {
        let account = account(&format!("account{n}"));
        for k in 0..20 {
            hot.record(&account, place(&format!("{k}{long}")), GET, at(&hot, 1));
        }
    }
    let used = |hot: &HotPartitions| -> (usize, usize) {
        let shards: Vec<_> = hot.shards.iter().map(|shard| shard.lock().unwrap()).collect();
        let minutes: Vec<_> =
            shards.iter().flat_map(|shard| shard.values().map(|(_, minutes)| minutes)).collect();
        let slots = minutes.iter().map(|m| m.this.partitions.len() + m.last.partitions.len()).sum();
        let places = minutes.iter().flat_map(|m| m.this.partitions.heaviest());
        (slots, places.map(|heavy| heavy.key.text.capacity()).max().unwrap_or(0))
    };
    let (slots, longest) = used(&hot);
    assert_eq!(slots, SLOTS_MAX + 10_000 * OWN_SLOTS);
    assert!(longest <= 2 * KEY_BYTES_MAX, "{longest} bytes of a key");
    // Others have room again once those are idle.
    hot.record(&account("late"), place("a"), GET, at(&hot, 200));
    assert_eq!(used(&hot).0, 1);
    let report = hot.report(&account("late"), 20, HotOrder::Requests, at(&hot, 200));
    assert_eq!(report.this_minute.partitions.len(), 1);
}

#[test]
fn a_long_key_is_shown_cut_and_counted_as_one() {
    let (hot, mine, now) = (HotPartitions::new(), account("mine"), Instant::now());
    let long = "é".repeat(512);
    for _ in 0..3 {
        hot.record(&mine, place(&long), GET, now);
    }
    let report = hot.report(&mine, 20, HotOrder::Requests, now);
    let [only] = &report.this_minute.partitions[..] else { panic!("{report:?}") };
    assert!(only.is_cut && only.load.requests == 3);
    assert_eq!(only.partition.as_deref(), Some(&long[..KEY_BYTES_MAX]));
}
