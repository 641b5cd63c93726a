"""Block blobs: what is uploaded comes back, in one request or in blocks, from bytes, texts, files and streams."""

import base64
import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    BlobBlock,
    BlobType,
    ContentSettings,
    StandardBlobTier,
    download_blob_from_url,
    upload_blob_to_url,
)

from conftest import MIB, blob_client, container_client, content, refused, signed


@pytest.mark.parametrize("size", [0, 1, 4 * 1024, 4 * 1024 + 1, MIB, 4 * MIB, 4 * MIB + 1], ids=str)
def test_sizes(blob, size):
    data = os.urandom(size)
    blob.upload_blob(data)
    assert content(blob) == data
    properties = blob.get_blob_properties()
    assert (properties.size, properties.blob_type) == (size, BlobType.BLOCKBLOB)
    assert properties.content_settings.content_md5 == hashlib.md5(data).digest()


def generated(data):
    for start in range(0, len(data), 100_000):
        yield data[start : start + 100_000]


SOURCES = {
    "bytes": lambda data: data,
    "a stream": io.BytesIO,
    "a stream that can't seek": lambda data: io.BufferedReader(OneWay(data)),
    "an iterator": generated,
}


class OneWay(io.RawIOBase):
    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.data.readinto(buffer)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("size", [10, MIB + 7], ids=["small", "in blocks"])
def test_sources(container, make, size):
    small_parts = container_client(container.container_name, max_single_put_size=256 * 1024, max_block_size=256 * 1024)
    data = os.urandom(size)
    blob = small_parts.upload_blob("a", make(data))
    assert content(blob) == data


def test_a_text(blob):
    blob.upload_blob("grün 😀", encoding="utf-8")
    assert blob.download_blob(encoding="utf-8").readall() == "grün 😀"


def test_a_file(container, tmp_path):
    (tmp_path / "in").write_bytes(os.urandom(3 * MIB))
    with open(tmp_path / "in", "rb") as source:
        blob = container.upload_blob("a", source)
    with open(tmp_path / "out", "wb") as target:
        blob.download_blob().readinto(target)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "in").read_bytes()


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "with checksums"])
def test_parallel_blocks(container, checked):
    client = container_client(container.container_name, max_single_put_size=MIB, max_block_size=MIB)
    data, progress = os.urandom(9 * MIB + 5), []
    blob = client.get_blob_client("a")
    blob.upload_blob(
        data, max_concurrency=5, validate_content=checked, progress_hook=lambda done, total: progress.append((done, total))
    )
    assert content(blob, max_concurrency=5, validate_content=checked) == data
    assert max(progress) == (len(data), len(data))
    committed, uncommitted = blob.get_block_list("all")
    assert ([block.size for block in committed], uncommitted) == ([MIB] * 9 + [5], [])


def test_what_comes_with_an_upload(blob):
    settings = ContentSettings("text/html", "gzip", "de", "attachment", "no-cache")
    blob.upload_blob(b"a", content_settings=settings, metadata={"Key": "Value"}, tags={"t": "1"}, standard_blob_tier=StandardBlobTier.COOL)
    found = blob.get_blob_properties()
    kept = found.content_settings
    assert (kept.content_type, kept.content_encoding, kept.content_language) == ("text/html", "gzip", "de")
    assert (kept.content_disposition, kept.cache_control) == ("attachment", "no-cache")
    assert (found.metadata, found.tag_count, found.blob_tier) == ({"Key": "Value"}, 1, "Cool")
    assert blob.get_blob_tags() == {"t": "1"}


def test_it_comes_with_blocks_too(container):
    client = container_client(container.container_name, max_single_put_size=1, max_block_size=1024)
    blob = client.upload_blob(
        "a", os.urandom(3000), content_settings=ContentSettings("text/html"), metadata={"Key": "Value"}, tags={"t": "1"}
    )
    found = blob.get_blob_properties()
    assert (found.size, found.content_settings.content_type, found.metadata) == (3000, "text/html", {"Key": "Value"})
    assert (found.content_settings.content_md5, blob.get_blob_tags()) == (None, {"t": "1"})


def test_an_upload_overwrites_only_if_asked(filled):
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        filled.upload_blob(b"other")
    assert content(filled) == b"0123456789"
    filled.set_blob_metadata({"a": "1"})
    filled.upload_blob(b"other", overwrite=True)
    assert content(filled) == b"other"
    assert filled.get_blob_properties().metadata == {}


def test_an_upload_in_blocks_overwrites_only_if_asked(container, filled):
    client = container_client(container.container_name, max_single_put_size=4, max_block_size=4)
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        client.upload_blob("blob", b"in more blocks")
    assert content(filled) == b"0123456789"
    client.upload_blob("blob", b"in more blocks", overwrite=True)
    assert content(filled) == b"in more blocks"


def test_fifty_uploads_to_one_blob(container):
    """Each answers; at the end the blob is one of them, whole."""
    bodies = [bytes([number]) * (100_000 + number) for number in range(50)]

    def upload(body):
        with blob_client(container.container_name, "one") as client:
            return client.upload_blob(body, overwrite=True)["etag"]

    with ThreadPoolExecutor(50) as pool:
        etags = list(pool.map(upload, bodies))
    blob = container.get_blob_client("one")
    last = bodies[etags.index(blob.get_blob_properties().etag)]
    assert len(set(etags)) == 50
    assert content(blob) == last


def test_one_of_fifty_creates(container):
    def create(number):
        with blob_client(container.container_name, "one") as client:
            try:
                client.upload_blob(str(number))
                return number
            except ResourceExistsError:
                return None

    with ThreadPoolExecutor(50) as pool:
        [winner] = [number for number in pool.map(create, range(50)) if number is not None]
    assert content(container.get_blob_client("one")) == str(winner).encode()


def test_by_url(container, tmp_path):
    url = container.get_blob_client("a b").url
    credential = container.credential
    upload_blob_to_url(url, b"by url", credential=credential)
    download_blob_from_url(url, str(tmp_path / "a"), credential=credential)
    assert (tmp_path / "a").read_bytes() == b"by url"


# Blocks by hand


def block_id(number):
    return f"block-{number:05}"


def ids(blocks):
    return [block.id for block in blocks]


def stage(blob, *numbers):
    for number in numbers:
        blob.stage_block(block_id(number), f"{number};".encode())


def commit(blob, *numbers, **more):
    return blob.commit_block_list([BlobBlock(block_id(number)) for number in numbers], **more)


def test_blocks_are_staged_and_committed_in_the_order_given(blob):
    stage(blob, 1, 2, 3)
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        content(blob)
    assert not blob.exists()
    committed, uncommitted = blob.get_block_list("all")
    assert (committed, [(block.id, block.size) for block in uncommitted]) == ([], [(block_id(n), 2) for n in (1, 2, 3)])
    commit(blob, 3, 1, 1)
    assert content(blob) == b"3;1;1;"
    committed, uncommitted = blob.get_block_list("all")
    assert (ids(committed), uncommitted) == ([block_id(3), block_id(1), block_id(1)], [])


def test_committed_blocks_are_used_again(blob):
    stage(blob, 1, 2)
    commit(blob, 1, 2)
    stage(blob, 3)
    assert content(blob) == b"1;2;"
    commit(blob, 1, 3, 2)
    assert content(blob) == b"1;3;2;"


def test_a_staged_block_is_replaced(blob):
    blob.stage_block(block_id(1), b"old")
    blob.stage_block(block_id(1), b"new one")
    commit(blob, 1)
    assert content(blob) == b"new one"


def test_the_latest_of_two_blocks(blob):
    """This version of the SDK asks for the latest block, whatever the state that it is given."""
    stage(blob, 1)
    commit(blob, 1)
    blob.stage_block(block_id(1), b"new")
    commit(blob, 1)
    assert content(blob) == b"new"


def test_an_unknown_block(blob):
    stage(blob, 1)
    with refused(400, "InvalidBlockList"):
        commit(blob, 1, 2)
    assert not blob.exists()


def test_an_empty_list_is_an_empty_blob(blob):
    commit(blob)
    assert (content(blob), blob.get_block_list("all")) == (b"", ([], []))


def test_an_upload_drops_staged_blocks(blob):
    stage(blob, 1)
    blob.upload_blob(b"whole", overwrite=True)
    assert blob.get_block_list("all") == ([], [])
    with refused(400, "InvalidBlockList"):
        commit(blob, 1)


def test_a_block_without_content(blob):
    with refused(400, "InvalidHeaderValue"):
        blob.stage_block(block_id(1), b"")


def test_ids_of_one_blob_have_one_length(blob):
    stage(blob, 1)
    with refused(400, "InvalidBlobOrBlock"):
        blob.stage_block("x", b"a")


def test_a_block_that_was_damaged_on_its_way(blob):
    of_nothing = base64.b64encode(hashlib.md5().digest()).decode()
    with refused(400, "Md5Mismatch"):
        blob.stage_block(block_id(1), b"a", headers={"Content-MD5": of_nothing})


def test_a_thousand_blocks(container):
    with blob_client(container.container_name, "many") as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.stage_block(block_id(number), f"{number:04}".encode()), range(1000)))
        commit(client, *range(1000))
        assert content(client) == b"".join(f"{number:04}".encode() for number in range(1000))
        assert ids(client.get_block_list("committed")[0]) == [block_id(number) for number in range(1000)]


def test_blocks_from_a_url(container, filled):
    source = signed(filled)
    blob = container.get_blob_client("joined")
    blob.stage_block_from_url(block_id(1), source, source_offset=2, source_length=3)
    blob.stage_block_from_url(block_id(2), source)
    commit(blob, 1, 2)
    assert content(blob) == b"2340123456789"


def test_a_blob_from_a_url(container, filled):
    filled.set_blob_metadata({"a": "1"})
    blob = container.get_blob_client("copy")
    blob.upload_blob_from_url(signed(filled), metadata={"b": "2"}, content_settings=ContentSettings("text/plain"))
    found = blob.get_blob_properties()
    assert (content(blob), found.metadata, found.content_settings.content_type) == (b"0123456789", {"b": "2"}, "text/plain")
    assert found.copy.id is None
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        blob.upload_blob_from_url(signed(filled), overwrite=False)

