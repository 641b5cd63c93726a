//! Headers of blobs that are numbers and ids: a range and the length of a blob, then a page range, a block id, a lease id and
//! times of snapshots. What is accepted lies within the blob, and reads back as the same.
#![no_main]

use blob_model::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};
use blob_model::{BlobName, BlockId, ByteRange, ContainerName, LeaseId, PageRange, Refusal, SnapshotTime};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let [range, length] = fuzz::lines(input);
    if let (Some(range), Ok(length)) = (ByteRange::parse(range), length.parse::<u64>()) {
        assert!(range.last().is_none_or(|last| range.first() <= last));
        match range.of(length) {
            Ok(span) => {
                assert!(span.bytes > 0 && span.start == range.first() && span.last() < length);
                assert!(range.last().is_none_or(|last| span.last() <= last));
            }
            Err(refusal) => assert_eq!(refusal, Refusal::RangeInvalid { length }),
        }
        let length = length.min(PAGE_BLOB_BYTES_MAX) / PAGE_BYTES * PAGE_BYTES;
        if let Ok(Some(pages)) = PageRange::of_read(Some(range), length) {
            assert!(pages.start() < pages.end() && pages.end() <= length, "{pages:?} of {length}");
        }
    }
    if let Ok(pages) = PageRange::of_write(Some(range)) {
        let is_whole = |at: u64| at.is_multiple_of(PAGE_BYTES);
        assert!(is_whole(pages.start()) && is_whole(pages.end()) && pages.end() <= PAGE_BLOB_BYTES_MAX);
        assert_eq!(PageRange::of_write(Some(&format!("bytes={}-{}", pages.start(), pages.last()))), Ok(pages));
    }
    if let Ok(id) = BlockId::parse(input) {
        assert_eq!(BlockId::parse(&id.to_string()), Ok(id));
    }
    if let Some(id) = LeaseId::parse(input) {
        assert_eq!(LeaseId::parse(&id.to_string()), Some(id));
    }
    if let Some(time) = SnapshotTime::parse(input) {
        assert_eq!(SnapshotTime::parse(&time.to_string()), Some(time));
    }
    if let Ok(name) = BlobName::parse(input) {
        assert_eq!(name.as_str(), input.replace('\\', "/"));
        assert_eq!(BlobName::parse(name.as_str()), Ok(name));
    }
    if let Ok(name) = ContainerName::parse(input) {
        assert_eq!(name.as_str(), input);
    }
});
