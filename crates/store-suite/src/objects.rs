//! The promises of [`Objects`], one function each. That chunks survive crashes is shown by the crash tests of each keeper.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use model::DateTime;
use store::{CHUNK_BYTES, CHUNK_BYTES_MAX, ChunkPart, FaultKind, ObjectId, Objects};

use crate::fixtures::fault_kind;

type Shared = Arc<dyn Objects>;

/// `open` returns a new keeper without objects.
pub async fn run<F, Opening>(open: F)
where
    F: Fn() -> Opening,
    Opening: Future<Output = Shared>,
{
    macro_rules! promises {
        ($($promise:path),* $(,)?) => { $(
            let objects = open().await;
            $promise(objects.clone()).await;
            objects.close().await;
        )* };
    }
    promises!(
        chunks_read_back_byte_for_byte,
        parts_are_bytes_of_their_chunks,
        what_was_never_put_is_not_there,
        a_chunk_can_be_put_again,
        a_chunk_that_is_empty_or_too_long_is_refused,
        removed_objects_are_gone_and_the_others_stay,
        objects_are_listed_in_order_and_resumed,
        a_list_under_way_misses_nothing_that_stays,
        many_writers_lose_no_chunk,
        readers_see_whole_chunks_or_none,
        a_closed_keeper_refuses,
    );
}

/// The object with this number: later ones are named later.
fn object(number: i64) -> ObjectId {
    let named = DateTime::from_ticks(DateTime::MIN_STORED.ticks() + number).unwrap();
    ObjectId::new(named, (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
}

/// Bytes that differ by object, chunk and place.
fn content(object: i64, number: u32, bytes: usize) -> Bytes {
    let seed = (object as u32).wrapping_mul(31).wrapping_add(number.wrapping_mul(7));
    (0..bytes as u32).map(|at| (seed.wrapping_add(at).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

async fn names(objects: &Shared, page: usize) -> Vec<ObjectId> {
    let mut all = Vec::new();
    let mut from = Some(ObjectId::FIRST);
    while let Some(start) = from {
        let found = objects.list(start, page).await.unwrap();
        assert!(found.objects.len() <= page && found.objects.iter().all(|object| *object >= start));
        all.extend(found.objects);
        from = found.next;
    }
    all
}

/// A chunk, or that there is none. What is at hand is the same, if anything is.
async fn get(objects: &Shared, object: ObjectId, number: u32) -> Option<Bytes> {
    let found = objects.get(object, number).await.unwrap();
    let at_hand = objects.at_hand(object, number);
    assert!(at_hand.is_none() || at_hand == found, "chunk {number} of {object} is at hand and another one");
    found
}

pub async fn chunks_read_back_byte_for_byte(objects: Shared) {
    let sizes = [1, 7, 511, 4096, 65_537, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES_MAX];
    for (number, bytes) in (0..).zip(sizes) {
        objects.put(object(1), number, content(1, number, bytes)).await.unwrap();
        // At once, and not only when it is durable.
        assert_eq!(get(&objects, object(1), number).await, Some(content(1, number, bytes)));
    }
    // Chunks may come in any order, and with gaps.
    objects.put(object(1), u32::MAX, content(1, 9, 5)).await.unwrap();
    objects.put(object(2), 0, content(2, 0, 5)).await.unwrap();
    objects.sync(&[object(1), object(2)]).await.unwrap();
    for (number, bytes) in (0..).zip(sizes) {
        assert_eq!(get(&objects, object(1), number).await, Some(content(1, number, bytes)));
    }
    assert_eq!(get(&objects, object(1), u32::MAX).await, Some(content(1, 9, 5)));
    assert_eq!(get(&objects, object(2), 0).await, Some(content(2, 0, 5)));
}

pub async fn parts_are_bytes_of_their_chunks(objects: Shared) {
    let sizes = [1, 65_537, CHUNK_BYTES / 2, CHUNK_BYTES - 1, CHUNK_BYTES_MAX];
    for is_durable in [false, true] {
        for (number, bytes) in (0..).zip(sizes) {
            let chunk = content(1, number, bytes);
            if !is_durable {
                objects.put(object(1), number, chunk.clone()).await.unwrap();
            }
            for within in
                [0..1, 0..bytes, bytes - 1..bytes, bytes / 3..bytes / 2, 65_535..70_000, bytes - 1..bytes + 1]
            {
                let whole = chunk
                    .get(within.clone())
                    .map(|part| ChunkPart { bytes: Bytes::copy_from_slice(part), chunk_bytes: bytes });
                let part = objects.part(object(1), number, within.clone()).await.unwrap();
                for part in [part, objects.part_at_hand(object(1), number, within.clone())] {
                    assert!(part.is_none() || part == whole, "bytes {within:?} of {bytes}");
                }
            }
        }
        objects.sync(&[object(1)]).await.unwrap();
    }
    assert_eq!(objects.part(object(1), 77, 0..1).await.unwrap(), None);
    objects.remove(&[object(1)]).await.unwrap();
    for number in 0..sizes.len() as u32 {
        assert_eq!(objects.part(object(1), number, 0..1).await.unwrap(), None);
        assert_eq!(objects.part_at_hand(object(1), number, 0..1), None);
    }
}

pub async fn what_was_never_put_is_not_there(objects: Shared) {
    assert_eq!(get(&objects, object(1), 0).await, None);
    objects.put(object(1), 1, content(1, 1, 5)).await.unwrap();
    for (other, number) in [(object(1), 0), (object(1), 2), (object(2), 1)] {
        assert_eq!(get(&objects, other, number).await, None);
    }
    objects.sync(&[object(3)]).await.unwrap();
    assert_eq!(names(&objects, 10).await, [object(1)]);
}

pub async fn a_chunk_can_be_put_again(objects: Shared) {
    for _ in 0..3 {
        objects.put(object(1), 0, content(1, 0, 1000)).await.unwrap();
        objects.sync(&[object(1)]).await.unwrap();
    }
    assert_eq!(get(&objects, object(1), 0).await, Some(content(1, 0, 1000)));
    assert_eq!(names(&objects, 10).await, [object(1)]);
}

pub async fn a_chunk_that_is_empty_or_too_long_is_refused(objects: Shared) {
    for bytes in [0, CHUNK_BYTES_MAX + 1] {
        assert_eq!(fault_kind(objects.put(object(1), 0, Bytes::from(vec![0; bytes])).await), FaultKind::Bug);
    }
    assert_eq!(names(&objects, 10).await, []);
}

pub async fn removed_objects_are_gone_and_the_others_stay(objects: Shared) {
    for n in 0..6 {
        for number in 0..3 {
            objects.put(object(n), number, content(n, number, 2000)).await.unwrap();
        }
    }
    let all: Vec<ObjectId> = (0..6).map(object).collect();
    objects.sync(&all).await.unwrap();
    // Twice, one that was never there, and none at all.
    for removed in [&[object(1), object(4)][..], &[object(4), object(99)], &[]] {
        objects.remove(removed).await.unwrap();
    }
    for n in 0..6 {
        for number in 0..3 {
            let expected = ![1, 4].contains(&n);
            let found = get(&objects, object(n), number).await;
            assert_eq!(found, expected.then(|| content(n, number, 2000)), "{n} {number}");
        }
    }
    assert_eq!(names(&objects, 10).await, [0, 2, 3, 5].map(object));
}

pub async fn objects_are_listed_in_order_and_resumed(objects: Shared) {
    // Not in the order of their names.
    for n in (0..40).map(|n| n * 17 % 40) {
        objects.put(object(n), 0, content(n, 0, 10)).await.unwrap();
        objects.put(object(n), 5, content(n, 5, 10)).await.unwrap();
    }
    let expected: Vec<ObjectId> = (0..40).map(object).collect();
    for page in [1, 7, 39, 40, 41, 1000] {
        assert_eq!(names(&objects, page).await, expected, "pages of {page}");
    }
    let rest = objects.list(object(30), 1000).await.unwrap();
    assert_eq!((rest.objects.as_slice(), rest.next), (&expected[30..], None));
    // A place between names is one too.
    let rest = objects.list(object(30).next().unwrap(), 2).await.unwrap();
    assert_eq!((rest.objects.as_slice(), rest.next), (&expected[31..33], Some(expected[33])));
}

pub async fn a_list_under_way_misses_nothing_that_stays(objects: Shared) {
    for n in 0..200 {
        objects.put(object(n), 0, content(n, 0, 10)).await.unwrap();
    }
    // Odd ones go and new ones come while the even ones are listed.
    let changing = objects.clone();
    let changes = tokio::spawn(async move {
        for n in (1..200).step_by(2) {
            changing.remove(&[object(n)]).await.unwrap();
            changing.put(object(1000 + n), 0, content(n, 0, 10)).await.unwrap();
        }
    });
    for _ in 0..5 {
        let found = names(&objects, 9).await;
        assert!(found.is_sorted_by(|one, other| one < other), "each once, in order");
        let found: BTreeSet<ObjectId> = found.into_iter().collect();
        assert!((0..200).step_by(2).all(|n| found.contains(&object(n))));
    }
    changes.await.unwrap();
    let left = names(&objects, 9).await;
    assert_eq!(left.len(), 200);
    assert!((1..200).step_by(2).all(|n| !left.contains(&object(n))));
}

pub async fn many_writers_lose_no_chunk(objects: Shared) {
    let writers = (0..16).map(|n| {
        let objects = objects.clone();
        tokio::spawn(async move {
            for number in 0..20 {
                objects.put(object(n), number, content(n, number, 3000)).await.unwrap();
            }
            objects.sync(&[object(n)]).await.unwrap();
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    for n in 0..16 {
        for number in 0..20 {
            assert_eq!(get(&objects, object(n), number).await, Some(content(n, number, 3000)));
        }
    }
}

pub async fn readers_see_whole_chunks_or_none(objects: Shared) {
    let writing = objects.clone();
    let writer = tokio::spawn(async move {
        for n in 0..60 {
            writing.put(object(n), 0, content(n, 0, 200_000)).await.unwrap();
            writing.sync(&[object(n)]).await.unwrap();
            if n >= 10 {
                writing.remove(&[object(n - 10)]).await.unwrap();
            }
        }
    });
    let mut seen = 0;
    while !writer.is_finished() || seen == 0 {
        for n in 0..60 {
            // Each may come between the two.
            let found = [objects.at_hand(object(n), 0), objects.get(object(n), 0).await.unwrap()];
            for chunk in found.into_iter().flatten() {
                assert!(chunk == content(n, 0, 200_000), "chunk of object {n}");
                seen += 1;
            }
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

pub async fn a_closed_keeper_refuses(objects: Shared) {
    objects.put(object(1), 0, content(1, 0, 5)).await.unwrap();
    objects.close().await;
    assert_eq!(fault_kind(objects.get(object(1), 0).await), FaultKind::Busy);
    assert_eq!(fault_kind(objects.put(object(1), 1, content(1, 1, 5)).await), FaultKind::Busy);
    assert_eq!(fault_kind(objects.sync(&[object(1)]).await), FaultKind::Busy);
    assert_eq!(fault_kind(objects.remove(&[object(1)]).await), FaultKind::Busy);
    assert_eq!(fault_kind(objects.list(ObjectId::FIRST, 1).await), FaultKind::Busy);
    objects.close().await;
}
