use super::*;
use blob_model::{BlockId, Crc64};
use proptest::collection::vec;
use proptest::prelude::*;

fn object() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 16]>().prop_map(ObjectId::from_bytes)
}

pub fn extent() -> impl Strategy<Value = Extent> {
    let block = prop::option::of(vec(any::<u8>(), 1..=64).prop_map(|id| BlockId::of_bytes(&id).unwrap()));
    let bytes = (0..1_u64 << 50, 1..1_u64 << 40);
    (object(), bytes, any::<u64>(), block).prop_map(|(object, (start, length), crc64, block)| Extent {
        object,
        start,
        length,
        crc64: Crc64(crc64),
        block,
    })
}

fn manifest() -> impl Strategy<Value = Manifest> {
    (object(), 1..=1024_u32, 0..1_u64 << 45).prop_map(|(object, extents, more)| Manifest {
        object,
        extents,
        length: u64::from(extents) + more,
    })
}

fn content() -> impl Strategy<Value = Content> {
    (vec(manifest(), 0..5), vec(extent(), 0..10), vec(any::<u8>(), 0..50))
        .prop_map(|(manifests, extents, inline)| Content { manifests, extents, inline: inline.into() })
}

proptest! {
    #[test]
    fn content_reads_back(content in content()) {
        prop_assert_eq!(Content::read(&content.write()).unwrap(), content);
    }

    #[test]
    fn manifests_read_back_and_are_seen_to_be_cut_or_changed(
        extents in vec(extent(), 1..20),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let length = extents.iter().map(|extent| extent.length).sum();
        let manifest = Manifest { object: ObjectId::FIRST, length, extents: extents.len() as u32 };
        let written = write_manifest(&extents);
        prop_assert_eq!(read_manifest(&manifest, &written).unwrap(), extents);
        prop_assert!(read_manifest(&manifest, &written[..at.index(written.len())]).is_err());
        let longer = Manifest { length: length + 1, ..manifest };
        prop_assert!(read_manifest(&longer, &written).is_err());
        // Anything may be in a chunk that proves itself; it is read or refused.
        let mut damaged = written;
        let at = at.index(damaged.len());
        damaged[at] ^= flip;
        let _ = read_manifest(&manifest, &damaged);
    }

    /// Whatever is read is what was written: there is no second way to say the same.
    #[test]
    fn damaged_content_is_a_fault_or_other_content(
        content in content(),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let mut damaged = content.write();
        let at = at.index(damaged.len());
        damaged[at] ^= flip;
        if let Ok(other) = Content::read(&damaged) {
            prop_assert_ne!(&other, &content);
            prop_assert_eq!(other.write(), damaged);
        }
    }

    #[test]
    fn any_bytes_are_a_fault_or_content(bytes in vec(any::<u8>(), 0..200)) {
        let bytes = [&[1][..], &bytes].concat();
        if let Ok(content) = Content::read(&bytes) {
            prop_assert_eq!(content.write(), bytes);
        }
    }
}

fn one(length: u64) -> Extent {
    Extent { object: ObjectId::from_bytes([7; 16]), start: 0, length, crc64: Crc64(0x0102), block: None }
}

#[test]
fn the_bytes_never_change() {
    let block = Some(BlockId::of_bytes(b"id").unwrap());
    let content = Content {
        manifests: vec![Manifest { object: ObjectId::from_bytes([9; 16]), length: 300, extents: 2 }],
        extents: vec![Extent { start: 5, block, ..one(128) }],
        inline: Bytes::from_static(b"end"),
    };
    let expected: Vec<&[u8]> = vec![
        b"\x01\x01",
        &[9; 16],
        b"\xac\x02\x02\x01",
        &[7; 16],
        b"\x05\x80\x01\x02\x01\0\0\0\0\0\0\x02idend",
    ];
    assert_eq!(content.write(), expected.concat());
    assert_eq!(Content::default().write(), [1, 0, 0]);
    assert_eq!(content.length(), 300 + 128 + 3);
    assert_eq!(content.extent_count(), 3);
}

#[test]
fn what_no_row_may_have_is_a_fault() {
    let refuse = |content: Content| assert!(Content::read(&content.write()).is_err());
    let manifest = Manifest { object: ObjectId::FIRST, length: 5000, extents: 1024 };
    let accept = |content: Content| assert_eq!(Content::read(&content.write()).unwrap(), content);
    let of = |extents| Content { extents, ..Content::default() };
    let of_manifests = |manifests| Content { manifests, ..Content::default() };
    accept(of(vec![one(1); 128]));
    refuse(of(vec![one(1); 129]));
    refuse(of(vec![one(0)]));
    refuse(of(vec![Extent { start: u64::MAX, ..one(1) }]));
    refuse(of(vec![one(u64::MAX / 2), one(u64::MAX / 2), one(2)]));
    accept(of_manifests(vec![manifest; 49]));
    refuse(of_manifests(vec![manifest; 50]));
    refuse(of_manifests(vec![Manifest { extents: 1025, ..manifest }]));
    refuse(of_manifests(vec![Manifest { extents: 0, ..manifest }]));
    refuse(of_manifests(vec![Manifest { length: 1023, ..manifest }]));
    accept(Content::inline(vec![0; 4096].into()));
    refuse(Content::inline(vec![0; 4097].into()));
    assert!(Content::read(&[]).is_err());
    assert!(Content::read(&[2, 0, 0]).is_err());
}

/// With 8 KiB of metadata and 4 KiB of tags a row stays below 64 KiB.
#[test]
fn the_longest_content_of_a_row_is_small() {
    let manifest = Manifest { object: ObjectId::FIRST, length: u64::MAX / 64, extents: 1024 };
    let block = Some(BlockId::of_bytes(&[7; 64]).unwrap());
    let extent = Extent { block, ..one(u64::MAX / 256) };
    let content =
        Content { manifests: vec![manifest; 49], extents: vec![extent; 128], inline: vec![0; 4096].into() };
    assert!(content.write().len() < 20 * 1024, "{}", content.write().len());
    assert!(write_manifest(&vec![content.extents[0].clone(); 1024]).len() < 110 * 1024);
}
