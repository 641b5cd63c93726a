"""Shared access signatures: the SDK's tokens do what they grant, and nothing else."""

from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlencode

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.queue import (
    AccessPolicy,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_queue_sas,
)

from conftest import ACCOUNT, ENDPOINT, KEY, fresh_name, queue_client, refused, service_client


def hours(count):
    return datetime.now(timezone.utc) + timedelta(hours=count)


def token(queue, permission="raup", expiry=hours(1), **more):
    return generate_queue_sas(ACCOUNT, queue.queue_name, KEY, permission=permission, expiry=expiry, **more)


def account_token(types, permission, **more):
    return generate_account_sas(ACCOUNT, KEY, ResourceTypes.from_string(types), permission, hours(1), **more)


def with_token(queue, signature, endpoint=ENDPOINT):
    return queue_client(queue.queue_name, endpoint, AzureSasCredential(signature))


def holder(queue, permission="raup", **more):
    return with_token(queue, token(queue, permission, **more))


def service_with(signature):
    return service_client(credential=AzureSasCredential(signature))


def unauthenticated(act):
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        act()


@pytest.fixture
def filled(queue):
    queue.send_message("a")
    return queue


# What an operation needs, and how it is done; `message` is a message of the queue that its key holder has.
OPERATIONS = {
    "peek": ("r", lambda q, message: q.peek_messages()),
    "get metadata": ("r", lambda q, message: q.get_queue_properties()),
    "put": ("a", lambda q, message: q.send_message("b")),
    "update": ("u", lambda q, message: q.update_message(message, visibility_timeout=1)),
    "get": ("p", lambda q, message: q.receive_message()),
    "delete": ("p", lambda q, message: q.delete_message(message)),
}
BEYOND = {
    "create": lambda q: q.create_queue(),
    "delete": lambda q: q.delete_queue(),
    "clear": lambda q: q.clear_messages(),
    "set metadata": lambda q: q.set_queue_metadata({"a": "1"}),
    "get policies": lambda q: q.get_queue_access_policy(),
    "set policies": lambda q: q.set_queue_access_policy({}),
}


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_permission_suffices(filled, needs, act):
    act(holder(filled, needs), filled.send_message("own"))


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_permission_is_needed(filled, needs, act):
    with refused(403, "AuthorizationPermissionMismatch"):
        act(holder(filled, "raup".replace(needs, "")), filled.send_message("own"))


@pytest.mark.parametrize("act", BEYOND.values(), ids=BEYOND.keys())
def test_what_no_queue_token_permits(filled, act):
    with refused(403, "AuthorizationFailure"):
        act(holder(filled))
    assert len(filled.peek_messages()) == 1


def test_a_token_is_for_its_queue(filled):
    """The token signs the queue of the address, so that elsewhere its signature is wrong."""
    client = service_with(token(filled))
    unauthenticated(lambda: list(client.list_queues()))
    unauthenticated(client.get_service_properties)
    other = queue_client(fresh_name())
    other.create_queue()
    unauthenticated(with_token(other, token(filled)).peek_messages)
    other.delete_queue()


WHEN = {
    "started": ({"start": hours(-1)}, True),
    "not yet": ({"start": hours(0.5)}, False),
    "expired": ({"expiry": hours(-0.01)}, False),
    "from a date": ({"start": "2020-01-01"}, True),
    "minutes": ({"expiry": hours(1).strftime("%Y-%m-%dT%H:%MZ")}, True),
}


@pytest.mark.parametrize("times, valid", WHEN.values(), ids=WHEN.keys())
def test_time(filled, times, valid):
    client = holder(filled, **times)
    if valid:
        client.peek_messages()
    else:
        unauthenticated(client.peek_messages)


def test_source_address(filled):
    holder(filled, ip="0.0.0.0-255.255.255.255").peek_messages()
    with refused(403, "AuthorizationSourceIPMismatch"):
        holder(filled, ip="203.0.113.1-203.0.113.9").peek_messages()


@pytest.mark.skipif(ENDPOINT.startswith("https:"), reason="the endpoint is secure")
def test_protocol(filled):
    holder(filled, protocol="https,http").peek_messages()
    with refused(403, "AuthorizationProtocolMismatch"):
        holder(filled, protocol="https").peek_messages()


TAMPERED = {
    "permission": {"sp": "raup"},
    "expiry": {"se": "2099-01-01"},
    "start": {"st": "2020-01-01"},
    "policy": {"si": "policy"},
    "signature": {"sig": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED.keys())
def test_tampered(filled, change):
    forged = urlencode(dict(parse_qsl(token(filled, "r"))) | change)
    unauthenticated(with_token(filled, forged).peek_messages)


# Stored access policies


def by_policy(queue, **more):
    return with_token(queue, generate_queue_sas(ACCOUNT, queue.queue_name, KEY, policy_id="worker", **more))


def test_a_policy_grants(filled):
    filled.set_queue_access_policy({"worker": AccessPolicy("rp", hours(1))})
    client = by_policy(filled)
    client.delete_message(client.receive_message())
    with refused(403, "AuthorizationPermissionMismatch"):
        client.send_message("b")


def test_a_policy_is_revoked_and_revived(filled):
    client, policy = by_policy(filled), {"worker": AccessPolicy("r", hours(1))}
    unauthenticated(client.peek_messages)
    over, not_yet = AccessPolicy("r", hours(-1)), AccessPolicy("r", hours(2), hours(1))
    revoked = [{}, {"other": policy["worker"]}, {"worker": over}, {"worker": not_yet}]
    for change in revoked:
        filled.set_queue_access_policy(policy)
        client.peek_messages()
        filled.set_queue_access_policy(change)
        unauthenticated(client.peek_messages)


def test_policy_and_token_complete_each_other(filled):
    filled.set_queue_access_policy({"worker": AccessPolicy("r")})
    by_policy(filled, expiry=hours(1)).peek_messages()
    filled.set_queue_access_policy({"worker": AccessPolicy(expiry=hours(1))})
    by_policy(filled, permission="r").peek_messages()


def test_policies_end_with_their_queue(filled):
    filled.set_queue_access_policy({"worker": AccessPolicy("r", hours(1))})
    client = by_policy(filled)
    client.peek_messages()
    filled.delete_queue()
    filled.create_queue()
    unauthenticated(client.peek_messages)


# Account tokens: the resource type, the permissions of which any will do, and the operation

ON_ACCOUNT = {
    "list": ("s", "l", lambda s, q, m: list(s.list_queues())),
    "get properties": ("s", "r", lambda s, q, m: s.get_service_properties()),
    "set properties": ("s", "w", lambda s, q, m: s.set_service_properties(cors=[])),
    "create": ("c", "cw", lambda s, q, m: made(s)),
    "delete": ("c", "d", lambda s, q, m: s.delete_queue(q)),
    "get metadata": ("c", "r", lambda s, q, m: s.get_queue_client(q).get_queue_properties()),
    "set metadata": ("c", "w", lambda s, q, m: s.get_queue_client(q).set_queue_metadata({"a": "1"})),
    "put": ("o", "a", lambda s, q, m: s.get_queue_client(q).send_message("b")),
    "peek": ("o", "r", lambda s, q, m: s.get_queue_client(q).peek_messages()),
    "get": ("o", "p", lambda s, q, m: s.get_queue_client(q).receive_message()),
    "update": ("o", "u", lambda s, q, m: s.get_queue_client(q).update_message(m, visibility_timeout=1)),
    "delete message": ("o", "p", lambda s, q, m: s.get_queue_client(q).delete_message(m)),
    "clear": ("o", "d", lambda s, q, m: s.get_queue_client(q).clear_messages()),
}
LETTERS = "rwdlacup"


def made(service):
    name = fresh_name()
    service.create_queue(name)
    service_with(account_token("c", "d")).delete_queue(name)


def without(letters, given):
    return "".join(letter for letter in letters if letter not in given)


@pytest.mark.parametrize("kind, needs, act", ON_ACCOUNT.values(), ids=ON_ACCOUNT.keys())
def test_an_account_token_suffices(filled, kind, needs, act):
    for letter in needs:
        act(service_with(account_token(kind, letter)), filled.queue_name, filled.send_message("own"))


@pytest.mark.parametrize("kind, needs, act", ON_ACCOUNT.values(), ids=ON_ACCOUNT.keys())
def test_an_account_token_is_refused(filled, kind, needs, act):
    message = filled.send_message("own")
    with refused(403, "AuthorizationResourceTypeMismatch"):
        act(service_with(account_token(without("sco", kind), LETTERS)), filled.queue_name, message)
    with refused(403, "AuthorizationPermissionMismatch"):
        act(service_with(account_token("sco", without(LETTERS, needs))), filled.queue_name, message)


def test_an_account_token_for_services(service):
    all_of_them = Services(blob=True, queue=True, fileshare=True)
    list(service_with(account_token("sco", "rl", services=all_of_them)).list_queues())
    with refused(403, "AuthorizationServiceMismatch"):
        list(service_with(account_token("sco", "rl", services=Services(blob=True))).list_queues())


def test_a_token_in_the_address(filled):
    """As `QueueClient(url + '?' + token)`, without a credential."""
    client = queue_client(filled.queue_name, f"{ENDPOINT}?{token(filled, 'r')}", None)
    assert client.peek_messages()[0].content == "a"
