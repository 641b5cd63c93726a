//! A row reads back as it was written, and damage is a fault.

use super::*;
use blob_model::{LeaseDuration, LeaseId};

fn time(second: i64) -> DateTime {
    DateTime::from_ticks(DateTime::MIN_STORED.ticks() + second * 10_000_000).unwrap()
}

fn kinds() -> [StoredKind; 4] {
    let rehydrating = Some((AccessTier::Cool, RehydratePriority::High));
    let tier = TierState { tier: AccessTier::Archive, changed: Some(time(9)), rehydrating };
    [
        StoredKind::Block { tier: TierState::INFERRED },
        StoredKind::Block { tier },
        StoredKind::Page {
            sequence_number: SequenceNumber::new(7).unwrap(),
            map: PageMapRef { id: [3; 8], number: 5 },
            changed: time(1),
        },
        StoredKind::Append { blocks: 12, is_sealed: true },
    ]
}

fn full(kind: StoredKind) -> BlobRow {
    let content = Content::inline(b"hello"[..].into());
    let blob = StoredBlob {
        created: time(1),
        modified: time(2),
        headers: ContentHeaders {
            content_type: Some("text/plain".to_owned()),
            encoding: Some("gzip".to_owned()),
            language: Some("de".to_owned()),
            md5: Some(Md5([9; 16])),
            cache_control: Some("no-cache".to_owned()),
            disposition: Some("inline".to_owned()),
        },
        lease: Lease::Held {
            id: LeaseId(Guid([7; 16])),
            duration: LeaseDuration::Seconds(15),
            ends: Some(time(3)),
        },
        copy: Some(CopyState {
            id: Guid([4; 16]),
            source: "http://a/c/b".to_owned(),
            status: CopyStatus::Success,
            copied: 5,
            total: 5,
            completed: Some(time(4)),
            description: None,
        }),
        metadata: Metadata::new(vec![("Color".to_owned(), "red".to_owned())]).unwrap(),
        tags: Tags::parse("a=1&b=").unwrap(),
        is_shared: true,
        has_snapshots: true,
        last_snapshot: Some(time(3)),
        deleted: Some(Deletion { time: time(5), until: time(6) }),
        ..StoredBlob::new(kind, content, 5)
    };
    let upload = Some(OpenUpload { id: UploadId([8; 16]), id_bytes: 4 });
    BlobRow { blob: Some(blob), upload, unknown: Fields::default() }
}

fn stored(row: &BlobRow, moves: Moves) -> Vec<u8> {
    row.draft(moves).stamp(time(100)).as_bytes().to_vec()
}

#[test]
fn rows_read_back() {
    for kind in kinds() {
        let plain = BlobRow::of(StoredBlob {
            created: time(100),
            modified: time(100),
            ..StoredBlob::new(kind, Content::default(), 0)
        });
        for row in [full(kind), plain] {
            let read = BlobRow::read(RawRow::new(&stored(&row, Moves::Nothing))).unwrap();
            assert_eq!(read, row);
        }
    }
    let upload = full(kinds()[0]).upload;
    let row = BlobRow { upload, ..BlobRow::default() };
    assert_eq!(BlobRow::read(RawRow::new(&stored(&row, Moves::Nothing))).unwrap(), row);
}

#[test]
fn the_bytes_never_change() {
    let kind = StoredKind::Append { blocks: 2, is_sealed: true };
    let blob = StoredBlob {
        created: time(1),
        modified: time(2),
        metadata: Metadata::new(vec![("Color".to_owned(), "red".to_owned())]).unwrap(),
        tags: Tags::parse("a=1").unwrap(),
        headers: ContentHeaders { language: Some("de".to_owned()), ..ContentHeaders::default() },
        has_snapshots: true,
        ..StoredBlob::new(kind, Content::default(), 7)
    };
    let mut fields = Fields::default();
    blob.write(&mut fields, Moves::Nothing);
    let (created, modified) = (time(1).ticks().to_le_bytes(), time(2).ticks().to_le_bytes());
    let expected: Vec<&[u8]> = vec![
        b"\x01\x01\x0a\x05Color\x03red\x02\x04\x01a\x011\x03\x01\x03\x04\x08\x07\0\0\0\0\0\0\0\x05\x08",
        &created,
        b"\x06\x08",
        &modified,
        b"\x09\x02de\x11\x01\x06\x15\x04\x02\0\0\0",
    ];
    assert_eq!(fields.write(FORMAT), expected.concat());
}

#[test]
fn a_write_moves_the_times_that_it_says() {
    for (moves, created, modified, changed) in [
        (Moves::All, 100, 100, 100),
        (Moves::Pages, 1, 100, 100),
        (Moves::Etag, 1, 100, 1),
        (Moves::Nothing, 1, 2, 1),
    ] {
        let read = BlobRow::read(RawRow::new(&stored(&full(kinds()[2]), moves))).unwrap();
        let blob = read.blob.unwrap();
        assert_eq!((blob.created, blob.modified), (time(created), time(modified)), "{moves:?}");
        assert_eq!(blob.pages().unwrap().1, time(changed), "{moves:?}");
    }
}

/// As a program writes it that does not know of this time.
#[test]
fn pages_of_a_row_that_does_not_say_it_were_changed_with_the_etag() {
    let whole = stored(&full(kinds()[2]), Moves::Nothing);
    let mut found = [None; 2];
    RawRow::new(&whole).find(&[CONTENT, DOCUMENT], &mut found).unwrap();
    let [content, document] = found.map(Option::unwrap);
    let draft = |properties: &[(&'static str, ValueRef<'_>)]| {
        RowDraft::new(properties.iter().copied()).stamp(time(100)).as_bytes().to_vec()
    };
    let older = draft(&[(CONTENT, content), (DOCUMENT, document)]);
    let blob = BlobRow::read(RawRow::new(&older)).unwrap().blob.unwrap();
    assert_eq!(blob.pages().unwrap().1, time(2));
    let damaged = draft(&[(CONTENT, content), (PAGES_CHANGED, ValueRef::Int64(1)), (DOCUMENT, document)]);
    assert!(BlobRow::read(RawRow::new(&damaged)).is_err());
}

#[test]
fn the_largest_row_is_within_what_engines_take() {
    let mut row = full(kinds()[1]);
    let blob = row.blob.as_mut().unwrap();
    blob.metadata = Metadata::new(vec![("a".to_owned(), "v".repeat(8191))]).unwrap();
    let tags = (0..10).map(|n| (format!("{n}{}", "k".repeat(127)), "v".repeat(256)));
    blob.tags = Tags::new(tags.collect()).unwrap();
    (blob.content, blob.length) = (Content::inline(vec![7; 4096].into()), 4096);
    assert!(stored(&row, Moves::Nothing).len() < 64 * 1024);
}

#[test]
fn fields_of_later_versions_are_kept() {
    let mut row = full(kinds()[0]);
    row.unknown.set(200, b"later".to_vec());
    let mut read = BlobRow::read(RawRow::new(&stored(&row, Moves::Nothing))).unwrap();
    read.upload = None;
    let again = BlobRow::read(RawRow::new(&stored(&read, Moves::Nothing))).unwrap();
    assert_eq!(again.unknown, row.unknown);
}

#[test]
fn damage_is_a_fault() {
    let row = full(kinds()[2]);
    let mut fields = Fields::default();
    row.blob.as_ref().unwrap().write(&mut fields, Moves::Nothing);
    let whole = fields.write(FORMAT);
    let parse = |document: &[u8]| parse(document, Content::default(), time(100), Some(time(1)));
    assert!(parse(&whole).is_some());
    for length in 0..whole.len() {
        // A document that ends behind a field may be one of another blob.
        let cut = parse(&whole[..length]);
        assert!(cut.is_none() || cut.unwrap().blob != row.blob, "{length} bytes");
    }
    for tag in [TYPE, LENGTH, SEQUENCE_NUMBER, PAGE_MAP] {
        let mut without = fields.clone();
        without.take(tag);
        assert!(parse(&without.write(FORMAT)).is_none(), "without field {tag}");
    }
    for tag in [
        TYPE,
        LENGTH,
        CREATED,
        MD5,
        LEASE,
        COPY,
        FLAGS,
        DELETED,
        LAST_SNAPSHOT,
        METADATA,
        TAGS,
        PAGE_MAP,
        CONTENT_TYPE,
    ] {
        let mut damaged = fields.clone();
        damaged.set(tag, b"\xff\xff\xff".to_vec());
        assert!(parse(&damaged.write(FORMAT)).is_none(), "field {tag}");
    }
    // The length is that of the content.
    let mut short = full(kinds()[0]);
    short.blob.as_mut().unwrap().length = 4;
    assert!(BlobRow::read(RawRow::new(&stored(&short, Moves::Nothing))).is_err());
}
