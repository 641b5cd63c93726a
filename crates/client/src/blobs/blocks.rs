//! Blocks by hand: for a program that chooses their ids, or that puts them from several places.

use bytes::Bytes;
use http::Method;
use wire::names;

use blob_model::{BlockChoice, BlockId, limits};
use blob_wire::block_list;

use super::blob::Blob;
use super::upload::{UploadOptions, with_checksum};
use super::writes::Written;
use crate::error::{Error, Result};

impl Blob {
    /// Puts a block, which is not visible until it is committed. The id is Base64 of 1 to 64 bytes; all ids of a blob have the
    /// same length.
    pub async fn put_block(&self, id: &str, content: impl Into<Bytes>) -> Result<()> {
        let id = parse(id)?;
        self.put_block_of(&id, content.into()).await
    }

    pub(super) async fn put_block_of(&self, id: &BlockId, content: Bytes) -> Result<()> {
        // The condition of a handle counts when the blocks are committed.
        let request = self.without_condition().request("put_block", Method::PUT).query(names::COMP, "block");
        let request = request.query("blockid", id.to_string());
        self.send(with_checksum(request, content)).await.map(drop)
    }

    /// Makes the blob of these blocks, in this order: for each id the latest that was put, or else the committed one.
    pub async fn commit_blocks<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i str>,
        options: &UploadOptions,
    ) -> Result<Written> {
        let blocks: Vec<_> =
            ids.into_iter().map(|id| Ok((BlockChoice::Latest, parse(id)?))).collect::<Result<_>>()?;
        self.commit_blocks_of(&blocks, options).await
    }

    pub(super) async fn commit_blocks_of(
        &self,
        blocks: &[(BlockChoice, BlockId)],
        options: &UploadOptions,
    ) -> Result<Written> {
        if blocks.len() > limits::COMMITTED_BLOCKS_MAX {
            return Err(Error::invalid(format!(
                "a blob has at most {} blocks",
                limits::COMMITTED_BLOCKS_MAX
            )));
        }
        let document = block_list::write_chosen(blocks);
        // Some services refuse the byte order mark that answers begin with.
        let document = document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&document).to_vec();
        let request = self.request("put_block_list", Method::PUT).query(names::COMP, "blocklist");
        Written::of(&self.send(options.add(request)?.body("application/xml", document)).await?)
    }
}

fn parse(id: &str) -> Result<BlockId> {
    BlockId::parse(id).map_err(|fault| Error::invalid(format!("{id:?}: {fault}")))
}
