"""A busy server: the SDK's own retries get the work done, and without them its error says so."""

import os
import re
import subprocess

import pytest
from azure.storage.queue import LinearRetry

from conftest import fresh_name, queue_client, refused, service_client

BINARY = os.environ.get("PARTITA_BINARY")

pytestmark = pytest.mark.skipif(not BINARY, reason="PARTITA_BINARY names no server to start")


@pytest.fixture(scope="module")
def busy():
    """The endpoint of a server that grants a queue two messages a second: less than the slowest machine asks for."""
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error"]
    with subprocess.Popen([*command, "--throttle", "100000/2"], stdout=subprocess.PIPE, text=True) as server:
        try:
            found = (re.search(r"QueueEndpoint=([^;]+)", line) for line in server.stdout)
            yield next(match[1] for match in found if match)
        finally:
            server.terminate()


def fill(queue, **more):
    for number in range(12):
        queue.send_message(str(number), **more)


def test_retries_get_everything_put(busy):
    retries = LinearRetry(backoff=1, retry_total=5, random_jitter_range=0)
    queue, statuses = queue_client(fresh_name(), busy, retry_policy=retries), []
    queue.create_queue()
    fill(queue, raw_response_hook=lambda answer: statuses.append(answer.http_response.status_code))
    assert queue.get_queue_properties().approximate_message_count == 12
    assert 503 in statuses


def test_without_retries_it_is_the_sdks_error(busy):
    with service_client(busy) as service:
        queue = service.create_queue(fresh_name())
        with refused(503, "ServerBusy"):
            fill(queue)
