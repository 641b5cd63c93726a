//! List Blobs: order, prefixes, hierarchy, pages, and what they cost.

use blob_model::{Metadata, SnapshotTime};
use blob_service::{BlobEntry, BlobPlace, BlobQuery, BlobService, DeleteBlob, DeleteSnapshots, Request};

use crate::kit::{Ground, Rows, blob, container, names};

fn query(limit: usize) -> BlobQuery {
    BlobQuery { limit, ..BlobQuery::default() }
}

/// In the order of their bytes.
const NAMES: [&str; 16] = [
    "%", "+", "A", "a", "a b", "a-b", "a/", "a/b", "a/b/c", "a/c", "ab", "z", "ä", "\u{d7ff}", "\u{ffff}",
    "📦",
];

async fn ground() -> Ground {
    let ground = Ground::with_container().await;
    for name in NAMES {
        ground.put(name, name.as_bytes()).await;
    }
    ground
}

#[tokio::test]
async fn names_are_in_the_order_of_their_bytes() {
    let ground = ground().await;
    for limit in [1, 2, 3, 7, 5000] {
        assert_eq!(names(&ground.list(&query(limit)).await), NAMES, "pages of {limit}");
    }
    for prefix in ["a", "a/", "a/b", "\u{ffff}", "zz", "a b"] {
        let listed = ground.list(&BlobQuery { prefix: prefix.to_owned(), ..query(2) }).await;
        let expected: Vec<_> = NAMES.into_iter().filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(names(&listed), expected, "{prefix}");
    }
}

/// Content of 4 KiB is kept in the row.
#[tokio::test]
async fn small_content_does_not_shorten_a_page() {
    let ground = Ground::with_container().await;
    for number in 0..3000 {
        ground.put(&format!("{number:04}"), &[7; 4096]).await;
    }
    let page = ground.service.list_blobs(&container("abc"), &query(5000)).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (3000, None));
}

#[tokio::test]
async fn a_hierarchy_shows_what_is_below_a_prefix_once() {
    let ground = ground().await;
    let walk = async |prefix: &str, delimiter: &str, limit| {
        let query =
            BlobQuery { prefix: prefix.to_owned(), delimiter: Some(delimiter.to_owned()), ..query(limit) };
        names(&ground.list(&query).await)
    };
    for limit in [1, 2, 100] {
        let top = walk("", "/", limit).await;
        assert_eq!(top[..8], ["%", "+", "A", "a", "a b", "a-b", "[a/]", "ab"]);
        assert_eq!(walk("a/", "/", limit).await, ["a/", "a/b", "[a/b/]", "a/c"]);
        assert_eq!(walk("a", "/", limit).await, ["a", "a b", "a-b", "[a/]", "ab"]);
        assert_eq!(walk("a", "b/", limit).await, ["a", "a b", "a-b", "a/", "a/b", "[a/b/]", "a/c", "ab"]);
    }
    // A marker may name what is gone.
    let from = Some(BlobPlace { name: "a-a".to_owned(), snapshot: SnapshotTime::BASE });
    let page = ground.service.list_blobs(&container("abc"), &BlobQuery { from, ..query(2) }).await.unwrap();
    assert_eq!(names(&page.entries), ["a-b", "a/"]);
    assert_eq!(page.next, Some(BlobPlace { name: "a/b".to_owned(), snapshot: SnapshotTime::BASE }));
}

#[tokio::test]
async fn snapshots_come_before_their_blob() {
    let ground = Ground::with_container().await;
    for name in ["a", "b"] {
        ground.put(name, b"x").await;
        for _ in 0..3 {
            ground
                .service
                .snapshot_blob(&blob(name), Metadata::default(), &Request::default())
                .await
                .unwrap();
        }
    }
    for limit in [1, 2, 100] {
        let with = BlobQuery { snapshots: true, ..query(limit) };
        let listed = ground.list(&with).await;
        assert_eq!(names(&listed), ["a@", "a@", "a@", "a", "b@", "b@", "b@", "b"]);
        let times: Vec<_> = listed
            .iter()
            .filter_map(|entry| match entry {
                BlobEntry::Blob(listed) => Some((listed.name.clone(), listed.snapshot?)),
                BlobEntry::Prefix(_) => None,
            })
            .collect();
        assert!(times.is_sorted(), "the oldest first");
        assert_eq!(names(&ground.list(&query(limit)).await), ["a", "b"]);
    }
}

#[tokio::test]
async fn a_page_costs_what_it_shows() {
    let counting = Rows::counting();
    let service = BlobService::new(counting.clone(), std::sync::Arc::new(store::MemoryObjects::new()));
    let ground = Ground { service, ..Ground::new() };
    ground
        .service
        .create_container(&container("abc"), Metadata::default(), blob_model::PublicAccess::None)
        .await
        .unwrap();
    for n in 0..1500 {
        ground.put(&format!("dir{}/{n:04}", n / 500), b"x").await;
    }
    for _ in 0..300 {
        ground
            .service
            .snapshot_blob(&blob("dir0/0005"), Metadata::default(), &Request::default())
            .await
            .unwrap();
    }
    let cost = async |query: &BlobQuery| {
        counting.reset();
        let page = ground.service.list_blobs(&container("abc"), query).await.unwrap();
        (page.entries.len(), counting.examined())
    };
    let (items, rows) = cost(&query(100)).await;
    assert!(items == 100 && rows < 220, "{rows} rows for a page of 100");
    let (items, rows) = cost(&BlobQuery { prefix: "dir1/".to_owned(), ..query(10) }).await;
    assert!(items == 10 && rows <= 20, "{rows} rows for a page of 10 below a prefix");
    let (items, rows) = cost(&BlobQuery { delimiter: Some("/".to_owned()), ..query(5000) }).await;
    assert!(items == 3 && rows < 50, "{rows} rows for three prefixes above 1,500 blobs");
    let delete = DeleteBlob { snapshots: Some(DeleteSnapshots::Only), ..DeleteBlob::default() };
    ground.service.delete_blob(&blob("dir0/0005"), delete, &Request::default()).await.unwrap();
}
