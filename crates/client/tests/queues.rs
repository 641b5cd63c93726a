//! Queues, through this client, on Partita.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::time::Duration;

use crate::support::{PARTITA, connection_string, quick, unique};
use futures_util::{Stream, TryStreamExt as _};
use partita_client::{Delivery, Error, PutOptions, Queue, QueueService, TakenMessage, TimeToLive};

const LONG: Duration = Duration::from_secs(60);

/// The next one. A stream that has none for so long has failed.
async fn next(mut deliveries: Pin<&mut impl Stream<Item = Result<Delivery, Error>>>) -> Delivery {
    let next = tokio::time::timeout(LONG, deliveries.try_next()).await;
    next.expect("a message is delivered").unwrap().unwrap()
}

fn service() -> Option<QueueService> {
    let text = connection_string(PARTITA)?;
    Some(QueueService::builder(&text).unwrap().retry(quick()).build().unwrap())
}

/// A queue of a test's own, made just now.
async fn queue(service: &QueueService, name: &str) -> Queue {
    let queue = service.queue(&unique(name)).unwrap();
    queue.create(&BTreeMap::new()).await.unwrap();
    queue
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn texts(messages: Vec<TakenMessage>) -> Vec<String> {
    messages.into_iter().map(|message| message.text).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().code().unwrap_or("none").to_owned()
}

#[tokio::test]
async fn queues_are_created_listed_and_dropped() {
    let Some(service) = service() else { return };
    let prefix = unique("list");
    let mut expected = Vec::new();
    for letter in ["c", "a", "b"] {
        let queue = service.queue(&format!("{prefix}{letter}")).unwrap();
        assert!(!queue.exists().await.unwrap());
        queue.create(&pairs(&[("letter", letter)])).await.unwrap();
        queue.create(&pairs(&[("letter", letter)])).await.unwrap();
        assert_eq!(code(queue.create(&pairs(&[])).await), "QueueAlreadyExists");
        queue.create_if_missing().await.unwrap();
        assert!(queue.exists().await.unwrap());
        expected.push((queue.name().to_owned(), pairs(&[("letter", letter)])));
    }
    expected.sort();
    let found: Vec<_> = service.queues(&prefix).try_collect().await.unwrap();
    let found: Vec<_> = found.into_iter().map(|entry| (entry.name, entry.metadata)).collect();
    assert_eq!(found, expected);
    for (name, _) in expected {
        let queue = service.queue(&name).unwrap();
        queue.drop().await.unwrap();
        assert_eq!(code(queue.drop().await), "QueueNotFound");
    }
}

#[tokio::test]
async fn metadata_is_replaced_as_a_whole() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "meta").await;
    for metadata in [pairs(&[("a", "1"), ("b_c", "x y; z")]), pairs(&[("d", "2")]), pairs(&[])] {
        queue.set_metadata(&metadata).await.unwrap();
        assert_eq!(queue.properties().await.unwrap().metadata, metadata);
    }
    assert!(matches!(queue.set_metadata(&pairs(&[("1a", "x")])).await, Err(Error::Invalid(_))));
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn texts_come_back() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "texts").await;
    for text in ["", "plain", " <a>&amp; ]]>\t\n", "a\r\nb", "日本語 😀", &"<".repeat(65_536)] {
        queue.put(text).await.unwrap();
        assert_eq!(queue.peek(1).await.unwrap()[0].text, text);
        let taken = queue.get(1, LONG).await.unwrap();
        queue.delete(&taken[0].handle).await.unwrap();
        assert_eq!(texts(taken), [text]);
    }
    for text in ["\u{1}", &"a".repeat(65_537)] {
        assert!(matches!(queue.put(text).await, Err(Error::Invalid(_))));
    }
    assert!(matches!(service.queue("No_name"), Err(Error::Invalid(_))));
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn a_message_is_taken_renewed_updated_and_deleted() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "life").await;
    let put = queue.put("a").await.unwrap();
    let mut taken = queue.get(32, LONG).await.unwrap().remove(0);
    assert_eq!((&taken.handle.id, taken.inserted, taken.dequeue_count), (&put.handle.id, put.inserted, 1));
    assert!(queue.get(32, LONG).await.unwrap().is_empty() && queue.peek(32).await.unwrap().is_empty());
    assert_eq!(queue.properties().await.unwrap().approximate_count, 1);

    let stale = taken.handle.clone();
    queue.renew(&mut taken.handle, 2 * LONG).await.unwrap();
    assert!(taken.handle.next_visible > stale.next_visible, "{:?}", taken.handle);
    assert_eq!(code(queue.delete(&stale).await), "MessageNotFound");
    queue.update(&mut taken.handle, "b", Duration::ZERO).await.unwrap();
    let again = queue.get(1, LONG).await.unwrap().remove(0);
    assert_eq!((again.text.as_str(), again.dequeue_count), ("b", 2));
    queue.delete(&again.handle).await.unwrap();
    assert_eq!(code(queue.delete(&again.handle).await), "MessageNotFound");
    queue.drop().await.unwrap();
    assert_eq!(code(queue.put("c").await), "QueueNotFound");
}

#[tokio::test]
async fn a_message_may_be_delayed_and_may_stay_forever() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "later").await;
    let options = PutOptions::new().visible_after(LONG).time_to_live(TimeToLive::Forever);
    let put = queue.put_with("later", options).await.unwrap();
    assert!(put.expires.to_seconds_string().starts_with("9999-12-31"));
    assert_eq!(put.handle.next_visible, put.inserted.plus(LONG));
    queue.put_with("now", PutOptions::new().time_to_live(TimeToLive::For(LONG))).await.unwrap();
    assert_eq!(texts(queue.get(32, LONG).await.unwrap()), ["now"]);
    queue.delete(&put.handle).await.unwrap();
    queue.clear().await.unwrap();
    assert_eq!(queue.properties().await.unwrap().approximate_count, 0);
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn a_delivery_is_renewed_until_it_is_done() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "renewed").await;
    queue.put("long").await.unwrap();
    // It is renewed when half of this is over.
    let mut deliveries = pin!(queue.deliveries().visibility(Duration::from_secs(6)).stream());
    let delivery = next(deliveries.as_mut()).await;
    for _ in 0..16 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(queue.peek(1).await.unwrap().is_empty(), "another consumer sees it");
    }
    assert_eq!((delivery.text(), delivery.dequeue_count()), ("long", 1));
    delivery.done().await.unwrap();
    assert_eq!(queue.properties().await.unwrap().approximate_count, 0);
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn a_delivery_that_is_dropped_comes_again_and_one_given_back_at_once() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "dropped").await;
    queue.put("a").await.unwrap();
    let second = Duration::from_secs(1);
    let mut deliveries = pin!(queue.deliveries().visibility(second).pause_max(second / 10).stream());
    for count in 1..=4 {
        let delivery = next(deliveries.as_mut()).await;
        assert_eq!(delivery.dequeue_count(), count);
        match count {
            1 => drop(delivery),
            4 => delivery.done().await.unwrap(),
            _ => delivery.give_back(Duration::ZERO).await.unwrap(),
        }
    }
    assert_eq!(queue.properties().await.unwrap().approximate_count, 0);
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn a_delivery_is_given_back_for_later() {
    let Some(service) = service() else { return };
    let queue = queue(&service, "later-again").await;
    queue.put("a").await.unwrap();
    let delivery = next(pin!(queue.deliveries().stream())).await;
    delivery.give_back(LONG).await.unwrap();
    assert!(queue.peek(1).await.unwrap().is_empty(), "its time has not come");
    assert_eq!(queue.properties().await.unwrap().approximate_count, 1);
    queue.drop().await.unwrap();
}

#[tokio::test]
async fn all_pages_of_queues_are_listed() {
    let Some(service) = service() else { return };
    // A page has at most 1 MiB of metadata.
    let (prefix, metadata) = (unique("pages"), pairs(&[("a", &"x".repeat(8000))]));
    let names: Vec<String> = (0..140).map(|number| format!("{prefix}-{number:03}")).collect();
    for name in &names {
        service.queue(name).unwrap().create(&metadata).await.unwrap();
    }
    let found: Vec<_> = service.queues(&prefix).try_collect().await.unwrap();
    assert_eq!(found.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), names);
    for name in &names {
        service.queue(name).unwrap().drop().await.unwrap();
    }
}

#[tokio::test]
async fn a_message_that_fails_too_often_is_moved() {
    let Some(service) = service() else { return };
    let (queue, poison) = (queue(&service, "bad").await, queue(&service, "poison").await);
    for text in ["bad", "good"] {
        queue.put(text).await.unwrap();
    }
    let mut deliveries = pin!(queue.deliveries().at_once(32).poison(poison.clone(), 3).stream());
    let mut seen = Vec::new();
    // Four deliveries and some pauses.
    for _ in 0..20 {
        if queue.properties().await.unwrap().approximate_count == 0 {
            break;
        }
        let delivery = tokio::time::timeout(Duration::from_secs(2), deliveries.try_next()).await;
        let Ok(delivery) = delivery else { continue };
        let delivery = delivery.unwrap().unwrap();
        seen.push(delivery.text().to_owned());
        match delivery.text() {
            "good" => delivery.done().await.unwrap(),
            _ => delivery.give_back(Duration::ZERO).await.unwrap(),
        }
    }
    seen.sort();
    assert_eq!(seen, ["bad", "bad", "bad", "good"]);
    assert_eq!(texts(poison.get(32, LONG).await.unwrap()), ["bad"]);
    assert_eq!(queue.properties().await.unwrap().approximate_count, 0);
    queue.drop().await.unwrap();
    poison.drop().await.unwrap();
}
