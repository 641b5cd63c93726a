//! Objects beside the rows: after crashes, in bounded memory, in old and in newer stores, and when space is reclaimed.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine_embedded::{EmbeddedEngine, EmbeddedObjects, OpenError, Options};
use model::DateTime;
use rocksdb::DB;
use store::{CHUNK_BYTES, Engine, EngineValue, NoObjects, ObjectId, Objects};
use store_suite::{insert, table};
use tempfile::TempDir;

use crate::support::{
    bytes_of, check, content_files, crash, eventually, files, open, open_with, raw, refusal, try_open,
};

const DIRECTORY: &str = "PARTITA_OBJECTS_DIRECTORY";
const HANDLES_DIRECTORY: &str = "PARTITA_HANDLES_DIRECTORY";
const SYNCED: &str = "synced ";

pub fn object(number: i64) -> ObjectId {
    let named = DateTime::from_ticks(DateTime::MIN_STORED.ticks() + number).unwrap();
    ObjectId::new(named, number.to_be_bytes())
}

/// Bytes that differ by object and chunk.
pub fn content(object: i64, number: u32, bytes: usize) -> Bytes {
    let seed = (object as u64).wrapping_mul(31).wrapping_add(u64::from(number) * 7 + 1);
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend((state >> 11).to_le_bytes());
    }
    out.truncate(bytes);
    out.into()
}

/// How many chunks an object has, and how long each is: content in files, content that is logged, and content that is not.
fn shape(object: i64) -> (u32, usize) {
    match object % 4 {
        0 => (1, 60_000),
        1 => (3, CHUNK_BYTES),
        2 => (9, CHUNK_BYTES),
        _ => (6, 200_000),
    }
}

/// Not a test, but the process that a test kills: two writers put objects, sync them and print their numbers.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let objects = EmbeddedObjects::new(open(Path::new(&directory)));
    let writers = (0..2).map(|writer| {
        let objects = objects.clone();
        tokio::spawn(async move {
            for n in (writer..).step_by(2) {
                let (chunks, bytes) = shape(n);
                for number in 0..chunks {
                    objects.put(object(n), number, content(n, number, bytes)).await.unwrap();
                }
                objects.sync(&[object(n)]).await.unwrap();
                println!("{SYNCED}{n}");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_synced_survives_a_kill_and_the_rest_is_there_in_whole_chunks() {
    let directory = TempDir::new().unwrap();
    for round in 1..=3 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "objects::victim", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut synced = Vec::new();
        for line in BufReader::new(victim.stdout.as_mut().unwrap()).lines() {
            if let Some((_, number)) = line.unwrap().split_once(SYNCED) {
                synced.push(number.parse::<i64>().unwrap());
            }
            if synced.len() >= 10 * round {
                break;
            }
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(synced.len() >= 10 * round, "the victim ended too early");

        let objects = EmbeddedObjects::new(open(directory.path()));
        for n in &synced {
            let (chunks, bytes) = shape(*n);
            for number in 0..chunks {
                let found = objects.get(object(*n), number).await.unwrap();
                assert!(found == Some(content(*n, number, bytes)), "chunk {number} of {n}, round {round}");
            }
        }
        for named in objects.list(ObjectId::FIRST, 1000).await.unwrap().objects {
            let n = (0..1000).find(|n| object(*n) == named).unwrap();
            for number in 0..shape(n).0 {
                let found = objects.get(named, number).await.unwrap();
                assert!(found.is_none_or(|chunk| chunk == content(n, number, shape(n).1)), "{number} of {n}");
            }
        }
        objects.close().await;
        drop(objects);
        assert!(check(directory.path(), &NoObjects).unwrap().is_sound());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_stays_removed_after_a_crash() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let objects = EmbeddedObjects::new(engine.clone());
    for n in 0..8 {
        let (chunks, bytes) = shape(n);
        for number in 0..chunks {
            objects.put(object(n), number, content(n, number, bytes)).await.unwrap();
        }
        // Some are only in memory when they are removed.
        if n < 4 {
            objects.sync(&[object(n)]).await.unwrap();
        }
    }
    let gone: Vec<ObjectId> = [1, 2, 5, 6].map(object).into();
    objects.remove(&gone).await.unwrap();
    drop(objects);
    crash(engine);
    let objects = EmbeddedObjects::new(open(directory.path()));
    for removed in gone {
        for number in 0..9 {
            assert_eq!(objects.get(removed, number).await.unwrap(), None);
        }
    }
    let listed = objects.list(ObjectId::FIRST, 100).await.unwrap().objects;
    assert_eq!(listed[..2], [object(0), object(3)], "these were synced");
    assert!(listed[2..].iter().all(|left| [4, 7].map(object).contains(left)));
}

/// Memory of buffers, as the engine tells it.
fn buffered(engine: &EmbeddedEngine) -> u64 {
    Engine::counters(engine).number("memtable_bytes").unwrap() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_upload_waits_for_the_disk_and_rows_do_not_wait_for_it() {
    const MIB: u64 = 1024 * 1024;
    const ROWS_MAX: i32 = 10_000;
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    let objects = EmbeddedObjects::new(engine.clone());
    let over = Arc::new(AtomicBool::new(false));
    let (watched, until) = (engine.clone(), over.clone());
    let watch = tokio::spawn(async move {
        let mut most = 0;
        while !until.load(Ordering::SeqCst) {
            most = most.max(buffered(&watched));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        most
    });
    let uploads = (0..4).map(|n| {
        let objects = objects.clone();
        tokio::spawn(async move {
            // In the database: files of content need no buffers.
            let chunk = content(n, 0, 500_000);
            for number in 0..300 {
                objects.put(object(n), number, chunk.clone()).await.unwrap();
            }
            objects.sync(&[object(n)]).await.unwrap();
        })
    });
    let uploads: Vec<_> = uploads.collect();
    // No more than some: if the uploads take long, the rows would fill the buffers.
    for n in 0..ROWS_MAX {
        engine.apply(&table("Books"), insert("p", &n.to_string(), n)).await.unwrap();
        if uploads.iter().all(|upload| upload.is_finished()) {
            break;
        }
    }
    for upload in uploads {
        upload.await.unwrap();
    }
    over.store(true, Ordering::SeqCst);
    let most = watch.await.unwrap();
    // Three buffers of 32 MiB, eight chunks that are being written, and the rows.
    assert!((8 * MIB..=108 * MIB).contains(&most), "{} MiB", most / MIB);
    let counters = Engine::counters(&*engine).0;
    let stalls: Vec<_> = counters.iter().filter(|counter| counter.name == "write_stalls").collect();
    assert_eq!(stalls.len(), 2);
    assert!(stalls.iter().all(|counter| counter.value == EngineValue::Total(0.0)), "{stalls:?}");
}

/// A client that closes its connection ends the call, but not the thread that works for it.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_given_up_while_they_are_synced_harm_nothing() {
    let directory = TempDir::new().unwrap();
    let objects = EmbeddedObjects::new(open(directory.path()));
    for n in 0..150 {
        objects.put(object(n), 0, content(n, 0, CHUNK_BYTES)).await.unwrap();
        let syncing = objects.clone();
        let sync = tokio::spawn(async move { syncing.sync(&[object(n)]).await });
        tokio::time::sleep(Duration::from_micros(40 * n as u64)).await;
        sync.abort();
        objects.remove(&[object(n)]).await.unwrap();
    }
    objects.put(object(200), 0, content(200, 0, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(200)]).await.unwrap();
    eventually("only what was kept has a file", || content_files(directory.path()).len() == 1).await;
    assert_eq!(objects.list(ObjectId::FIRST, 10).await.unwrap().objects, [object(200)]);
}

/// A power cut can bring a deleted file back.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_removed_object_shows_nothing() {
    let directory = TempDir::new().unwrap();
    let objects = EmbeddedObjects::new(open(directory.path()));
    objects.put(object(1), 0, content(1, 0, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(1)]).await.unwrap();
    let file = content_files(directory.path())[0].clone();
    let saved = fs::read(&file).unwrap();
    objects.remove(&[object(1)]).await.unwrap();
    fs::write(&file, saved).unwrap();
    assert_eq!(objects.get(object(1), 0).await.unwrap(), None);
    assert_eq!(objects.part(object(1), 0, 0..10).await.unwrap(), None);
    assert_eq!((objects.at_hand(object(1), 0), objects.part_at_hand(object(1), 0, 0..10)), (None, None));
}

/// Not a test, but a process whose connections have taken all handles.
#[tokio::test(flavor = "multi_thread")]
async fn without_handles() {
    let Ok(directory) = std::env::var(HANDLES_DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let objects = EmbeddedObjects::new(open(directory));
    let handles: Vec<fs::File> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    objects.put(object(1), 0, content(1, 0, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(1)]).await.unwrap();
    drop(handles);
    assert!(content_files(directory).is_empty(), "there was no handle for a file");
    objects.put(object(2), 0, content(2, 0, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(2)]).await.unwrap();
    println!("{SYNCED}2");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_handles_content_goes_into_the_database() {
    let directory = TempDir::new().unwrap();
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$0\" --exact objects::without_handles --nocapture"])
        .arg(program)
        .env(HANDLES_DIRECTORY, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("synced 2"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(content_files(directory.path()).len(), 1);
    let objects = EmbeddedObjects::new(open(directory.path()));
    for n in [1, 2] {
        assert_eq!(objects.get(object(n), 0).await.unwrap(), Some(content(n, 0, CHUNK_BYTES)));
    }
}

/// A new database would name nothing of it, and the server would delete it.
#[tokio::test(flavor = "multi_thread")]
async fn content_without_its_database_is_not_deleted() {
    let directory = TempDir::new().unwrap();
    let objects = EmbeddedObjects::new(open(directory.path()));
    objects.put(object(1), 0, content(1, 0, CHUNK_BYTES)).await.unwrap();
    objects.sync(&[object(1)]).await.unwrap();
    objects.close().await;
    drop(objects);
    fs::remove_dir_all(directory.path().join("db")).unwrap();
    for accept_loss in [false, true] {
        let options = Options { accept_loss, ..Options::new(directory.path()) };
        let refused = try_open(options).expect_err("must not open");
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains("content/"), "{refused}");
        assert_eq!(content_files(directory.path()).len(), 1);
    }
    // As its message says.
    fs::rename(directory.path().join("content"), directory.path().join("content-of-old")).unwrap();
    let options = Options { accept_loss: true, ..Options::new(directory.path()) };
    open_with(options);
}

fn quick(directory: &Path) -> Arc<EmbeddedEngine> {
    let options = Options { reclaim_objects_after: Duration::from_millis(20), ..Options::new(directory) };
    open_with(options)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_space_of_removed_objects_is_reclaimed() {
    let directory = TempDir::new().unwrap();
    let objects = EmbeddedObjects::new(quick(directory.path()));
    let all: Vec<ObjectId> = (0..120).map(object).collect();
    for n in 0..120 {
        for number in 0..4 {
            objects.put(object(n), number, content(n, number, 500_000)).await.unwrap();
        }
    }
    objects.sync(&all).await.unwrap();
    let size = || bytes_of(&files(directory.path(), "blob")) >> 20;
    eventually("all chunks are in files", || size() >= 200).await;
    // One of eight stays, in every file.
    let gone: Vec<ObjectId> = (0..120).filter(|n| n % 8 != 0).map(object).collect();
    objects.remove(&gone).await.unwrap();
    eventually("the chunks that are left are copied", || size() <= 60).await;
    for n in (0..120).step_by(8) {
        for number in 0..4 {
            let found = objects.get(object(n), number).await.unwrap();
            assert!(found == Some(content(n, number, 500_000)), "chunk {number} of {n}");
        }
    }
    objects.remove(&all).await.unwrap();
    eventually("nothing is left", || size() == 0).await;
    objects.close().await;
    drop(objects);
    assert!(check(directory.path(), &NoObjects).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_before_a_stop_is_reclaimed_after_the_next_start() {
    let directory = TempDir::new().unwrap();
    let objects = EmbeddedObjects::new(open(directory.path()));
    for number in 0..40 {
        objects.put(object(1), number, content(1, number, 500_000)).await.unwrap();
    }
    objects.sync(&[object(1)]).await.unwrap();
    objects.remove(&[object(1)]).await.unwrap();
    objects.close().await;
    drop(objects);
    assert!(bytes_of(&files(directory.path(), "blob")) > 10 << 20);
    let _engine = quick(directory.path());
    eventually("its files are deleted", || files(directory.path(), "blob").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_from_before_there_were_objects_gets_them() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    engine.create_table(&table("Books"), None).await.unwrap();
    engine.apply(&table("Books"), insert("p", "r", 1)).await.unwrap();
    engine.close().await;
    drop(engine);
    let mut before = raw(directory.path());
    before.drop_cf("objects").unwrap();
    before.drop_cf("files").unwrap();
    drop(before);
    assert!(check(directory.path(), &NoObjects).unwrap().is_sound());
    for _ in 0..2 {
        let engine = open(directory.path());
        let objects = EmbeddedObjects::new(engine.clone());
        objects.put(object(1), 0, content(1, 0, 5000)).await.unwrap();
        objects.sync(&[object(1)]).await.unwrap();
        assert_eq!(objects.get(object(1), 0).await.unwrap(), Some(content(1, 0, 5000)));
        assert!(engine.get(&table("Books"), &store_suite::key("p", "r")).await.unwrap().is_some());
        engine.close().await;
    }
}

#[tokio::test]
async fn a_store_with_a_family_of_a_later_version_is_refused_and_not_changed() {
    let directory = TempDir::new().unwrap();
    open(directory.path()).close().await;
    let mut later = raw(directory.path());
    later.create_cf("later", &rocksdb::Options::default()).unwrap();
    drop(later);
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::NewerFamily { .. }), "{error}");
    assert!(error.to_string().contains("has the column family later; use the version that wrote it"));
    let families = DB::list_cf(&rocksdb::Options::default(), directory.path().join("db")).unwrap();
    assert_eq!(families.len(), 6, "{families:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_has_the_objects_of_its_moment() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let objects = EmbeddedObjects::new(engine.clone());
    for n in 0..4 {
        let (chunks, bytes) = shape(n);
        for number in 0..chunks {
            objects.put(object(n), number, content(n, number, bytes)).await.unwrap();
        }
    }
    objects.sync(&[object(0), object(1), object(2), object(3)]).await.unwrap();
    let taken = engine.checkpoint().unwrap();
    let place = TempDir::new().unwrap();
    let copy = place.path().join("copy");
    fs::rename(&taken.directory, &copy).unwrap();
    objects.remove(&[object(1)]).await.unwrap();
    engine.close().await;
    let report = check(&copy, &NoObjects).unwrap();
    assert!(report.is_sound());
    assert_eq!((report.objects.objects, report.objects.unnamed), (4, 4));
    let objects = EmbeddedObjects::new(open(&copy));
    for n in 0..4 {
        for number in 0..shape(n).0 {
            let found = objects.get(object(n), number).await.unwrap();
            assert!(found == Some(content(n, number, shape(n).1)), "chunk {number} of {n}");
        }
    }
}
