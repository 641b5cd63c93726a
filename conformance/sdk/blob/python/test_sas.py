"""Shared access signatures: the SDK's tokens do what they grant, and nothing else."""

from urllib.parse import parse_qsl, urlencode

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import (
    AccessPolicy,
    BlobClient,
    ContainerClient,
    ContentSettings,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from conftest import ACCOUNT, ENDPOINT, KEY, blob_client, container_client, content, fresh_name, hours, refused, service_client


def blob_token(blob, permission="r", expiry=None, **more):
    return generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, account_key=KEY, permission=permission, expiry=expiry or hours(1), **more
    )


def container_token(container, permission="racwdltf", expiry=None, **more):
    return generate_container_sas(
        ACCOUNT, container.container_name, account_key=KEY, permission=permission, expiry=expiry or hours(1), **more
    )


def account_token(types, permission, **more):
    return generate_account_sas(ACCOUNT, KEY, ResourceTypes.from_string(types), permission, hours(1), **more)


def with_token(blob, signature, **more):
    return blob_client(blob.container_name, blob.blob_name, credential=AzureSasCredential(signature), **more)


def holder(blob, permission="r", **more):
    return with_token(blob, blob_token(blob, permission, **more))


def container_holder(container, permission="racwdltf", **more):
    token = container_token(container, permission, **more)
    return container_client(container.container_name, credential=AzureSasCredential(token))


def unauthenticated(act):
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        act()


# What an operation on a blob needs, and how it is done.
OPERATIONS = {
    "download": ("r", content),
    "properties": ("r", lambda blob: blob.get_blob_properties()),
    "block list": ("r", lambda blob: blob.get_block_list()),
    "overwrite": ("w", lambda blob: blob.upload_blob(b"new", overwrite=True)),
    "block": ("w", lambda blob: blob.stage_block("1", b"a")),
    "commit": ("w", lambda blob: blob.commit_block_list([])),
    "metadata": ("w", lambda blob: blob.set_blob_metadata({"a": "1"})),
    "headers": ("w", lambda blob: blob.set_http_headers(ContentSettings("text/plain"))),
    "lease": ("w", lambda blob: blob.acquire_lease()),
    "tier": ("w", lambda blob: blob.set_standard_blob_tier("Cool")),
    "delete": ("d", lambda blob: blob.delete_blob()),
    "get tags": ("t", lambda blob: blob.get_blob_tags()),
    "set tags": ("t", lambda blob: blob.set_blob_tags({"a": "1"})),
}


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_permission_suffices(filled, needs, act):
    act(holder(filled, needs))


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_permission_is_needed(filled, needs, act):
    with refused(403, "AuthorizationPermissionMismatch"):
        act(holder(filled, "rawdt".replace(needs, "")))


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_token_of_the_container(container, filled, needs, act):
    act(container_holder(container, needs).get_blob_client("blob"))


def test_create_is_not_overwrite(container, blob):
    holder(blob, "c").upload_blob(b"new")
    with refused(403, "UnauthorizedBlobOverwrite"):
        holder(blob, "c").upload_blob(b"other", overwrite=True)
    assert content(blob) == b"new"


def test_append_only(container):
    log = container.get_blob_client("log")
    holder(log, "c").create_append_blob()
    holder(log, "a").append_block(b"line")
    assert content(log) == b"line"


def test_lists_need_a_token_of_the_container(container, filled):
    assert [one.name for one in container_holder(container, "l").list_blobs()] == ["blob"]
    with refused(403, "AuthorizationPermissionMismatch"):
        list(container_holder(container, "r").list_blobs())
    by_blob = container_client(container.container_name, credential=AzureSasCredential(blob_token(filled, "r")))
    unauthenticated(lambda: list(by_blob.list_blobs()))


def test_find_in_a_container(container):
    container.upload_blob("a", b"", tags={"t": "1"})
    found = container_holder(container, "f").find_blobs_by_tags("t='1'")
    assert [one.name for one in found] == ["a"]


BEYOND = {
    "create": lambda container: container.create_container(),
    "delete": lambda container: container.delete_container(),
    "set metadata": lambda container: container.set_container_metadata({"a": "1"}),
    "get policies": lambda container: container.get_container_access_policy(),
    "set policies": lambda container: container.set_container_access_policy({}),
}


@pytest.mark.parametrize("act", BEYOND.values(), ids=BEYOND.keys())
def test_what_no_token_of_a_container_permits(container, act):
    with refused(403, "AuthorizationFailure"):
        act(container_holder(container))


def test_a_token_is_for_its_blob(container, filled):
    other = container.upload_blob("other", b"1")
    unauthenticated(lambda: content(with_token(other, blob_token(filled))))
    elsewhere = container_client(fresh_name())
    elsewhere.create_container()
    copy = elsewhere.upload_blob("blob", b"1")
    unauthenticated(lambda: content(with_token(copy, container_token(container))))
    elsewhere.delete_container()


def test_a_token_for_a_snapshot(container, filled):
    snapshot = container.get_blob_client("blob", snapshot=filled.create_snapshot()["snapshot"])
    filled.upload_blob(b"new", overwrite=True)
    token = blob_token(filled, "r", snapshot=snapshot.snapshot)
    by_token = BlobClient.from_blob_url(f"{snapshot.url}&{token}")
    assert content(by_token) == b"0123456789"
    unauthenticated(lambda: content(with_token(filled, token)))


WHEN = {
    "started": ({"start": hours(-1)}, True),
    "not yet": ({"start": hours(0.5)}, False),
    "expired": ({"expiry": hours(-0.01)}, False),
    "from a date": ({"start": "2020-01-01"}, True),
}


@pytest.mark.parametrize("times, valid", WHEN.values(), ids=WHEN.keys())
def test_time(filled, times, valid):
    client = holder(filled, **times)
    if valid:
        content(client)
    else:
        unauthenticated(lambda: content(client))


def test_source_address(filled):
    content(holder(filled, ip="0.0.0.0-255.255.255.255"))
    with refused(403, "AuthorizationSourceIPMismatch"):
        content(holder(filled, ip="203.0.113.1-203.0.113.9"))


@pytest.mark.skipif(ENDPOINT.startswith("https:"), reason="the endpoint is secure")
def test_protocol(filled):
    content(holder(filled, protocol="https,http"))
    with refused(403, "AuthorizationProtocolMismatch"):
        content(holder(filled, protocol="https"))


def test_headers_of_the_answer(filled):
    """A token can set the headers of a download, for instance the name of a file in a browser."""
    client = holder(
        filled,
        cache_control="no-cache",
        content_disposition='attachment; filename="a b.txt"',
        content_encoding="identity",
        content_language="de",
        content_type="text/plain; charset=utf-8",
    )
    found = client.download_blob().properties.content_settings
    assert (found.cache_control, found.content_disposition) == ("no-cache", 'attachment; filename="a b.txt"')
    assert (found.content_encoding, found.content_language) == ("identity", "de")
    assert found.content_type == "text/plain; charset=utf-8"


TAMPERED = {
    "permission": {"sp": "rw"},
    "expiry": {"se": "2099-01-01"},
    "start": {"st": "2020-01-01"},
    "policy": {"si": "policy"},
    "resource": {"sr": "c"},
    "header": {"rsct": "text/html"},
    "signature": {"sig": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED.keys())
def test_tampered(filled, change):
    forged = urlencode(dict(parse_qsl(blob_token(filled))) | change)
    unauthenticated(lambda: content(with_token(filled, forged)))


# Stored access policies


def by_policy(container, **more):
    token = generate_container_sas(ACCOUNT, container.container_name, account_key=KEY, policy_id="reader", **more)
    return ContainerClient(ENDPOINT, container.container_name, credential=AzureSasCredential(token)).get_blob_client("blob")


def test_a_policy_grants(container, filled):
    container.set_container_access_policy({"reader": AccessPolicy("r", hours(1))})
    assert content(by_policy(container)) == b"0123456789"
    with refused(403, "AuthorizationPermissionMismatch"):
        by_policy(container).delete_blob()


def test_a_policy_is_revoked(container, filled):
    policy = {"reader": AccessPolicy("r", hours(1))}
    unauthenticated(lambda: content(by_policy(container)))
    for change in ({}, {"other": policy["reader"]}, {"reader": AccessPolicy("r", hours(-1))}):
        container.set_container_access_policy(policy)
        content(by_policy(container))
        container.set_container_access_policy(change)
        unauthenticated(lambda: content(by_policy(container)))


def test_policy_and_token_complete_each_other(container, filled):
    container.set_container_access_policy({"reader": AccessPolicy("r")})
    content(by_policy(container, expiry=hours(1)))
    container.set_container_access_policy({"reader": AccessPolicy(expiry=hours(1))})
    content(by_policy(container, permission="r"))


# Tokens of the account


def account_holder(types, permission, **more):
    return service_client(credential=AzureSasCredential(account_token(types, permission, **more)))


def test_an_account_token_does_what_it_grants():
    service, name = account_holder("sco", "rwdlacupt"), fresh_name()
    container = service.create_container(name)
    blob = container.upload_blob("a", b"1", tags={"t": "1"})
    assert (content(blob), [one.name for one in container.list_blobs()]) == (b"1", ["a"])
    assert [one.name for one in service.list_containers(name_starts_with=name)] == [name]
    service.get_service_properties()
    container.delete_container()


LEVELS = {
    "service": ("s", lambda service, name: list(service.list_containers())),
    "container": ("c", lambda service, name: list(service.get_container_client(name).list_blobs())),
    "object": ("o", lambda service, name: content(service.get_blob_client(name, "blob"))),
}


@pytest.mark.parametrize("needs, act", LEVELS.values(), ids=LEVELS.keys())
def test_levels(filled, needs, act):
    act(account_holder(needs, "rl"), filled.container_name)
    with refused(403, "AuthorizationResourceTypeMismatch"):
        act(account_holder("sco".replace(needs, ""), "rl"), filled.container_name)


def test_an_account_token_without_a_permission(filled):
    with refused(403, "AuthorizationPermissionMismatch"):
        account_holder("o", "r").get_blob_client(filled.container_name, "blob").delete_blob()


def test_an_account_token_of_another_service(filled):
    with refused(403, "AuthorizationServiceMismatch"):
        content(account_holder("o", "r", services="q").get_blob_client(filled.container_name, "blob"))


def test_a_batch_with_a_token(container):
    for name in "ab":
        container.upload_blob(name, b"")
    container_holder(container, "d").delete_blobs("a", "b")
    assert list(container.list_blobs()) == []
