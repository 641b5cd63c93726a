"""Append blobs: blocks stay in the order in which they were appended."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobType

from conftest import MIB, blob_client, container_client, content, refused, signed


@pytest.fixture
def log(blob):
    blob.create_append_blob()
    return blob


def test_blocks_are_appended(log):
    offsets = []
    for number in range(3):
        answer = log.append_block(f"line {number}\n")
        offsets.append((int(answer["blob_append_offset"]), answer["blob_committed_block_count"]))
    assert offsets == [(0, 1), (7, 2), (14, 3)]
    assert content(log) == b"line 0\nline 1\nline 2\n"
    properties = log.get_blob_properties()
    assert (properties.blob_type, properties.append_blob_committed_block_count) == (BlobType.APPENDBLOB, 3)


@pytest.mark.parametrize("size", [1, 4 * MIB, 4 * MIB + 1], ids=str)
def test_sizes(log, size):
    data = os.urandom(size)
    log.append_block(data)
    log.append_block(b"end")
    assert content(log) == data + b"end"


def test_an_upload_creates_and_then_appends(blob):
    blob.upload_blob(b"first;", blob_type=BlobType.APPENDBLOB)
    blob.upload_blob(b"second;", blob_type=BlobType.APPENDBLOB)
    assert content(blob) == b"first;second;"
    blob.upload_blob(b"new;", blob_type=BlobType.APPENDBLOB, overwrite=True)
    assert content(blob) == b"new;"


def test_an_upload_in_blocks(container):
    client = container_client(container.container_name, max_block_size=100_000)
    data = os.urandom(550_000)
    blob = client.upload_blob("log", data, blob_type=BlobType.APPENDBLOB)
    assert (content(blob), blob.get_blob_properties().append_blob_committed_block_count) == (data, 6)


def test_appends_beside_each_other(container, log):
    def append(number):
        with blob_client(container.container_name, log.blob_name) as client:
            for line in range(10):
                client.append_block(f"{number:02} {line}\n")

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(append, range(10)))
    lines = content(log).decode().splitlines()
    assert sorted(lines) == [f"{number:02} {line}" for number in range(10) for line in range(10)]
    for number in range(10):
        own = [line for line in lines if line.startswith(f"{number:02} ")]
        assert own == sorted(own)


def test_a_position(log):
    log.append_block(b"abc", appendpos_condition=0)
    with refused(412, "AppendPositionConditionNotMet"):
        log.append_block(b"abc", appendpos_condition=0)
    log.append_block(b"abc", appendpos_condition=3, maxsize_condition=6)
    with refused(412, "MaxBlobSizeConditionNotMet"):
        log.append_block(b"a", maxsize_condition=6)
    assert content(log) == b"abcabc"


def test_checksums(log):
    log.append_block(b"abc", validate_content=True)
    with refused(400, "Md5Mismatch"):
        log.append_block(b"abc", headers={"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="})


def test_only_to_an_append_blob(filled):
    with refused(409, "InvalidBlobType"):
        filled.append_block(b"a")


def test_a_missing_blob(blob):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.append_block(b"a")


def test_from_a_url(container, filled):
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block_from_url(signed(filled), source_offset=0, source_length=3)
    log.append_block_from_url(signed(filled))
    assert content(log) == b"0120123456789"


def test_a_sealed_blob(log):
    log.append_block(b"a")
    log.seal_append_blob()
    with refused(409, "BlobIsSealed"):
        log.append_block(b"b")
    assert (content(log), log.get_blob_properties()["is_append_blob_sealed"]) == (b"a", True)
    log.set_blob_metadata({"still": "allowed"})
