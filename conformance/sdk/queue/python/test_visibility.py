"""Visibility, receipts and expiry: a message is one consumer's for a while, and its receipt changes with each hand-over."""

import time

import pytest
from azure.core.exceptions import ResourceNotFoundError

from conftest import refused, texts


def gone(act, *arguments, **more):
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        act(*arguments, **more)


def soon(act, within=60.0):
    """The first answer that is not empty. The server decides when; a slow machine may ask late."""
    until = time.monotonic() + within
    while not (found := act()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def test_a_message_is_hidden_and_comes_back(queue):
    queue.send_message("a")
    first = queue.receive_message(visibility_timeout=1)
    second = soon(lambda: queue.receive_message(visibility_timeout=60))
    assert queue.receive_message() is None and list(queue.peek_messages()) == []
    assert (second.id, second.dequeue_count) == (first.id, 2)
    assert second.pop_receipt != first.pop_receipt
    assert time.time() >= first.next_visible_on.timestamp()
    gone(queue.delete_message, first)
    queue.delete_message(second)
    gone(queue.delete_message, second)


def test_the_receipt_of_an_expired_lease_serves_until_somebody_takes_the_message(queue):
    queue.send_message("a")
    first = queue.receive_message(visibility_timeout=1)
    soon(lambda: list(queue.peek_messages()))
    queue.update_message(first, visibility_timeout=0, content="b")
    assert texts(queue.peek_messages()) == ["b"]
    again = queue.receive_message(visibility_timeout=1)
    soon(lambda: list(queue.peek_messages()))
    queue.delete_message(again)
    assert queue.receive_message() is None


def test_a_delayed_message(queue):
    put = queue.send_message("later", visibility_timeout=2)
    queue.send_message("now")
    assert soon(lambda: [m for m in queue.peek_messages(32) if m.id == put.id])
    assert time.time() >= put.next_visible_on.timestamp()
    assert texts(queue.receive_messages()) == ["now", "later"]


def test_a_message_expires(queue):
    put = queue.send_message("short", time_to_live=1)
    held = queue.send_message("held", time_to_live=2)
    time.sleep(2.1)
    assert list(queue.peek_messages(32)) == []
    assert queue.receive_message() is None
    gone(queue.delete_message, put)
    gone(queue.update_message, held, visibility_timeout=1)


def test_a_receipt_of_put_deletes_and_updates(queue):
    queue.delete_message(queue.send_message("a"))
    assert queue.receive_message() is None
    put = queue.send_message("a")
    queue.update_message(put, visibility_timeout=60)
    assert queue.receive_message() is None


def test_update_changes_the_receipt_and_keeps_the_rest(queue):
    put = queue.send_message("a", time_to_live=600)
    got = queue.receive_message(visibility_timeout=60)
    updated = queue.update_message(got, visibility_timeout=0)
    assert updated.pop_receipt != got.pop_receipt
    gone(queue.delete_message, got.id, got.pop_receipt)
    gone(queue.update_message, got.id, got.pop_receipt, visibility_timeout=1)
    again = queue.receive_message()
    assert (again.content, again.dequeue_count) == ("a", 2)
    assert (again.inserted_on, again.expires_on) == (put.inserted_on, put.expires_on)


@pytest.mark.parametrize("content, expected", [(None, "a"), ("", ""), ("b", "b")], ids=["kept", "emptied", "replaced"])
def test_update_and_the_text(queue, content, expected):
    queue.update_message(queue.send_message("a"), content=content, visibility_timeout=0)
    # An empty text is indistinguishable from none for this SDK, which then sends no body.
    assert (queue.receive_message().content or "") in ((expected, "a") if content == "" else (expected,))


def test_a_lease_is_renewed_again_and_again(queue):
    queue.send_message("a")
    # Far longer than the two requests of a round take, also on a busy machine.
    lease = 8
    message = queue.receive_message(visibility_timeout=lease)
    receipts = {message.pop_receipt}
    until = time.monotonic() + lease + 0.6
    while time.monotonic() < until:
        message = queue.update_message(message, visibility_timeout=lease)
        receipts.add(message.pop_receipt)
        assert queue.receive_message() is None
        time.sleep(0.2)
    assert len(receipts) >= 3
    queue.delete_message(message.id, message.pop_receipt)


def test_receipts_of_updates_at_once_differ(queue):
    message, receipts = queue.send_message("a"), set()
    for _ in range(20):
        message = queue.update_message(message, visibility_timeout=30)
        receipts.add(message.pop_receipt)
    assert len(receipts) == 20


def test_dequeue_count_counts_deliveries_only(queue):
    queue.send_message("a")
    for count in range(1, 6):
        message = queue.receive_message(visibility_timeout=60)
        assert message.dequeue_count == count
        queue.update_message(message, visibility_timeout=0)
        assert queue.peek_messages()[0].dequeue_count == count


def test_a_message_that_comes_back_takes_the_place_of_its_time(queue):
    queue.send_message("first")
    queue.send_message("second")
    first = queue.receive_message(visibility_timeout=60)
    queue.update_message(first, visibility_timeout=0)
    assert texts(queue.receive_messages()) == ["second", "first"]


def test_the_longest_lease(queue):
    queue.send_message("a", visibility_timeout=604799)
    queue.send_message("b")
    lease = queue.receive_message(visibility_timeout=604800)
    assert 604799 <= (lease.next_visible_on - lease.inserted_on).total_seconds() <= 604860
    assert queue.receive_message() is None
