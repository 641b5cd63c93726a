"""Messages: what is put comes back, in order and to the byte; texts of every kind and size."""

import json
import time
from datetime import timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)

from conftest import fresh_name, queue_client, refused, texts

TEXTS = {
    "plain": "hello",
    "empty": "",
    "blanks": "  mess\t age1\n",
    "markup": "<a href='x'>\"&amp;\" ]]></a>",
    "unicode": "日本語 ñ ß Ω",
    "emoji": "👩‍👩‍👧 😀",
    "json": json.dumps({"id": 1, "names": ["a", "é"]}),
    "carriage return": "a\r\nb\rc",
    "percent": "100% + a%20b",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_comes_back(queue, text):
    queue.send_message(text)
    expected = text.replace("\r\n", "\n").replace("\r", "\n")  # XML's rule for line ends; the SDK does not escape them
    assert [content or "" for content in texts(queue.peek_messages())] == [expected]
    message = queue.receive_message()
    assert (message.content or "") == expected
    queue.delete_message(message)


@pytest.mark.parametrize("text", ["a", "é", "😀", "<"], ids=["ascii", "two bytes", "four bytes", "escaped"])
def test_the_longest_text(queue, text):
    size = 65536 // len(text.encode())
    queue.send_message(text * size)
    assert queue.receive_message().content == text * size
    with refused(413, "RequestBodyTooLarge"):
        queue.send_message(text * size + "a")


def test_update_has_the_same_limit(queue):
    message = queue.send_message("a")
    with refused(413, "RequestBodyTooLarge"):
        queue.update_message(message, content="a" * 65537)
    queue.update_message(message, content="b" * 65536)


@pytest.mark.parametrize("character", ["\x01", "\ufffe", "\x0b"])
def test_a_character_that_xml_cannot_have(queue, character):
    with refused(400, "InvalidXmlDocument"):
        queue.send_message("a" + character)


def test_base64_of_text():
    plain = queue_client(fresh_name())
    coded = queue_client(
        plain.queue_name, message_encode_policy=TextBase64EncodePolicy(), message_decode_policy=TextBase64DecodePolicy()
    )
    coded.create_queue()
    coded.send_message("é\x01")
    assert texts(plain.peek_messages()) == ["w6kB"]
    message = coded.receive_message()
    assert message.content == "é\x01"
    coded.update_message(message, content="later", visibility_timeout=0)
    assert texts(coded.receive_messages()) == ["later"]
    plain.clear_messages()
    plain.send_message("not base64")
    with pytest.raises(AttributeError):  # this version of the SDK fails while it makes its DecodeError
        coded.receive_message()
    plain.delete_queue()


def test_base64_of_bytes():
    queue = queue_client(
        fresh_name(), message_encode_policy=BinaryBase64EncodePolicy(), message_decode_policy=BinaryBase64DecodePolicy()
    )
    queue.create_queue()
    content = bytes(range(256)) * 192  # 48 KiB are 64 KiB of base64
    queue.send_message(content)
    assert queue.receive_message().content == content
    with refused(413, "RequestBodyTooLarge"):
        queue.send_message(content + b"a")
    queue.delete_queue()


def test_put_says_what_it_made(queue):
    message = queue.send_message("a", visibility_timeout=5, time_to_live=60)
    assert message.expires_on - message.inserted_on == timedelta(seconds=60)
    assert message.next_visible_on - message.inserted_on == timedelta(seconds=5)
    assert message.id and message.pop_receipt


def test_time_to_live(queue):
    week = queue.send_message("a")
    assert week.expires_on - week.inserted_on == timedelta(days=7)
    assert queue.send_message("a", time_to_live=-1).expires_on.year == 9999
    long = queue.send_message("a", time_to_live=365 * 24 * 3600)
    assert long.expires_on - long.inserted_on == timedelta(days=365)


def test_get_says_what_was_put(queue):
    began = time.monotonic()
    put = queue.send_message("a", time_to_live=600)
    got = queue.receive_message(visibility_timeout=20)
    between = timedelta(seconds=time.monotonic() - began)
    assert (got.id, got.inserted_on, got.expires_on) == (put.id, put.inserted_on, put.expires_on)
    assert (got.dequeue_count, got.content) == (1, "a")
    assert got.pop_receipt != put.pop_receipt
    assert timedelta(seconds=19) <= got.next_visible_on - got.inserted_on <= timedelta(seconds=25) + between


def test_peek_changes_nothing(queue):
    put = queue.send_message("a")
    for _ in range(3):
        (seen,) = queue.peek_messages(max_messages=5)
        assert (seen.id, seen.dequeue_count, seen.content) == (put.id, 0, "a")
        assert seen.pop_receipt is None and seen.next_visible_on is None
    assert queue.receive_message().dequeue_count == 1


def test_order_is_that_of_insertion(queue):
    names = [f"{number:02}" for number in range(40)]
    for name in names:
        queue.send_message(name)
    assert texts(queue.peek_messages(32)) == names[:32]
    assert texts(queue.receive_messages(visibility_timeout=60)) == names
    assert queue.receive_message() is None


def test_get_by_pages_and_up_to_a_number(queue):
    names = [f"{number:02}" for number in range(40)]
    for name in names:
        queue.send_message(name)
    sizes, found = [], []
    for page in queue.receive_messages(messages_per_page=16, max_messages=40, visibility_timeout=60).by_page():
        page = texts(page)
        sizes.append(len(page))
        found += page
    assert (sizes, found) == ([16, 16, 8], names)


def test_an_empty_queue(queue):
    assert queue.receive_message() is None
    assert list(queue.receive_messages(messages_per_page=32)) == []
    assert list(queue.peek_messages(32)) == []


def test_clear(queue):
    for number in range(150):
        queue.send_message(str(number))
    queue.receive_message(visibility_timeout=60)
    queue.send_message("hidden", visibility_timeout=60)
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0
    assert list(queue.peek_messages(32)) == []
    queue.send_message("new")
    assert queue.receive_message().content == "new"


OUT_OF_RANGE = {
    "get 33": lambda q: next(q.receive_messages(messages_per_page=33).by_page()),
    "visibility of get": lambda q: q.receive_message(visibility_timeout=604801),
    "visibility of put": lambda q: q.send_message("a", visibility_timeout=604801, time_to_live=-1),
    "visibility of update": lambda q: q.update_message(q.send_message("a"), visibility_timeout=604801),
    "no visibility of get": lambda q: q.receive_message(visibility_timeout=0),
}


@pytest.mark.parametrize("act", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE.keys())
def test_out_of_range(queue, act):
    with refused(400, "OutOfRangeQueryParameterValue"):
        act(queue)


@pytest.mark.parametrize("ttl", [0, -2])
def test_a_time_to_live_that_is_none(queue, ttl):
    with refused(400, "InvalidQueryParameterValue"):
        queue.send_message("a", time_to_live=ttl)


def test_visible_only_after_it_has_expired(queue):
    with refused(400, "InvalidQueryParameterValue"):
        queue.send_message("a", visibility_timeout=30, time_to_live=30)
    with refused(400, "InvalidQueryParameterValue"):
        queue.update_message(queue.send_message("a", time_to_live=30), visibility_timeout=60)


ON_A_MESSAGE = {
    "put": lambda q: q.send_message("a"),
    "get": lambda q: q.receive_message(),
    "peek": lambda q: q.peek_messages(),
    "clear": lambda q: q.clear_messages(),
    "update": lambda q: q.update_message(ID, RECEIPT, visibility_timeout=1),
    "delete": lambda q: q.delete_message(ID, RECEIPT),
}
ID, RECEIPT = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5", "AgAAAAMAAAAAAAAAkP0RP0Fx2QE="


@pytest.mark.parametrize("act", ON_A_MESSAGE.values(), ids=ON_A_MESSAGE.keys())
def test_a_missing_queue(act):
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        act(queue_client(fresh_name()))


def test_a_missing_message(queue):
    for act in ("update", "delete"):
        with refused(404, "MessageNotFound", ResourceNotFoundError):
            ON_A_MESSAGE[act](queue)


def test_a_receipt_that_is_none(queue):
    message = queue.send_message("a")
    for receipt in ("invalid", message.pop_receipt + "Random"):
        with refused(400, "InvalidQueryParameterValue", HttpResponseError):
            queue.delete_message(message.id, receipt)
        with refused(400, "InvalidQueryParameterValue", HttpResponseError):
            queue.update_message(message.id, receipt, visibility_timeout=1)


def test_an_error_says_more_than_its_code(queue):
    with refused(400, "OutOfRangeQueryParameterValue") as answer:
        next(queue.receive_messages(messages_per_page=33).by_page())
    found = answer.value.additional_info
    assert (found["queryparametername"], found["queryparametervalue"]) == ("numofmessages", "33")
    assert (found["minimumallowed"], found["maximumallowed"]) == ("1", "32")
    assert "outside the permissible range" in answer.value.message
