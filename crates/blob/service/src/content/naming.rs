//! Which objects a row names: two properties do, whatever kind of row it is.

use blob_model::limits::PAGE_BYTES;
use bytes::Bytes;
use model::ValueRef;
use store::{Fault, Need, ObjectId, ObjectNaming, RawRow, RowView};

use crate::blob_key;

use super::pages::{Run, Segment};
use super::{Content, Extent, Manifest, chunk, moves, stored};

/// The content of a blob, a snapshot or a block.
pub const CONTENT: &str = "C";
/// A segment of a page blob's map.
pub const SEGMENT: &str = "P";

/// What a row names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Nothing,
    Content(Content),
    Segment(Segment),
}

pub fn named_by(row: RawRow<'_>) -> Result<Named, Fault> {
    let mut found = [None; 2];
    row.find(&[CONTENT, SEGMENT], &mut found)?;
    match found {
        [None, None] => Ok(Named::Nothing),
        [Some(ValueRef::Binary(content)), None] => Content::read(content).map(Named::Content),
        [None, Some(ValueRef::Binary(segment))] => Segment::read(segment).map(Named::Segment),
        _ => Err(Fault::damaged("what a row says of content is not as this program writes it")),
    }
}

/// For whoever checks or copies a whole store.
///
/// A block whose upload is over is nobody's. Its row may still be there, and what it names may be gone. So it is with a record of
/// content that was moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContentNaming;

impl ObjectNaming for ContentNaming {
    fn in_row(&self, partition: &str, row: RowView<'_>) -> Result<Vec<Need>, Fault> {
        let mut needs: Vec<Need> = match named_by(RawRow::new(row.bytes()))? {
            Named::Nothing => Vec::new(),
            Named::Content(content) => {
                let list = |manifest: &Manifest| Need { is_list: true, ..need_of(manifest.object, 1) };
                content.manifests().iter().map(list).chain(content.row_extents().iter().map(need)).collect()
            }
            Named::Segment(segment) => {
                let end = |run: &Run| u64::from(run.start + run.pages) * PAGE_BYTES;
                segment.runs().iter().map(|run| need_of(run.object, end(run))).collect()
            }
        };
        for need in &mut needs {
            need.may_be_gone = partition.starts_with([blob_key::BLOCKS, moves::PARTITION]);
        }
        Ok(needs)
    }

    fn in_list(&self, list: ObjectId, chunk: Bytes) -> Result<Vec<Need>, Fault> {
        let extents = stored::read_list(list, &chunk::open(list, 0, chunk)?.0)?;
        Ok(extents.iter().map(need).collect())
    }

    fn content_of(&self, object: ObjectId, number: u32, chunk: Bytes) -> Result<u64, Fault> {
        chunk::open(object, number, chunk).map(|(content, _)| content.len() as u64)
    }
}

fn need(extent: &Extent) -> Need {
    need_of(extent.object, extent.start + extent.length)
}

fn need_of(object: ObjectId, bytes: u64) -> Need {
    Need { object, bytes, is_list: false, may_be_gone: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::DateTime;
    use store::RowDraft;

    fn named(properties: &[(&str, ValueRef<'_>)]) -> Result<Named, Fault> {
        let row = RowDraft::new(properties.iter().copied()).stamp(DateTime::MIN_STORED);
        named_by(RawRow::new(row.as_bytes()))
    }

    #[test]
    fn what_can_not_be_read_is_never_taken_for_nothing() {
        let content = Content::inline(vec![1, 2].into());
        let (stored, segment) = (content.write(), Segment::default().to_bytes());
        let other = ("A", ValueRef::Int32(1));
        assert_eq!(named(&[other]).unwrap(), Named::Nothing);
        assert_eq!(named(&[other, ("C", ValueRef::Binary(&stored))]).unwrap(), Named::Content(content));
        let is_segment = named(&[("P", ValueRef::Binary(&segment))]).unwrap();
        assert_eq!(is_segment, Named::Segment(Segment::default()));
        for damaged in [
            &[("C", ValueRef::Binary(&[]))][..],
            &[("C", ValueRef::Int32(1))],
            &[("P", ValueRef::String("x"))],
            &[("C", ValueRef::Binary(&stored)), ("P", ValueRef::Binary(&segment))],
        ] {
            assert!(named(damaged).is_err(), "{damaged:?}");
        }
        assert!(named_by(RawRow::new(b"no row")).is_err());
    }

    #[test]
    fn what_is_needed_is_told_to_who_copies_a_store() {
        let object = |number: u8| ObjectId::from_bytes([number; 16]);
        let extent = |number: u8, start: u64| Extent {
            object: object(number),
            start,
            length: 10,
            crc64: blob_model::Crc64(0),
            block: None,
        };
        let need = |number: u8, bytes: u64| need_of(object(number), bytes);
        let content = Content {
            manifests: vec![Manifest { object: object(1), length: 20, extents: 2 }],
            extents: vec![extent(2, 5)],
            inline: Bytes::new(),
        };
        let needs = |name: &str, stored: &[u8]| {
            let row =
                RowDraft::new([(name, ValueRef::Binary(stored))].into_iter()).stamp(DateTime::MIN_STORED);
            ContentNaming.in_row("bname", row.view()).unwrap()
        };
        let list = Need { is_list: true, ..need(1, 1) };
        assert_eq!(needs("C", &content.write()), [list, need(2, 15)]);
        let left_over = Content::of_extent(extent(2, 5));
        let stored = left_over.write();
        let row = RowDraft::new([("C", ValueRef::Binary(&stored))].into_iter()).stamp(DateTime::MIN_STORED);
        let of_block = ContentNaming.in_row("uname", row.view()).unwrap();
        assert_eq!(of_block, [Need { may_be_gone: true, ..need(2, 15) }]);
        assert_eq!(ContentNaming.in_row("m7-1", row.view()).unwrap(), of_block);
        let mut segment = Segment::default();
        segment.write(3..7, object(4), 0);
        segment.clear(3..4, 0);
        assert_eq!(needs("P", &segment.to_bytes()), [need(4, 4 * 512)]);
        assert_eq!(needs("X", b"other"), []);

        let stored = stored::write_manifest(&[extent(7, 0), extent(8, 90)]);
        let chunk = chunk::seal(object(1), 0, stored.as_slice().into());
        assert_eq!(ContentNaming.content_of(object(1), 0, chunk.clone()).unwrap(), stored.len() as u64);
        assert_eq!(ContentNaming.in_list(object(1), chunk.clone()).unwrap(), [need(7, 10), need(8, 100)]);
        assert!(ContentNaming.in_list(object(2), chunk).is_err());
    }
}
