"""Names of blobs with unusual characters: each is a blob of its own, and comes back as it was given."""

from contextlib import suppress

import pytest
from azure.core.exceptions import ResourceExistsError

from conftest import blob_client, container_client, content, names, refused, signed

NAMES = {
    "blanks": "a b  c",
    "slashes": "a//b/",
    "leading slash": "/a",
    "percent": "100%",
    "percent encoded": "a%20b%2Fc",
    "plus": "a+b",
    "question": "a?b=c&d",
    "fragment": "a#b",
    "quotes": "a'b\"c",
    "markup": "<a>&amp;</a>",
    "brackets": "[a]{b}(c)|^`~",
    "signs": "!@$*,;:=-_.",
    "unicode": "日本語/ñ ß Ω",
    "emoji": "👩‍👩‍👧 😀",
    "composed": "é",
    "decomposed": "e\u0301",
    "dots": "a.b..c",
    "not in XML": "a\uffffb",
    "long": "a" * 1024,
    "long unicode": "日" * 200,
    "many folders": "/".join("a" * 100),
    "like a container": "$root",
    "like an operation": "comp=list",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_comes_back(container, name):
    blob = container.upload_blob(name, name.encode("utf-8"))
    assert content(blob) == name.encode("utf-8")
    assert names(container.list_blobs()) == [name]
    assert blob.exists()
    by_token = type(blob).from_blob_url(signed(blob))
    assert content(by_token) == name.encode("utf-8")
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(blob.url)
    assert content(copy) == name.encode("utf-8")
    container.delete_blobs(name)
    assert not blob.exists()


def test_names_differ_by_case_and_by_form(container):
    different = ["a", "A", "é", "e\u0301", "a/", "a b", "a+b", "a%20b"]
    for name in different:
        container.upload_blob(name, name)
    assert sorted(names(container.list_blobs())) == sorted(different)
    for name in different:
        assert content(container.get_blob_client(name)) == name.encode()


def test_a_name_that_is_too_long(container):
    with refused(400, "OutOfRangeInput"):
        container.upload_blob("a" * 1025, b"")


def test_the_root_container():
    """Its name is one that no other container may have."""
    with suppress(ResourceExistsError):
        container_client("$root").create_container()
    blob = blob_client("$root", "file.txt")
    blob.upload_blob(b"root", overwrite=True)
    assert content(blob) == b"root"
    blob.delete_blob()
