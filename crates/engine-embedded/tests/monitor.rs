//! The numbers for monitors are those of the work that was done.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::open;
use engine_embedded::{EmbeddedEngine, Options};
use model::EntityKey;
use store::{Engine, EngineCounters, EngineValue};
use store_suite::{insert, table};
use tempfile::TempDir;

fn numbers(engine: &dyn Engine) -> EngineCounters {
    engine.counters()
}

fn number(engine: &dyn Engine, name: &str) -> f64 {
    numbers(engine).number(name).unwrap_or_else(|| panic!("there is no {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_counted_with_the_sizes_of_their_groups_and_their_times() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let before = numbers(&*engine);
    let writers = (0..32).map(|writer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for row in 0..20 {
                engine
                    .apply(&table("Books"), insert(&format!("w{writer}"), &row.to_string(), row))
                    .await
                    .unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let after = numbers(&*engine);
    let grown = |name: &str| after.number(name).unwrap() - before.number(name).unwrap();
    assert_eq!(grown("transactions"), 640.0);
    assert_eq!(grown("commit_transactions_sum"), 640.0);
    assert_eq!(grown("commit_transactions_count"), grown("commits"));
    assert_eq!(grown("commit_seconds_count"), grown("commits"));
    assert!(grown("commit_seconds_sum") > 0.0);
    assert_eq!(after.number("queue_requests"), Some(0.0));
    assert!(after.number("memtable_bytes") > before.number("memtable_bytes"));
    assert!(after.number("wal_bytes") > before.number("wal_bytes"));
}

#[tokio::test]
async fn a_block_counts_as_a_miss_when_it_is_read_and_as_a_hit_when_it_is_read_again() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    for row in 0..100 {
        engine.apply(&table("Books"), insert("p", &row.to_string(), row)).await.unwrap();
    }
    // Closing writes the rows to a table file.
    engine.close().await;
    drop(engine);
    let engine = open(directory.path());
    let get = async || {
        let key = EntityKey::parse("p", "7").unwrap();
        assert!(engine.get(&table("Books"), &key).await.unwrap().is_some());
    };
    let opened = numbers(&*engine);
    get().await;
    let read = numbers(&*engine);
    get().await;
    let again = numbers(&*engine);
    let grown = |from: &EngineCounters, to: &EngineCounters, name: &str| {
        to.number(name).unwrap() - from.number(name).unwrap()
    };
    assert!(grown(&opened, &read, "cache_misses") > 0.0, "{read:?}");
    assert_eq!(grown(&read, &again, "cache_misses"), 0.0, "{again:?}");
    assert!(grown(&read, &again, "cache_hits") > 0.0, "{again:?}");
    assert_eq!(grown(&read, &again, "point_reads"), 1.0);
    assert!(number(&*engine, "table_files_bytes") > 0.0 && number(&*engine, "rows") >= 100.0);
}

#[tokio::test]
async fn the_state_of_rocksdb_and_of_the_disk_is_told() {
    let directory = TempDir::new().unwrap();
    let options = Options { block_cache_bytes: 64 << 20, ..Options::new(directory.path()) };
    let engine = EmbeddedEngine::open(options).unwrap();
    assert_eq!(number(&engine, "cache_max_bytes"), f64::from(64 << 20));
    for name in [
        "cache_bytes",
        "compaction_pending_bytes",
        "compactions_running",
        "live_data_bytes",
        "writes_stopped",
        "write_stalls_delayed",
        "write_stalls_stopped",
        "scans_waiting",
    ] {
        assert!(number(&engine, name) >= 0.0, "{name}");
    }
    assert!(number(&engine, "disk_free_bytes") > 0.0);
    assert!(number(&engine, "disk_size_bytes") >= number(&engine, "disk_free_bytes"));
    engine.close().await;
    let closed = numbers(&engine);
    assert!(closed.number("commits").is_some() && closed.number("cache_bytes").is_none(), "{closed:?}");
}

#[tokio::test]
async fn names_are_in_the_form_that_monitors_expect() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let counters = numbers(&*engine);
    let mut names = std::collections::BTreeSet::new();
    for counter in &counters.0 {
        assert!(counter.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{counter:?}");
        assert!(!counter.name.ends_with("_total") && !counter.meaning.is_empty(), "{counter:?}");
        let is_spread = matches!(counter.value, EngineValue::Spread(_));
        assert!(names.insert((counter.name, counter.label)) && !(is_spread && counter.label.is_some()));
    }
}
