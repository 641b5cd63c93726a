"""Lists of blobs: flat and by folders, in order, in pages, with everything that can be included."""

import pytest
from azure.storage.blob import BlobBlock, BlobPrefix, ContentSettings

from conftest import container_client, fresh_name, names, refused

# In the order of the service: by the bytes of the UTF-8 form.
NAMES = ["A", "a", "a b", "a%2Fb", "a+b", "a-b", "a.b", "a/", "a/b", "a/b/c", "a//b", "a0", "b", "ä", "日本", "😀"]


@pytest.fixture(scope="module")
def library():
    """A container that no test changes."""
    client = container_client(fresh_name())
    client.create_container()
    for name in NAMES:
        client.upload_blob(name, name.encode())
    yield client
    client.delete_container()


def in_order(these):
    return sorted(these, key=lambda name: name.encode())


def test_the_order(library):
    assert names(library.list_blobs()) == in_order(NAMES)
    assert list(library.list_blob_names()) == in_order(NAMES)


def test_prefixes(library):
    for prefix in ("a", "a/", "a/b", "ä", "😀", "none", "A"):
        expected = in_order(name for name in NAMES if name.startswith(prefix))
        assert names(library.list_blobs(name_starts_with=prefix)) == expected


@pytest.mark.parametrize("size", [1, 3, 5, 16, 17])
def test_pages(library, size):
    pages = library.list_blobs(results_per_page=size).by_page()
    found = [names(page) for page in pages]
    assert [name for page in found for name in page] == in_order(NAMES)
    assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)
    assert (len(found), pages.continuation_token or None) == (-(-len(NAMES) // size), None)


def test_a_list_goes_on_elsewhere(library):
    pages = library.list_blobs(results_per_page=5).by_page()
    first = names(next(pages))
    rest = library.list_blobs().by_page(pages.continuation_token)
    assert first + [name for page in rest for name in names(page)] == in_order(NAMES)


def walk(container, **more):
    """Names, and whether they are folders. The SDK puts the folders of a page before its blobs, so the order is made here."""
    found = [(one.name, isinstance(one, BlobPrefix)) for one in container.walk_blobs(**more)]
    return sorted(found, key=lambda one: one[0].encode())


@pytest.mark.parametrize("size", [None, 1, 3])
def test_folders(library, size):
    top = [(name, False) for name in NAMES if "/" not in name] + [("a/", True)]
    assert walk(library, results_per_page=size) == sorted(top, key=lambda one: one[0].encode())
    inside = [("a/", False), ("a//", True), ("a/b", False), ("a/b/", True)]
    assert walk(library, name_starts_with="a/", results_per_page=size) == inside


def test_a_folder_is_opened(library):
    [folder] = [one for one in library.walk_blobs() if isinstance(one, BlobPrefix)]
    assert sorted(names(folder)) == ["a/", "a//", "a/b", "a/b/"]


def test_another_delimiter(library):
    assert walk(library, name_starts_with="a", delimiter="b") == [
        (name, name.endswith("b")) for name in in_order(["a", "a b", "a%2Fb", "a+b", "a-b", "a.b", "a/", "a//b", "a/b", "a0"])
    ]


def test_an_empty_container(container):
    assert (list(container.list_blobs()), list(container.walk_blobs())) == ([], [])


def test_what_is_listed_of_a_blob(container):
    settings = ContentSettings("text/html", "gzip", "de", "attachment", "no-cache")
    blob = container.upload_blob("a", b"abc", content_settings=settings, metadata={"Key": "Value"}, tags={"t": "1"})
    [found] = container.list_blobs()
    expected = blob.get_blob_properties()
    for field in ("name", "container", "size", "etag", "last_modified", "creation_time", "blob_type", "blob_tier", "content_settings"):
        one, other = getattr(found, field), getattr(expected, field)
        if field == "etag":
            one = f'"{one}"'
        assert (str(one) if field == "content_settings" else one) == (str(other) if field == "content_settings" else other), field
    assert (found.lease.status, found.lease.state, found.server_encrypted, found.tag_count) == ("unlocked", "available", True, 1)
    assert (found.metadata, found.tags, found.snapshot, found.deleted) == ({}, None, None, None)


@pytest.fixture
def mixed(container):
    """A block blob with a snapshot, metadata, tags and a lease; a copy; an append and a page blob; an upload that is not done."""
    blob = container.upload_blob("blob", b"abc", metadata={"Key": "Value"}, tags={"t": "1"})
    blob.create_snapshot()
    blob.acquire_lease()
    container.get_blob_client("copy").start_copy_from_url(blob.url)
    container.get_blob_client("log").create_append_blob()
    container.get_blob_client("disk").create_page_blob(512, sequence_number=3)
    container.get_blob_client("staged").stage_block("1", b"abc")
    return container


def test_nothing_included(mixed):
    found = {one.name: one for one in mixed.list_blobs()}
    assert list(found) == ["blob", "copy", "disk", "log"]
    assert [found[name].blob_type for name in found] == ["BlockBlob", "BlockBlob", "PageBlob", "AppendBlob"]
    assert (found["blob"].metadata, found["blob"].tags, found["copy"].copy.id) == ({}, None, None)
    assert (found["blob"].lease.state, found["blob"].lease.duration) == ("leased", "infinite")
    assert found["disk"].page_blob_sequence_number == 3
    assert (found["blob"].blob_tier, found["log"].blob_tier, found["disk"].blob_tier) == ("Hot", None, None)


def test_metadata_and_tags(mixed):
    found = {one.name: one for one in mixed.list_blobs(include=["metadata", "tags"])}
    assert (found["blob"].metadata, found["blob"].tags) == ({"Key": "Value"}, {"t": "1"})
    assert (found["copy"].metadata, found["copy"].tags) == ({"Key": "Value"}, None)


def test_copies(mixed):
    found = {one.name: one for one in mixed.list_blobs(include=["copy"])}
    assert (found["copy"].copy.status, found["copy"].copy.progress) == ("success", "3/3")
    assert found["copy"].copy.source == mixed.get_blob_client("blob").url
    assert found["blob"].copy.id is None


def test_snapshots(mixed):
    found = list(mixed.list_blobs(include=["snapshots"], name_starts_with="blob"))
    assert [bool(one.snapshot) for one in found] == [True, False]
    assert [one.lease.state for one in found] == [None, "leased"]


def test_uncommitted_blobs(mixed):
    found = {one.name: one for one in mixed.list_blobs(include=["uncommittedblobs"])}
    assert (list(found), found["staged"].size) == (["blob", "copy", "disk", "log", "staged"], 0)
    mixed.get_blob_client("staged").commit_block_list([BlobBlock("1")])
    assert "staged" in names(mixed.list_blobs())


@pytest.mark.parametrize("size", [1, 2])
def test_everything_in_pages(mixed, size):
    mixed.get_blob_client("blob").create_snapshot()
    include = ["snapshots", "metadata", "tags", "copy", "uncommittedblobs", "deleted"]
    everything = [(one.name, one.snapshot) for one in mixed.list_blobs(include=include)]
    pages = mixed.list_blobs(include=include, results_per_page=size).by_page()
    assert [(one.name, one.snapshot) for page in pages for one in page] == everything
    assert [name for name, _ in everything] == ["blob"] * 3 + ["copy", "disk", "log", "staged"]
    assert everything[0][1] < everything[1][1]


def test_a_marker_of_somebody_else(library):
    with pytest.raises(Exception) as refusal:
        list(library.list_blobs().by_page("nonsense"))
    assert refusal.value.status_code == 400


def test_no_results_per_page(library):
    with refused(400, "OutOfRangeQueryParameterValue"):
        list(library.list_blobs(results_per_page=0).by_page())
