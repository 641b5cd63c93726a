//! Content that is too large for rows: chunks as rows of a table of their own, without conditions.
//!
//! A name belongs to one object for ever and its chunks never change. So every write can be sent again, and has the same
//! timestamp wherever and whenever it is sent; a removal has a later one, and wins over a write that arrives late.
//!
//! Old names come only from a store that is moved here, and what they name may have been removed here before: by an earlier
//! move that did not end, by those who worked here before they went back to the old store, or with everything else of its hour.
//! So what a move puts, and what is put under an old name, has the time of day as timestamp, above every removal so far. It is
//! in its listing, so that the next removal is above it.
//!
//! Partitions have no order, so objects are listed by the hour of their names. Before the first chunk of each part of 16 is
//! written, the part is listed: no chunk is ever unlisted, and a removal knows all parts. A removed part stays in the list as
//! removed: rows that are deleted one by one would be tombstones that every later list has to read. When an hour is old and
//! everything in it is removed, it is deleted as a whole.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::DateTime;
use scylla::statement::prepared::PreparedStatement;
use store::{Error, Fault, ObjectId, Objects, ObjectsPage, check_chunk};
use tokio::sync::Semaphore;

use crate::clock::unix_micros;
use crate::cluster::Link;
use crate::engine::CassandraEngine;
use crate::trouble::{Trouble, undecodable};

/// Chunks of one Cassandra partition.
const PART_CHUNKS: u32 = 16;
const TICKS_PER_HOUR: i64 = 3600 * 10_000_000;
/// Timestamps of Cassandra: of everything that is put under a young name, and of its removal.
const PUT: i64 = 1;
const REMOVED: i64 = 2;
/// Chunks that are written or read at a time, each a mebibyte.
const CHUNKS_UNDER_WAY: usize = 32;
/// How often a write is sent before it is given up, and the pause before it is sent again.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);
/// Parts that this server remembers to have listed.
const REMEMBERED_MAX: usize = 10_000;
/// Servers put their names within this time. What is older comes from another store, and is listed each time it is put. An hour
/// is deleted when it is ten times as old.
const YOUNG: Duration = Duration::from_secs(24 * 3600);
const OLD: Duration = Duration::from_secs(10 * 24 * 3600);
/// Rows of a list that are read at once.
const LIST_ROWS: i32 = 1000;
const HOURS_AT_ONCE: i32 = 1000;

/// The objects of a keyspace.
#[derive(Debug)]
pub struct CassandraObjects {
    engine: Arc<CassandraEngine>,
    under_way: Semaphore,
    /// Parts that are listed for certain.
    listed: Mutex<HashSet<(ObjectId, u32)>>,
    /// Names come from another store, young ones too.
    is_moved_here: bool,
}

/// A part of an object, in its list.
struct ListedPart {
    object: ObjectId,
    part: i64,
    is_removed: bool,
    /// Above all that was put of it. If it is removed, that of its removal.
    removed_at: i64,
}

type ListedColumns = (Vec<u8>, i64, Option<bool>, Option<i64>);

impl ListedPart {
    fn read((name, part, removed, written): ListedColumns) -> Result<Self, Trouble> {
        let name = <[u8; ObjectId::BYTES]>::try_from(name);
        let name = name.map_err(|name| Trouble::damaged(format!("{name:02x?} is no object")))?;
        let is_removed = removed == Some(true);
        let removed_at = match written {
            None => REMOVED,
            Some(written) => written + i64::from(!is_removed),
        };
        Ok(Self { object: ObjectId::from_bytes(name), part, is_removed, removed_at })
    }
}

impl CassandraObjects {
    pub fn new(engine: Arc<CassandraEngine>) -> Self {
        let under_way = Semaphore::new(CHUNKS_UNDER_WAY);
        Self { engine, under_way, listed: Mutex::default(), is_moved_here: false }
    }

    /// For the move of another store into the keyspace.
    pub fn of_a_move(engine: Arc<CassandraEngine>) -> Self {
        Self { is_moved_here: true, ..Self::new(engine) }
    }

    fn link(&self) -> Result<&Link, Error> {
        self.engine.check_open()?;
        Ok(self.engine.cluster())
    }

    /// Sends a write until it is known to be done. Sending it twice changes nothing.
    async fn insist<V>(&self, statement: &PreparedStatement, values: V) -> Result<(), Error>
    where
        V: scylla::serialize::row::SerializeRow + Sync,
    {
        let mut attempt = 1;
        loop {
            match self.link()?.write(statement, &values).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Fault(fault)) => return Err(fault.into()),
                Err(trouble) if attempt == ATTEMPTS => {
                    tracing::warn!(%trouble, "content could not be written to the cluster");
                    return Err(Error::Busy);
                }
                Err(trouble) => tracing::debug!(%trouble, attempt, "sending content again"),
            }
            tokio::time::sleep(PAUSE * attempt).await;
            attempt += 1;
        }
    }

    /// Lists a part of an object, and its hour. The timestamp of what is put into it.
    async fn list_part(&self, object: ObjectId, part: u32) -> Result<i64, Error> {
        let (hour, name, part_key) = (hour_of(object), &object.as_bytes()[..], i64::from(part));
        let statements = &self.link()?.statements;
        // The hour of an old name may be deleted any time.
        if self.is_moved_here || !is_within(object, YOUNG) {
            let now = unix_micros();
            self.insist(&statements.add_object_hour, (hour, now)).await?;
            self.insist(&statements.add_object_part_again, (hour, name, part_key, now)).await?;
            return Ok(now);
        }
        if self.listed.lock().unwrap_or_else(PoisonError::into_inner).contains(&(object, part)) {
            return Ok(PUT);
        }
        self.insist(&statements.add_object_hour, (hour, PUT)).await?;
        self.insist(&statements.add_object_part, (hour, name, part_key, PUT)).await?;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.len() >= REMEMBERED_MAX {
            listed.clear();
        }
        listed.insert((object, part));
        Ok(PUT)
    }

    /// The parts of an object that were not removed.
    async fn parts(&self, object: ObjectId) -> Result<Vec<ListedPart>, Error> {
        let link = self.link()?;
        let values = (hour_of(object), &object.as_bytes()[..]);
        let rows = link.read(&link.statements.object_parts, values).await?;
        let mut parts = Vec::new();
        for row in rows.rows::<ListedColumns>().map_err(undecodable("the parts of an object"))? {
            let part = ListedPart::read(row.map_err(undecodable("the parts of an object"))?)?;
            parts.extend(Some(part).filter(|part| !part.is_removed));
        }
        Ok(parts)
    }

    async fn remove_one(&self, object: ObjectId) -> Result<(), Error> {
        let name = &object.as_bytes()[..];
        for ListedPart { part, removed_at, .. } in self.parts(object).await? {
            // The chunks first: what is listed may have chunks.
            let statements = &self.link()?.statements;
            self.insist(&statements.remove_chunks, (removed_at, name, part)).await?;
            let values = (removed_at, hour_of(object), name, part);
            self.insist(&statements.remove_object_part, values).await?;
        }
        Ok(())
    }

    /// Hours from this one on, in order.
    async fn hours(&self, from: i64) -> Result<Vec<i64>, Error> {
        let link = self.link()?;
        let rows = link.read(&link.statements.object_hours, (from, HOURS_AT_ONCE)).await?;
        let rows = rows.rows::<(i64,)>().map_err(undecodable("the hours of objects"))?;
        let hours: Result<Vec<_>, _> = rows.map(|row| row.map(|(hour,)| hour)).collect();
        Ok(hours.map_err(undecodable("the hours of objects"))?)
    }

    /// Deletes an hour in which everything is removed, the last of it at this time.
    ///
    /// Not with the time of day: somebody may be listing a part. An hour that was listed ten days ago, and no part of it, is
    /// of somebody who was killed.
    async fn forget_hour(&self, hour: i64, removed_at: i64) -> Result<(), Error> {
        let statements = &self.link()?.statements;
        let at = removed_at.max(unix_micros() - OLD.as_micros() as i64);
        self.insist(&statements.drop_object_parts, (at, hour)).await?;
        self.insist(&statements.drop_object_hour, (at, hour)).await
    }
}

/// A page of objects that is being filled.
struct Listing {
    objects: Vec<ObjectId>,
    limit: usize,
}

impl Listing {
    /// The next page begins at this object, if it is one more than fits.
    fn take(&mut self, object: ObjectId) -> Option<ObjectId> {
        if self.objects.last() == Some(&object) {
            return None;
        }
        if self.objects.len() == self.limit {
            return Some(object);
        }
        self.objects.push(object);
        None
    }
}

#[async_trait]
impl Objects for CassandraObjects {
    async fn put(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<(), Error> {
        check_chunk(&chunk)?;
        let _pass = self.engine.begin_write()?;
        let _turn = self.under_way.acquire().await.map_err(|_| Fault::closed())?;
        let timestamp = self.list_part(object, part_of(number)).await?;
        let statement = &self.link()?.statements.put_chunk;
        let name = &object.as_bytes()[..];
        let values = (name, i64::from(part_of(number)), i64::from(number), &chunk[..], timestamp);
        self.insist(statement, values).await
    }

    async fn sync(&self, _: &[ObjectId]) -> Result<(), Error> {
        // A quorum has answered each `put`, and keeps what it has.
        self.engine.check_open()
    }

    async fn get(&self, object: ObjectId, number: u32) -> Result<Option<Bytes>, Error> {
        let link = self.link()?;
        let _turn = self.under_way.acquire().await.map_err(|_| Fault::closed())?;
        let values = (&object.as_bytes()[..], i64::from(part_of(number)), i64::from(number));
        let rows = link.read(&link.statements.get_chunk, values).await?;
        let row = rows.maybe_first_row::<(Option<Vec<u8>>,)>().map_err(undecodable("a chunk of content"))?;
        Ok(row.and_then(|(body,)| body).map(Bytes::from))
    }

    async fn remove(&self, objects: &[ObjectId]) -> Result<(), Error> {
        let _pass = self.engine.begin_write()?;
        for object in objects {
            self.remove_one(*object).await?;
        }
        Ok(())
    }

    async fn list(&self, from: ObjectId, limit: usize) -> Result<ObjectsPage, Error> {
        let mut page = Listing { objects: Vec::new(), limit };
        let mut first_hour = hour_of(from);
        loop {
            let hours = self.hours(first_hour).await?;
            for hour in &hours {
                // Below every part of this object.
                let mut after = (if *hour == hour_of(from) { from } else { ObjectId::FIRST }, -1_i64);
                let (mut is_empty, is_whole) = (true, after.0 == ObjectId::FIRST);
                let mut removed_at = REMOVED;
                loop {
                    let link = self.link()?;
                    let values = (*hour, &after.0.as_bytes()[..], after.1, LIST_ROWS);
                    let rows = link.read(&link.statements.objects_of_hour, values).await?;
                    let rows = rows.rows::<ListedColumns>().map_err(undecodable("the list of objects"))?;
                    let mut found = 0;
                    for row in rows {
                        let listed = ListedPart::read(row.map_err(undecodable("the list of objects"))?)?;
                        after = (listed.object, listed.part);
                        found += 1;
                        removed_at = removed_at.max(listed.removed_at);
                        if listed.is_removed {
                            continue;
                        }
                        is_empty = false;
                        if let Some(next) = page.take(listed.object) {
                            return Ok(ObjectsPage { objects: page.objects, next: Some(next) });
                        }
                    }
                    if found < LIST_ROWS {
                        break;
                    }
                }
                if is_empty && is_whole && !is_hour_within(*hour, OLD) && self.engine.begin_write().is_ok() {
                    self.forget_hour(*hour, removed_at).await?;
                }
            }
            match hours.last() {
                Some(last) if hours.len() == HOURS_AT_ONCE as usize => first_hour = last + 1,
                _ => return Ok(ObjectsPage { objects: page.objects, next: None }),
            }
        }
    }

    async fn close(&self) {
        store::Engine::close(&*self.engine).await;
    }
}

fn part_of(number: u32) -> u32 {
    number / PART_CHUNKS
}

/// The hour of its name. Bytes that are no name of ours have one too.
fn hour_of(object: ObjectId) -> i64 {
    let (ticks, _) = object.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    // In the order of the names, of which the first byte has no sign.
    (u64::from_be_bytes(*ticks) / TICKS_PER_HOUR as u64) as i64
}

fn is_within(object: ObjectId, time: Duration) -> bool {
    is_hour_within(hour_of(object), time)
}

/// Whether an hour began less than so long ago, by this server's clock.
fn is_hour_within(hour: i64, time: Duration) -> bool {
    let now = DateTime::now().ticks() / TICKS_PER_HOUR;
    now - hour < (time.as_secs() / 3600) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_in_the_order_of_names() {
        let of = |ticks: i64| ObjectId::new(DateTime::from_ticks(ticks).unwrap(), [0xff; 8]);
        let hour = 700_000_i64;
        assert_eq!(hour_of(of(hour * TICKS_PER_HOUR)), hour);
        assert_eq!(hour_of(of((hour + 1) * TICKS_PER_HOUR - 1)), hour);
        assert_eq!(hour_of(of((hour + 1) * TICKS_PER_HOUR)), hour + 1);
        assert_eq!(hour_of(ObjectId::FIRST), 0);
        assert!(hour_of(ObjectId::from_bytes([0xff; 16])) > hour);
        assert!(is_within(ObjectId::new(DateTime::now(), [0; 8]), YOUNG));
        assert!(!is_within(of(hour * TICKS_PER_HOUR), OLD));
    }
}
