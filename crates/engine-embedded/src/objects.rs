//! Content: chunks of objects.
//!
//! Small chunks are in a column family of their own, and go through the log like rows. Large ones are in files
//! (`content_files`). Of the few that find no place in a file, those behind the first ones of an object do not go through the
//! log, which would be a second writing of every byte: they stay in memory until a flush of the family writes them to a file.
//! `sync` syncs the log, the names of files, or flushes, once for all who wait for it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rocksdb::{Direction, IteratorMode, ReadOptions, WriteBatch, WriteOptions};
use store::{ChunkPart, Error, Fault, ObjectId, Objects, ObjectsPage, check_chunk};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{self, Instant};
use tracing::warn;

use crate::EmbeddedEngine;
use crate::content_files::{self, ContentFiles, Placed, PutError};
use crate::db::{self, Db};
use crate::health::Health;
use crate::layout::{self, ObjectKey};
use crate::options::OBJECTS_BUFFERS_BYTES;
use crate::read::blocking;

/// Chunks of an object from this number on are not written to the log: content of more than so many mebibytes.
const LOGGED_CHUNKS: u32 = 4;
/// Chunks that are written at a time. Each may exceed the limit of the buffers by itself.
const WRITERS: usize = 8;
/// Chunks that are read at a time: each is copied once.
const READERS: usize = 32;
/// How often a writer looks whether there is room, and how long it waits for it. A disk that flushes nothing for so long is
/// full or broken.
const ROOM_PAUSE: Duration = Duration::from_millis(2);
const ROOM_PATIENCE: Duration = Duration::from_secs(30);
/// Objects that are removed with one write.
const REMOVED_AT_ONCE: usize = 64;

/// What the engine knows of objects besides what is stored.
#[derive(Debug)]
pub struct ObjectsState {
    pub files: Arc<ContentFiles>,
    writers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    /// Objects with chunks that are not in the log and perhaps not in a file, and when the last of them was put.
    unlogged: Mutex<HashMap<ObjectId, u64>>,
    puts: AtomicU64,
    log_syncs: Together,
    name_syncs: Together,
    flushes: Together,
}

impl ObjectsState {
    pub fn new(files: Arc<ContentFiles>) -> Self {
        Self {
            files,
            writers: Arc::new(Semaphore::new(WRITERS)),
            readers: Arc::new(Semaphore::new(READERS)),
            unlogged: Mutex::default(),
            puts: AtomicU64::new(0),
            log_syncs: Together::default(),
            name_syncs: Together::default(),
            flushes: Together::default(),
        }
    }

    /// After the chunk is written and before its `put` answers: a flush that begins later has it.
    fn note_unlogged(&self, object: ObjectId) {
        let mut unlogged = self.unlogged.lock();
        let put = self.puts.fetch_add(1, Ordering::SeqCst) + 1;
        unlogged.insert(object, put);
    }

    fn needs_flush(&self, objects: &[ObjectId]) -> bool {
        let unlogged = self.unlogged.lock();
        objects.iter().any(|object| unlogged.contains_key(object))
    }
}

/// Work that is done once for all who have asked for it before it begins.
#[derive(Debug, Default)]
struct Together {
    asked: AtomicU64,
    done: AsyncMutex<u64>,
}

impl Together {
    async fn run<W>(&self, work: impl FnOnce() -> W) -> Result<(), Error>
    where
        W: Future<Output = Result<(), Error>>,
    {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = self.done.lock().await;
        if *done < mine {
            let upto = self.asked.load(Ordering::SeqCst);
            work().await?;
            *done = upto;
        }
        Ok(())
    }
}

/// The objects of an open engine. They are closed with it.
#[derive(Clone)]
pub struct EmbeddedObjects {
    engine: Arc<EmbeddedEngine>,
}

impl fmt::Debug for EmbeddedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedObjects").finish_non_exhaustive()
    }
}

impl EmbeddedObjects {
    pub fn new(engine: Arc<EmbeddedEngine>) -> Self {
        Self { engine }
    }

    fn state(&self) -> &ObjectsState {
        &self.engine.objects
    }

    /// Writes a chunk to the file of its object, if it is one for a file.
    async fn put_in_file(
        &self,
        object: ObjectId,
        number: u32,
        chunk: Bytes,
        turn: OwnedSemaphorePermit,
    ) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let (db, state, health) =
            (self.engine.db()?, self.engine.objects.clone(), self.engine.health.clone());
        let put = blocking(move || {
            // Held by this thread, because the caller may stop waiting before the chunk is written.
            let placed = state.files.put(object, number, &chunk, || db.name_object(object));
            if let Err(PutError::Failed(fault)) = &placed {
                health.fail(fault.clone());
            }
            placed.map(|placed| (placed == Placed::Elsewhere).then_some(turn))
        });
        put.await?.map_err(|error| match error {
            PutError::NoRoom => Error::Busy,
            PutError::Failed(fault) => fault.into(),
        })
    }

    /// Seals the files of these objects, and makes their names durable, in the directory and in the database.
    async fn seal(&self, objects: &[ObjectId]) -> Result<(), Error> {
        let state = &self.engine.objects;
        let (sealed, files) = (objects.to_vec(), state.files.clone());
        self.write(move |_| files.seal(&sealed)).await?;
        let files = &state.files;
        let names = state.name_syncs.run(|| {
            let files = files.clone();
            self.write(move |_| files.sync_names())
        });
        let log = state.log_syncs.run(|| self.write(Db::sync_log));
        tokio::try_join!(names, log)?;
        files.note_synced(objects);
        Ok(())
    }

    /// Waits until the buffers have room for so many bytes. They are flushed meanwhile.
    async fn wait_for_room(&self, bytes: usize) -> Result<(), Error> {
        let deadline = Instant::now() + ROOM_PATIENCE;
        // The database is not held while this waits: a close would wait for it.
        while self.engine.db()?.objects_buffered()? + bytes > OBJECTS_BUFFERS_BYTES {
            if self.engine.health.stalled().is_some() || Instant::now() >= deadline {
                return Err(Error::Busy);
            }
            time::sleep(ROOM_PAUSE).await;
        }
        Ok(())
    }

    /// Runs a write on a thread that may wait for the disk. After a failure nobody knows what is on it.
    async fn write(
        &self,
        write: impl FnOnce(&Db) -> Result<(), Fault> + Send + 'static,
    ) -> Result<(), Error> {
        let (db, health): (Arc<Db>, Arc<Health>) = (self.engine.db()?, self.engine.health.clone());
        let written = blocking(move || write(&db).inspect_err(|fault| health.fail(fault.clone())));
        Ok(written.await??)
    }
}

#[async_trait]
impl Objects for EmbeddedObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error> {
        check_chunk(&chunk)?;
        let turn = self.state().writers.clone().acquire_owned().await.map_err(|_| Fault::closed())?;
        let turn = match chunk.len() < content_files::CHUNK_BYTES_MIN {
            true => turn,
            false => match self.put_in_file(object, number, chunk.clone(), turn).await? {
                None => return Ok(()),
                Some(turn) => turn,
            },
        };
        self.wait_for_room(chunk.len()).await?;
        let is_logged = number < LOGGED_CHUNKS;
        let state = self.engine.objects.clone();
        self.write(move |db| {
            // Held by this thread, because the caller may stop waiting before the chunk is written.
            let _turn = turn;
            db.put_chunk(object, number, &chunk, is_logged)?;
            if !is_logged {
                state.note_unlogged(object);
            }
            Ok(())
        })
        .await
    }

    async fn sync(&self, objects: &[ObjectId]) -> Result<(), Error> {
        let state = self.state();
        let (has_files, needs_flush) = (state.files.are_unsynced(objects), state.needs_flush(objects));
        if has_files {
            self.seal(objects).await?;
        }
        if !needs_flush && has_files {
            return Ok(());
        }
        if !needs_flush {
            return state.log_syncs.run(|| self.write(Db::sync_log)).await;
        }
        state
            .flushes
            .run(|| async {
                // Every chunk up to this number is in the buffers now.
                let flushed = state.puts.load(Ordering::SeqCst);
                self.write(Db::flush_objects).await?;
                // Chunks that were put since are perhaps not in it.
                state.unlogged.lock().retain(|_, put| *put > flushed);
                Ok(())
            })
            .await
    }

    fn at_hand(&self, object: ObjectId, number: u32) -> Option<Bytes> {
        let db = self.engine.db().ok()?;
        if let Some(chunk) = db.chunk_at_hand(object, number) {
            return Some(chunk);
        }
        if !db.names_object_in_memory(object) {
            return None;
        }
        // What can't be read without waiting, `get` reads.
        self.state().files.get(object, number, false).ok()?
    }

    fn part_at_hand(&self, object: ObjectId, number: u32, within: Range<usize>) -> Option<ChunkPart> {
        let db = self.engine.db().ok()?;
        if !db.names_object_in_memory(object) {
            return None;
        }
        self.state().files.part(object, number, within, false).ok()?
    }

    async fn part(
        &self,
        object: ObjectId,
        number: u32,
        within: Range<usize>,
    ) -> Result<Option<ChunkPart>, Error> {
        let turn = self.state().readers.clone().acquire_owned().await.map_err(|_| Fault::closed())?;
        let db = self.engine.db()?;
        let files = self.state().files.clone();
        let read = blocking(move || {
            let _turn = turn;
            // A chunk of the database is read as a whole.
            if db.names_object(object)? { files.part(object, number, within, true) } else { Ok(None) }
        });
        let read: Result<_, Fault> = read.await?;
        Ok(read?)
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error> {
        let turn = self.state().readers.clone().acquire_owned().await.map_err(|_| Fault::closed())?;
        let db = self.engine.db()?;
        let files = self.state().files.clone();
        let read = blocking(move || {
            let _turn = turn;
            match db.chunk(object, number)? {
                // A file may be left of an object that was removed.
                None if db.names_object(object)? => files.get(object, number, true),
                found => Ok(found),
            }
        });
        let read: Result<_, Fault> = read.await?;
        Ok(read?)
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error> {
        for some in objects.chunks(REMOVED_AT_ONCE) {
            let (removed, files) = (some.to_vec(), self.state().files.clone());
            self.write(move |db| {
                db.remove_objects(&removed)?;
                // The next start deletes what is left, also what a power cut brings back: the database does not name it.
                if let Err(fault) = files.remove(&removed) {
                    warn!(%fault, "files of removed objects take space until the next start");
                }
                Ok(())
            })
            .await?;
            let mut unlogged = self.state().unlogged.lock();
            for object in some {
                unlogged.remove(object);
            }
        }
        self.engine.note_removed(objects);
        Ok(())
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error> {
        let turn = self.state().readers.clone().acquire_owned().await.map_err(|_| Fault::closed())?;
        let db = self.engine.db()?;
        let read = blocking(move || {
            let _turn = turn;
            db.list_objects(from, limit)
        });
        Ok(read.await??)
    }

    async fn close(&self) {
        store::Engine::close(&*self.engine).await;
    }
}

impl Db {
    /// Bytes of chunks that are not in files yet.
    fn objects_buffered(&self) -> Result<usize, Fault> {
        let name = rocksdb::properties::CUR_SIZE_ALL_MEM_TABLES;
        let bytes = self.rocks().property_int_value_cf(self.objects(), name);
        let bytes = bytes.map_err(|error| db::fault("could not ask for the size of the buffers", error))?;
        Ok(bytes.unwrap_or(0) as usize)
    }

    /// Not durable before `sync_log`, or `flush_objects` if it is not logged.
    fn put_chunk(&self, object: ObjectId, number: u32, chunk: &[u8], is_logged: bool) -> Result<(), Fault> {
        let mut options = WriteOptions::default();
        options.disable_wal(!is_logged);
        let mut batch = WriteBatch::with_capacity_bytes(chunk.len() + 128);
        batch.put_cf(self.objects(), layout::object_name_key(object), []);
        batch.put_cf(self.objects(), layout::chunk_key(object, number), chunk);
        let written = self.rocks().write_opt(batch, &options);
        written.map_err(|error| db::fault("could not write a chunk of an object", error))
    }

    /// Makes an object known. Durable after `sync_log`.
    fn name_object(&self, object: ObjectId) -> Result<(), Fault> {
        let named = self.rocks().put_cf(self.objects(), layout::object_name_key(object), []);
        named.map_err(|error| db::fault("could not write the name of an object", error))
    }

    /// Whether the object is known. May wait for the disk.
    pub fn names_object(&self, object: ObjectId) -> Result<bool, Fault> {
        let found = self.rocks().get_pinned_cf(self.objects(), layout::object_name_key(object));
        found.map(|found| found.is_some()).map_err(|error| db::fault("could not look for an object", error))
    }

    /// Whether that is certain without waiting for the disk.
    fn names_object_in_memory(&self, object: ObjectId) -> bool {
        row_walk::read_value(self.objects(), self.rocks().path(), &layout::object_name_key(object), false)
            .is_some()
    }

    fn sync_log(&self) -> Result<(), Fault> {
        self.rocks().flush_wal(true).map_err(|error| db::fault("could not sync the log", error))
    }

    pub fn flush_objects(&self) -> Result<(), Fault> {
        let flushed = self.rocks().flush_cf(self.objects());
        flushed.map_err(|error| db::fault("could not flush chunks of objects to a file", error))
    }

    /// A chunk that can be had without waiting for the disk: it is in memory, or in the system's cache of files.
    fn chunk_at_hand(&self, object: ObjectId, number: u32) -> Option<Bytes> {
        let key = layout::chunk_key(object, number);
        let chunk = row_walk::read_value(self.objects(), self.rocks().path(), &key, false)?;
        check_stored(&chunk).is_ok().then_some(chunk)
    }

    /// With its checksum checked, here or by RocksDB.
    fn chunk(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Fault> {
        let about = || format!("chunk {number} of object {object}");
        let key = layout::chunk_key(object, number);
        if let Some(chunk) = row_walk::read_value(self.objects(), self.rocks().path(), &key, true) {
            check_stored(&chunk).map_err(|fault| fault.about(about()))?;
            return Ok(Some(chunk));
        }
        // RocksDB knows whether it is missing or damaged.
        let found = self.rocks().get_pinned_cf(self.objects(), key);
        let found =
            found.map_err(|error| db::fault("could not read a chunk of an object", error).about(about()))?;
        let chunk = found.map(|chunk| Bytes::copy_from_slice(&chunk));
        chunk.as_deref().map_or(Ok(()), check_stored).map_err(|fault| fault.about(about()))?;
        Ok(chunk)
    }

    /// Removed from the disk too when this returns.
    fn remove_objects(&self, objects: &[ObjectId]) -> Result<(), Fault> {
        let mut batch = WriteBatch::default();
        for object in objects {
            let (start, end) = layout::chunk_range(*object);
            batch.delete_range_cf(self.objects(), start, end);
            batch.delete_cf(self.objects(), layout::object_name_key(*object));
        }
        self.write(batch)
    }

    fn list_objects(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Fault> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(layout::ABOVE_OBJECT_NAMES);
        let start = layout::object_name_key(from);
        let mode = IteratorMode::From(&start, Direction::Forward);
        let mut objects = Vec::new();
        for entry in self.rocks().iterator_cf_opt(self.objects(), options, mode) {
            let (key, _) = entry.map_err(|error| db::fault("could not list objects", error))?;
            let Some(ObjectKey::Name(object)) = ObjectKey::read(&key) else {
                return Err(Fault::damaged(format!("the stored name of an object {key:02x?} can't be read")));
            };
            if objects.len() == limit {
                return Ok(ObjectsPage { objects, next: Some(object) });
            }
            objects.push(object);
        }
        Ok(ObjectsPage { objects, next: None })
    }
}

/// A chunk has a length that `put` accepts.
fn check_stored(chunk: &[u8]) -> Result<(), Fault> {
    check_chunk(chunk).map_err(|_| Fault::damaged(format!("a stored chunk has {} bytes", chunk.len())))
}
