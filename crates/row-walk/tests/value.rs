//! A value is read as RocksDB's own get reads it, or not at all.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use rocksdb::{DB, DBCompressionType, Options};
use row_walk::read_value;
use tempfile::TempDir;

const FAMILY: &str = "values";
/// Values from this length on are in blob files.
const IN_FILE_BYTES: usize = 64;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Delete(u8),
    DeleteRange(u8, u8),
    Flush,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..16_u8, 0..3 * IN_FILE_BYTES).prop_map(|(key, length)| Step::Put(key, length)),
        2 => (0..16_u8).prop_map(Step::Delete),
        1 => (0..16_u8, 0..16_u8).prop_map(|(from, to)| Step::DeleteRange(from.min(to), from.max(to))),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ]
}

fn key(number: u8) -> Vec<u8> {
    format!("chunk-{number:02}").into_bytes()
}

fn open(directory: &TempDir, compression: DBCompressionType) -> DB {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_enable_blob_files(true);
    options.set_min_blob_size(IN_FILE_BYTES as u64);
    options.set_blob_compression_type(compression);
    DB::open_cf_with_opts(&options, directory.path(), [(FAMILY, options.clone())]).unwrap()
}

fn read(db: &DB, key: &[u8], may_wait: bool) -> Option<Vec<u8>> {
    read_value(db.cf_handle(FAMILY).unwrap(), db.path(), key, may_wait).map(|value| value.to_vec())
}

fn blob_files(directory: &TempDir) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "blob")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_rocksdb_returns(steps in prop::collection::vec(step(), 0..40)) {
        let directory = TempDir::new().unwrap();
        let db = open(&directory, DBCompressionType::None);
        let family = db.cf_handle(FAMILY).unwrap();
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Put(row, length) => db.put_cf(family, key(*row), vec![number as u8; *length]).unwrap(),
                Step::Delete(row) => db.delete_cf(family, key(*row)).unwrap(),
                Step::DeleteRange(from, to) => db.delete_range_cf(family, key(*from), key(*to)).unwrap(),
                Step::Flush => db.flush_cf(family).unwrap(),
                Step::Compact => db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>),
            }
        }
        for number in 0..16 {
            let expected = db.get_cf(family, key(number)).unwrap();
            prop_assert_eq!(read(&db, &key(number), true), expected.clone());
            // It was just read, so it is in the caches; but the system may drop it at any time.
            let at_hand = read(&db, &key(number), false);
            prop_assert!(at_hand.is_none() || at_hand == expected);
        }
    }
}

#[test]
fn a_damaged_record_is_not_a_value() {
    let directory = TempDir::new().unwrap();
    let db = open(&directory, DBCompressionType::None);
    let family = db.cf_handle(FAMILY).unwrap();
    let value = |number: u8| vec![number; 100];
    for number in 0..3 {
        db.put_cf(family, key(number), value(number)).unwrap();
    }
    db.flush_cf(family).unwrap();
    let [file] = &blob_files(&directory)[..] else { panic!("one flush makes one file of values") };
    let sound = fs::read(file).unwrap();
    let mut damaged = 0;
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(file, bytes).unwrap();
        for number in 0..3 {
            for may_wait in [false, true] {
                match read(&db, &key(number), may_wait) {
                    Some(read) => assert_eq!(read, value(number), "byte {at} is damaged"),
                    None if may_wait => damaged += 1,
                    None => {}
                }
            }
        }
    }
    // Every byte of each record belongs to one value: head, key and value.
    assert_eq!(damaged, 3 * (32 + key(0).len() + 100));
    fs::write(file, &sound[..sound.len() / 2]).unwrap();
    assert_eq!(read(&db, &key(2), true), None, "the file is too short");
    fs::remove_file(file).unwrap();
    assert_eq!(read(&db, &key(0), true), None, "the file is gone");
}

#[test]
fn a_compressed_value_is_left_to_rocksdb() {
    let directory = TempDir::new().unwrap();
    let db = open(&directory, DBCompressionType::Lz4);
    let family = db.cf_handle(FAMILY).unwrap();
    db.put_cf(family, key(1), vec![7; 1000]).unwrap();
    db.flush_cf(family).unwrap();
    assert_eq!(read(&db, &key(1), true), None);
    assert_eq!(db.get_cf(family, key(1)).unwrap(), Some(vec![7; 1000]));
}
