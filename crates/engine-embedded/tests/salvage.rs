//! A salvage reports the damage and saves everything else.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{self, ROWS_PER_TRANSACTION, crash, files, load, open};
use bytes::Bytes;
use engine_embedded::{DamageEdge, EmbeddedEngine, Report, SalvageError, SalvageReport};
use model::{KeyRange, ServiceKind};
use store::{Change, Condition, Engine, NoObjects, TableRef, Transaction};
use store_suite::{account, insert, number, scan, table};
use tempfile::TempDir;

type Rows = BTreeMap<(String, String), Vec<u8>>;

const PARTITIONS: usize = 200;
const ROWS: usize = PARTITIONS * ROWS_PER_TRANSACTION;

/// All rows of a table, with their stored bytes.
async fn rows(engine: &EmbeddedEngine, table: &TableRef) -> Rows {
    let mut rows = Rows::new();
    let page = engine.scan(table, scan(vec![KeyRange::all()], usize::MAX)).await.unwrap();
    for entity in page.entities.iter() {
        let key = store_suite::key(entity.partition, entity.row_key);
        let row = engine.get(table, &key).await.unwrap().unwrap();
        let key = (entity.partition.to_string(), entity.row_key.to_string());
        rows.insert(key, row.raw().bytes().to_vec());
    }
    rows
}

/// A closed store with a large and a small table, each in its own table file, and the rows of the large one.
async fn store(directory: &Path) -> Rows {
    let engine = open(directory);
    load(&engine, &table("Big"), ROWS).await;
    engine.close().await;
    drop(engine);
    let engine = open(directory);
    engine.create_table(&table("Small"), None).await.unwrap();
    engine.apply(&table("Small"), insert("p", "r", 1)).await.unwrap();
    assert!(
        engine.replace_table_metadata(&table("Small"), None, Bytes::from_static(b"policies")).await.unwrap()
    );
    assert!(
        engine
            .replace_service_metadata(
                &account("devstoreaccount1"),
                ServiceKind::Queue,
                None,
                Bytes::from_static(b"cors")
            )
            .await
            .unwrap()
    );
    let all = rows(&engine, &table("Big")).await;
    assert_eq!(all.len(), ROWS);
    engine.close().await;
    all
}

fn check(directory: &Path) -> Report {
    support::check(directory, &NoObjects).unwrap()
}

fn salvage(directory: &Path, target: &Path) -> SalvageReport {
    support::salvage(directory, target, &NoObjects).unwrap()
}

fn shown(report: &Report) -> String {
    report.damage.iter().map(|damage| format!("{damage}\n")).collect()
}

fn largest(directory: &Path, extension: &str) -> PathBuf {
    files(directory, extension).into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn bytes_of_all(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = [directory.to_owned(), directory.join("db")];
    let entries =
        paths.iter().flat_map(|path| fs::read_dir(path).unwrap()).map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// Salvages, checks that the old store is unchanged and the new one sound, and opens the new one.
async fn saved(directory: &Path) -> (SalvageReport, Arc<EmbeddedEngine>, TempDir) {
    let before = bytes_of_all(directory);
    let place = TempDir::new().unwrap();
    let target = place.path().join("new");
    let salvaged = salvage(directory, &target);
    assert!(bytes_of_all(directory) == before, "the old store was changed");
    let report = check(&target);
    assert!(report.is_sound(), "{}", shown(&report));
    assert_eq!(report.entities(), salvaged.entities);
    let engine = open(&target);
    // It accepts writes, with timestamps above all saved ones.
    engine.create_table(&table("After"), None).await.unwrap();
    engine.apply(&table("After"), insert("p", "r", 1)).await.unwrap();
    (salvaged, engine, place)
}

fn lost(all: &Rows, left: &Rows) -> Vec<(String, String)> {
    for (key, row) in left {
        assert_eq!(all.get(key), Some(row), "{key:?} is not what it was");
    }
    all.keys().filter(|key| !left.contains_key(*key)).cloned().collect()
}

#[tokio::test]
async fn an_undamaged_store_is_salvaged_completely() {
    let directory = TempDir::new().unwrap();
    let all = store(directory.path()).await;
    let (salvaged, engine, _place) = saved(directory.path()).await;
    assert!(salvaged.report.is_sound() && salvaged.named.is_empty());
    assert_eq!(rows(&engine, &table("Big")).await, all);
    let policies = engine.table_metadata(&table("Small")).await.unwrap();
    assert_eq!(policies, Some(Bytes::from_static(b"policies")));
    let cors = engine.service_metadata(&account("devstoreaccount1"), ServiceKind::Queue).await.unwrap();
    assert_eq!(cors, Some(Bytes::from_static(b"cors")));
    let none = engine.service_metadata(&account("devstoreaccount1"), ServiceKind::Table).await.unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn damaged_blocks_cost_their_own_rows_and_no_others() {
    let directory = TempDir::new().unwrap();
    let all = store(directory.path()).await;
    let file = largest(directory.path(), "sst");
    let length = fs::metadata(&file).unwrap().len() as usize;
    // The first block, two that are far apart, and two adjacent ones.
    for at in [100, length / 3, length / 2, length / 2 + 9000] {
        flip(&file, at);
    }
    let report = check(directory.path());
    let gaps: Vec<_> = report.damage.iter().filter(|damage| damage.after.is_some()).collect();
    assert!((3..=4).contains(&gaps.len()) && gaps.len() == report.damage.len(), "{}", shown(&report));
    for gap in &gaps {
        assert_eq!(gap.file.as_ref(), Some(&name(&file)));
        assert!(gap.detail.contains("checksum"), "{gap}");
        assert_eq!(gap.after.as_ref().unwrap().row().table, "Big");
    }

    let (salvaged, engine, _place) = saved(directory.path()).await;
    assert_eq!(shown(&salvaged.report), shown(&report));
    let lost = lost(&all, &rows(&engine, &table("Big")).await);
    assert!((20..=200).contains(&lost.len()), "four blocks of 8 KiB hold {} rows", lost.len());
    // Each of them lies in a reported gap.
    for (partition, row) in lost {
        let place = (partition, row);
        let is_told = gaps.iter().any(|gap| {
            let edge = |place: &DamageEdge| (place.row().partition_key.clone(), place.row().row_key.clone());
            let (after, before) = (gap.after.as_ref().unwrap(), gap.before.as_ref().unwrap());
            let is_behind =
                edge(after) < place || (matches!(after, DamageEdge::Lost(_)) && edge(after) == place);
            is_behind && place < edge(before)
        });
        assert!(is_told, "{place:?} is lost, but not between\n{}", shown(&report));
    }
    assert_eq!(rows(&engine, &table("Small")).await.len(), 1);
}

#[tokio::test]
async fn rows_that_may_be_older_than_what_was_lost_are_saved_and_counted() {
    let directory = TempDir::new().unwrap();
    let all = store(directory.path()).await;
    let engine = open(directory.path());
    // A few rows, far apart, are replaced in a second table file, which is then lost.
    for partition in [3, 100, 150] {
        let change = Change::Put(number(7));
        let key = store_suite::key(&format!("p{partition:05}"), "r50");
        engine.apply(&table("Big"), Transaction::of_one(key, Condition::Exists, change)).await.unwrap();
    }
    let newest = files(directory.path(), "sst");
    engine.close().await;
    drop(engine);
    let newer: Vec<_> =
        files(directory.path(), "sst").into_iter().filter(|path| !newest.contains(path)).collect();
    let newer = newer.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    fs::remove_file(&newer).unwrap();
    let (salvaged, engine, _place) = saved(directory.path()).await;
    assert!(shown(&salvaged.report).contains(&name(&newer)), "{}", shown(&salvaged.report));
    let between = (150 - 3) * ROWS_PER_TRANSACTION as u64 + 1;
    assert_eq!(salvaged.report.doubtful_rows, between);
    assert_eq!(rows(&engine, &table("Big")).await, all, "the older versions of those three are back");
}

#[tokio::test]
async fn a_missing_or_truncated_table_file_costs_only_its_own_rows() {
    for cut in [None, Some(5), Some(100_000)] {
        let directory = TempDir::new().unwrap();
        let all = store(directory.path()).await;
        let file = largest(directory.path(), "sst");
        match cut {
            None => fs::remove_file(&file).unwrap(),
            Some(bytes) => {
                let length = fs::metadata(&file).unwrap().len();
                fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length - bytes).unwrap();
            }
        }
        let report = check(directory.path());
        assert_eq!(report.damage.len(), 1, "{}", shown(&report));
        let damage = &report.damage[0];
        assert_eq!(damage.file.as_ref(), Some(&name(&file)));
        assert!(damage.detail.contains(if cut.is_none() { "missing" } else { "cut short" }), "{damage}");
        let edges = [damage.after.as_ref().unwrap(), damage.before.as_ref().unwrap()];
        assert!(edges.iter().all(|edge| edge.row().table == "Big"), "{damage}");
        assert_eq!(edges.map(|edge| &edge.row().row_key[..]), ["r00", "r99"]);

        let (_, engine, _place) = saved(directory.path()).await;
        assert_eq!(lost(&all, &rows(&engine, &table("Big")).await).len(), ROWS);
        assert_eq!(rows(&engine, &table("Small")).await.len(), 1);
    }
}

#[tokio::test]
async fn a_damaged_manifest_costs_nothing() {
    for damage in ["flipped", "missing", "no current"] {
        let directory = TempDir::new().unwrap();
        let all = store(directory.path()).await;
        let database = directory.path().join("db");
        let manifest = fs::read_to_string(database.join("CURRENT")).unwrap();
        let manifest = database.join(manifest.trim_end());
        match damage {
            "flipped" => flip(&manifest, 300),
            "missing" => fs::remove_file(&manifest).unwrap(),
            _ => fs::remove_file(database.join("CURRENT")).unwrap(),
        }
        let report = check(directory.path());
        assert_eq!(report.damage.len(), 1, "{}", shown(&report));
        let expected = if damage == "no current" { "CURRENT" } else { "MANIFEST" };
        assert!(report.damage[0].to_string().contains(expected), "{}", shown(&report));
        let (_, engine, _place) = saved(directory.path()).await;
        assert_eq!(rows(&engine, &table("Big")).await, all, "{damage}");
    }
}

#[tokio::test]
async fn a_hole_in_the_log_costs_only_the_commits_in_it() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let engine = open(directory.path());
    const INSERTS: i32 = 2000;
    for row in 0..INSERTS {
        engine.apply(&table("Small"), insert("log", &format!("{row:04}"), row)).await.unwrap();
    }
    let all = rows(&engine, &table("Small")).await;
    crash(engine);
    let log = largest(directory.path(), "log");
    flip(&log, fs::metadata(&log).unwrap().len() as usize / 2);
    let report = check(directory.path());
    assert_eq!(report.damage.len(), 1, "{}", shown(&report));
    let damage = report.damage[0].to_string();
    assert!(damage.starts_with(&format!("{}: unreadable at byte", name(&log))), "{damage}");
    assert!(damage.contains("lost, those behind are readable"), "{damage}");

    let (_, engine, _place) = saved(directory.path()).await;
    let left = rows(&engine, &table("Small")).await;
    let lost = lost(&all, &left);
    // The log is read in blocks of 32 KiB.
    assert!((1..400).contains(&lost.len()), "{}", lost.len());
    assert!(left.contains_key(&("log".to_owned(), format!("{:04}", INSERTS - 1))));
}

#[tokio::test]
async fn a_missing_log_is_noticed() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    for row in 0..50 {
        engine.apply(&table("Books"), insert("p", &format!("{row:03}"), row)).await.unwrap();
    }
    crash(engine);
    for log in files(directory.path(), "log") {
        fs::remove_file(log).unwrap();
    }
    let report = check(directory.path());
    assert!(
        shown(&report).contains("committed: commits 1 to 51 are acknowledged, but not there"),
        "{}",
        shown(&report)
    );
}

#[tokio::test]
async fn a_torn_end_of_the_log_is_not_damage() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 500).await;
    crash(engine);
    let log = largest(directory.path(), "log");
    for tail in [vec![0; 700], (0..900).map(|_| rand::random()).collect()] {
        let whole = fs::read(&log).unwrap();
        fs::write(&log, [&whole[..], &tail].concat()).unwrap();
        let report = check(directory.path());
        assert!(report.is_sound(), "{}", shown(&report));
        assert_eq!(report.entities(), 500);
        fs::write(&log, whole).unwrap();
    }
}

#[tokio::test]
async fn rows_whose_table_has_lost_its_record_get_a_table() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let rocks = support::raw(directory.path());
    rocks.delete_cf(rocks.cf_handle("meta").unwrap(), b"Tdevstoreaccount1\0small").unwrap();
    drop(rocks);
    assert!(shown(&check(directory.path())).contains("1 rows belong to a table that no record names"));
    let (salvaged, engine, _place) = saved(directory.path()).await;
    let [named] = &salvaged.named[..] else { panic!("{:?}", salvaged.named) };
    assert_eq!((named.account.as_str(), named.entities), ("devstoreaccount1", 1));
    assert_eq!(rows(&engine, &table(&named.table)).await.len(), 1);
}

#[tokio::test]
async fn every_flipped_byte_of_a_table_file_is_found() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    load(&engine, &table("Books"), 300).await;
    engine.close().await;
    drop(engine);
    let file = largest(directory.path(), "sst");
    let whole = fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(97).chain(whole.len() - 60..whole.len()) {
        flip(&file, at);
        assert!(!check(directory.path()).is_sound(), "byte {at}");
        fs::write(&file, &whole).unwrap();
    }
}

#[tokio::test]
async fn a_directory_that_is_not_empty_is_not_written_to() {
    let (directory, target) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    store(directory.path()).await;
    fs::write(target.path().join("mine"), "").unwrap();
    let refused = engine_embedded::salvage(directory.path(), target.path(), &NoObjects, &mut |_| {});
    assert!(matches!(refused, Err(SalvageError::Occupied(_))), "{refused:?}");
    let nothing = TempDir::new().unwrap();
    let new = nothing.path().join("new");
    let refused = engine_embedded::salvage(nothing.path(), &new, &NoObjects, &mut |_| {});
    assert!(matches!(refused, Err(SalvageError::Source(_))), "{refused:?}");
    assert_eq!(fs::read_dir(nothing.path()).unwrap().count(), 0);
    // An empty directory is accepted.
    fs::create_dir(&new).unwrap();
    salvage(directory.path(), &new);
    open(&new).close().await;
}
