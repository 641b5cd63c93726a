//! Containers of Azurite: blobs of all three types, with what belongs to them, and their snapshots.
//!
//! A snapshot can only be taken, not written. So a blob that has some is written several times, the oldest state first, and a
//! snapshot is taken after each. The snapshots have the times of the import.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use partita_client::{
    Blob, BlobService, Container, ContentHeaders, DeleteSnapshots, Error, PublicAccess, UploadOptions,
};

use super::content::{Contents, ZEROS};
use super::database::Database;
use super::records::{self, BlobRecord, BlockRecord, ContainerRecord, OfAccount, PagesRecord, Place};
use super::survey::Snapshots;
use super::{AzuriteError, Tally};
use crate::endpoint::RequestError;
use crate::progress::{ProgressPrinter, grouped};

/// A block is sent as a whole if it is no longer than this; a blob with longer ones gets blocks of its own size.
const BLOCK_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most that an append or a write of pages takes.
const WRITE_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub async fn import(
    service: &BlobService,
    folder: &Path,
    database: &Database,
    account: &str,
    mut snapshots: Snapshots,
    progress: &Arc<ProgressPrinter>,
) -> Result<Tally, AzuriteError> {
    let contents = Contents::of(folder, "blob").await?;
    let mut import = Import { service, database, contents, progress, tally: Tally::default() };
    let (mut containers, mut uncommitted) = (BTreeSet::new(), 0_u64);
    let mut records = database.records();
    progress.start("importing blobs".to_owned(), 0, None);
    while let Some(record) = records.next().await? {
        match record.collection.as_str() {
            records::CONTAINERS => {
                let of: ContainerRecord = database.parse(&record)?;
                if of.account_name == account {
                    import.container(&of).await?;
                    containers.insert(of.name);
                }
            }
            records::BLOBS => {
                let blob: BlobRecord = database.parse(&record)?;
                let is_current = blob.snapshot.is_empty() && !blob.deleted && blob.is_committed;
                if blob.account_name == account && is_current && containers.contains(&blob.container_name) {
                    let key = (blob.container_name.clone(), blob.name.clone());
                    import.blob(&blob, snapshots.remove(&key).unwrap_or_default()).await?;
                }
            }
            records::BLOCKS => {
                uncommitted += u64::from(database.parse::<OfAccount>(&record)?.account_name == account);
            }
            _ => {}
        }
    }
    if uncommitted > 0 {
        import.tally.left_out.push(format!("{} blocks that were never committed", grouped(uncommitted)));
    }
    Ok(import.tally)
}

struct Import<'a> {
    service: &'a BlobService,
    database: &'a Database,
    contents: Contents,
    progress: &'a Arc<ProgressPrinter>,
    tally: Tally,
}

impl Import<'_> {
    async fn container(&mut self, of: &ContainerRecord) -> Result<(), AzuriteError> {
        let container = self.open(&of.name)?;
        let access = match of.properties.public_access.as_deref() {
            Some("blob") => PublicAccess::Blobs,
            Some("container") => PublicAccess::Container,
            _ => PublicAccess::Private,
        };
        let metadata = of.metadata.clone().unwrap_or_default();
        match container.create(&metadata, access).await {
            Err(error) if error.code() == Some("ContainerAlreadyExists") => {}
            done => done.map_err(|error| self.failed(&of.name, error))?,
        }
        self.progress.notice(&format!("container {}", of.name));
        self.tally.containers += 1;
        Ok(())
    }

    async fn blob(&mut self, of: &BlobRecord, snapshots: Vec<BlobRecord>) -> Result<(), AzuriteError> {
        let what = format!("{}/{}", of.container_name, of.name);
        let blob =
            self.open(&of.container_name)?.blob(&of.name).map_err(|error| self.failed(&what, error))?;
        if !snapshots.is_empty() {
            // An earlier run may have taken them already.
            match blob.delete(DeleteSnapshots::Include).await {
                Err(error) if error.is_not_found() => {}
                done => done.map_err(|error| self.failed(&what, error))?,
            }
        }
        for snapshot in &snapshots {
            self.write(&blob, snapshot).await?;
            blob.snapshot().await.map_err(|error| self.failed(&what, error))?;
            self.count(snapshot);
        }
        self.write(&blob, of).await?;
        if of.properties.is_sealed == Some(true) && of.properties.blob_type == "AppendBlob" {
            blob.seal().await.map_err(|error| self.failed(&what, error))?;
        }
        self.count(of);
        Ok(())
    }

    fn count(&mut self, of: &BlobRecord) {
        self.tally.items += 1;
        self.tally.bytes += of.properties.content_length;
        self.progress.update(self.tally.items, self.tally.bytes);
    }

    async fn write(&self, blob: &Blob, of: &BlobRecord) -> Result<(), AzuriteError> {
        let options = options(of);
        match of.properties.blob_type.as_str() {
            "BlockBlob" => self.write_blocks(blob, of, &options).await,
            "AppendBlob" => self.write_appended(blob, of, &options).await,
            "PageBlob" => self.write_pages(blob, of, &options).await,
            other => Err(self.unreadable(of, &format!("{other:?} is not a type of blobs"))),
        }
    }

    /// With the ids of its blocks, if it has blocks.
    async fn write_blocks(
        &self,
        blob: &Blob,
        of: &BlobRecord,
        options: &UploadOptions,
    ) -> Result<(), AzuriteError> {
        let blocks = of.committed_blocks_in_order.as_deref().unwrap_or_default();
        let places: Vec<Place> = match (&of.persistency, blocks) {
            (_, [_, ..]) => blocks.iter().map(|block| block.persistency.clone()).collect(),
            (Some(place), []) => vec![place.clone()],
            (None, []) => Vec::new(),
        };
        self.check_places(of, places.iter())?;
        let keeps_blocks = !blocks.is_empty()
            && blocks
                .iter()
                .all(|block| block.persistency.count <= BLOCK_BYTES_MAX && !block.name.is_empty());
        if !keeps_blocks {
            return self.write_as_stream(blob, of, places, options).await;
        }
        let mut put = BTreeMap::new();
        for block in blocks {
            // A block may stand in the list more than once.
            match put.get(block.name.as_str()) {
                Some(place) if *place == &block.persistency => continue,
                // Two contents of one id: the service can't be told so.
                Some(_) => return self.write_as_stream(blob, of, places, options).await,
                None => {}
            }
            let content = self.contents.read(&block.persistency)?;
            let done = blob.put_block(&block.name, content).await;
            done.map_err(|error| self.failed_blob(of, error))?;
            put.insert(block.name.as_str(), &block.persistency);
        }
        let ids = blocks.iter().map(|block| block.name.as_str());
        let committed = blob.commit_blocks(ids, options).await;
        committed.map(drop).map_err(|error| self.failed_blob(of, error))
    }

    async fn write_as_stream(
        &self,
        blob: &Blob,
        of: &BlobRecord,
        places: Vec<Place>,
        options: &UploadOptions,
    ) -> Result<(), AzuriteError> {
        let written = blob.upload_stream(self.contents.stream(places), options).await;
        written.map(drop).map_err(|error| self.failed_blob(of, error))
    }

    async fn write_appended(
        &self,
        blob: &Blob,
        of: &BlobRecord,
        options: &UploadOptions,
    ) -> Result<(), AzuriteError> {
        let blocks: &[BlockRecord] = of.committed_blocks_in_order.as_deref().unwrap_or_default();
        self.check_places(of, blocks.iter().map(|block| &block.persistency))?;
        blob.create_append(options).await.map_err(|error| self.failed_blob(of, error))?;
        let mut position = 0;
        for place in blocks.iter().flat_map(|block| pieces(&block.persistency)) {
            let content = self.contents.read(&place)?;
            let done = blob.append_at(position, content).await;
            done.map_err(|error| self.failed_blob(of, error))?;
            position += place.count;
        }
        Ok(())
    }

    async fn write_pages(
        &self,
        blob: &Blob,
        of: &BlobRecord,
        options: &UploadOptions,
    ) -> Result<(), AzuriteError> {
        let number = of.properties.blob_sequence_number.unwrap_or_default();
        let created = blob.create_pages(of.properties.content_length, number, options).await;
        created.map_err(|error| self.failed_blob(of, error))?;
        for range in of.page_ranges_in_order.as_deref().unwrap_or_default() {
            let PagesRecord { start, end, persistency } = range;
            if end.checked_sub(*start).and_then(|rest| rest.checked_add(1)) != Some(persistency.count) {
                return Err(self.unreadable(of, "a range of pages is not as long as its content"));
            }
            // Pages that were never written are zeros.
            if persistency.id == ZEROS {
                continue;
            }
            let mut offset = *start;
            for place in pieces(persistency) {
                let content = self.contents.read(&place)?;
                let written = blob.write_pages(offset, content).await;
                written.map_err(|error| self.failed_blob(of, error))?;
                offset = offset.saturating_add(place.count);
            }
        }
        Ok(())
    }

    /// Content that is not as long as the database says is not what was written. Zeros that are in no file belong to pages;
    /// elsewhere a few bytes of JSON could stand for an upload without end.
    fn check_places<'p>(
        &self,
        of: &BlobRecord,
        mut places: impl Iterator<Item = &'p Place> + Clone,
    ) -> Result<(), AzuriteError> {
        let parts = places.clone().map(|place| place.count);
        if places.any(|place| place.id == ZEROS && place.count > 0) {
            return Err(self.unreadable(of, "its content is in no file"));
        }
        let said = of.properties.content_length;
        let found = parts.fold(0, u64::saturating_add);
        match said == found {
            true => Ok(()),
            false => Err(self.unreadable(of, &format!("it should have {said} bytes, and has {found}"))),
        }
    }

    fn open(&self, container: &str) -> Result<Container, AzuriteError> {
        self.service.container(container).map_err(|error| self.failed(container, error))
    }

    fn failed_blob(&self, of: &BlobRecord, error: Error) -> AzuriteError {
        match error {
            // The stream has named its file.
            Error::Source(why) => self.unreadable(of, &why),
            error => self.failed(&format!("{}/{}", of.container_name, of.name), error),
        }
    }

    fn failed(&self, what: &str, error: Error) -> AzuriteError {
        AzuriteError::Request {
            what: what.to_owned(),
            source: RequestError::at(|| self.service.url(), error),
        }
    }

    fn unreadable(&self, of: &BlobRecord, why: &str) -> AzuriteError {
        AzuriteError::Record {
            path: self.database.path().to_owned(),
            what: format!("the blob {}/{}", of.container_name, of.name),
            why: why.to_owned(),
        }
    }
}

fn options(of: &BlobRecord) -> UploadOptions {
    let properties = &of.properties;
    let headers = ContentHeaders {
        content_type: properties.content_type.clone(),
        encoding: properties.content_encoding.clone(),
        language: properties.content_language.clone(),
        cache_control: properties.cache_control.clone(),
        disposition: properties.content_disposition.clone(),
        md5: properties.content_md5.as_ref().and_then(records::md5),
    };
    let tags = of.blob_tags.iter().flat_map(|tags| &tags.blob_tag_set);
    let options = UploadOptions::new()
        .headers(headers)
        .metadata(of.metadata.clone().unwrap_or_default())
        .tags(tags.map(|tag| (tag.key.clone(), tag.value.clone())).collect());
    let is_tier_set = properties.access_tier_inferred != Some(true) && properties.blob_type == "BlockBlob";
    match &properties.access_tier {
        // A snapshot could not be followed by another state of an archived blob.
        Some(tier) if is_tier_set && (of.snapshot.is_empty() || tier != "Archive") => options.tier(tier),
        _ => options,
    }
}

/// Parts of a part, none longer than a write.
fn pieces(place: &Place) -> impl Iterator<Item = Place> {
    let starts = (0..place.count).step_by(WRITE_BYTES_MAX as usize);
    starts.map(|start| Place {
        id: place.id.clone(),
        offset: place.offset.saturating_add(start),
        count: (place.count - start).min(WRITE_BYTES_MAX),
    })
}
