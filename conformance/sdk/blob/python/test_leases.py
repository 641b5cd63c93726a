"""Leases of blobs: one holder writes, everybody reads."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobLeaseClient, ContentSettings

from conftest import content, refused

A, B = "aaaaaaaa-1111-2222-3333-444444444444", "bbbbbbbb-1111-2222-3333-444444444444"

WRITES = {
    "upload": lambda blob, **lease: blob.upload_blob(b"new", overwrite=True, **lease),
    "block": lambda blob, **lease: blob.stage_block("1", b"a", **lease),
    "blocks": lambda blob, **lease: blob.commit_block_list([], **lease),
    "headers": lambda blob, **lease: blob.set_http_headers(ContentSettings("text/plain"), **lease),
    "metadata": lambda blob, **lease: blob.set_blob_metadata({"a": "1"}, **lease),
    "tags": lambda blob, **lease: blob.set_blob_tags({"a": "1"}, **lease),
    "copy": lambda blob, **lease: blob.start_copy_from_url(blob.url, **({"destination_lease": lease["lease"]} if lease else {})),
    "delete": lambda blob, **lease: blob.delete_blob(**lease),
}
READS = {
    "download": lambda blob, **lease: content(blob, **lease),
    "properties": lambda blob, **lease: blob.get_blob_properties(**lease),
    "blocks": lambda blob, **lease: blob.get_block_list(**lease),
    "snapshot": lambda blob, **lease: blob.create_snapshot(**lease),
}


def state(blob):
    lease = blob.get_blob_properties().lease
    return (lease.status, lease.state, lease.duration)


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES.keys())
def test_a_write_needs_the_lease(filled, act):
    filled.acquire_lease(lease_id=A)
    with refused(412, "LeaseIdMissing"):
        act(filled)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        act(filled, lease=B)
    assert content(filled) == b"0123456789"
    act(filled, lease=A)


@pytest.mark.parametrize("act", READS.values(), ids=READS.keys())
def test_a_read_needs_no_lease(filled, act):
    filled.acquire_lease(lease_id=A)
    act(filled)
    act(filled, lease=A)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        act(filled, lease=B)


def test_a_lease_stays_with_its_blob(filled):
    lease = filled.acquire_lease()
    filled.upload_blob(b"new", overwrite=True, lease=lease)
    assert state(filled) == ("locked", "leased", "infinite")


def test_the_life_of_a_lease(filled):
    assert state(filled) == ("unlocked", "available", None)
    lease = filled.acquire_lease(lease_duration=60, lease_id=A)
    assert (lease.id, state(filled)) == (A, ("locked", "leased", "fixed"))
    with refused(409, "LeaseAlreadyPresent"):
        filled.acquire_lease()
    filled.acquire_lease(lease_id=A)
    lease.renew()
    lease.change(B)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        BlobLeaseClient(filled, lease_id=A).renew()
    lease.release()
    assert state(filled) == ("unlocked", "available", None)
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        lease.break_lease()
    filled.upload_blob(b"new", overwrite=True)


def test_a_broken_lease(filled):
    lease = filled.acquire_lease()
    assert lease.break_lease() == 0
    assert state(filled) == ("unlocked", "broken", None)
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        lease.renew()
    with refused(412, "LeaseLost"):
        filled.set_blob_metadata({"a": "1"}, lease=lease)
    filled.acquire_lease(lease_id=B)
    assert state(filled) == ("locked", "leased", "infinite")


def test_a_lease_that_is_breaking(filled):
    lease = filled.acquire_lease(lease_duration=60, lease_id=A)
    left = lease.break_lease(lease_break_period=60)
    assert 0 < left <= 60
    assert state(filled) == ("locked", "breaking", None)
    with refused(409, "LeaseAlreadyPresent"):
        filled.acquire_lease(lease_id=B)
    with refused(409, "LeaseIsBreakingAndCannotBeAcquired"):
        filled.acquire_lease(lease_id=A)
    with refused(409, "LeaseIsBreakingAndCannotBeChanged"):
        lease.change(B)
    with refused(412, "LeaseIdMissing"):
        filled.set_blob_metadata({"a": "1"})
    filled.set_blob_metadata({"a": "1"}, lease=A)
    lease.release()
    assert state(filled) == ("unlocked", "available", None)


def test_a_lease_does_not_change_its_blob(filled):
    before = filled.get_blob_properties().etag
    lease = filled.acquire_lease()
    lease.release()
    assert (lease.etag, filled.get_blob_properties().etag) == (before, before)


def test_an_id_without_a_lease(filled):
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        filled.set_blob_metadata({"a": "1"}, lease=A)
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        content(filled, lease=A)


def test_what_is_refused(filled, container):
    for duration in (10, 70):
        with refused(400, "InvalidHeaderValue"):
            filled.acquire_lease(lease_duration=duration)
    with refused(400, "InvalidHeaderValue"):
        filled.acquire_lease(lease_id="no guid")
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        container.get_blob_client("missing").acquire_lease()


def test_an_upload_in_blocks_with_a_lease(filled):
    lease = filled.acquire_lease()
    filled.stage_block("1", b"a", lease=lease)
    filled.commit_block_list([BlobBlock("1")], lease=lease)
    assert content(filled) == b"a"


def test_a_copy_is_not_leased(filled, container):
    filled.acquire_lease()
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(filled.url)
    assert state(copy) == ("unlocked", "available", None)
