"""Properties, metadata, tags and tiers of blobs."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContentSettings, StandardBlobTier

from conftest import content, fresh_name, names, refused


def test_properties_of_a_new_blob(filled):
    found = filled.get_blob_properties()
    assert (found.size, found.blob_type, found.content_settings.content_type) == (10, "BlockBlob", "application/octet-stream")
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("unlocked", "available", None)
    assert (found.blob_tier, found.blob_tier_inferred, found.blob_tier_change_time) == ("Hot", True, None)
    assert (found.server_encrypted, found.deleted, found.snapshot, found.tag_count) == (True, False, None, None)
    assert found.creation_time == found.last_modified
    assert found.etag.startswith('"0x') and found.copy.id is None


def test_http_headers_are_replaced_as_a_whole(filled):
    filled.set_http_headers(ContentSettings("text/plain", "gzip", "en", "inline", "no-store", bytearray(b"0123456789abcdef")))
    kept = filled.get_blob_properties().content_settings
    assert (kept.content_type, kept.content_encoding, kept.content_language) == ("text/plain", "gzip", "en")
    assert (kept.content_disposition, kept.cache_control, bytes(kept.content_md5)) == ("inline", "no-store", b"0123456789abcdef")
    filled.set_http_headers(ContentSettings(content_type="text/html"))
    kept = filled.get_blob_properties().content_settings
    assert (kept.content_type, kept.content_encoding, kept.cache_control, kept.content_md5) == ("text/html", None, None, None)


def test_metadata_is_replaced_and_keeps_its_case(filled):
    filled.set_blob_metadata({"Hello": "World", "UP_1": "a b", "a1": "1", "a_1": "2"})
    assert filled.get_blob_properties().metadata == {"Hello": "World", "UP_1": "a b", "a1": "1", "a_1": "2"}
    filled.set_blob_metadata({"other": "1"})
    assert filled.get_blob_properties().metadata == {"other": "1"}
    filled.set_blob_metadata()
    assert filled.get_blob_properties().metadata == {}
    assert content(filled) == b"0123456789"


def test_metadata_that_is_refused(filled):
    with refused(400, "InvalidMetadata"):
        filled.set_blob_metadata({"not-a-name": "1"})
    with refused(400, "MetadataTooLarge"):
        filled.set_blob_metadata({f"name{number}": "a" * 2000 for number in range(5)})


def test_each_write_has_its_etag(filled):
    etags = [filled.get_blob_properties().etag]
    etags.append(filled.set_blob_metadata({"a": "1"})["etag"])
    etags.append(filled.set_http_headers(ContentSettings("text/plain"))["etag"])
    etags.append(filled.upload_blob(b"new", overwrite=True)["etag"])
    assert len(set(etags)) == 4
    filled.set_blob_tags({"a": "1"})
    filled.set_standard_blob_tier("Cool")
    assert filled.get_blob_properties().etag == etags[-1]


def test_the_time_of_creation_stays(filled):
    made = filled.get_blob_properties().creation_time
    filled.set_blob_metadata({"a": "1"})
    assert filled.get_blob_properties().creation_time == made


# Tags


def test_tags_are_replaced(filled):
    assert filled.get_blob_tags() == {}
    tags = {"a b": "1", "+-./:=_": "+-./:=_ ", "empty": ""}
    filled.set_blob_tags(tags)
    assert filled.get_blob_tags() == tags
    assert filled.get_blob_properties().tag_count == 3
    filled.set_blob_tags({"other": "1"})
    assert filled.get_blob_tags() == {"other": "1"}
    filled.set_blob_tags()
    assert filled.get_blob_tags() == {}


TAGS_REFUSED = {
    "too many": {f"tag{number}": "1" for number in range(11)},
    "a long name": {"a" * 129: "1"},
    "a long value": {"a": "1" * 257},
    "a character": {"a": "ü"},
}


@pytest.mark.parametrize("tags", TAGS_REFUSED.values(), ids=TAGS_REFUSED.keys())
def test_tags_that_are_refused(filled, tags):
    with pytest.raises(Exception) as refusal:
        filled.set_blob_tags(tags)
    assert refusal.value.status_code == 400


@pytest.fixture
def shelf(container):
    """Ten blobs with a number and a colour."""
    for number in range(10):
        tags = {"number": f"{number:02}", "colour": "red" if number % 2 else "blue"}
        container.upload_blob(f"book-{number}", b"", tags=tags)
    return container


FOUND = {
    "\"colour\"='red'": [1, 3, 5, 7, 9],
    "colour = 'red' AND number > '04'": [5, 7, 9],
    "number >= '03' and number < '05'": [3, 4],
    "number <= '00'": [0],
    "colour='Red'": [],
    "other='1'": [],
}


@pytest.mark.parametrize("where, expected", FOUND.items(), ids=FOUND.keys())
def test_blobs_are_found_by_tags(shelf, where, expected):
    assert names(shelf.find_blobs_by_tags(where)) == [f"book-{number}" for number in expected]


def test_blobs_are_found_in_all_containers(service, container):
    value = fresh_name()
    container.upload_blob("a", b"", tags={"place": value, "other": "1"})
    [found] = list(service.find_blobs_by_tags(f"place='{value}'"))
    assert (found.name, found.container_name, found.tags) == ("a", container.container_name, {"place": value})
    where = f"@container='{container.container_name}' AND other='1'"
    assert names(service.find_blobs_by_tags(where)) == ["a"]


def test_found_in_pages(shelf):
    pages = shelf.find_blobs_by_tags("colour='red'", results_per_page=2).by_page()
    assert [names(page) for page in pages] == [["book-1", "book-3"], ["book-5", "book-7"], ["book-9"]]


def test_an_expression_that_can_not_be_read(service):
    with refused(400, "InvalidQueryParameterValue"):
        list(service.find_blobs_by_tags("nonsense"))


# Tiers


@pytest.mark.parametrize("tier", [StandardBlobTier.HOT, StandardBlobTier.COOL, StandardBlobTier.COLD])
def test_a_tier_is_set(filled, tier):
    filled.set_standard_blob_tier(tier)
    found = filled.get_blob_properties()
    assert (found.blob_tier, found.blob_tier_inferred) == (tier, None)
    assert found.blob_tier_change_time is not None
    assert content(filled) == b"0123456789"


def test_an_archived_blob(filled):
    filled.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    with refused(409, "BlobArchived"):
        filled.download_blob()
    filled.set_standard_blob_tier(StandardBlobTier.COOL, rehydrate_priority="Standard")
    found = filled.get_blob_properties()
    assert (found.blob_tier, found.archive_status, found.rehydrate_priority) == ("Archive", "rehydrate-pending-to-cool", "Standard")


def test_an_unknown_tier(filled):
    with refused(400, "InvalidHeaderValue"):
        filled.set_standard_blob_tier("Warm")


def test_a_tier_of_a_missing_blob(blob):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.set_standard_blob_tier("Cool")
