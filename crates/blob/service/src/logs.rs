//! Request logs: block blobs in `$logs` that grow. The service writes them itself; clients read and delete them.
//!
//! They go the way of every blob: content first, then one transaction. What they cost is not charged to the account's target,
//! nor to the memory for requests: who logs has a bound of his own.

use blob_model::{
    AccountName, BlobName, BlobType, Conditions, ContainerName, ContentHeaders, Matches, Metadata, Operand,
    PublicAccess, Refusal, TierState,
};
use bytes::Bytes;

use crate::blob_row::{StoredBlob, StoredKind};
use crate::blobs::put::new_blob;
use crate::content::{Keep, Written};
use crate::{
    BlobEntry, BlobQuery, BlobRef, BlobService, ContainerRef, DeleteBlob, DeleteSnapshots, Error, NewBlob,
    Request, Result,
};

const CONTENT_TYPE: &str = "text/plain";
/// Logs that are listed at once.
const LISTED_AT_ONCE: usize = 1000;

impl BlobService {
    /// Makes the container of an account's logs, if it is not there.
    pub async fn make_logs(&self, account: &AccountName) -> Result<()> {
        let container = logs_of(account);
        match self.engine.find_table(&container.table()?).await {
            Err(store::Error::TableNotFound) => {}
            found => return found.map(drop).map_err(Error::from),
        }
        match self.create_container(&container, Metadata::default(), PublicAccess::None).await {
            Ok(_) | Err(Error::Refused(Refusal::ContainerAlreadyExists)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A new log with these lines. False, without a change, if there is one of this name.
    pub async fn create_log(
        &self,
        account: &AccountName,
        name: &BlobName,
        lines: Bytes,
        metadata: Metadata,
    ) -> Result<bool> {
        let blob = BlobRef::new(logs_of(account), name.clone());
        let Written { content, length, fresh, .. } = self.write_lines(lines).await?;
        let headers =
            ContentHeaders { content_type: Some(CONTENT_TYPE.to_owned()), ..ContentHeaders::default() };
        let new = NewBlob { content: headers, metadata, ..NewBlob::default() };
        let stored = new_blob(new, StoredKind::Block { tier: TierState::INFERRED }, content, length);
        let if_none_match = Some(Matches::Anything);
        let conditions = Conditions { if_none_match, ..Conditions::default() };
        let request = Request { conditions, lease: None };
        let put = self.put_new(&blob, stored, &request, Operand::Create, None).await;
        match self.keep_or_discard(put, fresh).await {
            Ok(_) => Ok(true),
            Err(Error::Refused(Refusal::BlobAlreadyExists)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts lines behind the first `position` bytes of a log that only the caller writes to. True if they are there, also if
    /// an attempt whose outcome was not known has put them there before; false, without a change, if the log is gone.
    pub async fn append_log(
        &self,
        account: &AccountName,
        name: &BlobName,
        position: u64,
        lines: Bytes,
        metadata: &Metadata,
    ) -> Result<bool> {
        let blob = BlobRef::new(logs_of(account), name.clone());
        let end = position + lines.len() as u64;
        // An attempt of before may come through between the look and the commit, but not twice.
        for _ in 0..2 {
            let found = self.base(&blob.container.table()?, &blob).await?;
            match found.as_ref().and_then(|found| found.row.live()).map(|log| log.length) {
                Some(length) if length == end => return Ok(true),
                Some(length) if length == position => {}
                _ => return Ok(false),
            }
            let written = self.write_lines(lines.clone()).await?;
            let judge = |log: &mut StoredBlob, _| {
                if log.blob_type() != BlobType::Block || log.length != position {
                    return Err(Refusal::AppendPositionNotMet);
                }
                log.metadata = metadata.clone();
                Ok(())
            };
            let extended = self.extend_blob(&blob, &written, judge).await;
            match self.keep_or_discard(extended, written.fresh).await {
                Ok(_) => return Ok(true),
                Err(Error::Refused(Refusal::AppendPositionNotMet)) => {}
                Err(Error::Refused(Refusal::BlobNotFound)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The last log whose name begins so.
    pub async fn last_log(&self, account: &AccountName, prefix: &str) -> Result<Option<String>> {
        let mut query =
            BlobQuery { prefix: prefix.to_owned(), limit: LISTED_AT_ONCE, ..BlobQuery::default() };
        let mut last = None;
        loop {
            let page = self.list_unmetered(&logs_of(account), &query).await?;
            last = page.entries.iter().rev().find_map(name_of).map(str::to_owned).or(last);
            match page.next {
                None => return Ok(last),
                next => query.from = next,
            }
        }
    }

    /// Deletes the logs whose names begin so and are below this one; returns how many.
    pub async fn expire_logs(&self, account: &AccountName, prefix: &str, before: &str) -> Result<u64> {
        let mut query =
            BlobQuery { prefix: prefix.to_owned(), limit: LISTED_AT_ONCE, ..BlobQuery::default() };
        let container = logs_of(account);
        let mut deleted = 0;
        loop {
            let page = match self.list_unmetered(&container, &query).await {
                Err(Error::Refused(Refusal::ContainerNotFound)) => return Ok(deleted),
                page => page?,
            };
            for name in page.entries.iter().filter_map(name_of) {
                // They come in the order of their names.
                if name >= before {
                    return Ok(deleted);
                }
                let blob = BlobRef::new(container.clone(), BlobName::parse(name)?);
                let all = DeleteBlob { snapshots: Some(DeleteSnapshots::Include), ..DeleteBlob::default() };
                match self.delete_unmetered(&blob, all, &Request::plain()).await {
                    Ok(_) => deleted += 1,
                    // Its owner or another server was first.
                    Err(Error::Refused(Refusal::BlobNotFound)) => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                None => return Ok(deleted),
                next => query.from = next,
            }
        }
    }

    async fn write_lines(&self, lines: Bytes) -> Result<Written> {
        let mut writer = self.contents.writer(Keep::SmallInRow, false).uncharged();
        writer.push(lines).await?;
        writer.finish().await
    }
}

fn logs_of(account: &AccountName) -> ContainerRef {
    ContainerRef::new(account, &ContainerName::logs())
}

fn name_of(entry: &BlobEntry) -> Option<&str> {
    match entry {
        BlobEntry::Blob(listed) => Some(&listed.name),
        BlobEntry::Prefix(_) => None,
    }
}
