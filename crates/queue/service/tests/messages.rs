//! Messages are put, got, peeked at, updated, deleted and cleared, and expire.

use std::time::Duration;

use queue_model::{DateTime, MessageId, PopReceipt, Refusal};

use crate::kit::{Ground, refused, seconds, text};

#[tokio::test]
async fn a_message_goes_from_put_to_delete() {
    let ground = Ground::new().await;
    let put = ground.put("hello").await;
    assert_eq!(put.expires, put.inserted.plus(seconds(604_800)));
    assert_eq!(put.receipt.next_visible(), put.inserted);
    let shown = ground.service.peek(&ground.queue, 32).await.unwrap();
    assert_eq!((shown.len(), shown[0].dequeue_count), (1, 0));
    let taken = ground.get(32, 30).await;
    let [taken] = &taken[..] else { panic!("{taken:?}") };
    assert_eq!(
        (taken.message.id, taken.message.inserted, taken.message.expires),
        (put.id, put.inserted, put.expires)
    );
    assert_eq!((taken.message.dequeue_count, taken.message.text.as_str()), (1, "hello"));
    let hidden = taken.receipt.next_visible().ticks() - put.inserted.plus(seconds(30)).ticks();
    assert!((0..20_000).contains(&hidden), "{hidden} ticks more than 30 s");
    assert!(ground.get(32, 30).await.is_empty() && ground.shown().await.is_empty());
    assert_eq!(ground.count().await, 1, "the invisible count too");
    ground.service.delete_message(&ground.queue, put.id, &taken.receipt).await.unwrap();
    assert_eq!(ground.count().await, 0);
    let again = ground.service.delete_message(&ground.queue, put.id, &taken.receipt).await;
    assert_eq!(refused(again), Refusal::MessageNotFound);
    ground.time.pass(seconds(60));
    assert!(ground.get(32, 30).await.is_empty());
}

#[tokio::test]
async fn times_derive_from_the_instant_of_the_put() {
    let ground = Ground::new().await;
    for (visibility, ttl) in [(0, 1), (5, 60), (604_799, 604_800)] {
        let put = ground
            .service
            .put(&ground.queue, text(""), seconds(visibility), Some(seconds(ttl)))
            .await
            .unwrap();
        let printed = |time: DateTime| time.unix_seconds();
        assert_eq!(
            printed(put.receipt.next_visible()) - printed(put.inserted),
            i64::try_from(visibility).unwrap()
        );
        assert_eq!(printed(put.expires) - printed(put.inserted), i64::try_from(ttl).unwrap());
    }
    let put = ground.service.put(&ground.queue, text(""), Duration::ZERO, None).await.unwrap();
    assert_eq!(put.expires, DateTime::MAX);
    let longest = Some(seconds(1 << 40));
    let put = ground.service.put(&ground.queue, text(""), Duration::ZERO, longest).await.unwrap();
    assert_eq!(put.expires, DateTime::MAX);
}

#[tokio::test]
async fn messages_come_in_the_order_of_their_visibility() {
    let ground = Ground::new().await;
    let late = ground.service.put(&ground.queue, text("late"), seconds(10), None).await.unwrap();
    for n in 0..200 {
        ground.put(&n.to_string()).await;
    }
    let texts = |taken: Vec<queue_model::TakenMessage>| -> Vec<String> {
        taken.into_iter().map(|taken| taken.message.text.into_string()).collect()
    };
    let numbers = |range: std::ops::Range<i32>| -> Vec<String> { range.map(|n| n.to_string()).collect() };
    assert_eq!(texts(ground.get(32, 5).await), numbers(0..32));
    assert_eq!(texts(ground.get(1, 20).await), numbers(32..33));
    for start in (33..193).step_by(32) {
        assert_eq!(texts(ground.get(32, 20).await), numbers(start..start + 32));
    }
    assert_eq!(texts(ground.get(32, 20).await), numbers(193..200), "fewer, if there are fewer");
    ground.time.pass(seconds(11));
    ground.put("new").await;
    // The first 32 became visible 5 s after they were got, the late one after 10 s.
    assert_eq!(ground.shown().await, numbers(0..32));
    assert_eq!(texts(ground.get(32, 20).await), numbers(0..32));
    assert_eq!(ground.shown().await, ["late", "new"]);
    let taken = ground.get(32, 20).await;
    assert_eq!(taken[0].message.id, late.id);
}

#[tokio::test]
async fn a_receipt_is_good_until_the_message_gets_another() {
    let ground = Ground::new().await;
    let (service, queue) = (&ground.service, &ground.queue);
    let put = ground.put("first").await;
    let id = put.id;
    // The receipt of a Put is good before any Get.
    let updated =
        service.update(queue, id, &put.receipt, Duration::ZERO, Some(text("second"))).await.unwrap();
    assert_eq!(updated.dequeue_count(), Some(0));
    let got = ground.get(1, 30).await.remove(0);
    assert_eq!((got.message.text.as_str(), got.message.dequeue_count), ("second", 1));
    let renewed = service.update(queue, id, &got.receipt, seconds(60), None).await.unwrap();
    assert_eq!(renewed.dequeue_count(), Some(1));
    for stale in [put.receipt, updated, got.receipt] {
        assert_eq!(refused(service.delete_message(queue, id, &stale).await), Refusal::MessageNotFound);
        let update = service.update(queue, id, &stale, Duration::ZERO, None).await;
        assert_eq!(refused(update), Refusal::MessageNotFound);
    }
    // The time is right, but it is not the receipt that was given.
    for forged in [PopReceipt::given(renewed.next_visible()), PopReceipt::updated(renewed.next_visible(), 2)]
    {
        assert_eq!(refused(service.delete_message(queue, id, &forged).await), Refusal::MessageNotFound);
    }
    let other = MessageId::parse("0a1b2c3d-192b-4f77-a501-2ba4be007ea5").unwrap();
    assert_eq!(refused(service.delete_message(queue, other, &renewed).await), Refusal::MessageNotFound);
    // Its time is over, but nobody has got the message since.
    ground.time.pass(seconds(61));
    assert_eq!(ground.shown().await, ["second"]);
    service.delete_message(queue, id, &renewed).await.unwrap();
}

#[tokio::test]
async fn an_expired_lease_is_lost_to_the_next_who_gets_the_message() {
    let ground = Ground::new().await;
    let put = ground.put("work").await;
    let first = ground.get(1, 10).await.remove(0);
    ground.time.pass(seconds(11));
    let second = ground.get(1, 10).await.remove(0);
    assert_eq!((second.message.id, second.message.dequeue_count), (put.id, 2));
    let late = ground.service.delete_message(&ground.queue, put.id, &first.receipt).await;
    assert_eq!(refused(late), Refusal::MessageNotFound);
    ground.service.delete_message(&ground.queue, put.id, &second.receipt).await.unwrap();
}

#[tokio::test]
async fn an_update_of_zero_makes_the_message_visible_at_once() {
    let ground = Ground::new().await;
    ground.put("one").await;
    ground.put("two").await;
    for count in 1..=50_u32 {
        let got = ground.get(1, 600).await.remove(0);
        assert_eq!(got.message.dequeue_count, count.div_ceil(2), "each comes behind the other");
        ground
            .service
            .update(&ground.queue, got.message.id, &got.receipt, Duration::ZERO, None)
            .await
            .unwrap();
    }
    assert_eq!(ground.shown().await.len(), 2);
}

#[tokio::test]
async fn expired_messages_are_gone_at_once_and_removed_later() {
    let ground = Ground::new().await;
    let put = async |content: &str, visibility, ttl| {
        let put = ground.service.put(&ground.queue, text(content), seconds(visibility), Some(seconds(ttl)));
        put.await.unwrap()
    };
    let brief = put("brief", 0, 10).await;
    put("hidden", 5, 10).await;
    let last = put("last", 0, 60).await;
    let taken = ground.service.get(&ground.queue, 1, seconds(5)).await.unwrap().remove(0);
    assert_eq!(taken.message.id, brief.id);
    let too_long = ground.service.update(&ground.queue, brief.id, &taken.receipt, seconds(11), None).await;
    assert_eq!(refused(too_long), Refusal::visible_after_expiry(11));
    ground.time.pass(seconds(11));
    assert_eq!(ground.shown().await, ["last"]);
    for outcome in [
        ground.service.delete_message(&ground.queue, brief.id, &taken.receipt).await,
        ground.service.update(&ground.queue, brief.id, &taken.receipt, Duration::ZERO, None).await.map(drop),
    ] {
        assert_eq!(refused(outcome), Refusal::MessageNotFound);
    }
    assert_eq!(ground.count().await, 3, "not removed yet");
    let swept = ground.service.sweep(&ground.queue).await.unwrap();
    assert_eq!((swept.messages, swept.removed), (1, 2));
    assert_eq!(ground.count().await, 1);
    // A Get may hide a message beyond its end.
    let taken = ground.get(32, 3600).await.remove(0);
    assert_eq!(taken.message.id, last.id);
    ground.time.pass(seconds(3700));
    assert!(ground.get(32, 1).await.is_empty());
    assert_eq!(ground.count().await, 0, "a Get removes what has expired in its way");
}

#[tokio::test]
async fn many_expired_messages_do_not_hide_what_is_behind_them() {
    let ground = Ground::new().await;
    for _ in 0..3000 {
        ground.service.put(&ground.queue, text("old"), Duration::ZERO, Some(seconds(1))).await.unwrap();
    }
    ground.put("fresh").await;
    ground.time.pass(seconds(2));
    assert_eq!(ground.shown().await, ["fresh"]);
    assert_eq!(ground.get(1, 30).await.len(), 1);
    let swept = ground.service.sweep(&ground.queue).await.unwrap();
    assert_eq!(swept.messages, 1);
    assert_eq!(ground.count().await, 1);
}

#[tokio::test]
async fn clearing_removes_what_is_there_also_the_invisible() {
    let ground = Ground::new().await;
    for n in 0..2500 {
        let visibility = seconds(n % 3 * 100);
        ground.service.put(&ground.queue, text("x"), visibility, None).await.unwrap();
    }
    assert_eq!(ground.get(32, 30).await.len(), 32);
    ground.service.clear(&ground.queue, seconds(30)).await.unwrap();
    assert_eq!(ground.count().await, 0);
    ground.time.pass(seconds(1000));
    assert!(ground.get(32, 30).await.is_empty());
    ground.put("after").await;
    assert_eq!(ground.shown().await, ["after"]);
}

#[tokio::test]
async fn clearing_that_runs_out_of_time_is_gone_on_with() {
    let ground = Ground::new().await;
    for _ in 0..2500 {
        ground.put("x").await;
    }
    let out_of_time = Refusal::Shared(common::Refusal::TimedOut);
    assert_eq!(refused(ground.service.clear(&ground.queue, Duration::ZERO).await), out_of_time);
    assert_eq!(ground.count().await, 1500);
    ground.service.clear(&ground.queue, seconds(30)).await.unwrap();
    assert_eq!(ground.count().await, 0);
}

#[tokio::test]
async fn large_texts_come_back_whole() {
    let ground = Ground::new().await;
    let large = "é".repeat(32 * 1024);
    for n in 0..40 {
        ground.put(&format!("{}{n:02}", &large[..large.len() - 2])).await;
    }
    let shown = ground.shown().await;
    assert_eq!(shown.len(), 32);
    assert!(shown[31].ends_with("31") && shown[31].len() == 65_536);
    assert_eq!(ground.get(32, 30).await.len(), 32);
    assert_eq!(ground.get(32, 30).await.len(), 8);
}

#[tokio::test]
async fn what_was_in_memory_is_read_again() {
    let ground = Ground::new().await;
    let put = ground.put("one").await;
    ground.put("two").await;
    ground.put("three").await;
    let taken = ground.get(1, 30).await.remove(0);
    ground.time.pass(seconds(1));
    let again = ground.again();
    assert_eq!(again.count().await, 3);
    assert_eq!(again.shown().await, ["two", "three"]);
    again.service.delete_message(&again.queue, put.id, &taken.receipt).await.unwrap();
    assert_eq!(again.count().await, 2);
    assert_eq!(again.get(32, 30).await.len(), 2);
}

#[tokio::test]
async fn a_clock_that_was_set_back_hides_no_message() {
    let ground = Ground::new().await;
    for _ in 0..3 {
        ground.put("early").await;
    }
    assert_eq!(ground.get(3, 600).await.len(), 3);
    ground.service.close().await;
    // Three hours earlier.
    let time = crate::kit::VirtualTime::new();
    let before = Ground::on(ground.engine.clone(), time.clone());
    ground.time.pass(seconds(3 * 3600));
    let later = Ground::on(ground.engine.clone(), ground.time.clone());
    later.put("later").await;
    let got = later.get(32, 600).await;
    assert_eq!(got.len(), 4);
    for taken in &got {
        later.service.delete_message(&later.queue, taken.message.id, &taken.receipt).await.unwrap();
    }
    later.service.close().await;
    before.put("now").await;
    assert_eq!(before.shown().await, ["now"]);
    assert_eq!(before.get(32, 600).await.len(), 1);
}
