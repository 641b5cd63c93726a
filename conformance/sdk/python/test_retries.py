"""A busy server: the SDK's own retries get the work done, and without them its error says so."""

import os
import re
import subprocess

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

from conftest import ACCOUNT, KEY, code_of, entity, fresh_name, row_keys, service_client

BINARY = os.environ.get("PARTITA_BINARY")
NAMES = [f"{number:03}" for number in range(12)]

pytestmark = pytest.mark.skipif(not BINARY, reason="PARTITA_BINARY names no server to start")


@pytest.fixture(scope="module")
def busy():
    """The endpoint of a server that grants a partition two entities a second: less than the slowest machine asks for."""
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error"]
    with subprocess.Popen([*command, "--throttle", "100000/2"], stdout=subprocess.PIPE, text=True) as server:
        try:
            found = (re.search(r"TableEndpoint=([^;]+)", line) for line in server.stdout)
            yield next(match[1] for match in found if match)
        finally:
            server.terminate()


def fill(table, **more):
    for name in NAMES:
        table.create_entity(entity(name), **more)


def test_retries_get_everything_written(busy):
    statuses = []
    with TableServiceClient(busy, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
        table = service.create_table(fresh_name())
        fill(table, raw_response_hook=lambda answer: statuses.append(answer.http_response.status_code))
        assert row_keys(table.query_entities("PartitionKey eq 'p'")) == NAMES
    assert 503 in statuses


def test_without_retries_it_is_the_sdks_error(busy):
    with service_client(busy) as service:
        table = service.create_table(fresh_name())
        with pytest.raises(HttpResponseError) as refused:
            fill(table)
    assert (refused.value.status_code, code_of(refused.value)) == (503, "ServerBusy")
