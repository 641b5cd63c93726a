//! Containers and blobs, through this client, on Partita and on Azurite.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;

use crate::support::{blob_services, container, is_partita, unique};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use partita_client::{
    Blob, BlobEntry, BlobItem, BlobType, Container, ContentHeaders, DeleteSnapshots, Error, PublicAccess,
    UploadOptions,
};

const ALL: usize = 16 << 20;

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().code().unwrap_or("none").to_owned()
}

/// Bytes that differ from place to place.
fn content(length: usize) -> Bytes {
    (0..length).map(|n| (n / 251 + n) as u8).collect::<Vec<_>>().into()
}

async fn text(blob: &Blob) -> String {
    String::from_utf8(blob.read(ALL).await.unwrap().to_vec()).unwrap()
}

async fn names(list: impl futures_util::Stream<Item = Result<BlobEntry, Error>>) -> Vec<String> {
    list.map_ok(|entry| entry.name).try_collect().await.unwrap()
}

#[tokio::test]
async fn containers_are_created_listed_and_dropped() {
    for service in blob_services() {
        let prefix = unique("list");
        let mut expected = Vec::new();
        for letter in ["c", "a", "b"] {
            let container = service.container(&format!("{prefix}{letter}")).unwrap();
            assert!(!container.exists().await.unwrap());
            container.create(&pairs(&[("letter", letter)]), PublicAccess::Private).await.unwrap();
            assert_eq!(
                code(container.create(&pairs(&[]), PublicAccess::Private).await),
                "ContainerAlreadyExists"
            );
            container.create_if_missing().await.unwrap();
            assert!(container.exists().await.unwrap());
            expected.push((container.name().to_owned(), pairs(&[("letter", letter)])));
        }
        expected.sort();
        let found: Vec<_> = service.containers(&prefix).try_collect().await.unwrap();
        let found: Vec<_> = found.into_iter().map(|entry| (entry.name, entry.metadata)).collect();
        assert_eq!(found, expected);
        for (name, _) in expected {
            let container = service.container(&name).unwrap();
            container.set_metadata(&pairs(&[("b", "2")])).await.unwrap();
            assert_eq!(container.properties().await.unwrap().metadata, pairs(&[("b", "2")]));
            container.drop().await.unwrap();
            assert_eq!(code(container.drop().await), "ContainerNotFound");
        }
        assert!(matches!(service.container("No_name"), Err(Error::Invalid(_))));
    }
}

#[tokio::test]
async fn content_of_any_length_comes_back() {
    for service in blob_services() {
        let container = container(&service, "content").await;
        const BLOCK: usize = 64 * 1024;
        let options = UploadOptions::new().block_bytes(BLOCK).parallel(3);
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 7] {
            let (blob, sent) = (container.blob(&format!("{length}")).unwrap(), content(length));
            let written = blob.upload_with(sent.clone(), &options).await.unwrap();
            let download = blob.download().await.unwrap();
            assert_eq!(download.properties().etag, written.etag);
            assert_eq!((download.properties().length, download.remaining()), (length as u64, length as u64));
            assert!(download.collect(length).await.unwrap() == sent, "{length}");
            let properties = blob.properties().await.unwrap();
            assert_eq!((properties.length, properties.blob_type), (length as u64, BlobType::Block));
            let blocks: Vec<u64> = blob.blocks().await.unwrap().iter().map(|block| block.length).collect();
            match length {
                0..=BLOCK => assert!(blocks.len() <= 1, "{blocks:?}"),
                _ => assert_eq!(blocks.iter().sum::<u64>(), length as u64),
            }
            assert!(blocks.iter().all(|block| *block <= BLOCK as u64), "{blocks:?}");
            if length > 0 {
                assert!(matches!(blob.read(length - 1).await, Err(Error::Invalid(_))), "{length}");
            }
        }
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_is_uploaded_in_its_order_and_a_broken_one_writes_nothing() {
    for service in blob_services() {
        let container = container(&service, "stream").await;
        let blob = container.blob("a").unwrap();
        let options = UploadOptions::new().block_bytes(10_000).parallel(4);
        let sent = content(123_456);
        let pieces: Vec<_> =
            sent.chunks(777).map(|piece| Ok::<_, &str>(Bytes::copy_from_slice(piece))).collect();
        blob.upload_stream(stream::iter(pieces.clone()), &options).await.unwrap();
        assert!(blob.read(ALL).await.unwrap() == sent);
        let broken = stream::iter(pieces.into_iter().take(100)).chain(stream::iter([Err("no disk")]));
        let error = blob.upload_stream(broken, &options).await.unwrap_err();
        assert!(matches!(&error, Error::Source(why) if why == "no disk"), "{error}");
        assert!(blob.read(ALL).await.unwrap() == sent, "it is as it was");
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn ranges_are_those_that_were_asked_for() {
    for service in blob_services() {
        let container = container(&service, "ranges").await;
        let (blob, all) = (container.blob("a").unwrap(), content(1000));
        blob.upload(all.clone()).await.unwrap();
        let range = async |range: std::ops::Range<u64>| {
            let download = blob.download_range(range).await.unwrap();
            assert_eq!(download.properties().length, 1000, "of the whole");
            download.collect(ALL).await.unwrap()
        };
        assert!(range(0..1).await == all[0..1]);
        assert!(range(100..200).await == all[100..200]);
        assert!(range(999..1000).await == all[999..]);
        assert!(range(990..2000).await == all[990..], "cut at the end");
        assert!(blob.download_range(900..).await.unwrap().collect(ALL).await.unwrap() == all[900..]);
        assert!(blob.download_range(..=9).await.unwrap().collect(ALL).await.unwrap() == all[..10]);
        if is_partita(&service) {
            assert_eq!(blob.download_range(1000..).await.unwrap_err().status(), Some(416));
        }
        assert!(matches!(blob.download_range(5..5).await, Err(Error::Invalid(_))));
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn conditions_of_a_handle_count() {
    for service in blob_services() {
        let container = container(&service, "conditions").await;
        let blob = container.blob("a").unwrap();
        assert_eq!(blob.download().await.unwrap_err().code(), Some("BlobNotFound"));
        let first = blob.if_absent().upload("1").await.unwrap();
        assert!(blob.if_absent().upload("2").await.unwrap_err().is_conflict());
        // In blocks too: the condition counts at the end.
        let blocks = UploadOptions::new().block_bytes(1);
        assert!(blob.if_absent().upload_with("23", &blocks).await.unwrap_err().is_conflict());
        let second = blob.if_match(&first.etag).upload("2").await.unwrap();
        assert!(blob.if_match(&first.etag).upload("3").await.unwrap_err().is_changed());
        assert!(blob.if_match(&first.etag).download().await.unwrap_err().is_changed());
        assert!(blob.if_match(&first.etag).set_metadata(&pairs(&[])).await.unwrap_err().is_changed());
        assert!(blob.if_match(&first.etag).delete(DeleteSnapshots::Refuse).await.unwrap_err().is_changed());
        assert_eq!(text(&blob.if_match(&second.etag)).await, "2");
        blob.if_exists().upload("3").await.unwrap();
        blob.delete(DeleteSnapshots::Refuse).await.unwrap();
        assert!(!blob.exists().await.unwrap());
        assert_eq!(code(blob.delete(DeleteSnapshots::Refuse).await), "BlobNotFound");
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn headers_metadata_and_tags_are_kept_and_replaced() {
    for service in blob_services() {
        let container = container(&service, "properties").await;
        let headers = ContentHeaders {
            content_type: Some("text/plain; charset=utf-8".to_owned()),
            encoding: Some("gzip".to_owned()),
            language: Some("de".to_owned()),
            cache_control: Some("no-cache".to_owned()),
            disposition: Some("attachment; filename=\"a b\"".to_owned()),
            md5: None,
        };
        let (metadata, tags) =
            (pairs(&[("a", "1"), ("b_c", "x y; z")]), pairs(&[("k 1", "v/=:+"), ("l", "")]));
        let options =
            UploadOptions::new().headers(headers.clone()).metadata(metadata.clone()).tags(tags.clone());
        // As a whole, and in blocks.
        for options in [options.clone(), options.block_bytes(2)] {
            let blob = container.blob("a").unwrap();
            blob.upload_with("abc", &options).await.unwrap();
            let found = blob.properties().await.unwrap();
            assert_eq!((&found.metadata, found.tag_count), (&metadata, 2));
            assert_eq!(ContentHeaders { md5: None, ..found.headers }, headers);
            assert_eq!(blob.download().await.unwrap().properties().metadata, metadata);
            assert_eq!(blob.tags().await.unwrap(), tags);
            let listed: Vec<_> =
                container.blobs().with_metadata().with_tags().stream().try_collect().await.unwrap();
            assert_eq!((&listed[0].properties.metadata, &listed[0].tags), (&metadata, &tags));
            blob.set_tags(&pairs(&[("m", "n")])).await.unwrap();
            blob.set_metadata(&pairs(&[("d", "2")])).await.unwrap();
            blob.set_headers(&ContentHeaders::of_type("image/png")).await.unwrap();
            assert_eq!(blob.tags().await.unwrap(), pairs(&[("m", "n")]));
            let found = blob.properties().await.unwrap();
            assert_eq!(found.metadata, pairs(&[("d", "2")]));
            assert_eq!(found.headers.content_type.as_deref(), Some("image/png"));
            assert_eq!((found.headers.encoding, found.headers.language), (None, None));
        }
        let blob = container.blob("a").unwrap();
        assert!(matches!(blob.set_metadata(&pairs(&[("1a", "x")])).await, Err(Error::Invalid(_))));
        assert!(matches!(blob.set_tags(&pairs(&[("ä", "x")])).await, Err(Error::Invalid(_))));
        container.drop().await.unwrap();
    }
}

/// Names that need care in an address, in XML or in order.
const NAMES: [&str; 14] = [
    " a b",
    "%41",
    "+",
    "A",
    "a",
    "a&b<c>",
    "a-b",
    "a/b",
    "a/c/d",
    "a?x=y#z",
    "ab",
    "b//c",
    "x/../y",
    "ü/日本",
];

async fn fill(container: &Container, names: &[&str]) {
    for name in names {
        container.blob(name).unwrap().upload(format!("of {name}")).await.unwrap();
    }
}

#[tokio::test]
async fn names_of_all_kinds_are_written_read_and_listed() {
    for service in blob_services() {
        let container = container(&service, "names").await;
        fill(&container, &NAMES).await;
        for name in NAMES {
            assert_eq!(text(&container.blob(name).unwrap()).await, format!("of {name}"));
        }
        for page_size in [1, 5, 5000] {
            assert_eq!(names(container.blobs().page_size(page_size).stream()).await, NAMES);
        }
        assert_eq!(names(container.blobs().prefix("a/").stream()).await, ["a/b", "a/c/d"]);
        let too_long = "x".repeat(1025);
        for name in ["", &too_long, &"a/".repeat(254)] {
            assert!(matches!(container.blob(name), Err(Error::Invalid(_))), "{name}");
        }
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_hierarchy_shows_each_beginning_once() {
    for service in blob_services() {
        let container = container(&service, "hierarchy").await;
        fill(&container, &["a", "a/1", "a/2", "a/b/3", "b", "c/d/e"]).await;
        let level = async |prefix: &str, size| {
            let list = container.blobs().prefix(prefix).page_size(size).hierarchy("/");
            let items: Vec<BlobItem> = list.try_collect().await.unwrap();
            let shown = items.into_iter().map(|item| match item {
                BlobItem::Blob(blob) => blob.name,
                BlobItem::Prefix(prefix) => format!("[{prefix}]"),
            });
            let mut shown: Vec<String> = shown.collect();
            if !is_partita(&service) {
                // Azurite shows the beginnings of a page before its blobs.
                shown.sort_by_key(|name| name.trim_matches(['[', ']']).to_owned());
            }
            shown.join(" ")
        };
        for size in [1, 2, 5000] {
            assert_eq!(level("", size).await, "a [a/] b [c/]");
            assert_eq!(level("a/", size).await, "a/1 a/2 [a/b/]");
            assert_eq!(level("c/", size).await, "[c/d/]");
            assert_eq!(level("d", size).await, "");
        }
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was() {
    for service in blob_services() {
        let container = container(&service, "snapshots").await;
        let blob = container.blob("a").unwrap();
        blob.upload_with("old", &UploadOptions::new().metadata(pairs(&[("v", "1")]))).await.unwrap();
        let snapshot = blob.snapshot().await.unwrap();
        blob.upload("new").await.unwrap();
        let own = blob.snapshot_with(&pairs(&[("v", "2")])).await.unwrap();
        assert_eq!((text(&snapshot).await, text(&own).await), ("old".to_owned(), "new".to_owned()));
        assert_eq!(snapshot.properties().await.unwrap().metadata, pairs(&[("v", "1")]));
        assert_eq!(own.properties().await.unwrap().metadata, pairs(&[("v", "2")]));
        let listed: Vec<_> = container.blobs().with_snapshots().stream().try_collect().await.unwrap();
        let mut times: Vec<_> = listed.into_iter().filter_map(|entry| entry.snapshot).collect();
        times.sort();
        assert_eq!(times, [snapshot.snapshot_time().unwrap(), own.snapshot_time().unwrap()]);
        assert_eq!(code(blob.delete(DeleteSnapshots::Refuse).await), "SnapshotsPresent");
        snapshot.delete(DeleteSnapshots::Refuse).await.unwrap();
        assert!(!snapshot.exists().await.unwrap() && own.exists().await.unwrap());
        blob.delete(DeleteSnapshots::Only).await.unwrap();
        assert!(!own.exists().await.unwrap() && blob.exists().await.unwrap());
        blob.snapshot().await.unwrap();
        blob.delete(DeleteSnapshots::Include).await.unwrap();
        assert!(names(container.blobs().with_snapshots().stream()).await.is_empty());
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_blob_and_a_snapshot_are_copied() {
    for service in blob_services() {
        let container = container(&service, "copies").await;
        let source = container.blob("folder/source & more").unwrap();
        source.upload_with("old", &UploadOptions::new().content_type("text/plain")).await.unwrap();
        let snapshot = source.snapshot().await.unwrap();
        source.upload("new").await.unwrap();
        for (from, expected) in [(&source, "new"), (&snapshot, "old")] {
            let copy = container.blob("copy").unwrap();
            copy.copy_from(&from.url()).await.unwrap();
            assert_eq!(text(&copy).await, expected);
            let state = copy.properties().await.unwrap().copy.unwrap();
            assert_eq!(state.status, "success");
        }
        let missing = container.blob("missing").unwrap().url();
        let refused = container.blob("copy").unwrap().copy_from(&missing).await.unwrap_err();
        assert_eq!(refused.status(), Some(404), "{refused}");
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn an_append_blob_grows_at_its_end() {
    for service in blob_services() {
        let container = container(&service, "append").await;
        let log = container.blob("log").unwrap();
        log.if_absent().create_append(&UploadOptions::new().content_type("text/plain")).await.unwrap();
        assert!(log.if_absent().create_append(&UploadOptions::new()).await.unwrap_err().is_conflict());
        assert_eq!(log.append("one ").await.unwrap(), 0);
        assert_eq!(log.append("two ").await.unwrap(), 4);
        log.append_at(8, "three").await.unwrap();
        assert_eq!(code(log.append_at(8, "again").await), "AppendPositionConditionNotMet");
        assert_eq!(text(&log).await, "one two three");
        let found = log.properties().await.unwrap();
        assert_eq!((found.blob_type, found.is_sealed), (BlobType::Append, false));
        log.seal().await.unwrap();
        assert_eq!(code(log.append("more").await), "BlobIsSealed");
        assert!(log.properties().await.unwrap().is_sealed);
        container.drop().await.unwrap();
    }
}

#[tokio::test]
async fn pages_are_written_in_place() {
    for service in blob_services() {
        let container = container(&service, "pages").await;
        let disk = container.blob("disk").unwrap();
        disk.create_pages(4096, 7, &UploadOptions::new()).await.unwrap();
        disk.write_pages(512, content(1024)).await.unwrap();
        disk.write_pages(3584, content(512)).await.unwrap();
        assert_eq!(disk.page_ranges().await.unwrap(), [512..1536, 3584..4096]);
        disk.clear_pages(1024..1536).await.unwrap();
        assert_eq!(disk.page_ranges().await.unwrap(), [512..1024, 3584..4096]);
        let mut expected = vec![0; 4096];
        expected[512..1024].copy_from_slice(&content(512));
        expected[3584..].copy_from_slice(&content(512));
        assert!(disk.read(ALL).await.unwrap() == expected);
        let found = disk.properties().await.unwrap();
        assert_eq!((found.blob_type, found.sequence_number), (BlobType::Page, Some(7)));
        assert!(matches!(disk.write_pages(1, content(512)).await, Err(Error::Invalid(_))));
        assert!(matches!(disk.write_pages(0, content(5)).await, Err(Error::Invalid(_))));
        container.drop().await.unwrap();
    }
}
