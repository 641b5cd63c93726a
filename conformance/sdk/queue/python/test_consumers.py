"""How applications poll: consumers beside each other, the loop of Azure Functions, and that of Durable Task."""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import TextBase64DecodePolicy, TextBase64EncodePolicy

from conftest import code_of, fresh_name, queue_client, refused

BASE64 = {"message_encode_policy": TextBase64EncodePolicy(), "message_decode_policy": TextBase64DecodePolicy()}


def test_consumers_beside_each_other_take_each_message_once(queue):
    names = [str(number) for number in range(120)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(queue.send_message, names))
        taken, lock = Counter(), threading.Lock()

        def consume(_):
            client = queue_client(queue.queue_name)
            while page := list(next(client.receive_messages(messages_per_page=7, visibility_timeout=300).by_page(), [])):
                with lock:
                    taken.update(message.content for message in page)
                for message in page:
                    assert message.dequeue_count == 1
                    client.delete_message(message)

        list(pool.map(consume, range(8)))
    assert taken == Counter(names)
    # The number is approximate: on a cluster it may be a moment old.
    until = time.monotonic() + 60
    while queue.get_queue_properties().approximate_message_count and time.monotonic() < until:
        time.sleep(0.1)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_producers_and_consumers_at_once(queue):
    total, done, lock = 80, Counter(), threading.Lock()

    def produce(producer):
        for number in range(total // 4):
            queue.send_message(f"{producer} {number}")

    def consume(_):
        while sum(done.values()) < total:
            if message := queue.receive_message(visibility_timeout=300):
                queue.delete_message(message)
                with lock:
                    done[message.content] += 1

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(produce, n) for n in range(4)] + [pool.submit(consume, n) for n in range(4)]
        for job in jobs:
            job.result(timeout=300)
    assert len(done) == total and set(done.values()) == {1}


class FunctionsHost:
    """The poll loop of Azure Functions and WebJobs, with their defaults, except that time is short."""

    BATCH, LEASE, MOST_DELIVERIES = 16, 600, 5

    def __init__(self, name, function):
        self.queue, self.poison = queue_client(name, **BASE64), queue_client(name + "-poison", **BASE64)
        self.function = function

    def poll(self):
        try:
            self.queue.get_queue_properties()
            page = list(next(self.queue.receive_messages(messages_per_page=self.BATCH, visibility_timeout=self.LEASE).by_page(), []))
        except HttpResponseError as error:
            if code_of(error) in ("QueueNotFound", "QueueBeingDeleted", "QueueDisabled"):
                return 0
            raise
        for message in page:
            self.process(message)
        return len(page)

    def process(self, message):
        # Long functions renew their lease: an update without text. Its receipt is the one that counts.
        renewed = self.queue.update_message(message.id, message.pop_receipt, visibility_timeout=self.LEASE)
        receipt = renewed.pop_receipt
        try:
            self.function(message)
        except ValueError:
            if message.dequeue_count >= self.MOST_DELIVERIES:
                self.bury(message, receipt)
            else:
                self.queue.update_message(message.id, receipt, visibility_timeout=0)
            return
        self.delete(message.id, receipt)

    def bury(self, message, receipt):
        try:
            self.poison.send_message(message.content)
        except ResourceNotFoundError:
            self.poison.create_queue()
            self.poison.send_message(message.content)
        self.delete(message.id, receipt)

    def delete(self, id, receipt):
        try:
            self.queue.delete_message(id, receipt)
        except HttpResponseError as error:
            assert code_of(error) in ("MessageNotFound", "PopReceiptMismatch")


def test_azure_functions():
    name, done, tries = fresh_name("func-"), [], Counter()

    def function(message):
        tries[message.content] += 1
        if message.content == "poison":
            raise ValueError
        if message.content == "flaky" and message.dequeue_count < 3:
            raise ValueError
        done.append(message.content)

    host = FunctionsHost(name, function)
    assert host.poll() == 0  # before the queue is there
    host.queue.create_queue()
    assert host.poll() == 0
    for text in ["é", "flaky", "poison", *map(str, range(20))]:
        host.queue.send_message(text)
    while host.poll():
        pass
    assert sorted(done) == sorted(["é", "flaky", *map(str, range(20))])
    assert (tries["flaky"], tries["poison"]) == (3, 5)
    assert host.queue.get_queue_properties().approximate_message_count == 0
    assert [message.content for message in host.poison.peek_messages(32)] == ["poison"]
    host.queue.delete_queue()
    host.poison.delete_queue()


class TaskHub:
    """The queues of a Durable Task hub: raw JSON, no expiry, timers by visibility, receipts that a renewal replaces."""

    def __init__(self):
        self.hub = fresh_name("hub-")
        self.control, self.work = queue_client(f"{self.hub}-control-00"), queue_client(f"{self.hub}-workitems")
        for queue in (self.control, self.work):
            try:
                queue.create_queue()
            except ResourceExistsError:
                pass

    def send(self, queue, after=0, **content):
        return queue.send_message(json.dumps(content), time_to_live=-1, visibility_timeout=after)

    def take(self, queue):
        return list(next(queue.receive_messages(messages_per_page=32, visibility_timeout=300).by_page(), []))

    def renew(self, queue, message):
        return queue.update_message(message.id, message.pop_receipt, visibility_timeout=300)

    def abandon(self, queue, message):
        seconds = min(2**message.dequeue_count, 600)
        return queue.update_message(message.id, message.pop_receipt, visibility_timeout=seconds)

    def delete(self, queue, id, receipts):
        """Renewal and deletion race for the receipt, so a deletion that misses is tried once more with the newer one."""
        for receipt in receipts:
            try:
                return queue.delete_message(id, receipt)
            except HttpResponseError as error:
                assert code_of(error) in ("MessageNotFound", "PopReceiptMismatch")
        raise AssertionError("both receipts were stale")


def test_durable_task():
    hub = TaskHub()
    hub.send(hub.control, event="started", instance="1")
    # Far longer than the next requests take, also on a busy machine.
    timer = hub.send(hub.control, event="timer", instance="1", after=8)
    assert timer.expires_on.year == 9999

    (started,) = hub.take(hub.control)
    assert json.loads(started.content)["event"] == "started"
    assert [m.content for m in hub.control.peek_messages(32)] == []
    assert hub.control.get_queue_properties().approximate_message_count == 2

    hub.send(hub.work, activity="a")
    (work,) = hub.take(hub.work)
    renewed = hub.renew(hub.work, work)
    hub.delete(hub.work, work.id, [work.pop_receipt, renewed.pop_receipt])
    assert hub.take(hub.work) == []

    abandoned = hub.abandon(hub.control, started)
    assert abandoned.next_visible_on > started.inserted_on
    with refused(404, "MessageNotFound"):
        hub.control.delete_message(started.id, started.pop_receipt)

    seen = {}
    until = time.monotonic() + 120
    while len(seen) < 2 and time.monotonic() < until:
        for message in hub.take(hub.control):
            seen[json.loads(message.content)["event"]] = (message, time.time())
        time.sleep(0.05)
    (first, _), (fired, at) = seen["started"], seen["timer"]
    assert (first.dequeue_count, fired.dequeue_count) == (2, 1)
    assert at >= timer.next_visible_on.timestamp()  # never before its time
    for message, _ in seen.values():
        hub.control.delete_message(message)
    assert hub.control.get_queue_properties().approximate_message_count == 0
    hub.control.delete_queue()
    hub.work.delete_queue()
