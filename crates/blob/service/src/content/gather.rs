//! Copies the pages of a segment into one object.

use std::collections::VecDeque;

use blob_model::limits::PAGE_BYTES;
use store::{CHUNK_BYTES, Fault};

use super::pages::{SEGMENT_BYTES, Segment};
use super::reader::Piece;
use super::{BlobKey, Change, Contents, Keep};
use crate::Result;

impl Contents {
    /// The same pages of this blob in one object, which the change keeps. Nothing that the segment names may be removed meanwhile.
    pub(crate) async fn gather(
        &self,
        blob: BlobKey,
        segment: &Segment,
        number: u32,
        change: &Change,
    ) -> Result<Segment> {
        let piece = |object, start: u32, pages: u32| {
            let start = u64::from(start) * PAGE_BYTES;
            Piece::Object { object, bytes: start..start + u64::from(pages) * PAGE_BYTES, crc64: None }
        };
        let pieces: VecDeque<Piece> =
            segment.runs().iter().map(|run| piece(run.object, run.start, run.pages)).collect();
        let mut reader = self.reader_of(pieces, None, self.pin(blob));
        let mut writer = self.writer(Keep::InObject, false);
        while let Some(bytes) = reader.next().await {
            writer.push(bytes?).await?;
        }
        let written = writer.finish().await?;
        change.keep(written.fresh);
        let extent = written.content.row_extents().first();
        let extent = extent.ok_or_else(|| Fault::bug("a segment without pages was gathered"))?;
        Ok(segment.gathered(extent.object, number))
    }
}

// What is copied is read in whole chunks.
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(CHUNK_BYTES as u64));
