use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::TryStreamExt as _;
use partita_client::{DateTime, Entity, Error, Match, StoredEntity, Table};
use partita_client_patterns::keys;
use partita_client_patterns::large::Large;
use tokio::io::{AsyncRead, ReadBuf};

use crate::place::{with_place, with_table};
use crate::proxy::{Lost, Proxy};
use crate::support::quick;

const CHUNK: usize = 704 * 1024;

fn bytes(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|n| (n / 251) as u8 ^ n as u8 ^ seed).collect()
}

fn entity() -> Entity {
    Entity::new("p", "r").with("Type", "text/plain")
}

async fn chunks(table: &Table) -> Vec<StoredEntity<Entity>> {
    let all = table.query().all::<Entity>().await.unwrap();
    all.into_iter().filter(|found| found.partition_key.starts_with("p!r!")).collect()
}

#[tokio::test]
async fn a_value_of_any_length_is_read_back() {
    with_table(|table| async move {
        let large = Large::new(&table);
        assert_eq!(large.read("p", "r").await.unwrap(), None);
        for length in [0, 1, 64 * 1024, 64 * 1024 + 1, CHUNK, CHUNK + 1, 5 * CHUNK + 17, 3] {
            let value = bytes(length, length as u8);
            large.put(&entity(), &value).await.unwrap();
            assert!(large.read("p", "r").await.unwrap().unwrap() == value, "{length}");
            assert_eq!(chunks(&table).await.len(), length.div_ceil(CHUNK), "{length}");
            let found = large.find("p", "r").await.unwrap().unwrap();
            assert_eq!((found.length(), &found.entity.entity), (length as u64, &entity()));
            let pieces: Vec<Vec<u8>> = found.stream().try_collect().await.unwrap();
            assert_eq!(pieces.len(), length.div_ceil(CHUNK));
            assert!(pieces.concat() == value);
        }
        assert!(large.delete("p", "r").await.unwrap());
        assert!(!large.delete("p", "r").await.unwrap());
        assert_eq!(table.query().count().await.unwrap(), 0);
    })
    .await;
}

/// A reader that returns some bytes and then fails.
struct Breaking(usize);

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0 == 0 {
            return Poll::Ready(Err(io::Error::other("the cable was cut")));
        }
        let length = self.0.min(to.remaining());
        to.put_slice(&vec![1; length]);
        self.0 -= length;
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_partly_written_value_is_invisible() {
    with_table(|table| async move {
        let large = Large::new(&table).concurrency(1);
        large.put(&entity(), b"whole").await.unwrap();
        let fault = large.put_from(&entity(), Breaking(3 * CHUNK)).await.unwrap_err().to_string();
        assert!(fault.contains("the cable was cut"), "{fault}");
        assert_eq!(large.read("p", "r").await.unwrap().unwrap(), b"whole");
        assert_eq!(chunks(&table).await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_damaged_value_is_refused() {
    with_table(|table| async move {
        let large = Large::new(&table);
        let refused = async |what: &str| {
            let found = large.read("p", "r").await;
            assert!(matches!(found, Err(Error::Unreadable(_))), "{what}: {found:?}");
        };
        let value = bytes(2 * CHUNK, 0);

        large.put(&entity(), &value).await.unwrap();
        let mut changed = chunks(&table).await.remove(1).into_inner();
        changed.set("D03", vec![0; 64 * 1024]);
        table.replace(&changed, Match::Any).await.unwrap();
        refused("a changed chunk").await;
        changed.remove("D10");
        table.replace(&changed, Match::Any).await.unwrap();
        refused("a chunk without its end").await;
        table.delete(&changed.partition_key, &changed.row_key, Match::Any).await.unwrap();
        refused("a chunk that is gone").await;

        table.upsert_replace(&Entity::new("p", "r")).await.unwrap();
        refused("another entity").await;
        assert!(matches!(large.put(&entity().with("LargeBytes", 1), b"").await, Err(Error::Invalid(_))));
    })
    .await;
}

#[tokio::test]
async fn invisible_chunks_are_swept() {
    with_table(|table| async move {
        let large = Large::new(&table);
        large.put(&entity(), &bytes(CHUNK + 1, 0)).await.unwrap();
        let time = |text| DateTime::parse(text).unwrap();
        for day in ["2020-01-01", "2020-01-02"] {
            let partition = keys::join(["p", "r", &format!("{}00", keys::oldest_first(time(day)))]);
            table.insert(&Entity::new(partition, "000000")).await.unwrap();
        }
        assert_eq!(large.sweep("p", "r", time("2020-01-02")).await.unwrap(), 1);
        assert_eq!(large.sweep("p", "r", time("2100-01-01")).await.unwrap(), 1);
        assert_eq!(large.sweep("p", "r", time("2100-01-01")).await.unwrap(), 0);
        assert!(large.read("p", "r").await.unwrap().unwrap() == bytes(CHUNK + 1, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_one_whole_value() {
    with_table(|table| async move {
        let value = |number: u8| bytes(CHUNK + 1000 * usize::from(number), number);
        let large = Large::new(&table);
        large.put(&entity(), &value(0)).await.unwrap();
        let writers: Vec<_> = (1..=2_u8)
            .map(|writer| {
                let large = large.clone();
                tokio::spawn(async move {
                    for round in 0..6 {
                        large.put(&entity(), &value(10 * writer + round)).await.unwrap();
                    }
                })
            })
            .collect();
        let mut seen = 0;
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            let found = large.read("p", "r").await.unwrap().unwrap();
            let number = (found.len() - CHUNK) / 1000;
            assert!(found == value(number as u8));
            seen += 1;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert!(seen > 0);
        assert_eq!(chunks(&table).await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_lost_answer_leaves_the_value_whole() {
    with_place(|place| async move {
        let table = place.table();
        table.create().await.unwrap();
        let proxy = Proxy::start(&place.connection_string).await;
        for attempts in [1, 3] {
            let service = place.service_at(&proxy.connection_string, quick().attempts(attempts));
            let large = Large::new(&service.table(&place.name).unwrap());
            // The first is inserted and the second replaces it.
            for (number, request) in [(0, "POST "), (1, "RowKey='r'")] {
                let value = bytes(CHUNK + 1, number);
                proxy.lose(Lost::Answer, request);
                large.put(&entity(), &value).await.unwrap();
                assert!(proxy.is_done());
                assert!(large.read("p", "r").await.unwrap().unwrap() == value);
            }
            large.delete("p", "r").await.unwrap();
        }
    })
    .await;
}
