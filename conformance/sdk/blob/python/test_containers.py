"""Containers: made once, listed in order and in pages, with metadata, policies and leases."""

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import AccessPolicy, PublicAccess

from conftest import BINARY, container_client, content, fresh_name, hours, refused, served, service_client


def test_a_container_is_made_and_deleted(service):
    container = service.create_container(fresh_name())
    assert container.exists()
    container.delete_container()
    assert not container.exists()


def test_the_same_name_again(container):
    with refused(409, "ContainerAlreadyExists", ResourceExistsError):
        container.create_container()


def test_a_deleted_name_is_free_at_once(container):
    container.upload_blob("a", b"1")
    container.delete_container()
    container.create_container()
    assert list(container.list_blobs()) == []


def test_a_missing_container():
    missing = container_client(fresh_name())
    for act in (
        missing.get_container_properties,
        missing.delete_container,
        missing.get_container_access_policy,
        lambda: missing.set_container_metadata({"a": "1"}),
        lambda: missing.upload_blob("a", b""),
        lambda: missing.download_blob("a"),
        lambda: next(iter(missing.list_blobs())),
    ):
        with refused(404, "ContainerNotFound", ResourceNotFoundError):
            act()


@pytest.mark.parametrize("name", ["a_b", "-ab", "a--b", "Abc", "abc-"])
def test_names_that_are_refused(service, name):
    with refused(400, "InvalidResourceName"):
        service.create_container(name)


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_lengths_that_are_refused(service, name):
    with refused(400, "OutOfRangeInput"):
        service.create_container(name)


def test_the_longest_name(service):
    container = service.create_container(fresh_name().ljust(63, "x"))
    container.delete_container()


def test_metadata_is_replaced(container):
    container.set_container_metadata({"Hello": "World", "number_1": "42"})
    assert container.get_container_properties().metadata == {"Hello": "World", "number_1": "42"}
    container.set_container_metadata({"other": "1"})
    assert container.get_container_properties().metadata == {"other": "1"}
    container.set_container_metadata()
    assert container.get_container_properties().metadata == {}


def test_a_container_is_made_with_metadata(service):
    container = service.create_container(fresh_name(), metadata={"a": "1"})
    assert container.get_container_properties().metadata == {"a": "1"}
    container.delete_container()


def test_properties(container):
    made = container.get_container_properties()
    assert (made.lease.status, made.lease.state, made.lease.duration) == ("unlocked", "available", None)
    assert (made.public_access, made.has_immutability_policy, made.has_legal_hold) == (None, False, False)
    assert made.etag.startswith('"0x')
    changed = container.set_container_metadata({"a": "1"})
    assert changed["etag"] != made.etag
    assert container.get_container_properties().etag == changed["etag"]


def test_conditions(container):
    with refused(412, "ConditionNotMet"):
        container.set_container_metadata({"a": "1"}, if_modified_since=hours(1))
    with refused(412, "ConditionNotMet"):
        container.delete_container(if_unmodified_since=hours(-1))
    container.delete_container(if_modified_since=hours(-1))


# Lists


@pytest.fixture
def seven(service):
    prefix = fresh_name()
    made = [service.create_container(f"{prefix}-{number}", metadata={"number": str(number)}) for number in range(7)]
    yield prefix
    for container in made:
        container.delete_container()


def test_a_list_has_those_with_a_prefix_in_order(service, seven):
    found = list(service.list_containers(name_starts_with=seven, include_metadata=True))
    assert [one.name for one in found] == [f"{seven}-{number}" for number in range(7)]
    assert [one.metadata for one in found] == [{"number": str(number)} for number in range(7)]


def test_metadata_is_listed_only_if_asked_for(service, seven):
    assert {str(one.metadata) for one in service.list_containers(name_starts_with=seven)} == {"None"}


def test_a_list_in_pages(service, seven):
    pages = service.list_containers(name_starts_with=seven, results_per_page=3).by_page()
    sizes, tokens = [], []
    for page in pages:
        sizes.append(len(list(page)))
        tokens.append(pages.continuation_token)
    assert sizes == [3, 3, 1] and tokens[0] and not tokens[-1]
    rest = service.list_containers(name_starts_with=seven, results_per_page=3).by_page(tokens[0])
    assert [one.name for page in rest for one in page] == [f"{seven}-{number}" for number in range(3, 7)]


def test_what_is_listed_of_a_container(service, seven):
    first = next(iter(service.list_containers(name_starts_with=seven)))
    properties = service.get_container_client(first.name).get_container_properties()
    assert (first.etag, first.last_modified) == (properties.etag, properties.last_modified)
    assert (first.lease.status, first.lease.state, first.public_access) == ("unlocked", "available", None)


# Policies and public access


def test_no_policies(container):
    found = container.get_container_access_policy()
    assert (found["public_access"], found["signed_identifiers"]) == (None, [])


def test_policies_come_back(container):
    expiry = hours(2)
    policies = {
        "whole": AccessPolicy("racwdl", expiry, hours(-2)),
        "only permission": AccessPolicy("r"),
        "empty": AccessPolicy(),
    }
    container.set_container_access_policy(policies)
    found = {one.id: one.access_policy for one in container.get_container_access_policy()["signed_identifiers"]}
    assert list(found) == list(policies)
    assert found["whole"].permission == "racwdl"
    assert found["whole"].expiry.startswith(expiry.strftime("%Y-%m-%dT%H:"))
    assert found["only permission"].permission == "r"
    container.set_container_access_policy({})
    assert container.get_container_access_policy()["signed_identifiers"] == []


def test_an_identifier_has_a_limit(container):
    with refused(400, "InvalidXmlDocument"):
        container.set_container_access_policy({"a" * 65: AccessPolicy("r")})


def test_nobody_reads_without_a_key(container):
    """So it is until the operator allows public access, whatever the container says."""
    container.upload_blob("a", b"1")
    stranger = container_client(container.container_name, credential=None)
    for act in (
        lambda: content(stranger.get_blob_client("a")),
        lambda: stranger.get_blob_client("a").get_blob_properties(),
        lambda: list(stranger.list_blobs()),
        stranger.get_container_properties,
        lambda: stranger.upload_blob("b", b"1"),
        lambda: list(service_client(credential=None).list_containers()),
    ):
        with refused(401, "NoAuthenticationInformation"):
            act()
    container.set_container_access_policy({}, public_access=PublicAccess.CONTAINER)
    with refused(409, "PublicAccessNotPermitted"):
        content(stranger.get_blob_client("a"))


@pytest.fixture(scope="module")
def open_service():
    """A server whose operator allows public access."""
    if not BINARY:
        pytest.skip("PARTITA_BINARY names no server to start")
    with served("--blob-public-access", "on") as endpoint, service_client(endpoint) as client:
        yield client


ANONYMOUS = {None: (False, False), PublicAccess.BLOB: (True, False), PublicAccess.CONTAINER: (True, True)}


@pytest.mark.parametrize("level", ANONYMOUS, ids=str)
def test_public_access(open_service, level):
    container = open_service.create_container(fresh_name())
    container.upload_blob("a", b"1")
    container.set_container_access_policy({}, public_access=level)
    assert container.get_container_properties().public_access == level
    stranger = container_client(container.container_name, open_service.url, credential=None)
    reads, lists = ANONYMOUS[level]
    for allowed, act in (
        (reads, lambda: content(stranger.get_blob_client("a"))),
        (reads, lambda: stranger.get_blob_client("a").get_blob_properties()),
        (lists, lambda: list(stranger.list_blobs())),
        (lists, stranger.get_container_properties),
        (False, lambda: stranger.upload_blob("b", b"1")),
        (False, lambda: list(service_client(open_service.url, credential=None).list_containers())),
    ):
        if allowed:
            act()
        else:
            with refused(401, "NoAuthenticationInformation"):
                act()


def test_a_container_is_private_again(container):
    container.set_container_access_policy({}, public_access=PublicAccess.BLOB)
    container.set_container_access_policy({"a": AccessPolicy("r")})
    assert container.get_container_access_policy()["public_access"] is None


# Leases


def test_a_lease_guards_deletion_only(container):
    lease = container.acquire_lease(lease_duration=60)
    properties = container.get_container_properties()
    assert (properties.lease.status, properties.lease.state, properties.lease.duration) == ("locked", "leased", "fixed")
    container.upload_blob("a", b"1")
    container.set_container_metadata({"a": "1"})
    with refused(412, "LeaseIdMissing"):
        container.delete_container()
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        container.delete_container(lease="00000000-1111-2222-3333-444444444444")
    container.delete_container(lease=lease)


def test_the_life_of_a_lease(container):
    lease = container.acquire_lease(lease_id="00000000-1111-2222-3333-444444444444")
    assert container.get_container_properties().lease.duration == "infinite"
    with refused(409, "LeaseAlreadyPresent"):
        container.acquire_lease()
    lease.renew()
    lease.change("55555555-1111-2222-3333-444444444444")
    assert lease.id == "55555555-1111-2222-3333-444444444444"
    assert lease.break_lease(lease_break_period=0) == 0
    assert container.get_container_properties().lease.state == "broken"
    lease.release()
    assert container.get_container_properties().lease.state == "available"
    with refused(412, "LeaseNotPresentWithContainerOperation"):
        container.set_container_metadata({"a": "1"}, lease="55555555-1111-2222-3333-444444444444")
