//! Finds and removes objects that no row names.
//!
//! Objects are listed first, and rows are read after that. Content is written before the row that names it, so a row that is
//! not there when an object is listed may be there when rows are read, but never the other way round. Objects that are younger
//! than a day are left alone: their row may come yet, on this server or another one. What is named while rows are read is
//! known from `in_use`, and of other servers from their records of what they have moved.
//!
//! What can't be read ends the sweep before anything is removed: nothing is garbage as long as a row might name it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use blob_model::{DateTime, ServiceKind};
use model::{Cut, KeyRange};
use store::{Budget, Engine, Fault, ObjectId, Scan, StoredName, TableRef};

use super::counts;
use super::moves;
use super::naming::{Named, named_by};
use super::{Contents, REMOVED_AT_ONCE};
use crate::Result;

/// How old an object is before a sweep may remove it. Longer than writing may take.
pub const SWEPT_AGE: Duration = Duration::from_secs(24 * 3600);
/// Memory for the objects that are compared in one pass over the rows.
const SWEEP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Each is a name, and whether a row has it.
pub(super) const CANDIDATES_MAX: usize = SWEEP_BYTES_MAX / (ObjectId::BYTES + size_of::<bool>());
/// Objects that nobody named at the last sweep, where several servers share the data.
const SUSPECTS_MAX: usize = 1 << 18;

/// A page of rows.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;
const PAGE_TIME: Duration = Duration::from_millis(100);
/// Containers, and objects, that are asked for at once.
const LIST_MAX: usize = 1000;

const _: () = assert!(super::WRITING_TIME_MAX.as_secs() + 3600 <= SWEPT_AGE.as_secs());

/// What a sweep came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects that were old enough to be looked at.
    pub objects: u64,
    /// Rows that were read for them.
    pub rows: u64,
    /// Objects that no row names and that are gone, or go when their last reader is done.
    pub removed: u64,
}

/// When objects were first seen that no row names. Where several servers share the data, another one may be about to name
/// them: they are removed by a later sweep that finds the same.
#[derive(Debug, Default)]
pub struct Suspects(Mutex<BTreeMap<ObjectId, DateTime>>);

/// Ends a pass however it ends.
struct Pass<'a>(&'a Contents);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.0.in_use.end_sweep();
    }
}

impl Contents {
    /// Removes all objects that no row names and that are older than a day. One sweep at a time.
    pub async fn sweep(&self, engine: &dyn Engine) -> Result<Swept> {
        let swept = self.sweep_all(engine).await;
        let counted = &self.0.counts;
        counts::add(if swept.is_ok() { &counted.sweeps } else { &counted.failed_sweeps }, 1);
        swept
    }

    async fn sweep_all(&self, engine: &dyn Engine) -> Result<Swept> {
        let mut swept = Swept::default();
        let begun = self.now();
        let mut suspects = BTreeMap::new();
        let mut from = Some(ObjectId::FIRST);
        while let Some(start) = from {
            let (candidates, next) = self.old_objects(start, begun).await?;
            from = next;
            if candidates.is_empty() {
                continue;
            }
            swept.objects += candidates.len() as u64;
            if !self.0.in_use.begin_sweep(candidates) {
                return Err(Fault::busy("another sweep runs").into());
            }
            let _pass = Pass(self);
            let pass_begun = self.now();
            swept.rows += self.mark_named(engine).await?;
            if self.0.is_shared && pass_begun.plus(SWEPT_AGE) <= self.now() {
                // Records of what was moved may have gone meanwhile.
                return Err(Fault::busy("reading all rows took longer than a day").into());
            }
            swept.removed += self.remove_unnamed(begun, &mut suspects).await?;
        }
        *self.0.suspects.0.lock().unwrap_or_else(PoisonError::into_inner) = suspects;
        Ok(swept)
    }

    /// Objects from this one on, in order, as many as are compared at a time, and where to go on.
    async fn old_objects(&self, from: ObjectId, now: DateTime) -> Result<(Vec<ObjectId>, Option<ObjectId>)> {
        // Not filled before it is needed.
        let mut candidates = Vec::with_capacity(CANDIDATES_MAX);
        let mut from = Some(from);
        while let Some(start) = from
            && candidates.len() < CANDIDATES_MAX
        {
            let page = self.0.objects.list(start, LIST_MAX.min(CANDIDATES_MAX - candidates.len())).await?;
            from = page.next;
            for object in page.objects {
                match object.named() {
                    Some(named) if named.plus(SWEPT_AGE) <= now => candidates.push(object),
                    // All that follow are younger.
                    Some(_) => return Ok((candidates, None)),
                    None => {
                        return Err(Fault::damaged("an object has a name that no writer gave it")
                            .about(object)
                            .into());
                    }
                }
            }
        }
        Ok((candidates, from))
    }

    /// Reads all rows of all containers. Returns how many.
    async fn mark_named(&self, engine: &dyn Engine) -> Result<u64> {
        let mut rows = 0;
        for account in engine.list_accounts().await? {
            let mut from = Some(String::new());
            while let Some(start) = from {
                let page = engine.list_tables(&account, ServiceKind::Blob, &start, LIST_MAX).await?;
                for name in page.names.into_iter().filter(|name| !moves::is_table(name)) {
                    rows += self.mark_container(engine, &account, name).await?;
                }
                from = page.next;
            }
        }
        if self.0.is_shared {
            // Last: what was moved while the others were read is in here.
            for account in engine.list_accounts().await? {
                rows += self.mark_container(engine, &account, moves::table(&account)?.name).await?;
            }
        }
        Ok(rows)
    }

    async fn mark_container(
        &self,
        engine: &dyn Engine,
        account: &blob_model::AccountName,
        name: StoredName,
    ) -> Result<u64> {
        let table = TableRef { account: account.clone(), service: ServiceKind::Blob, name };
        let mut rows = 0;
        let mut range = KeyRange::all();
        loop {
            // What these rows name can be read until they are done with.
            let _pin = self.pin_everything();
            let budget = Budget { rows: PAGE_ROWS, bytes: PAGE_BYTES, time: PAGE_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = match engine.scan(&table, scan).await {
                // Deleted since it was listed: its rows name nothing any more.
                Err(store::Error::TableNotFound) => return Ok(rows),
                page => page?,
            };
            for stored in page.entities.iter() {
                let place =
                    || format!("PartitionKey {:?}, RowKey {:?}, {table}", stored.partition, stored.row_key);
                let named = named_by(stored.row).map_err(|fault| fault.about(place()))?;
                let objects = match named {
                    Named::Nothing => Vec::new(),
                    Named::Segment(segment) => segment.objects(),
                    Named::Content(content) => self.objects_of(&content).await?,
                };
                self.0.in_use.mark(&objects);
            }
            rows += page.entities.len() as u64;
            let Some(next) = page.next else { return Ok(rows) };
            range = KeyRange { start: Cut::before(next.partition.as_str(), next.row.as_str()), ..range };
        }
    }

    async fn remove_unnamed(
        &self,
        now: DateTime,
        suspects: &mut BTreeMap<ObjectId, DateTime>,
    ) -> Result<u64> {
        let mut removed = 0;
        loop {
            let mut unnamed = self.0.in_use.unnamed(REMOVED_AT_ONCE);
            if unnamed.is_empty() {
                return Ok(removed);
            }
            if self.0.is_shared {
                let known = self.0.suspects.0.lock().unwrap_or_else(PoisonError::into_inner);
                unnamed.retain(|object| {
                    let first = known.get(object).copied().unwrap_or(now);
                    let is_sure = first.plus(SWEPT_AGE) <= now;
                    if !is_sure && suspects.len() < SUSPECTS_MAX {
                        suspects.insert(*object, first);
                    }
                    is_sure
                });
            }
            let (count, ready) = self.0.in_use.remove_unnamed(unnamed);
            self.remove(ready).await?;
            counts::add(&self.0.counts.swept, count);
            removed += count as u64;
        }
    }
}
