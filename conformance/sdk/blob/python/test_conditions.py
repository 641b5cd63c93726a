"""Conditions: ETags, times and tags, on reads and on writes."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, ContentSettings

from conftest import content, hours, refused

OTHER = '"0x8D000000000000F"'


def met(etag):
    return [
        {"etag": etag, "match_condition": MatchConditions.IfNotModified},
        {"etag": OTHER, "match_condition": MatchConditions.IfModified},
        {"match_condition": MatchConditions.IfPresent},
        {"if_modified_since": hours(-1)},
        {"if_unmodified_since": hours(1)},
        {"if_tags_match_condition": "\"colour\"='red' AND number > '3'"},
        {"if_tags_match_condition": "colour <> 'blue'"},
    ]


def unmet(etag):
    """Conditions, and whether a read answers 304 to them instead of 412."""
    return [
        ({"etag": OTHER, "match_condition": MatchConditions.IfNotModified}, False),
        ({"etag": etag, "match_condition": MatchConditions.IfModified}, True),
        ({"if_modified_since": hours(1)}, True),
        ({"if_unmodified_since": hours(-1)}, False),
        ({"if_tags_match_condition": "colour='blue'"}, False),
    ]


@pytest.fixture
def tagged(filled):
    filled.set_blob_tags({"colour": "red", "number": "5"})
    return filled


READS = {
    "download": lambda blob, **condition: content(blob, **condition),
    "properties": lambda blob, **condition: blob.get_blob_properties(**condition),
}
WRITES = {
    "upload": lambda blob, **condition: blob.upload_blob(b"new", overwrite=True, **condition),
    "blocks": lambda blob, **condition: blob.commit_block_list([], **condition),
    "headers": lambda blob, **condition: blob.set_http_headers(ContentSettings("text/plain"), **condition),
    "metadata": lambda blob, **condition: blob.set_blob_metadata({"a": "1"}, **condition),
    "snapshot": lambda blob, **condition: blob.create_snapshot(**condition),
    "lease": lambda blob, **condition: blob.acquire_lease(**condition),
    "delete": lambda blob, **condition: blob.delete_blob(**condition),
}


@pytest.mark.parametrize("act", READS.values(), ids=READS.keys())
def test_reads(tagged, act):
    etag = tagged.get_blob_properties().etag
    for condition in met(etag):
        act(tagged, **condition)
    for condition, unchanged in unmet(etag):
        with refused(304 if unchanged else 412, "ConditionNotMet"):
            act(tagged, **condition)


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES.keys())
def test_writes_that_are_not_done(tagged, act):
    before = tagged.get_blob_properties()
    for condition, _ in unmet(before.etag):
        with refused(412, "ConditionNotMet"):
            act(tagged, **condition)
    after = tagged.get_blob_properties()
    assert (after.etag, after.lease.state, content(tagged)) == (before.etag, "available", b"0123456789")


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES.keys())
def test_writes_that_are_done(tagged, act, which):
    act(tagged, **met(tagged.get_blob_properties().etag)[which])


def test_create_only(filled, container):
    missing = {"match_condition": MatchConditions.IfMissing}
    other = container.get_blob_client("other")
    other.upload_blob(b"a", overwrite=True, **missing)
    for act in (
        lambda: filled.upload_blob(b"a", overwrite=True, **missing),
        lambda: filled.commit_block_list([], **missing),
        lambda: filled.create_append_blob(**missing),
        lambda: filled.create_page_blob(512, **missing),
        lambda: filled.start_copy_from_url(other.url, **missing),
    ):
        with refused(409, "BlobAlreadyExists", ResourceExistsError):
            act()
    assert content(filled) == b"0123456789"


def test_create_only_with_a_lease(filled):
    """The service does not look at `If-None-Match: *` if the lease id of the blob is given."""
    lease = filled.acquire_lease()
    filled.upload_blob(b"new", lease=lease, match_condition=MatchConditions.IfMissing, overwrite=True)
    assert content(filled) == b"new"


def test_a_missing_blob(blob):
    """A read says that it is missing, a write that the condition is not met."""
    present = {"etag": OTHER, "match_condition": MatchConditions.IfNotModified}
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        content(blob, **present)
    for condition in (present, {"match_condition": MatchConditions.IfPresent}):
        with refused(412, "ConditionNotMet"):
            blob.upload_blob(b"a", overwrite=True, **condition)
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.set_blob_metadata({"a": "1"}, **present)
    assert not blob.exists()


def test_one_of_two_writers_wins(filled):
    """Read, change, write back: the second writer hears of the first."""
    seen = filled.get_blob_properties().etag
    filled.upload_blob(b"first", overwrite=True, etag=seen, match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        filled.upload_blob(b"second", overwrite=True, etag=seen, match_condition=MatchConditions.IfNotModified)
    assert content(filled) == b"first"


def test_a_tag_condition_that_can_not_be_read(filled):
    with pytest.raises(HttpResponseError) as refusal:
        content(filled, if_tags_match_condition="nonsense")
    assert refusal.value.status_code == 400


def test_a_blob_of_blocks_has_conditions_too(blob):
    blob.stage_block("1", b"a")
    blob.commit_block_list([BlobBlock("1")], match_condition=MatchConditions.IfMissing)
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        blob.commit_block_list([BlobBlock("1")], match_condition=MatchConditions.IfMissing)
