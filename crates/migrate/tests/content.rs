//! Content is copied with the rows that name it, and a difference of content is found.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::sync::Arc;

use bytes::Bytes;
use migrate::{
    ContentCopy, Difference, DifferenceKind, Error, MigrationProgress, ProgressWatch, Shared, pass, verify,
};
use model::{DateTime, EntityKey, ServiceKind, Value, ValueRef};
use store::{
    CHUNK_BYTES, Change, Condition, Fault, MemoryEngine, MemoryObjects, Need, ObjectId, ObjectNaming,
    RowView, TableRef, Transaction,
};
use store_suite::{account, draft, of_service};

const UNSEEN: ProgressWatch<'_> = &|_: MigrationProgress<'_>| {};

/// The properties `O`, `S` and `L` have the numbers of objects, of which two chunks and ten bytes are needed, of those of `S`
/// only ten bytes; those of `L` are lists of one chunk with numbers.
struct Numbers;

fn object(number: u8) -> ObjectId {
    ObjectId::new(DateTime::MIN_STORED, [number; 8])
}

fn need(number: u8, is_list: bool) -> Need {
    let bytes = if is_list { 1 } else { 2 * CHUNK_BYTES as u64 + 10 };
    Need { object: object(number), bytes, is_list, may_be_gone: false }
}

impl ObjectNaming for Numbers {
    fn in_row(&self, partition: &str, row: RowView<'_>) -> Result<Vec<Need>, Fault> {
        let numbers = |name: &str| match row.property(name) {
            Some(ValueRef::Binary(numbers)) => numbers.to_vec(),
            _ => Vec::new(),
        };
        let lists = numbers("L").into_iter().map(|number| need(number, true));
        let starts = numbers("S").into_iter().map(|number| Need { bytes: 10, ..need(number, false) });
        let whole = numbers("O").into_iter().map(|number| need(number, false));
        let mut needs: Vec<Need> = lists.chain(starts).chain(whole).collect();
        needs.iter_mut().for_each(|need| need.may_be_gone = partition.starts_with('u'));
        Ok(needs)
    }

    fn in_list(&self, _: ObjectId, chunk: Bytes) -> Result<Vec<Need>, Fault> {
        Ok(chunk.iter().map(|number| need(*number, false)).collect())
    }

    fn content_of(&self, _: ObjectId, _: u32, chunk: Bytes) -> Result<u64, Fault> {
        Ok(chunk.len() as u64)
    }
}

struct Stores {
    source: Shared,
    target: Shared,
    content: ContentCopy,
}

fn container() -> TableRef {
    of_service(ServiceKind::Blob, "pictures")
}

fn chunk(number: u8, at: u32) -> Bytes {
    vec![number.wrapping_add(at as u8); if at < 2 { CHUNK_BYTES } else { 10 }].into()
}

impl Stores {
    async fn new() -> Self {
        let (source, target) = (Arc::new(MemoryEngine::new()), Arc::new(MemoryEngine::new()));
        let stores = Self {
            source,
            target,
            content: ContentCopy {
                source: Arc::new(MemoryObjects::new()),
                target: Arc::new(MemoryObjects::new()),
                naming: Arc::new(Numbers),
                is_doubted: false,
            },
        };
        stores.source.create_table(&container(), None).await.unwrap();
        for number in 1..=4 {
            for at in 0..3 {
                stores.content.source.put(object(number), at, chunk(number, at)).await.unwrap();
            }
        }
        stores.content.source.put(object(9), 0, Bytes::from_static(&[2, 3])).await.unwrap();
        stores.name("bone", "O", &[1]).await;
        stores.name("btwo", "L", &[9]).await;
        stores.name("bthree", "O", &[1, 2]).await;
        stores
    }

    async fn name(&self, partition: &str, property: &str, numbers: &[u8]) {
        let key = EntityKey::parse_stored(partition, "9").unwrap();
        let row = draft(&[(property, Value::Binary(numbers.to_vec()))]);
        let put = Transaction::of_one(key, Condition::Anything, Change::Put(row));
        self.source.apply(&container(), put).await.unwrap();
    }

    async fn pass(&self) -> (u64, u64) {
        let accounts = [account("devstoreaccount1")];
        let passed = pass(&self.source, None, &self.target, &accounts, UNSEEN, &self.content).await.unwrap();
        (passed.objects, passed.object_bytes)
    }

    async fn verify(&self) -> Result<u64, Error> {
        let accounts = [account("devstoreaccount1")];
        let verified = verify(&self.source, &self.target, &accounts, UNSEEN, &self.content).await?;
        Ok(verified.objects)
    }

    async fn found(&self) -> Vec<ObjectId> {
        self.content.target.list(ObjectId::FIRST, 100).await.unwrap().objects
    }
}

const WHOLE: u64 = 2 * CHUNK_BYTES as u64 + 10;

#[tokio::test]
async fn every_object_that_a_row_names_is_copied_once_and_nothing_else() {
    let stores = Stores::new().await;
    assert_eq!(stores.pass().await, (4, 3 * WHOLE + 2));
    assert_eq!(stores.found().await, [1, 2, 3, 9].map(object), "4 is nobody's");
    for (number, at) in [(1, 0), (2, 1), (3, 2)] {
        let copied = stores.content.target.get(object(number), at).await.unwrap();
        assert!(copied == Some(chunk(number, at)));
    }
    assert_eq!(stores.verify().await.unwrap(), 4);
    // The next pass copies what is new.
    stores.name("bfour", "O", &[4]).await;
    assert_eq!(stores.pass().await, (1, WHOLE));
    assert_eq!(stores.verify().await.unwrap(), 5);
}

#[tokio::test]
async fn content_that_differs_or_is_missing_is_found() {
    for (damaged, at) in [(1, 2), (3, 0), (9, 0)] {
        let stores = Stores::new().await;
        stores.pass().await;
        let target = &stores.content.target;
        let kept: Vec<Option<Bytes>> = vec![
            target.get(object(damaged), 0).await.unwrap(),
            target.get(object(damaged), 1).await.unwrap(),
            target.get(object(damaged), 2).await.unwrap(),
        ];
        target.remove(&[object(damaged)]).await.unwrap();
        for (number, chunk) in (0..).zip(kept) {
            if let Some(chunk) = chunk.filter(|_| number != at) {
                target.put(object(damaged), number, chunk).await.unwrap();
            }
        }
        let Err(Error::Differs(Difference { key: Some(key), found, .. })) = stores.verify().await else {
            panic!("object {damaged} passed");
        };
        assert_eq!(found, DifferenceKind::OtherContent);
        assert!(["bone", "bthree", "btwo"].contains(&key.partition.as_str()));
    }
}

#[tokio::test]
async fn content_that_the_target_has_lost_is_copied_again_if_it_is_doubted() {
    let mut stores = Stores::new().await;
    stores.pass().await;
    stores.content.target.remove(&[object(1), object(3)]).await.unwrap();
    for number in [0, 2] {
        stores.content.target.put(object(1), number, chunk(1, number)).await.unwrap();
    }
    assert_eq!(stores.pass().await, (0, 0), "all rows are the same");
    assert!(stores.verify().await.is_err());
    stores.content.is_doubted = true;
    // A chunk of one object and all of the other, which only a list names.
    assert_eq!(stores.pass().await, (2, CHUNK_BYTES as u64 + WHOLE));
    assert_eq!(stores.verify().await.unwrap(), 4);
    assert_eq!(stores.pass().await, (0, 0));
}

#[tokio::test]
async fn an_object_is_copied_and_compared_as_far_as_any_row_needs_it() {
    let stores = Stores::new().await;
    // Pages are written into the middle of others: of these, a run before them and one behind them is left.
    for (partition, property) in [("ba", "S"), ("bb", "O"), ("bc", "S")] {
        stores.name(partition, property, &[4]).await;
    }
    assert_eq!(stores.pass().await, (5, 4 * WHOLE + 2));
    let target = &stores.content.target;
    for at in 0..3 {
        assert!(target.get(object(4), at).await.unwrap() == Some(chunk(4, at)), "chunk {at}");
    }
    assert_eq!(stores.verify().await.unwrap(), 5);
    target.remove(&[object(4)]).await.unwrap();
    target.put(object(4), 0, chunk(4, 0)).await.unwrap();
    assert!(matches!(stores.verify().await, Err(Error::Differs(_))));
}

#[tokio::test]
async fn what_a_row_needs_and_the_source_lacks_is_a_fault_unless_the_row_is_left_over() {
    let stores = Stores::new().await;
    stores.name("ublock", "O", &[77]).await;
    stores.pass().await;
    assert!(stores.verify().await.is_ok());
    stores.name("bblob", "O", &[78]).await;
    stores.pass().await;
    let Err(error) = stores.verify().await else { panic!("object 78 passed") };
    assert!(error.to_string().contains("content that a blob needs is missing"), "{error}");
}
