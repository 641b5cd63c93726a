//! A blob that is uploaded in blocks: several at the same time, each on its own connection, and then the list that commits
//! them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use connection::{Client, Target};
use tokio::task::JoinSet;

use crate::blob_worker::{BlobContext, expect_status, put_request};
use crate::tally::OperationFailure;

/// Connections for blocks, which are opened when they are needed.
#[derive(Debug)]
pub struct BlockLanes {
    target: Arc<Target>,
    idle: Vec<Client>,
}

impl BlockLanes {
    pub fn new(target: Arc<Target>) -> Self {
        Self { target, idle: Vec::new() }
    }

    /// Uploads the content of a number as the blob at this path.
    pub async fn upload(
        &mut self,
        committer: &mut Client,
        shared: &Arc<BlobContext>,
        path: &str,
        number: u64,
        now: Instant,
    ) -> Result<(), OperationFailure> {
        let sizes = shared.set.sizes;
        let blocks = sizes.bytes.div_ceil(sizes.block_bytes);
        let next = Arc::new(AtomicU64::new(0));
        let mut lanes = JoinSet::new();
        for _ in 0..(sizes.parallel_blocks as u64).min(blocks) {
            let client = self.idle.pop().unwrap_or_else(|| Client::new(self.target.clone()));
            let upload =
                BlockUpload { shared: shared.clone(), path: path.to_owned(), number, next: next.clone() };
            lanes.spawn(upload.run(client, blocks));
        }
        let mut outcome = Ok(());
        while let Some(ended) = lanes.join_next().await {
            let (client, uploaded) =
                ended.map_err(|_| OperationFailure::bug("the task of a block ended early"))?;
            self.idle.push(client);
            outcome = outcome.and(uploaded);
        }
        outcome?;
        let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        for block in 0..blocks {
            // Writing into a string can't fail.
            let _ = write!(list, "<Latest>{block:08}</Latest>");
        }
        list.push_str("</BlockList>");
        let request = put_request(path, "comp=blocklist");
        let request = connection::UnsignedRequest { body: Some(list.as_bytes()), ..request };
        expect_status(&committer.send(request, now).await?, 201)
    }
}

/// What one connection uploads: whatever block is next.
struct BlockUpload {
    shared: Arc<BlobContext>,
    path: String,
    number: u64,
    next: Arc<AtomicU64>,
}

impl BlockUpload {
    async fn run(self, mut client: Client, blocks: u64) -> (Client, Result<(), OperationFailure>) {
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks {
                return (client, Ok(()));
            }
            let uploaded = self.upload(&mut client, block).await;
            if uploaded.is_err() {
                return (client, uploaded);
            }
        }
    }

    async fn upload(&self, client: &mut Client, block: u64) -> Result<(), OperationFailure> {
        let sizes = self.shared.set.sizes;
        let start = block * sizes.block_bytes;
        let content = self.shared.set.content(self.number, start, sizes.block_bytes.min(sizes.bytes - start));
        // Eight digits are Base64.
        let query = format!("comp=block&blockid={block:08}");
        let request = put_request(&self.path, &query);
        expect_status(&client.upload(request, &content, Instant::now()).await?, 201)
    }
}
