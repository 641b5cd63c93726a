"""What every test needs: clients of the server under test, fresh tables, and what the server said."""

import json
import os
import uuid
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient

ENDPOINT = os.environ.get("PARTITA_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1").rstrip("/")
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# A retry would hide a wrong answer, and a server that hangs should fail the test soon.
OPTIONS = {"retry_total": 0, "connection_timeout": 10, "read_timeout": 30}


def service_client(endpoint=ENDPOINT, key=KEY, **more) -> TableServiceClient:
    return TableServiceClient(endpoint, credential=AzureNamedKeyCredential(ACCOUNT, key), **OPTIONS, **more)


def table_client(name, endpoint=ENDPOINT, key=KEY) -> TableClient:
    return TableClient(endpoint, name, credential=AzureNamedKeyCredential(ACCOUNT, key), **OPTIONS)


def fresh_name(prefix="py") -> str:
    return prefix + uuid.uuid4().hex[:20]


def cases(file):
    return json.loads((Path(__file__).parent.parent / "cases" / file).read_text(encoding="utf-8"))


def code_of(error) -> str:
    """The service's error code; the SDK leaves it undecoded on the errors of `create_entity`."""
    code = getattr(error, "error_code", None)
    if code is None:
        code = error.response.json()["odata.error"]["code"]
    return getattr(code, "value", code)


def entity(row_key="r", partition_key="p", **properties) -> dict:
    return {"PartitionKey": partition_key, "RowKey": row_key, **properties}


def row_keys(entities) -> list:
    return [e["RowKey"] for e in entities]


@pytest.fixture(scope="session")
def service():
    with service_client() as client:
        yield client


@pytest.fixture(scope="module")
def shared_table(service):
    """One table for a whole file of tests; each of them keeps to a partition of its own."""
    yield from _table(service)


@pytest.fixture
def table(service):
    yield from _table(service)


def _table(service):
    client = service.create_table(fresh_name())
    yield client
    client.delete_table()


@pytest.fixture
def partition() -> str:
    return uuid.uuid4().hex
