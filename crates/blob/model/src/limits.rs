//! The limits of blobs, once, with where they come from. What all services share is in `common::limits`.

use std::ops::RangeInclusive;
use std::time::Duration;

use common::Version;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const TIB: u64 = 1024 * 1024 * MIB;

/// Container name length. Spec: blob-operations 1.4.
pub const CONTAINER_NAME_MIN: usize = 3;
pub const CONTAINER_NAME_MAX: usize = 63;
/// Blob name length, in UTF-16 units as the services count text, and its parts between slashes. Spec: 1.4.
pub const BLOB_NAME_UNITS_MAX: usize = 1024;
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;
/// Names and values of metadata together. Spec: 1.4.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;
/// Tags of a blob. Spec: 1.4.
pub const TAGS_MAX: usize = 10;
pub const TAG_KEY_MAX: usize = 128;
pub const TAG_VALUE_MAX: usize = 256;
/// Comparisons in one expression of Find Blobs by Tags. Spec: 4.5.
pub const TAG_CONDITIONS_MAX: usize = 10;
/// How deep parentheses and `NOT` of a tag condition nest. Not a service figure: it bounds the parser's stack.
pub const TAG_EXPRESSION_DEPTH_MAX: usize = 32;
/// A tag condition or an expression of Find, as text. Not a service figure: ten comparisons of the longest tags fit twice.
pub const TAG_EXPRESSION_BYTES_MAX: usize = 8 * 1024;
/// A block's id, decoded. Spec: 1.4.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// Blocks of a blob. Spec: 9.
pub const COMMITTED_BLOCKS_MAX: usize = 50_000;
pub const UNCOMMITTED_BLOCKS_MAX: usize = 100_000;
/// Blocks that one append blob takes. Spec: 7.2.
pub const APPENDED_BLOCKS_MAX: u32 = 50_000;
/// How long an uncommitted block is kept after the last one of its blob. Spec: 9.
pub const UNCOMMITTED_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Pages: their size, the most that one write changes, and the largest page blob. Spec: 7.3, 9.
pub const PAGE_BYTES: u64 = 512;
pub const PAGE_WRITE_BYTES_MAX: u64 = 4 * MIB;
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * TIB;
/// A range whose checksum a read may ask for. Spec: 6.2.
pub const RANGE_CHECKSUM_BYTES_MAX: u64 = 4 * MIB;
/// The source of Copy From URL. Spec: 9.
pub const SYNC_COPY_BYTES_MAX: u64 = 256 * MIB;
/// Items in a page of a list, and ranges in a page of page ranges. Spec: 9.
pub const LIST_MAX: usize = 5000;
pub const PAGE_RANGES_MAX: usize = 10_000;
/// A batch. Spec: 4.4.
pub const BATCH_PARTS_MAX: usize = 256;
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Leases, in seconds. Spec: 3.1.
pub const LEASE_SECONDS: RangeInclusive<u8> = 15..=60;
pub const BREAK_SECONDS_MAX: u8 = 60;
/// How far ahead a user delegation key may end. Spec: 4.3.
pub const DELEGATION_KEY_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// The body of Put Block List: 50,000 of the longest ids, each in the longest of its tags, with line ends between them. Not a
/// service figure.
pub const BLOCK_LIST_BYTES_MAX: usize = COMMITTED_BLOCKS_MAX * 160;
/// The body of Set Tags: the longest tags, each letter as a reference. Not a service figure.
pub const TAGS_BODY_BYTES_MAX: usize = 64 * 1024;

/// Put Blob of a block blob, and Put Blob From URL. Spec: 2.5, 9.
pub fn put_blob_bytes_max(version: Version) -> u64 {
    since(version, &[("2019-12-12", 5000 * MIB), ("2016-05-31", 256 * MIB)], 64 * MIB)
}

/// Put Block, and Put Block From URL.
pub fn block_bytes_max(version: Version) -> u64 {
    since(version, &[("2019-12-12", 4000 * MIB), ("2016-05-31", 100 * MIB)], 4 * MIB)
}

/// Append Block, and Append Block From URL.
pub fn append_bytes_max(version: Version) -> u64 {
    since(version, &[("2022-11-02", 100 * MIB)], 4 * MIB)
}

/// The limit of the latest of these versions that is not after this one; before all of them, the first.
fn since(version: Version, limits: &[(&str, u64)], first: u64) -> u64 {
    // Dates in this notation sort as text.
    limits.iter().find(|(since, _)| version.as_str() >= *since).map_or(first, |(_, limit)| *limit)
}

const _: () = assert!(PAGE_WRITE_BYTES_MAX.is_multiple_of(PAGE_BYTES));
const _: () = assert!(PAGE_BLOB_BYTES_MAX.is_multiple_of(PAGE_BYTES));

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: 9, each row with the versions of 2.5.
    #[test]
    fn bodies_grow_with_versions() {
        let check = |version: &str, put_mib: u64, block_mib: u64, append_mib: u64| {
            let version = Version::parse(version).unwrap();
            assert_eq!(put_blob_bytes_max(version), put_mib << 20, "{version}");
            assert_eq!(block_bytes_max(version), block_mib << 20, "{version}");
            assert_eq!(append_bytes_max(version), append_mib << 20, "{version}");
        };
        check("2015-12-11", 64, 4, 4);
        check("2016-05-31", 256, 100, 4);
        check("2019-07-07", 256, 100, 4);
        check("2019-12-12", 5000, 4000, 4);
        check("2021-12-02", 5000, 4000, 4);
        check("2022-11-02", 5000, 4000, 100);
        check("2026-10-06", 5000, 4000, 100);
    }
}
