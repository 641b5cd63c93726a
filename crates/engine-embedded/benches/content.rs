//! Ways to make content durable, side by side: `cargo bench --bench content -- [MEBIBYTES]`.
//!
//! - `log`: chunks through RocksDB's log, one sync of the log for all who wait.
//! - `flush`: chunks without the log, one flush of the family for all who wait.
//! - `file`: a table file of its own for each object, which RocksDB takes in whole.
//! - `plain`: a plain file for each object, synced with its directory. This is the limit.
//!
//! Writes so many mebibytes with each, as objects of each size, with one writer and with eight. Prints mebibytes and
//! objects per second. RocksDB directly, with the options of the engine's family for objects: this is what the choice in
//! `docs/decisions/0011-blobs.md` was made with, and not the engine as it is.

#![allow(clippy::unwrap_used, reason = "a benchmark: whatever fails ends it")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, IngestExternalFileOptions, Options,
    SstFileWriter, WriteOptions,
};

const CHUNK: usize = 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// One sync for all who have asked before it began.
#[derive(Default)]
struct Together {
    asked: AtomicU64,
    done: Mutex<u64>,
}

impl Together {
    fn run(&self, work: impl FnOnce()) {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = self.done.lock().unwrap();
        if *done < mine {
            let upto = self.asked.load(Ordering::SeqCst);
            work();
            *done = upto;
        }
    }
}

struct Store {
    db: DB,
    options: Options,
    together: Together,
}

impl Store {
    fn open(directory: &Path) -> Self {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_background_jobs(2);
        options.set_bytes_per_sync(MIB);
        options.set_max_total_wal_size(128 * MIB);
        let mut family = Options::default();
        family.set_enable_blob_files(true);
        family.set_min_blob_size(1024);
        family.set_write_buffer_size(32 * CHUNK);
        family.set_max_write_buffer_number(4);
        family.set_compression_type(DBCompressionType::None);
        let families = [ColumnFamilyDescriptor::new("objects", family.clone())];
        let db = DB::open_cf_descriptors(&options, directory, families).unwrap();
        Self { db, options: family, together: Together::default() }
    }

    fn family(&self) -> &ColumnFamily {
        self.db.cf_handle("objects").unwrap()
    }
}

fn key(object: u64, chunk: u32) -> Vec<u8> {
    [&object.to_be_bytes()[..], &object.to_be_bytes(), &chunk.to_be_bytes()].concat()
}

fn parts(bytes: u64) -> impl Iterator<Item = (u32, usize)> {
    (0..bytes.div_ceil(CHUNK as u64))
        .map(move |n| (n as u32, (bytes - n * CHUNK as u64).min(CHUNK as u64) as usize))
}

type Way = fn(&Store, &Path, u64, u64, &[u8]);

fn through_the_log(store: &Store, _: &Path, object: u64, bytes: u64, noise: &[u8]) {
    for (number, length) in parts(bytes) {
        store.db.put_cf(store.family(), key(object, number), &noise[..length]).unwrap();
    }
    store.together.run(|| store.db.flush_wal(true).unwrap());
}

fn with_a_flush(store: &Store, _: &Path, object: u64, bytes: u64, noise: &[u8]) {
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    for (number, length) in parts(bytes) {
        store.db.put_cf_opt(store.family(), key(object, number), &noise[..length], &unlogged).unwrap();
    }
    store.together.run(|| store.db.flush_cf(store.family()).unwrap());
}

fn taken_in(store: &Store, directory: &Path, object: u64, bytes: u64, noise: &[u8]) {
    let path = directory.join(format!("{object}.taken"));
    let mut options = store.options.clone();
    options.set_enable_blob_files(false);
    let mut writer = SstFileWriter::create(&options);
    writer.open(&path).unwrap();
    for (number, length) in parts(bytes) {
        writer.put(key(object, number), &noise[..length]).unwrap();
    }
    writer.finish().unwrap();
    let mut ingest = IngestExternalFileOptions::default();
    ingest.set_move_files(true);
    store.db.ingest_external_file_cf_opts(store.family(), &ingest, vec![path]).unwrap();
}

fn plain_file(_: &Store, directory: &Path, object: u64, bytes: u64, noise: &[u8]) {
    let path = directory.join(format!("{object}.plain"));
    let mut file = File::create(path).unwrap();
    for (_, length) in parts(bytes) {
        file.write_all(&noise[..length]).unwrap();
    }
    file.sync_data().unwrap();
    File::open(directory).unwrap().sync_all().unwrap();
}

fn measure(way: Way, writers: u64, bytes: u64, total: u64) -> (f64, f64) {
    let place = tempfile::TempDir::new().unwrap();
    let (database, files) = (place.path().join("db"), place.path().join("files"));
    fs::create_dir(&files).unwrap();
    let store = Arc::new(Store::open(&database));
    let noise: Arc<Vec<u8>> = Arc::new((0..CHUNK / 8).flat_map(|_| rand::random::<[u8; 8]>()).collect());
    let (next, objects) = (Arc::new(AtomicU64::new(0)), (total / bytes).max(writers));
    let started = Instant::now();
    let writers = (0..writers).map(|_| {
        let (store, noise, next, files) = (store.clone(), noise.clone(), next.clone(), files.clone());
        thread::spawn(move || {
            loop {
                let object = next.fetch_add(1, Ordering::SeqCst);
                if object >= objects {
                    break;
                }
                way(&store, &files, object, bytes, &noise);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.join().unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    ((objects * bytes) as f64 / MIB as f64 / seconds, objects as f64 / seconds)
}

fn main() {
    let asked = std::env::args().filter_map(|argument| argument.parse::<u64>().ok()).next();
    let most = asked.unwrap_or(2048) * MIB;
    let ways: [(&str, Way); 4] =
        [("log", through_the_log), ("flush", with_a_flush), ("file", taken_in), ("plain", plain_file)];
    println!("{:>10} {:>8}  way: MiB/s (objects/s)", "bytes", "writers");
    for bytes in [64 * 1024, MIB, 4 * MIB, 8 * MIB, 32 * MIB, 1024 * MIB] {
        // Eight of the largest would take minutes and most of a disk.
        for writers in [1, if bytes > 256 * MIB { 2 } else { 8 }] {
            // So that no round takes much longer than the others.
            let total = most.min(bytes * 2048).max(bytes * 2);
            let told = ways.map(|(name, way)| {
                let (rate, objects) = measure(way, writers, bytes, total);
                format!("{name} {rate:.0} ({objects:.0})")
            });
            println!("{bytes:>10} {writers:>8}  {}", told.join("   "));
        }
    }
}
