//! A walk shows what RocksDB's own iterator shows, whatever was written, flushed, compacted and deleted before and after
//! the snapshot.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use proptest::prelude::*;
use rocksdb::{BlockBasedOptions, DB, Options, ReadOptions, Snapshot};
use row_walk::{Reads, Walk};
use tempfile::TempDir;

const FAMILY: &str = "rows";

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    /// The same row again and again, more often than a walk steps from version to version.
    PutOften(u8),
    Delete(u8),
    /// A range beside all rows: of a table that was dropped.
    DeleteElsewhere,
    Flush,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..200_usize).prop_map(|(key, length)| Step::Put(key, length)),
        1 => any::<u8>().prop_map(Step::PutOften),
        4 => any::<u8>().prop_map(Step::Delete),
        1 => Just(Step::DeleteElsewhere),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ]
}

/// Keys share their beginnings, as those of a partition do.
fn key(number: u8) -> Vec<u8> {
    format!("table-{:02}-row-{}", number / 32, number % 32).into_bytes()
}

fn open(directory: &TempDir) -> DB {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // Small blocks and files, so that a range has many of them.
    let mut table = BlockBasedOptions::default();
    table.set_block_size(256);
    options.set_block_based_table_factory(&table);
    options.set_target_file_size_base(2048);
    options.set_level_zero_file_num_compaction_trigger(4);
    // Small memtables too, of which several are kept until they are flushed together.
    options.set_write_buffer_size(64 * 1024);
    options.set_max_write_buffer_number(6);
    options.set_min_write_buffer_number_to_merge(3);
    DB::open_cf_with_opts(&options, directory.path(), [(FAMILY, options.clone())]).unwrap()
}

fn run(db: &DB, steps: &[Step]) {
    let family = db.cf_handle(FAMILY).unwrap();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Put(row, length) => db.put_cf(family, key(*row), vec![number as u8; *length]).unwrap(),
            Step::PutOften(row) => (0..30_u8).for_each(|n| db.put_cf(family, key(*row), [n]).unwrap()),
            Step::Delete(row) => db.delete_cf(family, key(*row)).unwrap(),
            Step::DeleteElsewhere => db.delete_range_cf(family, "other-0", "other-1").unwrap(),
            Step::Flush => db.flush_cf(family).unwrap(),
            Step::Compact => db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>),
        }
    }
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn walked(db: &DB, snapshot: &Snapshot<'_>, start: &[u8], end: &[u8]) -> Rows {
    let [front, whole] = [Reads::Front, Reads::Whole].map(|reads| walked_as(db, snapshot, start, end, reads));
    assert_eq!(front, whole);
    whole
}

fn walked_as(db: &DB, snapshot: &Snapshot<'_>, start: &[u8], end: &[u8], reads: Reads) -> Rows {
    let mut walk = Walk::new(db.cf_handle(FAMILY).unwrap(), snapshot, start, end, reads);
    let mut rows = Vec::new();
    while let Some((key, value)) = walk.next_row() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    assert!(walk.next_row().is_none(), "a walk that has ended stays so");
    walk.status().unwrap();
    rows
}

fn iterated(db: &DB, snapshot: &Snapshot<'_>, start: &[u8], end: &[u8]) -> Rows {
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(end);
    let mut iterator = snapshot.raw_iterator_cf_opt(db.cf_handle(FAMILY).unwrap(), options);
    iterator.seek(start);
    let mut rows = Vec::new();
    while let Some((key, value)) = iterator.item() {
        rows.push((key.to_vec(), value.to_vec()));
        iterator.next();
    }
    iterator.status().unwrap();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn shows_what_the_iterator_shows(
        before in proptest::collection::vec(step(), 0..120),
        after in proptest::collection::vec(step(), 0..60),
        ranges in proptest::collection::vec((any::<u8>(), any::<u8>()), 1..6),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let db = open(&directory);
        run(&db, &before);
        let snapshot = db.snapshot();
        run(&db, &after);
        for (a, b) in ranges {
            let (start, end) = (key(a), key(b));
            if start < end {
                prop_assert_eq!(walked(&db, &snapshot, &start, &end), iterated(&db, &snapshot, &start, &end));
            }
            prop_assert_eq!(walked(&db, &snapshot, &end, &end), vec![]);
        }
        prop_assert_eq!(walked(&db, &snapshot, b"", b"\xff"), iterated(&db, &snapshot, b"", b"\xff"));
    }
}

#[test]
fn of_many_versions_the_one_of_the_snapshot_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    run(&db, &[Step::Put(1, 3), Step::PutOften(2), Step::Put(3, 3), Step::PutOften(4), Step::Delete(4)]);
    let snapshot = db.snapshot();
    let before = iterated(&db, &snapshot, b"", b"\xff");
    assert_eq!(before.len(), 3);
    run(&db, &[1, 2, 3, 4, 5].map(Step::PutOften));
    assert_eq!(walked(&db, &snapshot, b"", b"\xff"), before);
}

#[test]
fn a_walk_goes_on_while_its_files_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    run(&db, &(0..=255).map(|row| Step::Put(row, 100)).chain([Step::Flush]).collect::<Vec<_>>());
    let snapshot = db.snapshot();
    let family = db.cf_handle(FAMILY).unwrap();
    let mut walk = Walk::new(family, &snapshot, b"", b"\xff", Reads::Whole);
    assert!(walk.next_row().is_some());
    run(&db, &(0..=255).map(Step::Delete).chain([Step::Flush, Step::Compact]).collect::<Vec<_>>());
    let mut rows = 1;
    while let Some((_, value)) = walk.next_row() {
        assert_eq!(value.len(), 100);
        rows += 1;
    }
    walk.status().unwrap();
    assert_eq!(rows, 256);
}

#[test]
fn rows_that_wait_for_their_flush_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    // More than one memtable, and fewer than are flushed together.
    run(&db, &(0..110).map(|row| Step::Put(row, 1000)).collect::<Vec<_>>());
    let family = db.cf_handle(FAMILY).unwrap();
    let waiting = db.property_int_value_cf(family, "rocksdb.num-immutable-mem-table").unwrap();
    assert!(waiting.is_some_and(|memtables| memtables > 0), "{waiting:?}");
    let snapshot = db.snapshot();
    for (start, end) in [(0, 110), (0, 10), (5, 6), (60, 109), (105, 200), (150, 200)] {
        let (start, end) = (key(start), key(end));
        assert_eq!(walked(&db, &snapshot, &start, &end), iterated(&db, &snapshot, &start, &end));
    }
}

#[test]
fn a_walk_that_has_ended_keeps_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    run(&db, &(0..=255).map(|row| Step::Put(row, 100)).chain([Step::Flush]).collect::<Vec<_>>());
    for range in [(0, 255), (255, 0)] {
        let snapshot = db.snapshot();
        let (start, end) = (key(range.0), key(range.1));
        let mut walk = Walk::new(db.cf_handle(FAMILY).unwrap(), &snapshot, &start, &end, Reads::Whole);
        walk.next_row();
    }
    run(&db, &[Step::Put(1, 100), Step::Flush, Step::Compact]);
    let (mut kept, mut patience) = (usize::MAX, 500);
    // Files that nobody reads any more are deleted in the background.
    while kept > db.live_files().unwrap().len() && patience > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        kept = names.filter(|path| path.extension().is_some_and(|name| name == "sst")).count();
        patience -= 1;
    }
    assert_eq!(kept, db.live_files().unwrap().len());
}

#[test]
fn a_damaged_block_is_an_error_and_not_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    run(&db, &(0..=255).map(|row| Step::Put(row, 100)).chain([Step::Flush]).collect::<Vec<_>>());
    drop(db);
    let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|path| path.extension().is_some_and(|name| name == "sst")).max().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let db = open(&directory);
    let snapshot = db.snapshot();
    let mut walk = Walk::new(db.cf_handle(FAMILY).unwrap(), &snapshot, b"", b"\xff", Reads::Whole);
    let mut rows = 0;
    while walk.next_row().is_some() {
        rows += 1;
    }
    let error = walk.status().unwrap_err();
    assert!(error.is_damage && error.text.contains("Corruption"), "{error}");
    assert!(rows < 256);
}
