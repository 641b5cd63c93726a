//! How a blob's row is found, judged and replaced.
//!
//! A write reads the row, judges it, and replaces it if it still has the version that was read; if not, it begins again.
//! Writes to one blob take turns within a server, so that they rarely have to.

use blob_model::{BlobType, DateTime, LeaseId, Leased, Operand, Refusal, Seen, SnapshotTime, TierState};
use model::Key;
use std::time::Duration;
use store::{Budget, Change, Condition, Fault, RowOperation, Scan, TableRef, Transaction};

use crate::blob_key;
use crate::blob_row::{BlobRow, Moves, StoredBlob, StoredKind};
use crate::content as contents;
use crate::{BlobRef, BlobService, Error, Request, Result, Which};

/// How often another server may change the same blob first before a caller hears that the server is busy.
const ATTEMPTS_MAX: usize = 64;
/// The same for a caller who reads, of whoever writes to the blob meanwhile.
const READ_ATTEMPTS_MAX: usize = 16;
/// The same for a caller who copies: each attempt may write a whole map.
const COPY_ATTEMPTS_MAX: usize = 8;
/// Operations of one transaction. Engines take no more.
pub const OPERATIONS_MAX: usize = model::limits::BATCH_OPERATIONS_MAX;
/// Snapshots that are held at one time: with the blob itself, as many as one transaction changes.
const SNAPSHOTS_AT_ONCE: usize = OPERATIONS_MAX - 1;
/// Bytes that are asked of the engine at once, where all of a range is read.
const SCAN_BYTES: usize = 1024 * 1024;
const SCAN_TIME: Duration = Duration::from_secs(5);

pub fn budget(rows: usize) -> Budget {
    Budget { rows, bytes: SCAN_BYTES, time: SCAN_TIME, examined: u64::MAX }
}

/// A row as it was read, and the version that a change of it is held to.
#[derive(Clone, Debug)]
pub struct Found {
    pub row: BlobRow,
    pub version: DateTime,
}

/// A blob, or a snapshot of it, that a request is about.
#[derive(Clone, Debug)]
pub struct Selected {
    pub time: SnapshotTime,
    pub stored: StoredBlob,
    /// Of its row.
    pub version: DateTime,
}

/// A snapshot, deleted or not, and its row.
#[derive(Clone, Debug)]
pub struct FoundSnapshot {
    pub time: SnapshotTime,
    pub blob: StoredBlob,
    pub version: DateTime,
}

#[derive(Debug)]
pub struct SnapshotPage {
    pub snapshots: Vec<FoundSnapshot>,
    /// Where to go on.
    pub next: Option<SnapshotTime>,
}

/// What a blob's row becomes, and other rows of its partition.
#[derive(Debug)]
pub struct NewRow<'a> {
    pub row: &'a BlobRow,
    pub moves: Moves,
    pub also: Vec<RowOperation>,
}

impl<'a> NewRow<'a> {
    pub fn alone(row: &'a BlobRow, moves: Moves) -> Self {
        Self { row, moves, also: Vec::new() }
    }
}

/// What an operation on a blob that is there needs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Only blobs of this type.
    pub of: Option<BlobType>,
    pub lease: LeaseUse,
    pub operand: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseUse {
    /// Whoever names a lease must hold it.
    Read,
    /// The lease must be named, if there is one.
    Write,
}

impl Needs {
    pub const READ: Self = Self { of: None, lease: LeaseUse::Read, operand: Operand::Read };
    pub const WRITE: Self = Self { of: None, lease: LeaseUse::Write, operand: Operand::Write };

    pub const fn of(self, of: BlobType) -> Self {
        Self { of: Some(of), ..self }
    }

    /// In the service's order: type, lease, conditions (spec: blob-operations 8.6).
    pub fn check(
        &self,
        blob: &StoredBlob,
        request: &Request,
        now: DateTime,
    ) -> std::result::Result<(), Refusal> {
        if self.of.is_some_and(|of| of != blob.blob_type()) {
            return Err(Refusal::BlobTypeInvalid);
        }
        match self.lease {
            LeaseUse::Read => blob.lease.check_read(request.lease, Leased::Blob, now)?,
            LeaseUse::Write => blob.lease.check_write(request.lease, Leased::Blob, now)?,
        }
        let seen = Seen { etag: blob.etag(), tags: &blob.tags };
        request.conditions.check(Some(seen), self.operand, request.lease.is_some())
    }
}

/// Whether a blob may be put here: over this one, or where none is.
pub fn check_new(
    there: Option<&StoredBlob>,
    request: &Request,
    operand: Operand,
    now: DateTime,
) -> std::result::Result<(), Refusal> {
    match there {
        Some(blob) => Needs { of: None, lease: LeaseUse::Write, operand }.check(blob, request, now),
        None => {
            check_no_lease(request.lease)?;
            request.conditions.check(None, operand, false)
        }
    }
}

/// A lease of what is not there.
pub fn check_no_lease(given: Option<LeaseId>) -> std::result::Result<(), Refusal> {
    match given {
        Some(_) => Err(Refusal::LeaseNotPresent(Leased::Blob)),
        None => Ok(()),
    }
}

/// An archived blob is overwritten only by who says which tier the new one has.
pub fn check_overwrite(there: Option<&StoredBlob>, names_tier: bool) -> std::result::Result<(), Refusal> {
    match there.map(|blob| blob.kind) {
        Some(StoredKind::Block { tier }) if !names_tier => tier.check_online(),
        _ => Ok(()),
    }
}

/// Whether its content can be read and changed.
pub fn check_online(blob: &StoredBlob) -> std::result::Result<(), Refusal> {
    tier_of(blob).map_or(Ok(()), |tier| tier.check_online())
}

pub fn tier_of(blob: &StoredBlob) -> Option<TierState> {
    match blob.kind {
        StoredKind::Block { tier } => Some(tier),
        StoredKind::Page { .. } | StoredKind::Append { .. } => None,
    }
}

/// Rounds that are left of a change, or of reading, that others may come before.
#[derive(Debug)]
pub struct Attempts(usize);

impl Default for Attempts {
    fn default() -> Self {
        Self(ATTEMPTS_MAX)
    }
}

impl Attempts {
    pub fn of_read() -> Self {
        Self(READ_ATTEMPTS_MAX)
    }

    pub fn of_copy() -> Self {
        Self(COPY_ATTEMPTS_MAX)
    }

    pub fn next(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(Refusal::Shared(common::Refusal::Busy))?;
        Ok(())
    }
}

impl BlobService {
    /// The row of the blob itself.
    pub(crate) async fn base(&self, table: &TableRef, blob: &BlobRef) -> Result<Option<Found>> {
        self.state(table, blob, SnapshotTime::BASE).await
    }

    pub(crate) async fn state(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        time: SnapshotTime,
    ) -> Result<Option<Found>> {
        let stored = self.engine.get(table, &blob_key::entity(&blob.name, time)?).await?;
        let Some(stored) = stored else { return Ok(None) };
        let read = |fault: Fault| fault.about(blob);
        let row = BlobRow::read(stored.raw()).map_err(read)?;
        Ok(Some(Found { row, version: stored.raw().timestamp().map_err(read)? }))
    }

    /// The blob, or the snapshot of it, that a request is about.
    pub(crate) async fn selected(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        which: Which,
    ) -> Result<StoredBlob> {
        Ok(self.selected_state(table, blob, which).await?.stored)
    }

    /// The same, and which of its rows that is.
    pub(crate) async fn selected_state(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        which: Which,
    ) -> Result<Selected> {
        let (time, Found { row, version }) = self.selected_row(table, blob, which).await?;
        Ok(Selected { time, stored: row.blob.ok_or(Refusal::BlobNotFound)?, version })
    }

    /// Its row, which has a blob that was not deleted.
    pub(crate) async fn selected_row(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        which: Which,
    ) -> Result<(SnapshotTime, Found)> {
        let (time, found) = self.selected_or_deleted_row(table, blob, which).await?;
        if found.row.live().is_some() { Ok((time, found)) } else { Err(Refusal::BlobNotFound.into()) }
    }

    /// The same if it was deleted and is still kept.
    pub(crate) async fn selected_or_deleted_row(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        which: Which,
    ) -> Result<(SnapshotTime, Found)> {
        let time = match which {
            Which::Current => Some(SnapshotTime::BASE),
            Which::Snapshot(time) => Some(time).filter(|time| *time != SnapshotTime::BASE),
            Which::Version(_) => None,
        };
        // The container is asked for in any case: that it is missing counts first.
        let found = self.state(table, blob, time.unwrap_or(SnapshotTime::BASE)).await?;
        Ok(time.zip(found).ok_or(Refusal::BlobNotFound)?)
    }

    /// Snapshots of a blob from this time on, the deleted ones too, oldest first: as many as one transaction changes. A blob
    /// may have any number of them.
    pub(crate) async fn snapshots(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        from: Option<SnapshotTime>,
    ) -> Result<SnapshotPage> {
        let partition = blob_key::partition(&blob.name)?;
        let ranges = vec![blob_key::states(partition.as_str(), from)];
        let scan = Scan { ranges, budget: budget(SNAPSHOTS_AT_ONCE), filter: None, lasts: false };
        let page = self.engine.scan(table, scan).await?;
        let mut snapshots = Vec::with_capacity(page.entities.len());
        let unlike = || Fault::damaged("a blob has a row that this program does not write").about(blob);
        for entity in page.entities.iter() {
            let time = SnapshotTime::parse(entity.row_key).ok_or_else(unlike)?;
            if time != SnapshotTime::BASE {
                let row = BlobRow::read(entity.row).map_err(|fault| fault.about(blob))?;
                let version = entity.row.timestamp().map_err(|fault| fault.about(blob))?;
                snapshots.push(FoundSnapshot { time, blob: row.blob.ok_or_else(unlike)?, version });
            }
        }
        let next = match page.next {
            Some(next) => Some(SnapshotTime::parse(next.row.as_str()).ok_or_else(unlike)?),
            None => None,
        };
        Ok(SnapshotPage { snapshots, next })
    }

    /// Whether there is a snapshot like this.
    pub(crate) async fn has_snapshot(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        is_like: impl Fn(&StoredBlob) -> bool + Send,
    ) -> Result<bool> {
        let mut from = None;
        loop {
            let page = self.snapshots(table, blob, from).await?;
            if page.snapshots.iter().any(|snapshot| is_like(&snapshot.blob)) {
                return Ok(true);
            }
            if page.next.is_none() {
                return Ok(false);
            }
            from = page.next;
        }
    }

    /// Whether a blob that has taken no snapshots has some of a blob before it, which were kept for longer than that. Nobody knows
    /// whether these were shared: the mark went with their blob.
    pub(crate) async fn inherits(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        stored: &StoredBlob,
    ) -> Result<bool> {
        Ok(!stored.has_snapshots && self.has_snapshot(table, blob, |_| true).await?)
    }

    /// Replaces the blob's row, together with other rows of its partition. The time of its new version, or `None` if it is not
    /// as it was found any more.
    pub(crate) async fn replace(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        found: Option<&Found>,
        new: NewRow<'_>,
        holds: &contents::Change,
    ) -> Result<Option<DateTime>> {
        let NewRow { row, moves, also } = new;
        let change = Change::Put(row.draft(moves));
        let mut operations =
            vec![RowOperation { row: blob_key::row(SnapshotTime::BASE)?, condition: held_to(found), change }];
        operations.extend(also);
        let stamps = self.commit(table, blob_key::partition(&blob.name)?, operations, holds).await?;
        Ok(stamps.and_then(|stamps| stamps.first().copied()))
    }

    /// One transaction that names or removes content; `None` if one of its conditions does not hold. What the change holds is
    /// held until the engine has answered.
    pub(crate) async fn commit(
        &self,
        table: &TableRef,
        partition: Key,
        operations: Vec<RowOperation>,
        holds: &contents::Change,
    ) -> Result<Option<Vec<DateTime>>> {
        answered(holds.commit(&self.engine, table, transaction(partition, operations)?).await)
    }

    /// One transaction of rows alone; `None` if one of its conditions does not hold.
    pub(crate) async fn apply(
        &self,
        table: &TableRef,
        partition: Key,
        operations: Vec<RowOperation>,
    ) -> Result<Option<Vec<DateTime>>> {
        answered(self.engine.apply(table, transaction(partition, operations)?).await)
    }

    /// Changes a blob that is there, after its checks.
    pub(crate) async fn change_blob<T>(
        &self,
        blob: &BlobRef,
        request: &Request,
        needs: Needs,
        moves: Moves,
        change: impl FnMut(&mut StoredBlob, DateTime) -> std::result::Result<T, Refusal> + Send,
    ) -> Result<(T, StoredBlob)> {
        self.change_state(blob, Which::Current, request, needs, moves, change).await
    }

    /// The same of a blob or a snapshot of it.
    pub(crate) async fn change_state<T>(
        &self,
        blob: &BlobRef,
        which: Which,
        request: &Request,
        needs: Needs,
        moves: Moves,
        mut change: impl FnMut(&mut StoredBlob, DateTime) -> std::result::Result<T, Refusal> + Send,
    ) -> Result<(T, StoredBlob)> {
        let change = |stored: &mut StoredBlob, now, _| change(stored, now).map(Some);
        self.change_trimmed(blob, which, request, needs, moves, change).await
    }

    /// The same of a page blob whose length may change. The last argument of `change` is whether nothing lies behind the end. If
    /// it returns `None`, what lies there is cleared, and then it is asked again.
    pub(crate) async fn change_trimmed<T>(
        &self,
        blob: &BlobRef,
        which: Which,
        request: &Request,
        needs: Needs,
        moves: Moves,
        mut change: impl FnMut(&mut StoredBlob, DateTime, bool) -> std::result::Result<Option<T>, Refusal> + Send,
    ) -> Result<(T, StoredBlob)> {
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        // The version of the row at which nothing lay behind the end.
        let mut trimmed = None;
        loop {
            attempts.next()?;
            let (time, mut found) = self.selected_row(&table, blob, which).await?;
            let is_trimmed = trimmed == Some(found.version);
            let condition = held_to(Some(&found));
            let stored = found.row.blob.as_mut().ok_or(Refusal::BlobNotFound)?;
            let length = stored.length;
            let now = self.clock.now();
            needs.check(stored, request, now)?;
            if needs.lease == LeaseUse::Write {
                stored.lease = stored.lease.after_write(now);
            }
            let Some(told) = change(stored, now, is_trimmed)? else {
                trimmed = self.trim_in_turn(&table, blob).await?;
                continue;
            };
            // What is cut off may be removed from here on.
            let moves = if stored.length < length { Moves::Pages } else { moves };
            let put = Change::Put(found.row.draft(moves));
            let operation = RowOperation { row: blob_key::row(time)?, condition, change: put };
            let stamps = self.apply(&table, blob_key::partition(&blob.name)?, vec![operation]).await?;
            if let (Some([stamp]), Some(mut stored)) = (stamps.as_deref(), found.row.blob) {
                if moves != Moves::Nothing {
                    stored.modified = *stamp;
                }
                return Ok((told, stored));
            }
        }
    }
}

fn transaction(partition: Key, operations: Vec<RowOperation>) -> std::result::Result<Transaction, Fault> {
    Transaction::new(partition, operations)
        .ok_or_else(|| Fault::bug("a transaction has no operations, or two on one row"))
}

fn answered(answer: std::result::Result<Vec<DateTime>, store::Error>) -> Result<Option<Vec<DateTime>>> {
    match answer {
        Ok(stamps) => Ok(Some(stamps)),
        Err(store::Error::Rejected { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The condition that a row is still as it was found.
pub fn held_to(found: Option<&Found>) -> Condition {
    found.map_or(Condition::Absent, |found| Condition::Version(found.version))
}

/// What was written for a change goes, if its commit was refused for certain.
pub async fn given_up(error: Error, change: contents::Change) -> Error {
    if is_certain(&error) {
        change.discard().await;
    }
    error
}

/// Whether nothing was changed for certain. Else what was written may be named by a row.
pub fn is_certain(error: &Error) -> bool {
    match error {
        Error::Refused(Refusal::Shared(common::Refusal::TimedOut)) | Error::Fault(_) => false,
        Error::Refused(_) => true,
    }
}
