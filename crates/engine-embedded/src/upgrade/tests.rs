//! A store that version 0.1.0 has written (`scripts/format-fixture`) is upgraded, wherever the upgrade is interrupted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{KeyRange, ServiceKind};
use store::{Engine, TableRef, encoding};
use store_suite::scan;
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::counters::LiveCounters;
use crate::layout::TableId;
use crate::open::OpenStore;
use crate::options::Options;
use crate::{EmbeddedEngine, check, salvage};

/// So few that the fixture takes several commits.
const RECORDS_PER_COMMIT: usize = 4;

/// Everything that a client can see of a store, in its stored bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    /// By account and name.
    tables: BTreeMap<(String, String), Table>,
    /// The documents of the table service, by account.
    services: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    metadata: Option<Vec<u8>>,
    /// By partition key and row key, in the order of the service. A row's bytes have its timestamp, and so its ETag.
    rows: Vec<(String, String, Vec<u8>)>,
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// A copy of an open store, as if its process were killed now.
fn copy_image(data: &Path, image: &Path) {
    // In the background RocksDB deletes files that it no longer needs.
    while let Err(error) = copy(data, image) {
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(image).unwrap();
    }
}

/// A copy of the fixture as version 0.1.0 left it when it was killed, and what it holds.
fn fixture() -> (TempDir, PathBuf, Contents) {
    let fixture = testing::package_directory().join("tests/fixtures/format-1");
    let place = TempDir::new().unwrap();
    let (data, other) = (place.path().join("data"), place.path().join("other"));
    copy(&fixture, &data).unwrap();
    // In another copy, because RocksDB replays the log when it opens it.
    copy(&fixture, &other).unwrap();
    let contents = contents_of_format_1(&other);
    (place, data, contents)
}

/// A dropped table that still takes space: version 0.1.0 leaves one only if it is killed at the right moment.
fn add_dropped_table(data: &Path) {
    let rocks = raw(data);
    rocks.put_cf(rocks.cf_handle("meta").unwrap(), dropping_key(), [1]).unwrap();
}

fn dropping_key() -> Vec<u8> {
    [&b"D"[..], &[0xAB; 16]].concat()
}

/// Without the families that older programs do not know: they must not be in a store that they may still open.
fn raw(data: &Path) -> DB {
    DB::open_cf(&rocksdb::Options::default(), data.join("db"), ["default", "meta", "data"]).unwrap()
}

fn raw_upgraded(data: &Path) -> DB {
    let families = ["default", "meta", "data", "objects", "files"];
    DB::open_cf(&rocksdb::Options::default(), data.join("db"), families).unwrap()
}

type Entry = (Box<[u8]>, Box<[u8]>);

fn entries(rocks: &DB, family: &str) -> Vec<Entry> {
    let family = rocks.cf_handle(family).unwrap();
    rocks.iterator_cf(family, IteratorMode::Start).map(Result::unwrap).collect()
}

/// The contents of a store of format 1, read by docs/storage-format.md and without code of this crate.
fn contents_of_format_1(data: &Path) -> Contents {
    assert_eq!(fs::read(data.join("FORMAT")).unwrap(), b"partita-store 1\n");
    let rocks = raw(data);
    let (mut contents, mut names) = (Contents::default(), BTreeMap::new());
    for (key, value) in entries(&rocks, "meta") {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(value[0], 1);
        match key[0] {
            b'S' => {
                contents.services.insert(text(&key[1..]), value[1..].to_vec());
            }
            b'T' => {
                let end = key.iter().position(|byte| *byte == 0).unwrap();
                let length = usize::from(value[17]);
                let name = (text(&key[1..end]), text(&value[18..18 + length]));
                let metadata = match value[18 + length] {
                    0 => None,
                    _ => Some(value[19 + length..].to_vec()),
                };
                names.insert(value[1..17].to_vec(), name.clone());
                contents.tables.insert(name, Table { metadata, rows: Vec::new() });
            }
            _ => {}
        }
    }
    for (key, value) in entries(&rocks, "data") {
        let table = contents.tables.get_mut(&names[&key[..16]]).unwrap();
        let (partition, row) = encoding::key::decode(&key[16..]).unwrap();
        table.rows.push((partition.into_owned(), row.into_owned(), value.to_vec()));
    }
    contents
}

/// The contents of a store, read through an engine.
async fn contents(data: &Path) -> Contents {
    let engine = EmbeddedEngine::open(Options::new(data)).unwrap();
    let mut contents = Contents::default();
    for account in engine.list_accounts().await.unwrap() {
        for name in engine.list_tables(&account, ServiceKind::Table, "", 1000).await.unwrap().names {
            let table = TableRef { account: account.clone(), service: ServiceKind::Table, name };
            let page = engine.scan(&table, scan(vec![KeyRange::all()], 10_000)).await.unwrap();
            let rows = page.entities.iter().map(|entity| {
                let (partition, row_key) = (entity.partition.to_string(), entity.row_key.to_string());
                (partition, row_key, entity.row.bytes().to_vec())
            });
            let metadata = engine.table_metadata(&table).await.unwrap().map(|bytes| bytes.to_vec());
            let found = Table { rows: rows.collect(), metadata };
            contents.tables.insert((account.to_string(), table.name.to_string()), found);
        }
        if let Some(document) = engine.service_metadata(&account, ServiceKind::Table).await.unwrap() {
            contents.services.insert(account.to_string(), document.to_vec());
        }
    }
    engine.close().await;
    contents
}

fn open_at_pace(
    data: &Path,
    before: impl FnMut(UpgradeStep) -> Result<(), OpenError>,
) -> Result<OpenStore, OpenError> {
    let mut pace = UpgradePace { records_per_commit: RECORDS_PER_COMMIT, before: Box::new(before) };
    open::open_at_pace(
        &Options::new(data),
        &Arc::new(LiveCounters::default()),
        watch::channel(()).0,
        &mut pace,
    )
}

/// Opens the store and ends before the step with this number; `None` if there are fewer steps.
fn stop_before(data: &Path, number: usize) -> Option<UpgradeStep> {
    let (mut count, mut stopped) = (0, None);
    let opened = open_at_pace(data, |step| {
        count += 1;
        if count <= number {
            return Ok(());
        }
        stopped = Some(step);
        Err(OpenError::NotUpgraded { directory: data.to_owned(), source: Fault::busy("stopped") })
    });
    assert_eq!(opened.is_err(), stopped.is_some());
    stopped
}

fn format(data: &Path) -> String {
    fs::read_to_string(data.join("FORMAT")).unwrap()
}

/// Checks that the upgrade is sealed, that nothing is left of it, and that the store is sound.
fn assert_upgraded(data: &Path) {
    assert_eq!(format(data), "partita-store 2\n");
    assert!(!kept(data).exists() && !draft(data).exists());
    let report = check(data, &store::NoObjects, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    let rocks = raw_upgraded(data);
    for (key, value) in entries(&rocks, "meta") {
        assert_eq!(value[0], if *key == *b"C" { 1 } else { 2 }, "{key:02x?}");
        assert!(key[0] != b'S' || key[1] == 1, "{key:02x?}");
    }
}

#[tokio::test]
async fn a_store_of_format_1_is_upgraded_and_keeps_everything() {
    let (_place, data, expected) = fixture();
    let rows: usize = expected.tables.values().map(|table| table.rows.len()).sum();
    let policies = expected.tables.values().filter(|table| table.metadata.is_some()).count();
    assert_eq!((expected.tables.len(), rows, policies, expected.services.len()), (9, 221, 3, 2));
    assert_eq!(contents(&data).await, expected);
    assert_upgraded(&data);
    // The second open has nothing to upgrade.
    drop(open_at_pace(&data, |step| panic!("{step:?}")).unwrap());
    assert_eq!(contents(&data).await, expected);
}

#[tokio::test]
async fn an_upgrade_that_ends_before_any_step_is_finished_by_the_next_open() {
    let mut steps = Vec::new();
    loop {
        let (_place, data, expected) = fixture();
        let Some(step) = stop_before(&data, steps.len()) else { break };
        steps.push(step);
        match step {
            UpgradeStep::Checkpoint | UpgradeStep::KeepCheckpoint | UpgradeStep::Mark => {
                // An older program may still use it.
                assert_eq!(contents_of_format_1(&data), expected, "before {step:?}");
            }
            UpgradeStep::Rewrite(_) | UpgradeStep::Flush | UpgradeStep::Verify | UpgradeStep::Seal => {
                assert_eq!(format(&data), "partita-store 2\n", "before {step:?}");
                // The checkpoint is the way back.
                assert!(
                    check(&kept(&data), &store::NoObjects, &mut |_| {}).unwrap().is_sound(),
                    "before {step:?}"
                );
                assert_eq!(contents_of_format_1(&kept(&data)), expected, "before {step:?}");
            }
            UpgradeStep::Clean => assert!(!kept(&data).exists()),
        }
        assert_eq!(contents(&data).await, expected, "after a stop before {step:?}");
        assert_upgraded(&data);
    }
    let rewrites = steps.iter().filter(|step| matches!(step, UpgradeStep::Rewrite(_))).count();
    assert_eq!(rewrites, 3, "9 tables and 2 documents, four at a time: {steps:?}");
    steps.retain(|step| !matches!(step, UpgradeStep::Rewrite(_)));
    let others = [
        UpgradeStep::Checkpoint,
        UpgradeStep::KeepCheckpoint,
        UpgradeStep::Mark,
        UpgradeStep::Flush,
        UpgradeStep::Verify,
        UpgradeStep::Seal,
        UpgradeStep::Clean,
    ];
    assert_eq!(steps, others);
}

#[tokio::test]
async fn after_two_interrupted_upgrades_the_third_one_finds_a_complete_store() {
    let (_place, data, expected) = fixture();
    for first in 0.. {
        let mut seconds = 0;
        loop {
            let place = TempDir::new().unwrap();
            let data_of_both = place.path().join("data");
            copy(&data, &data_of_both).unwrap();
            if stop_before(&data_of_both, first).is_none() {
                assert!(first > 9, "only {first} steps");
                return;
            }
            if stop_before(&data_of_both, seconds).is_none() {
                break;
            }
            assert_eq!(contents(&data_of_both).await, expected, "{first}, then {seconds}");
            assert_upgraded(&data_of_both);
            // The second run interrupts every step; for the first, three steps are enough.
            seconds += 1 + first % 3;
        }
    }
}

/// A killed process leaves its files as other processes see them at that moment.
#[tokio::test]
async fn a_process_killed_at_any_step_leaves_a_store_that_is_read_salvaged_and_upgraded() {
    let (place, data, expected) = fixture();
    let images = RefCell::new(Vec::new());
    let opened = open_at_pace(&data, |step| {
        let image = place.path().join(format!("image-{}", images.borrow().len()));
        copy_image(&data, &image);
        images.borrow_mut().push((step, image));
        Ok(())
    });
    drop(opened.unwrap());
    let images = images.into_inner();
    assert!(images.len() >= 10);
    for (step, image) in images {
        let report = check(&image, &store::NoObjects, &mut |_| {}).unwrap();
        assert!(report.is_sound(), "before {step:?}: {:?}", report.damage);
        assert_eq!((report.tables.len(), report.entities()), (9, 221), "before {step:?}");
        let saved = place.path().join("saved");
        let salvaged = salvage(&image, &saved, &store::NoObjects, &mut |_| {}).unwrap();
        assert!(salvaged.named.is_empty());
        assert_upgraded(&saved);
        assert_eq!(contents(&saved).await, expected, "salvaged before {step:?}");
        fs::remove_dir_all(saved).unwrap();
        assert_eq!(contents(&image).await, expected, "killed before {step:?}");
        assert_upgraded(&image);
    }
}

#[tokio::test]
async fn a_checkpoint_from_before_an_older_program_wrote_is_not_kept() {
    let (_place, data, _) = fixture();
    let step = stop_before(&data, 2);
    assert_eq!(step, Some(UpgradeStep::Mark));
    assert!(kept(&data).exists());
    // The store is still of format 1, so an older program may use it.
    let rocks = raw(&data);
    let books = rocks.get_cf(rocks.cf_handle("meta").unwrap(), b"Tdevstoreaccount1\0books").unwrap().unwrap();
    let (row, (_, value)) = ([&books[1..17], b"new\0row"].concat(), entries(&rocks, "data").remove(0));
    rocks.put_cf(rocks.cf_handle("data").unwrap(), row, value).unwrap();
    drop(rocks);
    let expected = contents_of_format_1(&data);
    assert!(matches!(stop_before(&data, 3), Some(UpgradeStep::Rewrite(_))));
    assert_eq!(contents_of_format_1(&kept(&data)), expected);
    assert_eq!(contents(&data).await, expected);
}

#[test]
fn a_dropped_table_is_still_dropped_after_the_upgrade() {
    let (_place, data, _) = fixture();
    add_dropped_table(&data);
    let opened = open_at_pace(&data, |_| Ok(())).unwrap();
    assert_eq!(opened.dropping.iter().map(TableId::to_string).collect::<Vec<_>>(), ["ab".repeat(16)]);
    drop(opened);
    let rocks = raw_upgraded(&data);
    let record = rocks.get_cf(rocks.cf_handle("meta").unwrap(), dropping_key()).unwrap();
    assert_eq!(record, Some(vec![2]));
    drop(rocks);
    assert_upgraded(&data);
}

#[tokio::test]
async fn an_upgrade_whose_checkpoint_was_removed_is_finished() {
    let (_place, data, expected) = fixture();
    assert!(matches!(stop_before(&data, 4), Some(UpgradeStep::Rewrite(_))));
    fs::remove_dir_all(kept(&data)).unwrap();
    assert_eq!(contents(&data).await, expected);
    assert_upgraded(&data);
}

#[tokio::test]
async fn a_store_that_can_not_be_checkpointed_stays_as_it_is() {
    let (_place, data, expected) = fixture();
    // A file with the name of the checkpoint's directory, which can't be removed as a directory.
    fs::write(draft(&data), "").unwrap();
    let refused = EmbeddedEngine::open(Options::new(&data)).expect_err("must not open");
    assert!(matches!(refused, OpenError::Unwritable { .. }), "{refused}");
    assert_eq!(contents_of_format_1(&data), expected);
}
