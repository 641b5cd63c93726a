"""Downloads: whole, ranges, streams, checksums, and what happens when the blob changes meanwhile."""

import hashlib
import io
import os
import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

from conftest import ENDPOINT, KIB, MIB, blob_client, content, refused


@pytest.fixture(scope="module")
def large():
    return os.urandom(5 * MIB + 3)


@pytest.fixture
def parts(container, large):
    """A client that downloads a blob of 5 MiB in six parts."""
    container.upload_blob("large", large)
    return blob_client(container.container_name, "large", max_single_get_size=MIB, max_chunk_get_size=MIB)


RANGES = {
    "the first byte": (0, 1),
    "the last byte": (9, 1),
    "in the middle": (3, 4),
    "to the end": (4, None),
    "beyond the end": (8, 100),
    "all": (0, 10),
}


@pytest.mark.parametrize("offset, length", RANGES.values(), ids=RANGES.keys())
def test_ranges(filled, offset, length):
    expected = b"0123456789"[offset : None if length is None else offset + length]
    assert content(filled, offset=offset, length=length) == expected


def test_a_range_after_the_end(filled):
    with refused(416, "InvalidRange"):
        content(filled, offset=10, length=1)


def test_ranges_over_chunks(parts, large):
    for offset, length in ((MIB - 1, 2), (0, MIB), (MIB, 2 * MIB), (5 * MIB, 3), (4 * MIB + 17, MIB - 14)):
        assert content(parts, offset=offset, length=length) == large[offset : offset + length]


def test_an_empty_blob(blob):
    blob.upload_blob(b"")
    assert content(blob) == b""
    assert list(blob.download_blob().chunks()) == []


def test_in_parallel_into_a_stream(parts, large):
    target = io.BytesIO()
    assert parts.download_blob(max_concurrency=4).readinto(target) == len(large)
    assert target.getvalue() == large


def test_as_chunks(parts, large):
    found = list(parts.download_blob().chunks())
    assert ([len(chunk) for chunk in found], b"".join(found)) == ([MIB] * 5 + [3], large)


def test_read_by_read(parts, large):
    stream, found = parts.download_blob(), b""
    while piece := stream.read(700 * KIB):
        found += piece
    assert found == large


def test_checksums_of_ranges(parts, large):
    assert content(parts, validate_content=True, max_concurrency=2) == large
    assert content(parts, offset=5, length=MIB, validate_content=True) == large[5 : 5 + MIB]


def test_what_comes_with_a_download(filled):
    filled.set_blob_metadata({"Key": "Value"})
    found = filled.download_blob().properties
    properties = filled.get_blob_properties()
    assert (found.size, found.etag, found.metadata) == (10, properties.etag, {"Key": "Value"})
    assert (found.last_modified, found.creation_time) == (properties.last_modified, properties.creation_time)
    assert found.content_settings.content_md5 == hashlib.md5(b"0123456789").digest()


def test_a_blob_that_changes_meanwhile(parts):
    """The SDK asks for later parts of the version that it began with."""
    stream = parts.download_blob()
    parts.upload_blob(os.urandom(3 * MIB), overwrite=True)
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        stream.readall()


def test_a_snapshot_stays_while_its_blob_changes(parts, large, container):
    snapshot = parts.create_snapshot()
    parts.upload_blob(b"new", overwrite=True)
    assert content(container.get_blob_client("large", snapshot=snapshot["snapshot"])) == large


@contextmanager
def cut_after(count):
    """The address of a proxy that ends its first download after this many bytes."""
    server = urlsplit(ENDPOINT)
    listener = socket.create_server(("127.0.0.1", 0))
    cuts = [count]

    def carry(source, target, limit=None):
        with suppress(OSError):
            while data := source.recv(64 * KIB):
                if limit is not None:
                    data = data[:limit]
                    limit -= len(data)
                target.sendall(data)
                if limit == 0:
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept():
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                upstream = socket.create_connection((server.hostname, server.port))
                limit = cuts.pop() if cuts else None
                threading.Thread(target=carry, args=(client, upstream), daemon=True).start()
                threading.Thread(target=carry, args=(upstream, client, limit), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{server.path}"
    finally:
        listener.close()


def test_a_connection_that_breaks(parts, large):
    """The SDK asks again, and gets the same bytes."""
    with cut_after(300 * KIB) as endpoint:
        client = blob_client(
            parts.container_name, "large", endpoint, max_single_get_size=MIB, max_chunk_get_size=MIB, retry_total=3, initial_backoff=0
        )
        assert content(client) == large


def test_a_missing_blob(blob):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.download_blob()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.get_blob_properties()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.delete_blob()
    assert not blob.exists()
