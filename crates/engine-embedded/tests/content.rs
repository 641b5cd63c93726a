//! A check and a salvage of rows that name objects.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::path::Path;

use bytes::Bytes;
use engine_embedded::{EmbeddedObjects, Report};
use model::{EntityKey, ServiceKind, Value, ValueRef};
use store::{
    CHUNK_BYTES, Change, Condition, Engine, Fault, Need, ObjectId, ObjectNaming, Objects, RowView, TableRef,
    Transaction,
};
use store_suite::{draft, insert, number, of_service, table};
use tempfile::TempDir;

use crate::objects::{content, object};
use crate::support::{content_files, files, open, raw};

/// The property `O` of a row is a list of names, each with the bytes that are needed. A list of them is a chunk of the same
/// form. Rows of partitions with `u` are left over. A chunk that begins with `!` is not one of ours.
struct TestNaming;

fn names(needs: &[(i64, u64)]) -> Vec<u8> {
    needs.iter().flat_map(|(n, bytes)| [&object(*n).as_bytes()[..], &bytes.to_le_bytes()].concat()).collect()
}

fn read(stored: &[u8], is_list: bool) -> Vec<Need> {
    let read = |entry: &[u8]| Need {
        object: ObjectId::from_bytes(entry[..16].try_into().unwrap()),
        bytes: u64::from_le_bytes(entry[16..].try_into().unwrap()),
        is_list,
        may_be_gone: false,
    };
    stored.chunks(24).map(read).collect()
}

impl ObjectNaming for TestNaming {
    fn in_row(&self, partition: &str, row: RowView<'_>) -> Result<Vec<Need>, Fault> {
        let mut needs = match (row.property("O"), row.property("L")) {
            (Some(ValueRef::Binary(stored)), _) => read(stored, false),
            (_, Some(ValueRef::Binary(stored))) => read(stored, true),
            _ => Vec::new(),
        };
        for need in &mut needs {
            need.may_be_gone = partition.starts_with('u');
        }
        Ok(needs)
    }

    fn in_list(&self, _: ObjectId, chunk: Bytes) -> Result<Vec<Need>, Fault> {
        Ok(read(&chunk, false))
    }

    fn content_of(&self, _: ObjectId, _: u32, chunk: Bytes) -> Result<u64, Fault> {
        match chunk.first() {
            Some(b'!') => Err(Fault::damaged("not one of ours")),
            _ => Ok(chunk.len() as u64),
        }
    }
}

fn container() -> TableRef {
    of_service(ServiceKind::Blob, "pictures")
}

fn row(partition: &str, property: &str, needs: &[(i64, u64)]) -> Transaction {
    let key = EntityKey::parse_stored(partition, "9").unwrap();
    let draft = draft(&[(property, Value::Binary(names(needs)))]);
    Transaction::of_one(key, Condition::Absent, Change::Put(draft))
}

fn check(directory: &Path) -> Report {
    crate::support::check(directory, &TestNaming).unwrap()
}

fn shown(report: &Report) -> String {
    report.damage.iter().map(|damage| format!("{damage}\n")).collect()
}

const FULL: u64 = CHUNK_BYTES as u64;

async fn put(objects: &EmbeddedObjects, n: i64, sizes: &[usize]) {
    for (number, bytes) in (0..).zip(sizes) {
        objects.put(object(n), number, content(n, number, *bytes)).await.unwrap();
    }
    objects.sync(&[object(n)]).await.unwrap();
}

/// A store with a small object, a large one, a list that names both, and one that no row names.
async fn store(directory: &Path) {
    let engine = open(directory);
    let objects = EmbeddedObjects::new(engine.clone());
    engine.create_table(&container(), Some(Bytes::from_static(b"document"))).await.unwrap();
    put(&objects, 1, &[5000]).await;
    put(&objects, 2, &[CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 700]).await;
    put(&objects, 3, &[CHUNK_BYTES, 9]).await;
    let list = names(&[(1, 5000), (2, 5 * FULL + 700)]);
    objects.put(object(4), 0, list.into()).await.unwrap();
    objects.sync(&[object(4)]).await.unwrap();
    for transaction in [
        row("bsmall", "O", &[(1, 5000)]),
        row("ba/large?", "O", &[(1, 10), (2, 5 * FULL + 700)]),
        row("blist", "L", &[(4, 1)]),
        row("ublock", "O", &[(77, 1)]),
    ] {
        engine.apply(&container(), transaction).await.unwrap();
    }
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_store_is_sound_and_what_nobody_names_is_counted() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let report = check(directory.path());
    assert!(report.is_sound(), "{}", shown(&report));
    assert_eq!((report.objects.objects, report.objects.unnamed), (4, 1));
    assert_eq!(report.objects.unnamed_bytes, FULL + 9);
    assert_eq!(report.objects.bytes, 5000 + 5 * FULL + 700 + FULL + 9 + 48);
    assert_eq!(report.entities(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_in_the_log_is_read_too() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let objects = EmbeddedObjects::new(engine.clone());
    engine.create_table(&container(), None).await.unwrap();
    put(&objects, 1, &[5000]).await;
    engine.apply(&container(), row("bsmall", "O", &[(1, 5000)])).await.unwrap();
    engine.apply(&container(), row("blost", "O", &[(2, 1)])).await.unwrap();
    drop(objects);
    crate::support::crash(engine);
    let report = check(directory.path());
    assert_eq!(shown(&report).lines().count(), 1, "{}", shown(&report));
    assert!(shown(&report).contains("is missing; devstoreaccount1/blob/pictures(PartitionKey='blost'"));
    assert_eq!((report.objects.objects, report.objects.unnamed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_need_more_than_is_there_are_named() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let engine = open(directory.path());
    let objects = EmbeddedObjects::new(engine.clone());
    objects.remove(&[object(1)]).await.unwrap();
    // Without its chunk 1, chunk 2 is of no use.
    objects.put(object(5), 0, content(5, 0, CHUNK_BYTES)).await.unwrap();
    objects.put(object(5), 2, content(5, 2, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(5)]).await.unwrap();
    objects.put(object(6), 0, Bytes::from_static(b"! not ours")).await.unwrap();
    engine.apply(&container(), row("bgap", "O", &[(5, 2 * FULL)])).await.unwrap();
    engine.apply(&container(), row("ualso", "O", &[(5, 2 * FULL)])).await.unwrap();
    engine.close().await;
    let text = shown(&check(directory.path()));
    let gap = format!("object {}, only {FULL} of {} bytes are there", object(5), 2 * FULL);
    for (partition, what) in
        [("bgap", &gap[..]), ("ualso", &gap), ("bsmall", "is missing"), ("blist", "is missing")]
    {
        let line = text.lines().find(|line| line.contains(&format!("PartitionKey='{partition}'")));
        assert!(line.is_some_and(|line| line.contains(what)), "{partition}: {text}");
    }
    assert!(text.contains(&format!("chunk 0 of object {}: not one of ours", object(6))), "{text}");
    assert!(!text.contains("ublock"), "what is left over may name what is gone: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_a_file_of_content_is_found_and_everything_else_is_saved() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let largest = directory.path().join("content").join(object(2).to_string());
    let mut bytes = fs::read(&largest).unwrap();
    // In the middle of a chunk of the large object.
    let wanted = content(2, 3, CHUNK_BYTES);
    let at = bytes.windows(64).position(|window| window == &wanted[500..564]).unwrap();
    bytes[at] ^= 0x10;
    fs::write(&largest, bytes).unwrap();
    let engine = open(directory.path());
    let objects = EmbeddedObjects::new(engine.clone());
    let found = objects.get(object(2), 3).await;
    assert!(matches!(found, Err(store::Error::Fault(_))), "{found:?}");
    assert_eq!(objects.get(object(2), 2).await.unwrap().unwrap(), content(2, 2, CHUNK_BYTES));
    engine.close().await;
    let report = check(directory.path());
    let text = shown(&report);
    let chunk = format!("content/{0}: chunk 3 of object {0}: its checksum does not match", object(2));
    assert!(text.contains(&chunk), "{text}");
    for partition in ["ba/large?", "blist"] {
        assert!(text.contains(&format!("PartitionKey='{partition}'")), "{text}");
    }
    assert_eq!(report.damage.len(), 3, "{text}");

    let place = TempDir::new().unwrap();
    let target = place.path().join("new");
    let salvaged = crate::support::salvage(directory.path(), &target, &TestNaming).unwrap();
    assert_eq!(salvaged.entities, 4);
    let engine = open(&target);
    let objects = EmbeddedObjects::new(engine.clone());
    for (n, sizes) in [(1, &[5000][..]), (2, &[CHUNK_BYTES; 3]), (3, &[CHUNK_BYTES, 9])] {
        for (number, bytes) in (0..).zip(sizes) {
            let found = objects.get(object(n), number).await.unwrap();
            assert!(found == Some(content(n, number, *bytes)), "chunk {number} of {n}");
        }
    }
    assert_eq!(objects.get(object(2), 3).await.unwrap(), None);
    assert_eq!(objects.get(object(2), 5).await.unwrap(), Some(content(2, 5, 700)));
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [1, 2, 3, 4].map(object));
    assert_eq!(engine.table_metadata(&container()).await.unwrap().as_deref(), Some(&b"document"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_a_blob_file_is_found() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let wanted = content(1, 0, 5000);
    let (mut file, mut bytes, mut at) = (None, Vec::new(), 0);
    for path in files(directory.path(), "blob") {
        bytes = fs::read(&path).unwrap();
        if let Some(found) = bytes.windows(64).position(|window| window == &wanted[500..564]) {
            (file, at) = (Some(path), found);
            break;
        }
    }
    bytes[at] ^= 0x10;
    let file = file.unwrap();
    fs::write(&file, bytes).unwrap();
    let text = shown(&check(directory.path()));
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let chunk = format!("{name}: chunk 0 of object {}: its checksum does not match", object(1));
    assert!(text.contains(&chunk) && text.contains("PartitionKey='bsmall'"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_file_of_large_content_is_missed_where_a_row_needs_it() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    for lost in [2, 3] {
        fs::remove_file(directory.path().join("content").join(object(lost).to_string())).unwrap();
    }
    let text = shown(&check(directory.path()));
    for partition in ["ba/large?", "blist"] {
        let line = text.lines().find(|line| line.contains(&format!("PartitionKey='{partition}'")));
        assert!(
            line.is_some_and(|line| line.contains(&format!("object {}, is missing", object(2)))),
            "{text}"
        );
    }
    assert_eq!(text.lines().count(), 2, "nobody needs object 3: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_objects_that_are_removed_or_were_never_whole_are_no_damage() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let before = check(directory.path()).objects;
    let content = directory.path().join("content");
    let large = fs::read(content.join(object(2).to_string())).unwrap();
    // A power cut brings a file back, or loses the name of one that was begun.
    fs::write(content.join(object(50).to_string()), &large).unwrap();
    fs::write(content.join(format!("{}.new", object(51))), &large[..5_000_000]).unwrap();
    let report = check(directory.path());
    assert!(report.is_sound(), "{}", shown(&report));
    assert_eq!(report.objects, before);
    let engine = open(directory.path());
    crate::support::eventually("they are deleted", || content_files(directory.path()).len() == 2).await;
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_content_is_saved_when_the_names_of_objects_are_lost() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let mut lost = 0;
    for path in files(directory.path(), "sst") {
        let bytes = fs::read(&path).unwrap();
        if bytes.windows(7).any(|window| window == b"objects") {
            fs::remove_file(path).unwrap();
            lost += 1;
        }
    }
    assert!(lost > 0);
    let place = TempDir::new().unwrap();
    let target = place.path().join("new");
    crate::support::salvage(directory.path(), &target, &TestNaming).unwrap();
    let objects = EmbeddedObjects::new(open(&target));
    assert_eq!(objects.get(object(2), 4).await.unwrap(), Some(content(2, 4, CHUNK_BYTES)));
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [2, 3].map(object));
}

/// The first object with a file, and a row that needs it, of which only the log knows.
async fn store_in_the_log(directory: &Path) {
    let engine = open(directory);
    let objects = EmbeddedObjects::new(engine.clone());
    engine.create_table(&container(), None).await.unwrap();
    put(&objects, 1, &[CHUNK_BYTES]).await;
    // The log is read in blocks of 32 KiB: the name of the object and the row are not in one.
    put(&objects, 2, &[100_000]).await;
    engine.apply(&container(), row("bneeds", "O", &[(1, FULL)])).await.unwrap();
    drop(objects);
    crate::support::crash(engine);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_content_is_saved_when_its_name_is_in_a_damaged_part_of_the_log() {
    let directory = TempDir::new().unwrap();
    store_in_the_log(directory.path()).await;
    assert!(check(directory.path()).is_sound());
    let name = [&b"N"[..], object(1).as_bytes()].concat();
    let mut flipped = 0;
    for path in files(directory.path(), "log") {
        let mut bytes = fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(name.len()).position(|window| window == name) {
            bytes[at] ^= 0x10;
            fs::write(path, bytes).unwrap();
            flipped += 1;
        }
    }
    assert_eq!(flipped, 1);
    let text = shown(&check(directory.path()));
    assert!(text.contains(".log: unreadable at byte") && !text.contains("is missing"), "{text}");
    let place = TempDir::new().unwrap();
    let target = place.path().join("new");
    crate::support::salvage(directory.path(), &target, &TestNaming).unwrap();
    let objects = EmbeddedObjects::new(open(&target));
    assert!(objects.get(object(1), 0).await.unwrap() == Some(content(1, 0, CHUNK_BYTES)));
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [object(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_content_is_saved_when_nobody_knows_which_files_had_its_name() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    fs::remove_file(directory.path().join("db/CURRENT")).unwrap();
    for path in files(directory.path(), "sst") {
        let bytes = fs::read(&path).unwrap();
        if bytes.windows(7).any(|window| window == b"objects") {
            fs::remove_file(path).unwrap();
        }
    }
    let place = TempDir::new().unwrap();
    let target = place.path().join("new");
    crate::support::salvage(directory.path(), &target, &TestNaming).unwrap();
    let objects = EmbeddedObjects::new(open(&target));
    assert!(objects.get(object(2), 4).await.unwrap() == Some(content(2, 4, CHUNK_BYTES)));
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [2, 3].map(object));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_not_of_an_object_hides_none_of_those_behind_it() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    let forged = raw(directory.path());
    forged.put_cf(forged.cf_handle("objects").unwrap(), b"A", b"").unwrap();
    drop(forged);
    let text = shown(&check(directory.path()));
    assert!(text.contains("the key [41] is not one of an object"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_of_content_is_named() {
    let directory = TempDir::new().unwrap();
    store(directory.path()).await;
    for file in files(directory.path(), "blob") {
        fs::remove_file(file).unwrap();
    }
    let text = shown(&check(directory.path()));
    assert!(text.contains(".blob: chunk 0 of object") && text.contains("the file is missing"), "{text}");
    assert!(text.contains("PartitionKey='bsmall'"), "{text}");
}

/// A wider key in a table of the Table service is damage; rows with one whose table has no record become a container.
#[tokio::test]
async fn wider_keys_are_those_of_other_services() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.create_table(&container(), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 1)).await.unwrap();
    let wide = EntityKey::parse_stored(&"b/".repeat(1024), "9").unwrap();
    let put = |key: &EntityKey| Transaction::of_one(key.clone(), Condition::Absent, Change::Put(number(1)));
    engine.apply(&container(), put(&EntityKey::parse_stored("ba", "9").unwrap())).await.unwrap();
    engine.apply(&container(), put(&wide)).await.unwrap();
    engine.close().await;
    assert!(check(directory.path()).is_sound());

    let place = TempDir::new().unwrap();
    let forged = raw(directory.path());
    let meta = forged.cf_handle("meta").unwrap();
    // No record names the container any more.
    forged.delete_cf(meta, b"Tdevstoreaccount1\0\"blob/pictures").unwrap();
    drop(forged);
    let target = place.path().join("new");
    let salvaged = crate::support::salvage(directory.path(), &target, &TestNaming).unwrap();
    let [named] = &salvaged.named[..] else { panic!("{:?}", salvaged.named) };
    assert_eq!((named.service, named.entities), (ServiceKind::Blob, 2));
    let report = check(&target);
    assert!(report.is_sound(), "{}", shown(&report));
    let saved = open(&target);
    let found = saved.get(&of_service(ServiceKind::Blob, &named.table), &wide).await.unwrap();
    assert!(found.is_some());
    saved.close().await;

    // As if an entity had such a key.
    let forged = raw(directory.path());
    let data = forged.cf_handle("data").unwrap();
    let meta = forged.cf_handle("meta").unwrap();
    let record = forged.get_cf(meta, b"Tdevstoreaccount1\0books").unwrap().unwrap();
    let id = &record[3..19];
    let value = forged.get_cf(data, [id, b"p\0r"].concat()).unwrap().unwrap();
    forged.put_cf(data, [id, b"a/b\0r"].concat(), value).unwrap();
    drop(forged);
    let text = shown(&check(directory.path()));
    assert!(text.contains("no entity can have its key; devstoreaccount1/Books(PartitionKey='a/b'"), "{text}");
}
