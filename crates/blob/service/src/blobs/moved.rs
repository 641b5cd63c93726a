//! Records of content that another row names than before: `content::moves` says why.

use blob_model::{AccountName, Refusal};
use model::{Cut, KeyRange, ValueRef};
use store::{Budget, Change, Condition, Fault, RowDraft, RowOperation, Scan};

use super::state::OPERATIONS_MAX;
use crate::blob_row;
use crate::content::pages::Segment;
use crate::content::{Content, SEGMENT, moves};
use crate::upkeep::{PAGE_BYTES, PAGE_ROWS, PAGE_TIME, removal};
use crate::{BlobService, Error, Result};

impl BlobService {
    /// Before a commit that names this content, which another row names: only where several servers share the data. The commit
    /// must fail, or not be made, if that row does not name it any more once the record is there.
    pub(crate) async fn record_move(&self, account: &AccountName, content: &Content) -> Result<()> {
        if content.extent_count() == 0 {
            return Ok(());
        }
        self.record_moves(account, vec![blob_row::block_draft(content)]).await
    }

    /// The same of some segments of a map.
    pub(crate) async fn record_segments(&self, account: &AccountName, segments: &[Segment]) -> Result<()> {
        let draft = |segment: &Segment| {
            let segment = segment.to_bytes();
            RowDraft::new([(SEGMENT, ValueRef::Binary(&segment))].into_iter())
        };
        self.record_moves(account, segments.iter().map(draft).collect()).await
    }

    async fn record_moves(&self, account: &AccountName, drafts: Vec<RowDraft>) -> Result<()> {
        if !self.contents.is_shared() || drafts.is_empty() {
            return Ok(());
        }
        let table = moves::table(account)?;
        let now = self.clock.now();
        let operation = |draft| {
            let row = moves::row(now)?;
            Ok(RowOperation { row, condition: Condition::Absent, change: Change::Put(draft) })
        };
        let operations = drafts.into_iter().map(operation).collect::<std::result::Result<Vec<_>, Fault>>()?;
        let partition = moves::partition(now)?;
        let first = self.apply(&table, partition.clone(), operations.clone()).await;
        let written = match first {
            Err(Error::Refused(Refusal::ContainerNotFound)) => {
                match self.engine.create_table(&table, None).await {
                    // Or somebody else has made it meanwhile.
                    Ok(()) | Err(store::Error::TableAlreadyExists) => {}
                    Err(error) => return Err(error.into()),
                }
                self.apply(&table, partition, operations).await?
            }
            written => written?,
        };
        match written {
            Some(_) => Ok(()),
            None => Err(Fault::bug("a record that was just named is there already").into()),
        }
    }

    /// Removes records that are older than any sweep; all of them where no other server is.
    pub(crate) async fn forget_moves(&self, account: &AccountName) -> Result<u64> {
        let table = moves::table(account)?;
        let mut rest = Some(KeyRange::all());
        let mut removed = 0;
        while let Some(range) = rest {
            let budget = Budget { rows: PAGE_ROWS, bytes: PAGE_BYTES, time: PAGE_TIME, examined: u64::MAX };
            let scan = Scan { ranges: vec![range.clone()], budget, filter: None, lasts: false };
            let page = match self.engine.scan(&table, scan).await {
                // Nothing was ever moved.
                Err(store::Error::TableNotFound) => return Ok(0),
                page => page?,
            };
            let (mut partition, mut old) = (String::new(), Vec::new());
            for record in page.entities.iter() {
                let unlike = || Fault::damaged("a record has a key that this program does not write");
                let written = moves::read_row(record.row_key).ok_or_else(unlike)?;
                if self.contents.is_shared() && !self.is_older(written, moves::RECORD_TIME) {
                    continue;
                }
                if partition != record.partition || old.len() >= OPERATIONS_MAX {
                    removed += self.remove_rows(&table, &partition, std::mem::take(&mut old)).await?;
                    record.partition.clone_into(&mut partition);
                }
                old.push(removal(crate::blob_key::key_of(record.row_key)?, record.row.timestamp()?));
            }
            removed += self.remove_rows(&table, &partition, old).await?;
            rest = page.next.map(|next| KeyRange {
                start: Cut::before(next.partition.as_str(), next.row.as_str()),
                ..range
            });
        }
        Ok(removed)
    }
}
