"""What every test needs: clients of the server under test, fresh queues, and what the server said."""

import os
import uuid
from contextlib import contextmanager

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueClient, QueueServiceClient

ENDPOINT = os.environ.get("PARTITA_QUEUE_ENDPOINT", "http://127.0.0.1:10001/devstoreaccount1").rstrip("/")
TABLES = os.environ.get("PARTITA_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1").rstrip("/")
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CREDENTIAL = {"account_name": ACCOUNT, "account_key": KEY}
CONNECTION = (
    f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
    f"QueueEndpoint={ENDPOINT};TableEndpoint={TABLES};"
)

# A retry would hide a wrong answer, and a server that hangs should fail the test soon.
OPTIONS = {"retry_total": 0, "connection_timeout": 10, "read_timeout": 30}


def service_client(endpoint=ENDPOINT, credential=CREDENTIAL, **more) -> QueueServiceClient:
    return QueueServiceClient(endpoint, credential=credential, **(OPTIONS | more))


def queue_client(name, endpoint=ENDPOINT, credential=CREDENTIAL, **more) -> QueueClient:
    return QueueClient(endpoint, name, credential=credential, **(OPTIONS | more))


def fresh_name(prefix="py-") -> str:
    return prefix + uuid.uuid4().hex[:20]


def code_of(error) -> str:
    code = error.error_code
    return getattr(code, "value", code)


@contextmanager
def refused(status, code, kind=HttpResponseError):
    with pytest.raises(kind) as refusal:
        yield refusal
    assert (refusal.value.status_code, code_of(refusal.value)) == (status, code), refusal.value


def texts(messages) -> list:
    return [message.content for message in messages]


@pytest.fixture(scope="session")
def service():
    with service_client() as client:
        yield client


@pytest.fixture
def queue():
    client = queue_client(fresh_name())
    client.create_queue()
    yield client
    try:
        client.delete_queue()
    except HttpResponseError as gone:
        assert code_of(gone) == "QueueNotFound"
    client.close()
