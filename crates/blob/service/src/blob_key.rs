//! Keys of a container's rows (docs/decisions/0011-blobs.md, Keys).
//!
//! | partition key | row key | what |
//! |---|---|---|
//! | `b` and name | a time, of the blob itself the last there is | a snapshot, or the blob |
//! | `u` and name | upload, then block id, in hexadecimal | an uncommitted block |
//! | `t` and tag's key | value, U+0000 and name | a hint of Find Blobs by Tags |
//!
//! Names are as `name_key` writes them.

use blob_model::{BlobName, BlockId, SnapshotTime};
use model::{Cut, EntityKey, Key, KeyRange};
use store::Fault;

use crate::name_key;

const BLOB: char = 'b';
pub(crate) const BLOCKS: char = 'u';
const TAG: char = 't';
/// Behind a tag's value. No tag has it, and it sorts below all that a tag may have.
const VALUE_END: char = '\0';

/// The blocks that were put since the last commit have this name in front of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UploadId(pub [u8; 16]);

fn key(text: String) -> Result<Key, Fault> {
    Key::parse_stored(text).map_err(|_| Fault::bug("the place of a blob's row is not a valid key"))
}

/// The partition of names that begin so.
pub fn partition_text(start_of_name: &str) -> String {
    let mut text = name_key::encode(start_of_name);
    text.insert(0, BLOB);
    text
}

/// The partition of a blob, its snapshots and its pages.
pub fn partition(name: &BlobName) -> Result<Key, Fault> {
    key(partition_text(name.as_str()))
}

pub fn row(time: SnapshotTime) -> Result<Key, Fault> {
    key(time.to_string())
}

pub fn entity(name: &BlobName, time: SnapshotTime) -> Result<EntityKey, Fault> {
    Ok(EntityKey { partition: partition(name)?, row: row(time)? })
}

/// The snapshots of a blob and the blob, from this time on.
pub fn states(partition: &str, from: Option<SnapshotTime>) -> KeyRange {
    let from = from.map(|time| time.to_string()).unwrap_or_default();
    KeyRange {
        start: Cut::before(partition, &from),
        end: Cut::after(partition, &SnapshotTime::BASE.to_string()),
    }
}

/// The name of the blob in this partition, or `None` if it is no partition of a blob.
pub fn read_partition(partition: &str) -> Option<String> {
    name_key::decode(partition.strip_prefix(BLOB)?)
}

/// Above all partitions of blobs.
pub fn end_of_blobs() -> Cut {
    Cut::before_partition(&char::from(BLOB as u8 + 1).to_string())
}

/// Above all partitions of names that begin so.
pub fn behind_prefix(start_of_name: &str) -> Cut {
    match successor(start_of_name) {
        Some(next) => Cut::before_partition(&partition_text(&next)),
        None => end_of_blobs(),
    }
}

/// The lowest text above all that begin with this one, in the order of their bytes; `None` if nothing is above them.
fn successor(text: &str) -> Option<String> {
    let mut rest = text.to_owned();
    while let Some(last) = rest.pop() {
        let above = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            char::MAX => None,
            c => char::from_u32(u32::from(c) + 1),
        };
        if let Some(above) = above {
            rest.push(above);
            return Some(rest);
        }
    }
    None
}

pub fn block_partition(name: &BlobName) -> Result<Key, Fault> {
    let mut text = name_key::encode(name.as_str());
    text.insert(0, BLOCKS);
    key(text)
}

/// The name of the blob whose blocks are in this partition, or `None` if it is no such partition.
pub fn read_block_partition(partition: &str) -> Option<String> {
    name_key::decode(partition.strip_prefix(BLOCKS)?)
}

pub fn block_row(upload: UploadId, id: &BlockId) -> Result<Key, Fault> {
    key(hex(&upload.0) + &hex(id.as_bytes()))
}

/// All blocks of an upload, or those from one on.
pub fn blocks(partition: &str, upload: UploadId, from: Option<&str>) -> KeyRange {
    let upload = hex(&upload.0);
    let start = Cut::before(partition, from.unwrap_or(&upload));
    // Above all digits.
    KeyRange { start, end: Cut::before(partition, &format!("{upload}g")) }
}

pub fn read_block_row(row: &str) -> Option<(UploadId, BlockId)> {
    let bytes = unhex(row)?;
    let (upload, id) = bytes.split_first_chunk::<16>()?;
    Some((UploadId(*upload), BlockId::of_bytes(id).ok()?))
}

pub fn tag_partition(tag_key: &str) -> Result<Key, Fault> {
    let mut text = name_key::encode(tag_key);
    text.insert(0, TAG);
    key(text)
}

pub fn tag_row(value: &str, name: &str) -> Result<Key, Fault> {
    key(name_key::encode(&format!("{value}{VALUE_END}{name}")))
}

/// Above all hints of this value.
pub fn above_tag_row(value: &str) -> Result<Key, Fault> {
    // Directly above the end of a value.
    key(name_key::encode(&format!("{value}\u{1}")))
}

pub fn read_tag_partition(partition: &str) -> Option<String> {
    name_key::decode(partition.strip_prefix(TAG)?)
}

/// A key that was read.
pub fn key_of(text: &str) -> Result<Key, Fault> {
    key(text.to_owned())
}

/// Value and name.
pub fn read_tag_row(row: &str) -> Option<(String, String)> {
    let text = name_key::decode(row)?;
    let (value, name) = text.split_once(VALUE_END)?;
    Some((value.to_owned(), name.to_owned()))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|half| char::from(DIGITS[usize::from(half)])).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let half =
        |digit: u8| DIGITS.iter().position(|known| *known == digit).and_then(|at| u8::try_from(at).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(half(*high)? << 4 | half(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> BlobName {
        BlobName::parse(text).unwrap()
    }

    #[test]
    fn keys_read_back() {
        let partition = partition(&name("a b/c")).unwrap();
        assert_eq!(partition.as_str(), "ba @b/c");
        assert_eq!(read_partition(partition.as_str()).as_deref(), Some("a b/c"));
        assert_eq!(read_partition("ua"), None);
        let (upload, id) = (UploadId([0xa5; 16]), BlockId::of_bytes(b"\x00\xff1").unwrap());
        let row = block_row(upload, &id).unwrap();
        assert_eq!(row.as_str(), format!("{}00ff31", "a5".repeat(16)));
        assert_eq!(read_block_row(row.as_str()), Some((upload, id)));
        for text in ["", "a5", &"a5".repeat(16), &format!("{}0", row.as_str()), &row.as_str().to_uppercase()]
        {
            assert_eq!(read_block_row(text), None, "{text}");
        }
        let row = tag_row("v 1", "a\0b").unwrap();
        assert_eq!(read_tag_row(row.as_str()), Some(("v 1".to_owned(), "a\0b".to_owned())));
    }

    #[test]
    fn the_longest_names_have_keys() {
        for unit in [" ", "\u{ffff}", "\0", "é"] {
            let longest = name(&unit.repeat(1024));
            assert!(partition(&longest).is_ok() && block_partition(&longest).is_ok());
            assert!(tag_row(&" ".repeat(256), longest.as_str()).is_ok());
        }
        assert!(block_row(UploadId([0; 16]), &BlockId::of_bytes(&[7; 64]).unwrap()).is_ok());
    }

    #[test]
    fn the_blocks_of_an_upload_are_a_range() {
        let (upload, other) = (UploadId([1; 16]), UploadId([2; 16]));
        let range = blocks("ua", upload, None);
        for id in [&[0][..], &[0xff; 64]] {
            let id = BlockId::of_bytes(id).unwrap();
            assert!(range.contains("ua", block_row(upload, &id).unwrap().as_str()));
            assert!(!range.contains("ua", block_row(other, &id).unwrap().as_str()));
        }
    }

    proptest! {
        #[test]
        fn names_with_a_prefix_are_a_range(prefix in "[a\0 \u{d7ff}\u{e000}\u{ffff}\u{10ffff}]{0,3}", other in "[a\0 b\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{1,5}") {
            let range = KeyRange { start: Cut::before_partition(&partition_text(&prefix)), end: behind_prefix(&prefix) };
            let key = partition_text(&other);
            prop_assert_eq!(range.contains(&key, "x"), other.starts_with(&prefix));
        }

        #[test]
        fn hints_are_ordered_by_value_and_then_by_name(a in "[a +]{0,3}", b in "[a +]{0,3}", m in "[\0a]{1,2}", n in "[\0a]{1,2}") {
            let (one, other) = (tag_row(&a, &m).unwrap(), tag_row(&b, &n).unwrap());
            prop_assert_eq!(one.cmp(&other), (a, m).cmp(&(b, n)));
        }
    }
}
