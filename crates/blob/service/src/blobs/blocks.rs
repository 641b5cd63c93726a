//! Put Block, Put Block List and Get Block List.
//!
//! Uncommitted blocks are rows beside the blob, below the name of an *upload*. The blob's row says which upload is open. A
//! commit ends it, and with it all blocks that are below its name, also those that are put at the same moment.

use std::time::Duration;

use blob_model::{
    BlobType, BlockChoice, BlockId, DateTime, Etag, LeaseId, Leased, ListedBlock, Operand, Refusal, Sums,
    limits,
};
use store::{Change as RowChange, Condition, Fault, MemoryShare, RowOperation, Scan, StoredRef, TableRef};

use super::choose::{BlockChooser, Chosen};
use super::put::{new_blob, new_tier};
use super::state::{self, Attempts, Found, Needs, NewRow, budget};
use crate::blob_key::{self, UploadId};
use crate::blob_row::{self, BlobRow, Moves, OpenUpload, StoredBlob, StoredKind};
use crate::content::{BlobKey, Change, Content, Extent, Joined, Keep, Written};
use crate::{
    BlobRef, BlobService, BlockListQuery, BlockLists, BodyChecks, Error, NewBlob, Request, Result, Upload,
    Which,
};

/// Rows of blocks that are asked of the engine at once.
const BLOCK_ROWS: usize = 500;
/// A blob's row that was not written for so long is written again before a block is put: far less than the week after which
/// the sweep may end its upload, so that nothing but a commit ends it meanwhile.
const RENEWED_AGE: Duration = Duration::from_secs(3 * 24 * 3600);
/// A block of a list with the longest id, as it is held.
const LISTED_BLOCK_BYTES: usize = 128;
/// A list of uncommitted blocks begins with so many, and doubles.
const FIRST_BLOCKS: usize = 64;

impl BlobService {
    pub async fn put_block(
        &self,
        blob: &BlobRef,
        id: BlockId,
        checks: BodyChecks,
        lease: Option<LeaseId>,
        body: &mut dyn Upload,
    ) -> Result<Sums> {
        self.admit(blob)?;
        drop(self.gate.pass().await?);
        let found = self.base(&blob.container.table()?, blob).await?;
        self.check_block(found.as_ref(), &id, lease)?;
        let written = self.receive(&blob.container.account, body, checks, Keep::InObject, false).await?;
        let put = self.put_written_block(blob, &id, &written, lease).await;
        self.keep_or_discard(put, written.fresh).await?;
        Ok(written.sums)
    }

    /// In the service's order: type, lease, and then the id.
    fn check_block(
        &self,
        found: Option<&Found>,
        id: &BlockId,
        lease: Option<LeaseId>,
    ) -> std::result::Result<(), Refusal> {
        match found.and_then(|found| found.row.live()) {
            Some(live) if live.blob_type() != BlobType::Block => return Err(Refusal::BlobTypeInvalid),
            Some(live) => live.lease.check_write(lease, Leased::Blob, self.clock.now())?,
            None => state::check_no_lease(lease)?,
        }
        match found.and_then(|found| found.row.upload) {
            Some(upload) if usize::from(upload.id_bytes) != id.as_bytes().len() => {
                Err(Refusal::BlobOrBlockInvalid)
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn put_written_block(
        &self,
        blob: &BlobRef,
        id: &BlockId,
        written: &Written,
        lease: Option<LeaseId>,
    ) -> Result<()> {
        if written.length == 0 {
            return Err(Refusal::HeaderInvalid { name: "Content-Length", value: "0".to_owned() }.into());
        }
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let mut attempts = Attempts::default();
        let mut turn = None;
        let mut is_renewed = false;
        loop {
            attempts.next()?;
            let change = self.contents.begin_change();
            let found = self.base(&table, blob).await?;
            self.check_block(found.as_ref(), id, lease)?;
            let open = found.as_ref().and_then(|found| Some((found, found.row.upload?)));
            let Some((there, open)) = open else {
                // The first blocks of a blob often come together: one of them opens the upload, the others find it open.
                if turn.is_none() {
                    turn = Some(self.turns.take(blob).await);
                    continue;
                }
                if self.open_upload(&table, blob, found.as_ref(), id, &written.content, &change).await? {
                    return Ok(());
                }
                continue;
            };
            turn = None;
            if !is_renewed && self.is_older(there.version, RENEWED_AGE) {
                let same = NewRow::alone(&there.row, Moves::Nothing);
                is_renewed = self.replace(&table, blob, found.as_ref(), same, &change).await?.is_some();
                if !is_renewed {
                    continue;
                }
            }
            let upload = open.id;
            let Some(replaced) =
                self.put_block_row(&table, blob, upload, id, &written.content, &change).await?
            else {
                continue;
            };
            // A commit may have ended the upload meanwhile. Then this block came just before it, and is dropped with it.
            let now_open = self.base(&table, blob).await?.and_then(|found| found.row.upload);
            if now_open.map(|open| open.id) != Some(upload) {
                self.uploads.forget(upload);
                self.remove_block(&table, blob, upload, id, &written.content, &change).await;
            }
            if let Some(replaced) = replaced {
                let objects = replaced.row_extents().iter().map(|extent| extent.object).collect();
                // What can't be removed is left to the sweep.
                let _ = change.remove(BlobKey::of(blob), objects).await;
            }
            return Ok(());
        }
    }

    /// Opens an upload with its first block; false if the blob's row has changed meanwhile.
    ///
    /// The row of the block comes first. Whoever is killed then leaves a block of an upload that nobody knows, which the sweep
    /// removes, and never an upload without blocks.
    async fn open_upload(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        found: Option<&Found>,
        id: &BlockId,
        content: &Content,
        change: &Change,
    ) -> Result<bool> {
        let too_long = |_| Fault::bug("a block's id is longer than any");
        let id_bytes = u8::try_from(id.as_bytes().len()).map_err(too_long)?;
        let upload = OpenUpload { id: UploadId(rand::random()), id_bytes };
        let partition = blob_key::block_partition(&blob.name)?;
        let block = |change| -> Result<RowOperation> {
            Ok(RowOperation {
                row: blob_key::block_row(upload.id, id)?,
                condition: Condition::Anything,
                change,
            })
        };
        let first = block(RowChange::Put(blob_row::block_draft(content)))?;
        self.commit(table, partition.clone(), vec![first], change).await?;
        let mut row: BlobRow = found.map(|found| found.row.clone()).unwrap_or_default();
        row.upload = Some(upload);
        let opened = self.replace(table, blob, found, NewRow::alone(&row, Moves::Nothing), change).await?;
        if opened.is_none() {
            // The row alone: the content is that of the next attempt. If it can't be removed, it is left to the sweep.
            let _ = self.apply(table, partition, vec![block(RowChange::Delete)?]).await;
            return Ok(false);
        }
        self.uploads.learn(upload.id, 1);
        Ok(true)
    }

    /// Puts the row of a block. The block that it replaces, if there was one; `None` if it has to be done again.
    async fn put_block_row(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        upload: UploadId,
        id: &BlockId,
        content: &Content,
        holds: &Change,
    ) -> Result<Option<Option<Content>>> {
        let partition = blob_key::block_partition(&blob.name)?;
        let row = blob_key::block_row(upload, id)?;
        let put = |condition| {
            let change = RowChange::Put(blob_row::block_draft(content));
            let operation = RowOperation { row: row.clone(), condition, change };
            self.commit(table, partition.clone(), vec![operation], holds)
        };
        let blocks = match self.uploads.known(upload) {
            Some(blocks) => blocks,
            None => {
                let blocks = self.count_blocks(table, blob, upload).await?;
                self.uploads.learn(upload, blocks);
                blocks
            }
        };
        if blocks < limits::UNCOMMITTED_BLOCKS_MAX && put(Condition::Absent).await?.is_some() {
            self.uploads.add(upload);
            return Ok(Some(None));
        }
        let key = model::EntityKey { partition: partition.clone(), row: row.clone() };
        let Some(stored) = self.engine.get(table, &key).await? else {
            let is_full = blocks >= limits::UNCOMMITTED_BLOCKS_MAX;
            return if is_full { Err(Refusal::TooManyUncommittedBlocks.into()) } else { Ok(None) };
        };
        let read = |fault: Fault| fault.about(blob);
        let replaced = blob_row::read_block(stored.raw()).map_err(read)?;
        let version = stored.raw().timestamp().map_err(read)?;
        Ok(put(Condition::Version(version)).await?.map(|_| Some(replaced)))
    }

    async fn count_blocks(&self, table: &TableRef, blob: &BlobRef, upload: UploadId) -> Result<usize> {
        let mut blocks = 0;
        self.each_block(table, blob, upload, |_, _| {
            blocks += 1;
            Ok(())
        })
        .await?;
        Ok(blocks)
    }

    /// The blocks of an upload in the order of their ids.
    async fn each_block(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        upload: UploadId,
        mut take: impl FnMut(BlockId, StoredRef<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        let partition = blob_key::block_partition(&blob.name)?;
        let mut from = None;
        loop {
            let ranges = vec![blob_key::blocks(partition.as_str(), upload, from.as_deref())];
            let scan = Scan { ranges, budget: budget(BLOCK_ROWS), filter: None, lasts: false };
            let page = self.engine.scan(table, scan).await?;
            for entity in page.entities.iter() {
                let unlike =
                    || Fault::damaged("a block has a key that this program does not write").about(blob);
                let (_, id) = blob_key::read_block_row(entity.row_key).ok_or_else(unlike)?;
                take(id, entity).map_err(|error| match error {
                    Error::Fault(fault) => fault.about(blob).into(),
                    refused => refused,
                })?;
            }
            let Some(next) = page.next else { return Ok(()) };
            from = Some(next.row.as_str().to_owned());
        }
    }

    pub async fn put_block_list(
        &self,
        blob: &BlobRef,
        blocks: &[(BlockChoice, BlockId)],
        new: NewBlob,
        request: &Request,
    ) -> Result<Etag> {
        self.admit(blob)?;
        if blocks.len() > limits::COMMITTED_BLOCKS_MAX {
            return Err(Refusal::BlockListTooLong.into());
        }
        let tier = new_tier(new.tier, BlobType::Block, self.clock.now())?;
        let _pass = self.gate.pass().await?;
        let table = blob.container.table()?;
        let _turn = self.turns.take(blob).await;
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let change = self.contents.begin_change();
            // The manifests of what is there are read below.
            let pin = self.contents.pin(BlobKey::of(blob));
            let found = self.base(&table, blob).await?;
            let there = found.as_ref().and_then(|found| found.row.live());
            if there.is_some_and(|there| there.blob_type() != BlobType::Block) {
                return Err(Refusal::BlobTypeInvalid.into());
            }
            state::check_new(there, request, Operand::Create, self.clock.now())?;
            state::check_overwrite(there, new.tier.is_some())?;
            let chosen = self.choose_blocks(&table, blob, blocks, found.as_ref()).await?;
            drop(pin);
            let Joined { content, fresh } = self.join(chosen.extents).await?;
            change.keep(fresh);
            let length = content.length();
            let mut stored = new_blob(new.clone(), StoredKind::Block { tier }, content, length);
            stored.is_shared = chosen.has_committed && there.is_some_and(|there| there.is_shared);
            match self.commit_blocks(&table, blob, found.as_ref(), stored, &change).await {
                Ok(Some(stamp)) => return Ok(Etag(stamp)),
                Ok(None) => change.discard().await,
                Err(error) => return Err(state::given_up(error, change).await),
            }
        }
    }

    /// One attempt to put a blob of these blocks; `None` if some of it is gone, or somebody was faster.
    async fn commit_blocks(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        found: Option<&Found>,
        stored: StoredBlob,
        change: &Change,
    ) -> Result<Option<DateTime>> {
        if !change.hold(&stored.content).await? {
            return Ok(None);
        }
        let objects = self.contents.objects_of(&stored.content).await?;
        self.put_over(table, blob, found, stored, change, &objects).await
    }

    /// Where each of these blocks is.
    async fn choose_blocks(
        &self,
        table: &TableRef,
        blob: &BlobRef,
        blocks: &[(BlockChoice, BlockId)],
        found: Option<&Found>,
    ) -> Result<Chosen> {
        let mut chooser = BlockChooser::new(blocks);
        if let Some(upload) = found.and_then(|found| found.row.upload)
            && chooser.wants_uncommitted()
        {
            self.each_block(table, blob, upload.id, |id, entity| {
                let content = blob_row::read_block(entity.row)?;
                let [extent] = content.row_extents() else {
                    return Err(Fault::damaged("an uncommitted block is not one extent").into());
                };
                chooser.offer_uncommitted(&id, extent);
                Ok(())
            })
            .await?;
        }
        if let Some(there) = found.and_then(|found| found.row.live())
            && chooser.wants_committed()
        {
            let mut walk = self.contents.extents(&there.content);
            while let Some(extent) = walk.next().await.map_err(|fault| fault.about(blob))? {
                if let Some(id) = &extent.block {
                    chooser.offer_committed(id, &extent);
                }
            }
        }
        Ok(chooser.finish()?)
    }

    async fn join(&self, extents: Vec<Extent>) -> Result<Joined> {
        let mut joiner = self.contents.joiner();
        for extent in extents {
            joiner.push(extent).await?;
        }
        joiner.finish().await
    }

    pub async fn block_list(
        &self,
        blob: &BlobRef,
        query: BlockListQuery,
        request: &Request,
    ) -> Result<BlockLists> {
        self.admit(blob)?;
        // What it names is only counted, but manifests are read.
        let _pin = self.contents.pin(BlobKey::of(blob));
        let table = blob.container.table()?;
        let found = match query.which {
            Which::Current => self.base(&table, blob).await?,
            which => Some(self.selected_row(&table, blob, which).await?.1),
        };
        let found = found.ok_or(Refusal::BlobNotFound)?;
        let upload = found.row.upload;
        let mut held = self.contents.memory_of(&blob.container.account).map(|memory| memory.nothing());
        let mut lists = BlockLists { committed: Vec::new(), uncommitted: Vec::new(), blob: None, held: None };
        match found.row.live() {
            Some(live) => {
                Needs::READ.of(BlobType::Block).check(live, request, self.clock.now())?;
                lists.blob = Some((live.etag(), live.length));
                if query.committed {
                    let blocks = usize::try_from(live.content.extent_count()).unwrap_or(usize::MAX);
                    hold_blocks(&mut held, blocks)?;
                    lists.committed = self.committed_blocks(blob, live).await?;
                }
            }
            None if upload.is_none() => return Err(Refusal::BlobNotFound.into()),
            None => state::check_no_lease(request.lease)?,
        }
        if let Some(upload) = upload.filter(|_| query.uncommitted) {
            self.each_block(&table, blob, upload.id, |id, entity| {
                let bytes = blob_row::read_block(entity.row)?.length();
                let present = lists.uncommitted.len();
                if present == lists.uncommitted.capacity() {
                    let more = present.max(FIRST_BLOCKS);
                    hold_blocks(&mut held, lists.committed.len() + present + more)?;
                    lists.uncommitted.reserve_exact(more);
                }
                lists.uncommitted.push(ListedBlock { id, bytes });
                Ok(())
            })
            .await?;
        }
        Ok(BlockLists { held, ..lists })
    }

    async fn committed_blocks(&self, blob: &BlobRef, stored: &StoredBlob) -> Result<Vec<ListedBlock>> {
        let mut blocks = Vec::new();
        let mut walk = self.contents.extents(&stored.content);
        while let Some(extent) = walk.next().await.map_err(|fault| fault.about(blob))? {
            blocks.extend(extent.block.map(|id| ListedBlock { id, bytes: extent.length }));
        }
        Ok(blocks)
    }
}

/// Memory for lists of so many blocks, before they are read.
fn hold_blocks(held: &mut Option<MemoryShare>, blocks: usize) -> Result<()> {
    let bytes = blocks.saturating_mul(LISTED_BLOCK_BYTES);
    match held.as_mut().is_none_or(|held| held.resize(bytes)) {
        true => Ok(()),
        false => Err(store::Error::Busy.into()),
    }
}
