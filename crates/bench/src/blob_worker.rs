//! One connection to blobs: sends the operations of a workload, and checks the answers.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::blob_blocks::BlockLanes;
use crate::blobs::{BLOCKS_MAX, BlobSet, Compared};
use crate::random::Random;
use crate::tally::OperationFailure;
use crate::verify;
use crate::workload::Workload;
use connection::{Client, Response, Target, UnsignedRequest};

/// What a connection has written of its own stays below this, or is one blob: then it overwrites its oldest one.
const OWN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The last blobs that it wrote are read back in the end.
const REMEMBERED_MAX: usize = 4;
const BLOCK_BLOB: &str = "x-ms-blob-type: BlockBlob\r\n";
const APPEND_BLOB: &str = "x-ms-blob-type: AppendBlob\r\n";

/// What all connections to the blobs of one endpoint share.
#[derive(Debug)]
pub struct BlobContext {
    pub set: BlobSet,
    pub data_container: String,
    pub written_container: String,
    /// The next number whose content is written. Those of the data set are below.
    pub next: AtomicU64,
    /// Do not check bodies.
    pub trust: bool,
}

#[derive(Debug)]
pub struct BlobWorker {
    client: Client,
    lanes: BlockLanes,
    shared: Arc<BlobContext>,
    random: Random,
    path: String,
    query: String,
    headers: String,
    /// Begins the names of its own blobs.
    own: u64,
    next_slot: u64,
    /// The slots that were written last, and the numbers of their content.
    written: VecDeque<(u64, u64)>,
    appended: Option<Appended>,
}

/// The blob that this connection appends to.
#[derive(Clone, Copy, Debug)]
struct Appended {
    slot: u64,
    number: u64,
    length: u64,
    blocks: u64,
}

impl BlobWorker {
    pub fn new(target: &Arc<Target>, shared: Arc<BlobContext>, seed: u64) -> Self {
        Self {
            client: Client::new(target.clone()),
            lanes: BlockLanes::new(target.clone()),
            shared,
            random: Random::new(seed),
            path: String::new(),
            query: String::new(),
            headers: String::new(),
            own: seed,
            next_slot: 0,
            written: VecDeque::new(),
            appended: None,
        }
    }

    /// Does one operation and checks it. Returns how many blobs or folders it wrote, read or listed.
    pub async fn operate(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        match workload {
            Workload::BlobGet => self.get(now).await?,
            Workload::BlobRange => self.range(now).await?,
            Workload::BlobList | Workload::BlobFolders => return self.list(workload, now).await,
            Workload::BlobPut => self.put(now).await?,
            Workload::BlobBlocks => self.blocks(now).await?,
            Workload::BlobAppend => self.append(now).await?,
            Workload::BlobMixed => match self.random.below(10) {
                0 => self.put(now).await?,
                _ => self.get(now).await?,
            },
            _ => return Err(OperationFailure::bug("a workload of another service was given to blobs")),
        }
        Ok(1)
    }

    /// Writes a blob of the data set.
    pub async fn load(&mut self, number: u64) -> Result<(), OperationFailure> {
        self.data_path(number);
        self.write(number, self.shared.set.is_loaded_in_blocks(), Instant::now()).await
    }

    /// Checks the first and the last blob of the data set.
    pub async fn expect_loaded(&mut self) -> Result<(), OperationFailure> {
        let last = self.shared.set.sizes.blobs - 1;
        // The only one is read once: it may be long.
        for number in std::iter::once(0).chain((last > 0).then_some(last)) {
            self.data_path(number);
            self.read(number, 0, self.shared.set.sizes.bytes, 200, Instant::now()).await?;
        }
        Ok(())
    }

    /// Reads the last blobs that were written, whole.
    pub async fn read_back(&mut self) -> Result<(), OperationFailure> {
        let written = std::mem::take(&mut self.written);
        let appended = self.appended.take();
        if self.shared.trust {
            return Ok(());
        }
        let bytes = self.shared.set.sizes.bytes;
        let blobs = written.into_iter().map(|(slot, number)| (slot, number, bytes));
        let appended = appended.map(|Appended { slot, number, length, .. }| (slot, number, length));
        for (slot, number, length) in blobs.chain(appended) {
            self.own_path(slot);
            self.read(number, 0, length, 200, Instant::now()).await?;
        }
        Ok(())
    }

    async fn get(&mut self, now: Instant) -> Result<(), OperationFailure> {
        let number = self.any_blob();
        self.headers.clear();
        self.read(number, 0, self.shared.set.sizes.bytes, 200, now).await
    }

    async fn range(&mut self, now: Instant) -> Result<(), OperationFailure> {
        let number = self.any_blob();
        let bytes = self.shared.set.sizes.bytes;
        let length = self.shared.set.sizes.range_bytes.min(bytes);
        let start = self.random.below(bytes - length + 1);
        self.headers.clear();
        // Writing into a string can't fail.
        let _ = write!(self.headers, "x-ms-range: bytes={start}-{}\r\n", start + length - 1);
        let outcome = self.read(number, start, length, 206, now).await;
        self.headers.clear();
        outcome
    }

    /// Reads a part of a blob, and compares every byte.
    async fn read(
        &mut self,
        number: u64,
        start: u64,
        length: u64,
        status: u16,
        now: Instant,
    ) -> Result<(), OperationFailure> {
        let content = self.shared.set.content(number, start, length);
        let mut compared = Compared::new(content, self.shared.trust);
        let request = UnsignedRequest {
            method: "GET",
            path: &self.path,
            query: "",
            headers: &self.headers,
            body: None,
        };
        let response = self.client.download(request, &mut |bytes| compared.take(bytes), now).await?;
        expect_status(&response, status)?;
        compared.outcome().map_err(|what| OperationFailure::wrong(what, response.head))
    }

    async fn put(&mut self, now: Instant) -> Result<(), OperationFailure> {
        self.write_own(false, now).await
    }

    async fn blocks(&mut self, now: Instant) -> Result<(), OperationFailure> {
        self.write_own(true, now).await
    }

    async fn write_own(&mut self, in_blocks: bool, now: Instant) -> Result<(), OperationFailure> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let slot = self.slot();
        self.own_path(slot);
        // If it fails, nobody knows what the blob holds.
        self.written.retain(|(written, _)| *written != slot);
        self.write(number, in_blocks, now).await?;
        self.written.push_back((slot, number));
        if self.written.len() > REMEMBERED_MAX {
            self.written.pop_front();
        }
        Ok(())
    }

    /// Writes the blob at `path`.
    async fn write(&mut self, number: u64, in_blocks: bool, now: Instant) -> Result<(), OperationFailure> {
        if in_blocks {
            return self.lanes.upload(&mut self.client, &self.shared, &self.path, number, now).await;
        }
        let content = self.shared.set.content(number, 0, self.shared.set.sizes.bytes);
        let request = UnsignedRequest { headers: BLOCK_BLOB, ..put_request(&self.path, "") };
        expect_status(&self.client.upload(request, &content, now).await?, 201)
    }

    async fn append(&mut self, now: Instant) -> Result<(), OperationFailure> {
        let bytes = self.shared.set.sizes.bytes;
        let blob = match self.appended.take() {
            Some(blob) if blob.blocks < BLOCKS_MAX && blob.length + bytes <= OWN_BYTES_MAX.max(bytes) => blob,
            _ => self.new_append_blob(now).await?,
        };
        self.own_path(blob.slot);
        let content = self.shared.set.content(blob.number, blob.length, bytes);
        let request = put_request(&self.path, "comp=appendblock");
        let response = self.client.upload(request, &content, now).await?;
        expect_status(&response, 201)?;
        let place = response.header("x-ms-blob-append-offset");
        let place: Option<u64> = place.and_then(|place| std::str::from_utf8(place).ok()?.parse().ok());
        if !self.shared.trust && place != Some(blob.length) {
            let what = format!("a block was appended at {place:?} and not at {}", blob.length);
            return Err(OperationFailure::wrong(what, response.head));
        }
        self.appended = Some(Appended { length: blob.length + bytes, blocks: blob.blocks + 1, ..blob });
        Ok(())
    }

    async fn new_append_blob(&mut self, now: Instant) -> Result<Appended, OperationFailure> {
        let slot = self.slot();
        self.own_path(slot);
        self.written.retain(|(written, _)| *written != slot);
        let request =
            UnsignedRequest { headers: APPEND_BLOB, body: Some(b""), ..put_request(&self.path, "") };
        expect_status(&self.client.send(request, now).await?, 201)?;
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        Ok(Appended { slot, number, length: 0, blocks: 0 })
    }

    /// Lists the blobs of a folder, or the folders of one above.
    async fn list(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        let set = &self.shared.set;
        let of_folders = workload == Workload::BlobFolders;
        let mut prefix = std::mem::take(&mut self.headers);
        let expected = if of_folders {
            let folder = self.random.below(set.upper_folders());
            set.upper_folder(&mut prefix, folder);
            set.folders_in(folder)
        } else {
            let folder = self.random.below(set.folders());
            set.folder(&mut prefix, folder);
            set.blobs_in(folder)
        };
        self.path.clear();
        self.path.extend(["/", &self.shared.data_container]);
        self.query.clear();
        let encoded = utf8_percent_encode(&prefix, NON_ALPHANUMERIC);
        let delimiter = if of_folders { "&delimiter=%2F" } else { "" };
        // Writing into a string can't fail.
        let _ = write!(self.query, "restype=container&comp=list&prefix={encoded}{delimiter}");
        let request =
            UnsignedRequest { method: "GET", path: &self.path, query: &self.query, headers: "", body: None };
        let response = self.client.send(request, now).await?;
        expect_status(&response, 200)?;
        if !self.shared.trust {
            verify::names(response.body, &prefix, if of_folders { "/" } else { "" }, expected)?;
        }
        prefix.clear();
        self.headers = prefix;
        Ok(expected)
    }

    fn any_blob(&mut self) -> u64 {
        let number = self.random.below(self.shared.set.sizes.blobs);
        self.data_path(number);
        number
    }

    fn data_path(&mut self, number: u64) {
        self.shared.set.name(&mut self.query, number);
        self.path.clear();
        self.path.extend(["/", &self.shared.data_container, "/", &self.query]);
    }

    fn own_path(&mut self, slot: u64) {
        self.path.clear();
        let (container, bytes) = (&self.shared.written_container, self.shared.set.sizes.bytes);
        // Writing into a string can't fail.
        let _ = write!(self.path, "/{container}/{bytes}/{:016x}/{slot:06}", self.own);
    }

    /// The next of its own names.
    fn slot(&mut self) -> u64 {
        let slots = (OWN_BYTES_MAX / self.shared.set.sizes.bytes).max(1);
        let slot = self.next_slot % slots;
        self.next_slot += 1;
        slot
    }
}

pub fn put_request<'a>(path: &'a str, query: &'a str) -> UnsignedRequest<'a> {
    UnsignedRequest { method: "PUT", path, query, headers: "", body: None }
}

pub fn expect_status(response: &Response<'_>, status: u16) -> Result<(), OperationFailure> {
    if response.status == status { Ok(()) } else { Err(OperationFailure::status(response)) }
}
