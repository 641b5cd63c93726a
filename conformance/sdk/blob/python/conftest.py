"""What every test needs: clients of the server under test, fresh containers, and what the server said."""

import os
import re
import subprocess
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient, generate_blob_sas

ENDPOINT = os.environ.get("PARTITA_BLOB_ENDPOINT", "http://127.0.0.1:10000/devstoreaccount1").rstrip("/")
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CREDENTIAL = {"account_name": ACCOUNT, "account_key": KEY}
CONNECTION = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={ENDPOINT};"
BINARY = os.environ.get("PARTITA_BINARY")

KIB, MIB = 1024, 1024 * 1024

# A retry would hide a wrong answer, and a server that hangs should fail the test soon.
OPTIONS = {"retry_total": 0, "connection_timeout": 10, "read_timeout": 60}


def service_client(endpoint=ENDPOINT, credential=CREDENTIAL, **more) -> BlobServiceClient:
    return BlobServiceClient(endpoint, credential=credential, **(OPTIONS | more))


def container_client(name, endpoint=ENDPOINT, credential=CREDENTIAL, **more) -> ContainerClient:
    return ContainerClient(endpoint, name, credential=credential, **(OPTIONS | more))


def blob_client(container, blob, endpoint=ENDPOINT, credential=CREDENTIAL, **more) -> BlobClient:
    return BlobClient(endpoint, container, blob, credential=credential, **(OPTIONS | more))


def fresh_name(prefix="py-") -> str:
    return prefix + uuid.uuid4().hex[:20]


def hours(count) -> datetime:
    return datetime.now(timezone.utc) + timedelta(hours=count)


def code_of(error) -> str:
    code = error.error_code
    return getattr(code, "value", code)


@contextmanager
def refused(status, code, kind=HttpResponseError):
    with pytest.raises(kind) as refusal:
        yield refusal
    assert (refusal.value.status_code, code_of(refusal.value)) == (status, code), refusal.value


def content(blob, **more) -> bytes:
    return blob.download_blob(**more).readall()


def signed(blob, permission="r") -> str:
    """The address of a blob with a token of its own."""
    token = generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, account_key=KEY, permission=permission, expiry=hours(1), snapshot=blob.snapshot
    )
    return f"{blob.url}{'&' if '?' in blob.url else '?'}{token}"


def names(blobs) -> list:
    return [blob.name for blob in blobs]


@contextmanager
def served(*settings):
    """The Blob endpoint of a new server with these settings."""
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error", *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            found = (re.search(r"BlobEndpoint=(http:[^;]+)", line) for line in server.stdout)
            yield next(match[1] for match in found if match)
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def service():
    with service_client() as client:
        yield client


@pytest.fixture(scope="module")
def own_service():
    """A server whose properties no other test depends on."""
    if not BINARY:
        pytest.skip("PARTITA_BINARY names no server to start")
    with served() as endpoint, service_client(endpoint) as client:
        yield client


@pytest.fixture
def container():
    client = container_client(fresh_name())
    client.create_container()
    yield client
    try:
        client.delete_container()
    except HttpResponseError as gone:
        assert code_of(gone) == "ContainerNotFound"
    client.close()


@pytest.fixture
def blob(container):
    """A blob that does not exist."""
    return container.get_blob_client("blob")


@pytest.fixture
def filled(blob):
    """A block blob with ten bytes."""
    blob.upload_blob(b"0123456789")
    return blob
