"""Batches: many deletions or changes of tier in one request, each with its own answer."""

import pytest
from azure.storage.blob import PartialBatchErrorException

from conftest import names


@pytest.fixture
def five(container):
    for number in range(5):
        container.upload_blob(f"a/{number} ü", b"1")
    return container


def statuses(answers):
    return [answer.status_code for answer in answers]


def test_blobs_are_deleted(five):
    assert statuses(five.delete_blobs(*names(five.list_blobs()))) == [202] * 5
    assert list(five.list_blobs()) == []


def test_a_list_is_deleted(five):
    """Items of a list can be given as they are."""
    five.delete_blobs(*five.list_blobs())
    assert list(five.list_blobs()) == []


def test_one_part_fails_alone(five):
    with pytest.raises(PartialBatchErrorException) as failed:
        five.delete_blobs("a/0 ü", "missing", "a/1 ü")
    answers = list(failed.value.parts)
    assert statuses(answers) == [202, 404, 202]
    assert answers[1].headers["x-ms-error-code"] == "BlobNotFound"
    assert names(five.list_blobs()) == ["a/2 ü", "a/3 ü", "a/4 ü"]


def test_without_errors_if_asked(five):
    assert statuses(five.delete_blobs("a/0 ü", "missing", raise_on_any_failure=False)) == [202, 404]


def test_snapshots_too(five):
    five.get_blob_client("a/0 ü").create_snapshot()
    assert statuses(five.delete_blobs("a/0 ü", raise_on_any_failure=False)) == [409]
    five.delete_blobs("a/0 ü", delete_snapshots="include")
    assert len(names(five.list_blobs(include="snapshots"))) == 4


def test_conditions_of_a_part(five):
    etag = five.get_blob_client("a/0 ü").get_blob_properties().etag
    answers = five.delete_blobs({"name": "a/0 ü", "etag": etag}, {"name": "a/1 ü", "etag": etag}, raise_on_any_failure=False)
    assert statuses(answers) == [202, 412]


def test_tiers(five):
    assert statuses(five.set_standard_blob_tier_blobs("Cool", "a/0 ü", "a/1 ü")) == [200, 200]
    assert [one.blob_tier for one in five.list_blobs()] == ["Cool", "Cool", "Hot", "Hot", "Hot"]


def test_the_longest_batch(container):
    missing = [f"missing {number}" for number in range(256)]
    assert statuses(container.delete_blobs(*missing, raise_on_any_failure=False)) == [404] * 256
