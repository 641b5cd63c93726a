use super::names::ROOT;
use super::*;

fn record<'a>(
    kind: Kind,
    handle: u64,
    path: &'a str,
    target: &'a str,
    offset: u64,
    data: &'a [u8],
) -> Record<'a> {
    let flags = if kind == Kind::Open { CREATE } else { 0 };
    Record { kind, process: 1, flags, handle, offset, path, target, data }
}

fn disk<'a>(records: &[Record<'a>]) -> Disk<'a> {
    let mut disk = Disk::new();
    for record in records {
        disk.apply(record).unwrap();
    }
    disk
}

/// The images of many cuts with different seeds, as paths and contents.
fn images(disk: &Disk<'_>, laws: impl Fn(&mut StdRng) -> Laws) -> BTreeSet<Vec<(String, Vec<u8>)>> {
    let image = |seed| {
        let mut random = StdRng::seed_from_u64(seed);
        let laws = laws(&mut random);
        let directory = tempfile::tempdir().unwrap();
        disk.cut(laws, &mut random, directory.path()).unwrap();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read(path).unwrap()));
            }
        }
        files.sort();
        files
    };
    (0..200).map(image).collect()
}

fn any(random: &mut StdRng) -> Laws {
    Laws { garbage: false, ..Laws::choose(random) }
}

const LOG: &str = "a.log";

/// A file with two letters that is certain.
fn synced() -> Vec<Record<'static>> {
    vec![
        record(Kind::Open, 1, LOG, "", 0, b""),
        record(Kind::Write, 1, "", "", 0, b"ab"),
        record(Kind::SyncBegin, 1, "", "", 0, b""),
        record(Kind::SyncEnd, 1, "", "", 0, b""),
        record(Kind::Open, 2, ROOT, "", 0, b""),
        record(Kind::SyncBegin, 2, "", "", 0, b""),
        record(Kind::SyncEnd, 2, "", "", 0, b""),
    ]
}

fn with(more: &[Record<'static>]) -> Vec<Record<'static>> {
    [synced(), more.to_vec()].concat()
}

fn file(content: &[u8]) -> Vec<(String, Vec<u8>)> {
    vec![(LOG.to_owned(), content.to_vec())]
}

#[test]
fn synced_data_is_there_after_every_cut() {
    assert_eq!(images(&disk(&synced()), any), BTreeSet::from([file(b"ab")]));
}

#[test]
fn unsynced_data_is_there_or_missing_or_zeros() {
    let records = with(&[record(Kind::Write, 1, "", "", 2, b"cd")]);
    let expected = BTreeSet::from([file(b"ab"), file(b"abcd"), file(b"ab\0\0")]);
    assert_eq!(images(&disk(&records), any), expected);
}

#[test]
fn a_write_during_a_sync_is_not_covered_by_it() {
    let sync = |kind| record(kind, 1, "", "", 0, b"");
    let write = record(Kind::Write, 1, "", "", 2, b"cd");
    let during = with(&[sync(Kind::SyncBegin), write, sync(Kind::SyncEnd)]);
    assert!(images(&disk(&during), any).contains(&file(b"ab")));
    let before = with(&[write, sync(Kind::SyncBegin), sync(Kind::SyncEnd)]);
    assert_eq!(images(&disk(&before), any), BTreeSet::from([file(b"abcd")]));
    // A sync that did not end covers nothing.
    let unfinished = with(&[write, sync(Kind::SyncBegin)]);
    assert!(images(&disk(&unfinished), any).contains(&file(b"ab")));
}

#[test]
fn a_name_is_certain_only_after_a_sync_of_its_directory() {
    let file_only = &synced()[..4];
    let images = images(&disk(file_only), any);
    assert!(images.contains(&Vec::new()) && images.contains(&file(b"ab")));
}

#[test]
fn a_rename_is_kept_completely_or_not_at_all() {
    let records = with(&[record(Kind::Rename, 0, LOG, "b.log", 0, b"")]);
    let renamed = vec![("b.log".to_owned(), b"ab".to_vec())];
    assert_eq!(images(&disk(&records), any), BTreeSet::from([file(b"ab"), renamed]));
}

#[test]
fn the_contents_of_a_renamed_directory_follow_it() {
    let records = [
        record(Kind::Mkdir, 0, "new", "", 0, b""),
        record(Kind::Open, 1, "new/a", "", 0, b""),
        record(Kind::Rename, 0, "new", "old", 0, b""),
        record(Kind::Write, 1, "", "", 0, b"ab"),
        record(Kind::Open, 2, "old/a", "", 0, b""),
        record(Kind::Open, 3, "old/b", "", 0, b""),
    ];
    let files = disk(&records).files();
    assert_eq!(
        files,
        BTreeMap::from([("old/a".to_owned(), b"ab".to_vec()), ("old/b".to_owned(), Vec::new())])
    );
}

#[test]
fn only_without_a_journaling_file_system_may_a_later_name_survive_without_an_earlier_one() {
    let records = with(&[record(Kind::Open, 3, "b", "", 0, b""), record(Kind::Open, 4, "c", "", 0, b"")]);
    let disk = disk(&records);
    let has = |names, wanted: &[&str]| {
        let images = images(&disk, |random| Laws { names, ..any(random) });
        images.iter().any(|files| files.iter().map(|(name, _)| name.as_str()).eq(wanted.iter().copied()))
    };
    assert!(has(Names::Prefix, &[LOG, "b"]) && has(Names::Any, &[LOG, "b"]));
    assert!(!has(Names::Prefix, &[LOG, "c"]) && has(Names::Any, &[LOG, "c"]));
}

#[test]
fn pages_lost_by_a_failed_sync_are_not_written_by_the_next() {
    let sync = |kind| record(kind, 1, "", "", 0, b"");
    let write = record(Kind::Write, 1, "", "", 2, b"cd");
    let mut lost = 0;
    for filler in 0..64 {
        // Which pages are lost depends on the place of the failure in the journal.
        let mut records = with(&vec![sync(Kind::SyncBegin); filler]);
        records.extend([write, sync(Kind::SyncFailed), sync(Kind::SyncBegin)]);
        records.extend(vec![sync(Kind::SyncEnd); filler + 1]);
        lost += usize::from(disk(&records).files()[LOG] == b"ab\0\0");
    }
    assert!(lost > 0 && lost < 64);
}

#[test]
fn pages_reach_the_disk_in_any_order() {
    const LETTERS: [u8; 1024] = [b'x'; 1024];
    let records = [record(Kind::Open, 1, LOG, "", 0, b""), record(Kind::Write, 1, "", "", 0, &LETTERS)];
    let disk = disk(&records);
    let laws = |_: &mut StdRng| Laws { names: Names::Any, data: Data::Mixed, page: 512, garbage: false };
    let images = images(&disk, laws);
    let second_only = [[0; 512], [b'x'; 512]].concat();
    assert!(images.contains(&file(&second_only)));
    assert!(images.contains(&file(&LETTERS)));
}
