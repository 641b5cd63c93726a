"""Snapshots, and copies of blobs."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContentSettings, StandardBlobTier

from conftest import container_client, content, fresh_name, hours, refused, signed


def at(container, taken):
    """The snapshot of the container's blob."""
    return container.get_blob_client("blob", snapshot=taken["snapshot"])


def test_a_snapshot_keeps_what_it_saw(container, filled):
    filled.set_blob_metadata({"a": "1"})
    taken = filled.create_snapshot()
    filled.upload_blob(b"new", overwrite=True)
    found = at(container, taken).get_blob_properties()
    assert (content(at(container, taken)), found.metadata, found.snapshot) == (b"0123456789", {"a": "1"}, taken["snapshot"])
    assert found.lease.state is None
    assert content(filled) == b"new"


def test_a_snapshot_with_its_own_metadata(container, filled):
    filled.set_blob_metadata({"a": "1"})
    taken = filled.create_snapshot(metadata={"b": "2"})
    assert at(container, taken).get_blob_properties().metadata == {"b": "2"}
    assert filled.get_blob_properties().metadata == {"a": "1"}


def test_a_snapshot_does_not_change_its_blob(filled):
    before = filled.get_blob_properties()
    taken = filled.create_snapshot()
    after = filled.get_blob_properties()
    assert (taken["etag"], after.etag, after.last_modified) == (before.etag, before.etag, before.last_modified)


def test_snapshots_of_one_blob_differ(filled):
    assert len({filled.create_snapshot()["snapshot"] for _ in range(10)}) == 10


def test_a_blob_with_snapshots_is_deleted_with_them(container, filled):
    taken = filled.create_snapshot()
    with refused(409, "SnapshotsPresent"):
        filled.delete_blob()
    filled.delete_blob(delete_snapshots="include")
    assert not filled.exists() and not at(container, taken).exists()


def test_only_the_snapshots_are_deleted(container, filled):
    taken = filled.create_snapshot()
    filled.delete_blob(delete_snapshots="only")
    assert filled.exists() and not at(container, taken).exists()


def test_one_snapshot_is_deleted(container, filled):
    first, second = filled.create_snapshot(), filled.create_snapshot()
    at(container, first).delete_blob()
    assert (at(container, first).exists(), at(container, second).exists(), filled.exists()) == (False, True, True)


def test_a_snapshot_of_a_missing_blob(blob):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.create_snapshot()


# Copies


@pytest.fixture
def target(container):
    return container.get_blob_client("target")


def test_a_copy(filled, target):
    filled.set_http_headers(ContentSettings("text/plain"))
    filled.set_blob_metadata({"Key": "Value"})
    started = target.start_copy_from_url(filled.url)
    assert started["copy_status"] == "success"
    found = target.get_blob_properties()
    assert (content(target), found.metadata, found.content_settings.content_type) == (b"0123456789", {"Key": "Value"}, "text/plain")
    assert (found.copy.id, found.copy.status, found.copy.progress) == (started["copy_id"], "success", "10/10")
    assert (found.copy.source, found.copy.completion_time is not None) == (filled.url, True)


def test_a_copy_with_its_own_metadata(filled, target):
    filled.set_blob_metadata({"Key": "Value"})
    target.start_copy_from_url(filled.url, metadata={"other": "1"}, tags={"t": "1"}, standard_blob_tier=StandardBlobTier.COOL)
    found = target.get_blob_properties()
    assert (found.metadata, target.get_blob_tags(), found.blob_tier) == ({"other": "1"}, {"t": "1"}, "Cool")


def test_a_copy_stays_when_its_source_goes(filled, target):
    target.start_copy_from_url(filled.url)
    filled.delete_blob()
    assert content(target) == b"0123456789"


def test_a_copy_over_a_blob(filled, target):
    target.upload_blob(b"old")
    target.start_copy_from_url(filled.url)
    assert content(target) == b"0123456789"


def test_a_snapshot_is_promoted(container, filled):
    taken = filled.create_snapshot()
    filled.upload_blob(b"new", overwrite=True)
    filled.start_copy_from_url(at(container, taken).url)
    assert content(filled) == b"0123456789"


def test_a_copy_of_each_type(container):
    log, disk = container.get_blob_client("log"), container.get_blob_client("disk")
    log.create_append_blob()
    log.append_block(b"line")
    disk.create_page_blob(1024)
    disk.upload_page(b"a" * 512, offset=512, length=512)
    for source in (log, disk):
        copy = container.get_blob_client(source.blob_name + " copy")
        copy.start_copy_from_url(source.url)
        assert content(copy) == content(source)
        assert copy.get_blob_properties().blob_type == source.get_blob_properties().blob_type


def test_a_copy_from_another_container(filled):
    other = container_client(fresh_name())
    other.create_container()
    copy = other.get_blob_client("copy")
    copy.start_copy_from_url(filled.url)
    assert content(copy) == b"0123456789"
    other.delete_container()


def test_a_copy_with_a_token(filled, target):
    """The holder of tokens for both sides needs no key."""
    holder = type(target).from_blob_url(signed(target, "cw"))
    holder.start_copy_from_url(signed(filled))
    assert content(target) == b"0123456789"
    assert "sig=" not in target.get_blob_properties().copy.source


def test_a_copy_of_what_may_not_be_read(filled, target):
    holder = type(target).from_blob_url(signed(target, "cw"))
    with refused(401, "CannotVerifyCopySource"):
        holder.start_copy_from_url(filled.url)
    assert not target.exists()


def test_a_synchronous_copy(filled, target):
    target.start_copy_from_url(signed(filled), requires_sync=True)
    assert (content(target), target.get_blob_properties().copy.status) == (b"0123456789", "success")


def test_a_missing_source(blob, target):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        target.start_copy_from_url(blob.url)


def test_conditions_of_a_copy(filled, target):
    with refused(412, "SourceConditionNotMet"):
        target.start_copy_from_url(filled.url, source_if_modified_since=hours(1))
    target.upload_blob(b"old")
    with refused(412, "TargetConditionNotMet"):
        target.start_copy_from_url(filled.url, if_unmodified_since=hours(-1))
    assert content(target) == b"old"


def test_a_copy_that_is_done_can_not_be_aborted(filled, target):
    started = target.start_copy_from_url(filled.url)
    with refused(409, "NoPendingCopyOperation"):
        target.abort_copy(started["copy_id"])
