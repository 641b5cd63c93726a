"""Queues: made once, listed in order and in pages, with metadata and stored access policies."""

from datetime import datetime, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.queue import AccessPolicy, QueueSasPermissions

from conftest import ACCOUNT, KEY, TABLES, fresh_name, queue_client, refused


def exists(queue):
    try:
        queue.get_queue_properties()
        return True
    except ResourceNotFoundError:
        return False


def test_a_queue_is_made_and_deleted(service):
    queue = service.get_queue_client(fresh_name())
    assert not exists(queue)
    queue.create_queue()
    assert exists(queue)
    queue.delete_queue()
    assert not exists(queue)
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        queue.delete_queue()


def test_a_queue_is_made_again_at_once_and_is_empty(queue):
    queue.send_message("before")
    queue.delete_queue()
    queue.create_queue(metadata={"color": "red"})
    assert list(queue.peek_messages(32)) == []
    assert queue.get_queue_properties().metadata == {"color": "red"}


def test_the_same_queue_again_is_already_there(queue):
    """The service answers 204, which the SDK turns into this error."""
    with pytest.raises(ResourceExistsError):
        queue.create_queue()


def test_another_queue_of_the_name_is_refused(queue):
    with refused(409, "QueueAlreadyExists", ResourceExistsError):
        queue.create_queue(metadata={"other": "1"})


def test_a_queue_is_made_again_with_the_same_metadata(service):
    queue = service.create_queue(fresh_name(), metadata={"color": "red"})
    with pytest.raises(ResourceExistsError) as answer:
        queue.create_queue(metadata={"color": "red"})
    assert answer.value.status_code == 204
    with refused(409, "QueueAlreadyExists"):
        queue.create_queue(metadata={"color": "blue"})
    queue.delete_queue()


def test_a_table_may_have_the_name_of_a_queue():
    name = fresh_name("both")
    with TableServiceClient(TABLES, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as tables:
        tables.create_table(name)
        other = queue_client(name)
        other.create_queue()
        other.send_message("m")
        other.delete_queue()
        assert [t.name for t in tables.query_tables(f"TableName eq '{name}'")] == [name]
        tables.delete_table(name)


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_the_length_of_a_name(service, name):
    with refused(400, "OutOfRangeInput"):
        service.create_queue(name)


@pytest.mark.parametrize("name", ["a_b", "-ab", "a--b", "Abc", "queue-", "日本語"])
def test_the_characters_of_a_name(service, name):
    with refused(400, "InvalidResourceName"):
        service.create_queue(name)


def test_the_shortest_and_the_longest_name(service):
    for name in (fresh_name("")[:3], fresh_name("").ljust(63, "x")):
        service.create_queue(name).delete_queue()


# Metadata


METADATA = {"hello": "world", "number": "43", "_under": "va@lue", "json": '{"a": [1]}', "Mixed": "Case"}


def test_metadata_comes_back(queue):
    queue.set_queue_metadata(METADATA)
    found = queue.get_queue_properties().metadata
    assert {name.lower(): value for name, value in found.items()} == {k.lower(): v for k, v in METADATA.items()}


def test_metadata_is_replaced_as_a_whole(queue):
    queue.set_queue_metadata({"a": "1", "b": "2"})
    queue.set_queue_metadata({"b": "3"})
    assert queue.get_queue_properties().metadata == {"b": "3"}
    queue.set_queue_metadata({})
    assert queue.get_queue_properties().metadata == {}


@pytest.mark.parametrize("name", ["invalid-meta", "12345", "met.adata"])
def test_a_name_of_metadata_is_an_identifier(queue, name):
    with refused(400, "InvalidMetadata"):
        queue.set_queue_metadata({name: "value"})


def test_metadata_of_a_missing_queue():
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        queue_client(fresh_name()).set_queue_metadata({"a": "1"})


def test_the_count_has_invisible_messages_too(queue):
    for number in range(5):
        queue.send_message(str(number))
    queue.receive_message(visibility_timeout=60)
    queue.send_message("later", visibility_timeout=60)
    assert queue.get_queue_properties().approximate_message_count == 6


# Lists


@pytest.fixture(scope="module")
def seven(service):
    prefix = fresh_name("list-")[:15]
    names = [f"{prefix}-{number}" for number in range(7)]
    for name in reversed(names):
        service.create_queue(name, metadata={"number": name[-1]})
    yield prefix, names
    for name in names:
        service.delete_queue(name)


def test_list_by_prefix_is_in_order(service, seven):
    prefix, names = seven
    assert [q.name for q in service.list_queues(name_starts_with=prefix)] == names
    assert [q.name for q in service.list_queues(name_starts_with=names[3])] == [names[3]]
    assert list(service.list_queues(name_starts_with=prefix + "-x")) == []


def test_list_without_prefix_has_every_queue(service, seven):
    assert set(seven[1]) <= {q.name for q in service.list_queues()}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_list_in_pages(service, seven, size):
    prefix, names = seven
    pages = service.list_queues(name_starts_with=prefix, results_per_page=size).by_page()
    assert [[q.name for q in page] for page in pages] == [names[at : at + size] for at in range(0, 7, size)]


def test_list_goes_on_from_a_token(service, seven):
    prefix, names = seven
    pages = service.list_queues(name_starts_with=prefix, results_per_page=3).by_page()
    next(pages)
    again = service.list_queues(name_starts_with=prefix, results_per_page=3).by_page(pages.continuation_token)
    assert [q.name for page in again for q in page] == names[3:]


def test_list_goes_on_behind_a_queue_that_is_gone(service):
    prefix = fresh_name("gone-")[:15]
    for number in range(4):
        service.create_queue(f"{prefix}-{number}")
    pages = service.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    next(pages)
    service.delete_queue(f"{prefix}-2")
    assert [q.name for page in pages for q in page] == [f"{prefix}-3"]
    for number in (0, 1, 3):
        service.delete_queue(f"{prefix}-{number}")


def test_list_with_metadata(service, seven):
    prefix, names = seven
    with_metadata = service.list_queues(name_starts_with=prefix, include_metadata=True)
    assert [q.metadata for q in with_metadata] == [{"number": name[-1]} for name in names]
    assert all(not q.metadata for q in service.list_queues(name_starts_with=prefix))


def test_a_marker_that_no_server_gave(service):
    with refused(400, "OutOfRangeInput"):
        next(service.list_queues().by_page("garbage"))


# Stored access policies


def test_policies_come_back(queue):
    start, expiry = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), datetime(2036, 1, 1, tzinfo=timezone.utc)
    full = AccessPolicy(QueueSasPermissions(read=True, add=True, update=True, process=True), expiry, start)
    queue.set_queue_access_policy({"full": full, "reader": AccessPolicy("r", expiry), "bare": None})
    found = queue.get_queue_access_policy()
    assert list(found) == ["full", "reader", "bare"]
    assert (found["full"].permission, found["reader"].permission) == ("raup", "r")
    assert (found["full"].start, found["full"].expiry) == ("2026-01-02T03:04:05.0000000Z", "2036-01-01T00:00:00.0000000Z")
    assert found["bare"].permission is None
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}


def test_policies_and_metadata_keep_out_of_each_others_way(queue):
    queue.set_queue_metadata({"a": "1"})
    queue.set_queue_access_policy({"p": AccessPolicy("r", datetime(2036, 1, 1, tzinfo=timezone.utc))})
    queue.set_queue_metadata({"b": "2"})
    assert list(queue.get_queue_access_policy()) == ["p"]
    assert queue.get_queue_properties().metadata == {"b": "2"}


def test_a_sixth_policy_and_a_long_name_are_refused(queue):
    queue.set_queue_access_policy({str(number): None for number in range(5)})
    with refused(400, "InvalidXmlDocument"):
        queue.set_queue_access_policy({str(number): None for number in range(6)})
    with refused(400, "InvalidXmlDocument"):
        queue.set_queue_access_policy({"x" * 65: AccessPolicy("r")})


def test_policies_of_a_missing_queue():
    with refused(404, "QueueNotFound", HttpResponseError):
        queue_client(fresh_name()).get_queue_access_policy()
