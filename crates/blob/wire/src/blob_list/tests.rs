//! Lists to the byte, and read back. Recorded ones are in `tests/recordings.rs`.

use super::*;
use blob_model::{
    AccessTier, ContentHeaders, CopyStatus, Etag, Guid, LeaseView, Md5, Metadata, RehydratePriority,
    SequenceNumber, Tags,
};

fn time(text: &str) -> DateTime {
    DateTime::parse(text).unwrap()
}

fn properties() -> BlobProperties {
    BlobProperties {
        created: time("2022-07-20T21:11:34Z"),
        etag: Etag::parse("0x8DA6A946CF98D19").unwrap(),
        length: 11,
        content: ContentHeaders {
            content_type: Some("application/octet-stream".to_owned()),
            md5: Some(Md5::of(b"hello world")),
            ..ContentHeaders::default()
        },
        kind: BlobKind::Block { tier: TierState::INFERRED },
        lease: Some(LeaseView { status: "unlocked", state: "available", duration: None }),
        copy: None,
        metadata: Metadata::default(),
        tags: Tags::default(),
    }
}

fn blob(name: &str, properties: BlobProperties) -> ListedBlob {
    let tag_count = properties.tags.len();
    ListedBlob {
        name: name.to_owned(),
        snapshot: None,
        version: None,
        deleted: None,
        has_versions_only: false,
        properties: Some(properties),
        tag_count,
    }
}

const NONE: BlobList<'static> = BlobList {
    endpoint: "https://acct.blob.core.windows.net/",
    container: "c",
    prefix: "",
    marker: "",
    max_results: None,
    delimiter: "",
    include: BlobInclude {
        snapshots: true,
        metadata: true,
        uncommitted: true,
        copy: true,
        deleted: true,
        tags: true,
        versions: true,
        deleted_with_versions: false,
        immutability_policy: false,
        legal_hold: false,
        permissions: false,
    },
    items: &[],
    next_marker: "",
};

/// The list without what begins every one of this container, and read back.
fn check(list: &BlobList<'_>, expected: &str) {
    let document = String::from_utf8(list.write()).unwrap();
    let start = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\" ContainerName=\"c\">";
    assert_eq!(document.strip_prefix(start), Some(expected));
    let page = read(document.as_bytes()).unwrap();
    assert_eq!((page.items.as_slice(), page.next_marker.as_str()), (list.items, list.next_marker));
}

/// One blob's element, between the tags that all of them have.
fn check_blob(blob: ListedBlob, expected: &str) {
    let items = [BlobItem::Blob(Box::new(blob))];
    let expected =
        format!("<Blobs><Blob>{expected}<OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>");
    check(&BlobList { items: &items, ..NONE }, &expected);
}

const START: &str = "<Creation-Time>Wed, 20 Jul 2022 21:11:34 GMT</Creation-Time><Last-Modified>Wed, 20 Jul 2022 21:11:34 GMT</Last-Modified><Etag>0x8DA6A946CF98D19</Etag><Content-Length>11</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5><Cache-Control /><Content-Disposition />";
const BLOCK: &str =
    "<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>";
const LEASE: &str = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>";
const ENCRYPTED: &str = "<ServerEncrypted>true</ServerEncrypted>";

#[test]
fn a_list_says_what_it_was_asked() {
    check(&NONE, "<Blobs /><NextMarker /></EnumerationResults>");
    let items = [BlobItem::Prefix("a/b & c/".to_owned()), BlobItem::Prefix("a/\u{ffff}/".to_owned())];
    let list = BlobList {
        prefix: "a/",
        marker: "2!4!MDAw",
        max_results: Some("2"),
        delimiter: "/",
        items: &items,
        next_marker: "2!4!MDAx",
        ..NONE
    };
    check(
        &list,
        "<Prefix>a/</Prefix><Marker>2!4!MDAw</Marker><MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>a/b &amp; c/</Name></BlobPrefix><BlobPrefix><Name Encoded=\"true\">a%2F%EF%BF%BF%2F</Name></BlobPrefix></Blobs><NextMarker>2!4!MDAx</NextMarker></EnumerationResults>",
    );
}

#[test]
fn a_blob_has_its_elements_in_order() {
    check_blob(
        blob("blob1", properties()),
        &format!("<Name>blob1</Name><Properties>{START}{BLOCK}{LEASE}{ENCRYPTED}</Properties>"),
    );
    let page = BlobKind::Page { sequence_number: SequenceNumber::new(7).unwrap() };
    check_blob(
        blob("page", BlobProperties { kind: page, ..properties() }),
        &format!(
            "<Name>page</Name><Properties>{START}<x-ms-blob-sequence-number>7</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType>{LEASE}{ENCRYPTED}</Properties>"
        ),
    );
    let sealed = BlobKind::Append { blocks: 0, is_sealed: true };
    check_blob(
        blob("log", BlobProperties { kind: sealed, ..properties() }),
        &format!(
            "<Name>log</Name><Properties>{START}<BlobType>AppendBlob</BlobType>{LEASE}{ENCRYPTED}<Sealed>true</Sealed></Properties>"
        ),
    );
}

#[test]
fn a_tier_tells_that_it_was_set_and_when() {
    let tier = TierState {
        tier: AccessTier::Archive,
        changed: Some(time("2022-07-20T21:11:34Z")),
        rehydrating: Some((AccessTier::Cool, RehydratePriority::Standard)),
    };
    check_blob(
        blob("b", BlobProperties { kind: BlobKind::Block { tier }, ..properties() }),
        &format!(
            "<Name>b</Name><Properties>{START}<BlobType>BlockBlob</BlobType><AccessTier>Archive</AccessTier><ArchiveStatus>rehydrate-pending-to-cool</ArchiveStatus><RehydratePriority>Standard</RehydratePriority><AccessTierChangeTime>Wed, 20 Jul 2022 21:11:34 GMT</AccessTierChangeTime>{LEASE}{ENCRYPTED}</Properties>"
        ),
    );
}

#[test]
fn snapshots_versions_and_deleted_blobs_have_no_lease() {
    let snapshot = SnapshotTime(time("2022-07-13T23:46:14.4048519Z"));
    let unleased = || BlobProperties { lease: None, ..properties() };
    check_blob(
        ListedBlob { snapshot: Some(snapshot), ..blob("b", unleased()) },
        &format!(
            "<Name>b</Name><Snapshot>2022-07-13T23:46:14.4048519Z</Snapshot><Properties>{START}{BLOCK}{ENCRYPTED}</Properties>"
        ),
    );
    let version = Some(ListedVersion { id: snapshot, is_current: true });
    check_blob(
        ListedBlob { version, ..blob("b", properties()) },
        &format!(
            "<Name>b</Name><VersionId>2022-07-13T23:46:14.4048519Z</VersionId><IsCurrentVersion>true</IsCurrentVersion><Properties>{START}{BLOCK}{LEASE}{ENCRYPTED}</Properties>"
        ),
    );
    let deleted = Some(DeletedBlob { time: time("2022-07-21T00:00:00Z"), remaining_days: 6 });
    check_blob(
        ListedBlob { deleted, ..blob("b", unleased()) },
        &format!(
            "<Name>b</Name><Deleted>true</Deleted><Properties>{START}{BLOCK}{ENCRYPTED}<DeletedTime>Thu, 21 Jul 2022 00:00:00 GMT</DeletedTime><RemainingRetentionDays>6</RemainingRetentionDays></Properties>"
        ),
    );
    check_blob(
        ListedBlob { has_versions_only: true, ..blob("b", properties()) },
        &format!(
            "<Name>b</Name><HasVersionsOnly>true</HasVersionsOnly><Properties>{START}{BLOCK}{LEASE}{ENCRYPTED}</Properties>"
        ),
    );
}

#[test]
fn what_was_never_committed_has_few_properties() {
    let uncommitted = ListedBlob { properties: None, tag_count: 0, ..blob("b", properties()) };
    check_blob(
        uncommitted,
        &format!(
            "<Name>b</Name><Properties><Content-Length>0</Content-Length>{BLOCK}{LEASE}{ENCRYPTED}</Properties>"
        ),
    );
}

#[test]
fn copies_metadata_and_tags_are_shown_if_asked_for() {
    let copy = CopyState {
        id: Guid::parse("e9688065-83ae-47a5-a9c0-aeccff18b9ed").unwrap(),
        source: "https://acct.blob.core.windows.net/c/blob1?a&b".to_owned(),
        status: CopyStatus::Success,
        copied: 11,
        total: 11,
        completed: Some(time("2022-08-01T23:48:20Z")),
        description: None,
    };
    let full = BlobProperties {
        copy: Some(copy),
        metadata: Metadata::new(vec![("Number".to_owned(), "1".to_owned())]).unwrap(),
        tags: Tags::parse("tag1=first+tag&a=b").unwrap(),
        ..properties()
    };
    check_blob(
        blob("b", full.clone()),
        &format!(
            "<Name>b</Name><Properties>{START}{BLOCK}{LEASE}<CopyId>e9688065-83ae-47a5-a9c0-aeccff18b9ed</CopyId><CopySource>https://acct.blob.core.windows.net/c/blob1?a&amp;b</CopySource><CopyStatus>success</CopyStatus><CopyProgress>11/11</CopyProgress><CopyCompletionTime>Mon, 01 Aug 2022 23:48:20 GMT</CopyCompletionTime>{ENCRYPTED}<TagCount>2</TagCount></Properties><Metadata><Number>1</Number></Metadata><Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag><Tag><Key>tag1</Key><Value>first tag</Value></Tag></TagSet></Tags>"
        ),
    );
    let items = [BlobItem::Blob(Box::new(blob("b", full)))];
    let document = BlobList { include: BlobInclude::default(), items: &items, ..NONE }.write();
    let shown = String::from_utf8(document).unwrap();
    let expected = format!(
        "<Blob><Name>b</Name><Properties>{START}{BLOCK}{LEASE}{ENCRYPTED}<TagCount>2</TagCount></Properties><OrMetadata /></Blob>"
    );
    assert!(shown.contains(&expected), "{shown}");
}
