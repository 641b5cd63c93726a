"""Soft delete: what was deleted or overwritten can come back."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import RetentionPolicy

from conftest import content, fresh_name, names, refused


@pytest.fixture(scope="module")
def kept(own_service):
    """A container of a service that keeps deleted blobs for a week."""
    own_service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=7))
    return own_service.create_container(fresh_name())


@pytest.fixture
def blob(kept):
    client = kept.get_blob_client(fresh_name())
    client.upload_blob(b"0123456789", metadata={"a": "1"})
    return client


def listed(container, blob, *include):
    return [(bool(one.snapshot), bool(one.deleted)) for one in container.list_blobs(blob.blob_name, include=list(include))]


def test_a_deleted_blob_is_gone_and_comes_back(kept, blob):
    blob.delete_blob()
    assert not blob.exists()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        content(blob)
    assert listed(kept, blob) == []
    [found] = kept.list_blobs(blob.blob_name, include=["deleted", "metadata"])
    assert (found.deleted, found.remaining_retention_days, found.metadata) == (True, 6, {"a": "1"})
    assert found.deleted_time is not None
    blob.undelete_blob()
    assert (content(blob), blob.get_blob_properties().metadata) == (b"0123456789", {"a": "1"})
    assert listed(kept, blob, "deleted") == [(False, False)]


def test_snapshots_come_back_too(kept, blob):
    snapshot = blob.create_snapshot()["snapshot"]
    blob.delete_blob(delete_snapshots="include")
    assert listed(kept, blob, "deleted", "snapshots") == [(True, True), (False, True)]
    blob.undelete_blob()
    assert listed(kept, blob, "deleted", "snapshots") == [(True, False), (False, False)]
    assert content(kept.get_blob_client(blob.blob_name, snapshot=snapshot)) == b"0123456789"


def test_an_overwritten_blob_is_kept_as_a_snapshot(kept, blob):
    blob.upload_blob(b"new", overwrite=True)
    assert listed(kept, blob, "deleted", "snapshots") == [(True, True), (False, False)]
    blob.undelete_blob()
    [old, new] = kept.list_blobs(blob.blob_name, include=["snapshots"])
    assert content(kept.get_blob_client(old.name, snapshot=old.snapshot)) == b"0123456789"
    assert content(blob) == b"new"


def test_nothing_to_bring_back(kept, blob):
    blob.undelete_blob()
    assert content(blob) == b"0123456789"
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        kept.get_blob_client("never there").undelete_blob()


def test_a_deleted_name_is_free(kept, blob):
    blob.delete_blob()
    blob.upload_blob(b"new")
    assert content(blob) == b"new"


def test_a_batch_keeps_too(kept, blob):
    kept.delete_blobs(blob.blob_name)
    assert blob.blob_name not in names(kept.list_blobs())
    blob.undelete_blob()
    assert content(blob) == b"0123456789"
